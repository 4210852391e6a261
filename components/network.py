"""The cloud network: own or existing, with private subnets for the nodes, a way out,
the EFA security group and the link to the hall.
"""

import functools

import pulumi
import pulumi_aws as aws

from ironburst.config import subnets
from ironburst.config.network_models import CloudNetwork, HallLink
from ironburst.naming import logical, tags

EVERYWHERE = "0.0.0.0/0"
# All that a node asks of AWS: the munge key. Each service costs by the hour in each zone.
ENDPOINTS = ("secretsmanager",)


class Network(pulumi.ComponentResource):
    """Outputs: `vpc_id`, `subnet_ids` (zone -> private subnet), `security_group_id` (nodes; EFA's self rules),
    `hall_tunnels` (what the hall's VPN device is set up with, secret; empty without a VPN).
    """

    vpc_id: pulumi.Output[str]
    subnet_ids: dict[str, pulumi.Output[str]]
    security_group_id: pulumi.Output[str]
    hall_tunnels: pulumi.Output[list[dict[str, str]]]

    def __init__(
        self,
        name: str,
        *,
        network: CloudNetwork,
        region: str,
        hall_cidrs: dict[str, str],
        zones_in_use: list[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`hall_cidrs`: hall name -> network of its nodes. `zones_in_use`: those with nodes; only they get what costs
        by the hour. An existing network gets a security group and nothing else.
        """
        super().__init__("ironburst:components:Network", name, None, opts)
        self._name, self._network, self._region, self._in_use = name, network, region, zones_in_use
        self._child = pulumi.ResourceOptions(parent=self)
        self.hall_tunnels = pulumi.Output.from_input([])
        if network.existing:
            assert not network.hall_link  # config's checks
            self.vpc_id = pulumi.Output.from_input(network.existing.vpc_id)
            self.subnet_ids = {
                zone: pulumi.Output.from_input(subnet) for zone, subnet in network.existing.subnets.items()
            }
        else:
            self._own()
        self.security_group_id = self._security_group(hall_cidrs)
        if network.egress == "endpoints" and not network.existing and zones_in_use:
            self._interface_endpoints()
        self.register_outputs(
            {"vpc_id": self.vpc_id, "subnet_ids": self.subnet_ids, "security_group_id": self.security_group_id}
        )

    def _tags(self, *parts: str) -> dict[str, str]:
        return tags(self._name, logical(*parts))

    def _own(self) -> None:
        network, name = self._network, self._name
        vpc = aws.ec2.Vpc(
            logical(name, "vpc"),
            cidr_block=network.cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=self._tags("vpc"),
            opts=self._child,
        )
        self.vpc_id = vpc.id
        divided = subnets.divide(network.cidr, network.zones)
        private = {zone: self._subnet("private", zone, divided[zone].private) for zone in network.zones}
        self.subnet_ids = {zone: subnet.id for zone, subnet in private.items()}
        hall = self._link(network.hall_link) if network.hall_link else None
        outward: dict[str, aws.ec2.RouteTableRouteArgs] = {}
        if network.egress == "nat" and self._in_use:
            outward = self._nat({zone: self._subnet("public", zone, divided[zone].public) for zone in self._in_use})
        tables = [self._route_table(zone, outward.get(zone), [private[zone]], hall) for zone in network.zones]
        self._s3_endpoint(tables)

    def _subnet(self, kind: str, zone: str, cidr: str) -> aws.ec2.Subnet:
        return aws.ec2.Subnet(
            logical(self._name, kind, zone),
            vpc_id=self.vpc_id,
            cidr_block=cidr,
            availability_zone=zone,
            # also in the public subnets: only NAT gateways live there, with addresses of their own
            map_public_ip_on_launch=False,
            tags=self._tags(kind, zone),
            opts=self._child,
        )

    def _route_table(
        self,
        label: str,
        outward: aws.ec2.RouteTableRouteArgs | None,
        members: list[aws.ec2.Subnet],
        hall: aws.ec2.VpnGateway | None = None,
    ) -> aws.ec2.RouteTable:
        """The route and the hall's gateway are written inside the table,
        so that a route added by hand shows as drift.
        """
        table = aws.ec2.RouteTable(
            logical(self._name, "routes", label),
            vpc_id=self.vpc_id,
            routes=[outward] if outward else [],
            propagating_vgws=[hall.id] if hall else [],
            tags=self._tags("routes", label),
            opts=self._child,
        )
        for number, subnet in enumerate(members, 1):
            aws.ec2.RouteTableAssociation(
                logical(self._name, "routes", label, str(number)),
                subnet_id=subnet.id,
                route_table_id=table.id,
                opts=self._child,
            )
        return table

    def _nat(self, public: dict[str, aws.ec2.Subnet]) -> dict[str, aws.ec2.RouteTableRouteArgs]:
        """Zone -> its route outward. A NAT gateway a zone, so that the loss of a zone doesn't cut off another (and no
        traffic is paid for between zones); none where no nodes are.
        """
        name = self._name
        gateway = aws.ec2.InternetGateway(
            logical(name, "internet"), vpc_id=self.vpc_id, tags=self._tags("internet"), opts=self._child
        )
        to_internet = aws.ec2.RouteTableRouteArgs(cidr_block=EVERYWHERE, gateway_id=gateway.id)
        self._route_table("public", to_internet, list(public.values()))
        outward = {}
        for zone, subnet in public.items():
            address = aws.ec2.Eip(
                logical(name, "nat", zone), domain="vpc", tags=self._tags("nat", zone), opts=self._child
            )
            nat = aws.ec2.NatGateway(
                logical(name, "nat", zone),
                allocation_id=address.id,
                subnet_id=subnet.id,
                tags=self._tags("nat", zone),
                opts=pulumi.ResourceOptions(parent=self, depends_on=[gateway]),
            )
            outward[zone] = aws.ec2.RouteTableRouteArgs(cidr_block=EVERYWHERE, nat_gateway_id=nat.id)
        return outward

    def _s3_endpoint(self, tables: list[aws.ec2.RouteTable]) -> None:
        """It is free, and what goes by it isn't paid for at a NAT gateway."""
        aws.ec2.VpcEndpoint(
            logical(self._name, "endpoint", "s3"),
            vpc_id=self.vpc_id,
            service_name=f"com.amazonaws.{self._region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id for table in tables],
            tags=self._tags("endpoint", "s3"),
            opts=self._child,
        )

    def _interface_endpoints(self) -> None:
        """Private ways to AWS's own services; without a NAT there is no other way out."""
        for service in ENDPOINTS:
            aws.ec2.VpcEndpoint(
                logical(self._name, "endpoint", service),
                vpc_id=self.vpc_id,
                service_name=f"com.amazonaws.{self._region}.{service}",
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=[self.subnet_ids[zone] for zone in self._in_use],
                security_group_ids=[self.security_group_id],
                tags=self._tags("endpoint", service),
                opts=self._child,
            )

    def _security_group(self, hall_cidrs: dict[str, str]) -> pulumi.Output[str]:
        """Rules are written inside the group, so that one added by hand shows as drift."""
        incoming = functools.partial(aws.ec2.SecurityGroupIngressArgs, protocol="-1", from_port=0, to_port=0)
        outgoing = functools.partial(aws.ec2.SecurityGroupEgressArgs, protocol="-1", from_port=0, to_port=0)
        among_nodes = "nodes among themselves; EFA needs it both ways"
        from_halls = [
            incoming(cidr_blocks=[cidr], description=f"Slurm and ssh from {hall}") for hall, cidr in hall_cidrs.items()
        ]
        group = aws.ec2.SecurityGroup(
            logical(self._name, "nodes"),
            vpc_id=self.vpc_id,
            description="GPU nodes",
            ingress=[incoming(self=True, description=among_nodes), *from_halls],
            egress=[
                outgoing(self=True, description=among_nodes),
                outgoing(cidr_blocks=[EVERYWHERE], description="out"),
            ],
            tags=self._tags("nodes"),
            opts=self._child,
        )
        return group.id

    def _link(self, link: HallLink) -> aws.ec2.VpnGateway:
        """The way to the hall; its routes come by BGP into the private route tables."""
        name = self._name
        gateway = aws.ec2.VpnGateway(
            logical(name, "hall"), vpc_id=self.vpc_id, tags=self._tags("hall"), opts=self._child
        )
        if link.kind == "vpn":
            peer = aws.ec2.CustomerGateway(
                logical(name, "hall", link.hall),
                bgp_asn=str(link.peer_asn),
                ip_address=link.peer_address,
                type="ipsec.1",
                tags=self._tags("hall", link.hall),
                opts=self._child,
            )
            connection = aws.ec2.VpnConnection(
                logical(name, "hall", link.hall),
                customer_gateway_id=peer.id,
                vpn_gateway_id=gateway.id,
                type="ipsec.1",
                static_routes_only=False,
                tags=self._tags("hall", link.hall),
                opts=self._child,
            )
            self.hall_tunnels = pulumi.Output.secret(_tunnels(connection))
        else:
            assert link.gateway_id is not None  # config's checks
            aws.directconnect.GatewayAssociation(
                logical(name, "hall", link.hall),
                dx_gateway_id=link.gateway_id,
                associated_gateway_id=gateway.id,
                allowed_prefixes=[self._network.cidr],
                opts=self._child,
            )
        return gateway


def _tunnels(connection: aws.ec2.VpnConnection) -> pulumi.Output[list[dict[str, str]]]:
    """What the hall's side needs of each of the two tunnels. AWS draws addresses and keys."""
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
                **{name: getattr(connection, f"tunnel{n}_{attribute}") for name, attribute in names.items()}
            )
            for n in (1, 2)
        )
    )
