"""The budget alarm: AWS's own, hours late, behind the controller's ceiling."""

import pulumi
import pulumi_aws as aws

from ironburst.config.models import Budget
from ironburst.nodes.naming import POOL_TAG, logical, tags

# (what is compared, percent of the budget)
ALARMS = (("ACTUAL", 80), ("FORECASTED", 100), ("ACTUAL", 100))


# Said, not done: only a payer account may activate a tag, and only one that AWS has seen in use, up to a day after
# the first node. Nor asked: the provider's one question about tags (GetTags) is paid for by the call.
INACTIVE = (
    f"the budget alarm counts by the tag {POOL_TAG} and reads 0 until that tag is active for cost allocation; "
    "a day after the first rented node, run in the payer account: "
    "aws ce update-cost-allocation-tags-status --cost-allocation-tags-status "
    f"TagKey={POOL_TAG},Status=Active (the controller's own ceiling doesn't need it)"
)


class BudgetAlarm(pulumi.ComponentResource):
    """Mails when the rented nodes of these pools reach the budget.
    Counts by tag, so the tag must be active for cost allocation; the preview says so.
    """

    def __init__(
        self, name: str, *, budget: Budget, pools: list[str], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("ironburst:components:BudgetAlarm", name, None, opts)
        alarms = [
            aws.budgets.BudgetNotificationArgs(
                comparison_operator="GREATER_THAN",
                notification_type=kind,
                threshold=percent,
                threshold_type="PERCENTAGE",
                subscriber_email_addresses=budget.notify,
            )
            for kind, percent in ALARMS
        ]
        of_the_pools = aws.budgets.BudgetCostFilterArgs(
            name="TagKeyValue", values=[f"user:{POOL_TAG}${pool}" for pool in pools]
        )
        aws.budgets.Budget(
            logical(name, "rented"),
            budget_type="COST",
            time_unit="MONTHLY",
            limit_amount=f"{budget.usd_per_month:.2f}",
            limit_unit="USD",
            cost_filters=[of_the_pools],
            notifications=alarms if budget.notify else [],
            tags=tags(name, "rented"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        pulumi.log.info(INACTIVE, self)
        self.register_outputs({})
