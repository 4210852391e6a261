"""What nvidia-smi prints: table, CSV, -L, nvlink -s, topo -m."""

from __future__ import annotations

from tests.unit.health.samples.machines import Spec, branch, bus, ecc_on, hbm, uuid


def _widths(spec: Spec) -> tuple[int, int, int]:
    """Characters of the table's columns, by the driver's branch."""
    return (41, 24, 22) if branch(spec) >= 545 else (41, 22, 22) if branch(spec) >= 530 else (31, 22, 22)


def _head(spec: Spec) -> str:
    driver, cuda = ("KMD", "CUDA UMD") if branch(spec) >= 600 else ("Driver", "CUDA")
    if branch(spec) < 530:
        return f"| NVIDIA-SMI {spec.driver:<12} {driver} Version: {spec.driver:<12} {cuda} Version: {spec.cuda:<5}"
    return f"| NVIDIA-SMI {spec.driver:<21}  {driver} Version: {spec.driver:<14} {cuda} Version: {spec.cuda:<5}"


def _titles(spec: Spec) -> list[str]:
    _, b, _ = _widths(spec)
    if branch(spec) < 530:
        return [
            "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |",
            "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |",
        ]
    bus_title, memory_title = " Bus-Id        Disp.A ".rjust(b), "         Memory-Usage ".rjust(b)
    return [
        f"| GPU  Name                 Persistence-M |{bus_title}| Volatile Uncorr. ECC |",
        f"| Fan  Temp   Perf          Pwr:Usage/Cap |{memory_title}| GPU-Util  Compute M. |",
    ]


def _rows(spec: Spec, n: int) -> list[str]:
    """The three rows of the n-th GPU."""
    a, b, c = _widths(spec)
    name = spec.name if len(spec.name) <= a - 12 else spec.name[: a - 15] + "..."
    fan = "N/A" if hbm(spec) or "RTX" not in spec.name else "30%"
    power = f"{spec.watt // 10 + n}W / {spec.watt}W"
    cells = [
        (f"   {n}  {name}".ljust(a - 5) + " On  ", f"00000000:{bus(n):02X}:00.0 Off ", "0" if ecc_on(spec) else "Off"),
        (
            f"{fan:>4}   {27 + n}C    {'P0' if hbm(spec) else 'P8'}".ljust(a - len(power) - 1) + power + " ",
            f"{n % 2}MiB / {spec.mib}MiB ",
            "0%      Default",
        ),
        (" " * a, "", "Disabled" if spec.mig else "N/A"),
    ]
    return [f"|{left}|{middle.rjust(b)}|{right + ' |':>{c + 1}}" for left, middle, right in cells]


def table(spec: Spec) -> str:
    a, b, c = _widths(spec)
    rule = f"+{'-' * a}+{'-' * b}+{'-' * c}+"
    inner = a + b + c + 2
    top, fill = f"+{'-' * inner}+", inner - 2
    out = ["Sat Nov 21 09:14:07 2026       ", top, _head(spec).ljust(inner + 1) + "|"]
    out += [rule if branch(spec) >= 570 else "|" + rule[1:-1] + "|", *_titles(spec)]
    out += [f"|{' ' * a}|{' ' * b}|{'MIG M. |':>{c + 1}}", f"|{'=' * a}+{'=' * b}+{'=' * c}|"]
    for n in range(spec.count):
        out += [*_rows(spec, n), rule]
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


# field, unit, value
COLUMNS = """
index                                 |     | {number}
name                                  |     | {name}
uuid                                  |     | {uuid}
pci.bus_id                            |     | 00000000:{bus}:00.0
driver_version                        |     | {driver}
memory.total                          | MiB | {mib}
memory.used                           | MiB | {number}
temperature.gpu                       |     | {degrees}
power.draw                            | W   | {draw}
pstate                                |     | P0
clocks.sm                             | MHz | 345
utilization.gpu                       | %   | 0
ecc.mode.current                      |     | {ecc}
ecc.errors.uncorrected.volatile.total |     | {errors}
pcie.link.width.current               |     | 16
pcie.link.width.max                   |     | 16
clocks_event_reasons.active           |     | 0x0000000000000001
"""


def csv(spec: Spec, header: bool, units: bool) -> str:
    """With a header all columns, without one only those that the gate asks."""
    columns = [tuple(cell.strip() for cell in line.split("|")) for line in COLUMNS.strip().splitlines()]
    if not header:
        columns = [column for column in columns if column[0] in ("index", "name", "driver_version", "memory.total")]
    out = [", ".join(f"{field} [{unit}]" if unit else field for field, unit, _ in columns)] if header else []
    for n in range(spec.count):
        values = {
            "number": n,
            "name": spec.name,
            "uuid": uuid(spec, n),
            "bus": f"{bus(n):02X}",
            "driver": spec.driver,
            "mib": spec.mib,
            "degrees": 28 + n,
            "draw": f"{spec.watt / 10 + n:.2f}",
            "ecc": "Enabled" if ecc_on(spec) else "Disabled",
            "errors": "0" if ecc_on(spec) else "[N/A]",
        }
        cells = ((value.format(**values), unit) for _, unit, value in columns)
        out.append(", ".join(f"{value} {unit}" if unit and units else value for value, unit in cells))
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
