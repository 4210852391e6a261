"""What lspci, ibstat, nccl-tests and ib_write_bw print."""

from __future__ import annotations

from tests.unit.health.samples.machines import Spec, bus, hbm

LSPCI_LONG = """\
{at} 3D controller: NVIDIA Corporation {chip} (rev a1)
	Subsystem: NVIDIA Corporation Device 16c1
	Control: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+
	Status: Cap+ 66MHz- UDF- FastB2B- ParErr- DEVSEL=fast >TAbort- <TAbort- <MAbort- >SERR- <PERR- INTx-
	NUMA node: 0
	Capabilities: [60] Express (v2) Endpoint, MSI 00
		DevSta:	CorrErr- NonFatalErr- FatalErr- UnsupReq- AuxPwr- TransPend-
		LnkCap:	Port #0, Speed {speed}GT/s, Width x16, ASPM L1, Exit Latency L1 <4us
		LnkSta:	{idle}, Width x16 (ok)
			TrErr- Train- SlotClk+ DLActive- BWMgmt- ABWMgmt-
	Kernel driver in use: nvidia
	Kernel modules: nvidiafb, nouveau, nvidia_drm, nvidia

"""
IBSTAT = """\
CA 'mlx5_{n}'
	CA type: {ca}
	Number of ports: 1
	Firmware version: {firmware}
	Hardware version: 0
	Node GUID: {guid}
	System image GUID: {guid}
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: {rate}
		Base lid: {lid}
		LMC: 0
		SM lid: {sm}
		Capability mask: {mask}
		Port GUID: {guid}
		Link layer: {layer}
"""
# the width of nccl-tests' table, whose titles are fixed
NCCL_TITLES = (
    "#",
    f"#{'out-of-place':>74}{'in-place':>31}{'':10}",
    "#       size         count      type   redop    root" + 2 * "     time   algbw   busbw #wrong",
    f"#        (B)    (elements){'':31}(us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       ",
)


def lspci(spec: Spec, form: str) -> str:
    """Form: n (plain is by number, too), nn, either with D: the domain too; words; vv."""
    domain = "0000:" if "D" in form else ""

    def line(at: str, words: str, code: str, device: str, chip: str) -> str:
        if "nn" in form:
            return f"{at} {words} [{code}]: NVIDIA Corporation {chip} [10de:{device}] (rev a1)\n"
        if form == "words":
            return f"{at} {words}: NVIDIA Corporation {chip} (rev a1)\n"
        return f"{at} {code}: 10de:{device} (rev a1)\n"

    if form == "vv":
        speed = {3: "8", 4: "16", 5: "32", 6: "64"}[spec.gen]
        idle = f"Speed {speed}GT/s (ok)" if hbm(spec) else "Speed 2.5GT/s (downgraded)"
        values = {"chip": spec.chip, "speed": speed, "idle": idle}
        return "".join(LSPCI_LONG.format(at=f"{bus(n):02x}:00.0", **values) for n in range(spec.count))
    gpus = [f"{domain}{bus(n):02x}:00.0" for n in range(spec.count)]
    switched = spec.slug in ("h100-sxm5", "h200-sxm", "h20")
    switches = [f"{domain}{0xC4 + n:02x}:00.0" for n in range(4)] if switched else []
    return "".join(
        [line(at, "3D controller", "0302", spec.device, spec.chip) for at in gpus]
        + [line(at, "Bridge", "0680", "22a3", "GH100 [H100 NVSwitch]") for at in switches]
    )


def ibstat(ports: int, ca: str, rate: int, layer: str, firmware: str) -> str:
    infiniband = layer == "InfiniBand"
    return "".join(
        IBSTAT.format(
            n=n,
            ca=ca,
            firmware=firmware,
            guid=f"0x0010ff00fe0001{n:02x}",
            rate=rate,
            lid=12 + n if infiniband else 0,
            sm=1 if infiniband else 0,
            mask="0xa751e848" if infiniband else "0x00010000",
            layer=layer,
        )
        for n in range(ports)
    )


def nccl(spec: Spec, top: int, busbw: float, low: int = 8, version: str = "2.17.8", bits: int = 4) -> str:
    """busbw GB/s at the largest size; smaller sizes take a fixed time more."""
    factor = 2 * (spec.count - 1) / spec.count
    out = []
    if version:
        out.append(f"# nccl-tests version {version} nccl-headers=22907 nccl-library=22907")
        out.append("# Collective test starting: all_reduce_perf")
    sizes = f"minBytes {low} maxBytes {top} step: 2(factor)"
    checks = "warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0"
    out += [f"# nThread 1 nGpus {spec.count} {sizes} {checks}", "#", "# Using devices"]
    for n in range(spec.count):
        out.append(f"#  Rank {n:2d} Group  0 Pid  81234 on     node01 device {n:2d} [0000:{bus(n):02x}:00] {spec.name}")
    out += NCCL_TITLES
    size, figures = low, []
    while size <= top:
        cells = ""
        for more in (1.0, 1.01):
            time = (12.0 + size / (busbw / factor) / 1000) * more
            text = f"{time:7.2f}" if time < 1000 else f"{time:7.1f}" if time < 100000 else f"{time:7.0f}"
            alg = size / float(text) / 1000
            figures.append(round(alg * factor, 2))
            cells += f"  {text}  {alg:6.2f}  {alg * factor:6.2f}       0"
        out.append(f"{size:12d}  {size // bits:12d}     float     sum      -1{cells}")
        size *= 2
    out += ["# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {sum(figures) / len(figures):g} ", "#"]
    out += ["# Collective test concluded: all_reduce_perf", "#", ""] if version else [""]
    return "\n".join(out)


IB_WAITING = """
************************************
* Waiting for client to connect... *
************************************
"""
IB_CUDA = """\
initializing CUDA
Listing all CUDA devices in system:
CUDA device 0: PCIe address is 18:00

Picking device No. 0
[pid = 4711, dev = 0] device name = [NVIDIA H100 80GB HBM3]
creating CUDA Ctx
making it the current CUDA Ctx
CUDA device integrated: 0
using DMA-BUF for GPU buffer address at 0x7f1200000000 aligned at 0x7f1200000000 with aligned size 131072
"""
IB_HEAD = """\
{line}
                    RDMA_Write BW Test
 Dual-port       : OFF		Device         : mlx5_0
 Number of qps   : 1		Transport type : IB
 Connection type : RC		Using SRQ      : OFF
 PCIe relax order: ON
 ibv_wr* API     : ON
 TX depth        : 128
 CQ Moderation   : 100
 Mtu             : 4096[B]
 Link type       : {layer}
{gid} Max inline data : 0[B]
 rdma_cm QPs	 : OFF
 Data ex. method : Ethernet
{line}
"""
IB_ADDRESS = " {side} address: LID {lid} QPN 0x0{number:03x} PSN 0x63ad7d RKey 0x17eedf VAddr 0x007f760c947000\n"
IB_GID = " GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:01:00:{number}\n"


def ib_write_bw(gbits: float, unit: str, sweep: bool, layer: str = "IB", gpu: bool = False) -> str:
    line, roce = "-" * 87, layer == "Ethernet"
    out = IB_CUDA if gpu else IB_WAITING
    out += IB_HEAD.format(line=line, layer=layer, gid=" GID index       : 3\n" if roce else "")
    for side, number in (("local", 12), ("remote", 21)):
        out += IB_ADDRESS.format(side=side, lid="0000" if roce else f"0x{number:02x}", number=number)
        out += IB_GID.format(number=number) if roce else ""
    out += f"{line}\n #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]\n"
    bits = 1e9 if unit == "Gb/sec" else 8 * 2**20
    for size in [2**k for k in range(1, 24)] if sweep else [65536]:
        rate = gbits * size / (size + 4096) * 1e9 / 8 / size / 1e6
        shown = round(rate, 6) * 1e6 * size * 8 / bits
        peak, average = f"{shown * 1.001:<7.2f}", f"{shown:<7.2f}"
        out += f" {size:<7d}    {5000:<10d}       {peak}            {average}\t\t     {rate:<7.6f}\n"
    return out + line + "\n"
