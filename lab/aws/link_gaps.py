"""What links a VPC to a hall, where moto is kinder than EC2 or lacks it: transit gateway attachments and the routes to
them, Direct Connect gateways and their associations.
"""

from __future__ import annotations

import inspect
import json
import uuid
from collections.abc import Callable
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.directconnect.responses import DirectConnectResponse
from moto.ec2.models import ec2_backends
from moto.ec2.models.route_tables import RouteBackend
from moto.ec2.models.transit_gateway import TransitGateway
from moto.ec2.models.transit_gateway_attachments import TransitGatewayAttachment, TransitGatewayAttachmentBackend

from lab.aws.capacity import stash
from lab.aws.ec2_gaps import by_tags
from lab.aws.faults import Ec2Error
from lab.aws.launch_spec import Params

Replace = Callable[[Any, str, Any], None]


# ---- transit gateways
def owner_of(gateway: Any) -> str:
    """Another account's, where a test has put it among the "foreign" ones (shared by Resource Access Manager)."""
    backend = gateway.ec2_backend
    return str(stash(backend, "foreign").get(gateway.id, backend.account_id))


def create_transit_gateway_vpc_attachment(backend: Any, p: Params) -> Params:
    """One subnet a zone, all of the VPC; another account's gateway waits for its owner."""
    subnets = [backend.get_subnet(each) for each in p.get("SubnetIds", [])]
    if any(subnet.vpc_id != p["VpcId"] for subnet in subnets):
        raise Ec2Error("InvalidSubnetID.NotFound", f"the subnets are not all in {p['VpcId']}")
    if len({subnet.availability_zone for subnet in subnets}) < len(subnets):
        raise Ec2Error("DuplicateSubnetsInSameZone", "Duplicate Subnets for same AZ")
    tags = {t["Key"]: t["Value"] for s in p.get("TagSpecifications", []) for t in s["Tags"]}
    made = backend.create_transit_gateway_vpc_attachment(
        p["TransitGatewayId"], p["VpcId"], list(p.get("SubnetIds", [])), tags, p.get("Options")
    )
    gateway = backend.transit_gateways[p["TransitGatewayId"]]
    if owner_of(gateway) != backend.account_id and gateway.options["AutoAcceptSharedAttachments"] != "enable":
        made.state = "pendingAcceptance"
    return {"TransitGatewayVpcAttachment": made}


def attached(backend: Any, gateway_id: str, vpc_id: str) -> bool:
    return any(
        each.transit_gateway_id == gateway_id and each.resource_id == vpc_id and each.state == "available"
        for each in backend.transit_gateway_attachments.values()
    )


def routed(method: Callable[..., Any]) -> Callable[..., Any]:
    """EC2 knows no transit gateway that the table's VPC isn't attached to."""

    names = inspect.signature(method)

    def call(backend: Any, route_table_id: str, *args: Any, **kwargs: Any) -> Any:
        gateway_id = names.bind(backend, route_table_id, *args, **kwargs).arguments.get("transit_gateway_id")
        if gateway_id and not attached(backend, gateway_id, backend.get_route_table(route_table_id).vpc_id):
            message = f"The transitGateway ID '{gateway_id}' does not exist."
            raise Ec2Error("InvalidTransitGatewayID.NotFound", message)
        return method(backend, route_table_id, *args, **kwargs)

    return call


# ---- Direct Connect
class DirectConnectRefused(JsonRESTError):
    code = 400

    def __init__(self, message: str):
        super().__init__("DirectConnectClientException", message)


def gateways(response: Any) -> dict[str, Params]:
    """Id -> Direct Connect gateway. They are global: kept in one place for all regions."""
    return stash(ec2_backends[response.current_account]["us-east-1"], "direct-connect-gateways")


def associations(response: Any) -> dict[str, Params]:
    return stash(ec2_backends[response.current_account]["us-east-1"], "direct-connect-associations")


def create_direct_connect_gateway(response: Any) -> str:
    p, name = json.loads(response.body), str(uuid.uuid4())
    gateways(response)[name] = {
        "directConnectGatewayId": name,
        "directConnectGatewayName": p["directConnectGatewayName"],
        "amazonSideAsn": p.get("amazonSideAsn", 64512),
        "ownerAccount": response.current_account,
        "directConnectGatewayState": "available",
    }
    return json.dumps({"directConnectGateway": gateways(response)[name]})


def create_direct_connect_gateway_association(response: Any) -> str:
    p = json.loads(response.body)
    gateway_id = p["directConnectGatewayId"]
    if gateway_id not in gateways(response):
        raise DirectConnectRefused(f"Direct Connect Gateway {gateway_id} does not exist.")
    backend = ec2_backends[response.current_account][response.region]
    virtual = backend.vpn_gateways.get(p["gatewayId"])
    if virtual is None or not any(each.state == "attached" for each in virtual.attachments.values()):
        raise DirectConnectRefused(f"Virtual Gateway {p['gatewayId']} is not attached to a VPC.")
    if any(row["associatedGateway"]["id"] == virtual.id for row in associations(response).values()):
        raise DirectConnectRefused(f"Virtual Gateway {virtual.id} is already associated with a Direct Connect gateway.")
    name = str(uuid.uuid4())
    associations(response)[name] = {
        "associationId": name,
        "associationState": "associated",
        "directConnectGatewayId": gateway_id,
        "directConnectGatewayOwnerAccount": response.current_account,
        "associatedGateway": {
            "id": virtual.id,
            "type": "virtualPrivateGateway",
            "ownerAccount": response.current_account,
            "region": response.region,
        },
        "allowedPrefixesToDirectConnectGateway": p.get("addAllowedPrefixesToDirectConnectGateway", []),
    }
    return json.dumps({"directConnectGatewayAssociation": associations(response)[name]})


def of_association(response: Any, p: Params) -> Params:
    if p["associationId"] not in associations(response):
        raise DirectConnectRefused(f"Direct Connect Gateway Association {p['associationId']} does not exist.")
    return associations(response)[p["associationId"]]


def update_direct_connect_gateway_association(response: Any) -> str:
    p = json.loads(response.body)
    row, gone = of_association(response, p), p.get("removeAllowedPrefixesToDirectConnectGateway", [])
    kept = [each for each in row["allowedPrefixesToDirectConnectGateway"] if each not in gone]
    row["allowedPrefixesToDirectConnectGateway"] = kept + p.get("addAllowedPrefixesToDirectConnectGateway", [])
    return json.dumps({"directConnectGatewayAssociation": row})


def delete_direct_connect_gateway_association(response: Any) -> str:
    row = of_association(response, json.loads(response.body))
    del associations(response)[row["associationId"]]
    return json.dumps({"directConnectGatewayAssociation": row | {"associationState": "disassociating"}})


def describe_direct_connect_gateway_associations(response: Any) -> str:
    asked = json.loads(response.body)
    rows = [
        row
        for row in associations(response).values()
        if all(asked.get(key) in (None, row[key]) for key in ("associationId", "directConnectGatewayId"))
    ]
    return json.dumps({"directConnectGatewayAssociations": rows})


def patch(replace: Replace) -> None:
    """Install all but the EC2 actions, which the caller takes from ACTIONS."""
    replace(TransitGateway, "owner_id", property(owner_of))
    replace(
        TransitGatewayAttachment,
        "transit_gateway_owner_id",
        property(lambda each: owner_of(each.ec2_backend.transit_gateways[each.transit_gateway_id])),
    )
    shown = TransitGatewayAttachmentBackend.describe_transit_gateway_vpc_attachments
    replace(TransitGatewayAttachmentBackend, "describe_transit_gateway_vpc_attachments", by_tags(shown))
    for name in ("create_route", "replace_route"):
        replace(RouteBackend, name, routed(RouteBackend.__dict__[name]))
    for method in (
        create_direct_connect_gateway,
        create_direct_connect_gateway_association,
        update_direct_connect_gateway_association,
        delete_direct_connect_gateway_association,
        describe_direct_connect_gateway_associations,
    ):
        replace(DirectConnectResponse, method.__name__, method)


ACTIONS = {"create_transit_gateway_vpc_attachment": create_transit_gateway_vpc_attachment}
