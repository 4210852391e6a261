"""The hall's link: customer gateway, VPN gateway, VPN connection."""

from __future__ import annotations

from xml.etree import ElementTree

from lab.aws_plugin.spec import Aws, Resource, changed, ec2_tag, one, pick, tag_map, tag_spec
from lab.provider.wire import Props

ENDED = ("deleted", "deleting")


# ---- CustomerGateway
def create_customer(aws: Aws, new: Props) -> str:
    asked = {
        "BgpAsn": int(new.get("bgpAsn", 65000)),
        "Type": new["type"],
        "IpAddress": new.get("ipAddress"),
        "DeviceName": new.get("deviceName"),
    }
    made = aws.ec2.create_customer_gateway(
        **{k: v for k, v in asked.items() if v is not None}, **tag_spec("customer-gateway", new)
    )
    return made["CustomerGateway"]["CustomerGatewayId"]


def read_customer(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = one(aws.ec2.describe_customer_gateways(CustomerGatewayIds=[rid])["CustomerGateways"])
    if not described or described["State"] in ENDED:
        return None
    return {
        **pick(described, "bgpAsn ipAddress type deviceName"),
        "arn": aws.arn("ec2", f"customer-gateway/{rid}"),
        "tags": tag_map(described.get("Tags")),
    }


# ---- VpnGateway
def vpn_gateway(aws: Aws, rid: str) -> Props | None:
    described = one(aws.ec2.describe_vpn_gateways(VpnGatewayIds=[rid])["VpnGateways"])
    return described if described and described.get("State") not in ENDED else None


def attached(described: Props | None) -> str | None:
    attachments = (described or {}).get("VpcAttachments", [])
    return next((a["VpcId"] for a in attachments if a["State"] not in ("detached", "detaching")), None)


def is_free(described: Props | None) -> bool:
    return all(a["State"] == "detached" for a in (described or {}).get("VpcAttachments", []))


def create_gateway(aws: Aws, new: Props) -> str:
    asn = {"AmazonSideAsn": int(new["amazonSideAsn"])} if new.get("amazonSideAsn") else {}
    made = aws.ec2.create_vpn_gateway(Type="ipsec.1", **asn, **tag_spec("vpn-gateway", new))
    return made["VpnGateway"]["VpnGatewayId"]


def apply_gateway(aws: Aws, rid: str, old: Props, new: Props) -> None:
    if not changed(old, new, "vpcId"):
        return
    if old.get("vpcId"):
        leave(aws, rid)
    if new.get("vpcId"):
        aws.ec2.attach_vpn_gateway(VpnGatewayId=rid, VpcId=new["vpcId"])
        aws.wait(f"{rid} attached", lambda: attached(vpn_gateway(aws, rid)) == new["vpcId"])


def leave(aws: Aws, rid: str) -> None:
    """Until it is detached: before, EC2 doesn't delete it."""
    if vpc := attached(vpn_gateway(aws, rid)):
        aws.ec2.detach_vpn_gateway(VpnGatewayId=rid, VpcId=vpc)
    aws.wait(f"{rid} detached", lambda: is_free(vpn_gateway(aws, rid)))


def read_gateway(aws: Aws, rid: str, _state: Props) -> Props | None:
    if not (described := vpn_gateway(aws, rid)):
        return None
    return {
        "vpcId": attached(described),
        "amazonSideAsn": str(described.get("AmazonSideAsn") or ""),
        "arn": aws.arn("ec2", f"vpn-gateway/{rid}"),
        "tags": tag_map(described.get("Tags")),
    }


def delete_gateway(aws: Aws, rid: str, _state: Props) -> None:
    leave(aws, rid)
    aws.ec2.delete_vpn_gateway(VpnGatewayId=rid)


# ---- VpnConnection
def connection(aws: Aws, rid: str) -> Props | None:
    described = one(aws.ec2.describe_vpn_connections(VpnConnectionIds=[rid])["VpnConnections"])
    return described if described and described["State"] not in ENDED else None


def tunnel_options(new: Props, n: int) -> Props:
    asked = {"TunnelInsideCidr": new.get(f"tunnel{n}InsideCidr"), "PreSharedKey": new.get(f"tunnel{n}PresharedKey")}
    return {k: v for k, v in asked.items() if v}


def create_connection(aws: Aws, new: Props) -> str:
    options = {
        "StaticRoutesOnly": bool(new.get("staticRoutesOnly")),
        "TunnelOptions": [tunnel_options(new, 1), tunnel_options(new, 2)],
    }
    made = aws.ec2.create_vpn_connection(
        Type=new["type"],
        CustomerGatewayId=new["customerGatewayId"],
        VpnGatewayId=new["vpnGatewayId"],
        Options=options,
        **tag_spec("vpn-connection", new),
    )
    return made["VpnConnection"]["VpnConnectionId"]


def apply_connection(aws: Aws, rid: str, old: Props, new: Props) -> None:
    if moved := changed(old, new, "customerGatewayId vpnGatewayId"):
        aws.ec2.modify_vpn_connection(VpnConnectionId=rid, **{k[:1].upper() + k[1:]: new[k] for k in moved})
    seen = tunnels((connection(aws, rid) or {}).get("CustomerGatewayConfiguration"))
    for n in (1, 2):
        key = f"tunnel{n}PresharedKey"
        if changed(old, new, key) and new.get(key):
            aws.ec2.modify_vpn_tunnel_options(
                VpnConnectionId=rid,
                VpnTunnelOutsideIpAddress=seen[f"tunnel{n}Address"],
                TunnelOptions={"PreSharedKey": new[key]},
            )


def tunnels(xml: str | None) -> Props:
    """What the customer's configuration says about each tunnel."""
    out: Props = {}
    paths = {
        "Address": "vpn_gateway/tunnel_outside_address/ip_address",
        "VgwInsideAddress": "vpn_gateway/tunnel_inside_address/ip_address",
        "CgwInsideAddress": "customer_gateway/tunnel_inside_address/ip_address",
        "PresharedKey": "ike/pre_shared_key",
        "BgpAsn": "vpn_gateway/bgp/asn",
        "BgpHoldtime": "vpn_gateway/bgp/hold_time",
    }
    for n, tunnel in enumerate(ElementTree.fromstring(xml).findall("ipsec_tunnel") if xml else [], start=1):
        for name, path in paths.items():
            if (text := tunnel.findtext(path)) is not None:
                out[f"tunnel{n}{name}"] = int(text) if name == "BgpHoldtime" else text
    return out


def read_connection(aws: Aws, rid: str, _state: Props) -> Props | None:
    if not (described := connection(aws, rid)):
        return None
    options = described.get("Options", {})
    cidrs = {
        f"tunnel{n}InsideCidr": t["TunnelInsideCidr"]
        for n, t in enumerate(options.get("TunnelOptions", []), start=1)
        if t.get("TunnelInsideCidr")
    }
    telemetry = [
        {
            "outsideIpAddress": t.get("OutsideIpAddress"),
            "status": t.get("Status"),
            "acceptedRouteCount": t.get("AcceptedRouteCount", 0),
        }
        for t in described.get("VgwTelemetry", [])
    ]
    return {
        **pick(described, "customerGatewayId vpnGatewayId type customerGatewayConfiguration"),
        **cidrs,
        "vgwTelemetries": telemetry,
        "staticRoutesOnly": bool(options.get("StaticRoutesOnly")),
        **tunnels(described.get("CustomerGatewayConfiguration")),
        "arn": aws.arn("ec2", f"vpn-connection/{rid}"),
        "tags": tag_map(described.get("Tags")),
    }


def delete_connection(aws: Aws, rid: str, _state: Props) -> None:
    aws.ec2.delete_vpn_connection(VpnConnectionId=rid)
    aws.wait(f"{rid} deleted", lambda: connection(aws, rid) is None)


SPECS = [
    Resource(
        "aws:ec2/customerGateway:CustomerGateway",
        "bgpAsn ipAddress type deviceName",
        create=create_customer,
        read=read_customer,
        delete=lambda aws, rid, _state: aws.ec2.delete_customer_gateway(CustomerGatewayId=rid),
        tag=ec2_tag,
        replace="bgpAsn ipAddress type deviceName",
    ),
    Resource(
        "aws:ec2/vpnGateway:VpnGateway",
        "vpcId amazonSideAsn",
        create=create_gateway,
        read=read_gateway,
        delete=delete_gateway,
        apply=apply_gateway,
        finish=True,
        tag=ec2_tag,
        replace="amazonSideAsn",
    ),
    Resource(
        "aws:ec2/vpnConnection:VpnConnection",
        "customerGatewayId vpnGatewayId type staticRoutesOnly "
        "tunnel1InsideCidr tunnel2InsideCidr tunnel1PresharedKey tunnel2PresharedKey",
        create=create_connection,
        read=read_connection,
        delete=delete_connection,
        apply=apply_connection,
        tag=ec2_tag,
        ready=lambda aws, rid: (connection(aws, rid) or {}).get("State") == "available",
        secret="tunnel1PresharedKey tunnel2PresharedKey customerGatewayConfiguration",
        replace="type staticRoutesOnly tunnel1InsideCidr tunnel2InsideCidr",
        check=lambda _olds, news: [] if news.get("vpnGatewayId") else [("vpnGatewayId", "is required by the stand-in")],
    ),
]
