"""Writes the healthy samples beside this file: `python tests/unit/healthy/write.py`. They are written after the tools' formats,
not captured.

Names, memory, power, NVLinks and PCI ids are those of the catalogue's gpus.csv; identities, temperatures and bandwidths are made
up.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

FOLDER = Path(__file__).parent


class Spec(NamedTuple):
    """One node: the slug in file names, the product's name, MiB, W, PCIe generation, device id, GPUs, driver, CUDA, NVLinks of a
    GPU, GB/s of each."""

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
    Spec("p100-sxm2", "Tesla P100-SXM2-16GB", 16384, 300, 3, "15f9", 4, "535.261.03", "12.2", 4, "19.2",
        chip="GP100GL [Tesla P100 SXM2 16GB]"),
    Spec("v100-sxm2", "Tesla V100-SXM2-32GB", 32768, 300, 3, "1db5", 8, "550.163.01", "12.4", 6, "25.781",
        chip="GV100GL [Tesla V100 SXM2 32GB]"),
    Spec("v100-pcie", "Tesla V100-PCIE-16GB", 16384, 250, 3, "1db4", 1, "470.256.02", "11.4",
        chip="GV100GL [Tesla V100 PCIe 16GB]"),
    Spec("t4", "Tesla T4", 15360, 70, 3, "1eb8", 1, "570.133.20", "12.8", chip="TU104GL [Tesla T4]"),
    Spec("a100-sxm4-40gb", "NVIDIA A100-SXM4-40GB", 40960, 400, 4, "20b0", 8, "535.230.02", "12.2", 12, "25", True,
        chip="GA100 [A100 SXM4 40GB]"),
    Spec("a100-sxm4-80gb", "NVIDIA A100-SXM4-80GB", 81920, 400, 4, "20b2", 8, "550.144.03", "12.4", 12, "25", True,
        chip="GA100 [A100 SXM4 80GB]"),
    Spec("a100-pcie", "NVIDIA A100 80GB PCIe", 81920, 300, 4, "20b5", 4, "560.35.03", "12.6", 12, "25", True,
        chip="GA100 [A100 PCIe 80GB]"),
    Spec("a30", "NVIDIA A30", 24576, 165, 4, "20b7", 2, "565.57.01", "12.7", mig=True, chip="GA100GL [A30 PCIe]"),
    Spec("a10", "NVIDIA A10", 23028, 150, 4, "2236", 1, "535.183.06", "12.2", chip="GA102GL [A10]"),
    Spec("a10g", "NVIDIA A10G", 23028, 300, 4, "2237", 4, "550.163.01", "12.4", chip="GA102GL [A10G]"),
    Spec("a40", "NVIDIA A40", 46068, 300, 4, "2235", 2, "570.172.08", "12.8", chip="GA102GL [A40]"),
    Spec("a6000", "NVIDIA RTX A6000", 49140, 300, 4, "2230", 2, "560.35.05", "12.6", chip="GA102GL [RTX A6000]"),
    Spec("l4", "NVIDIA L4", 23034, 72, 4, "27b8", 8, "580.95.05", "13.0", chip="AD104GL [L4]"),
    Spec("l40s", "NVIDIA L40S", 46068, 350, 4, "26b9", 8, "575.57.08", "12.9", chip="AD102GL [L40S]"),
    Spec("rtx4090", "NVIDIA GeForce RTX 4090", 24564, 450, 4, "2684", 2, "580.82.09", "13.0", chip="AD102 [GeForce RTX 4090]"),
    Spec("h100-sxm5", "NVIDIA H100 80GB HBM3", 81559, 700, 5, "2330", 8, "580.95.05", "13.0", 18, "26.562", True, True,
        "GH100 [H100 SXM5 80GB]"),
    Spec("h100-pcie", "NVIDIA H100 PCIe", 81559, 350, 5, "2331", 2, "570.158.01", "12.8", mig=True, chip="GH100 [H100 PCIe]"),
    Spec("h100-nvl", "NVIDIA H100 NVL", 95830, 400, 5, "2321", 2, "580.65.06", "13.0", 12, "26.562", True,
        chip="GH100 [H100L 94GB]"),
    Spec("h20", "NVIDIA H20", 97871, 500, 5, "2329", 8, "550.127.08", "12.4", 18, "26.562", True, True, "GH100 [H20]"),
    Spec("h200-sxm", "NVIDIA H200", 143771, 700, 5, "2335", 8, "580.105.08", "13.0", 18, "26.562", True, True,
        "GH100 [H200 SXM 141GB]"),
    Spec("h200-nvl", "NVIDIA H200 NVL", 143771, 600, 5, "233b", 4, "590.48.01", "13.1", 18, "26.562", True,
        chip="GH100 [H200 NVL]"),
    Spec("gh200", "NVIDIA GH200 480GB", 97871, 900, 5, "2342", 1, "570.195.03", "12.8", mig=True,
        chip="GH100 [GH200 120GB / 480GB]"),
    Spec("b200", "NVIDIA B200", 183359, 1000, 5, "2901", 8, "610.43.02", "13.3", 18, "53.125", True, True, "GB100 [B200]"),
    Spec("b300", "NVIDIA B300 SXM6 AC", 275040, 1100, 6, "3182", 8, "590.48.01", "13.1", 18, "53.125", True, True,
        "GB110 [B300 SXM6 AC]"),
    Spec("gb200", "NVIDIA GB200", 189471, 1200, 5, "2941", 4, "580.126.09", "13.0", 18, "50", True, True, "GB100 [HGX GB200]"),
    Spec("gb300", "NVIDIA GB300", 284208, 1400, 6, "31c2", 4, "595.58.03", "13.2", 18, "53.125", True, True, "GB110 [GB300]"),
    Spec("rtxpro6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, 600, 5, "2bb5", 8, "580.95.05", "13.0", mig=True,
         chip="GB202GL [RTX PRO 6000 Blackwell Server Edition]"),
)  # fmt: skip
BY = {spec.slug: spec for spec in SPECS}


def bus(n: int) -> int:
    return 0x18 + 0x10 * n


def uuid(spec: Spec, n: int) -> str:
    return f"GPU-{int(spec.device, 16):04x}{n:04x}-5a1e-4000-8000-{bus(n):012x}"


def branch(spec: Spec) -> int:
    return int(spec.driver.split(".")[0])


def hbm(spec: Spec) -> bool:
    return any(
        word in spec.name for word in ("P100", "V100", "A100", "A30", "H100", "H20", "H200", "GH200", "B200", "B300", "GB")
    )


def ecc_on(spec: Spec) -> bool:
    return "GeForce" not in spec.name and "A6000" not in spec.name


def table(spec: Spec) -> str:
    a, b, c = (41, 24, 22) if branch(spec) >= 545 else (41, 22, 22) if branch(spec) >= 530 else (31, 22, 22)
    rule = f"+{'-' * a}+{'-' * b}+{'-' * c}+"
    words = ("KMD", "CUDA UMD") if branch(spec) >= 600 else ("Driver", "CUDA")
    inner = a + b + c + 2
    head = f"| NVIDIA-SMI {spec.driver:<21}  {words[0]} Version: {spec.driver:<14} {words[1]} Version: {spec.cuda:<5}"
    if a == 31:
        head = f"| NVIDIA-SMI {spec.driver:<12} {words[0]} Version: {spec.driver:<12} {words[1]} Version: {spec.cuda:<5}"
    top = f"+{'-' * inner}+"
    out = [
        "Sat Nov 21 09:14:07 2026       ",
        top,
        head.ljust(inner + 1) + "|",
        rule if branch(spec) >= 570 else "|" + rule[1:-1] + "|",
    ]
    if a == 31:
        out += ["| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |",
                "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |"]  # fmt: skip
    else:
        out += ["| GPU  Name                 Persistence-M |" + " Bus-Id        Disp.A ".rjust(b) + "| Volatile Uncorr. ECC |",
                "| Fan  Temp   Perf          Pwr:Usage/Cap |" + "         Memory-Usage ".rjust(b) + "| GPU-Util  Compute M. |"]  # fmt: skip
    out += [f"|{' ' * a}|{' ' * b}|{'MIG M. |':>{c + 1}}", f"|{'=' * a}+{'=' * b}+{'=' * c}|"]
    for n in range(spec.count):
        short = spec.name if len(spec.name) <= a - 12 else spec.name[: a - 15] + "..."
        ecc = "0" if ecc_on(spec) else "Off"
        fan = "N/A" if hbm(spec) or "RTX" not in spec.name else "30%"
        use = f"{fan:>4}   {27 + n}C    {'P0' if hbm(spec) else 'P8'}"
        power = f"{spec.watt // 10 + n}W / {spec.watt}W"
        memory = f"{n % 2}MiB / {spec.mib}MiB "
        out.append(f"|{f'   {n}  {short}'.ljust(a - 5)} On  |{f'00000000:{bus(n):02X}:00.0 Off '.rjust(b)}|{ecc + ' |':>{c + 1}}")
        out.append(f"|{use.ljust(a - len(power) - 1)}{power} |{memory.rjust(b)}|{'0%      Default |':>{c + 1}}")
        out.append(f"|{' ' * a}|{' ' * b}|{('Disabled' if spec.mig else 'N/A') + ' |':>{c + 1}}")
        out.append(rule)
    fill = inner - 2
    out += [" " * (inner + 2), top, f"| {'Processes:'.ljust(fill)} |",
        f"| {' GPU   GI   CI        PID   Type   Process name'.ljust(fill - 10)}GPU Memory |",
            f"| {'       ID   ID'.ljust(fill - 10)}Usage      |", f"|{'=' * inner}|",
            f"| {' No running processes found'.ljust(fill)} |", top]  # fmt: skip
    return "\n".join(out) + "\n"


NA = "N/A"


def sections(spec: Spec, n: int) -> list:
    """One GPU as nested (key, XML tag, value or list), in the order of nvidia-smi -q."""
    old, v = "V100" in spec.name or "P100" in spec.name, branch(spec)
    on = ecc_on(spec)
    reason = "Clocks Event Reasons" if v >= 535 else "Clocks Throttle Reasons"
    tag = "clocks_event_reason" if v >= 535 else "clocks_throttle_reason"

    def off(name: str, xml: str, value: str = "Not Active") -> tuple:
        return (name, f"{tag}_{xml}", value)

    number = "0" if on else NA
    if old:
        parts = (("Device Memory", "device_memory"), ("Register File", "register_file"), ("L1 Cache", "l1_cache"), ("L2 Cache",
            "l2_cache"),
                 ("Texture Memory", "texture_memory"), ("Texture Shared", "texture_shm"), ("CBU", "cbu"), ("Total",
                 "total"))  # fmt: skip
        counts = [(f"{title} Bit", f"{title.lower()}_bit",
            [(k, x, NA if k in ("Texture Memory", "Texture Shared", "CBU") else number)
                  for k, x in parts]) for title in ("Single", "Double")]  # fmt: skip
    elif v >= 550 and hbm(spec):
        counts = [("SRAM Correctable", "sram_correctable", number), ("SRAM Uncorrectable Parity", "sram_uncorrectable_parity",
            number),
                  ("SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", number), ("DRAM Correctable", "dram_correctable",
                  number),
                  ("DRAM Uncorrectable", "dram_uncorrectable", number)]  # fmt: skip
    else:
        counts = [("SRAM Correctable", "sram_correctable", number), ("SRAM Uncorrectable", "sram_uncorrectable", number),
                  ("DRAM Correctable", "dram_correctable", number), ("DRAM Uncorrectable", "dram_uncorrectable",
                  number)]  # fmt: skip
    retires = old or spec.name == "Tesla T4"
    remap = NA if retires or not on else [("Correctable Error", "remapped_row_corr", "0"), ("Uncorrectable Error",
        "remapped_row_unc", "0"),
        ("Pending", "remapped_row_pending", "No"), ("Remapping Failure Occurred", "remapped_row_failure", "No"),
        ("Bank Remap Availability Histogram", "row_remapper_histogram", [("Max", "row_remapper_histogram_max", "640 bank(s)"),
         ("High", "row_remapper_histogram_high", "0 bank(s)"), ("None", "row_remapper_histogram_none",
         "0 bank(s)")])]  # fmt: skip
    new_limits = v >= 550 and hbm(spec) and not old
    temperature = [("GPU Current Temp", "gpu_temp", f"{28 + n} C")]
    if new_limits:
        temperature += [("GPU T.Limit Temp", "gpu_temp_tlimit", f"{57 - n} C"), ("GPU Shutdown T.Limit Temp",
            "gpu_temp_max_tlimit_threshold", "-8 C"),
                        ("GPU Slowdown T.Limit Temp", "gpu_temp_slow_tlimit_threshold", "-2 C"),
                        ("GPU Max Operating T.Limit Temp", "gpu_temp_max_gpu_tlimit_threshold", "0 C")]  # fmt: skip
    else:
        temperature += [("GPU Shutdown Temp", "gpu_temp_max_threshold", "92 C"), ("GPU Slowdown Temp", "gpu_temp_slow_threshold",
            "89 C"),
                        ("GPU Max Operating Temp", "gpu_temp_max_gpu_threshold", "85 C")]  # fmt: skip
    temperature += [("GPU Target Temperature", "gpu_target_temperature", NA),
                    ("Memory Current Temp", "memory_temp", f"{36 + n} C" if hbm(spec) else NA),
                    ("Memory Max Operating Temp", "gpu_temp_max_mem_threshold", "95 C" if hbm(spec) and not new_limits
                    else NA)]  # fmt: skip
    draw = f"{spec.watt / 10 + n:.2f} W"
    limit = f"{spec.watt:.2f} W"
    if v >= 535:
        first = [("Average Power Draw", "average_power_draw", draw), ("Instantaneous Power Draw", "instant_power_draw",
            draw)] if v >= 570 else [
            ("Power Draw", "power_draw", draw)]  # fmt: skip
        power = ("GPU Power Readings", "gpu_power_readings", [*first, ("Current Power Limit", "current_power_limit", limit),
                 ("Requested Power Limit", "requested_power_limit", limit), ("Default Power Limit", "default_power_limit", limit),
                 ("Min Power Limit", "min_power_limit", "60.00 W"), ("Max Power Limit", "max_power_limit", limit)])  # fmt: skip
    else:
        power = ("Power Readings", "power_readings", [("Power Management", "power_management", "Supported"),
            ("Power Draw", "power_draw", draw),
                 ("Power Limit", "power_limit", limit), ("Default Power Limit", "default_power_limit", limit),
                 ("Enforced Power Limit", "enforced_power_limit", limit)])  # fmt: skip
    fabric = ("Completed", "Success") if spec.fabric else (NA, NA)
    reset = "Requested functionality has been deprecated" if v >= 570 else "No"
    mig = "Disabled" if spec.mig else NA
    used = f"{n} MiB"
    kept = max(1, spec.mib // 150)
    out = [
        ("Product Name", "product_name", spec.name), ("Product Brand", "product_brand", spec.name.split()[0]),
        ("Persistence Mode", "persistence_mode", "Enabled"), ("MIG Mode", "mig_mode",
        [("Current", "current_mig", mig), ("Pending", "pending_mig", mig)]),
        ("Serial Number", "serial", f"16500000000{n:02d}"), ("GPU UUID", "uuid", uuid(spec, n)), ("Minor Number", "minor_number",
        str(n)),
        ("VBIOS Version", "vbios_version", "96.00.89.00.01"),
        ("GPU Reset Status", "gpu_reset_status", [("Reset Required", "reset_required", reset),
            ("Drain and Reset Recommended", "drain_and_reset_recommended", reset)])]  # fmt: skip
    if v >= 565:
        out.append(("GPU Recovery Action", "gpu_recovery_action", "None"))
    out += [
        ("PCI", "pci", [("Bus", "pci_bus", f"0x{bus(n):02X}"), ("Device Id", "pci_device_id", f"0x{spec.device.upper()}10DE"),
            ("Bus Id", "pci_bus_id", f"00000000:{bus(n):02X}:00.0"),
            ("GPU Link Info", "pci_gpu_link_info", [
                ("PCIe Generation", "pcie_gen", [("Max", "max_link_gen", str(spec.gen)),
                ("Current", "current_link_gen", str(spec.gen if hbm(spec) else 1)),
                                                 ("Host Max", "max_host_link_gen", str(spec.gen))]),
                ("Link Width", "link_widths", [("Max", "max_link_width", "16x"), ("Current", "current_link_width", "16x")])]),
            ("Replays Since Reset", "replay_counter", "0"), ("Tx Throughput", "tx_util", "567 KB/s")]),
        ("Fan Speed", "fan_speed", NA if hbm(spec) else "30 %"), ("Performance State", "performance_state",
        "P0" if hbm(spec) else "P8"),
        (reason, reason.lower().replace(" ", "_"), [off("Idle", "gpu_idle", "Active"),
        off("Applications Clocks Setting", "applications_clocks_setting"),
            off("SW Power Cap", "sw_power_cap"), off("HW Slowdown", "hw_slowdown"), off("HW Thermal Slowdown",
            "hw_thermal_slowdown"),
            off("HW Power Brake Slowdown", "hw_power_brake_slowdown"), off("Sync Boost", "sync_boost"),
            off("SW Thermal Slowdown", "sw_thermal_slowdown"), off("Display Clock Setting", "display_clocks_setting")]),
        ("FB Memory Usage", "fb_memory_usage", [("Total", "total", f"{spec.mib} MiB"), ("Reserved", "reserved", f"{kept} MiB"),
        ("Used", "used", used),
            ("Free", "free", f"{spec.mib - kept - n} MiB")]),
        ("Compute Mode", "compute_mode", "Default"),
        ("Utilization", "utilization", [("Gpu", "gpu_util", "0 %"), ("Memory", "memory_util", "0 %"), ("JPEG", "jpeg_util", NA)]),
        ("ECC Mode", "ecc_mode", [("Current", "current_ecc", "Enabled" if on else "Disabled"), ("Pending", "pending_ecc",
        "Enabled" if on else "Disabled")]),
        ("ECC Errors", "ecc_errors", [("Volatile", "volatile", counts), ("Aggregate", "aggregate", counts)]),
        ("Retired Pages", "retired_pages",
        [("Single Bit ECC", "multiple_single_bit_retirement/retired_count", "0" if retires else NA),
            ("Double Bit ECC", "double_bit_retirement/retired_count", "0" if retires else NA),
            ("Pending Page Blacklist", "pending_retirement", "No" if retires else NA)]),
        ("Remapped Rows", "remapped_rows", remap), ("Temperature", "temperature", temperature), power,
        ("Clocks", "clocks", [("Graphics", "graphics_clock", "345 MHz"), ("SM", "sm_clock", "345 MHz"), ("Memory", "mem_clock",
        "2619 MHz")]),
        ("Applications Clocks", "applications_clocks", [("Graphics", "graphics_clock", "1980 MHz" if hbm(spec) else NA)]),
        ("Max Clocks", "max_clocks", [("Graphics", "graphics_clock", "1980 MHz"), ("SM", "sm_clock", "1980 MHz"), ("Memory",
        "mem_clock", "2619 MHz")]),
    ]  # fmt: skip
    if v >= 535:
        out.append(("Fabric", "fabric", [("State", "state", fabric[0]), ("Status", "status", fabric[1])]))
    return [*out, ("Processes", "processes", "None")]


def query(spec: Spec) -> str:
    cuda = [("KMD Version", spec.driver), ("CUDA UMD Version", spec.cuda)] if branch(spec) >= 600 else [("Driver Version",
        spec.driver),
            ("CUDA Version", spec.cuda)]  # fmt: skip
    out = ["", "==============NVSMI LOG==============", ""]
    out += [f"{key:<41} : {value}" for key, value in [("Timestamp", "Sat Nov 21 09:14:07 2026"), *cuda]] + [""]
    out += [f"{'Attached GPUs':<41} : {spec.count}"]

    def walk(pairs: list, depth: int) -> None:
        for key, _, value in pairs:
            pad = " " * 4 * depth
            if isinstance(value, list):
                out.append(pad + key)
                walk(value, depth + 1)
            else:
                out.append(f"{pad}{key:<{41 - 4 * depth}} : {value}")

    for n in range(spec.count):
        out.append(f"GPU 00000000:{bus(n):02X}:00.0")
        walk(sections(spec, n), 1)
        out.append("")
    return "\n".join(out) + "\n"


def xml(spec: Spec) -> str:
    version = "v13" if branch(spec) >= 595 else "v12" if branch(spec) >= 525 else "v11"
    out = ['<?xml version="1.0" ?>', f'<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_{version}.dtd">', "<nvidia_smi_log>",
           "\t<timestamp>Sat Nov 21 09:14:07 2026</timestamp>", f"\t<driver_version>{spec.driver}</driver_version>",
           f"\t<cuda_version>{spec.cuda}</cuda_version>", f"\t<attached_gpus>{spec.count}</attached_gpus>"]  # fmt: skip

    def walk(pairs: list, depth: int) -> None:
        for _, tag, value in pairs:
            pad = "\t" * depth
            outer, _, inner = tag.partition("/")
            if isinstance(value, list):
                out.append(f"{pad}<{tag}>")
                walk(value, depth + 1)
                out.append(f"{pad}</{tag}>")
            elif tag == "processes":
                out.append(f"{pad}<processes>")
                out.append(f"{pad}</processes>")
            elif inner:
                out.append(f"{pad}<{outer}>\n{pad}\t<{inner}>{value}</{inner}>\n{pad}</{outer}>")
            else:
                out.append(f"{pad}<{tag}>{escape(value)}</{tag}>")

    for n in range(spec.count):
        out.append(f'\t<gpu id="00000000:{bus(n):02X}:00.0">')
        walk(sections(spec, n), 2)
        out.append("\t</gpu>")
    return "\n".join([*out, "</nvidia_smi_log>"]) + "\n"


def csv(spec: Spec, header: bool, units: bool) -> str:
    fields = [("index", ""), ("name", ""), ("uuid", ""), ("pci.bus_id", ""), ("driver_version", ""), ("memory.total", "MiB"),
        ("memory.used", "MiB"),
              ("temperature.gpu", ""), ("power.draw", "W"), ("pstate", ""), ("clocks.sm", "MHz"), ("utilization.gpu", "%"),
              ("ecc.mode.current", ""), ("ecc.errors.uncorrected.volatile.total", ""), ("pcie.link.width.current", ""),
              ("pcie.link.width.max", ""),
              ("clocks_event_reasons.active", "")]  # fmt: skip
    if not header:
        fields = [field for field in fields if field[0] in ("index", "name", "driver_version", "memory.total")]
    out = [", ".join(f"{name} [{unit}]" if unit else name for name, unit in fields)] if header else []
    for n in range(spec.count):
        values = {"index": str(n), "name": spec.name, "uuid": uuid(spec, n), "pci.bus_id": f"00000000:{bus(n):02X}:00.0",
            "driver_version": spec.driver,
                  "memory.total": str(spec.mib), "memory.used": str(n), "temperature.gpu": str(28 + n),
                  "power.draw": f"{spec.watt / 10 + n:.2f}",
                  "pstate": "P0", "clocks.sm": "345", "utilization.gpu": "0", "ecc.mode.current": "Enabled" if ecc_on(spec)
                  else "Disabled",
                  "ecc.errors.uncorrected.volatile.total": "0" if ecc_on(spec) else "[N/A]", "pcie.link.width.current": "16",
                  "pcie.link.width.max": "16", "clocks_event_reasons.active": "0x0000000000000001"}  # fmt: skip
        out.append(", ".join(f"{values[name]} {unit}" if unit and units else values[name] for name, unit in fields))
    return "\n".join(out) + "\n"


def listing(spec: Spec) -> str:
    return "".join(f"GPU {n}: {spec.name} (UUID: {uuid(spec, n)})\n" for n in range(spec.count))


def nvlink(spec: Spec) -> str:
    return "".join(f"GPU {n}: {spec.name} (UUID: {uuid(spec, n)})\n" + "".join(f"\t Link {k}: {spec.speed} GB/s\n"
        for k in range(spec.links))
                   for n in range(spec.count))  # fmt: skip


def topo(spec: Spec) -> str:
    names = [f"GPU{n}" for n in range(spec.count)] + [f"NIC{n}" for n in range(spec.count)]
    rows = ["\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    for a in names:
        cells = []
        for b in names:
            same = a[3:] == b[3:]
            near = int(a[3:]) // 4 == int(b[3:]) // 4
            both = a[:3] == b[:3] == "GPU"
            cells.append(" X " if a == b else f"NV{spec.links}" if both else "PXB" if same else "NODE" if near else "SYS")
        rows.append(a + "\t" + "\t".join(cells) + ("\t0-55,112-167\t0\t\tN/A" if a.startswith("GPU") else ""))
    legend = ["", "Legend:", "", "  X    = Self",
        "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes",
              "  NODE = Connection traversing PCIe as well as the interconnect between host bridges",
              "  PHB  = Connection traversing a host bridge",
              "  PXB  = Connection traversing several PCIe bridges", "  PIX  = Connection traversing at most one PCIe bridge",
              "  NV#  = Connection traversing a bonded set of # NVLinks", "", "NIC Legend:", ""]  # fmt: skip
    return "\n".join(rows + legend + [f"  NIC{n}: mlx5_{n}" for n in range(spec.count)]) + "\n\n"


def lspci(spec: Spec, form: str) -> str:
    out = []
    for n in range(spec.count):
        at = f"{'0000:' if 'D' in form else ''}{bus(n):02x}:00.0"
        if "v" in form:
            speed = {3: "8", 4: "16", 5: "32", 6: "64"}[spec.gen]
            idle = f"Speed {speed}GT/s (ok)" if hbm(spec) else "Speed 2.5GT/s (downgraded)"
            out += [f"{at} 3D controller: NVIDIA Corporation {spec.chip} (rev a1)", "\tSubsystem: NVIDIA Corporation Device 16c1",
                    "\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+",
                    "\tStatus: Cap+ 66MHz- UDF- FastB2B- ParErr- DEVSEL=fast >TAbort- <TAbort- <MAbort- >SERR- <PERR- INTx-",
                    "\tNUMA node: 0", "\tCapabilities: [60] Express (v2) Endpoint, MSI 00",
                    "\t\tDevSta:\tCorrErr- NonFatalErr- FatalErr- UnsupReq- AuxPwr- TransPend-",
                    f"\t\tLnkCap:\tPort #0, Speed {speed}GT/s, Width x16, ASPM L1, Exit Latency L1 <4us",
                        f"\t\tLnkSta:\t{idle}, Width x16 (ok)",
                    "\t\t\tTrErr- Train- SlotClk+ DLActive- BWMgmt- ABWMgmt-", "\tKernel driver in use: nvidia",
                    "\tKernel modules: nvidiafb, nouveau, nvidia_drm, nvidia", ""]  # fmt: skip
        elif "nn" in form:
            out.append(f"{at} 3D controller [0302]: NVIDIA Corporation {spec.chip} [10de:{spec.device}] (rev a1)")
        elif "n" in form:
            out.append(f"{at} 0302: 10de:{spec.device} (rev a1)")
        else:
            out.append(f"{at} 3D controller: NVIDIA Corporation {spec.chip} (rev a1)")
    if spec.slug in ("h100-sxm5", "h200-sxm", "h20") and "v" not in form:
        for n in range(4):
            at = f"{'0000:' if 'D' in form else ''}{0xC4 + n:02x}:00.0"
            out.append(f"{at} 0680: 10de:22a3 (rev a1)" if "n" in form and "nn" not in form else
                       f"{at} Bridge{' [0680]' if 'nn' in form else ''}: NVIDIA Corporation GH100 [H100 NVSwitch]"
                       f"{' [10de:22a3]' if 'nn' in form else ''} (rev a1)")  # fmt: skip
    return "\n".join(out) + "\n"


def ibstat(ports: int, ca: str, rate: int, layer: str, firmware: str) -> str:
    out = []
    for n in range(ports):
        guid = f"0x0010ff00fe0001{n:02x}"
        infiniband = layer == "InfiniBand"
        out += [f"CA 'mlx5_{n}'", f"\tCA type: {ca}", "\tNumber of ports: 1", f"\tFirmware version: {firmware}",
            "\tHardware version: 0",
                f"\tNode GUID: {guid}", f"\tSystem image GUID: {guid}", "\tPort 1:", "\t\tState: Active",
                    "\t\tPhysical state: LinkUp",
                f"\t\tRate: {rate}", f"\t\tBase lid: {12 + n if infiniband else 0}", "\t\tLMC: 0",
                    f"\t\tSM lid: {1 if infiniband else 0}",
                f"\t\tCapability mask: {'0xa751e848' if infiniband else '0x00010000'}", f"\t\tPort GUID: {guid}",
                    f"\t\tLink layer: {layer}"]  # fmt: skip
    return "\n".join(out) + "\n"


def nccl(spec: Spec, top: int, busbw: float, low: int = 8, version: str = "2.17.8", bits: int = 4) -> str:
    """busbw GB/s at the largest size; smaller sizes take a fixed time more."""
    factor = 2 * (spec.count - 1) / spec.count
    out = (
        [f"# nccl-tests version {version} nccl-headers=22907 nccl-library=22907", "# Collective test starting: all_reduce_perf"]
        if version
        else []
    )
    out += [f"# nThread 1 nGpus {spec.count} minBytes {low} maxBytes {top} step: 2(factor) warmup iters: 5 iters: 20 agg "
            f"iters: 1 validation: 1 graph: 0",
            "#", "# Using devices"]  # fmt: skip
    out += [
        f"#  Rank {n:2d} Group  0 Pid  81234 on     node01 device {n:2d} [0000:{bus(n):02x}:00] {spec.name}"
        for n in range(spec.count)
    ]
    out += ["#", "#                                                              out-of-place                       in-place  "
                 "        ",
            "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
            "#wrong",
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)    "
            "   "]  # fmt: skip
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
    out = ["", "************************************", "* Waiting for client to connect... *",
        "************************************"] if not gpu else [
        "initializing CUDA", "Listing all CUDA devices in system:", "CUDA device 0: PCIe address is 18:00", "",
        "Picking device No. 0",
        "[pid = 4711, dev = 0] device name = [NVIDIA H100 80GB HBM3]", "creating CUDA Ctx", "making it the current CUDA Ctx",
        "CUDA device integrated: 0", "using DMA-BUF for GPU buffer address at 0x7f1200000000 aligned at 0x7f1200000000 with "
                                     "aligned size 131072",
        "allocated GPU buffer of a 131072 address at 0x7f1200000000 for type CUDA_MEM_DEVICE"][:-1]  # fmt: skip
    out += [line, "                    RDMA_Write BW Test", " Dual-port       : OFF\t\tDevice         : mlx5_0",
        " Number of qps   : 1\t\tTransport type : IB",
            " Connection type : RC\t\tUsing SRQ      : OFF", " PCIe relax order: ON", " ibv_wr* API     : ON",
            " TX depth        : 128",
            " CQ Moderation   : 100", " Mtu             : 4096[B]", f" Link type       : {layer}"]  # fmt: skip
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
        out.append(f" {size:<7d}    {5000:<10d}       {shown * 1.001:<7.2f}            {shown:<7.2f}\t\t     {rate:<7.6f}")
    return "\n".join([*out, line, ""])


def diag(spec: Spec, version: str, level: int) -> str:
    rule = f"+{'-' * 27}+{'-' * 48}+"

    def row(name: str, value: str) -> str:
        return f"| {name:<25} | {value:<46} |"

    def section(name: str, edge: str = "+") -> str:
        return f"{edge}-----  {name}  {'-' * (18 - len(name))}+{'-' * 48}{edge}"

    ids = ", ".join([spec.device] * spec.count) if version >= "4" else ",".join([spec.device] * spec.count)
    out = ["Successfully ran diagnostic for group.", rule, row("Diagnostic", "Result"), f"+{'=' * 27}+{'=' * 48}+",
        section("Metadata", "|"),
           row("DCGM Version", version), row("Driver Version Detected", spec.driver)]  # fmt: skip
    out += [row("GPU Device IDs Detected" if not n else "", ids[n : n + 46]) for n in range(0, len(ids), 46)]
    out.append(section("Deployment", "|"))

    def test(name: str) -> list[str]:
        if version < "4":
            return [row(name, "Pass - All")]
        return [row(name, "Pass"), *(row("", f"GPU{n}: Pass") for n in range(spec.count))]

    if version < "4":
        out += [row(name, "Pass") for name in ("Denylist", "NVML Library", "CUDA Main Library", "Permissions and OS Blocks",
            "Persistence Mode",
                                               "Environment Variables", "Page Retirement/Row Remap", "Graphics Processes",
                                               "Inforom")]  # fmt: skip
        if level >= 2:
            out += [section("Integration"), *test("PCIe"), section("Hardware"), *test("GPU Memory")]
            out += test("Diagnostic") if level >= 3 else []
            out.append(section("Stress"))
            out += (
                [line for name in ("Targeted Stress", "Targeted Power", "Memory Bandwidth") for line in test(name)]
                if level >= 3
                else []
            )
            out += [row("EUD Test", "Skip - All")] if level >= 3 else []
    else:
        out += test("software")
        if level >= 2:
            out += [section("Hardware"), *test("memory"), *(test("diagnostic") + test("nvbandwidth") if level >= 3 else []),
                section("Integration"),
                    *test("pcie"), section("Stress")]  # fmt: skip
            out += (
                [line for name in ("memory_bandwidth", "targeted_power", "targeted_stress") for line in test(name)]
                if level >= 3
                else []
            )
    return "\n".join([*out, rule, ""])


def diag_json(spec: Spec, version: str) -> str:
    """Level 3."""
    if version < "4":
        one = [{"status": "Pass"}]
        each = [{"gpu_id": str(n), "info": f"Allocated {spec.mib} bytes", "status": "Pass"} for n in range(spec.count)]
        names = ("Denylist", "NVML Library", "CUDA Main Library", "Permissions and OS Blocks", "Persistence Mode",
            "Environment Variables",
                 "Page Retirement/Row Remap", "Graphics Processes", "Inforom")  # fmt: skip
        categories = [{"category": "Deployment", "tests": [{"name": name, "results": one} for name in names]}]
        for category, tests in (("Integration", ["PCIe"]), ("Hardware", ["GPU Memory", "Diagnostic"]),
                                ("Stress", ["Targeted Stress", "Targeted Power", "Memory Bandwidth"])):  # fmt: skip
            categories.append({"category": category, "tests": [{"name": name, "results": each} for name in tests]})
        body = {
            "Driver Version Detected": spec.driver,
            "GPU Device IDs": [spec.device] * spec.count,
            "test_categories": categories,
            "version": version,
        }
        return json.dumps({"DCGM GPU Diagnostic": body}, indent=1) + "\n"
    results = [{"entity_group": "GPU", "entity_group_id": 1, "entity_id": n, "status": "Pass"} for n in range(spec.count)]

    def category(name: str, *tests: str) -> dict:
        return {
            "category": name,
            "tests": [{"name": test, "results": results, "test_summary": {"status": "Pass"}} for test in tests],
        }

    return json.dumps({
        "DCGM Diagnostic": {"test_categories": [category("Deployment", "software"), category("Hardware", "memory", "diagnostic",
        "nvbandwidth"),
                            category("Integration", "pcie"), category("Stress", "memory_bandwidth", "targeted_power",
                                "targeted_stress")]},
        "entity_groups": [{"entity_group": "GPU", "entity_group_id": 1,
                           "entities": [{"device_id": spec.device, "entity_id": n, "serial_num": f"16500000000{n:02d}"}
                           for n in range(spec.count)]}],
        "metadata": {"Driver Version Detected": spec.driver, "version": version},
    }, indent=1) + "\n"  # fmt: skip


def discovery(spec: Spec, switches: int) -> str:
    rule = f"+--------+{'-' * 70}+"
    out = [f"{spec.count} GPUs found.", rule, f"| GPU ID | {'Device Information':<69}|", rule]
    for n in range(spec.count):
        out += [f"| {n:<6} | {'Name: ' + spec.name:<69}|", f"|        | {f'PCI Bus ID: 00000000:{bus(n):02X}:00.0':<69}|",
                f"|        | {'Device UUID: ' + uuid(spec, n):<69}|", rule]  # fmt: skip
    out += [f"{switches} NvSwitches found.", "+-----------+", "| Switch ID |", "+-----------+"]
    for n in range(switches):
        out += [f"| {n:<9} |", "+-----------+"]
    return "\n".join([*out, "0 ConnectX found.", "+----------+", "| ConnectX |", "+----------+", ""])


def dcgm_health() -> str:
    rule = f"+{'-' * 27}+{'-' * 58}+"
    return "\n".join(
        [
            rule,
            f"| {'Health Monitor Report':<84} |",
            f"+{'=' * 27}+{'=' * 58}+",
            f"| {'Overall Health':<25} | {'Healthy':<56} |",
            rule,
            "",
        ]
    )


def fm_status(modern: bool) -> str:
    out = ["● nvidia-fabricmanager.service - NVIDIA fabric manager service",
           f"     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; "
           f"{'preset' if modern else 'vendor preset'}: enabled)",
           "     Active: active (running) since Sat 2026-11-21 08:02:15 UTC; 1h 12min ago"]  # fmt: skip
    start = (
        "/usr/bin/nvidia-fabricmanager-start.sh --mode start"
        if modern
        else "/usr/bin/nv-fabricmanager -c /usr/share/nvidia/nvswitch/fabricmanager.cfg"
    )
    out += [f"    Process: 2114 ExecStart={start} (code=exited, status=0/SUCCESS)", "   Main PID: 2116 (nv-fabricmanage)",
        "      Tasks: 18 (limit: 629145)",
            "     Memory: 20.2M", "        CPU: 1.861s", "     CGroup: /system.slice/nvidia-fabricmanager.service",
            "             └─2116 /usr/bin/nv-fabricmanager -c /usr/share/nvidia/nvswitch/fabricmanager.cfg", ""]  # fmt: skip
    return "\n".join([*out, fm_journal(modern)])


def fm_journal(modern: bool) -> str:
    unit = "nvidia-fabricmanager.service - NVIDIA fabric manager service" if modern else "NVIDIA fabric manager service"
    told = [("systemd[1]", f"Starting {unit}..."), ("nvidia-fabricmanager-start.sh[2114]", "Detected Pre-NVL5 system"),
            ("nv-fabricmanager[2116]", "Connected to 1 node."),
            ("nv-fabricmanager[2116]", "Successfully configured all the available NVSwitches to route GPU NVLink traffic. "
                                       "NVLink Peer-to-Peer support "
             "will be enabled once the GPUs are successfully registered with the NVLink fabric."),
            ("nvidia-fabricmanager-start.sh[2114]", 'Started "Nvidia Fabric Manager"'), ("systemd[1]",
            f"Started {unit}.")]  # fmt: skip
    return "".join(
        f"Nov 21 08:02:{9 + n:02d} node01 {who}: {text}\n"
        for n, (who, text) in enumerate(told)
        if modern or "start.sh" not in who
    )


def fm_log() -> str:
    told = ["Fabric Manager version is : 580.95.05",
        "Successfully configured all the available NVSwitches to route GPU NVLink traffic. NVLink "
            "Peer-to-Peer support will be enabled once the GPUs are successfully registered with the NVLink fabric.",
            "multicast group 0 is allocated.",
            "successfully setup multicast team for request id 8331980469606044544."]  # fmt: skip
    return "".join(f"[Nov 21 2026 08:02:{9 + n:02d}] [INFO] [tid {1800 + n}] {text}\n" for n, text in enumerate(told))


def samples() -> dict[str, str]:
    """All samples: file name -> text."""
    out = {}
    for position, spec in enumerate(SPECS):
        out[f"nvidia-smi-{spec.slug}-table"] = table(spec)
        small = spec._replace(count=min(spec.count, 2)) if spec.slug != "h100-sxm5" else spec
        out[f"nvidia-smi-{spec.slug}-{'q' if position % 2 else 'q-x'}"] = query(small) if position % 2 else xml(small)
        form = (csv(spec, True, True), csv(spec, True, False), csv(spec, False, False), listing(spec))[position % 4]
        out[f"nvidia-smi-{spec.slug}-{('csv', 'csv-nounits', 'csv-noheader-nounits', 'list')[position % 4]}"] = form
        if spec.links and ("sxm" in spec.slug or spec.fabric):
            out[f"nvidia-smi-{spec.slug}-nvlink"] = nvlink(spec)
        kind = ("plain", "n", "nn", "Dnn", "Dn", "vv")[position % 6]
        out[f"lspci-{spec.slug}-{kind}"] = lspci(spec, kind)
    out["nvidia-smi-h100-sxm5-q-x"] = xml(BY["h100-sxm5"]._replace(count=2))
    out["nvidia-smi-h100-sxm5-topo"] = topo(BY["h100-sxm5"])
    out["lspci-h100-sxm5-vv"] = lspci(BY["h100-sxm5"], "vv")
    for slug, top, figure in (("v100-sxm2", 2**33, 131.0), ("a100-sxm4-40gb", 2**33, 236.0), ("a100-sxm4-80gb", 2**34, 236.5),
    ("h100-sxm5", 2**34, 478.0),
                              ("h200-sxm", 2**34, 481.0), ("b200", 2**34, 830.0), ("gb200", 2**33, 810.0), ("l40s", 2**30, 21.0),
                              ("t4", 2**27, 5.0), ("rtxpro6000", 2**30, 40.0)):  # fmt: skip
        spec = BY[slug] if slug != "t4" else BY[slug]._replace(count=4)
        out[f"nccl-tests-{slug}-all_reduce"] = nccl(
            spec, top, figure, low=8 if slug != "h100-sxm5" else 2**20, version="2.17.8" if branch(spec) > 535 else ""
        )
    out["ib_write_bw-a100-hdr-gbits"] = ib_write_bw(197.0, "Gb/sec", False)
    out["ib_write_bw-h100-ndr-gbits-gpu"] = ib_write_bw(421.0, "Gb/sec", False, gpu=True)
    out["ib_write_bw-h100-ndr-all-sizes"] = ib_write_bw(395.0, "Gb/sec", True)
    out["ib_write_bw-v100-edr-megabytes"] = ib_write_bw(98.0, "MB/sec", False)
    out["ib_write_bw-h200-roce-mebibytes"] = ib_write_bw(390.0, "MiB/sec", True, "Ethernet")
    for slug, ports, ca, rate, layer, firmware in (("v100", 4, "MT4119", 100, "InfiniBand", "16.35.4030"), ("a100", 8, "MT4123",
    200, "InfiniBand", "20.39.3004"),
            ("h100", 8, "MT4129", 400, "InfiniBand", "28.42.1000"), ("h200-roce", 8, "MT4129", 400, "Ethernet", "28.43.2566"),
            ("b300", 8, "MT4131", 800, "InfiniBand", "40.46.1006"), ("l40s-roce", 2, "MT4125", 100, "Ethernet",
            "22.41.1000")):  # fmt: skip
        out[f"ibstat-{slug}"] = ibstat(ports, ca, rate, layer, firmware)
    for slug, version, level in (("p100-sxm2", "3.3.9", 1), ("v100-sxm2", "3.3.7", 2), ("a100-sxm4-80gb", "3.3.3", 3),
    ("h100-sxm5", "4.2.3", 3),
                                 ("b200", "4.4.2", 2), ("l40s", "4.2.3", 1), ("t4", "3.3.1", 2), ("rtxpro6000", "4.5.0",
                                 3)):  # fmt: skip
        out[f"dcgmi-{slug}-diag-r{level}"] = diag(BY[slug], version, level)
    out["dcgmi-h200-sxm-diag-json"] = diag_json(BY["h200-sxm"], "4.4.2")
    out["dcgmi-a100-pcie-diag-json"] = diag_json(BY["a100-pcie"], "3.3.9")
    out["dcgmi-h100-sxm5-discovery"] = discovery(BY["h100-sxm5"], 4)
    out["dcgmi-gb300-discovery"] = discovery(BY["gb300"], 0)
    out["dcgmi-h100-sxm5-health"] = dcgm_health()
    out["fabricmanager-a100-status"] = fm_status(False)
    out["fabricmanager-h100-status"] = fm_status(True)
    out["fabricmanager-h200-journal"] = fm_journal(True)
    out["fabricmanager-h100-log"] = fm_log()
    out["fabricmanager-b200-active"] = "active\n"
    out["fabricmanager-b300-show"] = (
        "Type=forking\nResult=success\nMainPID=2116\nLoadState=loaded\nActiveState=active\nSubState=running\n"
    )
    out["fabricmanager-gb200-fabric"] = (
        "    Fabric\n        State                             : Completed\n        Status                            : Success\n"
        * 4
    )
    return out


if __name__ == "__main__":
    for path in FOLDER.iterdir():
        if path.name not in ("write.py", "README.md") and path.is_file():
            path.unlink()
    for name, text in samples().items():
        (FOLDER / name).write_text(text)
    print(len(samples()), "samples")
