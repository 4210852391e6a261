"""AWS' Cost and Usage Report, 2.0 or legacy.

Columns and line types: AWS Data Exports, "Line item columns" (CUR 2.0) and "Line item details" (legacy); resource_tags
is a JSON map. What a Savings Plan or a Reserved Instance covers counts with its effective cost, as in AWS' own formula
of amortized cost, and a SavingsPlanNegation with 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.cost.aws.bill import BILL, id_of, use_of
from ironburst.cost.bill_row import BillRow
from ironburst.cost.line import Kind, Line

COLUMNS = ("line_item_line_item_type", "line_item_usage_start_date", "line_item_unblended_cost", "line_item_usage_type")
"""without which a table is no such report"""
_KINDS: dict[str, Kind] = {
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


def lines(row: BillRow) -> Iterator[Line]:
    """The line of a row. Raises BillError."""
    said, usage_type = row.values["line_item_line_item_type"], row.values["line_item_usage_type"]
    kind = _KINDS.get(said, "discount" if "Discount" in said else "unknown")
    effective = _EFFECTIVE.get(said, "")
    row.in_dollars("line_item_currency_code")
    units = row.units(effective if row.values.get(effective) else "line_item_unblended_cost")
    end = "line_item_usage_end_date"
    from_s = row.time("line_item_usage_start_date")
    yield Line(
        number=row.number,
        kind=kind,
        resource=id_of(row.text("line_item_resource_id")),
        usage_type=usage_type,
        from_s=from_s,
        to_s=row.time(end) if row.values.get(end) else from_s + 3600,
        hours=row.number_of("line_item_usage_amount") or 0.0,
        usd_per_hour=row.number_of("line_item_unblended_rate") if kind == "usage" else None,
        units=0 if kind == "negation" else units,
        spot="SpotUsage" in usage_type,
        tags=row.tags("resource_tags"),
        use=use_of(usage_type),
        provider=BILL.title,
    )
