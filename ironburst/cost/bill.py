"""The lines of a provider's bill, from a file as AWS exports it.

Two kinds of files, distinguished by their columns, as CSV, packed with gzip or not:

- Cost and Usage Report, 2.0 or legacy. Columns and line types: AWS Data Exports, "Line item columns" (CUR 2.0) and
  "Line item details" (legacy); resource_tags is a JSON map. What a Savings Plan or a Reserved Instance covers counts
  with its effective cost, as in AWS' own formula of amortized cost, and a SavingsPlanNegation with 0.
- FOCUS 1.0 to 1.2 of any provider: EffectiveCost, by ChargeCategory and PricingCategory; x_UsageType is AWS' own.
  Google's BigQuery view writes its categories in small letters, and times as BigQuery does (2026-03-01 00:00:00 UTC);
  Azure leaves out the seconds.

Tags show only where they are active for cost allocation (Billing console). Keys are written in several ways
(user:ironburst:pool, user_ironburst_pool): they are compared without prefix and punctuation.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Literal

from ironburst.cost.aws.resources import id_of


class BillError(ValueError):
    """A bill that can't be used: one sentence that says where, what was found and what is allowed."""


UNITS = 10**10
"""of a dollar: AWS writes ten decimals"""
Kind = Literal["usage", "savings_plan", "reserved", "negation", "discount", "credit", "refund", "tax", "fee", "unknown"]
_NULLS = ("NULL", "null")  # FOCUS' published sample, BigQuery's and Snowflake's exports
_CUR = ("line_item_line_item_type", "line_item_usage_start_date", "line_item_unblended_cost", "line_item_usage_type")
_FOCUS = ("ChargeCategory", "ChargePeriodStart", "ChargePeriodEnd", "BilledCost")
_CUR_KINDS: dict[str, Kind] = {
    "Usage": "usage",
    "SavingsPlanCoveredUsage": "savings_plan",
    "DiscountedUsage": "reserved",
    "SavingsPlanNegation": "negation",
    "Credit": "credit",
    "Refund": "refund",
    "Tax": "tax",
    "Fee": "fee",
    "RIFee": "fee",
    "SavingsPlanRecurringFee": "fee",
    "SavingsPlanUpfrontFee": "fee",
}
_EFFECTIVE = {
    "SavingsPlanCoveredUsage": "savings_plan_savings_plan_effective_cost",
    "DiscountedUsage": "reservation_effective_cost",
}
_FOCUS_KINDS: dict[str, Kind] = {"Tax": "tax", "Credit": "credit", "Purchase": "fee", "Adjustment": "refund"}


@dataclass(frozen=True)
class Line:
    """One line. `units`: what it costs, in 1e-10 USD; `hours`: of an instance, else whatever its usage is counted in;
    `usd_per_hour`: the price that the line itself names (None: it names none).
    """

    number: int
    kind: Kind
    resource: str
    usage_type: str
    from_s: float
    to_s: float
    hours: float
    usd_per_hour: float | None
    units: int
    spot: bool
    tags: Mapping[str, str]

    def tag(self, key: str) -> str:
        """The value of a tag, whose key is written as on the resource; empty: it has none."""
        return self.tags.get(plain(key), "")


def plain(key: str) -> str:
    """A tag's key as it is compared: ironburst:pool, user:ironburst:pool and user_ironburst_pool are one."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"^user[:_]", "", key.strip().lower()))


def read(text: Iterable[str], path: str) -> Iterator[Line]:
    """The lines of a bill, in its order. `path`: named in complaints. Raises BillError."""
    rows = csv.reader(text)
    try:
        names = [_name(each) for each in next(rows, [])]
        to_line = _reader(names, path)
        for values in rows:
            if values:
                if len(values) != len(names):
                    has = f"{len(values)} values; the first line names {len(names)}"
                    raise BillError(f"{path}, line {rows.line_num} has {has}")
                said = ("" if value in _NULLS else value for value in values)
                yield to_line(_Row(path, rows.line_num, dict(zip(names, said, strict=True))))
    except csv.Error as error:
        raise BillError(f"{path}, line {rows.line_num} is no CSV: {error}") from None
    except UnicodeDecodeError:
        what_to_do = "export the bill as text/csv (gzip), not as Parquet"
        raise BillError(f"{path} is no text: {what_to_do}") from None


def _name(column: str) -> str:
    """Legacy reports say lineItem/UsageStartDate for line_item_usage_start_date."""
    column = column.strip().lstrip("\ufeff")
    if "/" not in column or column.lower().startswith("resourcetags/"):
        return column
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).replace("/", "_").lower()


@dataclass(frozen=True)
class _Row:
    path: str
    number: int
    values: Mapping[str, str]

    def bad(self, name: str, allowed: str) -> BillError:
        where = f"{self.path}, line {self.number}"
        return BillError(f"{where}: {name} is {self.values.get(name)!r}; allowed is {allowed}")

    def units(self, name: str) -> int:
        """Dollars."""
        try:
            return round(Decimal(self.values[name] or "0") * UNITS)
        except (InvalidOperation, ValueError, OverflowError):
            raise self.bad(name, "a number of dollars") from None

    def number_of(self, name: str) -> float | None:
        """None: the column or the value isn't there."""
        try:
            return float(self.values[name]) if self.values.get(name) else None
        except ValueError:
            raise self.bad(name, "a number") from None

    def time(self, name: str) -> float:
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
            if isinstance(whole, list):  # Google's
                small = ({name.lower(): value for name, value in each.items()} for each in whole)
                whole = {each["key"]: each["value"] for each in small}
            return {plain(key): str(value) for key, value in {**whole, **single}.items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise self.bad(name, 'a JSON object, such as {"user_ironburst_pool": "p5"}') from None

    def in_dollars(self, name: str) -> None:
        if self.values.get(name, "USD") not in ("", "USD"):
            raise self.bad(name, "USD: the ledger's estimates are in dollars")


def _reader(names: list[str], path: str) -> Callable[[_Row], Line]:
    if set(_CUR) <= set(names):
        return _cur
    if set(_FOCUS) <= set(names):
        return _focus
    raise BillError(
        f"{path} is no known bill: its first line has {', '.join(names[:6]) or 'nothing'}; known are a Cost and Usage "
        f"Report ({', '.join(_CUR)}) and FOCUS ({', '.join(_FOCUS)})"
    )


def _cur(row: _Row) -> Line:
    said, usage_type = row.values["line_item_line_item_type"], row.values["line_item_usage_type"]
    kind = _CUR_KINDS.get(said, "discount" if "Discount" in said else "unknown")
    effective = _EFFECTIVE.get(said, "")
    row.in_dollars("line_item_currency_code")
    units = row.units(effective if row.values.get(effective) else "line_item_unblended_cost")
    end = "line_item_usage_end_date"
    from_s = row.time("line_item_usage_start_date")
    return Line(
        number=row.number,
        kind=kind,
        resource=id_of(row.values.get("line_item_resource_id", "")),
        usage_type=usage_type,
        from_s=from_s,
        to_s=row.time(end) if row.values.get(end) else from_s + 3600,
        hours=row.number_of("line_item_usage_amount") or 0.0,
        usd_per_hour=row.number_of("line_item_unblended_rate") if kind == "usage" else None,
        units=0 if kind == "negation" else units,
        spot="SpotUsage" in usage_type,
        tags=row.tags("resource_tags"),
    )


def _focus(row: _Row) -> Line:
    category, pricing = row.values["ChargeCategory"].capitalize(), row.values.get("PricingCategory", "").capitalize()
    kind = _FOCUS_KINDS.get(category, "usage" if category == "Usage" else "unknown")
    if kind == "usage" and pricing == "Committed":
        said = row.values.get("CommitmentDiscountType") or row.values.get("CommitmentDiscountCategory", "")
        kind = "savings_plan" if re.search("savings|spend", said, re.IGNORECASE) else "reserved"
    row.in_dollars("BillingCurrency")
    usage_type = row.values.get("x_UsageType") or row.values.get("SkuMeter", "")
    return Line(
        number=row.number,
        kind=kind,
        resource=id_of(row.values.get("ResourceId", "")),
        usage_type=usage_type,
        from_s=row.time("ChargePeriodStart"),
        to_s=row.time("ChargePeriodEnd"),
        hours=row.number_of("ConsumedQuantity") or row.number_of("PricingQuantity") or 0.0,
        usd_per_hour=row.number_of("ContractedUnitPrice") if kind == "usage" and pricing == "Standard" else None,
        units=row.units("EffectiveCost" if row.values.get("EffectiveCost") else "BilledCost"),
        spot=pricing == "Dynamic" or "SpotUsage" in usage_type,
        tags=row.tags("Tags"),
    )
