"""The bills that the three clouds export, by their published column definitions: no bill of anybody's is published with
instances in it, so these lines are ours, under the columns that the export has.

AWS: Data Exports' table dictionary (COST_AND_USAGE_REPORT without its rarer columns, FOCUS_1_0_AWS, FOCUS_1_2_AWS).
Azure: Cost Management's FOCUS schemas 1.0, 1.0r2 and 1.2 (microsoft/finops-toolkit), some of its x_ columns. Google:
its FOCUS view over the detailed BigQuery export.
"""

import csv
import io
import json

import pytest

from ironburst.cost import bill
from ironburst.cost.bill import UNITS


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
    writer = csv.DictWriter(text, columns)
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
            ),
        )
        for version, columns, times in (
            ("1.0", FOCUS_1_0, ("2026-03-01T00:00Z", "2026-03-01T01:00Z")),
            ("1.0r2", FOCUS_1_0, AWS_TIMES),
            ("1.2", FOCUS_1_2, AWS_TIMES),
        )
    },
    "Google 1.0": (
        GOOGLE,
        focus(
            GOOGLE_TAGS,
            "2026-03-01 00:00:00 UTC",
            "2026-03-01 01:00:00 UTC",
            ProviderName="Google Cloud",
            ResourceId=GOOGLE_ID,
            ChargeCategory="usage",
            PricingCategory="standard",
        ),
    ),
}


@pytest.mark.parametrize("export", EXPORTS)
def test_an_hour_of_an_instance_in_each_clouds_export(export):
    columns, row = EXPORTS[export]
    (line,) = read(columns, row)
    assert (line.kind, line.hours, line.usd_per_hour) == ("usage", 1.0, 55.04)
    assert line.units == 55_04 * UNITS // 100 and line.to_s - line.from_s == 3600
    assert line.tag("ironburst:pool") == "p5" and line.tag("ironburst:cluster") == "prod"
    assert line.resource == ("i-0abc" if export.startswith("AWS") else row["ResourceId"])


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
        ({"PricingCategory": "Dynamic"}, "usage"),
    ],
)
def test_kinds_of_charges(export, given, kind):
    columns, row = EXPORTS[export]
    if export.startswith("Google"):
        given = {
            name: value.lower() if name != "CommitmentDiscountCategory" else value for name, value in given.items()
        }
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
        with pytest.raises(bill.BillError, match="in dollars"):
            read(columns, row | {"BillingCurrency": "EUR"})
