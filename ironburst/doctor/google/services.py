"""Whether the APIs that a stack needs are enabled in the project."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.checks import CheckResult
from ironburst.doctor.google.site import GoogleSite

CHECK = "services"
NEEDED = {
    "compute.googleapis.com": "nothing can be rented or looked at",
    "cloudresourcemanager.googleapis.com": "`up` binds roles in the project by it",
    "iam.googleapis.com": "`up` makes service accounts and a role by it",
    "secretmanager.googleapis.com": "rented nodes read what they join with there",
}
"""API: what goes wrong without it"""


def check(site: GoogleSite) -> Iterator[CheckResult]:
    """Raises Unasked where nobody answers: then nothing else is asked, either."""
    enabled = site.project.services()
    for name in [each for each in NEEDED if each not in enabled]:
        todo = f"gcloud services enable {name} --project {site.cloud.project}"
        yield CheckResult(CHECK, name, "fail", f"it isn't enabled: {NEEDED[name]}", todo)
    if NEEDED.keys() <= enabled:
        yield CheckResult(CHECK, site.cloud.project, "ok", f"{len(NEEDED)} APIs are enabled")
