"""nccl-tests (all_reduce_perf and its siblings): a whole table in GB/s whose figures agree with each other, without a
wrong value.

Judged alone: the table is whole (sizes, ranks, average), algbw is size over time, busbw is algbw times the collective's
factor, nothing is wrong. Bandwidth is judged against the acceptance table where GPU, number of ranks on one node and
message size are a row's (an 8-GPU board is known by its name; other topologies must be named with --threshold-id or
--platform). Without a row it is not judged, and a finding says so.
"""

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from . import gpus as gpu_facts
from .report import Expectation, Finding, Unreadable, bad, clean, decimal, ends_open, good, shown, whole
from .thresholds import judge, rows_for, size_bytes

PREFIX = re.compile(r"^(\[\d+,\d+\]<std(out|err)>: ?|\d+: )")
RANK = re.compile(
    r"^#\s+Rank\s+(\d+)(?:\s+Group\s+\d+)?\s+Pid\s+(\d+)\s+on\s+(\S+)\s+device\s+(\d+)\s+\[(0x)?[0-9a-fA-F:]+\]\s+(\S.*?)\s*$"
)
SETTINGS = re.compile(
    r"^# nThread (\d+) nGpus (\d+) minBytes (\d+) maxBytes (\d+) step: (\d+)\((factor|bytes)\) .*validation: (\d)"
)
ALLOWED = re.compile(
    r"^(#\s*$|# Using devices|# nccl-tests version |# Collective test (starting|concluded): \S+$|# Reducing maxBytes to \d+ "
    r"due to memory limitation|"
    r"NCCL version \S+$|\S+:\d+:\d+ \[\d+\] NCCL INFO |# Errors with asterisks|# (Blocking|Parallel Init) Enabled|# Reported "
    r"with |"
    r"Warning: Permanently added .* to the list of known hosts|# Using NCCL )"
)
FACTORS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "alltoall": 1}
TYPE_BYTES = {
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "half": 2,
    "float": 4,
    "double": 8,
    "bfloat16": 2,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "f8e4m3": 1,
    "f8e5m2": 1,
}
TOLERANCE = 0.02


class Row(NamedTuple):
    """One message size: bytes, and for out of place and in place (microseconds, algbw GB/s, busbw GB/s, wrong values or
    None).
    """

    size: int
    count: int
    kind: str
    halves: Tuple[Tuple[float, float, float, Optional[float]], ...]


def parse(text: str, expected: Expectation) -> List[Finding]:
    rows, ranks, hosts, names = [], [], [], []  # type: Tuple[List[Row], List[int], List[str], List[str]]
    settings, columns, units, average, bounds, program, ended = None, None, False, None, None, "", False
    limit = None  # type: Optional[int]
    for raw in clean(text):
        line = PREFIX.sub("", raw).rstrip()
        rank = RANK.match(line)
        if not line.strip():
            continue
        if ended and not ALLOWED.match(line):
            raise Unreadable(f"nccl-tests prints more after its end: {shown(line)}")
        if "NCCL WARN" in line:
            raise Unreadable(f"NCCL warns: {shown(line)}")
        if SETTINGS.match(line):
            if settings:
                raise Unreadable("two runs of nccl-tests are mixed up")
            settings = SETTINGS.match(line)
        elif rank:
            ranks.append(int(rank.group(1)))
            hosts.append(rank.group(3))
            names.append(rank.group(6))
        elif re.match(r"^#\s+size\s+count\s+type", line):
            columns = (
                line.replace("#wrong", "wrong")
                .replace("cputime", "time")
                .replace("error", "wrong")
                .lstrip("# ")
                .split()
            )
        elif re.match(r"^#\s+\(B\)\s+\(elements\)", line):
            units = re.sub(r"\s+", " ", line.lstrip("# ")) in ("(B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)",)
        elif re.match(r"^#\s+out-of-place\s+in-place\s*$", line):
            continue
        elif re.match(r"^# Out of bounds values\s*:", line):
            bounds = line.split(":", 1)[1].strip()
        elif re.match(r"^# Avg bus bandwidth\s*:", line):
            average = line.split(":", 1)[1].split()
            ended = True
        elif re.match(r"^\s*\d+\s+\d+\s", line) and columns:
            if not units:
                raise Unreadable("the table is not in microseconds and GB/s")
            rows.append(_row(line, columns))
        elif ALLOWED.match(line):
            program = (re.match(r"^# Collective test starting: (\S+)$", line) or [None, program])[1]  # type: ignore[index]
            reduced = re.match(r"^# Reducing maxBytes to (\d+)", line)
            limit = int(reduced.group(1)) if reduced else limit
        else:
            raise Unreadable(f"nccl-tests prints a line that is not understood: {shown(line)}")
    if not columns or not rows:
        raise Unreadable("nccl-tests prints no table")
    if average is None or bounds is None:
        raise Unreadable("the table is cut: nccl-tests has not summed it up")
    lines = [PREFIX.sub("", line).strip() for line in clean(text) if line.strip()]
    ends = [line for line in lines if line.startswith("# Collective test concluded: ")]
    if program and ends != [f"# Collective test concluded: {program}"]:
        raise Unreadable("the output is cut: nccl-tests has not concluded")
    if ends_open(text) and lines[-1] != "#" and lines[-1] not in ends:
        raise Unreadable("the output ends in the middle of a line")
    if settings is None or not ranks:
        raise Unreadable("the table is cut: the settings or the devices are missing")
    return _judge(rows, ranks, hosts, names, settings.groups(), limit, average, bounds, program, expected)


def figures(text: str) -> Dict[int, float]:
    """Bytes -> out-of-place busbw in GB/s of an output that parse() found healthy; only sizes from 1 MiB on, smaller
    ones are latency.
    """
    lines = [PREFIX.sub("", line).rstrip() for line in clean(text)]
    header = next(line for line in lines if re.match(r"^#\s+size\s+count\s+type", line))
    columns = (
        header.replace("#wrong", "wrong").replace("cputime", "time").replace("error", "wrong").lstrip("# ").split()
    )
    rows = [_row(line, columns) for line in lines if re.match(r"^\s*\d+\s+\d+\s", line)]
    return {row.size: row.halves[0][2] for row in rows if row.size >= 1 << 20}


def _row(line: str, columns: List[str]) -> Row:
    cells = line.split()
    if len(cells) == len(columns) + 1 and re.match(r"^\d{2}:\d{2}:\d{2}$", cells[-1]):
        cells.pop()
    if len(cells) == len(columns) - 1 and "redop" in columns and re.match(r"^[\d.]+$", cells[3]):
        columns = [
            name for name in columns if name != "redop"
        ]  # older versions leave it empty for collectives without a reduction
    if len(cells) != len(columns):
        raise Unreadable(f"nccl-tests prints a row that is cut: {shown(line.strip())}")
    values = list(zip(columns, cells))
    named = dict(values)
    halves = []
    for start in [position for position, name in enumerate(columns) if name == "time"]:
        if columns[start : start + 4] != ["time", "algbw", "busbw", "wrong"]:
            raise Unreadable("the table's columns are not understood")
        time, algbw, busbw, wrong = cells[start : start + 4]
        numbers = [
            float(value) if re.match(r"^\d+(\.\d+)?(e[+-]\d+)?$", value) else decimal(value, "a figure")
            for value in (time, algbw, busbw)
        ]
        halves.append((numbers[0], numbers[1], numbers[2], None if wrong == "N/A" else float(_wrong(wrong))))
    if len(halves) != 2:
        raise Unreadable("the table has not both out of place and in place")
    if named["type"] not in TYPE_BYTES:
        raise Unreadable(f"the type {named['type']!r} is not known")
    return Row(whole(named["size"], "a size"), whole(named["count"], "a count"), named["type"], tuple(halves))


def _wrong(value: str) -> str:
    if not re.match(r"^\d+(\.\d+)?(e[+-]?\d+)?$", value):
        raise Unreadable(f"the number of wrong values is {value!r}")
    return value


def _judge(
    rows: List[Row],
    ranks: List[int],
    hosts: List[str],
    names: List[str],
    settings: Tuple[str, ...],
    limit: Optional[int],
    average: List[str],
    bounds: str,
    program: str,
    expected: Expectation,
) -> List[Finding]:
    threads, per, low, high, step, kind, validation = settings
    count = len(ranks)
    if sorted(ranks) != list(range(count)) or count % (int(threads) * int(per)):
        raise Unreadable(f"a rank is missing: {count} are listed, each process has {int(threads) * int(per)}")
    if len({(host, rank) for host, rank in zip(hosts, ranks)}) != count or not all(
        gpu_facts.NAME.match(name) for name in names
    ):
        raise Unreadable("the devices are not understood")
    _sizes(rows, int(low), min(int(high), limit) if limit else int(high), int(step), kind)
    collective = next((name for name in FACTORS if name in program), None)
    findings = _consistent(
        rows, count, collective, program, float(decimal(average[0], "the average")) if average else 0.0
    )
    problems = []
    if bounds != "0 OK" or (len(average) > 1 and average[1] != "OK"):
        problems.append(f"nccl-tests reports {bounds if bounds != '0 OK' else 'average ' + ' '.join(average)}")
    wrongs = [[row.halves[half][3] for row in rows] for half in (0, 1)]
    if validation == "0":
        if any(value is not None for column in wrongs for value in column):
            raise Unreadable("the data were not checked, but some rows count wrong values")
        if expected.checked:
            problems.append("the data were not checked (-c 1)")
        else:
            findings.append(good("correctness", "not checked: the run was told not to (-c 0)"))
    else:
        if any(value is None for value in wrongs[0]) or (
            any(value is None for value in wrongs[1]) and any(value is not None for value in wrongs[1])
        ):
            raise Unreadable("some rows do not count their wrong values")
        found = sum(value or 0 for column in wrongs for value in column)
        problems += [f"{found:g} values are wrong"] if found else []
    findings += [bad("correctness", problem) for problem in problems] or [
        good("correctness", "no wrong value is reported")
    ]
    return findings + [_bandwidth(rows, names, hosts, collective, program, expected)]


def _sizes(rows: List[Row], low: int, high: int, step: int, kind: str) -> None:
    for before, after in zip(rows, rows[1:]):
        if before.size < 4096:  # small sizes are rounded to whole elements
            continue
        wanted = before.size * step if kind == "factor" else before.size + step
        if abs(after.size - wanted) > 0.01 * wanted:
            raise Unreadable(f"the sizes jump from {before.size} to {after.size} bytes: a row is missing")
    if rows[0].size > max(low, 4096) * 1.01 or (rows[0].size >= 4096 and rows[0].size < low * 0.99):
        raise Unreadable(f"the table begins at {rows[0].size} bytes, not at {low}")
    nearly = (
        high / step if kind == "factor" and rows[-1].size * step > high else high - step if kind == "bytes" else high
    )
    if not (nearly * 0.99 <= rows[-1].size <= high * 1.01):
        raise Unreadable(f"the table ends at {rows[-1].size} bytes, not at {high}")


def _consistent(rows: List[Row], count: int, collective: Optional[str], program: str, average: float) -> List[Finding]:
    ratios = []
    for row in rows:
        for time, algbw, busbw, _ in row.halves:
            if row.size >= 1 << 20 and (time <= 0 or algbw <= 0 or busbw <= 0):
                raise Unreadable(f"the bandwidth at {row.size} bytes is zero")
            made = row.size / time / 1000 if time else 0.0
            if abs(made - algbw) > max(TOLERANCE * made, 0.011):
                raise Unreadable(f"algbw at {row.size} bytes is {algbw:g}, but size over time is {made:.2f} GB/s")
            if algbw >= 1:
                ratios.append(busbw / algbw)
        if row.count and row.size % (row.count * TYPE_BYTES[row.kind]):
            raise Unreadable(f"{row.count} elements of {row.kind} are not {row.size} bytes")
    if ratios and max(ratios) - min(ratios) > 0.03 * max(ratios):
        raise Unreadable("busbw is not the same multiple of algbw in all rows")
    if ratios:
        factors = (
            [FACTORS[collective] * (count - 1) / count]
            if collective
            else [2 * (count - 1) / count, (count - 1) / count, 1.0]
        )
        if not any(abs(ratios[-1] - factor) <= 0.02 * max(factor, 0.01) for factor in factors):
            raise Unreadable(
                f"busbw is {ratios[-1]:.3f} times algbw, which {count} ranks of {program or 'no collective'} do not give"
            )
    figures = [half[2] for row in rows for half in row.halves]
    mean = sum(figures) / len(figures)
    if abs(mean - average) > max(0.01 * mean, 0.01):
        raise Unreadable(f"the average is {average:g}, but the rows give {mean:.4g}: a row is missing or damaged")
    return [good("table", f"{len(rows)} sizes up to {rows[-1].size} bytes, {count} ranks")]


def _bandwidth(
    rows: List[Row], names: List[str], hosts: List[str], collective: Optional[str], program: str, expected: Expectation
) -> Finding:
    """Out-of-place busbw at one size against the table."""
    nodes = len(set(hosts))
    asked = size_bytes(expected.message_size) if expected.message_size else None
    if expected.message_size and asked not in [row.size for row in rows]:
        return bad("bandwidth", f"the table has no row of {expected.message_size}")
    if expected.gpu_model is None and expected.threshold_id is None and len(set(names)) == 1 and nodes == 1:
        boards = [model for model in gpu_facts.find_models(names[0], expected.models) if model.board == len(names)]
        sizes = gpu_facts.memory_sizes(names[0], expected.models)
        boards = [model for model in boards if model.memory_gb in sizes] if len(boards) > 1 else boards
        expected = expected._replace(gpu_model=boards[0].name) if len(boards) == 1 else expected
    if expected.nodes is None:
        expected = expected._replace(nodes=nodes)
    test = "nccl all_reduce, one node" if nodes == 1 else "nccl all_reduce, several nodes"
    declared = bool(expected.threshold_id or expected.platform or expected.message_size)
    if program and collective != "all_reduce":
        return Finding("bandwidth", not declared, f"not judged: the acceptance table has no row for {program}")
    known = {}  # type: Dict[int, float]
    for row in rows:
        known[row.size] = row.halves[0][2]
    if expected.threshold_id:
        named = rows_for("nccl all_reduce", expected, None, "GB/s")
        size = size_bytes(named[0].message_size) or (rows[-1].size if "largest" in named[0].message_size else None)
        if size not in known:
            return bad("bandwidth", f"the table has no row of {named[0].message_size}, at which {named[0].id} judges")
        return judge(known[size], named, f"busbw at {size} bytes is")
    boards = [model.board for model in expected.models if model.name == expected.gpu_model]
    if not expected.platform and boards != [len(names)] and nodes == 1:
        known = {}  # between bridges, meshes and plain PCIe the name of the GPU does not tell the topology
    for size in [asked] if asked in known else sorted(known, reverse=True):
        found = rows_for(test, expected, size, "GB/s", len(names))
        if found:
            return judge(known[size], found, f"busbw at {size} bytes is")
    return Finding(
        "bandwidth",
        not declared,
        "not judged: the acceptance table has no row for this GPU, number of ranks and message size",
    )
