"""The cloud network: the nodes' subnet, a way out, who may come in, networks of further NICs, links to the halls."""

import pulumi
import pulumi_gcp as gcp

from components.google import names
from components.google.hall_links import HallLinks
from ironburst.catalog.google.machine_types import machine_type
from ironburst.config.google import subnets
from ironburst.config.google.models import GoogleCloud
from ironburst.document.google import NetworkInterface
from ironburst.nodes.naming import logical

NODES = "ironburst-node"
"""network tag of every node: rules are for those that have it"""
FABRIC = ("tcp", "udp", "icmp")


class Network(pulumi.ComponentResource):
    """Outputs: `subnetwork` (of every node's first NIC), `hall_tunnels` (what the halls' VPN devices are set up with).
    `interfaces(type, zone)`: the NICs of a node there, for its place.
    """

    subnetwork: pulumi.Output[str]
    hall_tunnels: pulumi.Output[list[dict[str, str]]]

    def __init__(
        self, name: str, *, cloud: GoogleCloud, hall_cidrs: dict[str, str], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """`hall_cidrs`: hall name -> network of its nodes. Networks that are there get nothing: no rule, no router."""
        super().__init__("ironburst:components:GoogleNetwork", name, None, opts)
        self._name, self._cloud, self._child = name, cloud, pulumi.ResourceOptions(parent=self)
        self.hall_tunnels = pulumi.Output.from_input([])
        self._fabric: dict[str, list[pulumi.Output[str]]] = {}
        if cloud.network.existing:
            self.subnetwork = pulumi.Output.from_input(self._path(cloud.network.existing.subnetwork))
        else:
            self._own(hall_cidrs)
            for declared in subnets.fabric(cloud):
                self._further(declared)
        self.register_outputs({"subnetwork": self.subnetwork})

    def interfaces(self, kind: str, zone: str) -> pulumi.Output[list[NetworkInterface]]:
        """In their order; the node's address is the first one's."""
        cards = subnets.nics(machine_type(kind), zone)
        existing = self._cloud.network.existing
        if existing:
            named = existing.fabric.get(zone, [])
            further: list[pulumi.Input[str]] = [*map(self._path, named[: len(cards) - 1])]
        else:
            further = [self._fabric[card.network][card.subnet] for card in cards[1:]]
        types = [card.nic_type for card in cards]
        return pulumi.Output.all(self.subnetwork, *further).apply(
            lambda known: [
                NetworkInterface(subnetwork=subnetwork, nic_type=its)
                for subnetwork, its in zip(known, types, strict=True)
            ]
        )

    def _path(self, subnetwork: str) -> str:
        """Of a subnetwork's name, or of its path as it is."""
        if "/" in subnetwork:
            return subnetwork
        return f"projects/{self._cloud.project}/regions/{self._cloud.region}/subnetworks/{subnetwork}"

    def _network(self, label: str, mtu: int | None = None, profile: str = "") -> gcp.compute.Network:
        path = f"projects/{self._cloud.project}/global/networkProfiles/{profile}"
        return gcp.compute.Network(
            logical(self._name, label),
            name=names.resource(self._name, label),
            project=self._cloud.project,
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            mtu=mtu,
            network_profile=path if profile else None,
            opts=self._child,
        )

    def _subnet(self, label: str, network: gcp.compute.Network, cidr: str) -> gcp.compute.Subnetwork:
        return gcp.compute.Subnetwork(
            logical(self._name, label),
            name=names.resource(self._name, label),
            project=self._cloud.project,
            region=self._cloud.region,
            network=network.self_link,
            ip_cidr_range=cidr,
            private_ip_google_access=label == "nodes",  # without an address outside they reach Google's own services
            opts=self._child,
        )

    def _let_in(self, label: str, network: gcp.compute.Network, source: dict[str, list[str]], tagged: bool) -> None:
        gcp.compute.Firewall(
            logical(self._name, label),
            name=names.resource(self._name, label),
            project=self._cloud.project,
            network=network.self_link,
            direction="INGRESS",
            allows=[gcp.compute.FirewallAllowArgs(protocol=protocol) for protocol in FABRIC],
            target_tags=[NODES] if tagged else None,
            source_tags=source.get("tags"),
            source_ranges=source.get("ranges"),
            opts=self._child,
        )

    def _own(self, hall_cidrs: dict[str, str]) -> None:
        declared = self._cloud.network
        network = self._network("network")
        subnet = self._subnet("nodes", network, declared.cidr)
        self.subnetwork = subnet.id
        self._let_in("among-nodes", network, {"tags": [NODES]}, True)
        for hall, cidr in hall_cidrs.items():
            self._let_in(logical("from", hall), network, {"ranges": [cidr]}, True)
        nodes = bool(self._cloud.groups or self._cloud.pools)
        if not declared.links and not (nodes and declared.egress == "nat"):
            return
        links = HallLinks(
            self._name, cloud=self._cloud, network=network.self_link, subnet=declared.cidr, opts=self._child
        )
        self.hall_tunnels = links.tunnels
        if nodes and declared.egress == "nat":
            gcp.compute.RouterNat(
                logical(self._name, "nat"),
                name=names.resource(self._name, "nat"),
                project=self._cloud.project,
                region=self._cloud.region,
                router=links.router.name,
                nat_ip_allocate_option="AUTO_ONLY",
                source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
                subnetworks=[
                    gcp.compute.RouterNatSubnetworkArgs(name=subnet.id, source_ip_ranges_to_nats=["ALL_IP_RANGES"])
                ],
                opts=self._child,
            )

    def _further(self, declared: subnets.FabricNetwork) -> None:
        """A network of further NICs: a gVNIC's, or one with a profile, which takes no rule of ours."""
        network = self._network(declared.label, declared.mtu or None, declared.profile)
        self._fabric[declared.label] = [
            self._subnet(logical(declared.label, str(number)), network, cidr).id
            for number, cidr in enumerate(declared.subnets, 1)
        ]
        if not declared.profile:
            self._let_in(logical("among", declared.label), network, {"ranges": list(declared.subnets)}, False)
