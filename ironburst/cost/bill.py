"""The lines of a provider's bill, from a file as a cloud exports it.

Two kinds of tables, distinguished by their columns, as CSV, packed with gzip or not:

- FOCUS 1.0 to 1.2 of any provider: EffectiveCost, by ChargeCategory and PricingCategory; what its lines are for is said
  by its cloud's room. Google's export to BigQuery writes times as BigQuery does (2026-03-01 00:00:00 UTC), its view of
  before categories in small letters; Azure leaves out the seconds.
- AWS' Cost and Usage Report (aws/cur.py).

Tags show only where they are active for cost allocation (AWS: Billing console). Keys are written in several ways
(user:ironburst:pool, user_ironburst_pool): they are compared without prefix and punctuation.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ironburst.cost.aws import bill as aws
from ironburst.cost.aws import cur
from ironburst.cost.azure import bill as azure
from ironburst.cost.bill_provider import Billed
from ironburst.cost.bill_row import BillError, BillRow
from ironburst.cost.google import bill as google
from ironburst.cost.line import Kind, Line

PROVIDERS = (aws.BILL, google.BILL, azure.BILL)
_NAMED_IN = ("ProviderName", "ServiceProviderName", "PublisherName")  # 1.3 has the second for the first
_NULLS = ("NULL", "null")  # FOCUS' published sample, BigQuery's and Snowflake's exports
_FOCUS = ("ChargeCategory", "ChargePeriodStart", "ChargePeriodEnd", "BilledCost")
_FOCUS_KINDS: dict[str, Kind] = {"Tax": "tax", "Credit": "credit", "Purchase": "fee", "Adjustment": "refund"}


def billed_as(id: str) -> tuple[str, str]:
    """(provider, name) of an instance's lines, by the id that the ledger has. Empty: no provider has such ids."""
    found = ((provider.title, provider.instance(id)) for provider in PROVIDERS)
    return next((each for each in found if each[1]), ("", ""))


def read(text: Iterable[str], path: str) -> Iterator[Line]:
    """The lines of a bill, in its order. `path`: named in complaints. Raises BillError."""
    rows = csv.reader(text)
    try:
        names = [_name(each) for each in next(rows, [])]
        to_lines = _reader(names, path)
        for values in rows:
            if values:
                if len(values) != len(names):
                    has = f"{len(values)} values; the first line names {len(names)}"
                    raise BillError(f"{path}, line {rows.line_num} has {has}")
                said = ("" if value in _NULLS else value for value in values)
                yield from to_lines(BillRow(path, rows.line_num, dict(zip(names, said, strict=True))))
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


def _reader(names: list[str], path: str) -> Callable[[BillRow], Iterator[Line]]:
    if set(cur.COLUMNS) <= set(names):
        return cur.lines
    if set(_FOCUS) <= set(names):
        return _focus
    raise BillError(
        f"{path} is no known bill: its first line has {', '.join(names[:6]) or 'nothing'}; known are a Cost and Usage "
        f"Report ({', '.join(cur.COLUMNS)}) and FOCUS ({', '.join(_FOCUS)})"
    )


def _focus(row: BillRow) -> Iterator[Line]:
    """A line, and one for each credit that its cost is reduced by."""
    named = next((row.text(name) for name in _NAMED_IN if row.text(name)), "")
    provider = next((each for each in PROVIDERS if each.name.search(named)), None)
    billed = provider.billed(row) if provider else Billed(row.text("ResourceId"))
    if not billed.rate:
        row.in_dollars("BillingCurrency")
    credits = [(each.cause, row.amount(each.amount, billed.rate)) for each in billed.credits]
    units = row.units("EffectiveCost" if row.values.get("EffectiveCost") else "BilledCost", billed.rate)
    kind, pricing = _focus_kind(row, bool(credits)), row.text("PricingCategory").capitalize()
    line = Line(
        number=row.number,
        kind=kind,
        resource=billed.resource,
        usage_type=row.text("x_UsageType") or row.text("SkuMeter") or row.text("ChargeDescription"),
        from_s=(from_s := row.time("ChargePeriodStart")),
        to_s=row.time("ChargePeriodEnd"),
        hours=billed.hours,
        usd_per_hour=billed.usd_per_hour if kind == "usage" and pricing == "Standard" else None,
        units=units - sum(each for _, each in credits),
        spot=pricing == "Dynamic" or billed.spot,
        tags=row.tags("Tags" if "Tags" in row.values else "x_Labels"),
        use=billed.use,
        provider=provider.title if provider else "",
        of_gpus=billed.of_gpus,
        earlier=row.text("ChargeClass").capitalize() == "Correction"
        or (bool(row.text("BillingPeriodStart")) and from_s < row.time("BillingPeriodStart")),
    )
    yield line
    for cause, each in credits:
        yield replace(line, kind="usage", use=cause, units=each, usd_per_hour=None, hours=0.0)


def _focus_kind(row: BillRow, with_credits: bool) -> Kind:
    category = row.values["ChargeCategory"].capitalize()
    if category != "Usage":
        return _FOCUS_KINDS.get(category, "unknown")
    model = row.text("x_ConsumptionModelDescription")  # Google's flexible commitments are a price of their own
    committed = row.text("PricingCategory").capitalize() == "Committed" or "CUD" in model
    if not committed or with_credits:  # where credits are named, the line has the price before them
        return "usage"
    said = row.text("CommitmentDiscountType") or row.text("CommitmentDiscountCategory") or model
    return "savings_plan" if re.search("savings|spend|flexible", said, re.IGNORECASE) else "reserved"
