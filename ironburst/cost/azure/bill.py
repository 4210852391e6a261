"""What the lines of an Azure bill are for: Cost Management's exports in FOCUS.

One line a machine and day, with its hours. EffectiveCost is the amortized cost (a reservation's share), BilledCost the
actual one. x_SkuMeterCategory is the meter's category as in Azure's price sheet; a machine's data transfer has the
machine as its resource and the category Bandwidth. Ids are written in any case.
All that a launch makes is in its own resource group, so lines are ours by that, too: tags of a machine aren't on its
disk and its interface.
"""

from __future__ import annotations

import re

from ironburst.cost.bill_provider import Billed, BillProvider
from ironburst.cost.bill_row import BillRow
from ironburst.cost.causes import INSTANCE, UNEXPLAINED

_BY_CATEGORY = (
    ("licence", re.compile(r"^Virtual Machines Licenses$")),
    ("data_transfer", re.compile(r"^Bandwidth$|peering|\bData Transfer\b", re.IGNORECASE)),
    ("public_ipv4", re.compile(r"^IP Addresses|Public IP", re.IGNORECASE)),
    ("stack", re.compile(r"^(?:NAT Gateway|VPN Gateway|ExpressRoute|Load Balancer|Key Vault|Azure DNS|Private Link)$")),
    ("stack", re.compile(r"^(?:Log Analytics|Azure Monitor|Automation|Azure Bastion|Azure Firewall|Functions)$")),
)
_BY_KIND = (
    ("reserved_unused", re.compile(r"^microsoft\.compute/capacityreservationgroups\b")),
    ("disk", re.compile(r"^microsoft\.compute/(?:disks|snapshots|images|galleries)\b")),
    ("public_ipv4", re.compile(r"^microsoft\.network/(?:publicipaddresses|publicipprefixes)$")),
    ("stack", re.compile(r"^microsoft\.(?:network|storage|keyvault|operationalinsights|automation|managedidentity)/")),
)
_MACHINE = "microsoft.compute/virtualmachines"
_ID = re.compile(r"/resourcegroups/([^/]+)/providers/(.+)", re.IGNORECASE)


def _parts(id: str) -> tuple[str, str, str]:
    """(resource group, kind, name), in small letters."""
    found = _ID.search(id.lower())
    if not found:
        return "", "", id
    group, (provider, *rest) = found[1], found[2].split("/")
    return group, "/".join((provider, *rest[::2])), rest[-1] if rest else ""


def _instance(id: str) -> str:
    group_and_name, _, unique = id.rpartition("/")
    return group_and_name.lower() if "/" in group_and_name and not unique.isdigit() else ""


def _use(row: BillRow, kind: str) -> str:
    if "Unused" in (row.text("CommitmentDiscountStatus"), row.text("CapacityReservationStatus")):
        return "reserved_unused"
    category = row.text("x_SkuMeterCategory") or row.text("ServiceName")
    if kind == _MACHINE and category == "Virtual Machines":
        return INSTANCE
    said = f"{category} {row.text('x_SkuMeterName')}" if category == "Virtual Network" else category
    by_category = next((use for use, pattern in _BY_CATEGORY if pattern.search(said)), None)
    return by_category or next((use for use, pattern in _BY_KIND if pattern.search(kind)), UNEXPLAINED)


def _billed(row: BillRow) -> Billed:
    group, kind, name = _parts(row.text("ResourceId"))
    priced = row.text("PricingCurrency") or row.text("x_PricingCurrency")
    rate = "x_BillingExchangeRate" if priced == "USD" and row.text("x_BillingExchangeRate") else ""
    hours = row.number_of("ConsumedQuantity") or 0.0
    price, quantity = row.price("ContractedUnitPrice", rate), row.number_of("PricingQuantity")
    if price is not None and quantity is not None and hours:
        price *= quantity / hours  # it is for a block of units, such as 100 hours
    return Billed(
        resource=f"{group}/{name}" if group else name,
        use=_use(row, kind),
        spot=row.text("x_SkuMeterName").endswith(" Spot"),
        hours=hours,
        usd_per_hour=price,
        rate=rate,
    )


BILL = BillProvider("Azure", re.compile(r"^(?:Microsoft|Azure)\b"), _instance, _billed)
