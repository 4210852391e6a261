"""The bills that the three clouds export, by their published column definitions: no bill of anybody's is published with
instances in it, so these lines are ours, under the columns that the export has.

AWS: Data Exports' table dictionary (COST_AND_USAGE_REPORT without its rarer columns, FOCUS_1_0_AWS, FOCUS_1_2_AWS).
Azure: Cost Management's FOCUS schemas 1.0, 1.0r2 and 1.2 (microsoft/finops-toolkit), some of its x_ columns. Google:
its FOCUS view over the detailed BigQuery export, and the columns that the query of docs/how-to/cost.md takes of its
FOCUS export (schema of 2026-07: 37 columns of FOCUS and 18 of its own).
"""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from ironburst.cost import bill
from ironburst.cost.bill_row import UNITS, BillError
from ironburst.cost.causes import CAUSES, INSTANCE


def names(text):
    return text.split()


FOCUS_1_0 = names("""
AvailabilityZone BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd BillingPeriodStart
ChargeCategory ChargeClass ChargeDescription ChargeFrequency ChargePeriodEnd ChargePeriodStart
CommitmentDiscountCategory CommitmentDiscountId CommitmentDiscountName CommitmentDiscountStatus CommitmentDiscountType
ConsumedQuantity ConsumedUnit ContractedCost ContractedUnitPrice EffectiveCost InvoiceIssuerName ListCost ListUnitPrice
PricingCategory PricingQuantity PricingUnit ProviderName PublisherName RegionId RegionName ResourceId ResourceName
ResourceType ServiceCategory ServiceName SkuId SkuPriceId SubAccountId SubAccountName Tags
""")
ADDED_1_1 = names("""CapacityReservationId CapacityReservationStatus CommitmentDiscountQuantity CommitmentDiscountUnit
ServiceSubcategory SkuMeter SkuPriceDetails""")
ADDED_1_2 = names("""
BillingAccountType InvoiceId PricingCurrency PricingCurrencyContractedUnitPrice PricingCurrencyEffectiveCost
PricingCurrencyListUnitPrice SubAccountType
""")
FOCUS_1_1 = sorted(FOCUS_1_0 + ADDED_1_1)
FOCUS_1_2 = sorted(FOCUS_1_1 + ADDED_1_2)
GOOGLE = [
    name
    for name in FOCUS_1_0
    if name
    not in (
        *("BillingAccountName", "ChargeFrequency", "CommitmentDiscountStatus", "CommitmentDiscountType"),
        *("InvoiceIssuerName", "SubAccountName"),
    )
] + names("x_Credits x_CostType x_CurrencyConversionRate x_ExportTime x_Location x_Project x_ServiceId")
PAGE = (Path(__file__).parents[3] / "docs/how-to/cost.md").read_text()
QUERY = re.search(r"SELECT (.*?)\nFROM", PAGE, re.DOTALL)[1]
GOOGLE_QUERY = [column.split()[-1] for column in QUERY.split(",")]
GOOGLE_EXPORT = names("""
AvailabilityZone BilledCost BillingAccountId BillingCurrency BillingPeriodStart BillingPeriodEnd ChargeCategory
ChargeClass ChargeDescription ChargePeriodStart ChargePeriodEnd ConsumedQuantity ConsumedUnit ContractedCost
ContractedUnitPrice ListCost ListUnitPrice PricingCategory PricingQuantity PricingUnit ProviderName PublisherName
RegionId RegionName ResourceId ResourceName ServiceName SkuId SkuPriceId SubAccountId SubAccountName EffectiveCost
PricingCurrency PricingCurrencyContractedUnitPrice PricingCurrencyEffectiveCost PricingCurrencyListUnitPrice
BillingAccountType x_CostType x_Credits x_CurrencyConversionRate x_ExportTime x_Labels x_Location x_Project
x_ProjectLabels x_ServiceId x_SystemLabels x_Tags x_SubscriptionInstanceId x_PriceEffectivePriceDefault
x_PriceListPriceConsumptionModel x_CostAtEffectivePriceDefault x_CostAtListConsumptionModel x_ConsumptionModelId
x_ConsumptionModelDescription
""")
AZURE_OWN = names("""
x_AccountId x_AccountName x_AccountOwnerId x_BilledCostInUsd x_BilledUnitPrice x_BillingAccountId x_BillingExchangeRate
x_BillingProfileId x_ContractedCostInUsd x_EffectiveCostInUsd x_EffectiveUnitPrice x_InvoiceId x_PricingCurrency
x_ResourceGroupName x_ResourceType x_SkuDetails x_SkuMeterCategory x_SkuMeterId x_SkuMeterName x_SkuTerm x_SkuTier
""")
CUR_2_0 = names("""
bill_bill_type bill_billing_entity bill_billing_period_end_date bill_billing_period_start_date bill_invoice_id
bill_invoicing_entity bill_payer_account_id bill_payer_account_name cost_category discount discount_bundled_discount
discount_total_discount identity_line_item_id identity_time_interval line_item_availability_zone line_item_blended_cost
line_item_blended_rate line_item_currency_code line_item_legal_entity line_item_line_item_description
line_item_line_item_type line_item_net_unblended_cost line_item_net_unblended_rate line_item_normalization_factor
line_item_normalized_usage_amount line_item_operation line_item_product_code line_item_resource_id line_item_tax_type
line_item_unblended_cost line_item_unblended_rate line_item_usage_account_id line_item_usage_account_name
line_item_usage_amount line_item_usage_end_date line_item_usage_start_date line_item_usage_type pricing_currency
pricing_lease_contract_length pricing_offering_class pricing_public_on_demand_cost pricing_public_on_demand_rate
pricing_purchase_option pricing_rate_code pricing_rate_id pricing_term pricing_unit product product_comment
product_fee_code product_fee_description product_from_location product_from_location_type product_from_region_code
product_instance_family product_instance_type product_instancesku product_location product_location_type
product_operation product_pricing_unit product_product_family product_region_code product_servicecode product_sku
product_to_location product_to_location_type product_to_region_code product_usagetype
reservation_amortized_upfront_cost_for_usage reservation_effective_cost reservation_end_time
reservation_reservation_a_r_n reservation_start_time reservation_subscription_id reservation_unused_quantity
resource_tags savings_plan_end_time savings_plan_offering_type savings_plan_payment_option savings_plan_purchase_term
savings_plan_savings_plan_a_r_n savings_plan_savings_plan_effective_cost savings_plan_savings_plan_rate
savings_plan_start_time savings_plan_total_commitment_to_date savings_plan_used_commitment
""")
COUNTS = {"1.0": (FOCUS_1_0, 43), "1.1": (FOCUS_1_1, 50), "1.2": (FOCUS_1_2, 57)}
AWS_TAGS = {"user_ironburst_pool": "p5", "user_ironburst_cluster": "prod"}
GOOGLE_TAGS = [{"Key": "ironburst_pool", "Value": "p5"}, {"Key": "ironburst_cluster", "Value": "prod"}]


@pytest.mark.parametrize("version", COUNTS)
def test_the_columns_are_as_many_as_the_specification_has(version):
    columns, count = COUNTS[version]
    assert len(columns) == len(set(columns)) == count


def read(columns, *rows):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    writer.writeheader()
    writer.writerows(rows)
    text.seek(0)
    return list(bill.read(text, "bill.csv"))


def focus(tags, start, end, **given):
    usual = {
        "BilledCost": "55.04",
        "BillingCurrency": "USD",
        "ChargeCategory": "Usage",
        "ChargePeriodEnd": end,
        "ChargePeriodStart": start,
        "ConsumedQuantity": "1",
        "ConsumedUnit": "Hours",
        "ContractedUnitPrice": "55.04",
        "EffectiveCost": "55.04",
        "PricingCategory": "Standard",
        "Tags": json.dumps(tags),
    }
    return usual | given


AWS_TIMES = ("2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z")
ARN = "arn:aws:ec2:us-east-1:123456789012:instance/i-0abc"
AZURE_ID = "/subscriptions/1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/nd-1"
GOOGLE_ID = "//compute.googleapis.com/projects/p/zones/us-central1-a/instances/123"
EXPORTS = {
    "AWS 1.0": (
        [*FOCUS_1_0, "x_CostCategories", "x_Discounts", "x_Operation", "x_ServiceCode", "x_UsageType"],
        focus(AWS_TAGS, *AWS_TIMES, ProviderName="AWS", ResourceId=ARN, x_UsageType="BoxUsage:p5.48xlarge"),
    ),
    "AWS 1.2": (
        [*FOCUS_1_2, "x_Discounts", "x_Operation", "x_ServiceCode"],
        focus(AWS_TAGS, *AWS_TIMES, ProviderName="AWS", ResourceId=ARN, SkuMeter="BoxUsage:p5.48xlarge"),
    ),
    **{
        f"Azure {version}": (
            [*columns, *(each for each in AZURE_OWN if each not in columns)],
            focus(
                {"ironburst_pool": "p5", "ironburst_cluster": "prod"},
                *times,
                ProviderName="Microsoft",
                ResourceId=AZURE_ID,
                x_SkuMeterCategory="Virtual Machines",
                x_SkuMeterName="ND96isr H100 v5",
            ),
        )
        for version, columns, times in (
            ("1.0", FOCUS_1_0, ("2026-03-01T00:00Z", "2026-03-01T01:00Z")),
            ("1.0r2", FOCUS_1_0, AWS_TIMES),
            ("1.2", FOCUS_1_2, AWS_TIMES),
        )
    },
    **{
        f"Google {which}": (
            columns,
            {
                {"Tags": labels}.get(name, name): value
                for name, value in focus(
                    GOOGLE_TAGS,
                    "2026-03-01 00:00:00 UTC",
                    "2026-03-01 01:00:00 UTC",
                    ProviderName="Google Cloud",
                    ResourceId=GOOGLE_ID,
                    ServiceName="Compute Engine",
                    ChargeCategory="usage",
                    ChargeDescription="A4 Nvidia B200 (1 gpu slice) running in Americas",
                    ConsumedQuantity="3600",
                    ConsumedUnit="seconds",
                    PricingCategory="standard",
                    x_Credits="[]",
                ).items()
            },
        )
        for which, columns, labels in (("view", GOOGLE, "Tags"), ("export", GOOGLE_QUERY, "x_Labels"))
    },
}


@pytest.mark.parametrize("export", EXPORTS)
def test_an_hour_of_an_instance_in_each_clouds_export(export):
    columns, row = EXPORTS[export]
    (line,) = read(columns, row)
    assert (line.kind, line.hours, line.usd_per_hour) == ("usage", 1.0, 55.04)
    assert line.units == 55_04 * UNITS // 100 and line.to_s - line.from_s == 3600
    assert line.tag("ironburst:pool") == "p5" and line.tag("ironburst:cluster") == "prod"
    assert line.resource == {"AWS": "i-0abc", "Azu": "rg/nd-1", "Goo": "123"}[export[:3]]
    assert line.of_instance and line.of_gpus == export.startswith("Google") and not line.earlier


def test_the_pages_query_takes_columns_that_the_export_has():
    assert len(GOOGLE_EXPORT) == 37 + 18 and {*GOOGLE_QUERY} <= {*GOOGLE_EXPORT}
    assert set(re.findall(r"TO_JSON_STRING\((\w+)\)", QUERY)) == {"x_Labels", "x_SystemLabels", "x_Credits"}


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"ChargeCategory": "Tax", "PricingCategory": ""}, "tax"),
        ({"ChargeCategory": "Credit"}, "credit"),
        ({"ChargeCategory": "Purchase"}, "fee"),
        ({"ChargeCategory": "Adjustment", "ChargeClass": "Correction"}, "refund"),
        ({"ChargeCategory": "error"}, "unknown"),
        ({"PricingCategory": "Committed", "CommitmentDiscountCategory": "Spend"}, "savings_plan"),
        ({"PricingCategory": "Committed", "CommitmentDiscountCategory": "Usage"}, "reserved"),
        ({"x_ConsumptionModelDescription": "Compute Flexible CUD - 1 Year"}, "savings_plan"),
        ({"x_ConsumptionModelDescription": "Default"}, "usage"),
        ({"PricingCategory": "Dynamic"}, "usage"),
    ],
)
def test_kinds_of_charges(export, given, kind):
    columns, row = EXPORTS[export]
    if export.startswith("Google"):
        given = {name: value.lower() if name.endswith("gCategory") else value for name, value in given.items()}
    (line,) = read(columns, row | given)
    assert line.kind == kind and line.spot == (given.get("PricingCategory", "").lower() == "dynamic")


def test_an_hour_of_an_instance_in_cur_2_0():
    row = {
        "line_item_currency_code": "USD",
        "line_item_line_item_type": "Usage",
        "line_item_resource_id": "i-0abc",
        "line_item_unblended_cost": "55.0400000000",
        "line_item_unblended_rate": "55.0400000000",
        "line_item_usage_amount": "1.0",
        "line_item_usage_end_date": "2026-03-01T01:00:00.000Z",
        "line_item_usage_start_date": "2026-03-01T00:00:00.000Z",
        "line_item_usage_type": "USE1-BoxUsage:p5.48xlarge",
        "product": json.dumps({"vcpu": "192", "region": "us-east-1"}),
        "resource_tags": json.dumps(AWS_TAGS),
    }
    (line,) = read(CUR_2_0, row)
    assert (line.kind, line.hours, line.units) == ("usage", 1.0, 55_04 * UNITS // 100)
    assert line.tag("ironburst:pool") == "p5" and not line.spot and line.to_s - line.from_s == 3600
    covered = {
        "line_item_line_item_type": "SavingsPlanCoveredUsage",
        "savings_plan_savings_plan_effective_cost": "30.5",
    }
    (line,) = read(CUR_2_0, row | covered)
    assert line.kind == "savings_plan" and line.units == 305 * UNITS // 10
    (line,) = read(CUR_2_0, row | {"line_item_usage_type": "USE1-SpotUsage:p5.48xlarge"})
    assert line.spot


def test_another_currency_is_refused_in_each_export():
    for columns, row in EXPORTS.values():
        with pytest.raises(BillError, match="in dollars"):
            read(columns, row | {"BillingCurrency": "EUR"})


# SKUs of the Cloud Billing catalogue and of published exports: Red Hat's nise and koku, "Sample results" of Google's
# page on reservations (the three of an instance, in seconds and byte-seconds), infracost, tables of GPU prices
GOOGLE_USES = [
    ("N1 Predefined Instance Core running in Americas", "instances", INSTANCE),
    ("N1 Predefined Instance Ram running in Americas", "instances", INSTANCE),
    ("Spot Preemptible A3 Instance Core running in Americas", "instances", INSTANCE),
    ("A3Plus Instance Ram running in Americas", "instances", INSTANCE),
    ("Nvidia Tesla T4 GPU running in Americas", "instances", INSTANCE),
    ("Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Iowa", "instances", INSTANCE),
    ("Nvidia H100 Mega 80GB GPU attached to DWS Defined Duration VMs running in Americas", "instances", INSTANCE),
    ("H200 141GB GPU running in Americas", "instances", INSTANCE),
    ("A4 Nvidia B200 (1 gpu slice) running in Americas", "instances", INSTANCE),
    ("DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) running in Americas", "instances", INSTANCE),
    ("RTX 6000 96GB running in Iowa", "instances", INSTANCE),
    ("SSD backed Local Storage", "instances", INSTANCE),
    ("SSD backed Local Storage", "disks", "disk"),
    ("Storage PD Capacity", "disks", "disk"),
    ("Balanced PD Capacity in Japan", "disks", "disk"),
    ("Hyperdisk Balanced Capacity in South Carolina", "disks", "disk"),
    ("Storage PD Snapshot in US", "snapshots", "disk"),
    ("External IP Charge on a Standard VM", "instances", "public_ipv4"),
    ("External IP Charge on a Spot Preemptible VM", "instances", "public_ipv4"),
    ("Static Ip Charge", "addresses", "public_ipv4"),
    ("Network Inter Zone Ingress", "instances", "data_transfer"),
    ("Network Internet Data Transfer Out from Americas to Americas", "instances", "data_transfer"),
    ("Networking Cloud Nat Gateway Uptime", "routers", "stack"),
    ("Networking Cloud Nat Data Processing", "routers", "stack"),
    ("Licensing Fee for Debian 10 Buster (CPU cost)", "instances", "licence"),
    ("Commitment v1: A3 Cpu in Americas for 1 Year", "commitments", "fee"),
    ("Quantum Entanglement in Americas", "instances", "unexplained"),
]


@pytest.mark.parametrize(("sku", "kind", "use"), GOOGLE_USES)
def test_what_a_line_of_googles_is_for(sku, kind, use):
    columns, row = EXPORTS["Google export"]
    given = {"ChargeDescription": sku, "ResourceId": f"//compute.googleapis.com/projects/1/zones/z/{kind}/9"}
    (line,) = read(columns, row | given)
    assert line.use == use and line.use in {*CAUSES, INSTANCE}
    assert line.spot == ("Preemptible" in sku)


@pytest.mark.parametrize("column", ["x_SystemLabels", "x_Labels"])
def test_an_unused_reservation_of_googles(column):
    """`compute.googleapis.com/is_unused_reservation` of "Structure of Detailed data export", system labels."""
    columns, row = EXPORTS["Google export"]
    label = [{"Key": "compute.googleapis.com/is_unused_reservation", "Value": "true"}]
    (line,) = read(columns, row | {column: json.dumps([*GOOGLE_TAGS, *label])})
    assert line.use == ("reserved_unused" if column == "x_SystemLabels" else INSTANCE)  # the view has both in Tags
    (line,) = read(GOOGLE, EXPORTS["Google view"][1] | {"Tags": json.dumps([*GOOGLE_TAGS, *label])})
    assert line.use == "reserved_unused"


# "View and download the cost details of your invoice or statement", Credit type
CREDITS = {
    "FEE_UTILIZATION_OFFSET": "fee",
    "COMMITTED_USAGE_DISCOUNT_DOLLAR_BASE": "savings_plan",
    "COMMITTED_USAGE_DISCOUNT": "reserved",
    "DISCOUNT": "discount",
    "FREE_TIER": "credit",
    "PROMOTION": "credit",
    "RESELLER_MARGIN": "discount",
    "SUBSCRIPTION_BENEFIT": "discount",
    "SUSTAINED_USAGE_DISCOUNT": "discount",
    "SOMETHING_NEW": "unexplained",
}


@pytest.mark.parametrize(("type", "cause"), CREDITS.items())
def test_a_credit_of_googles_is_a_line_of_its_own(type, cause):
    columns, row = EXPORTS["Google export"]
    credits = json.dumps([{"Name": "n", "Amount": "-5.04", "FullName": "", "Id": "", "Type": type}])
    line, credit = read(columns, row | {"x_Credits": credits, "EffectiveCost": "50", "PricingCategory": "committed"})
    assert (line.units, line.beside, line.usd_per_hour) == (55_04 * UNITS // 100, INSTANCE, None)
    assert (credit.units, credit.beside, credit.of_instance) == (-5_04 * UNITS // 100, cause, False)
    assert line.units + credit.units == 50 * UNITS and credit.tag("ironburst:pool") == "p5"


# Meter categories and names of Azure's retail price list and of its published FOCUS exports; kinds of resources
AZURE_USES = [
    ("Virtual Machines", "ND96isr H100 v5", "Microsoft.Compute/virtualMachines/m", INSTANCE),
    ("Virtual Machines", "ND96isr H100 v5 Spot", "microsoft.compute/virtualmachines/m", INSTANCE),
    ("Virtual Machines", "Reserved", "Microsoft.Compute/capacityReservationGroups/g/x/r", "reserved_unused"),
    ("Virtual Machines Licenses", "8 vCPU VM License", "Microsoft.Compute/virtualMachines/m", "licence"),
    ("Bandwidth", "Standard Data Transfer Out", "Microsoft.Compute/virtualMachines/m", "data_transfer"),
    ("Storage", "P30 LRS Disk", "Microsoft.Compute/disks/d", "disk"),
    ("Storage", "Standard LRS Snapshots", "Microsoft.Compute/snapshots/s", "disk"),
    ("Storage", "LRS Data Stored", "Microsoft.Storage/storageAccounts/a", "stack"),
    ("Virtual Network", "Standard IPv4 Static Public IP", "Microsoft.Network/publicIPAddresses/a", "public_ipv4"),
    ("Virtual Network", "Intra-Region Egress (Peering)", "Microsoft.Network/virtualNetworks/v", "data_transfer"),
    ("NAT Gateway", "Standard Gateway", "Microsoft.Network/natGateways/n", "stack"),
    ("VPN Gateway", "VpnGw1", "Microsoft.Network/virtualNetworkGateways/v", "stack"),
    ("ExpressRoute", "ErGw1AZ Gateway", "Microsoft.Network/virtualNetworkGateways/v", "stack"),
    ("Key Vault", "Operations", "Microsoft.KeyVault/vaults/v", "stack"),
    ("Log Analytics", "Analytics Logs Data Ingestion", "Microsoft.OperationalInsights/workspaces/w", "stack"),
    ("Quantum Computing", "Qubit", "Microsoft.Quantum/workspaces/w", "unexplained"),
    ("Storage", "Disk Operations", "Microsoft.Compute/virtualMachines/m", "unexplained"),
]  # fmt: skip


@pytest.mark.parametrize(("category", "meter", "path", "use"), AZURE_USES)
def test_what_a_line_of_azures_is_for(category, meter, path, use):
    columns, row = EXPORTS["Azure 1.2"]
    given = {"x_SkuMeterCategory": category, "x_SkuMeterName": meter}
    (line,) = read(columns, row | given | {"ResourceId": f"/subscriptions/1/resourceGroups/RG/providers/{path}"})
    assert line.use == use and line.use in {*CAUSES, INSTANCE}
    assert line.spot == meter.endswith(" Spot") and line.resource.startswith("rg/")


@pytest.mark.parametrize("column", ["CommitmentDiscountStatus", "CapacityReservationStatus"])
def test_what_was_bought_in_azure_and_not_used(column):
    columns, row = EXPORTS["Azure 1.2"]
    (line,) = read(columns, row | {column: "Unused", "PricingCategory": "Committed"})
    assert line.beside == "reserved_unused" and not line.of_instance


def test_a_reservation_in_azure_counts_amortized_and_its_purchase_nothing():
    columns, row = EXPORTS["Azure 1.2"]
    used = {"BilledCost": "0", "EffectiveCost": "30.5", "PricingCategory": "Committed"}
    (line,) = read(columns, row | used | {"CommitmentDiscountType": "Reservation"})
    assert (line.kind, line.units) == ("reserved", 305 * UNITS // 10)
    (line,) = read(columns, row | {"ChargeCategory": "Purchase", "BilledCost": "90000", "EffectiveCost": "0"})
    assert (line.beside, line.units) == ("fee", 0)


def test_a_price_for_a_block_of_hours():
    """Azure's sample has a price of 0.05 for 10,000 operations, and a PricingQuantity in these blocks."""
    columns, row = EXPORTS["Azure 1.2"]
    block = {
        "ConsumedQuantity": "2",
        "PricingQuantity": "0.02",
        "ContractedUnitPrice": "5504",
        "EffectiveCost": "110.08",
    }
    (line,) = read(columns, row | block)
    assert line.usd_per_hour == pytest.approx(55.04)


RATES = {
    "Azure 1.2": {"BillingCurrency": "EUR", "PricingCurrency": "USD", "x_BillingExchangeRate": "0.86"},
    "Google export": {"BillingCurrency": "EUR", "x_CurrencyConversionRate": "0.86"},
}


@pytest.mark.parametrize("export", RATES)
def test_another_currency_counts_by_the_rate_that_the_bill_names(export):
    """BillingExchangeRate: from the pricing to the billing currency. currency_conversion_rate: from dollars to the
    local currency.
    """
    columns, row = EXPORTS[export]
    given = RATES[export] | {"EffectiveCost": "47.3344", "ContractedUnitPrice": "47.3344"}
    (line,) = read(columns, row | given)
    assert line.units == 55_04 * UNITS // 100 and line.usd_per_hour == pytest.approx(55.04)
    rate = next(name for name in given if name.startswith("x_"))
    with pytest.raises(BillError, match=f"{rate} is '0'; allowed is how many of the bill's currency a dollar is"):
        read(columns, row | given | {rate: "0"})
    with pytest.raises(BillError, match="in dollars"):
        read(columns, row | given | {rate: ""})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"x_Credits": '[{"Type": "PROMOTION"}]'}, "x_Credits is .* allowed is a JSON list"),
        ({"x_Credits": "{"}, "x_Credits is .* allowed is a JSON list"),
        ({"x_Credits": "3"}, "x_Credits is .* allowed is a JSON list"),
        ({"ConsumedUnit": "fortnights"}, "ConsumedUnit is 'fortnights'; allowed is seconds or hour"),
    ],
)
def test_a_damaged_line_of_googles_is_one_sentence(given, said):
    columns, row = EXPORTS["Google export"]
    with pytest.raises(BillError, match=said):
        read(columns, row | given)


@pytest.mark.parametrize(
    ("given", "earlier"),
    [
        ({}, False),
        ({"BillingPeriodStart": "2026-03-01T00:00:00Z"}, False),
        ({"BillingPeriodStart": "2026-04-01T00:00:00Z"}, True),
        ({"ChargeClass": "Correction"}, True),
        ({"ChargeClass": "correction"}, True),
    ],
)
def test_lines_of_before_the_bills_period(given, earlier):
    for columns, row in EXPORTS.values():
        (line,) = read(columns, row | given)
        assert line.earlier == earlier
