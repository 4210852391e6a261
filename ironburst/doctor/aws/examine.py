"""All that the doctor looks at in AWS."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.aws import billing, capacity, identity, images, link, orphans, quotas, rights, secret, zones
from ironburst.doctor.aws.site import AwsSite
from ironburst.doctor.checks import Check, CheckResult, run_after

CHECKS: tuple[Check[AwsSite], ...] = (
    quotas.check,
    zones.check,
    images.check,
    rights.check,
    link.check,
    secret.check,
    billing.check,
    capacity.check,
    orphans.check,
)


def check(site: AwsSite) -> Iterator[CheckResult]:
    """Every finding as it comes. Without credentials or an answer to who we are, nothing else is asked."""
    yield from run_after(identity.check, identity.CHECK, "caller", CHECKS, site)
