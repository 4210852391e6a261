"""nvidia-smi --query-gpu=... --format=csv[,noheader][,nounits].

Without a header the columns are those named by the expectation (`--columns`), or are told by their values; a column of
bare numbers that could be anything is refused, it could count errors.
"""

import re
from typing import List, Optional, Sequence, Tuple

from .gpus import BUS_ID, NAME, UUID, judge_all, known, memory_sizes
from .report import (
    Expectation,
    Finding,
    Unreadable,
    clean,
    ends_open,
    in_sequence,
    is_error,
    not_available,
    shown,
    whole,
)

HEADER = re.compile(r"^[a-z][A-Za-z0-9_.]*( \[(MiB|W|%|MHz|us|KB/s|C)\])?$")
UNITS = (
    ("memory", "MiB"),
    ("power", "W"),
    ("enforced.power", "W"),
    ("utilization", "%"),
    ("fan", "%"),
    ("clocks", "MHz"),
    ("protected_memory", "MiB"),
)
DEFAULT = ("index", "name", "driver_version", "memory.total")  # what the gate itself asks
CLOSED = re.compile(
    r" (MiB|W|%|MHz)$|^(Enabled|Disabled|Default|Active|Not Active|Yes|No|None|Completed|Success|P\d|P1[0-5]|0x\w{16}|0)$|"
    r"^(GPU-.{36})$"
)
ALIASES = {
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "power.draw.average": "power.draw.average",
}


def unit_of(field: str) -> str:
    if re.match(r"^clocks_|^power\.management|^clocks_event", field):
        return ""
    return next((unit for prefix, unit in UNITS if field == prefix or field.startswith(prefix + ".")), "")


def parse(text: str, expected: Expectation) -> List[Finding]:
    rows = [[cell.strip() for cell in line.split(",")] for line in clean(text) if line.strip()]
    header = all(HEADER.match(cell) for cell in rows[0]) and not any(cell in ("0",) for cell in rows[0])
    fields = None  # type: Optional[List[str]]
    if header:
        fields, rows = _fields(rows[0]), rows[1:]
        if not rows:
            raise Unreadable("nvidia-smi prints a header and no GPU")
    for row in rows:
        if len(row) != len(fields or rows[0]):
            raise Unreadable(f"nvidia-smi prints a line that is not understood: {shown(', '.join(row))}")
        for cell in row:
            if not cell:
                raise Unreadable(f"nvidia-smi prints a line with an empty column: {shown(', '.join(row))}")
    if fields is None:
        fields = list(expected.columns) if expected.columns else _guess(rows, expected)
        if len(fields) != len(rows[0]):
            raise Unreadable(f"{len(fields)} columns are named, {len(rows[0])} are printed")
    # In a column with a name a cut number is no longer believed (memory, lanes, temperature) or harms nobody; a cut
    # word could be another
    last, named = rows[-1][-1], header or bool(expected.columns)
    closed = (
        CLOSED.search(last) or (named and re.match(r"^\d+(\.\d+)?$", last)) or last in [row[-1] for row in rows[:-1]]
    )
    if ends_open(text) and not closed:
        raise Unreadable("the output has no newline at its end: its last column may be cut")
    gpus = []
    for row in rows:
        facts = {}  # type: Dict[str, str]
        for field, value in zip(fields, row):
            facts[field] = _with_unit(field, value)
        gpus.append(facts)
    if not {"index", "name", "uuid", "pci.bus_id", "memory.total"} & set(fields) and len(fields) < 2:
        raise Unreadable("the columns do not tell the GPUs apart: ask for index or name too")
    if "index" in fields:
        in_sequence([whole(facts["index"], "the index of a GPU") for facts in gpus], "GPU")
    if "count" in fields and any(facts["count"] != str(len(gpus)) for facts in gpus):
        raise Unreadable(f"the driver counts {gpus[0]['count']} GPUs, {len(gpus)} are listed")
    return judge_all(gpus, expected)


def _fields(row: Sequence[str]) -> List[str]:
    fields = []
    for cell in row:
        match = re.match(r"^(\S+)(?: \[(.*)\])?$", cell)
        field, unit = (match.group(1), match.group(2) or "") if match else (cell, "")
        field = ALIASES.get(field, field)
        if not known(field):
            raise Unreadable(f"the column {field!r} is not known")
        if unit != unit_of(field):
            raise Unreadable(f"the column {field} is in {unit or 'no unit'}, not in {unit_of(field) or 'no unit'}")
        fields.append(field)
    if len(set(fields)) != len(fields):
        raise Unreadable("a column is printed twice")
    return fields


def _with_unit(field: str, value: str) -> str:
    """A value with its unit, so that it is judged as the longer forms are. Another unit than the field's is kept, and
    so refused.
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
    fields = []  # type: List[str]
    for position, column in enumerate(columns):
        fields.append(_name(position, column, names, fields, expected))
    return fields


def _name(
    position: int, column: Tuple[str, ...], names: Optional[Tuple[str, ...]], taken: List[str], expected: Expectation
) -> str:
    for value in column:
        if is_error(value):
            raise Unreadable(f"nvidia-smi prints {value!r} where a value should be")
    forms = (
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
    for field, form in forms:
        if all(re.match(form, value) for value in column):
            return field if field not in taken else f"mem.column{position}"
    if position == 0 and [value for value in column] == [str(index) for index in range(len(column))]:
        return "index"
    for unit, field in (("MiB", "memory"), ("W", "power"), ("%", "utilization"), ("MHz", "clocks")):
        if all(re.match(r"^\d+(\.\d+)? %s$" % unit, value) for value in column):
            return _by_unit(field, position, column, names, taken, expected)
    if all(value in ("Enabled", "Disabled") for value in column):
        return "persistence_mode" if "persistence_mode" not in taken else f"mem.column{position}"
    if all(value in ("Yes", "No") for value in column):
        return "reset_status.column%d" % position
    if all(value in ("Active", "Not Active") for value in column):
        return "clocks_event_reasons.hw_slowdown"
    if all(value == "None" for value in column):
        return "gpu_recovery_action"
    if all(value == "0" for value in column):
        return f"mem.column{position}"
    if all(re.match(r"^\d{4,6}$", value) for value in column) and names and "memory.total" not in taken:
        sizes = memory_sizes(names[0], expected.models)
        if any(abs(int(column[0]) / 1024 - size) <= 0.1 * size for size in sizes):
            return "memory.total"
    if all(re.match(r"^\d+\.\d\d$", value) for value in column):
        return _by_unit("power", position, column, names, taken, expected)
    if (
        all(re.match(r"^\d\d$", value) and 18 <= int(value) <= 99 for value in column)
        and "temperature.gpu" not in taken
    ):
        return "temperature.gpu"
    missing = [value for value in column if not_available(value)]
    raise Unreadable(
        f"column {position + 1} {'is not available' if missing else 'could be anything'} ({column[0]}): name the columns with "
        f"--columns"
    )


def _by_unit(
    kind: str, position: int, column: Tuple[str, ...], names: object, taken: List[str], expected: Expectation
) -> str:
    order = {
        "memory": ("memory.total",),
        "power": ("power.draw", "power.limit"),
        "utilization": ("utilization.gpu", "utilization.memory"),
        "clocks": ("clocks.sm", "clocks.mem", "clocks.gr"),
    }[kind]
    if kind == "memory":
        sizes = memory_sizes(names[0], expected.models) if names else []  # type: ignore
        total = float(column[0].split()[0]) / 1024
        if "memory.total" not in taken and (not sizes or any(abs(total - size) <= 0.1 * size for size in sizes)):
            return "memory.total"
        if (
            sizes
            and "memory.total" not in taken
            and float(column[0].split()[0]) > 20000
            and position
            and len(taken) < 4
        ):
            return "memory.total"  # the wrong size, and judged so
        return f"memory.column{position}"
    return next((field for field in order if field not in taken), f"{kind}.column{position}")
