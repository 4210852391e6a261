"""A VPN between a hall and a VPC, where moto is kinder than EC2 or lacks it: the gateways at both ends, connections
with their options and keys, route propagation.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import escape

from moto.ec2.models.customer_gateways import CustomerGatewayBackend
from moto.ec2.models.route_tables import Route, RouteTable
from moto.ec2.models.vpcs import VPCBackend
from moto.ec2.models.vpn_connections import VPNConnection
from moto.ec2.models.vpn_gateway import VpnGatewayBackend

from lab.aws.capacity import stash
from lab.aws.ec2_gaps import before, guard
from lab.aws.faults import Ec2Error
from lab.aws.launch_spec import Params

Replace = Callable[[Any, str, Any], None]


# ---- gateways at both ends: moto makes as many as are asked for
def customer_gateway_once(create: Callable[..., Any]) -> Callable[..., Any]:
    """Type, address and ASN are an account's once: asked for again, the first is the answer, with its own tags."""

    def call(backend: Any, gateway_type: str, ip_address: str, bgp_asn: str, tags: Any = None) -> Any:
        asked = (gateway_type, ip_address, bgp_asn)
        for known in backend.customer_gateways.values():
            if known.state != "deleted" and (known.type, known.ip_address, known.bgp_asn) == asked:
                return known
        return create(backend, gateway_type, ip_address, bgp_asn, tags)

    return call


def unused_customer_gateway(backend: Any, customer_gateway_id: str) -> None:
    if any(each.customer_gateway_id == customer_gateway_id for each in connections(backend)):
        raise Ec2Error("IncorrectState", "The customer gateway is in use.")


def in_vpcs(gateway: Any) -> list[str]:
    """The VPCs that a VPN gateway is attached to, or hasn't left yet."""
    return [attachment.vpc_id for attachment in gateway.vpc_attachments if attachment.state != "detached"]


def gateways_at(backend: Any, vpc_id: str) -> list[str]:
    return [gateway.id for gateway in backend.vpn_gateways.values() if vpc_id in in_vpcs(gateway)]


def one_gateway_a_vpc(backend: Any, vpn_gateway_id: str, vpc_id: str) -> None:
    if set(gateways_at(backend, vpc_id)) - {vpn_gateway_id}:
        raise Ec2Error("InvalidVpcState", f"VPC {vpc_id} is currently attached to the Virtual Private Gateway.")


def unused_vpn_gateway(backend: Any, vpn_gateway_id: str) -> None:
    """With which code EC2 refuses one that has a connection isn't documented."""
    connected = any(each.vpn_gateway_id == vpn_gateway_id for each in connections(backend))
    if connected or in_vpcs(backend.get_vpn_gateway(vpn_gateway_id)):
        raise Ec2Error("IncorrectState", "The VPN gateway is in use.")


def detaching(detach: Callable[..., Any]) -> Callable[..., Any]:
    """DetachVpnGateway only begins it."""

    def call(backend: Any, *args: Any, **kwargs: Any) -> Any:
        attachment = detach(backend, *args, **kwargs)
        attachment.state, attachment.shown = "detaching", False
        return attachment

    return call


def detached_when_shown(describe: Callable[..., Any]) -> Callable[..., Any]:
    """DescribeVpnGateways shows `detaching` once."""

    def call(backend: Any, *args: Any, **kwargs: Any) -> Any:
        for gateway in backend.vpn_gateways.values():
            for attachment in gateway.vpc_attachments:
                if attachment.state == "detaching":
                    attachment.state, attachment.shown = "detached" if attachment.shown else "detaching", True
        return describe(backend, *args, **kwargs)

    return call


# ---- VPN connections: moto ignores Options, keys and routes, and its XML is fixed
def connections(backend: Any) -> list[Any]:
    return [each for each in backend.vpn_connections.values() if each.state != "deleted"]


def create_vpn_connection(backend: Any, p: Params) -> Params:
    """The two gateways have one connection: asked for again, it is the answer, as it is."""
    ends = (p["CustomerGatewayId"], p.get("VpnGatewayId"), p.get("TransitGatewayId"))
    for known in connections(backend):
        if (known.customer_gateway_id, known.vpn_gateway_id, known.transit_gateway_id) == ends:
            return {"VpnConnection": known}
    tags = {t["Key"]: t["Value"] for s in p.get("TagSpecifications", []) for t in s["Tags"]}
    if p.get("VpnGatewayId"):
        backend.get_vpn_gateway(p["VpnGatewayId"])
    made = backend.create_vpn_connection(
        p["Type"],
        p["CustomerGatewayId"],
        vpn_gateway_id=p.get("VpnGatewayId"),
        transit_gateway_id=p.get("TransitGatewayId"),
        tags=tags,
    )
    asked = p.get("Options") or {}
    options = [*(asked.get("TunnelOptions") or []), {}, {}][:2]  # there are always two
    tunnels = [tunnel(backend, n, option) for n, option in enumerate(options)]
    made.options = {
        "StaticRoutesOnly": bool(asked.get("StaticRoutesOnly")),
        "TunnelInsideIpVersion": "ipv4",
        "TunnelOptions": tunnels,
        "LocalIpv4NetworkCidr": asked.get("LocalIpv4NetworkCidr", "0.0.0.0/0"),
        "RemoteIpv4NetworkCidr": asked.get("RemoteIpv4NetworkCidr", "0.0.0.0/0"),
    }
    made.routes = []
    made.vgw_telemetry = [
        {"OutsideIpAddress": t["OutsideIpAddress"], "Status": "DOWN", "AcceptedRouteCount": 0} for t in tunnels
    ]
    return {"VpnConnection": made}


def tunnel(backend: Any, number: int, asked: Params) -> Params:
    """One tunnel as asked, with what AWS draws where nothing is asked. Outside addresses are from TEST-NET-2."""
    count = len(backend.vpn_connections)
    inside = asked.get("TunnelInsideCidr") or f"169.254.{10 + number}.{4 * (2 + count % 60)}/30"
    return {
        "OutsideIpAddress": f"198.51.100.{10 + 2 * (count % 100) + number}",
        **asked,
        "TunnelInsideCidr": inside,
        "PreSharedKey": asked.get("PreSharedKey") or secrets.token_urlsafe(24).replace("-", "_"),
    }


class Propagated(Route):
    """A route that came from the hall by BGP."""

    @property
    def origin(self) -> str:
        return "EnableVgwRoutePropagation"


def hall_answers(backend: Any, up: int, networks: list[str]) -> None:
    """The halls' devices bring the first `up` tunnels of every VPN connection up and announce these networks. What
    isn't announced any more goes, as with BGP.
    """
    announced = networks if up else []
    for connection in backend.vpn_connections.values():
        for n, tunnel in enumerate(connection.vgw_telemetry):
            says = "" if n < up else "IPSEC IS DOWN"
            tunnel |= {"Status": "DOWN" if says else "UP", "StatusMessage": says}
            tunnel["AcceptedRouteCount"] = 0 if says else len(announced)
    for table in backend.route_tables.values():
        for key in [key for key, route in table._routes.items() if isinstance(route, Propagated)]:
            del table._routes[key]
        for gateway in stash(backend, "propagation").get(table.id, {}):
            for network in announced:
                route = Propagated(table, network, None, gateway=backend.get_vpn_gateway(gateway))
                table._routes[route.id] = route


def vpn(backend: Any, p: Params) -> Any:
    return backend.describe_vpn_connections([p["VpnConnectionId"]])[0]


def modify_vpn_connection(backend: Any, p: Params) -> Params:
    connection = vpn(backend, p)
    if p.get("VpnGatewayId"):
        connection.vpn_gateway_id = backend.get_vpn_gateway(p["VpnGatewayId"]).id
    if p.get("CustomerGatewayId"):
        connection.customer_gateway_id = backend.get_customer_gateway(p["CustomerGatewayId"]).id
    return {"VpnConnection": connection}


def modify_vpn_connection_options(backend: Any, p: Params) -> Params:
    connection = vpn(backend, p)
    connection.options.update({k: p[k] for k in ("LocalIpv4NetworkCidr", "RemoteIpv4NetworkCidr") if p.get(k)})
    return {"VpnConnection": connection}


def modify_vpn_tunnel_options(backend: Any, p: Params) -> Params:
    connection = vpn(backend, p)
    for options in connection.options["TunnelOptions"]:
        if options["OutsideIpAddress"] == p["VpnTunnelOutsideIpAddress"]:
            options.update(p["TunnelOptions"])
            return {"VpnConnection": connection}
    outside = p["VpnTunnelOutsideIpAddress"]
    raise Ec2Error("InvalidParameterValue", f"{connection.id} has no tunnel with the outside address {outside}")


def create_vpn_connection_route(backend: Any, p: Params) -> None:
    connection = vpn(backend, p)
    if not connection.options["StaticRoutesOnly"]:
        raise Ec2Error("IncorrectState", f"{connection.id} routes with BGP: it takes no static routes")
    connection.routes.append({"DestinationCidrBlock": p["DestinationCidrBlock"], "State": "available"})


def delete_vpn_connection_route(backend: Any, p: Params) -> None:
    connection = vpn(backend, p)
    connection.routes = [r for r in connection.routes if r["DestinationCidrBlock"] != p["DestinationCidrBlock"]]


def customer_gateway_configuration(connection: Any) -> str:
    """The XML that a customer's router is set up from: the parts that Terraform's and Pulumi's provider read."""

    def side(name: str, outside: str, inside: str, asn: Any) -> str:
        return (
            f"<{name}><tunnel_outside_address><ip_address>{outside}</ip_address></tunnel_outside_address><tunnel_inside_address>"
            f"<ip_address>{inside}</ip_address><network_mask>255.255.255.252</network_mask><network_cidr>30</network_cidr>"
            f"</tunnel_inside_address><bgp><asn>{asn}</asn><hold_time>30</hold_time></bgp></{name}>"
        )

    backend, tunnels = connection.ec2_backend, []
    customer = backend.get_customer_gateway(connection.customer_gateway_id)
    gateway = backend.vpn_gateways.get(connection.vpn_gateway_id)
    our_asn = getattr(gateway, "amazon_side_asn", None) or 64512
    for options in connection.options["TunnelOptions"]:
        net = ipaddress.ip_network(options["TunnelInsideCidr"])
        tunnels.append(
            "<ipsec_tunnel>"
            + side("customer_gateway", customer.ip_address, str(net[2]), customer.bgp_asn)
            + side("vpn_gateway", options["OutsideIpAddress"], str(net[1]), our_asn)
            + f"<ike><pre_shared_key>{escape(options['PreSharedKey'])}</pre_shared_key></ike></ipsec_tunnel>"
        )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><vpn_connection id="{connection.id}">'
        f"<customer_gateway_id>{customer.id}</customer_gateway_id>"
        f"<vpn_gateway_id>{connection.vpn_gateway_id or ''}</vpn_gateway_id>"
        f"<vpn_connection_type>{connection.type}</vpn_connection_type>{''.join(tunnels)}</vpn_connection>"
    )


# ---- route propagation
def enable_vgw_route_propagation(backend: Any, p: Params) -> None:
    table, gateway = backend.get_route_table(p["RouteTableId"]), backend.get_vpn_gateway(p["GatewayId"])
    attached = gateway.attachments.get(table.vpc_id)
    if not attached or attached.state != "attached":
        raise Ec2Error("Gateway.NotAttached", f"resource {gateway.id} is not attached to network {table.vpc_id}")
    stash(backend, "propagation").setdefault(table.id, {})[gateway.id] = True


def disable_vgw_route_propagation(backend: Any, p: Params) -> None:
    backend.get_route_table(p["RouteTableId"])
    stash(backend, "propagation").get(p["RouteTableId"], {}).pop(p["GatewayId"], None)


def patch(replace: Replace) -> None:
    """Install the checks and read-only attributes; actions are installed by the caller from ACTIONS."""
    replace(
        RouteTable,
        "propagating_vgws",
        property(lambda table: [{"GatewayId": g} for g in stash(table.ec2_backend, "propagation").get(table.id, {})]),
    )
    replace(VPNConnection, "customer_gateway_configuration", property(customer_gateway_configuration))
    once = customer_gateway_once(CustomerGatewayBackend.create_customer_gateway)
    replace(CustomerGatewayBackend, "create_customer_gateway", once)
    before(replace, CustomerGatewayBackend, "delete_customer_gateway", unused_customer_gateway)
    before(replace, VpnGatewayBackend, "attach_vpn_gateway", one_gateway_a_vpc)
    before(replace, VpnGatewayBackend, "delete_vpn_gateway", unused_vpn_gateway)
    replace(VpnGatewayBackend, "detach_vpn_gateway", detaching(VpnGatewayBackend.detach_vpn_gateway))
    looked_at = detached_when_shown(VpnGatewayBackend.describe_vpn_gateways)
    replace(VpnGatewayBackend, "describe_vpn_gateways", looked_at)
    guard(replace, VPCBackend, "delete_vpc", gateways_at)


ACTIONS = {
    f.__name__: f
    for f in (
        enable_vgw_route_propagation,
        disable_vgw_route_propagation,
        create_vpn_connection,
        modify_vpn_connection,
        modify_vpn_connection_options,
        modify_vpn_tunnel_options,
        create_vpn_connection_route,
        delete_vpn_connection_route,
    )
}
