"""Reads the data files beside this package. An empty cell is unknown: None, never zero."""

import csv
import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from importlib import resources
from typing import Any, TypeVar

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # several times as fast
Row = Mapping[str, str]
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Table:
    """Rows of one data file; `as_of` is its date (None: the source states none), `source` where it was read."""

    rows: tuple[Row, ...]
    as_of: date | None
    source: str


def _text(name: str) -> tuple[dict[str, str], str]:
    """The `# key: value` lines at the head of a data file, and the rest of it."""
    lines = resources.files(__package__).joinpath("data", name).read_text("utf-8").splitlines(keepends=True)
    head = {}
    while lines and lines[0].startswith("#"):
        key, _, value = lines.pop(0)[1:].partition(":")
        head[key.strip()] = value.strip()
    return head, "".join(lines)


@functools.cache
def table(name: str) -> Table:
    """The CSV file `name` of the data folder."""
    head, text = _text(name)
    as_of = date.fromisoformat(head["as_of"]) if head["as_of"] else None
    return Table(tuple(csv.DictReader(text.splitlines())), as_of, head["source"])


def document(name: str) -> Any:
    """The YAML file `name` of the data folder."""
    return yaml.load(_text(name)[1], LOADER)


def text(row: Row, column: str) -> str | None:
    """The cell, or None where it is empty."""
    return row[column].strip() or None


def integer(row: Row, column: str) -> int | None:
    """The cell as a whole number, or None where it is empty."""
    value = text(row, column)
    return None if value is None else int(value)


def number(row: Row, column: str) -> float | None:
    """The cell as a number, or None where it is empty."""
    value = text(row, column)
    return None if value is None else float(value)


def items(row: Row, column: str) -> tuple[str, ...]:
    """The cell's parts, which semicolons divide."""
    return tuple(part for part in row[column].split(";") if part)


_CELLS: Mapping[object, Callable[[Row, str], object]] = {
    str: lambda row, column: row[column],
    str | None: text,
    int: lambda row, column: int(row[column]),
    int | None: integer,
    float | None: number,
    tuple[str, ...]: items,
}
"""type of a field: how its cell is read"""


def filled(kind: type[Entry], row: Row, **given: object) -> Entry:
    """A dataclass of the catalogue from a row: each field has the column of its name, unless it is `given`."""
    assert dataclasses.is_dataclass(kind)
    columns = [field for field in dataclasses.fields(kind) if field.name not in given]
    return kind(**given, **{field.name: _CELLS[field.type](row, field.name) for field in columns})
