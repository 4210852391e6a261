"""Reads the data files beside this package. An empty cell is unknown: None, never zero."""

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from importlib import resources
from typing import Any

import yaml

Row = Mapping[str, str]


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
    return yaml.safe_load(_text(name)[1])


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
