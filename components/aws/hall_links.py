"""The ways from the cloud network to the halls: VPN and Direct Connect on its one VPN gateway, and transit gateways."""

from collections.abc import Iterable

import pulumi
import pulumi_aws as aws

from ironburst.config.aws.network_models import HallLink
from ironburst.nodes.naming import logical, tags


class HallLinks:
    """For the private route tables: `gateways` (their routes come by BGP, propagated; at most one) and `routes` (to
    transit gateways: nothing propagates those into a VPC). `tunnels`: what the halls' VPN devices need, secret. No
    component of its own: another parent would replace the VPN gateways of stacks that are there.
    """

    gateways: list[aws.ec2.VpnGateway]
    routes: list[aws.ec2.RouteTableRouteArgs]
    tunnels: pulumi.Output[list[dict[str, str]]]

    def __init__(
        self,
        name: str,
        *,
        links: list[HallLink],
        vpc_id: pulumi.Output[str],
        cidr: str,
        subnet_ids: list[pulumi.Output[str]],
        hall_cidrs: dict[str, str],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """`cidr`: the VPC's network. `subnet_ids`: one a zone. `hall_cidrs`: hall name -> network of its nodes."""
        self._name, self._vpc_id, self._cidr, self._child = name, vpc_id, cidr, opts
        of_kind = {kind: [link for link in links if link.kind == kind] for kind in ("vpn", "direct-connect")}
        self.gateways = [self._gateway()] if any(of_kind.values()) else []
        tunnels = [_tunnels(link.hall, self._vpn(link, self.gateways[0])) for link in of_kind["vpn"]]
        self.tunnels = pulumi.Output.from_input([])
        if tunnels:
            self.tunnels = pulumi.Output.secret(pulumi.Output.all(*tunnels).apply(_joined))
        if of_kind["direct-connect"]:  # all name one gateway (config's checks)
            self._direct_connect(of_kind["direct-connect"][0], self.gateways[0])
        self.routes = self._transit([link for link in links if link.kind == "transit-gateway"], subnet_ids, hall_cidrs)

    def _tags(self, *parts: str) -> dict[str, str]:
        return tags(self._name, logical(*parts))

    def _gateway(self) -> aws.ec2.VpnGateway:
        """A VPC takes one."""
        return aws.ec2.VpnGateway(
            logical(self._name, "hall"), vpc_id=self._vpc_id, tags=self._tags("hall"), opts=self._child
        )

    def _vpn(self, link: HallLink, gateway: aws.ec2.VpnGateway) -> aws.ec2.VpnConnection:
        label, its_tags = logical(self._name, "hall", link.hall), self._tags("hall", link.hall)
        peer = aws.ec2.CustomerGateway(
            label,
            bgp_asn=str(link.peer_asn),
            ip_address=link.peer_address,
            type="ipsec.1",
            tags=its_tags,
            opts=self._child,
        )
        return aws.ec2.VpnConnection(
            label,
            customer_gateway_id=peer.id,
            vpn_gateway_id=gateway.id,
            type="ipsec.1",
            static_routes_only=False,
            tags=its_tags,
            opts=self._child,
        )

    def _direct_connect(self, link: HallLink, gateway: aws.ec2.VpnGateway) -> None:
        assert link.gateway_id is not None  # config's checks
        aws.directconnect.GatewayAssociation(
            logical(self._name, "hall", link.hall),
            dx_gateway_id=link.gateway_id,
            associated_gateway_id=gateway.id,
            allowed_prefixes=[self._cidr],
            opts=self._child,
        )

    def _transit(
        self, links: list[HallLink], subnet_ids: list[pulumi.Output[str]], hall_cidrs: dict[str, str]
    ) -> list[aws.ec2.RouteTableRouteArgs]:
        """One attachment a gateway, however many halls are behind it. A route names the gateway by its attachment: EC2
        knows no gateway that the VPC isn't attached to.
        """
        attached = {
            gateway_id: aws.ec2transitgateway.VpcAttachment(
                logical(self._name, gateway_id),
                transit_gateway_id=gateway_id,
                vpc_id=self._vpc_id,
                subnet_ids=subnet_ids,
                appliance_mode_support="disable",  # no firewall in between: each zone's traffic stays in it
                tags=self._tags(gateway_id),
                opts=self._child,
            )
            for gateway_id in sorted({link.gateway_id for link in links if link.gateway_id})
        }
        return [
            aws.ec2.RouteTableRouteArgs(
                cidr_block=hall_cidrs[link.hall], transit_gateway_id=attached[link.gateway_id].transit_gateway_id
            )
            for link in links
            if link.gateway_id
        ]


def _joined(tunnels: Iterable[list[dict[str, str]]]) -> list[dict[str, str]]:
    return [tunnel for pair in tunnels for tunnel in pair]


def _tunnels(hall: str, connection: aws.ec2.VpnConnection) -> pulumi.Output[list[dict[str, str]]]:
    """What a hall's side needs of each of the two tunnels. AWS draws addresses and keys."""
    names = {
        "outside_address": "address",
        "inside_address": "vgw_inside_address",
        "hall_inside_address": "cgw_inside_address",
        "asn": "bgp_asn",
        "preshared_key": "preshared_key",
    }
    return pulumi.Output.all(
        *(
            pulumi.Output.all(
                hall=hall, **{name: getattr(connection, f"tunnel{n}_{attribute}") for name, attribute in names.items()}
            )
            for n in (1, 2)
        )
    )
