"""The nodes that the samples are of: names, memory, power, NVLinks and PCI ids are those of the catalogue's
gpus.csv.
"""

from __future__ import annotations

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
    links: int = 0
    speed: str = ""
    mig: bool = False
    fabric: bool = False
    chip: str = "Device"


SPECS = (
    Spec(
        "p100-sxm2",
        "Tesla P100-SXM2-16GB",
        16384,
        300,
        3,
        "15f9",
        4,
        "535.261.03",
        "12.2",
        4,
        "19.2",
        chip="GP100GL [Tesla P100 SXM2 16GB]",
    ),
    Spec(
        "v100-sxm2",
        "Tesla V100-SXM2-32GB",
        32768,
        300,
        3,
        "1db5",
        8,
        "550.163.01",
        "12.4",
        6,
        "25.781",
        chip="GV100GL [Tesla V100 SXM2 32GB]",
    ),
    Spec(
        "v100-pcie",
        "Tesla V100-PCIE-16GB",
        16384,
        250,
        3,
        "1db4",
        1,
        "470.256.02",
        "11.4",
        chip="GV100GL [Tesla V100 PCIe 16GB]",
    ),
    Spec("t4", "Tesla T4", 15360, 70, 3, "1eb8", 1, "570.133.20", "12.8", chip="TU104GL [Tesla T4]"),
    Spec(
        "a100-sxm4-40gb",
        "NVIDIA A100-SXM4-40GB",
        40960,
        400,
        4,
        "20b0",
        8,
        "535.230.02",
        "12.2",
        12,
        "25",
        True,
        chip="GA100 [A100 SXM4 40GB]",
    ),
    Spec(
        "a100-sxm4-80gb",
        "NVIDIA A100-SXM4-80GB",
        81920,
        400,
        4,
        "20b2",
        8,
        "550.144.03",
        "12.4",
        12,
        "25",
        True,
        chip="GA100 [A100 SXM4 80GB]",
    ),
    Spec(
        "a100-pcie",
        "NVIDIA A100 80GB PCIe",
        81920,
        300,
        4,
        "20b5",
        4,
        "560.35.03",
        "12.6",
        12,
        "25",
        True,
        chip="GA100 [A100 PCIe 80GB]",
    ),
    Spec("a30", "NVIDIA A30", 24576, 165, 4, "20b7", 2, "565.57.01", "12.7", mig=True, chip="GA100GL [A30 PCIe]"),
    Spec("a10", "NVIDIA A10", 23028, 150, 4, "2236", 1, "535.183.06", "12.2", chip="GA102GL [A10]"),
    Spec("a10g", "NVIDIA A10G", 23028, 300, 4, "2237", 4, "550.163.01", "12.4", chip="GA102GL [A10G]"),
    Spec("a40", "NVIDIA A40", 46068, 300, 4, "2235", 2, "570.172.08", "12.8", chip="GA102GL [A40]"),
    Spec("a6000", "NVIDIA RTX A6000", 49140, 300, 4, "2230", 2, "560.35.05", "12.6", chip="GA102GL [RTX A6000]"),
    Spec("l4", "NVIDIA L4", 23034, 72, 4, "27b8", 8, "580.95.05", "13.0", chip="AD104GL [L4]"),
    Spec("l40s", "NVIDIA L40S", 46068, 350, 4, "26b9", 8, "575.57.08", "12.9", chip="AD102GL [L40S]"),
    Spec(
        "rtx4090",
        "NVIDIA GeForce RTX 4090",
        24564,
        450,
        4,
        "2684",
        2,
        "580.82.09",
        "13.0",
        chip="AD102 [GeForce RTX 4090]",
    ),
    Spec(
        "h100-sxm5",
        "NVIDIA H100 80GB HBM3",
        81559,
        700,
        5,
        "2330",
        8,
        "580.95.05",
        "13.0",
        18,
        "26.562",
        True,
        True,
        "GH100 [H100 SXM5 80GB]",
    ),
    Spec(
        "h100-pcie",
        "NVIDIA H100 PCIe",
        81559,
        350,
        5,
        "2331",
        2,
        "570.158.01",
        "12.8",
        mig=True,
        chip="GH100 [H100 PCIe]",
    ),
    Spec(
        "h100-nvl",
        "NVIDIA H100 NVL",
        95830,
        400,
        5,
        "2321",
        2,
        "580.65.06",
        "13.0",
        12,
        "26.562",
        True,
        chip="GH100 [H100L 94GB]",
    ),
    Spec("h20", "NVIDIA H20", 97871, 500, 5, "2329", 8, "550.127.08", "12.4", 18, "26.562", True, True, "GH100 [H20]"),
    Spec(
        "h200-sxm",
        "NVIDIA H200",
        143771,
        700,
        5,
        "2335",
        8,
        "580.105.08",
        "13.0",
        18,
        "26.562",
        True,
        True,
        "GH100 [H200 SXM 141GB]",
    ),
    Spec(
        "h200-nvl",
        "NVIDIA H200 NVL",
        143771,
        600,
        5,
        "233b",
        4,
        "590.48.01",
        "13.1",
        18,
        "26.562",
        True,
        chip="GH100 [H200 NVL]",
    ),
    Spec(
        "gh200",
        "NVIDIA GH200 480GB",
        97871,
        900,
        5,
        "2342",
        1,
        "570.195.03",
        "12.8",
        mig=True,
        chip="GH100 [GH200 120GB / 480GB]",
    ),
    Spec(
        "b200", "NVIDIA B200", 183359, 1000, 5, "2901", 8, "610.43.02", "13.3", 18, "53.125", True, True, "GB100 [B200]"
    ),
    Spec(
        "b300",
        "NVIDIA B300 SXM6 AC",
        275040,
        1100,
        6,
        "3182",
        8,
        "590.48.01",
        "13.1",
        18,
        "53.125",
        True,
        True,
        "GB110 [B300 SXM6 AC]",
    ),
    Spec(
        "gb200",
        "NVIDIA GB200",
        189471,
        1200,
        5,
        "2941",
        4,
        "580.126.09",
        "13.0",
        18,
        "50",
        True,
        True,
        "GB100 [HGX GB200]",
    ),
    Spec(
        "gb300",
        "NVIDIA GB300",
        284208,
        1400,
        6,
        "31c2",
        4,
        "595.58.03",
        "13.2",
        18,
        "53.125",
        True,
        True,
        "GB110 [GB300]",
    ),
    Spec(
        "rtxpro6000",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        97887,
        600,
        5,
        "2bb5",
        8,
        "580.95.05",
        "13.0",
        mig=True,
        chip="GB202GL [RTX PRO 6000 Blackwell Server Edition]",
    ),
)
BY = {spec.slug: spec for spec in SPECS}


def bus(n: int) -> int:
    return 0x18 + 0x10 * n


def uuid(spec: Spec, n: int) -> str:
    return f"GPU-{int(spec.device, 16):04x}{n:04x}-5a1e-4000-8000-{bus(n):012x}"


def branch(spec: Spec) -> int:
    return int(spec.driver.split(".")[0])


def hbm(spec: Spec) -> bool:
    return any(
        word in spec.name
        for word in ("P100", "V100", "A100", "A30", "H100", "H20", "H200", "GH200", "B200", "B300", "GB")
    )


def ecc_on(spec: Spec) -> bool:
    return "GeForce" not in spec.name and "A6000" not in spec.name
