"""All that the doctor looks at in Azure."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.azure import capacity, images, orphans, providers, quotas, reaper, rights
from ironburst.doctor.azure.site import AzureSite
from ironburst.doctor.checks import Check, CheckResult, Unasked, run

CHECKS: tuple[Check[AzureSite], ...] = (
    rights.check,
    quotas.check,
    capacity.check,
    images.check,
    orphans.check,
    reaper.check,
)


def check(site: AzureSite) -> Iterator[CheckResult]:
    """Every finding as it comes. Where nobody answers which providers are registered, nothing else is asked."""
    try:
        yield from providers.check(site)
    except Unasked as error:
        yield CheckResult(providers.CHECK, site.cloud.subscription, "unknown", error.seen, error.todo)
        return
    yield from run(CHECKS, site)
