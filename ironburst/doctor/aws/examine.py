"""All that the doctor looks at in AWS."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.aws import billing, capacity, identity, images, link, orphans, quotas, rights, secret, zones
from ironburst.doctor.aws.site import Site
from ironburst.doctor.finding import Check, Finding, Unasked, run

CHECKS: tuple[Check[Site], ...] = (
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


def check(site: Site) -> Iterator[Finding]:
    """Every finding as it comes. Without credentials or an answer to who we are, nothing else is asked."""
    try:
        yield from identity.check(site)
    except Unasked as error:
        yield Finding(identity.CHECK, "caller", "unknown", error.seen, error.todo)
        return
    yield from run(CHECKS, site)
