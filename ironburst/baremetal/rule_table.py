"""A table of what is done in which case, run as data: the first row that holds counts. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class TableRow(Protocol):
    """`when`: fact: the word, or several with a bar between, that it must be. No fact: it always holds."""

    @property
    def when(self) -> dict[str, str]:
        """By the names of the facts."""


AnyRow = TypeVar("AnyRow", bound=TableRow)


def first(rows: Iterable[AnyRow], facts: object) -> AnyRow:
    """The row that holds; `facts` has each fact as an attribute, one word. The last row should always hold."""
    return next(
        row for row in rows if all(getattr(facts, fact) in words.split("|") for fact, words in row.when.items())
    )
