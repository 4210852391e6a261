"""All that the doctor looks at in Google Cloud."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.checks import Check, CheckResult, Unasked, run
from ironburst.doctor.google import capacity, images, orphans, quotas, rights, services
from ironburst.doctor.google.site import GoogleSite

CHECKS: tuple[Check[GoogleSite], ...] = (
    rights.check,
    quotas.check,
    capacity.check,
    images.check,
    orphans.check,
)


def check(site: GoogleSite) -> Iterator[CheckResult]:
    """Every finding as it comes. Where nobody answers which APIs are enabled, nothing else is asked."""
    try:
        yield from services.check(site)
    except Unasked as error:
        yield CheckResult(services.CHECK, site.cloud.project, "unknown", error.seen, error.todo)
        return
    yield from run(CHECKS, site)
