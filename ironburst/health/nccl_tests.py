"""nccl-tests (all_reduce_perf and its siblings): a whole table in GB/s whose figures
agree with each other, without a wrong value.

Judged alone: the table is whole (sizes, ranks, average), algbw is size over time, busbw is algbw times the collective's
factor, nothing is wrong. Bandwidth is judged against the acceptance table where GPU, number of ranks on one node and
message size are a row's (an 8-GPU board is known by its name; other topologies must be named with --threshold-id or
--platform). Without a row it is not judged, and a finding says so.
"""

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from .expectation import Expectation
from .findings import Finding, Unreadable, bad, good, judged
from .models import NAME, find_models, memory_sizes, named_as_declared
from .reading import clean, decimal, ends_open, note, shown, whole
from .thresholds import judge, rows_for, size_bytes

PREFIX = re.compile(r"^(\[\d+,\d+\]<std(out|err)>: ?|\d+: )")
RANK = re.compile(
    r"^#\s+Rank\s+(\d+)(?:\s+Group\s+\d+)?\s+Pid\s+(\d+)\s+on\s+(\S+)\s+device\s+(\d+)"
    r"\s+\[(0x)?[0-9a-fA-F:]+\]\s+(\S.*?)\s*$"
)
SETTINGS = re.compile(
    r"^# nThread (\d+) nGpus (\d+) minBytes (\d+) maxBytes (\d+) step: (\d+)\((factor|bytes)\) .*validation: (\d)"
)
ALLOWED = re.compile(
    r"^(#\s*$|# Using devices|# nccl-tests version |# Collective test (starting|concluded): \S+$|"
    r"# Reducing maxBytes to \d+ due to memory limitation|NCCL version \S+$|\S+:\d+:\d+ \[\d+\] NCCL INFO |"
    r"# Errors with asterisks|# (Blocking|Parallel Init) Enabled|# Reported with |"
    r"Warning: Permanently added .* to the list of known hosts|# Using NCCL )"
)
HEADER = re.compile(r"^#\s+size\s+count\s+type")
ROW = re.compile(r"^\s*\d+\s+\d+\s")
UNITS = "(B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)"
NUMBER = re.compile(r"^\d+(\.\d+)?(e[+-]\d+)?$")
FACTORS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "alltoall": 1}
BYTES_OF_TYPES = {
    1: "int8 uint8 fp8_e4m3 fp8_e5m2 f8e4m3 f8e5m2",
    2: "half bfloat16",
    4: "int32 uint32 float",
    8: "int64 uint64 double",
}
TYPE_BYTES = {name: size for size, names in BYTES_OF_TYPES.items() for name in names.split()}
TOLERANCE = 0.02


class Half(NamedTuple):
    """Out of place or in place: microseconds, GB/s, GB/s, and wrong values (None: not counted)."""

    time: float
    algbw: float
    busbw: float
    wrong: Optional[float]


class NcclRow(NamedTuple):
    """One message size: bytes, elements of a type, what they are reduced with ("sum", "none"), out of place and in
    place.
    """

    size: int
    elements: int
    kind: str
    operation: str
    halves: Tuple[Half, ...]


class Rank(NamedTuple):
    """One GPU that took part."""

    number: int
    host: str
    gpu: str


class Settings(NamedTuple):
    """How the run was started: bytes from low to high by steps of `kind` ("factor" or "bytes")."""

    gpus_of_a_process: int
    low: int
    high: int
    step: int
    kind: str
    validated: bool


class NcclRun(NamedTuple):
    """A whole output. average and bounds: the words of its summary; program "": an old version does not name it."""

    settings: Settings
    ranks: List[Rank]
    rows: List[NcclRow]
    program: str
    average: List[str]
    bounds: str

    @property
    def collective(self) -> Optional[str]:
        """all_reduce, all_gather ..., where the program is known, or its factor shows that it is no all_reduce."""
        named = next((name for name in FACTORS if name in self.program), None)
        return named or ("another collective" if not self.program and not self._may_be_all_reduce else None)

    @property
    def _may_be_all_reduce(self) -> bool:
        """By busbw over algbw, and by having an operation to reduce with."""
        ratios = [half.busbw / half.algbw for row in self.rows for half in row.halves if half.algbw >= 1]
        wanted = FACTORS["all_reduce"] * (len(self.ranks) - 1) / len(self.ranks)
        near = not ratios or abs(ratios[-1] - wanted) <= TOLERANCE * max(wanted, 0.01)
        return near and all(row.operation not in ("", "none") for row in self.rows)

    @property
    def nodes(self) -> int:
        """How many hosts took part."""
        return len({rank.host for rank in self.ranks})


def parse(text: str, expected: Expectation) -> List[Finding]:
    """Findings of one run. Raises Unreadable."""
    reader = _Reader()
    for raw in clean(text):
        line = PREFIX.sub("", raw).rstrip()
        if line.strip():
            reader.read(line)
    run = reader.run(text)
    _refuse_missing_ranks(run)
    _refuse_missing_sizes(run.rows, run.settings)
    models = named_as_declared((rank.gpu for rank in run.ranks), expected)
    return [*models, *_consistent(run), *_correctness(run, expected), _bandwidth(run, expected)]


class _Reader:
    """What the lines have told so far."""

    def __init__(self) -> None:
        self.settings: Optional[Settings] = None
        self.ranks: List[Rank] = []
        self.columns: List[str] = []
        self.units = False
        self.rows: List[NcclRow] = []
        self.limit: Optional[int] = None
        self.program = ""
        self.average: Optional[List[str]] = None
        self.bounds: Optional[str] = None

    def read(self, line: str) -> None:
        """One line. Raises Unreadable for one that is not understood, or stands in the wrong place."""
        rank, settings = RANK.match(line), SETTINGS.match(line)
        kinds = {"settings": settings, "a rank": rank, "columns": HEADER.match(line), "a size": ROW.match(line)}
        note(line, next((kind for kind, match in kinds.items() if match), "around the table"))
        if self.average is not None and not ALLOWED.match(line):
            raise Unreadable(f"nccl-tests prints more after its end: {shown(line)}")
        if "NCCL WARN" in line:
            raise Unreadable(f"NCCL warns: {shown(line)}")
        if settings:
            if self.settings:
                raise Unreadable("two runs of nccl-tests are mixed up")
            threads, gpus, low, high, step, kind, validation = settings.groups()
            gpus_of_a_process = int(threads) * int(gpus)
            self.settings = Settings(gpus_of_a_process, int(low), int(high), int(step), kind, validation != "0")
        elif rank:
            self.ranks.append(Rank(int(rank.group(1)), rank.group(3), rank.group(6)))
        elif HEADER.match(line):
            self.columns = _columns(line)
        elif re.match(r"^#\s+\(B\)\s+\(elements\)", line):
            self.units = re.sub(r"\s+", " ", line.lstrip("# ")) == UNITS
        elif re.match(r"^#\s+out-of-place\s+in-place\s*$", line):
            pass
        elif ROW.match(line) and self.columns:
            if not self.units:
                raise Unreadable("the table is not in microseconds and GB/s")
            self.rows.append(_row(line, self.columns))
        else:
            self._around_the_table(line)

    def _around_the_table(self, line: str) -> None:
        started = re.match(r"^# Collective test starting: (\S+)$", line)
        reduced = re.match(r"^# Reducing maxBytes to (\d+)", line)
        if re.match(r"^# Out of bounds values\s*:", line):
            self.bounds = line.split(":", 1)[1].strip()
        elif re.match(r"^# Avg bus bandwidth\s*:", line):
            self.average = line.split(":", 1)[1].split()
        elif not ALLOWED.match(line):
            raise Unreadable(f"nccl-tests prints a line that is not understood: {shown(line)}")
        self.program = started.group(1) if started else self.program
        self.limit = int(reduced.group(1)) if reduced else self.limit

    def run(self, text: str) -> NcclRun:
        """The whole run. Raises Unreadable for one that is cut."""
        if not self.columns or not self.rows:
            raise Unreadable("nccl-tests prints no table")
        if self.average is None or self.bounds is None:
            raise Unreadable("the table is cut: nccl-tests has not summed it up")
        lines = [PREFIX.sub("", line).strip() for line in clean(text) if line.strip()]
        ends = [line for line in lines if line.startswith("# Collective test concluded: ")]
        if self.program and ends != [f"# Collective test concluded: {self.program}"]:
            raise Unreadable("the output is cut: nccl-tests has not concluded")
        if ends_open(text) and lines[-1] != "#" and lines[-1] not in ends:
            raise Unreadable("the output ends in the middle of a line")
        if self.settings is None or not self.ranks:
            raise Unreadable("the table is cut: the settings or the devices are missing")
        high = min(self.settings.high, self.limit) if self.limit else self.settings.high
        settings = self.settings._replace(high=high)
        return NcclRun(settings, self.ranks, self.rows, self.program, self.average, self.bounds)


def figures(text: str) -> Dict[int, float]:
    """Bytes -> out-of-place busbw in GB/s of an output that parse() found healthy;
    only sizes from 1 MiB on, smaller ones are latency.
    """
    lines = [PREFIX.sub("", line).rstrip() for line in clean(text)]
    columns = _columns(next(line for line in lines if HEADER.match(line)))
    rows = [_row(line, columns) for line in lines if ROW.match(line)]
    return {row.size: row.halves[0].busbw for row in rows if row.size >= 1 << 20}


def _columns(header: str) -> List[str]:
    """Names of the columns, by one name in all versions."""
    return header.replace("#wrong", "wrong").replace("cputime", "time").replace("error", "wrong").lstrip("# ").split()


def _row(line: str, columns: Sequence[str]) -> NcclRow:
    cells = line.split()
    if len(cells) == len(columns) + 1 and re.match(r"^\d{2}:\d{2}:\d{2}$", cells[-1]):
        cells.pop()
    if len(cells) == len(columns) - 1 and "redop" in columns and re.match(r"^[\d.]+$", cells[3]):
        # older versions leave it empty for collectives without a reduction
        columns = [name for name in columns if name != "redop"]
    if len(cells) != len(columns):
        raise Unreadable(f"nccl-tests prints a row that is cut: {shown(line.strip())}")
    named = dict(zip(columns, cells))
    halves: List[Half] = []
    for start in [position for position, name in enumerate(columns) if name == "time"]:
        if list(columns[start : start + 4]) != ["time", "algbw", "busbw", "wrong"]:
            raise Unreadable("the table's columns are not understood")
        time, algbw, busbw = (_number(value) for value in cells[start : start + 3])
        halves.append(Half(time, algbw, busbw, _wrong(cells[start + 3])))
    if len(halves) != 2:
        raise Unreadable("the table has not both out of place and in place")
    if named["type"] not in TYPE_BYTES:
        raise Unreadable(f"the type {named['type']!r} is not known")
    size, count = whole(named["size"], "a size"), whole(named["count"], "a count")
    return NcclRow(size, count, named["type"], named.get("redop", ""), tuple(halves))


def _number(value: str) -> float:
    return float(value) if NUMBER.match(value) else decimal(value, "a figure")


def _wrong(value: str) -> Optional[float]:
    if value == "N/A":
        return None
    if not re.match(r"^\d+(\.\d+)?(e[+-]?\d+)?$", value):
        raise Unreadable(f"the number of wrong values is {value!r}")
    return float(value)


def _refuse_missing_ranks(run: NcclRun) -> None:
    ranks, of_a_process = run.ranks, run.settings.gpus_of_a_process
    if sorted(rank.number for rank in ranks) != list(range(len(ranks))) or len(ranks) % of_a_process:
        raise Unreadable(f"a rank is missing: {len(ranks)} are listed, each process has {of_a_process}")
    if not all(NAME.match(rank.gpu) for rank in ranks):
        raise Unreadable("the devices are not understood")


def _refuse_missing_sizes(rows: Sequence[NcclRow], settings: Settings) -> None:
    low, high, step, by_factor = settings.low, settings.high, settings.step, settings.kind == "factor"
    for before, after in zip(rows, rows[1:]):
        if before.size < 4096:  # small sizes are rounded to whole elements
            continue
        wanted = before.size * step if by_factor else before.size + step
        if abs(after.size - wanted) > 0.01 * wanted:
            raise Unreadable(f"the sizes jump from {before.size} to {after.size} bytes: a row is missing")
    first, last = rows[0].size, rows[-1].size
    if first > max(low, 4096) * 1.01 or (first >= 4096 and first < low * 0.99):
        raise Unreadable(f"the table begins at {first} bytes, not at {low}")
    nearly = float(high)
    if by_factor and last * step > high:
        nearly = high / step
    elif not by_factor:
        nearly = high - step
    if not (nearly * 0.99 <= last <= high * 1.01):
        raise Unreadable(f"the table ends at {last} bytes, not at {high}")


def _consistent(run: NcclRun) -> List[Finding]:
    """Raises Unreadable unless the figures agree with each other and with the average."""
    average = decimal(run.average[0], "the average") if run.average else 0.0
    ratios: List[float] = []
    for row in run.rows:
        for half in row.halves:
            if row.size >= 1 << 20 and (half.time <= 0 or half.algbw <= 0 or half.busbw <= 0):
                raise Unreadable(f"the bandwidth at {row.size} bytes is zero")
            made = row.size / half.time / 1000 if half.time else 0.0
            if abs(made - half.algbw) > max(TOLERANCE * made, 0.011):
                said = f"algbw at {row.size} bytes is {half.algbw:g}"
                raise Unreadable(f"{said}, but size over time is {made:.2f} GB/s")
            if half.algbw >= 1:
                ratios.append(half.busbw / half.algbw)
        if row.elements and row.size % (row.elements * TYPE_BYTES[row.kind]):
            raise Unreadable(f"{row.elements} elements of {row.kind} are not {row.size} bytes")
    if ratios:
        _refuse_other_factor(ratios, run)
    busbws = [half.busbw for row in run.rows for half in row.halves]
    mean = sum(busbws) / len(busbws)
    if abs(mean - average) > max(0.01 * mean, 0.01):
        raise Unreadable(f"the average is {average:g}, but the rows give {mean:.4g}: a row is missing or damaged")
    return [good("table", f"{len(run.rows)} sizes up to {run.rows[-1].size} bytes, {len(run.ranks)} ranks")]


def _refuse_other_factor(ratios: Sequence[float], run: NcclRun) -> None:
    """Raises Unreadable unless busbw is algbw times the collective's factor."""
    if max(ratios) - min(ratios) > 0.03 * max(ratios):
        raise Unreadable("busbw is not the same multiple of algbw in all rows")
    count = len(run.ranks)
    share = (count - 1) / count
    factors = [FACTORS[run.collective] * share] if run.collective in FACTORS else [2 * share, share, 1.0]
    if not any(abs(ratios[-1] - factor) <= 0.02 * max(factor, 0.01) for factor in factors):
        what = f"{count} ranks of {run.program or 'no collective'}"
        raise Unreadable(f"busbw is {ratios[-1]:.3f} times algbw, which {what} do not give")


def _correctness(run: NcclRun, expected: Expectation) -> List[Finding]:
    """Whether the data were right, or were not checked and need not be."""
    not_checked: List[Finding] = []
    problems: List[str] = []
    if run.bounds != "0 OK":
        problems.append(f"nccl-tests reports {run.bounds}")
    elif len(run.average) > 1 and run.average[1] != "OK":
        problems.append(f"nccl-tests reports average {' '.join(run.average)}")
    out_of_place, in_place = ([row.halves[half].wrong for row in run.rows] for half in (0, 1))
    wrongs = [wrong for wrong in out_of_place + in_place if wrong is not None]
    if not run.settings.validated:
        if wrongs:
            raise Unreadable("the data were not checked, but some rows count wrong values")
        if expected.checked:
            problems.append("the data were not checked (-c 1)")
        else:
            not_checked.append(good("correctness", "not checked: the run was told not to (-c 0)"))
    else:
        if None in out_of_place or (None in in_place and any(wrong is not None for wrong in in_place)):
            raise Unreadable("some rows do not count their wrong values")
        problems += [f"{sum(wrongs):g} values are wrong"] if sum(wrongs) else []
    return not_checked + judged("correctness", problems, "no wrong value is reported")


def _bandwidth(run: NcclRun, expected: Expectation) -> Finding:
    """Out-of-place busbw at one size against the table."""
    busbw = {row.size: row.halves[0].busbw for row in run.rows}
    asked = size_bytes(expected.message_size) if expected.message_size else None
    if expected.message_size and asked not in busbw:
        return bad("bandwidth", f"the table has no row of {expected.message_size}")
    declared = bool(expected.threshold_id or expected.platform or expected.message_size)
    if (run.program or run.collective) and run.collective != "all_reduce":
        what = run.program or run.collective
        return Finding("bandwidth", not declared, f"not judged: the acceptance table has no row for {what}")
    if expected.gpu_model is None:
        expected = expected._replace(gpu_model=_model_of_board(run, expected))
    if expected.nodes is None:
        expected = expected._replace(nodes=run.nodes)
    if expected.threshold_id:
        named = rows_for("nccl all_reduce", expected, None, "GB/s")
        at = named[0].message_size
        size = size_bytes(at) or (run.rows[-1].size if "largest" in at else None)
        if size is None or size not in busbw:
            return bad("bandwidth", f"the table has no row of {at}, at which {named[0].id} judges")
        return judge(busbw[size], named, f"busbw at {size} bytes is")
    test = "nccl all_reduce, one node" if run.nodes == 1 else "nccl all_reduce, several nodes"
    boards = [model.board for model in expected.models if model.name == expected.gpu_model]
    if not expected.platform and boards != [len(run.ranks)] and run.nodes == 1:
        busbw = {}  # between bridges, meshes and plain PCIe the name of the GPU does not tell the topology
    for size in sorted(busbw, reverse=True):
        if asked not in (None, size):
            continue
        thresholds = rows_for(test, expected, size, "GB/s", len(run.ranks))
        if thresholds:
            return judge(busbw[size], thresholds, f"busbw at {size} bytes is")
    text = "not judged: the acceptance table has no row for this GPU, number of ranks and message size"
    return Finding("bandwidth", not declared, text)


def _model_of_board(run: NcclRun, expected: Expectation) -> Optional[str]:
    """The model whose board has as many GPUs as there are ranks, where nothing is declared and only one has."""
    names = {rank.gpu for rank in run.ranks}
    if expected.threshold_id is not None or len(names) != 1 or run.nodes != 1:
        return None
    name = run.ranks[0].gpu
    boards = [model for model in find_models(name, expected.models) if model.board == len(run.ranks)]
    if len(boards) > 1:
        boards = [model for model in boards if model.memory_gb in memory_sizes(name, expected.models)]
    return boards[0].name if len(boards) == 1 else None
