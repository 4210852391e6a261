"""What a document says in Azure's words, which only its rooms read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ironburst.document.part import Part


class AzurePlace(Part):
    """Where and how a launch is asked for, whole (adapters/azure/launching.py)."""

    provider: Literal["azure"] = "azure"
    vm_size: str
    subnet_id: str
    os_disk_type: str = Field(description="Premium_LRS, StandardSSD_LRS")
    os_disk_gb: int
    admin_user: str = Field(default="ironburst", description="whom Azure makes on each node, with sudo")
    ssh_public_key: str = Field(description="of that user")
    infiniband: bool = Field(default=False, description="each launch is a scale set, the edge of a fabric")
    accelerated_networking: bool = True
    security_group_id: str = Field(default="", description="of network interfaces; empty: the subnet's alone")
    identity_id: str = Field(default="", description="user-assigned identity of its nodes; empty: none, no rights")
    security_type: str = Field(default="", description="TrustedLaunch; empty: Standard")
    tags: dict[str, str] = Field(default={}, description="the organization's own, on all that a launch makes")
    capacity_reservation_group: str = Field(default="", description="id of the only one its nodes run in; empty: none")

    @classmethod
    def unknown(cls) -> AzurePlace:
        """Before Pulumi has made it."""
        return cls(vm_size="", subnet_id="", os_disk_type="", os_disk_gb=0, ssh_public_key="")
