"""What nvidia-smi prints: table, -q, -q -x, CSV, -L, nvlink -s, topo -m."""

from __future__ import annotations

from xml.sax.saxutils import escape

from tests.unit.health.samples.machines import Spec, branch, bus, ecc_on, hbm, uuid


def table(spec: Spec) -> str:
    a, b, c = (41, 24, 22) if branch(spec) >= 545 else (41, 22, 22) if branch(spec) >= 530 else (31, 22, 22)
    rule = f"+{'-' * a}+{'-' * b}+{'-' * c}+"
    words = ("KMD", "CUDA UMD") if branch(spec) >= 600 else ("Driver", "CUDA")
    inner = a + b + c + 2
    head = f"| NVIDIA-SMI {spec.driver:<21}  {words[0]} Version: {spec.driver:<14} {words[1]} Version: {spec.cuda:<5}"
    if a == 31:
        head = (
            f"| NVIDIA-SMI {spec.driver:<12} {words[0]} Version: {spec.driver:<12} {words[1]} Version: {spec.cuda:<5}"
        )
    top = f"+{'-' * inner}+"
    out = [
        "Sat Nov 21 09:14:07 2026       ",
        top,
        head.ljust(inner + 1) + "|",
        rule if branch(spec) >= 570 else "|" + rule[1:-1] + "|",
    ]
    if a == 31:
        out += [
            "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |",
            "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |",
        ]
    else:
        out += [
            "| GPU  Name                 Persistence-M |"
            + " Bus-Id        Disp.A ".rjust(b)
            + "| Volatile Uncorr. ECC |",
            "| Fan  Temp   Perf          Pwr:Usage/Cap |"
            + "         Memory-Usage ".rjust(b)
            + "| GPU-Util  Compute M. |",
        ]
    out += [f"|{' ' * a}|{' ' * b}|{'MIG M. |':>{c + 1}}", f"|{'=' * a}+{'=' * b}+{'=' * c}|"]
    for n in range(spec.count):
        short = spec.name if len(spec.name) <= a - 12 else spec.name[: a - 15] + "..."
        ecc = "0" if ecc_on(spec) else "Off"
        fan = "N/A" if hbm(spec) or "RTX" not in spec.name else "30%"
        use = f"{fan:>4}   {27 + n}C    {'P0' if hbm(spec) else 'P8'}"
        power = f"{spec.watt // 10 + n}W / {spec.watt}W"
        memory = f"{n % 2}MiB / {spec.mib}MiB "
        out.append(
            f"|{f'   {n}  {short}'.ljust(a - 5)} On  |{f'00000000:{bus(n):02X}:00.0 Off '.rjust(b)}|{ecc + ' |':>{c + 1}}"
        )
        out.append(f"|{use.ljust(a - len(power) - 1)}{power} |{memory.rjust(b)}|{'0%      Default |':>{c + 1}}")
        out.append(f"|{' ' * a}|{' ' * b}|{('Disabled' if spec.mig else 'N/A') + ' |':>{c + 1}}")
        out.append(rule)
    fill = inner - 2
    out += [
        " " * (inner + 2),
        top,
        f"| {'Processes:'.ljust(fill)} |",
        f"| {' GPU   GI   CI        PID   Type   Process name'.ljust(fill - 10)}GPU Memory |",
        f"| {'       ID   ID'.ljust(fill - 10)}Usage      |",
        f"|{'=' * inner}|",
        f"| {' No running processes found'.ljust(fill)} |",
        top,
    ]
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
        parts = (
            ("Device Memory", "device_memory"),
            ("Register File", "register_file"),
            ("L1 Cache", "l1_cache"),
            ("L2 Cache", "l2_cache"),
            ("Texture Memory", "texture_memory"),
            ("Texture Shared", "texture_shm"),
            ("CBU", "cbu"),
            ("Total", "total"),
        )
        counts = [
            (
                f"{title} Bit",
                f"{title.lower()}_bit",
                [(k, x, NA if k in ("Texture Memory", "Texture Shared", "CBU") else number) for k, x in parts],
            )
            for title in ("Single", "Double")
        ]
    elif v >= 550 and hbm(spec):
        counts = [
            ("SRAM Correctable", "sram_correctable", number),
            ("SRAM Uncorrectable Parity", "sram_uncorrectable_parity", number),
            ("SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", number),
            ("DRAM Correctable", "dram_correctable", number),
            ("DRAM Uncorrectable", "dram_uncorrectable", number),
        ]
    else:
        counts = [
            ("SRAM Correctable", "sram_correctable", number),
            ("SRAM Uncorrectable", "sram_uncorrectable", number),
            ("DRAM Correctable", "dram_correctable", number),
            ("DRAM Uncorrectable", "dram_uncorrectable", number),
        ]
    retires = old or spec.name == "Tesla T4"
    remap = (
        NA
        if retires or not on
        else [
            ("Correctable Error", "remapped_row_corr", "0"),
            ("Uncorrectable Error", "remapped_row_unc", "0"),
            ("Pending", "remapped_row_pending", "No"),
            ("Remapping Failure Occurred", "remapped_row_failure", "No"),
            (
                "Bank Remap Availability Histogram",
                "row_remapper_histogram",
                [
                    ("Max", "row_remapper_histogram_max", "640 bank(s)"),
                    ("High", "row_remapper_histogram_high", "0 bank(s)"),
                    ("None", "row_remapper_histogram_none", "0 bank(s)"),
                ],
            ),
        ]
    )
    new_limits = v >= 550 and hbm(spec) and not old
    temperature = [("GPU Current Temp", "gpu_temp", f"{28 + n} C")]
    if new_limits:
        temperature += [
            ("GPU T.Limit Temp", "gpu_temp_tlimit", f"{57 - n} C"),
            ("GPU Shutdown T.Limit Temp", "gpu_temp_max_tlimit_threshold", "-8 C"),
            ("GPU Slowdown T.Limit Temp", "gpu_temp_slow_tlimit_threshold", "-2 C"),
            ("GPU Max Operating T.Limit Temp", "gpu_temp_max_gpu_tlimit_threshold", "0 C"),
        ]
    else:
        temperature += [
            ("GPU Shutdown Temp", "gpu_temp_max_threshold", "92 C"),
            ("GPU Slowdown Temp", "gpu_temp_slow_threshold", "89 C"),
            ("GPU Max Operating Temp", "gpu_temp_max_gpu_threshold", "85 C"),
        ]
    temperature += [
        ("GPU Target Temperature", "gpu_target_temperature", NA),
        ("Memory Current Temp", "memory_temp", f"{36 + n} C" if hbm(spec) else NA),
        ("Memory Max Operating Temp", "gpu_temp_max_mem_threshold", "95 C" if hbm(spec) and not new_limits else NA),
    ]
    draw = f"{spec.watt / 10 + n:.2f} W"
    limit = f"{spec.watt:.2f} W"
    if v >= 535:
        first = (
            [
                ("Average Power Draw", "average_power_draw", draw),
                ("Instantaneous Power Draw", "instant_power_draw", draw),
            ]
            if v >= 570
            else [("Power Draw", "power_draw", draw)]
        )
        power = (
            "GPU Power Readings",
            "gpu_power_readings",
            [
                *first,
                ("Current Power Limit", "current_power_limit", limit),
                ("Requested Power Limit", "requested_power_limit", limit),
                ("Default Power Limit", "default_power_limit", limit),
                ("Min Power Limit", "min_power_limit", "60.00 W"),
                ("Max Power Limit", "max_power_limit", limit),
            ],
        )
    else:
        power = (
            "Power Readings",
            "power_readings",
            [
                ("Power Management", "power_management", "Supported"),
                ("Power Draw", "power_draw", draw),
                ("Power Limit", "power_limit", limit),
                ("Default Power Limit", "default_power_limit", limit),
                ("Enforced Power Limit", "enforced_power_limit", limit),
            ],
        )
    fabric = ("Completed", "Success") if spec.fabric else (NA, NA)
    reset = "Requested functionality has been deprecated" if v >= 570 else "No"
    mig = "Disabled" if spec.mig else NA
    used = f"{n} MiB"
    kept = max(1, spec.mib // 150)
    out = [
        ("Product Name", "product_name", spec.name),
        ("Product Brand", "product_brand", spec.name.split()[0]),
        ("Persistence Mode", "persistence_mode", "Enabled"),
        ("MIG Mode", "mig_mode", [("Current", "current_mig", mig), ("Pending", "pending_mig", mig)]),
        ("Serial Number", "serial", f"16500000000{n:02d}"),
        ("GPU UUID", "uuid", uuid(spec, n)),
        ("Minor Number", "minor_number", str(n)),
        ("VBIOS Version", "vbios_version", "96.00.89.00.01"),
        (
            "GPU Reset Status",
            "gpu_reset_status",
            [
                ("Reset Required", "reset_required", reset),
                ("Drain and Reset Recommended", "drain_and_reset_recommended", reset),
            ],
        ),
    ]
    if v >= 565:
        out.append(("GPU Recovery Action", "gpu_recovery_action", "None"))
    out += [
        (
            "PCI",
            "pci",
            [
                ("Bus", "pci_bus", f"0x{bus(n):02X}"),
                ("Device Id", "pci_device_id", f"0x{spec.device.upper()}10DE"),
                ("Bus Id", "pci_bus_id", f"00000000:{bus(n):02X}:00.0"),
                (
                    "GPU Link Info",
                    "pci_gpu_link_info",
                    [
                        (
                            "PCIe Generation",
                            "pcie_gen",
                            [
                                ("Max", "max_link_gen", str(spec.gen)),
                                ("Current", "current_link_gen", str(spec.gen if hbm(spec) else 1)),
                                ("Host Max", "max_host_link_gen", str(spec.gen)),
                            ],
                        ),
                        (
                            "Link Width",
                            "link_widths",
                            [("Max", "max_link_width", "16x"), ("Current", "current_link_width", "16x")],
                        ),
                    ],
                ),
                ("Replays Since Reset", "replay_counter", "0"),
                ("Tx Throughput", "tx_util", "567 KB/s"),
            ],
        ),
        ("Fan Speed", "fan_speed", NA if hbm(spec) else "30 %"),
        ("Performance State", "performance_state", "P0" if hbm(spec) else "P8"),
        (
            reason,
            reason.lower().replace(" ", "_"),
            [
                off("Idle", "gpu_idle", "Active"),
                off("Applications Clocks Setting", "applications_clocks_setting"),
                off("SW Power Cap", "sw_power_cap"),
                off("HW Slowdown", "hw_slowdown"),
                off("HW Thermal Slowdown", "hw_thermal_slowdown"),
                off("HW Power Brake Slowdown", "hw_power_brake_slowdown"),
                off("Sync Boost", "sync_boost"),
                off("SW Thermal Slowdown", "sw_thermal_slowdown"),
                off("Display Clock Setting", "display_clocks_setting"),
            ],
        ),
        (
            "FB Memory Usage",
            "fb_memory_usage",
            [
                ("Total", "total", f"{spec.mib} MiB"),
                ("Reserved", "reserved", f"{kept} MiB"),
                ("Used", "used", used),
                ("Free", "free", f"{spec.mib - kept - n} MiB"),
            ],
        ),
        ("Compute Mode", "compute_mode", "Default"),
        (
            "Utilization",
            "utilization",
            [("Gpu", "gpu_util", "0 %"), ("Memory", "memory_util", "0 %"), ("JPEG", "jpeg_util", NA)],
        ),
        (
            "ECC Mode",
            "ecc_mode",
            [
                ("Current", "current_ecc", "Enabled" if on else "Disabled"),
                ("Pending", "pending_ecc", "Enabled" if on else "Disabled"),
            ],
        ),
        ("ECC Errors", "ecc_errors", [("Volatile", "volatile", counts), ("Aggregate", "aggregate", counts)]),
        (
            "Retired Pages",
            "retired_pages",
            [
                ("Single Bit ECC", "multiple_single_bit_retirement/retired_count", "0" if retires else NA),
                ("Double Bit ECC", "double_bit_retirement/retired_count", "0" if retires else NA),
                ("Pending Page Blacklist", "pending_retirement", "No" if retires else NA),
            ],
        ),
        ("Remapped Rows", "remapped_rows", remap),
        ("Temperature", "temperature", temperature),
        power,
        (
            "Clocks",
            "clocks",
            [
                ("Graphics", "graphics_clock", "345 MHz"),
                ("SM", "sm_clock", "345 MHz"),
                ("Memory", "mem_clock", "2619 MHz"),
            ],
        ),
        (
            "Applications Clocks",
            "applications_clocks",
            [("Graphics", "graphics_clock", "1980 MHz" if hbm(spec) else NA)],
        ),
        (
            "Max Clocks",
            "max_clocks",
            [
                ("Graphics", "graphics_clock", "1980 MHz"),
                ("SM", "sm_clock", "1980 MHz"),
                ("Memory", "mem_clock", "2619 MHz"),
            ],
        ),
    ]
    if v >= 535:
        out.append(("Fabric", "fabric", [("State", "state", fabric[0]), ("Status", "status", fabric[1])]))
    return [*out, ("Processes", "processes", "None")]


def query(spec: Spec) -> str:
    cuda = (
        [("KMD Version", spec.driver), ("CUDA UMD Version", spec.cuda)]
        if branch(spec) >= 600
        else [("Driver Version", spec.driver), ("CUDA Version", spec.cuda)]
    )
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
    out = [
        '<?xml version="1.0" ?>',
        f'<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_{version}.dtd">',
        "<nvidia_smi_log>",
        "\t<timestamp>Sat Nov 21 09:14:07 2026</timestamp>",
        f"\t<driver_version>{spec.driver}</driver_version>",
        f"\t<cuda_version>{spec.cuda}</cuda_version>",
        f"\t<attached_gpus>{spec.count}</attached_gpus>",
    ]

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
    fields = [
        ("index", ""),
        ("name", ""),
        ("uuid", ""),
        ("pci.bus_id", ""),
        ("driver_version", ""),
        ("memory.total", "MiB"),
        ("memory.used", "MiB"),
        ("temperature.gpu", ""),
        ("power.draw", "W"),
        ("pstate", ""),
        ("clocks.sm", "MHz"),
        ("utilization.gpu", "%"),
        ("ecc.mode.current", ""),
        ("ecc.errors.uncorrected.volatile.total", ""),
        ("pcie.link.width.current", ""),
        ("pcie.link.width.max", ""),
        ("clocks_event_reasons.active", ""),
    ]
    if not header:
        fields = [field for field in fields if field[0] in ("index", "name", "driver_version", "memory.total")]
    out = [", ".join(f"{name} [{unit}]" if unit else name for name, unit in fields)] if header else []
    for n in range(spec.count):
        values = {
            "index": str(n),
            "name": spec.name,
            "uuid": uuid(spec, n),
            "pci.bus_id": f"00000000:{bus(n):02X}:00.0",
            "driver_version": spec.driver,
            "memory.total": str(spec.mib),
            "memory.used": str(n),
            "temperature.gpu": str(28 + n),
            "power.draw": f"{spec.watt / 10 + n:.2f}",
            "pstate": "P0",
            "clocks.sm": "345",
            "utilization.gpu": "0",
            "ecc.mode.current": "Enabled" if ecc_on(spec) else "Disabled",
            "ecc.errors.uncorrected.volatile.total": "0" if ecc_on(spec) else "[N/A]",
            "pcie.link.width.current": "16",
            "pcie.link.width.max": "16",
            "clocks_event_reasons.active": "0x0000000000000001",
        }
        out.append(", ".join(f"{values[name]} {unit}" if unit and units else values[name] for name, unit in fields))
    return "\n".join(out) + "\n"


def listing(spec: Spec) -> str:
    return "".join(f"GPU {n}: {spec.name} (UUID: {uuid(spec, n)})\n" for n in range(spec.count))


def nvlink(spec: Spec) -> str:
    return "".join(
        f"GPU {n}: {spec.name} (UUID: {uuid(spec, n)})\n"
        + "".join(f"\t Link {k}: {spec.speed} GB/s\n" for k in range(spec.links))
        for n in range(spec.count)
    )


def topo(spec: Spec) -> str:
    names = [f"GPU{n}" for n in range(spec.count)] + [f"NIC{n}" for n in range(spec.count)]
    rows = ["\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    for a in names:
        cells = []
        for b in names:
            same = a[3:] == b[3:]
            near = int(a[3:]) // 4 == int(b[3:]) // 4
            both = a[:3] == b[:3] == "GPU"
            cells.append(
                " X " if a == b else f"NV{spec.links}" if both else "PXB" if same else "NODE" if near else "SYS"
            )
        rows.append(a + "\t" + "\t".join(cells) + ("\t0-55,112-167\t0\t\tN/A" if a.startswith("GPU") else ""))
    legend = [
        "",
        "Legend:",
        "",
        "  X    = Self",
        "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes",
        "  NODE = Connection traversing PCIe as well as the interconnect between host bridges",
        "  PHB  = Connection traversing a host bridge",
        "  PXB  = Connection traversing several PCIe bridges",
        "  PIX  = Connection traversing at most one PCIe bridge",
        "  NV#  = Connection traversing a bonded set of # NVLinks",
        "",
        "NIC Legend:",
        "",
    ]
    return "\n".join(rows + legend + [f"  NIC{n}: mlx5_{n}" for n in range(spec.count)]) + "\n\n"
