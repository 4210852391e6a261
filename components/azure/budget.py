"""The budget alarm: Azure's own, hours late, behind the controller's ceiling."""

from datetime import UTC, datetime

import pulumi
import pulumi_azure_native as azure

from ironburst.config.models import Budget
from ironburst.nodes.naming import CLUSTER_TAG, logical

# (what is compared, percent of the budget)
ALARMS = (("Actual", 80), ("Forecasted", 100), ("Actual", 100))


class BudgetAlarm(pulumi.ComponentResource):
    """Mails when the cluster's machines reach the budget, by their tag."""

    def __init__(
        self, name: str, *, budget: Budget, subscription: str, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("ironburst:components:AzureBudgetAlarm", name, None, opts)
        told = {"contact_emails": budget.notify, "contact_roles": None if budget.notify else ["Owner"]}
        first = datetime.now(UTC).replace(day=1).date().isoformat()
        azure.consumption.Budget(
            logical(name, "rented"),
            budget_name=logical("ironburst", name),
            scope=f"/subscriptions/{subscription}",
            amount=budget.usd_per_month,
            category=azure.consumption.CategoryType.COST,
            time_grain=azure.consumption.TimeGrainType.MONTHLY,
            # Azure wants the first of the month in which it is made
            time_period=azure.consumption.BudgetTimePeriodArgs(start_date=f"{first}T00:00:00Z"),
            filter=azure.consumption.BudgetFilterArgs(
                tags=azure.consumption.BudgetComparisonExpressionArgs(
                    name=CLUSTER_TAG, operator=azure.consumption.BudgetOperatorType.IN_, values=[name]
                )
            ),
            notifications={
                f"{basis.lower()}-{percent}": azure.consumption.NotificationArgs(
                    enabled=True,
                    operator=azure.consumption.OperatorType.GREATER_THAN_OR_EQUAL_TO,
                    threshold=percent,
                    threshold_type=basis,
                    **told,
                )
                for basis, percent in ALARMS
            },
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["timePeriod"]),
        )
        self.register_outputs({})
