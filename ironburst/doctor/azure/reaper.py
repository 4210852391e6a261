"""Whether the workflow lives that ends leases which nobody prolongs: without it a dead controller's nodes run on."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.azure.site import AzureSite
from ironburst.doctor.checks import CheckResult, answered
from ironburst.nodes import azure as names

CHECK = "reaper"
EVERY_S = 300
"""it runs so often (components/azure)"""
LATE_S = 3 * EVERY_S


def check(site: AzureSite) -> Iterator[CheckResult]:
    """Of a stack with pools."""
    if site.cloud.pools:
        yield from answered(CHECK, names.reaper(site.config.name), _alive(site))


def _alive(site: AzureSite) -> Iterator[CheckResult]:
    what, found = names.reaper(site.config.name), site.subscription.reaper(site.config.name)
    if found is None:
        yield CheckResult(CHECK, what, "fail", "it isn't there: nodes outlive a dead controller", "pulumi up makes it")
        return
    age_s = None if found.ran_s is None else site.now.timestamp() - found.ran_s
    if found.state != "Enabled":
        todo = "enable it: az logic workflow update --state Enabled, or pulumi up"
        yield CheckResult(CHECK, what, "fail", f"it is {found.state}", todo)
    elif age_s is None or age_s > LATE_S:
        seen = "it never ran" if age_s is None else f"it ran {age_s / 60:.0f} minutes ago"
        todo = f"it should every {EVERY_S // 60}: look at its trigger in the portal, or pulumi up"
        yield CheckResult(CHECK, what, "fail", seen, todo)
    elif found.ended not in ("Succeeded", "Running", "Waiting"):
        todo = "look at that run in the portal; its identity needs the reaper's role at the subscription"
        yield CheckResult(CHECK, what, "fail", f"its last run ended as {found.ended}", todo)
    else:
        yield CheckResult(CHECK, what, "ok", f"it ran {age_s / 60:.0f} minutes ago: {found.ended}")
