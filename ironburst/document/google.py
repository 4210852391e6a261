"""What a document says in Google Cloud's words, which only its rooms read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ironburst.document.part import Part


class NetworkInterface(Part):
    """One NIC of a node; its address is the first one's."""

    subnetwork: str = Field(description="projects/P/regions/R/subnetworks/NAME")
    nic_type: str | None = Field(default=None, description="GVNIC, MRDMA, ...; null: as the image's driver has it")


class GooglePlace(Part):
    """Where and how a launch is asked for, whole: there is no instance template beside it."""

    provider: Literal["google"] = "google"
    machine_type: str
    network_interfaces: list[NetworkInterface]
    boot_disk_type: str
    boot_disk_gb: int
    boot_disk_mb_s: int | None = Field(default=None, description="MiB/s of hyperdisk-balanced; null: Google's own")
    local_ssds: int = Field(default=0, description="to be asked for, where the type doesn't bring them")
    service_account: str = Field(default="", description="its nodes' e-mail; empty: none, they have no rights")
    network_tags: list[str] = Field(default=[], description="by which firewall rules know them")
    labels: dict[str, str] = Field(default={}, description="the organization's own, on all that a launch makes")
    placement_policy: str = Field(default="", description="resource policy of compact placement; empty: none")
    max_run_s: int | None = Field(
        default=None, description="after which Compute Engine deletes the node, whatever it does; null: never"
    )
    reservation: str = Field(default="", description="the only one that its nodes run in; empty: none")
    reservation_bound: bool = Field(default=False, description="its machines are bound to it, as a dense one's are")

    @classmethod
    def unknown(cls) -> GooglePlace:
        """Before Pulumi has made it."""
        return cls(machine_type="", network_interfaces=[], boot_disk_type="", boot_disk_gb=0)
