"""The way to a hall: tunnels, a Direct Connect association or transit attachment, and routes of the nodes' subnets."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from ironburst.config.aws import subnets
from ironburst.config.aws.network_models import HallLink
from ironburst.doctor.aws.account import Route, Vpn
from ironburst.doctor.aws.site import AwsSite
from ironburst.doctor.checks import CheckResult, answered
from ironburst.nodes.naming import logical

CHECK = "hall link"
JOINED = ("associated", "updating", "available", "modifying")  # of Direct Connect, of transit gateways
PAGE = "docs/how-to/hall-link.md"


def check(site: AwsSite) -> Iterator[CheckResult]:
    """Each link, then the routes to its hall."""
    for link in site.cloud.network.links:
        looked_at = f"{link.kind} to {link.hall}"
        found = _gateway(site, link.gateway_id, looked_at) if link.gateway_id else _vpn(site, link, looked_at)
        yield from answered(CHECK, looked_at, found)
        yield from answered(CHECK, f"routes to {link.hall}", _routes(site, link))


def _vpn(site: AwsSite, link: HallLink, looked_at: str) -> Iterator[CheckResult]:
    name = logical(site.name, "hall", link.hall)
    connections = [each for each in site.account.vpns(site.name) if each.name == name]
    if not connections:
        yield CheckResult(CHECK, looked_at, "fail", f"there is no VPN connection {name}", "run `pulumi up`")
    for connection in connections:
        yield _connection(connection, f"{looked_at}: {connection.id}")


def _connection(connection: Vpn, looked_at: str) -> CheckResult:
    up = [tunnel for tunnel in connection.tunnels if tunnel.up]
    down = [f"{each.address} is down ({each.message or 'no message'})" for each in connection.tunnels if not each.up]
    set_up = f"set the hall's device up with `pulumi stack output hall_tunnels --show-secrets` as {PAGE} says"
    if not up:
        return CheckResult(CHECK, looked_at, "fail", f"{connection.state}; {'; '.join(down)}", set_up)
    routes = max(tunnel.routes for tunnel in up)
    if not connection.static and not routes:
        seen = f"{len(up)} of {len(connection.tunnels)} tunnels are up, and no route came from the hall by BGP"
        todo = f"let the hall's device announce its network by BGP, as {PAGE} says"
        return CheckResult(CHECK, looked_at, "fail", seen, todo)
    if down:
        seen = f"one tunnel is up; {'; '.join(down)}: AWS's next maintenance cuts the hall off"
        return CheckResult(CHECK, looked_at, "warn", seen, set_up)
    return CheckResult(CHECK, looked_at, "ok", f"{len(up)} tunnels up, {routes} routes from the hall")


def _gateway(site: AwsSite, gateway: str, looked_at: str) -> Iterator[CheckResult]:
    """A Direct Connect gateway or, by its id, a transit gateway. Another account's owner has to accept."""
    transit = gateway.startswith("tgw-")
    ask = site.account.attachments if transit else site.account.associations
    ours = ask(site.name, gateway)
    if not ours:
        seen = f"the cluster's network is not at gateway {gateway}"
        yield CheckResult(CHECK, looked_at, "fail", seen, "run `pulumi up`, and let the gateway's owner accept it")
    for each in ours:
        what = f"{looked_at}: {each.id}"
        if each.state in JOINED:
            yield CheckResult(CHECK, what, "ok", each.state)
            continue
        page = "Transit gateway attachments" if transit else "Direct Connect gateways"
        todo = f"look at {page} in the console of the owner of {gateway}, who accepts and ends them"
        yield CheckResult(CHECK, what, "fail", f"{each.state}{': ' if each.error else ''}{each.error}", todo)


def _routes(site: AwsSite, link: HallLink) -> Iterator[CheckResult]:
    """Each zone with nodes has a table of its own; the head is in the hall's network."""
    hall = next(hall for hall in site.config.halls if hall.name == link.hall)
    todo = f"let the hall's router announce {hall.cidr} by BGP; it comes into the table by itself ({PAGE})"
    if link.kind == "transit-gateway":
        todo = f"run `pulumi up`, which writes it once the attachment is accepted ({PAGE})"
    tables = site.account.routes(site.name)
    for zone in subnets.zones_in_use(site.cloud):
        table = logical(site.name, "routes", zone)
        yield _route(tables.get(table), hall.cidr, f"route from {zone} to {link.hall}", table, todo)


def _route(routes: list[Route] | None, cidr: str, looked_at: str, table: str, todo: str) -> CheckResult:
    if routes is None:
        return CheckResult(CHECK, looked_at, "fail", f"there is no route table {table}", "run `pulumi up`")
    hall = IPv4Network(cidr)
    ways = [
        each for each in routes if each.destination != "0.0.0.0/0" and hall.subnet_of(IPv4Network(each.destination))
    ]
    if not ways:
        return CheckResult(CHECK, looked_at, "fail", f"no route of {table} covers {cidr}", todo)
    if not any(way.active for way in ways):
        targets = ", ".join(way.target for way in ways)
        return CheckResult(CHECK, looked_at, "fail", f"the route to {cidr} by {targets} is a black hole", todo)
    way = next(way for way in ways if way.active)
    return CheckResult(CHECK, looked_at, "ok", f"{way.destination} by {way.target}")
