"""The nodes that the samples are of: names, memory, power, NVLinks and PCI ids are those of the catalogue's
gpus.csv.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Spec(NamedTuple):
    """One node: the slug in file names, the product's name, MiB, W, PCIe generation, device id, GPUs, driver, CUDA,
    NVLinks of a GPU, GB/s of each.
    """

    slug: str
    name: str
    mib: int
    watt: int
    gen: int
    device: str
    count: int
    driver: str
    cuda: str
    links: int
    speed: str
    mig: bool
    fabric: bool
    chip: str


# has: m(ig), f(abric of NVSwitches)
NODES = """
slug           MiB    W    gen id   GPUs driver     CUDA links GB/s   has name
p100-sxm2      16384  300  3   15f9 4    535.261.03 12.2 4     19.2   -   Tesla P100-SXM2-16GB
v100-sxm2      32768  300  3   1db5 8    550.163.01 12.4 6     25.781 -   Tesla V100-SXM2-32GB
v100-pcie      16384  250  3   1db4 1    470.256.02 11.4 0     -      -   Tesla V100-PCIE-16GB
t4             15360  70   3   1eb8 1    570.133.20 12.8 0     -      -   Tesla T4
a100-sxm4-40gb 40960  400  4   20b0 8    535.230.02 12.2 12    25     m   NVIDIA A100-SXM4-40GB
a100-sxm4-80gb 81920  400  4   20b2 8    550.144.03 12.4 12    25     m   NVIDIA A100-SXM4-80GB
a100-pcie      81920  300  4   20b5 4    560.35.03  12.6 12    25     m   NVIDIA A100 80GB PCIe
a30            24576  165  4   20b7 2    565.57.01  12.7 0     -      m   NVIDIA A30
a10            23028  150  4   2236 1    535.183.06 12.2 0     -      -   NVIDIA A10
a10g           23028  300  4   2237 4    550.163.01 12.4 0     -      -   NVIDIA A10G
a40            46068  300  4   2235 2    570.172.08 12.8 0     -      -   NVIDIA A40
a6000          49140  300  4   2230 2    560.35.05  12.6 0     -      -   NVIDIA RTX A6000
l4             23034  72   4   27b8 8    580.95.05  13.0 0     -      -   NVIDIA L4
l40s           46068  350  4   26b9 8    575.57.08  12.9 0     -      -   NVIDIA L40S
rtx4090        24564  450  4   2684 2    580.82.09  13.0 0     -      -   NVIDIA GeForce RTX 4090
h100-sxm5      81559  700  5   2330 8    580.95.05  13.0 18    26.562 mf  NVIDIA H100 80GB HBM3
h100-pcie      81559  350  5   2331 2    570.158.01 12.8 0     -      m   NVIDIA H100 PCIe
h100-nvl       95830  400  5   2321 2    580.65.06  13.0 12    26.562 m   NVIDIA H100 NVL
h20            97871  500  5   2329 8    550.127.08 12.4 18    26.562 mf  NVIDIA H20
h200-sxm       143771 700  5   2335 8    580.105.08 13.0 18    26.562 mf  NVIDIA H200
h200-nvl       143771 600  5   233b 4    590.48.01  13.1 18    26.562 m   NVIDIA H200 NVL
gh200          97871  900  5   2342 1    570.195.03 12.8 0     -      m   NVIDIA GH200 480GB
b200           183359 1000 5   2901 8    610.43.02  13.3 18    53.125 mf  NVIDIA B200
b300           275040 1100 6   3182 8    590.48.01  13.1 18    53.125 mf  NVIDIA B300 SXM6 AC
gb200          189471 1200 5   2941 4    580.126.09 13.0 18    50     mf  NVIDIA GB200
gb300          284208 1400 6   31c2 4    595.58.03  13.2 18    53.125 mf  NVIDIA GB300
rtxpro6000     97887  600  5   2bb5 8    580.95.05  13.0 0     -      m   NVIDIA RTX PRO 6000 Blackwell Server Edition
"""
# lspci's names of the chips
CHIPS = """
p100-sxm2       GP100GL [Tesla P100 SXM2 16GB]
v100-sxm2       GV100GL [Tesla V100 SXM2 32GB]
v100-pcie       GV100GL [Tesla V100 PCIe 16GB]
t4              TU104GL [Tesla T4]
a100-sxm4-40gb  GA100 [A100 SXM4 40GB]
a100-sxm4-80gb  GA100 [A100 SXM4 80GB]
a100-pcie       GA100 [A100 PCIe 80GB]
a30             GA100GL [A30 PCIe]
a10             GA102GL [A10]
a10g            GA102GL [A10G]
a40             GA102GL [A40]
a6000           GA102GL [RTX A6000]
l4              AD104GL [L4]
l40s            AD102GL [L40S]
rtx4090         AD102 [GeForce RTX 4090]
h100-sxm5       GH100 [H100 SXM5 80GB]
h100-pcie       GH100 [H100 PCIe]
h100-nvl        GH100 [H100L 94GB]
h20             GH100 [H20]
h200-sxm        GH100 [H200 SXM 141GB]
h200-nvl        GH100 [H200 NVL]
gh200           GH100 [GH200 120GB / 480GB]
b200            GB100 [B200]
b300            GB110 [B300 SXM6 AC]
gb200           GB100 [HGX GB200]
gb300           GB110 [GB300]
rtxpro6000      GB202GL [RTX PRO 6000 Blackwell Server Edition]
"""


def _specs() -> Iterator[Spec]:
    chips = dict(line.split(maxsplit=1) for line in CHIPS.strip().splitlines())
    for line in NODES.strip().splitlines()[1:]:
        slug, mib, watt, gen, device, count, driver, cuda, links, speed, has, name = line.split(maxsplit=11)
        yield Spec(
            slug=slug,
            name=name,
            mib=int(mib),
            watt=int(watt),
            gen=int(gen),
            device=device,
            count=int(count),
            driver=driver,
            cuda=cuda,
            links=int(links),
            speed=speed,
            mig="m" in has,
            fabric="f" in has,
            chip=chips[slug],
        )


SPECS = tuple(_specs())
HBM = ("P100", "V100", "A100", "A30", "H100", "H20", "H200", "GH200", "B200", "B300", "GB")
BY = {spec.slug: spec for spec in SPECS}


def bus(n: int) -> int:
    return 0x18 + 0x10 * n


def uuid(spec: Spec, n: int) -> str:
    return f"GPU-{int(spec.device, 16):04x}{n:04x}-5a1e-4000-8000-{bus(n):012x}"


def branch(spec: Spec) -> int:
    return int(spec.driver.split(".")[0])


def hbm(spec: Spec) -> bool:
    return any(word in spec.name for word in HBM)


def ecc_on(spec: Spec) -> bool:
    return "GeForce" not in spec.name and "A6000" not in spec.name
