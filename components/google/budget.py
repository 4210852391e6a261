"""The budget alarm: Google's own, hours late, behind the controller's ceiling."""

import pulumi
import pulumi_gcp as gcp

from ironburst.config.models import Budget
from ironburst.nodes.naming import logical

# (what is compared, part of the budget)
ALARMS = (("CURRENT_SPEND", 0.8), ("FORECASTED_SPEND", 1.0), ("CURRENT_SPEND", 1.0))


class BudgetAlarm(pulumi.ComponentResource):
    """Mails when the cluster's instances reach the budget, by their label."""

    def __init__(
        self,
        name: str,
        *,
        budget: Budget,
        project: str,
        billing_account: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("ironburst:components:GoogleBudgetAlarm", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        channels = [
            gcp.monitoring.NotificationChannel(
                logical(name, "budget", str(number)),
                project=project,
                type="email",
                display_name=f"ironburst {name}: budget",
                labels={"email_address": address},
                opts=child,
            )
            for number, address in enumerate(budget.notify, 1)
        ]
        whole, cents = divmod(round(budget.usd_per_month * 100), 100)
        gcp.billing.Budget(
            logical(name, "rented"),
            billing_account=billing_account,
            display_name=f"ironburst {name}: rented nodes",
            amount=gcp.billing.BudgetAmountArgs(
                specified_amount=gcp.billing.BudgetAmountSpecifiedAmountArgs(
                    currency_code="USD", units=str(whole), nanos=cents * 10_000_000
                )
            ),
            budget_filter=gcp.billing.BudgetBudgetFilterArgs(
                projects=[f"projects/{project}"], labels={"ironburst-cluster": name}, calendar_period="MONTH"
            ),
            threshold_rules=[
                gcp.billing.BudgetThresholdRuleArgs(threshold_percent=part, spend_basis=basis) for basis, part in ALARMS
            ],
            all_updates_rule=gcp.billing.BudgetAllUpdatesRuleArgs(
                monitoring_notification_channels=[channel.name for channel in channels],
                disable_default_iam_recipients=True,
            )
            if channels
            else None,
            opts=child,
        )
        self.register_outputs({})
