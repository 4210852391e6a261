"""Sizes that the region offers to the subscription, reservations that fit, what spot costs."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.azure.site import AzureSite, Nodes, zones_of
from ironburst.doctor.checks import CheckResult, State, answered, judged
from ironburst.doctor.rented import markets_of, most, spot

CHECK = "capacity"


def check(site: AzureSite) -> Iterator[CheckResult]:
    """Only what the declaration uses."""
    for who, nodes in site.nodes:
        yield from answered(CHECK, who, _offered(site, who, nodes))
        for group, _ in nodes.reserved:
            yield from answered(CHECK, f"reservations of {who}", _reservation(site, who, nodes, group))
        if "spot" in markets_of(nodes):
            yield from answered(
                CHECK, f"spot of {who}", spot(CHECK, who, nodes, site.cloud, site.subscription.spot_usd)
            )


def _offered(site: AzureSite, who: str, nodes: Nodes) -> Iterator[CheckResult]:
    sizes, wrong = site.subscription.sizes(), list[tuple[str, str]]()
    ask = 'have the subscription allowed it (a support request of the kind "service and subscription limits")'
    for name in nodes.types:
        facts = sizes.get(name.lower())
        if facts is None:
            wrong.append((f"{site.cloud.region} has no {name}", "declare a size that `az vm list-skus` shows there"))
            continue
        if "spot" in markets_of(nodes) and facts.spot is False:
            wrong.append((f"{name} isn't offered as spot", f"leave spot out at {who}"))
        for zone in zones_of(nodes):
            where = f"zone {zone} of {site.cloud.region}" if zone else site.cloud.region
            if why := facts.closed.get("") or facts.closed.get(zone):
                wrong.append((f"{name} isn't offered to this subscription in {where} ({why})", ask))
            elif zone and zone not in facts.zones:
                zones = ", ".join(sorted(facts.zones)) or "none"
                wrong.append((f"{where} has no {name}; zones that do: {zones}", f"declare such a zone at {who}"))
    failed: list[tuple[State, str, str]] = [("fail", seen, todo) for seen, todo in wrong]
    yield from judged(CHECK, who, failed, f"{site.cloud.region} offers {', '.join(nodes.types)}")


def _reservation(site: AzureSite, who: str, nodes: Nodes, group: str) -> Iterator[CheckResult]:
    what, held = f"reservations of {who}", site.subscription.reservation(group)
    if held is None:
        todo = f"az capacity reservation group list shows those there are: name one at {who}"
        yield CheckResult(CHECK, what, "fail", f"{group} isn't there", todo)
        return
    wrong: list[tuple[State, str, str]] = []
    block = "capacity-block" in markets_of(nodes)
    if block != (held.kind == "Block") or held.kind == "Open":
        todo = f"name it at {who} as what it is: capacity_block for a block, capacity_reservation_group for others"
        wrong.append(("fail", f"it is of the type {held.kind}", todo))
    wanted = {(name.lower(), zone) for name in nodes.types for zone in zones_of(nodes)}
    count = sum(number for place, number in held.places.items() if place in wanted)
    if not count:
        todo = f"declare its size and its zone at {who}, or have some reserved"
        wrong.append(("fail", f"it reserves no {' or '.join(nodes.types)} in the declared zones", todo))
    elif count < most(nodes):
        todo = f"declare {count} at {who}, or have it enlarged"
        wrong.append(("warn", f"it has {count} places, and {most(nodes)} nodes are declared", todo))
    yield from judged(CHECK, what, wrong, f"{count} places, {held.taken} in use")
