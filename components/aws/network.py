"""The cloud network: own or existing, with private subnets for the nodes, a way out,
the EFA security group and the links to the halls.
"""

import functools
from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from components.aws.hall_links import HallLinks
from ironburst.config.aws import subnets
from ironburst.config.aws.network_models import ENDPOINTS, CloudNetwork
from ironburst.nodes.naming import logical, tags

EVERYWHERE = "0.0.0.0/0"


class Network(pulumi.ComponentResource):
    """Outputs: `vpc_id`, `subnet_ids` (zone -> private subnet), `security_group_id` (nodes; EFA's self rules),
    `hall_tunnels` (what the halls' VPN devices are set up with, secret; empty without a VPN).
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
            assert not network.links  # config's checks
            self.vpc_id = pulumi.Output.from_input(network.existing.vpc_id)
            self.subnet_ids = {
                zone: pulumi.Output.from_input(subnet) for zone, subnet in network.existing.subnets.items()
            }
        else:
            self._own(hall_cidrs)
        self.security_group_id = self._security_group(hall_cidrs)
        if network.egress == "endpoints" and not network.existing and zones_in_use:
            self._interface_endpoints()
        self.register_outputs(
            {"vpc_id": self.vpc_id, "subnet_ids": self.subnet_ids, "security_group_id": self.security_group_id}
        )

    def _tags(self, *parts: str) -> dict[str, str]:
        return tags(self._name, logical(*parts))

    def _own(self, hall_cidrs: dict[str, str]) -> None:
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
        links = HallLinks(
            name,
            links=network.links,
            vpc_id=vpc.id,
            cidr=network.cidr,
            subnet_ids=[subnet.id for subnet in private.values()],
            hall_cidrs=hall_cidrs,
            opts=self._child,
        )
        self.hall_tunnels = links.tunnels
        outward: dict[str, aws.ec2.RouteTableRouteArgs] = {}
        if network.egress == "nat" and self._in_use:
            outward = self._nat({zone: self._subnet("public", zone, divided[zone].public) for zone in self._in_use})
        tables = []
        for zone in network.zones:
            routes = [*([outward[zone]] if zone in outward else []), *links.routes]
            tables.append(self._route_table(zone, routes, [private[zone]], links.gateways))
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
        routes: list[aws.ec2.RouteTableRouteArgs],
        members: list[aws.ec2.Subnet],
        gateways: Sequence[aws.ec2.VpnGateway] = (),
    ) -> aws.ec2.RouteTable:
        """Routes and the halls' gateway are written inside the table,
        so that a route added by hand shows as drift.
        """
        table = aws.ec2.RouteTable(
            logical(self._name, "routes", label),
            vpc_id=self.vpc_id,
            routes=routes,
            propagating_vgws=[gateway.id for gateway in gateways],
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
        self._route_table("public", [to_internet], list(public.values()))
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
