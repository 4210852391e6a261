"""perftest's ib_write_bw: one whole run whose bandwidth agrees with its message rate, which also proves the unit.

The bandwidth is judged against the acceptance table where GPU or row are named;
without, a finding says that it was not judged.
"""

import re
from typing import Dict, List, NamedTuple

from .expectation import Expectation, Threshold
from .findings import Finding, Unreadable, bad, good
from .reading import clean, decimal, ends_open, note, shown, whole
from .thresholds import judge, rows_for, size_bytes

HEADER = re.compile(
    r"^ ?#bytes\s+#iterations\s+BW peak\[(\S+)\]\s+BW average\[(\S+)\]\s+MsgRate\[Mpps\](\s+CPU_Util\[%\])?$"
)
ROW = re.compile(r"^ ?\d+\s+\d+\s")
LINE = re.compile(r"^-{60,}$")
TITLE = re.compile(r"^\s+RDMA_Write (Post List |Bidirectional |Bidirectional Post List |With Immediate )?BW Test$")
SETTING = re.compile(
    r"^ ?(Dual-port|Number of qps|Connection type|PCIe relax order|ibv_wr\* API|TX depth|RX depth|Post List|"
    r"CQ Moderation|CQE Poll Batch|Mtu|Link type|GID index|Max inline data|rdma_cm QPs|Data ex\. method|"
    r"Outstand reads|Lock-free|Using DDP|Use ROCm memory)\s*:\s*\S"
)
NEEDED = ("Dual-port", "Number of qps", "Connection type", "Mtu", "Link type", "Data ex. method")
ADDRESS = re.compile(
    r"^ ?(local|remote) address: LID (0x)?[0-9a-f]+ QPN 0x[0-9a-f]+ PSN 0x[0-9a-f]+"
    r"( RKey 0x[0-9a-f]+ VAddr 0x[0-9a-f]+)?( \S.*)?$|^ ?GID: [\d:]+$"
)
ALLOWED = re.compile(
    r"^\s*$|^\*+$|^\* Waiting for client to connect\.\.\. \*$|"
    r"^ ?Waiting for client rdma_cm QP to connect$|^ ?Please run the same command with the IB/RoCE interface IP$|"
    r"^ ?WARNING: BW peak won't be measured in this run\.$|"
    r"^ ?Conflicting CPU frequency values detected: [\d.]+ != [\d.]+\. CPU Frequency is not max\.$|"
    r"^ ?initializing CUDA$|^ ?Listing all CUDA devices in system:$|^ ?CUDA device \d+: PCIe address is \S+$|"
    r"^ ?Picking device No\. \d+$|^\[pid = \d+, dev = \d+\] device name = \[.*\]$|"
    r"^ ?(creating|destroying) (current )?CUDA Ctx$|^ ?making it the current CUDA Ctx$|"
    r"^ ?CUDA device integrated: \d+$|^ ?cuMemAlloc\(\) of a \d+ bytes GPU buffer$|"
    r"^ ?allocated (\d+ bytes of )?GPU buffer (address )?at \S+( pointer=\S+)?$|"
    r"^ ?using DMA-BUF for GPU buffer.*$|^ ?Calling ibv_reg_dmabuf_mr\(.*\) for QP #\d+$|"
    r"^ ?deallocating GPU buffer \S+$|^ ?Using (mlx5|device) .*$|"
    r"^ ?Perftest doesn't supports CUDA tests with inline messages: inline size set to 0$"
)
BITS = {"Gb/sec": 1e9, "MB/sec": 8 * (1 << 20), "MiB/sec": 8 * (1 << 20)}  # perftest's MB are 2**20 bytes
FASTEST_GB_S = 1700.0  # Gb/s: an 800 Gb/s port in both directions


class PerftestRow(NamedTuple):
    """One message size: bytes, bandwidths in the run's unit, and a million messages a second."""

    size: int
    iterations: int
    peak: float
    average: float
    rate_mpps: float


def parse(text: str, expected: Expectation) -> List[Finding]:
    """Findings of one run. Raises Unreadable."""
    run = _Run()
    lines = [line.rstrip() for line in clean(text)]
    for line in lines:
        run.read(line)
    if run.titles != 1 or not run.unit:
        raise Unreadable("no run of ib_write_bw is there, or more than one")
    lacking = [name for name in NEEDED if name not in run.settings]
    if lacking or run.local_addresses != run.remote_addresses or len(set(run.settings)) != len(run.settings):
        raise Unreadable(f"the run's head is cut: {lacking[0] if lacking else 'the addresses do not match'}")
    if len({len(line) for line in lines if LINE.match(line)}) != 1:
        raise Unreadable("the run is cut: its lines differ in length")
    if not run.rows or not run.closed:
        raise Unreadable("the run is cut: its table does not end with a line")
    last = text.split("\n")[-1]
    if ends_open(text) and not LINE.match(text.rstrip(" ").split("\n")[-1].rstrip()) and "CUDA" not in last:
        raise Unreadable("the output ends in the middle of a line")
    return _judge(run.rows, run.unit, expected)


class _Run:
    """What the lines of a run have told so far."""

    def __init__(self) -> None:
        self.titles = self.local_addresses = self.remote_addresses = self.columns = 0
        self.settings: List[str] = []
        self.unit = ""
        self.rows: List[PerftestRow] = []
        self.closed = False

    def read(self, line: str) -> None:
        """One line. Raises Unreadable for one that is not understood, or stands in the wrong place."""
        header, setting = HEADER.match(line), SETTING.match(line)
        note(line, "columns" if header else "a size" if ROW.match(line) else "the run's head")
        if header:
            if self.unit or not self.settings or not self.local_addresses:
                raise Unreadable("two runs are mixed up, or the run's head is missing")
            self.unit, self.columns = header.group(1), 5 + bool(header.group(3))
            if self.unit != header.group(2) or self.unit not in BITS:
                raise Unreadable(f"the bandwidth is in {header.group(2)!r}, not in Gb/sec, MB/sec or MiB/sec")
        elif TITLE.match(line):
            self.titles += 1
        elif self.unit and not self.closed and ROW.match(line):
            self.rows.append(_row(line, self.columns))
        elif LINE.match(line):
            self.closed = self.closed or bool(self.rows)
        elif setting and not self.unit:
            self.settings.append(setting.group(1))
        elif ADDRESS.match(line) and not self.unit:
            self.local_addresses += "local address" in line
            self.remote_addresses += "remote address" in line
        elif not ALLOWED.match(line):
            raise Unreadable(f"ib_write_bw prints a line that is not understood: {shown(line)}")


def _row(line: str, columns: int) -> PerftestRow:
    values = line.split()
    if len(values) != columns:
        raise Unreadable(f"ib_write_bw prints a row that is cut: {shown(line.strip())}")
    return PerftestRow(
        size=whole(values[0], "a size"),
        iterations=whole(values[1], "the iterations"),
        peak=decimal(values[2], "the peak"),
        average=decimal(values[3], "the average"),
        rate_mpps=decimal(values[4], "the message rate"),
    )


def figures(text: str) -> Dict[int, float]:
    """Bytes -> Gb/s of an output that parse() found healthy."""
    unit = next(match.group(1) for match in (HEADER.match(line.rstrip()) for line in clean(text)) if match)
    rows = [line.split() for line in clean(text) if ROW.match(line)]
    return {int(row[0]): round(float(row[3]) * BITS[unit] / 1e9, 2) for row in rows}


def _judge(rows: List[PerftestRow], unit: str, expected: Expectation) -> List[Finding]:
    for before, after in zip(rows, rows[1:]):
        if after.size != 2 * before.size:
            raise Unreadable(f"the sizes jump from {before.size} to {after.size} bytes: a row is missing")
    if len(rows) > 1 and (rows[0].size != 2 or rows[-1].size != 1 << 23):
        sizes = f"from {rows[0].size} to {rows[-1].size} bytes, not from 2 to {1 << 23}"
        raise Unreadable(f"the sizes run {sizes}: a row is missing")
    for row in rows:
        _refuse_inconsistent(row, unit)
    largest = rows[-1]
    best_gb_s = max(row.average * BITS[unit] / 1e9 for row in rows)
    if best_gb_s > FASTEST_GB_S:
        raise Unreadable(f"{best_gb_s:.0f} Gb/s are more than any port has")
    if len(rows) > 1 and largest.average * BITS[unit] / 1e9 < 0.5 * best_gb_s:
        return [bad("bandwidth", f"{largest.average:g} {unit} at {largest.size} bytes are less than half of the best")]
    return [
        good("table", f"{len(rows)} sizes, the figures agree with the message rate"),
        _bandwidth(rows, unit, expected),
    ]


def _refuse_inconsistent(row: PerftestRow, unit: str) -> None:
    """Raises Unreadable unless the bandwidth is what the message rate gives, within what was rounded."""
    if row.iterations < 1 or row.average <= 0 or row.rate_mpps <= 0 or row.peak < 0:
        raise Unreadable(f"the bandwidth at {row.size} bytes is {row.average:g}")
    made = row.rate_mpps * 1e6 * row.size * 8 / BITS[unit]
    rounded = 0.0000005 * 1e6 * row.size * 8 / BITS[unit] + 0.006
    if abs(made - row.average) > 0.01 * made + rounded:
        said = f"the average at {row.size} bytes is {row.average:g} {unit}"
        raise Unreadable(f"{said}, but the message rate gives {made:.2f}")
    if row.peak and row.peak < 0.98 * row.average:
        raise Unreadable(f"the peak at {row.size} bytes is below the average")


def _bandwidth(rows: List[PerftestRow], unit: str, expected: Expectation) -> Finding:
    asked = size_bytes(expected.message_size) if expected.message_size else None
    row = next((row for row in rows if row.size == asked), None) if asked else rows[-1]
    if row is None:
        return bad("bandwidth", f"no row of {expected.message_size}")
    figure = row.average * BITS[unit] / 1e9
    thresholds: List[Threshold] = []
    if expected.threshold_id or expected.gpu_model:
        thresholds = rows_for("ib_write_bw", expected, row.size, "Gb/s")
    if thresholds:
        return judge(round(figure, 2), thresholds, f"the average at {row.size} bytes is")
    declared = bool(expected.threshold_id or expected.gpu_model or expected.platform)
    text = f"{figure:.2f} Gb/s at {row.size} bytes, not judged: no row of the acceptance table is named"
    return Finding("bandwidth", not declared, text)
