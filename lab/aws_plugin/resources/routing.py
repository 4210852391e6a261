"""Route tables, routes, associations, propagation from a VPN gateway."""

from __future__ import annotations

import hashlib

from lab.aws_plugin.spec import Aws, Resource, ec2_tag, first, given, one, pick, tag_map, tag_spec
from lab.provider.service import PluginError
from lab.provider.wire import Props

TARGETS = "gatewayId natGatewayId networkInterfaceId transitGatewayId vpcPeeringConnectionId"
ROUTE = "destinationCidrBlock " + TARGETS


def table(aws: Aws, rid: str) -> Props:
    return first(aws.ec2.describe_route_tables(RouteTableIds=[rid])["RouteTables"])


def route(aws: Aws, table_id: str, cidr: str) -> Props | None:
    return next((r for r in table(aws, table_id).get("Routes", []) if r.get("DestinationCidrBlock") == cidr), None)


# ---- RouteTable
def own_routes(described: Props) -> list[Props]:
    """Routes that somebody wrote: not the local one, nor those of gateway endpoints or of propagation."""
    rows = [
        r
        for r in described.get("Routes", [])
        if r.get("DestinationCidrBlock")
        and r.get("GatewayId") != "local"
        and r.get("Origin") != "EnableVgwRoutePropagation"
        and not str(r.get("GatewayId", "")).startswith("vpce-")
    ]
    return [{"cidrBlock": r["DestinationCidrBlock"], **pick(r, TARGETS)} for r in rows]


def create_table(aws: Aws, new: Props) -> str:
    made = aws.ec2.create_route_table(VpcId=new["vpcId"], **tag_spec("route-table", new))
    return made["RouteTable"]["RouteTableId"]


def apply_table(aws: Aws, rid: str, old: Props, new: Props) -> None:
    before = {r["cidrBlock"]: r for r in old.get("routes") or []}
    after = {r["cidrBlock"]: r for r in new.get("routes") or []}
    for cidr in before.keys() - after.keys():
        aws.ec2.delete_route(RouteTableId=rid, DestinationCidrBlock=cidr)
    for cidr, row in after.items():
        if row != before.get(cidr):
            write = aws.ec2.replace_route if cidr in before else aws.ec2.create_route
            write(RouteTableId=rid, DestinationCidrBlock=cidr, **given(row, TARGETS))
    before_vgws, after_vgws = set(old.get("propagatingVgws") or []), set(new.get("propagatingVgws") or [])
    for gateway in sorted(before_vgws - after_vgws):
        aws.ec2.disable_vgw_route_propagation(RouteTableId=rid, GatewayId=gateway)
    for gateway in sorted(after_vgws - before_vgws):
        aws.ec2.enable_vgw_route_propagation(RouteTableId=rid, GatewayId=gateway)


def read_table(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = table(aws, rid)
    return {
        **pick(described, "vpcId ownerId"),
        "routes": own_routes(described),
        "arn": aws.arn("ec2", f"route-table/{rid}"),
        "propagatingVgws": [v["GatewayId"] for v in described.get("PropagatingVgws", [])],
        "tags": tag_map(described.get("Tags")),
    }


# ---- Route
def create_route(aws: Aws, new: Props) -> str:
    aws.ec2.create_route(RouteTableId=new["routeTableId"], **given(new, ROUTE))
    return f"r-{new['routeTableId']}{hashlib.sha256(new['destinationCidrBlock'].encode()).hexdigest()[:10]}"


def apply_route(aws: Aws, _rid: str, _old: Props, new: Props) -> None:
    aws.ec2.replace_route(RouteTableId=new["routeTableId"], **given(new, ROUTE))


def read_route(aws: Aws, _rid: str, state: Props) -> Props | None:
    if not state.get("routeTableId"):
        raise PluginError("a Route cannot be read by its id alone in this stand-in")
    described = route(aws, state["routeTableId"], state["destinationCidrBlock"])
    return described and {"routeTableId": state["routeTableId"], **pick(described, ROUTE + " state origin")}


def delete_route(aws: Aws, _rid: str, state: Props) -> None:
    if route(aws, state["routeTableId"], state["destinationCidrBlock"]):
        aws.ec2.delete_route(RouteTableId=state["routeTableId"], DestinationCidrBlock=state["destinationCidrBlock"])


def check_route(_olds: Props, news: Props) -> list[tuple[str, str]]:
    missing = [] if news.get("destinationCidrBlock") else [("destinationCidrBlock", "is required by the stand-in")]
    count = sum(t in news for t in TARGETS.split())
    if count != 1:
        missing.append(("gatewayId", f"exactly one target is needed ({TARGETS}), {count} are given"))
    return missing


# ---- RouteTableAssociation: found by its subnet, because replacing it gives it another id
def association(aws: Aws, subnet_id: str) -> Props | None:
    filters = [{"Name": "association.subnet-id", "Values": [subnet_id]}]
    described = one(aws.ec2.describe_route_tables(Filters=filters)["RouteTables"])
    return described and next((a for a in described["Associations"] if a.get("SubnetId") == subnet_id), None)


def current(aws: Aws, _rid: str, state: Props) -> Props | None:
    if state.get("subnetId"):
        return association(aws, state["subnetId"])
    raise PluginError("a RouteTableAssociation cannot be read by its id alone in this stand-in")


def create_association(aws: Aws, new: Props) -> str:
    made = aws.ec2.associate_route_table(SubnetId=new["subnetId"], RouteTableId=new["routeTableId"])
    return made["AssociationId"]


def apply_association(aws: Aws, _rid: str, _old: Props, new: Props) -> None:
    if not (described := association(aws, new["subnetId"])):
        raise PluginError(f"subnet {new['subnetId']} has no association any more: run a refresh")
    aws.ec2.replace_route_table_association(
        AssociationId=described["RouteTableAssociationId"], RouteTableId=new["routeTableId"]
    )


def read_association(aws: Aws, rid: str, state: Props) -> Props | None:
    described = current(aws, rid, state)
    return described and pick(described, "subnetId routeTableId")


def delete_association(aws: Aws, rid: str, state: Props) -> None:
    if described := current(aws, rid, state):
        aws.ec2.disassociate_route_table(AssociationId=described["RouteTableAssociationId"])


# ---- VpnGatewayRoutePropagation
def create_propagation(aws: Aws, new: Props) -> str:
    aws.ec2.enable_vgw_route_propagation(RouteTableId=new["routeTableId"], GatewayId=new["vpnGatewayId"])
    return f"{new['vpnGatewayId']}_{new['routeTableId']}"


def read_propagation(aws: Aws, rid: str, _state: Props) -> Props | None:
    gateway, table_id = rid.split("_", 1)
    on = any(v["GatewayId"] == gateway for v in table(aws, table_id).get("PropagatingVgws", []))
    return {"vpnGatewayId": gateway, "routeTableId": table_id} if on else None


def delete_propagation(aws: Aws, rid: str, _state: Props) -> None:
    gateway, table_id = rid.split("_", 1)
    aws.ec2.disable_vgw_route_propagation(RouteTableId=table_id, GatewayId=gateway)


SPECS = [
    Resource(
        "aws:ec2/routeTable:RouteTable",
        "vpcId routes{cidrBlock " + TARGETS + "} propagatingVgws",
        create=create_table,
        read=read_table,
        delete=lambda aws, rid, _state: aws.ec2.delete_route_table(RouteTableId=rid),
        apply=apply_table,
        finish=True,
        tag=ec2_tag,
        replace="vpcId",
    ),
    Resource(
        "aws:ec2/route:Route",
        "routeTableId " + ROUTE,
        create=create_route,
        read=read_route,
        delete=delete_route,
        apply=apply_route,
        check=check_route,
        replace="routeTableId destinationCidrBlock",
    ),
    Resource(
        "aws:ec2/routeTableAssociation:RouteTableAssociation",
        "subnetId routeTableId",
        create=create_association,
        read=read_association,
        delete=delete_association,
        apply=apply_association,
        replace="subnetId",
        check=lambda _olds, news: [] if news.get("subnetId") else [("subnetId", "is required by the stand-in")],
    ),
    Resource(
        "aws:ec2/vpnGatewayRoutePropagation:VpnGatewayRoutePropagation",
        "vpnGatewayId routeTableId",
        create=create_propagation,
        read=read_propagation,
        delete=delete_propagation,
        replace="vpnGatewayId routeTableId",
    ),
]
