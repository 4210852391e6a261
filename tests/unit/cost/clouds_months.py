"""A month's bill as Google Cloud and Azure export it, from that of `months`.

Google: the FOCUS export to BigQuery ("Structure of FOCUS data export", schema of 2026-07): hours; a line each for an
instance's cores, memory and GPUs (SKUs of the Cloud Billing catalogue), in seconds and byte-seconds; labels in
x_Labels; credits in x_Credits and inside EffectiveCost; ResourceId is resource.global_name, with numbers for names.
Azure: Cost Management's FOCUS 1.2 (microsoft/finops-toolkit, focus metadata): a line a machine and day; ids in small
letters; what a launch makes is in its resource group, and its disk and address have no tags.
"""

import json
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from zlib import crc32

NUMBERS = {"i-orphan": "77", "nat-1": "78", "i-f": "79", "i-b": "80", "i-website": "81", "i-x": "82"}


def short(resource):
    return resource.rpartition("/")[2]


def number(resource):
    return NUMBERS.get(short(resource), str(10**12 + crc32(short(resource).encode())))


def google_id(id):
    return f"us-central1-a/ib-lab-{id}/{number(id)}"


def azure_id(id):
    return f"ib-Lab-{id}/ib-{id}-0/0f1e2d3c-0000-4000-8000-{crc32(id.encode()):012x}"


def tags(line):
    said = json.loads(line["resource_tags"])
    return {key.removeprefix("user_"): value for key, value in said.items()}


KINDS = {"Tax": "Tax", "Refund": "Adjustment"}
SKUS = (  # of usage types: SKU, kind of resource, service
    ("EBS:", "Hyperdisk Balanced Capacity in Iowa", "disks", "Compute Engine"),
    ("PublicIPv4:", "External IP Charge on a Standard VM", "instances", "Compute Engine"),
    ("DataTransfer-Regional", "Network Inter Zone Data Transfer Out", "instances", "Compute Engine"),
    ("-Out-Bytes", "Network Internet Data Transfer Out from Americas to Americas", "instances", "Compute Engine"),
    ("NatGateway", "Networking Cloud Nat Gateway Uptime", "routers", "Networking"),
    (
        "CapacityBlock",
        "Commitment v1: H100 80GB GPU in Iowa for 1 Year",
        "commitments",
        "Compute Engine",
    ),
)
PARTS = (("A3 Instance Core", "0.12"), ("A3 Instance Ram", "0.08"), ("Nvidia H100 80GB GPU", "0.8"))
CREDITS = {"EdpDiscount": "DISCOUNT", "Credit": "PROMOTION"}


def google(lines):
    rows = []
    for line in lines:
        said, usage, cost = _of(line)
        if said == "SavingsPlanNegation":
            continue
        row = _google_row(line, KINDS.get(said, "Usage"))
        if "Usage:" in usage and said not in (*CREDITS, "Tax"):
            rows += _google_instance(row, line, said, usage, cost)
            continue
        sku, kind, service = next(
            (rest for key, *rest in SKUS if key in usage), ("Compute", "instances", "Compute Engine")
        )
        if said in CREDITS:
            row |= {"x_Credits": json.dumps([{"Type": CREDITS[said], "Amount": float(cost), "Name": "", "Id": ""}])}
        row |= {"ChargeDescription": sku, "ServiceName": service, "BilledCost": str(cost), "EffectiveCost": str(cost)}
        rows.append(row | {"ResourceId": _google_resource(line, kind)})
    return rows


def _of(line):
    cost = line["savings_plan_savings_plan_effective_cost"] or line["reservation_effective_cost"]
    return (
        line["line_item_line_item_type"],
        line["line_item_usage_type"],
        Decimal(cost or line["line_item_unblended_cost"]),
    )


def _google_resource(line, kind):
    resource = line["line_item_resource_id"]
    its = resource.removeprefix("arn:aws:ec2:us-east-1:1:network-interface/eni-")
    return f"//compute.googleapis.com/projects/4711/zones/us-central1-a/{kind}/{number(its)}" if resource else ""


def _google_row(line, category):
    labels = [{"Key": key.replace("_", "-"), "Value": value} for key, value in tags(line).items()]
    return {
        "ProviderName": "Google Cloud",
        "ServiceName": "Compute Engine",
        "ChargeCategory": category,
        "ChargeClass": "",
        "ChargeDescription": "",
        "ChargePeriodStart": line["line_item_usage_start_date"].replace("T", " ").replace(".000Z", " UTC"),
        "ChargePeriodEnd": line["line_item_usage_end_date"].replace("T", " ").replace(".000Z", " UTC"),
        "BilledCost": "0",
        "EffectiveCost": "0",
        "BillingCurrency": "USD",
        "x_CurrencyConversionRate": "1",
        "ResourceId": "",
        "PricingCategory": "Standard" if category == "Usage" else "",
        "CommitmentDiscountCategory": "",
        "ConsumedQuantity": "1",
        "ConsumedUnit": "bytes",
        "ContractedUnitPrice": "",
        "x_Labels": json.dumps(labels),
        "x_Credits": "[]",
    }


def _google_instance(row, line, said, usage, cost):
    """The new flexible commitment is a price, the one of old a credit."""
    hours = Decimal(line["line_item_usage_amount"])
    plan, reserved, spot = said == "SavingsPlanCoveredUsage", said == "DiscountedUsage", "Spot" in usage
    before = hours * Decimal(line["line_item_unblended_rate"]) if reserved else cost
    left, left_before = cost, before
    for sku, share in PARTS:
        gpu = "GPU" in sku
        its = left if gpu else round(cost * Decimal(share), 9)
        its_before = left_before if gpu else round(before * Decimal(share), 9)
        left, left_before = left - its, left_before - its_before
        where = "attached to Spot Preemptible VMs running in Iowa" if gpu and spot else "running in Iowa"
        price = "" if plan or not gpu or not hours else str(its_before / hours / 8)
        credit = [{"Name": "", "Amount": str(its - its_before), "Type": "COMMITTED_USAGE_DISCOUNT"}] if reserved else []
        yield row | {
            "ChargeDescription": f"{'Spot Preemptible ' if spot and not gpu else ''}{sku} {where}",
            "ResourceId": _google_resource(line, "instances"),
            "BilledCost": str(its),
            "EffectiveCost": str(its),
            "PricingCategory": "Committed" if plan or reserved else "Standard",
            "CommitmentDiscountCategory": "Spend" if plan else "",
            "ConsumedQuantity": str(hours * 3600 * (8 if gpu else 208)),
            "ConsumedUnit": "byte-seconds" if "Ram" in sku else "seconds",
            "ContractedUnitPrice": price,
            "x_Credits": json.dumps(credit),
        }


METERS = (  # of usage types: kind of resource, category, meter
    ("EBS:", "microsoft.compute/disks", "Storage", "P30 LRS Disk"),
    ("PublicIPv4:", "microsoft.network/publicipaddresses", "Virtual Network", "Standard IPv4 Static Public IP"),
    (
        "DataTransfer-Regional",
        "microsoft.compute/virtualmachines",
        "Bandwidth",
        "Inter-Zone Data Transfer Out",
    ),
    ("-Out-Bytes", "microsoft.compute/virtualmachines", "Bandwidth", "Standard Data Transfer Out"),
    ("NatGateway", "microsoft.network/natgateways", "NAT Gateway", "Standard Gateway"),
    ("CapacityBlock", "microsoft.compute/capacityreservationgroups/capacityreservations", "Virtual Machines", "Block"),
    ("", "microsoft.compute/virtualmachines", "Virtual Machines", "ND96isr H100 v5"),
)
CATEGORIES = {"EdpDiscount": "Credit", "Credit": "Credit", "Tax": "Tax", "Refund": "Adjustment", "Fee": "Purchase"}


def azure(lines):
    """Summed up by machine and day."""
    sums = defaultdict(lambda: [Decimal(0), Decimal(0)])
    for line in lines:
        said, _, cost = _of(line)
        if said == "SavingsPlanNegation":
            continue
        row = _azure_row(line, said)
        its = sums[tuple(row.items())]
        its[0] += cost
        its[1] += Decimal(line["line_item_usage_amount"]) if said not in CATEGORIES else 1
    return [dict(row) | _azure_sums(dict(row), *its) for row, its in sums.items()]


def _azure_sums(row, cost, hours):
    standard = row["PricingCategory"] == "Standard" and hours
    return {
        "BilledCost": "0" if row["PricingCategory"] == "Committed" else str(cost),
        "EffectiveCost": str(cost),
        "ConsumedQuantity": str(hours),
        "PricingQuantity": str(hours / 100),
        "ContractedUnitPrice": str(cost / hours * 100) if standard else "",
    }


def _azure_row(line, said):
    usage = line["line_item_usage_type"]
    kind, category, meter = next(rest for key, *rest in METERS if key in usage)
    day = datetime.fromisoformat(line["line_item_usage_start_date"]).timestamp() // 86400 * 86400
    plan, reserved, spot = said == "SavingsPlanCoveredUsage", said == "DiscountedUsage", "SpotUsage" in usage
    machine = kind == METERS[-1][1]
    return {
        "ProviderName": "Microsoft",
        "ServiceName": "Virtual Machines",
        "ChargeCategory": CATEGORIES.get(said, "Usage"),
        "ChargePeriodStart": f"{datetime.fromtimestamp(day, UTC):%Y-%m-%dT%H:%MZ}",
        "ChargePeriodEnd": f"{datetime.fromtimestamp(day + 86400, UTC):%Y-%m-%dT%H:%MZ}",
        "BillingCurrency": "USD",
        "ResourceId": _azure_resource(line["line_item_resource_id"], kind),
        "PricingCategory": "Committed" if plan or reserved else "Dynamic" if spot else "Standard",
        "CommitmentDiscountType": "Savings Plan" if plan else "Reservation" if reserved else "",
        "x_SkuMeterCategory": category,
        "x_SkuMeterName": f"{meter} Spot" if spot and machine else meter,
        "Tags": json.dumps(tags(line)) if machine or "NatGateway" in usage or said == "Fee" else "",
    } | ({"Tags": json.dumps(tags(line))} if said == "Refund" else {})


def _azure_resource(resource, kind):
    """The resource group of a launch, by its instance."""
    if not resource:
        return ""
    id = short(resource).removeprefix("vol-").removeprefix("eni-")
    known = id not in NUMBERS and id != "cr-1"
    group, name = (f"ib-Lab-{id}", f"ib-{id}-0") if known else ("elsewhere", id)
    name += "" if kind.endswith("virtualmachines") or not known else "_x"
    path = kind.split("/")
    middle = "/".join((path[0], path[1], "g", *path[2:]) if len(path) > 2 else path)
    return f"/subscriptions/1/resourcegroups/{group}/providers/{middle}/{name}".lower()
