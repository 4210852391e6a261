"""What the lines of a Google Cloud bill are for: its FOCUS export to BigQuery, and the view of before.

An instance is several lines an hour, by SKU: its cores, memory, local SSDs and GPUs ("A3 Instance Core running in
Americas"), A4 only "A4 Nvidia B200 (1 gpu slice)". How long it ran is in its GPUs' line, which counts GPU-seconds.
ResourceId is resource.global_name, with the instance's number. Credits are inside a line's cost and named in x_Credits;
their types: "View and download the cost details of your invoice", Credit type. A line's price is before credits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from ironburst.cost.bill_provider import Billed, BillProvider, Credit
from ironburst.cost.bill_row import BillRow, lowered
from ironburst.cost.causes import INSTANCE, UNEXPLAINED

_GPU = re.compile(r"\bGPU\b|\bgpu slice\b|\bRTX (?:PRO )?6000\b")
_OF_INSTANCE = re.compile(rf"\bInstance (?:Core|Ram)\b|{_GPU.pattern}|\bSSD backed Local Storage\b")
_BY_SKU = (
    ("fee", re.compile(r"^Commitment\b")),
    ("licence", re.compile(r"^Licensing Fee\b")),
    ("disk", re.compile(r"\bPD (?:Capacity|IOPS)|Hyperdisk|Local Storage|(?:Storage|Machine) Image|Snapshot")),
    ("public_ipv4", re.compile(r"External IP Charge|Static Ip Charge")),
    ("stack", re.compile(r"(?i)\b(?:nat|vpn|interconnect|forwarding rule|load balanc\w+|private service connect)\b")),
    ("data_transfer", re.compile(r"^Network\b|Egress|Ingress|Data Transfer")),
)
_OTHER_SERVICES = re.compile(
    "(?:Secret Manager|Artifact Registry|Cloud (?:Storage|Logging|Monitoring|DNS|Pub/Sub|Key Management Service.*))$"
)
_CREDITS = {
    "COMMITTED_USAGE_DISCOUNT": "reserved",
    "COMMITTED_USAGE_DISCOUNT_DOLLAR_BASE": "savings_plan",
    "DISCOUNT": "discount",
    "FEE_UTILIZATION_OFFSET": "fee",
    "FREE_TIER": "credit",
    "PROMOTION": "credit",
    "RESELLER_MARGIN": "discount",
    "SUBSCRIPTION_BENEFIT": "discount",
    "SUSTAINED_USAGE_DISCOUNT": "discount",
}
_SECONDS = {"seconds": 1.0, "hour": 3600.0, "hours": 3600.0}
_UNUSED = re.compile(r'is_unused_reservation"\s*,\s*"value"\s*:\s*"true"', re.IGNORECASE)


def _instance(id: str) -> str:
    found = re.fullmatch(r"[^/]+/[^/]+/(\d+)", id)
    return found[1] if found else ""


def _use(row: BillRow) -> str:
    sku = row.text("ChargeDescription")
    if _UNUSED.search(row.text("x_SystemLabels") or row.text("Tags")):
        return "reserved_unused"
    if "/instances/" in row.text("ResourceId") and _OF_INSTANCE.search(sku):
        return INSTANCE
    if _OTHER_SERVICES.match(row.text("ServiceName")):
        return "stack"
    return next((use for use, pattern in _BY_SKU if pattern.search(sku)), UNEXPLAINED)


def _gpu_hours(row: BillRow) -> float:
    if not (each := _SECONDS.get(row.text("ConsumedUnit").lower())):
        raise row.bad("ConsumedUnit", " or ".join(_SECONDS))
    return (row.number_of("ConsumedQuantity") or 0.0) * each / 3600


def _credits(row: BillRow) -> Iterator[Credit]:
    try:
        for each in lowered(json.loads(row.text("x_Credits") or "[]")):
            yield Credit(_CREDITS.get(each["type"], UNEXPLAINED), Decimal(str(each["amount"])))
    except (ValueError, TypeError, KeyError, AttributeError, InvalidOperation):
        raise row.bad("x_Credits", 'a JSON list, such as [{"Type": "PROMOTION", "Amount": -1.5}]') from None


def _billed(row: BillRow) -> Billed:
    rate = "x_CurrencyConversionRate" if row.text("x_CurrencyConversionRate") else ""
    billed = Billed(
        resource=row.text("ResourceId").rpartition("/")[2],
        use=_use(row),
        spot="Preemptible" in row.text("ChargeDescription"),
        rate=rate,
        credits=tuple(_credits(row)),
    )
    if billed.use != INSTANCE or not _GPU.search(row.text("ChargeDescription")):
        return billed
    price = row.price("ContractedUnitPrice", rate)
    return billed._replace(hours=_gpu_hours(row), of_gpus=True, usd_per_hour=price)


BILL = BillProvider("Google Cloud", re.compile(r"^Google\b"), _instance, _billed)
