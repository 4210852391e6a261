"""Links of a VPC to a hall that somebody else keeps: transit gateway attachment, Direct Connect association."""

from __future__ import annotations

from typing import Any

from lab.aws_plugin.spec import Aws, Resource, changed, ec2_tag, one, pick, tag_map, tag_spec
from lab.provider.wire import Props

OPTIONS = "applianceModeSupport dnsSupport"


# ---- VpcAttachment
def options(new: Props) -> Props:
    return {key[:1].upper() + key[1:]: new[key] for key in OPTIONS.split() if new.get(key)}


def create_attachment(aws: Aws, new: Props) -> str:
    made = aws.ec2.create_transit_gateway_vpc_attachment(
        TransitGatewayId=new["transitGatewayId"],
        VpcId=new["vpcId"],
        SubnetIds=new["subnetIds"],
        Options=options(new),
        **tag_spec("transit-gateway-attachment", new),
    )
    return made["TransitGatewayVpcAttachment"]["TransitGatewayAttachmentId"]


def attachment(aws: Aws, rid: str) -> Props | None:
    described = aws.ec2.describe_transit_gateway_vpc_attachments(TransitGatewayAttachmentIds=[rid])
    return one(described["TransitGatewayVpcAttachments"])


def apply_attachment(aws: Aws, rid: str, old: Props, new: Props) -> None:
    before, after = set(old["subnetIds"]), set(new["subnetIds"])
    aws.ec2.modify_transit_gateway_vpc_attachment(
        TransitGatewayAttachmentId=rid,
        AddSubnetIds=sorted(after - before),
        RemoveSubnetIds=sorted(before - after),
        Options=options(new),
    )


def read_attachment(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = attachment(aws, rid)
    if not described or described["State"] in ("deleted", "deleting", "rejected"):
        return None
    return {
        **pick(described, "transitGatewayId vpcId subnetIds vpcOwnerId"),
        **pick(described.get("Options", {}), OPTIONS),
        "arn": aws.arn("ec2", f"transit-gateway-attachment/{rid}"),
        "tags": tag_map(described.get("Tags")),
    }


def delete_attachment(aws: Aws, rid: str, _state: Props) -> None:
    if attachment(aws, rid):
        aws.ec2.delete_transit_gateway_vpc_attachment(TransitGatewayAttachmentId=rid)


# ---- GatewayAssociation
def direct(aws: Aws) -> Any:
    return aws.client("directconnect")


def prefixes(cidrs: list[str]) -> list[Props]:
    return [{"cidr": cidr} for cidr in cidrs]


def create_association(aws: Aws, new: Props) -> str:
    direct(aws).create_direct_connect_gateway_association(
        directConnectGatewayId=new["dxGatewayId"],
        gatewayId=new["associatedGatewayId"],
        addAllowedPrefixesToDirectConnectGateway=prefixes(new.get("allowedPrefixes") or []),
    )
    return f"ga-{new['dxGatewayId']}{new['associatedGatewayId']}"


def association(aws: Aws, state: Props) -> Props | None:
    rows = direct(aws).describe_direct_connect_gateway_associations()["directConnectGatewayAssociations"]
    wanted = state["dxGatewayId"], state["associatedGatewayId"]
    return one([row for row in rows if (row["directConnectGatewayId"], row["associatedGateway"]["id"]) == wanted])


def apply_association(aws: Aws, _rid: str, old: Props, new: Props) -> None:
    if changed(old, new, "allowedPrefixes") and (described := association(aws, new)):
        before, after = set(old.get("allowedPrefixes") or []), set(new.get("allowedPrefixes") or [])
        direct(aws).update_direct_connect_gateway_association(
            associationId=described["associationId"],
            addAllowedPrefixesToDirectConnectGateway=prefixes(sorted(after - before)),
            removeAllowedPrefixesToDirectConnectGateway=prefixes(sorted(before - after)),
        )


def read_association(aws: Aws, _rid: str, state: Props) -> Props | None:
    described = association(aws, state)
    return described and {
        "dxGatewayId": described["directConnectGatewayId"],
        "associatedGatewayId": described["associatedGateway"]["id"],
        "associatedGatewayType": described["associatedGateway"]["type"],
        "allowedPrefixes": [row["cidr"] for row in described["allowedPrefixesToDirectConnectGateway"]],
        "dxGatewayAssociationId": described["associationId"],
        "dxGatewayOwnerAccountId": described["directConnectGatewayOwnerAccount"],
    }


def delete_association(aws: Aws, _rid: str, state: Props) -> None:
    if described := association(aws, state):
        direct(aws).delete_direct_connect_gateway_association(associationId=described["associationId"])


SPECS = [
    Resource(
        "aws:ec2transitgateway/vpcAttachment:VpcAttachment",
        "transitGatewayId vpcId subnetIds " + OPTIONS,
        create=create_attachment,
        read=read_attachment,
        delete=delete_attachment,
        apply=apply_attachment,
        tag=ec2_tag,
        # the real provider goes on when the gateway's owner has yet to accept it
        ready=lambda aws, rid: (attachment(aws, rid) or {}).get("State") in ("available", "pendingAcceptance"),
        replace="transitGatewayId vpcId",
    ),
    Resource(
        "aws:directconnect/gatewayAssociation:GatewayAssociation",
        "dxGatewayId associatedGatewayId allowedPrefixes",
        create=create_association,
        read=read_association,
        delete=delete_association,
        apply=apply_association,
        replace="dxGatewayId associatedGatewayId",
    ),
]
