"""Fixed cloud GPU nodes: always there, one machine a node, never replaced or stopped behind the scheduler's back."""

from typing import Any

import pulumi
import pulumi_azure_native as azure

from components.azure.network import Network
from ironburst.catalog.azure.sizes import size
from ironburst.config.azure.models import AzureCloud, AzureGroup
from ironburst.document.build import CloudInstance
from ironburst.nodes.naming import logical, numbered, tags

# These would stop or replace the machine under its jobs: `ironburst converge` rolls them, with a drain.
ROLLED_WITH_DRAIN = ["storageProfile.imageReference", "hardwareProfile", "osProfile"]


class GpuNodeGroup(pulumi.ComponentResource):
    """Output: `instances`, declared node name -> CloudInstance (id: GROUP/NAME/VMID)."""

    instances: dict[str, pulumi.Output[CloudInstance]]

    def __init__(
        self,
        name: str,
        *,
        cluster: str,
        cloud: AzureCloud,
        group: AzureGroup,
        network: Network,
        resource_group: pulumi.Output[str],
        admin_user: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("ironburst:components:AzureNodeGroup", name, None, opts)
        self._cluster, self._cloud, self._group = cluster, cloud, group
        self._network, self._in, self._user = network, resource_group, admin_user
        self._child = pulumi.ResourceOptions(parent=self)
        self._zones = [group.zone.rpartition("-")[2]] if group.zone != cloud.region else None
        self._set = self._fabric() if self._has_fabric() else None
        self.instances = {node: self._node(node) for node in numbered(group.name, group.count)}
        self.register_outputs({})

    def _has_fabric(self) -> bool:
        declared = self._group.infiniband
        return bool(size(self._group.instance_type).infiniband_links) if declared is None else declared

    def _here(self, name: str) -> dict[str, Any]:
        labels = self._cloud.tags | tags(self._cluster, name, group=self._group.name)
        return {"resource_group_name": self._in, "location": self._cloud.region, "tags": labels}

    def _fabric(self) -> azure.compute.VirtualMachineScaleSet:
        """The edge of an InfiniBand fabric; it has no machines of its own."""
        return azure.compute.VirtualMachineScaleSet(
            logical(self._cluster, self._group.name, "fabric"),
            vm_scale_set_name=self._group.name,
            orchestration_mode=azure.compute.OrchestrationMode.FLEXIBLE,
            single_placement_group=True,
            platform_fault_domain_count=1,
            zones=self._zones,
            **self._here(self._group.name),
            opts=self._child,
        )

    def _node(self, node: str) -> pulumi.Output[CloudInstance]:
        """It has no identity, because it asks Azure for nothing, and no lease's tag, so no controller ends it. What it
        is reserved in is always said: else it uses up whatever open reservation the subscription has.
        """
        group, compute = self._group, azure.compute
        nic = self._interface(node)
        made = compute.VirtualMachine(
            node,
            vm_name=node,
            zones=self._zones,
            hardware_profile=compute.HardwareProfileArgs(vm_size=group.instance_type),
            storage_profile=compute.StorageProfileArgs(image_reference=_image(group.image), os_disk=self._disk()),
            os_profile=self._system(node),
            network_profile=compute.NetworkProfileArgs(
                network_interfaces=[compute.NetworkInterfaceReferenceArgs(id=nic.id, primary=True)]
            ),
            diagnostics_profile=compute.DiagnosticsProfileArgs(
                boot_diagnostics=compute.BootDiagnosticsArgs(enabled=True)
            ),
            security_profile=compute.SecurityProfileArgs(security_type=group.security_type)
            if group.security_type
            else None,
            capacity_reservation=_reserved(group.capacity_reservation_group),
            virtual_machine_scale_set=compute.SubResourceArgs(id=self._set.id) if self._set else None,
            **self._here(node),
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=ROLLED_WITH_DRAIN),
        )
        return pulumi.Output.all(self._in, made.vm_id, nic.ip_configurations).apply(
            lambda known: CloudInstance(id=f"{known[0].lower()}/{node}/{known[1]}", address=_address(known[2]))
        )

    def _interface(self, node: str) -> azure.network.NetworkInterface:
        """It has no address outside."""
        network = azure.network
        rules = self._network.security_group
        return network.NetworkInterface(
            node,
            network_interface_name=node,
            enable_accelerated_networking=size(self._group.instance_type).accelerated_networking,
            ip_configurations=[
                network.NetworkInterfaceIPConfigurationArgs(
                    name="ip", primary=True, subnet=network.SubnetArgs(id=self._network.subnet)
                )
            ],
            network_security_group=network.NetworkSecurityGroupArgs(id=rules) if rules else None,
            **self._here(node),
            opts=self._child,
        )

    def _disk(self) -> azure.compute.OSDiskArgs:
        return azure.compute.OSDiskArgs(
            create_option=azure.compute.DiskCreateOptionTypes.FROM_IMAGE,
            delete_option=azure.compute.DiskDeleteOptionTypes.DELETE,
            disk_size_gb=self._group.root_disk_gb,
            managed_disk=azure.compute.ManagedDiskParametersArgs(storage_account_type=self._group.root_disk_type),
        )

    def _system(self, node: str) -> azure.compute.OSProfileArgs:
        key = azure.compute.SshPublicKeyArgs(
            key_data=self._cloud.ssh_public_key, path=f"/home/{self._user}/.ssh/authorized_keys"
        )
        return azure.compute.OSProfileArgs(
            computer_name=node,
            admin_username=self._user,
            linux_configuration=azure.compute.LinuxConfigurationArgs(
                disable_password_authentication=True, ssh=azure.compute.SshConfigurationArgs(public_keys=[key])
            ),
        )


def _image(said: str) -> azure.compute.ImageReferenceArgs:
    """Of the marketplace (publisher:offer:sku:version), or an image's id."""
    if said.startswith("/"):
        return azure.compute.ImageReferenceArgs(id=said)
    publisher, offer, sku, version = said.split(":")
    return azure.compute.ImageReferenceArgs(publisher=publisher, offer=offer, sku=sku, version=version)


def _reserved(group: str | None) -> azure.compute.CapacityReservationProfileArgs | None:
    if not group:
        return None
    return azure.compute.CapacityReservationProfileArgs(
        capacity_reservation_group=azure.compute.SubResourceArgs(id=group)
    )


def _address(configurations: list[dict[str, Any]]) -> str:
    first: str = configurations[0]["private_ip_address"]
    return first
