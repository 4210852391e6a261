"""Rights of whoever runs the doctor, who should be the controller: asked for, not tried out."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.config.azure import rights
from ironburst.doctor.azure.site import AzureSite
from ironburst.doctor.checks import CheckResult, answered
from ironburst.nodes import azure as names

CHECK = "rights"


def check(site: AzureSite) -> Iterator[CheckResult]:
    """As they are in the stack's own group, which has what the subscription has."""
    yield from answered(CHECK, "controller looks", _allowed(site, "controller looks", rights.LOOKING))
    if site.cloud.pools:
        yield from answered(CHECK, "controller launches", _allowed(site, "controller launches", rights.LAUNCHING))


def _allowed(site: AzureSite, what: str, wanted: tuple[str, ...]) -> Iterator[CheckResult]:
    lacking = sorted(set(wanted) - site.subscription.allowed(names.resource_group(site.config.name), wanted))
    if lacking:
        shown = ", ".join(lacking[:4]) + (f" and {len(lacking) - 4} more" if len(lacking) > 4 else "")
        todo = (
            "sign in as the controller, and give it the stack's role at the subscription: `ironburst rights` prints it"
        )
        yield CheckResult(CHECK, what, "fail", f"who runs this lacks {shown}", todo)
    else:
        yield CheckResult(CHECK, what, "ok", f"all {len(wanted)} actions are allowed")
