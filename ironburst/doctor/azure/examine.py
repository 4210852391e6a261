"""All that the doctor looks at in Azure."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.azure import capacity, images, orphans, providers, quotas, reaper, rights
from ironburst.doctor.azure.site import AzureSite
from ironburst.doctor.checks import Check, CheckResult, run_after

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
    yield from run_after(providers.check, providers.CHECK, site.cloud.subscription, CHECKS, site)
