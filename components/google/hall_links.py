"""The ways from the cloud network to the halls: HA VPNs and VLAN attachments, with BGP on the region's one router."""

import ipaddress
from collections.abc import Iterator

import pulumi
import pulumi_gcp as gcp

from components.google import names
from ironburst.config.google.estimates import TUNNELS
from ironburst.config.google.models import GoogleCloud
from ironburst.config.google.network_models import GoogleHallLink
from ironburst.nodes.naming import logical
from ironburst.system.secrets import resolve

_ASNS = range(64512, 65535)
_INSIDE = ipaddress.IPv4Network("169.254.64.0/20")
"""of the tunnels' ends; Google takes link-local ones alone"""


class HallLinks:
    """`router`: of the region, NAT's too. `tunnels`: what the halls' VPN devices need beside the key."""

    router: gcp.compute.Router
    tunnels: pulumi.Output[list[dict[str, str]]]

    def __init__(
        self,
        name: str,
        *,
        cloud: GoogleCloud,
        network: pulumi.Output[str],
        subnet: str,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """`subnet`: the nodes' network, which the halls are told of."""
        self._name, self._cloud, self._child = name, cloud, opts
        self._where = {"project": cloud.project, "region": cloud.region}
        links = cloud.network.links
        self._asn = next(asn for asn in _ASNS if asn not in {link.peer_asn for link in links})
        self._inside = _INSIDE.subnets(new_prefix=30)
        self.router = gcp.compute.Router(
            logical(name, "router"),
            name=names.resource(name, "router"),
            network=network,
            bgp=gcp.compute.RouterBgpArgs(
                asn=self._asn,
                advertise_mode="CUSTOM",
                advertised_ip_ranges=[gcp.compute.RouterBgpAdvertisedIpRangeArgs(range=subnet)],
            ),
            **self._where,
            opts=opts,
        )
        vpns = [link for link in links if link.kind == "vpn"]
        tunnels = []
        if vpns:
            gateway = gcp.compute.HaVpnGateway(
                logical(name, "hall"), name=names.resource(name, "hall"), network=network, **self._where, opts=opts
            )
            tunnels = [tunnel for link in vpns for tunnel in self._vpn(link, gateway)]
        for link in links:
            for number, interconnect in enumerate(link.interconnects, 1):
                self._attachment(link, number, interconnect)
        self.tunnels = pulumi.Output.all(*tunnels).apply(lambda known: list(known))

    def _vpn(self, link: GoogleHallLink, gateway: gcp.compute.HaVpnGateway) -> Iterator[pulumi.Output[dict[str, str]]]:
        """Two tunnels to one address of the hall's: Google's half of an SLA."""
        assert link.peer_address is not None and link.shared_secret is not None  # the model's own check
        label = logical("hall", link.hall)
        peer = gcp.compute.ExternalVpnGateway(
            logical(self._name, label),
            name=names.resource(self._name, label),
            project=self._cloud.project,
            redundancy_type="SINGLE_IP_INTERNALLY_REDUNDANT",
            interfaces=[gcp.compute.ExternalVpnGatewayInterfaceArgs(id=0, ip_address=link.peer_address)],
            opts=self._child,
        )
        key = pulumi.Output.secret(resolve(link.shared_secret))
        for number in range(TUNNELS):
            own, halls = next(self._inside).hosts()
            its = logical(label, str(number + 1))
            tunnel = gcp.compute.VPNTunnel(
                logical(self._name, its),
                name=names.resource(self._name, its),
                vpn_gateway=gateway.id,
                vpn_gateway_interface=number,
                peer_external_gateway=peer.id,
                peer_external_gateway_interface=0,
                shared_secret=key,
                ike_version=2,
                router=self.router.id,
                **self._where,
                opts=self._child,
            )
            self._session(its, link.peer_asn, str(halls), ip_range=f"{own}/30", vpn_tunnel=tunnel.name)
            outside = gateway.vpn_interfaces.apply(lambda all, number=number: all[number].ip_address)
            yield pulumi.Output.all(
                hall=link.hall,
                outside_address=outside,
                inside_address=str(own),
                hall_inside_address=str(halls),
                asn=str(self._asn),
            )

    def _attachment(self, link: GoogleHallLink, number: int, interconnect: str) -> None:
        label = logical("hall", link.hall, str(number))
        attachment = gcp.compute.InterconnectAttachment(
            logical(self._name, label),
            name=names.resource(self._name, label),
            type="DEDICATED",
            interconnect=interconnect,
            router=self.router.id,
            **self._where,
            opts=self._child,
        )
        theirs = attachment.customer_router_ip_address.apply(lambda address: address.partition("/")[0])
        self._session(
            label,
            link.peer_asn,
            theirs,
            ip_range=attachment.cloud_router_ip_address,
            interconnect_attachment=attachment.self_link,
        )

    def _session(self, label: str, asn: int, peer: pulumi.Input[str], **interface: pulumi.Input[str]) -> None:
        """BGP over a tunnel or an attachment."""
        name = names.resource(self._name, label)
        made = gcp.compute.RouterInterface(
            logical(self._name, label),
            gcp.compute.RouterInterfaceArgs(name=name, router=self.router.name, **self._where, **interface),
            opts=self._child,
        )
        gcp.compute.RouterPeer(
            logical(self._name, label),
            name=name,
            router=self.router.name,
            interface=made.name,
            peer_asn=asn,
            peer_ip_address=peer,
            **self._where,
            opts=self._child,
        )
