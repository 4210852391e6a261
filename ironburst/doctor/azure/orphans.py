"""What is in the groups of launches, is used by nobody, and is paid for."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.azure.site import AzureSite
from ironburst.doctor.checks import CheckResult, answered

CHECK = "orphans"
WHY = {
    "disk": "no machine has it",
    "interface": "no machine has it",
    "machine": "it is stopped: it or its disks are paid for, and nobody starts it again",
    "group": "it has no machine",
}


def check(site: AzureSite) -> Iterator[CheckResult]:
    """Those that launches left. A group goes with all that is in it."""
    yield from answered(CHECK, f"tag of {site.config.name}", _left(site))


def _left(site: AzureSite) -> Iterator[CheckResult]:
    there = site.subscription.left(site.config.name)
    for each in [each for each in there if not each.used]:
        whole = "" if each.kind == "group" else ", if nothing else in that group is wanted"
        todo = f"if the controller doesn't end it: az group delete --name {each.group}{whole}"
        yield CheckResult(CHECK, f"{each.kind} {each.name}", "warn", WHY[each.kind], todo)
    if all(each.used for each in there):
        yield CheckResult(CHECK, f"tag of {site.config.name}", "ok", f"{len(there)} things, each of them in use")
