"""perftest's ib_write_bw: one whole run whose bandwidth agrees with its message rate, which also proves the unit.

The bandwidth is judged against the acceptance table where GPU or row are named; without, a finding says that it was not
judged.
"""

import re
from typing import Dict, List, NamedTuple

from .report import Expectation, Finding, Unreadable, bad, clean, decimal, ends_open, good, shown, whole
from .thresholds import judge, rows_for, size_bytes

HEADER = re.compile(
    r"^ ?#bytes\s+#iterations\s+BW peak\[(\S+)\]\s+BW average\[(\S+)\]\s+MsgRate\[Mpps\](\s+CPU_Util\[%\])?$"
)
ROW = re.compile(r"^ ?\d+\s+\d+\s")
LINE = re.compile(r"^-{60,}$")
TITLE = re.compile(r"^\s+RDMA_Write (Post List |Bidirectional |Bidirectional Post List |With Immediate )?BW Test$")
SETTING = re.compile(
    r"^ ?(Dual-port|Number of qps|Connection type|PCIe relax order|ibv_wr\* API|TX depth|RX depth|Post List|"
    r"CQ Moderation|CQE Poll Batch|"
    r"Mtu|Link type|GID index|Max inline data|rdma_cm QPs|Data ex\. method|Outstand reads|Lock-free|Using "
    r"DDP|Use ROCm memory)\s*:\s*\S"
)
NEEDED = ("Dual-port", "Number of qps", "Connection type", "Mtu", "Link type", "Data ex. method")
ADDRESS = re.compile(
    r"^ ?(local|remote) address: LID (0x)?[0-9a-f]+ QPN 0x[0-9a-f]+ PSN 0x[0-9a-f]+( RKey 0x[0-9a-f]+ VAddr 0x[0-9a-f]+)?( "
    r"\S.*)?$|^ ?GID: [\d:]+$"
)
ALLOWED = re.compile(
    r"^\s*$|^\*+$|^\* Waiting for client to connect\.\.\. \*$|^ ?WARNING: BW peak won't be measured in this run\.$|"
    r"^ ?Conflicting CPU frequency values detected: [\d.]+ != [\d.]+\. CPU Frequency is not max\.$|^ ?initializing CUDA$|"
    r"^ ?Listing all CUDA devices in system:$|^ ?CUDA device \d+: PCIe address is \S+$|^ ?Picking device No\. \d+$|"
    r"^\[pid = \d+, dev = \d+\] device name = \[.*\]$|^ ?(creating|destroying) (current )?CUDA Ctx$|^ ?making it the current "
    r"CUDA Ctx$|"
    r"^ ?CUDA device integrated: \d+$|^ ?cuMemAlloc\(\) of a \d+ bytes GPU buffer$|^ ?allocated (\d+ bytes of )?GPU buffer "
    r"(address )?at \S+( pointer=\S+)?$|"
    r"^ ?using DMA-BUF for GPU buffer.*$|^ ?Calling ibv_reg_dmabuf_mr\(.*\) for QP #\d+$|^ ?deallocating GPU buffer \S+$|"
    r"^ ?Perftest doesn't supports CUDA tests with inline messages: inline size set to 0$|^ ?Using (mlx5|device) .*$"
)
BITS = {"Gb/sec": 1e9, "MB/sec": 8 * (1 << 20), "MiB/sec": 8 * (1 << 20)}  # perftest's MB are 2**20 bytes
FASTEST_GB_S = 1700.0  # Gb/s: an 800 Gb/s port in both directions


class Row(NamedTuple):
    size: int
    iterations: int
    peak: float
    average: float
    rate_mpps: float


def parse(text: str, expected: Expectation) -> List[Finding]:
    rows, seen, unit, titles, locals_, remotes = [], [], None, 0, 0, 0  # type: ignore
    after_header, closed = False, False
    for line in [line.rstrip() for line in clean(text)]:
        header, setting = HEADER.match(line), SETTING.match(line)
        if header:
            if unit or not seen or not locals_:
                raise Unreadable("two runs are mixed up, or the run's head is missing")
            unit, after_header = header.group(1), True
            if unit != header.group(2) or unit not in BITS:
                raise Unreadable(f"the bandwidth is in {header.group(2)!r}, not in Gb/sec, MB/sec or MiB/sec")
            cells = 5 + bool(header.group(3))
        elif TITLE.match(line):
            titles += 1
        elif after_header and not closed and ROW.match(line):
            rows.append(_row(line, cells))
        elif LINE.match(line):
            closed = closed or (after_header and bool(rows))
        elif setting and not after_header:
            seen.append(setting.group(1))
        elif ADDRESS.match(line) and not after_header:
            locals_ += "local address" in line
            remotes += "remote address" in line
        elif not ALLOWED.match(line):
            raise Unreadable(f"ib_write_bw prints a line that is not understood: {shown(line)}")
    if titles != 1 or not unit:
        raise Unreadable("no run of ib_write_bw is there, or more than one")
    lacking = [name for name in NEEDED if name not in seen]
    if lacking or locals_ != remotes or len(set(seen)) != len(seen):
        raise Unreadable(f"the run's head is cut: {lacking[0] if lacking else 'the addresses do not match'}")
    if len({len(line.rstrip()) for line in clean(text) if LINE.match(line.rstrip())}) != 1:
        raise Unreadable("the run is cut: its lines differ in length")
    if not rows or not closed:
        raise Unreadable("the run is cut: its table does not end with a line")
    if (
        ends_open(text)
        and not LINE.match(text.rstrip(" ").split("\n")[-1].rstrip())
        and "CUDA" not in text.split("\n")[-1]
    ):
        raise Unreadable("the output ends in the middle of a line")
    return _judge(rows, unit, expected)


def _row(line: str, cells: int) -> Row:
    values = line.split()
    if len(values) != cells:
        raise Unreadable(f"ib_write_bw prints a row that is cut: {shown(line.strip())}")
    return Row(
        whole(values[0], "a size"),
        whole(values[1], "the iterations"),
        decimal(values[2], "the peak"),
        decimal(values[3], "the average"),
        decimal(values[4], "the message rate"),
    )


def figures(text: str) -> Dict[int, float]:
    """Bytes -> Gb/s of an output that parse() found healthy."""
    unit = next(match.group(1) for match in (HEADER.match(line.rstrip()) for line in clean(text)) if match)
    rows = [line.split() for line in clean(text) if ROW.match(line)]
    return {int(row[0]): round(float(row[3]) * BITS[unit] / 1e9, 2) for row in rows}


def _judge(rows: List[Row], unit: str, expected: Expectation) -> List[Finding]:
    for before, after in zip(rows, rows[1:]):
        if after.size != 2 * before.size:
            raise Unreadable(f"the sizes jump from {before.size} to {after.size} bytes: a row is missing")
    if len(rows) > 1 and (rows[0].size != 2 or rows[-1].size != 1 << 23):
        raise Unreadable(
            f"the sizes run from {rows[0].size} to {rows[-1].size} bytes, not from 2 to {1 << 23}: a row is missing"
        )
    for row in rows:
        if row.iterations < 1 or row.average <= 0 or row.rate_mpps <= 0 or row.peak < 0:
            raise Unreadable(f"the bandwidth at {row.size} bytes is {row.average:g}")
        made = row.rate_mpps * 1e6 * row.size * 8 / BITS[unit]
        least = 0.0000005 * 1e6 * row.size * 8 / BITS[unit] + 0.006
        if abs(made - row.average) > 0.01 * made + least:
            raise Unreadable(
                f"the average at {row.size} bytes is {row.average:g} {unit}, but the message rate gives {made:.2f}"
            )
        if row.peak and row.peak < 0.98 * row.average:
            raise Unreadable(f"the peak at {row.size} bytes is below the average")
    largest = rows[-1]
    best = max(row.average * BITS[unit] / 1e9 for row in rows)
    if best > FASTEST_GB_S:
        raise Unreadable(f"{best:.0f} Gb/s are more than any port has")
    if len(rows) > 1 and largest.average * BITS[unit] / 1e9 < 0.5 * best:
        return [bad("bandwidth", f"{largest.average:g} {unit} at {largest.size} bytes are less than half of the best")]
    return [
        good("table", f"{len(rows)} sizes, the figures agree with the message rate"),
        _bandwidth(rows, unit, expected),
    ]


def _bandwidth(rows: List[Row], unit: str, expected: Expectation) -> Finding:
    asked = size_bytes(expected.message_size) if expected.message_size else None
    row = (
        next((each for each in rows if each.size == asked), None)
        if asked
        else (rows[0] if len(rows) == 1 else rows[-1])
    )
    if row is None:
        return bad("bandwidth", f"no row of {expected.message_size}")
    figure = row.average * BITS[unit] / 1e9
    found = []  # type: Optional[list]
    if expected.threshold_id or expected.gpu_model:
        found = rows_for("ib_write_bw", expected, row.size, "Gb/s")
    if found:
        return judge(round(figure, 2), found, f"the average at {row.size} bytes is")
    declared = bool(expected.threshold_id or expected.gpu_model or expected.platform)
    return Finding(
        "bandwidth",
        not declared,
        f"{figure:.2f} Gb/s at {row.size} bytes, not judged: no row of the acceptance table is named",
    )
