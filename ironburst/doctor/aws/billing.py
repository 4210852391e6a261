"""The budget alarm, and the tag that it counts by."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.config import prices
from ironburst.doctor.aws.site import AwsSite
from ironburst.doctor.checks import CheckResult, answered
from ironburst.nodes.naming import POOL_TAG, logical

CHECK = "billing"
ACTIVATE = (
    "run in the payer account: aws ce update-cost-allocation-tags-status --cost-allocation-tags-status "
    f"TagKey={POOL_TAG},Status=Active"
)


def check(site: AwsSite) -> Iterator[CheckResult]:
    """Where a budget and pools are declared, `up` makes an alarm. Prices that are too old are bad for any ceiling."""
    if said := prices.aged(site.cloud, site.now.date()):
        seen, _, todo = said.partition(": ")
        yield CheckResult(CHECK, "prices", "warn", seen, todo)
    if site.config.budget and site.cloud.pools:
        yield from answered(CHECK, f"tag {POOL_TAG}", _tag(site))
        yield from answered(CHECK, "budget alarm", _budget(site))


def _tag(site: AwsSite) -> Iterator[CheckResult]:
    status, looked_at = site.account.cost_tag(POOL_TAG), f"tag {POOL_TAG}"
    if status == "Active":
        yield CheckResult(CHECK, looked_at, "ok", "active for cost allocation")
    elif status is None:
        seen = "AWS has seen no resource with it yet (up to a day after the first node): the alarm reads 0"
        yield CheckResult(CHECK, looked_at, "warn", seen, f"a day after the first rented node, {ACTIVATE}")
    else:
        yield CheckResult(CHECK, looked_at, "fail", f"{status} for cost allocation: the alarm reads 0", ACTIVATE)


def _budget(site: AwsSite) -> Iterator[CheckResult]:
    name = logical(site.name, "rented")
    ours = [each for each in site.account.budgets() if each == name or each.startswith(name + "-")]
    if ours:
        yield CheckResult(CHECK, "budget alarm", "ok", f"budget {ours[0]}")
    else:
        yield CheckResult(CHECK, "budget alarm", "fail", f"there is no budget {name}-...", "run `pulumi up`")
