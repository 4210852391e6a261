"""Zones that are up and offer the types, reservations that fit, what spot costs."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.checks import CheckResult, State, answered, judged
from ironburst.doctor.google.site import GoogleSite, Nodes
from ironburst.doctor.rented import markets_of, most, spot, zones_of

CHECK = "capacity"


def check(site: GoogleSite) -> Iterator[CheckResult]:
    """Only what the declaration uses."""
    yield from answered(CHECK, f"zones of {site.cloud.region}", _zones(site))
    for who, nodes in site.nodes:
        yield from answered(CHECK, who, _offered(site, who, nodes))
        for name, _ in nodes.reserved:
            yield from answered(CHECK, f"{name} of {who}", _reservation(site, who, nodes, name))
        if "spot" in markets_of(nodes):
            yield from answered(CHECK, f"spot of {who}", spot(CHECK, who, nodes, site.cloud, site.project.spot_usd))


def _zones(site: GoogleSite) -> Iterator[CheckResult]:
    there = site.project.zones()
    for zone in site.cloud.network.zones:
        if zone not in there:
            todo = f"write one of {', '.join(sorted(there))} in cloud.network.zones"
            yield CheckResult(CHECK, zone, "fail", f"{site.cloud.region} has no such zone", todo)
        elif there[zone] != "UP":
            todo = f"look at Google's status page, or leave {zone} out for now"
            yield CheckResult(CHECK, zone, "warn", f"it is {there[zone]}", todo)
        else:
            yield CheckResult(CHECK, zone, "ok", "it is up")


def _offered(site: GoogleSite, who: str, nodes: Nodes) -> Iterator[CheckResult]:
    lacking = [(kind, zone) for kind in nodes.types for zone in zones_of(nodes) if not site.project.offered(zone, kind)]
    for kind, zone in lacking:
        todo = f"gcloud compute machine-types list --filter=name={kind} shows where it is: declare such a zone"
        yield CheckResult(CHECK, who, "fail", f"{zone} has no {kind}", todo)
    if not lacking:
        yield CheckResult(CHECK, who, "ok", f"{', '.join(zones_of(nodes))} offer {', '.join(nodes.types)}")


def _reservation(site: GoogleSite, who: str, nodes: Nodes, name: str) -> Iterator[CheckResult]:
    (zone, *_), what = zones_of(nodes), f"{name} of {who}"
    held = site.project.reservation(zone, name)
    if held is None:
        todo = f"gcloud compute reservations list shows those of the project: name one, or its zone, at {who}"
        yield CheckResult(CHECK, what, "fail", f"{zone} has no such reservation", todo)
        return
    wrong: list[tuple[State, str, str]] = []
    if held.machine_type != nodes.types[0]:
        wrong.append(("fail", f"it is of {held.machine_type}", f"declare that type at {who}, or another reservation"))
    if not held.specific:
        seen = "others of the project run in it without naming it (no specific reservation is required)"
        wrong.append(("warn", seen, "have it made with --require-specific-reservation"))
    if held.status != "READY":
        wrong.append(("warn", f"it is {held.status}", "wait until it is READY, nothing starts in it before"))
    if held.count < most(nodes):
        seen = f"it has {held.count} machines, and {most(nodes)} are declared"
        wrong.append(("warn", seen, f"declare {held.count} at {who}, or have it enlarged"))
    yield from judged(CHECK, what, wrong, f"{held.count} x {held.machine_type}, {held.in_use} in use")
