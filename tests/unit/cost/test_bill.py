"""The estimates of a ledger that the real controller wrote, against the bill of what its instances really did."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from ironburst.cost import bill, reconcile
from ironburst.cost.aws import cur
from ironburst.cost.bill_row import UNITS, BillError
from ironburst.cost.leases import priced
from ironburst.cost.line import Line
from ironburst.cost.reconcile import Stack
from tests.unit.cost import months

STACK = Stack("lab", frozenset({"p5"}), frozenset({"fixed"}), gpus={"p5": 8})


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        yield months.play(tmp_path_factory.mktemp("month"), patch)


def leases(site):
    return priced(site.ledger.leases(open_only=False), site.ledger.rates_paid_after(0.0), site.clock.now())


def in_cloud(site, cloud):
    return [replace(each, lease=months.renamed(each.lease, cloud)) for each in leases(site)]


def compared(site, path, window=None, cloud="aws", stack=STACK):
    with path.open() as file:
        return reconcile.compare(bill.read(file, path.name), in_cloud(site, cloud), stack, window)


def by_cause(found):
    usd = Counter()
    for each in found.differences:
        usd[each.cause] += Decimal(each.units) / UNITS
    return usd


def test_without_any_effect_they_agree_to_decimals(site, tmp_path):
    found = compared(site, months.cur(months.bill(site, effects=False), tmp_path / "bill.csv"))
    assert {each.cause for each in found.differences} <= {"rounding"} and found.unexplained == 0
    assert abs(found.estimated - found.billed) < len(leases(site)) * UNITS // 10**5
    assert found.others == 0 and found.lines > 20


WRITERS = {"cur": "aws", "focus": "aws", "google": "google", "azure": "azure"}
NAMED = {
    "aws": {("orphan", "i-orphan"), ("stack", "nat-1")},
    "google": {("orphan", "77"), ("stack", "78")},
    "azure": {("orphan", "elsewhere/i-orphan"), ("stack", "elsewhere/nat-1")},
}


@pytest.mark.parametrize("writer", WRITERS)
def test_every_difference_is_explained(site, tmp_path, writer):
    made, cloud = months.bill(site), WRITERS[writer]
    found = compared(site, getattr(months, writer)(made, tmp_path / "bill.csv"), cloud=cloud)
    assert {lease.lease.market for lease in leases(site)} == {"spot", "on-demand"}
    usd = by_cause(found)
    planted = {cause: value for cause, value in made.planted.items() if value}
    if writer in ("focus", "azure"):  # they tell no discount from a credit
        planted["credit"] += planted.pop("discount")
    assert found.unexplained == 0 and "unexplained" not in usd
    assert {*usd} - {"rounding"} == {*planted}
    for cause, value in planted.items():
        assert abs(usd[cause] - value) < Decimal("0.0001"), cause
    assert abs(usd["rounding"]) < Decimal("0.001")
    assert found.estimated + sum(each.units for each in found.differences) == found.billed
    assert found.others == (7 if cloud == "google" else 3) and found.others_units == 1750504 * UNITS // 10**4
    assert {(each.cause, each.what) for each in found.differences} > NAMED[cloud]


@pytest.mark.parametrize("writer", ["google", "azure"])
def test_another_cloud_without_any_effect_agrees_to_decimals(site, tmp_path, writer):
    made = months.bill(site, effects=False)
    found = compared(site, getattr(months, writer)(made, tmp_path / "bill.csv"), cloud=writer)
    assert {each.cause for each in found.differences} <= {"rounding"} and found.unexplained == 0
    assert abs(found.estimated - found.billed) < len(leases(site)) * UNITS // 10**5 and found.lines > 10


def middle(lines):
    """An hour of an instance with hours before and after it that the ledger and the bill have in full."""
    per = Counter(line["line_item_resource_id"] for line in lines if "Usage:p5" in line["line_item_usage_type"])
    instance = next(id for id, count in per.items() if count >= 3 and id.startswith("i-"))
    return [line for line in lines if line["line_item_resource_id"] == instance][1]


def twice(lines, line):
    lines.append(dict(line))


def missing_hour(lines, line):
    lines.remove(line)


def half_an_hour(lines, line):
    line["line_item_usage_amount"] = "0.5"
    line["line_item_unblended_cost"] = str(Decimal(line["line_item_unblended_rate"]) / 2)


def own_arithmetic(lines, line):
    line["line_item_unblended_cost"] = str(Decimal(line["line_item_unblended_cost"]) + Decimal("1.23"))


def unknown_usage(lines, line):
    lines.append(line | {"line_item_usage_type": "USE1-Quantum:Entanglement", "line_item_unblended_cost": "0.0001"})


def unknown_kind(lines, line):
    lines.append(line | {"line_item_line_item_type": "Levy", "line_item_unblended_cost": "3.5"})


@pytest.mark.parametrize(
    ("plant", "usd"),
    [
        (twice, None),
        (missing_hour, None),
        (half_an_hour, None),
        (own_arithmetic, "1.23"),
        (unknown_usage, "0.0001"),
        (unknown_kind, "3.5"),
    ],
)
def test_what_nobody_knows_stays_unexplained(site, tmp_path, plant, usd):
    made = months.bill(site, effects=False)
    before = sum(Decimal(line["line_item_unblended_cost"]) for line in made.lines)
    plant(made.lines, middle(made.lines))
    moved = abs(sum(Decimal(line["line_item_unblended_cost"]) for line in made.lines) - before)
    found = compared(site, months.cur(made, tmp_path / "bill.csv"))
    assert abs(Decimal(found.unexplained) / UNITS - moved) < Decimal("0.00001") and moved > 0
    assert usd is None or moved == Decimal(usd)


@pytest.mark.parametrize("plant", [twice, missing_hour, half_an_hour])
def test_nor_where_an_instance_is_three_lines_an_hour(site, tmp_path, plant):
    made = months.bill(site, effects=False)
    before = sum(Decimal(line["line_item_unblended_cost"]) for line in made.lines)
    plant(made.lines, middle(made.lines))
    moved = abs(sum(Decimal(line["line_item_unblended_cost"]) for line in made.lines) - before)
    found = compared(site, months.google(made, tmp_path / "bill.csv"), cloud="google")
    assert abs(Decimal(found.unexplained) / UNITS - moved) < Decimal("0.00001") and moved > 0


def test_nor_where_a_line_of_gpus_contradicts_its_own_price(site, tmp_path):
    with months.google(months.bill(site, effects=False), tmp_path / "bill.csv").open(newline="") as file:
        lines = list(bill.read(file, "bill.csv"))
    number = next(n for n, line in enumerate(lines) if line.of_gpus and line.units)
    lines[number] = replace(lines[number], units=lines[number].units + UNITS)
    found = reconcile.compare(lines, in_cloud(site, "google"), STACK, None)
    assert abs(found.unexplained - UNITS) < UNITS // 10**5


def test_gpus_of_a_pool_that_is_no_more_stay_unexplained(site, tmp_path):
    path = months.google(months.bill(site, effects=False), tmp_path / "bill.csv")
    found = compared(site, path, cloud="google", stack=replace(STACK, gpus={}))
    # without any effect each is what it was estimated at, to decimals: named, with next to no dollars
    assert {each.cause for each in found.differences} == {"unexplained"}
    assert {each.what for each in found.differences} <= {each.lease.instance_id for each in in_cloud(site, "google")}


def test_a_machine_that_nobody_knows_in_a_leases_group_is_an_orphan(site, tmp_path):
    made = months.bill(site, effects=False)
    path = months.azure(made, tmp_path / "bill.csv")
    rows = path.read_text().splitlines(keepends=True)
    row = next(row for row in rows if "/virtualmachines/" in row)
    path.write_text("".join([*rows, row.replace("-0,", "-1,", 1)]))
    found = compared(site, path, cloud="azure")
    assert by_cause(found).keys() - {"rounding"} == {"orphan"} and found.others == 0


def test_of_two_clouds_the_one_without_a_bill_is_left_out_and_both_bills_are_both(site, tmp_path):
    made = months.bill(site, effects=False)
    at_aws, at_google = in_cloud(site, "aws"), in_cloud(site, "google")
    files = [months.cur(made, tmp_path / "aws.csv"), months.google(made, tmp_path / "google.csv")]

    def found(*files):
        lines = [line for path in files for line in bill.read(path.read_text().splitlines(keepends=True), path.name)]
        return reconcile.compare(lines, [*at_aws, *at_google], STACK, None)

    both, one = found(*files), found(files[0])
    assert (both.left_out, one.left_out) == (0, len(at_google)) and both.estimated == 2 * one.estimated
    assert {*by_cause(both), *by_cause(one)} <= {"rounding"}


@pytest.mark.parametrize("cloud", ["google", "azure"])
def test_what_an_earlier_month_gets_corrected_by_moves_no_window(site, tmp_path, cloud):
    """A late line of Google's of the last day of the month before, and a correction."""
    made = months.bill(site, effects=False)
    path = getattr(months, cloud)(made, tmp_path / "bill.csv")
    whole = compared(site, path, cloud=cloud)
    with path.open(newline="") as file:
        lines = list(bill.read(file, "bill.csv"))
    instance = next(line for line in lines if line.of_instance and line.units)
    month = 31 * 86400.0
    late = replace(instance, from_s=instance.from_s - month, to_s=instance.to_s - month, earlier=True, units=-7 * UNITS)
    theirs = replace(late, resource="somebody/elses", tags={}, units=5 * UNITS)
    found = reconcile.compare([*lines, late, theirs], in_cloud(site, cloud), STACK, None)
    assert found.window == whole.window and by_cause(found)["correction"] == -7
    assert found.billed == whole.billed - 7 * UNITS and found.others_units == 5 * UNITS
    inside = replace(late, from_s=instance.from_s, to_s=instance.to_s, units=0, hours=0.0)  # of this very month
    found = reconcile.compare([*lines, inside], in_cloud(site, cloud), STACK, None)
    assert "correction" not in by_cause(found) and found.billed == whole.billed


def test_what_comes_later_is_not_billed_yet(site, tmp_path):
    made = months.bill(site, effects=False)
    last = max(lease.from_s for lease in leases(site))
    edge = months.stamp(last // 3600 * 3600)
    made.lines = [line for line in made.lines if line["line_item_usage_end_date"] <= edge]
    found = compared(site, months.cur(made, tmp_path / "bill.csv"), reconcile.Window(0.0, site.clock.now()))
    assert found.unexplained == 0 and by_cause(found)["not_billed_yet"] < 0


def test_the_shortest_instance_costs_a_minute(site):
    lease = replace(leases(site)[0].lease, from_s=36000 - 20.0, to_s=36000 - 10.0)
    (short,) = priced([lease], {}, 1e9)
    line = Line(1, "usage", lease.instance_id, "BoxUsage:p5", 32400, 36000, 60 / 3600, None, 0, False, {})
    line = replace(line, units=short.micro(0, 1e9) * 10**4, spot=lease.market == "spot")
    found = reconcile.compare([line], [short], STACK, reconcile.Window(0.0, 1e6))
    assert by_cause(found) == {} or {*by_cause(found)} == {"rounding"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "bill.csv is no known bill: its first line has a, b; known are a Cost and Usage Report"),
        ("", "bill.csv is no known bill: its first line has nothing"),
        (f"{','.join(cur.COLUMNS)}\nUsage,2026\n", "bill.csv, line 2 has 2 values; the first line names 4"),
        (
            f"{','.join(cur.COLUMNS)}\nUsage,noon,1,x\n",
            "line 2: line_item_usage_start_date is 'noon'; allowed is a time",
        ),
        (
            f"{','.join(cur.COLUMNS)}\nUsage,2026-01-01,much,x\n",
            "line_item_unblended_cost is 'much'; allowed is a number",
        ),
    ],
)
def test_a_damaged_bill_is_one_sentence(text, said):
    with pytest.raises(BillError, match=said):
        list(bill.read(text.splitlines(keepends=True), "bill.csv"))


def test_legacy_columns_and_tags():
    text = (
        "lineItem/LineItemType,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/UnblendedCost,"
        "lineItem/UsageType,lineItem/UsageAmount,lineItem/ResourceId,resourceTags/user:ironburst:cluster\n"
        "Usage,2026-03-01T00:00:00Z,2026-03-01T01:00:00Z,1.5,BoxUsage:p5,1,i-1,lab\n"
    )
    (line,) = bill.read(text.splitlines(keepends=True), "old.csv")
    assert (line.units, line.resource, line.tag("ironburst:cluster")) == (15 * 10**9, "i-1", "lab")
    assert line.to_s - line.from_s == 3600 and STACK.owns(line)


def test_the_published_focus_sample_of_three_providers():
    """A slice of FOCUS-Sample-Data 1.0 (FinOps Foundation, CC-BY-4.0): it writes NULL for what is not there."""
    with (Path(__file__).parent / "samples/focus-1.0.csv").open(newline="") as file:
        lines = list(bill.read(file, "focus.csv"))
    assert [line.kind for line in lines] == ["usage", "usage", "savings_plan", "usage", "usage", "credit"]
    assert lines[0].tags == {} and lines[1].tag("business_unit") and lines[3].tag("CostCenter")
    assert all(line.resource != "NULL" and line.to_s > line.from_s for line in lines)


@pytest.mark.parametrize(
    "tags",
    [
        '{"ironburst:pool": "p5"}',
        '"ironburst:pool": "p5"',
        '[{"key": "ironburst:pool", "value": "p5", "inherited": false}]',
    ],
)
def test_tags_as_each_provider_exports_them(tags):
    quoted = tags.replace('"', '""')
    text = f'{",".join(bill._FOCUS)},Tags\nUsage,2026-03-01,2026-03-02,1.5,"{quoted}"\n'
    (line,) = bill.read(text.splitlines(keepends=True), "focus.csv")
    assert line.tag("ironburst:pool") == "p5"
