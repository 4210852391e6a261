"""The way to the hall: tunnels or the Direct Connect association, and routes of the nodes' subnets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import IPv4Network

from ironburst.config import subnets
from ironburst.config.network_models import HallLink
from ironburst.doctor.account import Route, Vpn
from ironburst.doctor.finding import Finding, answered
from ironburst.doctor.site import Site, links
from ironburst.naming import logical

CHECK = "hall link"
PAGE = "docs/how-to/hall-link.md"


def check(site: Site) -> Iterator[Finding]:
    """Each link, then the routes to its hall."""
    for link in links(site.cloud.network):
        looked_at = f"{link.kind} to {link.hall}"
        if link.kind == "vpn":
            yield from answered(CHECK, looked_at, _vpn(site, looked_at))
        elif link.gateway_id:
            yield from answered(CHECK, looked_at, _direct_connect(site, link, looked_at))
        yield from answered(CHECK, f"routes to {link.hall}", _routes(site, link))


def _vpn(site: Site, looked_at: str) -> Callable[[], Iterator[Finding]]:
    def found() -> Iterator[Finding]:
        connections = site.account.vpns(site.name)
        if not connections:
            yield Finding(CHECK, looked_at, "fail", "there is no VPN connection of this cluster", "run `pulumi up`")
        for connection in connections:
            yield _connection(connection, f"{looked_at}: {connection.id}")

    return found


def _connection(connection: Vpn, looked_at: str) -> Finding:
    up = [tunnel for tunnel in connection.tunnels if tunnel.up]
    down = [f"{each.address} is down ({each.message or 'no message'})" for each in connection.tunnels if not each.up]
    set_up = f"set the hall's device up with `pulumi stack output hall_tunnels --show-secrets` as {PAGE} says"
    if not up:
        return Finding(CHECK, looked_at, "fail", f"{connection.state}; {'; '.join(down)}", set_up)
    routes = max(tunnel.routes for tunnel in up)
    if not connection.static and not routes:
        seen = f"{len(up)} of {len(connection.tunnels)} tunnels are up, and no route came from the hall by BGP"
        todo = f"let the hall's device announce its network by BGP, as {PAGE} says"
        return Finding(CHECK, looked_at, "fail", seen, todo)
    if down:
        seen = f"one tunnel is up; {'; '.join(down)}: AWS's next maintenance cuts the hall off"
        return Finding(CHECK, looked_at, "warn", seen, set_up)
    return Finding(CHECK, looked_at, "ok", f"{len(up)} tunnels up, {routes} routes from the hall")


def _direct_connect(site: Site, link: HallLink, looked_at: str) -> Callable[[], Iterator[Finding]]:
    gateway = link.gateway_id or ""

    def found() -> Iterator[Finding]:
        associations = site.account.associations(gateway)
        if not associations:
            seen = f"nothing is associated with gateway {gateway}"
            yield Finding(CHECK, looked_at, "fail", seen, "run `pulumi up`, and let the gateway's owner accept it")
        for each in associations:
            what = f"{looked_at}: {each.gateway}"
            if each.state == "associated":
                yield Finding(CHECK, what, "ok", each.state)
                continue
            todo = f"see Direct Connect gateways in the console, {gateway}: its owner accepts and ends associations"
            seen = f"{each.state}{': ' if each.error else ''}{each.error}"
            yield Finding(CHECK, what, "warn" if each.state in ("associating", "updating") else "fail", seen, todo)

    return found


def _routes(site: Site, link: HallLink) -> Callable[[], Iterator[Finding]]:
    """Each zone with nodes has a table of its own; the head is in the hall's network."""
    hall = next(hall for hall in site.config.halls if hall.name == link.hall)

    def found() -> Iterator[Finding]:
        tables = site.account.routes(site.name)
        for zone in subnets.zones_in_use(site.cloud):
            table = logical(site.name, "routes", zone)
            yield _route(tables.get(table), hall.cidr, f"route from {zone} to {link.hall}", table)

    return found


def _route(routes: list[Route] | None, cidr: str, looked_at: str, table: str) -> Finding:
    if routes is None:
        return Finding(CHECK, looked_at, "fail", f"there is no route table {table}", "run `pulumi up`")
    hall = IPv4Network(cidr)
    ways = [
        each for each in routes if each.destination != "0.0.0.0/0" and hall.subnet_of(IPv4Network(each.destination))
    ]
    announce = f"let the hall's router announce {cidr} by BGP; it comes into the table by itself ({PAGE})"
    if not ways:
        return Finding(CHECK, looked_at, "fail", f"no route of {table} covers {cidr}", announce)
    if not any(way.active for way in ways):
        targets = ", ".join(way.target for way in ways)
        return Finding(CHECK, looked_at, "fail", f"the route to {cidr} by {targets} is a black hole", announce)
    way = next(way for way in ways if way.active)
    return Finding(CHECK, looked_at, "ok", f"{way.destination} by {way.target}")
