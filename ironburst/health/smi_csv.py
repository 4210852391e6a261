"""nvidia-smi --query-gpu=... --format=csv[,noheader][,nounits]: any columns, and the four that the gate itself asks.

Without a header the columns are those named by the expectation (`--columns`), or are known by their values; a column of
bare numbers that could be anything is refused, it could count errors.
"""

import re
from typing import List, NamedTuple, Sequence, Tuple

from .expectation import Expectation
from .findings import Finding, Unreadable
from .gpus import judge_all
from .models import NAME, UUID, fits_memory, memory_sizes
from .reading import clean, ends_open, in_sequence, is_error, not_available, note, shown, whole
from .rules import BUS_ID, Facts, held_against, known, meaning

GPU_LIST = ("nvidia-smi", "--query-gpu=index,name,driver_version,memory.total", "--format=csv,noheader,nounits")
HEADER = re.compile(r"^[a-z][A-Za-z0-9_.]*( \[[A-Za-z%/]+\])?$")
UNITS = (
    ("memory", "MiB"),
    ("power", "W"),
    ("enforced.power", "W"),
    ("utilization", "%"),
    ("fan", "%"),
    ("clocks", "MHz"),
)
DEFAULT = ("index", "name", "driver_version", "memory.total")  # the columns of GPU_LIST
CLOSED = re.compile(
    r" (MiB|W|%|MHz)$|^(GPU-.{36})$|"
    r"^(Enabled|Disabled|Default|Active|Not Active|Yes|No|None|Completed|Success|P\d|P1[0-5]|0x\w{16}|0)$"
)
ALIASES = {
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "gpu_serial": "serial",
    "gpu.power.draw.average": "power.draw.average",
    "gpu.power.draw.instant": "power.draw.instant",
    "gpu.power.requested_limit": "power.limit",
    "gpu.power.current_limit": "enforced.power.limit",
    "gpu.power.default_limit": "power.default_limit",
    "gpu.power.min_limit": "power.min_limit",
    "gpu.power.max_limit": "power.max_limit",
}
# what a column of an output without header must be, by the form of its values
FORMS = (
    ("uuid", UUID.pattern),
    ("pci.bus_id", BUS_ID.pattern),
    ("name", NAME.pattern),
    ("driver_version", r"^\d{3}\.\d{2,3}(\.\d\d)?$"),
    ("pstate", r"^P(\d|1[0-5])$"),
    ("clocks_event_reasons.active", r"^0x[0-9A-Fa-f]{16}$"),
    ("compute_mode", r"^(Default|E.*Process)$"),
    ("vbios_version", r"^\w\w\.\w\w\.\w\w\.\w\w\.\w\w$"),
    ("fabric.state", r"^(Completed|In Progress|Not Started)$"),
    ("fabric.status", r"^Success$"),
    ("serial", r"^\d{13}$"),
    ("compute_cap", r"^\d\.\d$"),
)
# the columns of one unit, in the order in which they are asked for most often
BY_UNIT = {
    "W": ("power.draw", "power.limit"),
    "%": ("utilization.gpu", "utilization.memory"),
    "MHz": ("clocks.sm", "clocks.mem", "clocks.gr"),
}


class SmiGpu(NamedTuple):
    """One GPU as GPU_LIST shows it; memory in MiB."""

    number: int
    name: str
    driver: str
    memory_mib: int


def gpu_list(text: str) -> List[SmiGpu]:
    """The GPUs in the output of GPU_LIST. Raises Unreadable, also for an unknown value ("[N/A]", "[Unknown Error]")."""
    clean(text)
    gpus: List[SmiGpu] = []
    for row in _whole_rows(_cells(text.splitlines()), len(DEFAULT)):
        number, name, driver, memory = row
        if not number.isdigit() or not memory.isdigit() or not re.match(r"^\d+(\.\d+)+$", driver):
            raise _not_understood(row)
        gpus.append(SmiGpu(int(number), name, driver, int(memory)))
    if len({gpu.number for gpu in gpus}) != len(gpus):
        raise Unreadable("nvidia-smi prints one GPU twice")
    return gpus


def parse(text: str, expected: Expectation) -> List[Finding]:
    """Findings of an output with any columns. Raises Unreadable."""
    rows = _cells([line for line in clean(text) if line.strip()])
    header = all(HEADER.match(cell) for cell in rows[0])
    if header:
        fields, rows = _fields(rows[0]), rows[1:]
        if not rows:
            raise Unreadable("nvidia-smi prints a header and no GPU")
        _whole_rows(rows, len(fields), [bool(held_against(field)) for field in fields])
    else:
        _whole_rows(rows, len(rows[0]))
        fields = list(expected.columns) or _guess(rows, expected)
    if len(fields) != len(rows[0]):
        raise Unreadable(f"{len(fields)} columns are named, {len(rows[0])} are printed")
    if ends_open(text) and not _ends_whole(rows, header or bool(expected.columns)):
        raise Unreadable("the output has no newline at its end: its last column may be cut")
    for field, column in zip(fields, zip(*rows)):
        note(f"{field}: {', '.join(column)}", meaning(field))
    gpus: List[Facts] = [{field: _with_unit(field, value) for field, value in zip(fields, row)} for row in rows]
    if not header and not {"index", "name", "uuid", "pci.bus_id", "memory.total"} & set(fields) and len(fields) < 2:
        raise Unreadable("the columns do not tell the GPUs apart: ask for index or name too")
    if "index" in fields:
        in_sequence([whole(facts["index"], "the index of a GPU") for facts in gpus], "GPU")
    if "count" in fields and any(facts["count"] != str(len(gpus)) for facts in gpus):
        raise Unreadable(f"the driver counts {gpus[0]['count']} GPUs, {len(gpus)} are listed")
    return judge_all(gpus, expected)


def _cells(lines: Sequence[str]) -> List[List[str]]:
    return [[cell.strip() for cell in line.split(",")] for line in lines]


def _whole_rows(rows: List[List[str]], columns: int, needed: Sequence[bool] = ()) -> List[List[str]]:
    """The rows as they are. Raises Unreadable for one with more or fewer columns, or an empty one that is `needed`."""
    for row in rows:
        if len(row) != columns:
            raise _not_understood(row)
        if not all(cell or not need for cell, need in zip(row, needed or [True] * columns)):
            raise Unreadable(f"nvidia-smi prints a line with an empty column: {shown(', '.join(row))}")
    return rows


def _not_understood(row: Sequence[str]) -> Unreadable:
    return Unreadable(f"nvidia-smi prints a line that is not understood: {shown(', '.join(row))}")


def _ends_whole(rows: Sequence[Sequence[str]], named: bool) -> bool:
    """Whether the last cell can't be the beginning of another. In a column with a name a cut number is no longer
    believed (memory, lanes, temperature) or harms nobody; a cut word could be another.
    """
    last = rows[-1][-1]
    number = named and re.match(r"^\d+(\.\d+)?$", last)
    return bool(CLOSED.search(last) or number) or last in [row[-1] for row in rows[:-1]]


def unit_of(field: str) -> str:
    """The unit that nvidia-smi writes behind the values of a field that is judged; "" for none."""
    return next((unit for prefix, unit in UNITS if field == prefix or field.startswith(prefix + ".")), "")


def _fields(row: Sequence[str]) -> List[str]:
    fields = []
    for cell in row:
        match = re.match(r"^(\S+)(?: \[(.*)\])?$", cell)
        field, unit = (match.group(1), match.group(2) or "") if match else (cell, "")
        field = ALIASES.get(field, field)
        if not known(field):
            raise Unreadable(f"the column {field!r} is not known")
        if held_against(field) and unit != unit_of(field):
            raise Unreadable(f"the column {field} is in {unit or 'no unit'}, not in {unit_of(field) or 'no unit'}")
        fields.append(field)
    if len(set(fields)) != len(fields):
        raise Unreadable("a column is printed twice")
    return fields


def _with_unit(field: str, value: str) -> str:
    """A value with its unit, so that it is judged as the longer forms are.
    Another unit than the field's is kept, and so refused.
    """
    unit = unit_of(field)
    if unit and re.match(r"^-?\d+(\.\d+)?$", value):
        return f"{value} {unit}"
    return value


def _guess(rows: List[List[str]], expected: Expectation) -> List[str]:
    """Names for the columns of an output without header. Raises Unreadable for a column that could be anything."""
    columns = list(zip(*rows))
    if len(columns) == len(DEFAULT) and all(value.isdigit() for value in columns[0] + columns[3]):
        return list(DEFAULT)
    names = next((column for column in columns if all(NAME.match(value) for value in column)), None)
    sizes_gb = memory_sizes(names[0], expected.models) if names else []
    fields: List[str] = []
    for column in columns:
        for value in column:
            if is_error(value):
                raise Unreadable(f"nvidia-smi prints {value!r} where a value should be")
        fields.append(
            _by_form(column, fields) or _by_unit(column, fields, sizes_gb) or _by_value(column, fields, sizes_gb)
        )
    return fields


def _spare(taken: List[str]) -> str:
    """The name of a column that is only held to have no error text."""
    return f"mem.column{len(taken)}"


def _all(column: Tuple[str, ...], form: str) -> bool:
    return all(re.match(form, value) for value in column)


def _by_form(column: Tuple[str, ...], taken: List[str]) -> str:
    for field, form in FORMS:
        if _all(column, form):
            return field if field not in taken else _spare(taken)
    return "index" if not taken and list(column) == [str(index) for index in range(len(column))] else ""


def _by_unit(column: Tuple[str, ...], taken: List[str], sizes_gb: List[int]) -> str:
    if _all(column, r"^\d+(\.\d+)? MiB$"):
        return _memory(float(column[0].split()[0]), taken, sizes_gb)
    units = [unit for unit in BY_UNIT if _all(column, rf"^\d+(\.\d+)? {unit}$")]
    return _next(units[0], taken) if units else ""


def _by_value(column: Tuple[str, ...], taken: List[str], sizes_gb: List[int]) -> str:
    values = set(column)
    if values <= {"Enabled", "Disabled"}:
        return "persistence_mode" if "persistence_mode" not in taken else _spare(taken)
    if values <= {"Yes", "No"}:
        return f"reset_status.column{len(taken)}"
    if values <= {"Active", "Not Active"}:
        return "clocks_event_reasons.hw_slowdown"
    if values == {"None"}:
        return "gpu_recovery_action"
    if values == {"0"}:
        return _spare(taken)
    is_memory = _all(column, r"^\d{4,6}$") and any(fits_memory(int(column[0]), size) for size in sizes_gb)
    if is_memory and "memory.total" not in taken:
        return "memory.total"
    if _all(column, r"^\d+\.\d\d$"):
        return _next("W", taken)
    if _all(column, r"^\d\d$") and all(18 <= int(value) <= 99 for value in column) and "temperature.gpu" not in taken:
        return "temperature.gpu"
    why = "is not available" if any(not_available(value) for value in column) else "could be anything"
    raise Unreadable(f"column {len(taken) + 1} {why} ({column[0]}): name the columns with --columns")


def _next(unit: str, taken: List[str]) -> str:
    """The field of this unit that is most likely the next."""
    fields = BY_UNIT[unit]
    kind = fields[0].split(".")[0]
    return next((field for field in fields if field not in taken), f"{kind}.column{len(taken)}")


def _memory(total_mib: float, taken: List[str], sizes_gb: List[int]) -> str:
    fits = not sizes_gb or any(fits_memory(total_mib, size) for size in sizes_gb)
    wrong_size = total_mib > 20000 and 0 < len(taken) < 4  # it is the total all the same, and is judged so
    return "memory.total" if "memory.total" not in taken and (fits or wrong_size) else f"memory.column{len(taken)}"
