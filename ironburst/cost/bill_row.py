"""One row of a bill's table, and how its cells are read. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

UNITS = 10**10
"""of a dollar: AWS writes ten decimals"""


class BillError(ValueError):
    """A bill that can't be used: one sentence that says where, what was found and what is allowed."""


def plain(key: str) -> str:
    """A tag's key as it is compared: ironburst:pool, user:ironburst:pool and user_ironburst_pool are one."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"^user[:_]", "", key.strip().lower()))


@dataclass(frozen=True)
class BillRow:
    """`values`: by column; empty where the file says NULL."""

    path: str
    number: int
    values: Mapping[str, str]

    def text(self, name: str) -> str:
        """Empty: the column or the value isn't there."""
        return self.values.get(name, "")

    def bad(self, name: str, allowed: str) -> BillError:
        """What is wrong with a cell."""
        where = f"{self.path}, line {self.number}"
        return BillError(f"{where}: {name} is {self.values.get(name)!r}; allowed is {allowed}")

    def units(self, name: str, rate: str = "") -> int:
        """An amount in 1e-10 USD. `rate`: the column that says how many of the bill's currency a dollar is; empty: it
        is in dollars.
        """
        try:
            return self.amount(Decimal(self.values[name] or "0"), rate)
        except (InvalidOperation, ValueError, OverflowError):
            raise self.bad(name, "a number of dollars") from None

    def amount(self, value: Decimal, rate: str) -> int:
        """An amount of another cell's, as `units`."""
        return round(value / self._rate(rate) * UNITS)

    def in_dollars(self, name: str) -> None:
        """Raises BillError for another currency."""
        if self.values.get(name, "USD") not in ("", "USD"):
            raise self.bad(name, "USD: the ledger's estimates are in dollars")

    def _rate(self, name: str) -> Decimal:
        try:
            found = Decimal(self.values[name]) if name else Decimal(1)
            if found > 0:
                return found
        except InvalidOperation:
            pass
        raise self.bad(name, "how many of the bill's currency a dollar is")

    def price(self, name: str, rate: str = "") -> float | None:
        """A price in USD; None: the column or the value isn't there."""
        found = self.number_of(name)
        return None if found is None else found / float(self._rate(rate))

    def number_of(self, name: str) -> float | None:
        """None: the column or the value isn't there."""
        try:
            return float(self.values[name]) if self.values.get(name) else None
        except ValueError:
            raise self.bad(name, "a number") from None

    def time(self, name: str) -> float:
        """Seconds since 1970; without a zone it is UTC."""
        try:
            moment = datetime.fromisoformat(self.values[name].strip().removesuffix(" UTC"))
        except ValueError:
            raise self.bad(name, "a time such as 2026-03-01T12:00:00Z") from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    def tags(self, name: str) -> dict[str, str]:
        """Of a column with a JSON map, and of columns of single tags."""
        single = {
            column.partition("/")[2] or column.removeprefix("resource_tags_"): value
            for column, value in self.values.items()
            if column.lower().startswith(("resourcetags/", "resource_tags_")) and value
        }
        try:
            text = self.values.get(name) or "{}"
            whole = json.loads(text if text[0] in "{[" else f"{{{text}}}")  # Azure's older exports leave out the braces
            if isinstance(whole, list):  # Google's: a resource's own come first, what it inherits last
                whole = {each["key"]: each["value"] for each in reversed(lowered(whole))}
            return {plain(key): str(value) for key, value in {**whole, **single}.items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise self.bad(name, 'a JSON object, such as {"user_ironburst_pool": "p5"}') from None


def lowered(records: list[dict[str, str]]) -> list[dict[str, str]]:
    """Records of BigQuery with their fields' names in small letters: the view and the export differ."""
    return [{name.lower(): value for name, value in each.items()} for each in records]
