"""Rights of whoever runs the doctor, who should be the controller: asked for, not tried out."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.config.google import rights
from ironburst.doctor.checks import CheckResult, answered
from ironburst.doctor.google.site import GoogleSite

CHECK = "rights"


def check(site: GoogleSite) -> Iterator[CheckResult]:
    """Of the project as a whole. That a node's deletion is allowed can't be asked so: it is bound to names."""
    yield from answered(CHECK, "controller looks", _allowed(site, "controller looks", rights.LOOKING))
    if site.cloud.pools:
        yield from answered(CHECK, "controller launches", _allowed(site, "controller launches", rights.LAUNCHING))


def _allowed(site: GoogleSite, what: str, wanted: tuple[str, ...]) -> Iterator[CheckResult]:
    lacking = sorted(set(wanted) - site.project.allowed(wanted))
    if lacking:
        shown = ", ".join(lacking[:4]) + (f" and {len(lacking) - 4} more" if len(lacking) > 4 else "")
        todo = "sign in as the controller's service account, or give it the stack's custom role: `pulumi up` binds it"
        yield CheckResult(CHECK, what, "fail", f"who runs this lacks {shown}", todo)
    else:
        yield CheckResult(CHECK, what, "ok", f"all {len(wanted)} permissions are there")
