"""Zones that the account has, and what EC2 offers in them."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.aws.site import AwsSite
from ironburst.doctor.checks import CheckResult, answered
from ironburst.doctor.rented import zones_of

CHECK = "zones"


def check(site: AwsSite) -> Iterator[CheckResult]:
    """Each declared zone, then each type in each of its zones."""
    yield from answered(CHECK, "zones of the account", _zones(site))
    yield from answered(CHECK, "offerings by zone", _offerings(site))


def _zones(site: AwsSite) -> Iterator[CheckResult]:
    known, region = site.account.zones(), site.cloud.region
    for name in site.cloud.network.zones:
        zone = known.get(name)
        if zone is None:
            todo = f"declare zones of {region}: {', '.join(sorted(known))}"
            yield CheckResult(CHECK, f"zone {name}", "fail", f"this account has no such zone in {region}", todo)
        elif zone.opt_in == "not-opted-in":
            todo = f"enable it under Zones of the EC2 console's settings, or leave {name} out of cloud.network.zones"
            yield CheckResult(CHECK, f"zone {name}", "fail", "this account has not opted in to it", todo)
        elif zone.state != "available":
            todo = "see https://health.aws.amazon.com; use other zones meanwhile"
            yield CheckResult(CHECK, f"zone {name}", "warn", f"AWS says it is {zone.state}", todo)
        else:
            yield CheckResult(CHECK, f"zone {name}", "ok", zone.state)


def _offerings(site: AwsSite) -> Iterator[CheckResult]:
    names = sorted({name for _, nodes in site.nodes for name in nodes.types})
    offered = site.account.offered(names) if names else set()
    for who, nodes in site.nodes:
        for name in nodes.types:
            where = sorted(zone for kind, zone in offered if kind == name)
            for zone in zones_of(nodes):
                looked_at = f"{name} of {who} in {zone}"
                if zone in where:
                    yield CheckResult(CHECK, looked_at, "ok", "EC2 offers it (that is not free capacity)")
                    continue
                todo = f"use {', '.join(where)}" if where else "choose another instance type or region"
                yield CheckResult(CHECK, looked_at, "fail", "EC2 doesn't offer it there to this account", todo)
