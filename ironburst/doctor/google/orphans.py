"""What has the cluster's label, is used by nobody, and is paid for."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.checks import CheckResult, answered
from ironburst.doctor.google.site import GoogleSite

CHECK = "orphans"
ENDS = {
    "disk": "gcloud compute disks delete {name} --zone {where}",
    "address": "gcloud compute addresses delete {name} --region {where}",
    "machine": "gcloud compute instances delete {name} --zone {where}",
}
WHY = {
    "disk": "no machine has it",
    "address": "nothing has it",
    "machine": "it is stopped: its disks are paid for, and nobody starts it again",
}


def check(site: GoogleSite) -> Iterator[CheckResult]:
    """In the region. A machine that was stopped from inside is TERMINATED: there, with its disk."""
    yield from answered(CHECK, f"label of {site.config.name}", _left(site))


def _left(site: GoogleSite) -> Iterator[CheckResult]:
    there = site.project.left(site.config.name)
    for each in [each for each in there if not each.used]:
        todo = f"if the controller doesn't end it: {ENDS[each.kind].format(name=each.name, where=each.where)}"
        yield CheckResult(CHECK, f"{each.kind} {each.name}", "warn", WHY[each.kind], todo)
    if all(each.used for each in there):
        yield CheckResult(CHECK, f"label of {site.config.name}", "ok", f"{len(there)} things, each of them in use")
