"""Fixed cloud GPU nodes: always there, one resource a node, never replaced or stopped behind the scheduler's back."""

import pulumi
import pulumi_gcp as gcp

from components.google import names
from components.google.burst_pool import compact, disk_type
from components.google.network import NODES, Network
from ironburst.config.google.models import GoogleCloud, GoogleGroup
from ironburst.document.build import CloudInstance
from ironburst.document.google import NetworkInterface
from ironburst.nodes.naming import numbered

# These would stop or replace the machine under its jobs: `ironburst converge` rolls them, with a drain.
ROLLED_WITH_DRAIN = ["bootDisk.initializeParams.image", "metadata", "machineType"]
_RESERVATION = "compute.googleapis.com/reservation-name"


class GpuNodeGroup(pulumi.ComponentResource):
    """Output: `instances`, declared node name -> CloudInstance (id: ZONE/NAME/NUMBER)."""

    instances: dict[str, pulumi.Output[CloudInstance]]

    def __init__(
        self,
        name: str,
        *,
        cluster: str,
        cloud: GoogleCloud,
        group: GoogleGroup,
        network: Network,
        account: gcp.serviceaccount.Account | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`account`: where its nodes have data; none: they ask Google for nothing."""
        super().__init__("ironburst:components:GoogleNodeGroup", name, None, opts)
        self._cluster, self._cloud, self._group = cluster, cloud, group
        self._account = _identity(account) if account else None
        child = pulumi.ResourceOptions(parent=self)
        policy = compact(cluster, group.name, cloud, child).id if group.compact_placement else None
        nics = network.interfaces(group.instance_type, group.zone).apply(_wired)
        self.instances = {node: self._node(node, nics, policy) for node in numbered(group.name, group.count)}
        self.register_outputs({})

    def _node(
        self,
        node: str,
        nics: pulumi.Output[list[gcp.compute.InstanceNetworkInterfaceArgs]],
        policy: pulumi.Output[str] | None,
    ) -> pulumi.Output[CloudInstance]:
        """It has a service account only if it asks Google for data, and a name that no right to end nodes is bound to.
        The reservation is always said: else a machine uses up whatever open one the project has.
        """
        group, zone = self._group, self._group.zone
        label = names.labels(self._cluster, node, self._cloud.labels, group=group.name)
        made = gcp.compute.Instance(
            node,
            name=names.resource(self._cluster, node, prefix="fixed"),
            project=self._cloud.project,
            zone=zone,
            machine_type=group.instance_type,
            labels=label,
            tags=[NODES],
            boot_disk=gcp.compute.InstanceBootDiskArgs(
                auto_delete=True,
                initialize_params=gcp.compute.InstanceBootDiskInitializeParamsArgs(
                    image=group.image,
                    size=group.root_disk_gb,
                    type=disk_type(group, group.instance_type),
                    labels=label,
                ),
            ),
            scratch_disks=[gcp.compute.InstanceScratchDiskArgs(interface="NVME") for _ in range(group.local_ssds or 0)],
            network_interfaces=nics,
            scheduling=gcp.compute.InstanceSchedulingArgs(
                on_host_maintenance="TERMINATE",  # a machine with GPUs doesn't migrate
                automatic_restart=True,
                provisioning_model="RESERVATION_BOUND" if group.reservation_bound else "STANDARD",
            ),
            reservation_affinity=_reserved(group.reservation),
            resource_policies=policy,
            service_account=self._account,
            allow_stopping_for_update=False,
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=ROLLED_WITH_DRAIN),
        )
        return pulumi.Output.all(made.name, made.instance_id, made.network_interfaces).apply(
            lambda known: CloudInstance(id=f"{zone}/{known[0]}/{known[1]}", address=_address(known[2]))
        )


def _identity(account: gcp.serviceaccount.Account) -> gcp.compute.InstanceServiceAccountArgs:
    """Its rights are its roles' alone."""
    return gcp.compute.InstanceServiceAccountArgs(
        email=account.email, scopes=["https://www.googleapis.com/auth/cloud-platform"]
    )


def _wired(nics: list[NetworkInterface]) -> list[gcp.compute.InstanceNetworkInterfaceArgs]:
    """Without an access config: they have no address outside."""
    return [gcp.compute.InstanceNetworkInterfaceArgs(subnetwork=nic.subnetwork, nic_type=nic.nic_type) for nic in nics]


def _address(nics: list[dict[str, str]]) -> str:
    return nics[0]["network_ip"]


def _reserved(name: str | None) -> gcp.compute.InstanceReservationAffinityArgs:
    if not name:
        return gcp.compute.InstanceReservationAffinityArgs(type="NO_RESERVATION")
    return gcp.compute.InstanceReservationAffinityArgs(
        type="SPECIFIC_RESERVATION",
        specific_reservation=gcp.compute.InstanceReservationAffinitySpecificReservationArgs(
            key=_RESERVATION, values=[name]
        ),
    )
