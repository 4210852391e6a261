"""What lspci, ibstat, nccl-tests and ib_write_bw print."""

from __future__ import annotations

from tests.unit.health.samples.machines import Spec, bus, hbm


def lspci(spec: Spec, form: str) -> str:
    out = []
    for n in range(spec.count):
        at = f"{'0000:' if 'D' in form else ''}{bus(n):02x}:00.0"
        if "v" in form:
            speed = {3: "8", 4: "16", 5: "32", 6: "64"}[spec.gen]
            idle = f"Speed {speed}GT/s (ok)" if hbm(spec) else "Speed 2.5GT/s (downgraded)"
            out += [
                f"{at} 3D controller: NVIDIA Corporation {spec.chip} (rev a1)",
                "\tSubsystem: NVIDIA Corporation Device 16c1",
                "\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+",
                "\tStatus: Cap+ 66MHz- UDF- FastB2B- ParErr- DEVSEL=fast >TAbort- <TAbort- <MAbort- >SERR- <PERR- INTx-",
                "\tNUMA node: 0",
                "\tCapabilities: [60] Express (v2) Endpoint, MSI 00",
                "\t\tDevSta:\tCorrErr- NonFatalErr- FatalErr- UnsupReq- AuxPwr- TransPend-",
                f"\t\tLnkCap:\tPort #0, Speed {speed}GT/s, Width x16, ASPM L1, Exit Latency L1 <4us",
                f"\t\tLnkSta:\t{idle}, Width x16 (ok)",
                "\t\t\tTrErr- Train- SlotClk+ DLActive- BWMgmt- ABWMgmt-",
                "\tKernel driver in use: nvidia",
                "\tKernel modules: nvidiafb, nouveau, nvidia_drm, nvidia",
                "",
            ]
        elif "nn" in form:
            out.append(f"{at} 3D controller [0302]: NVIDIA Corporation {spec.chip} [10de:{spec.device}] (rev a1)")
        elif "n" in form:
            out.append(f"{at} 0302: 10de:{spec.device} (rev a1)")
        else:
            out.append(f"{at} 3D controller: NVIDIA Corporation {spec.chip} (rev a1)")
    if spec.slug in ("h100-sxm5", "h200-sxm", "h20") and "v" not in form:
        for n in range(4):
            at = f"{'0000:' if 'D' in form else ''}{0xC4 + n:02x}:00.0"
            out.append(
                f"{at} 0680: 10de:22a3 (rev a1)"
                if "n" in form and "nn" not in form
                else f"{at} Bridge{' [0680]' if 'nn' in form else ''}: NVIDIA Corporation GH100 [H100 NVSwitch]"
                f"{' [10de:22a3]' if 'nn' in form else ''} (rev a1)"
            )
    return "\n".join(out) + "\n"


def ibstat(ports: int, ca: str, rate: int, layer: str, firmware: str) -> str:
    out = []
    for n in range(ports):
        guid = f"0x0010ff00fe0001{n:02x}"
        infiniband = layer == "InfiniBand"
        out += [
            f"CA 'mlx5_{n}'",
            f"\tCA type: {ca}",
            "\tNumber of ports: 1",
            f"\tFirmware version: {firmware}",
            "\tHardware version: 0",
            f"\tNode GUID: {guid}",
            f"\tSystem image GUID: {guid}",
            "\tPort 1:",
            "\t\tState: Active",
            "\t\tPhysical state: LinkUp",
            f"\t\tRate: {rate}",
            f"\t\tBase lid: {12 + n if infiniband else 0}",
            "\t\tLMC: 0",
            f"\t\tSM lid: {1 if infiniband else 0}",
            f"\t\tCapability mask: {'0xa751e848' if infiniband else '0x00010000'}",
            f"\t\tPort GUID: {guid}",
            f"\t\tLink layer: {layer}",
        ]
    return "\n".join(out) + "\n"


def nccl(spec: Spec, top: int, busbw: float, low: int = 8, version: str = "2.17.8", bits: int = 4) -> str:
    """busbw GB/s at the largest size; smaller sizes take a fixed time more."""
    factor = 2 * (spec.count - 1) / spec.count
    out = (
        [
            f"# nccl-tests version {version} nccl-headers=22907 nccl-library=22907",
            "# Collective test starting: all_reduce_perf",
        ]
        if version
        else []
    )
    out += [
        f"# nThread 1 nGpus {spec.count} minBytes {low} maxBytes {top} step: 2(factor) warmup iters: 5 iters: 20 agg "
        f"iters: 1 validation: 1 graph: 0",
        "#",
        "# Using devices",
    ]
    out += [
        f"#  Rank {n:2d} Group  0 Pid  81234 on     node01 device {n:2d} [0000:{bus(n):02x}:00] {spec.name}"
        for n in range(spec.count)
    ]
    out += [
        "#",
        "#                                                              out-of-place                       in-place  "
        "        ",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
        "#wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)    "
        "   ",
    ]
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


def ib_write_bw(gbits: float, unit: str, sweep: bool, layer: str = "IB", gpu: bool = False) -> str:
    line = "-" * 87
    out = (
        [
            "",
            "************************************",
            "* Waiting for client to connect... *",
            "************************************",
        ]
        if not gpu
        else [
            "initializing CUDA",
            "Listing all CUDA devices in system:",
            "CUDA device 0: PCIe address is 18:00",
            "",
            "Picking device No. 0",
            "[pid = 4711, dev = 0] device name = [NVIDIA H100 80GB HBM3]",
            "creating CUDA Ctx",
            "making it the current CUDA Ctx",
            "CUDA device integrated: 0",
            "using DMA-BUF for GPU buffer address at 0x7f1200000000 aligned at 0x7f1200000000 with aligned size 131072",
            "allocated GPU buffer of a 131072 address at 0x7f1200000000 for type CUDA_MEM_DEVICE",
        ][:-1]
    )
    out += [
        line,
        "                    RDMA_Write BW Test",
        " Dual-port       : OFF\t\tDevice         : mlx5_0",
        " Number of qps   : 1\t\tTransport type : IB",
        " Connection type : RC\t\tUsing SRQ      : OFF",
        " PCIe relax order: ON",
        " ibv_wr* API     : ON",
        " TX depth        : 128",
        " CQ Moderation   : 100",
        " Mtu             : 4096[B]",
        f" Link type       : {layer}",
    ]
    out += [" GID index       : 3"] if layer == "Ethernet" else []
    out += [" Max inline data : 0[B]", " rdma_cm QPs\t : OFF", " Data ex. method : Ethernet", line]
    for side, lid in (("local", 12), ("remote", 21)):
        out.append(
            f" {side} address: LID {'0000' if layer == 'Ethernet' else f'0x{lid:02x}'} QPN 0x0{lid:03x} PSN 0x63ad7d RKey "
            f"0x17eedf VAddr 0x007f760c947000"
        )
        out += [f" GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:01:00:{lid}"] if layer == "Ethernet" else []
    out += [line, f" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]"]
    bits = 1e9 if unit == "Gb/sec" else 8 * 2**20
    for size in [2**k for k in range(1, 24)] if sweep else [65536]:
        figure = gbits * size / (size + 4096)
        rate = figure * 1e9 / 8 / size / 1e6
        shown = round(rate, 6) * 1e6 * size * 8 / bits
        out.append(
            f" {size:<7d}    {5000:<10d}       {shown * 1.001:<7.2f}            {shown:<7.2f}\t\t     {rate:<7.6f}"
        )
    return "\n".join([*out, line, ""])
