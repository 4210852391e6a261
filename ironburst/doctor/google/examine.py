"""All that the doctor looks at in Google Cloud."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.checks import Check, CheckResult, run_after
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
    yield from run_after(services.check, services.CHECK, site.cloud.project, CHECKS, site)
