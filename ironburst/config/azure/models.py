"""The cloud nodes of Azure, as a person declares them (`cloud` of ironburst.config.models)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ironburst.config.azure.forms import IMAGE, PUBLIC_KEY, RESERVATION, UUID, VAULT
from ironburst.config.azure.network_models import AzureNetwork
from ironburst.config.cloud_models import ISSUER, Ci, Cloud, Group, Images, OwnedBought, Pool
from ironburst.config.software_models import Strict
from ironburst.config.types import Moment
from ironburst.nodes import azure as names

DiskType = Literal["Premium_LRS", "StandardSSD_LRS"]
SecurityType = Literal["TrustedLaunch"]
_FABRIC = "in one scale set with a placement group of its own, the edge of an InfiniBand fabric"


class CapacityBlock(OwnedBought):
    """A capacity reservation group of type Block that somebody has bought."""

    group: str = Field(pattern=RESERVATION, description="id of the capacity reservation group")
    ends: Moment = Field(description="when it ends, with time zone; Azure ends its machines then")


class AzureGroup(Group):
    """Fixed cloud nodes: always there, one resource a node."""

    instance_type: str = Field(examples=["Standard_ND96isr_H100_v5"])
    image: str = Field(
        pattern=IMAGE,
        description="a plain image of the system, of the marketplace or an image's id; Ansible converges the nodes",
        examples=["Canonical:ubuntu-24_04-lts:server:latest"],
    )
    infiniband: bool | None = Field(default=None, description=f"{_FABRIC}; none: where the type has InfiniBand")
    capacity_reservation_group: str | None = Field(
        default=None, pattern=RESERVATION, description="of type Targeted; what has no room in it runs on demand"
    )
    root_disk_type: DiskType = Field(default="Premium_LRS", description="managed disk; its size sets its throughput")
    security_type: SecurityType | None = Field(default=None, description="none: without Trusted Launch")

    @property
    def reserved(self) -> list[tuple[str, tuple[str, ...]]]:
        """Its group of reservations."""
        return _reserved(self.capacity_reservation_group, None)


class AzurePool(Pool):
    """Rented nodes: none until the burst policy wants them, never more than `max_nodes`."""

    block_key: ClassVar[str] = "capacity_block"

    infiniband: bool | None = Field(
        default=None,
        description=f"each launch {_FABRIC}; none: where the type has InfiniBand, a job may have several of its nodes, "
        "and no reservation is named, which has none",
    )
    capacity_reservation_group: str | None = Field(
        default=None, pattern=RESERVATION, description="of type Targeted; nothing is rented beside it"
    )
    capacity_block: CapacityBlock | None = Field(
        default=None, description="paid for when it was bought: renting in it costs nothing more"
    )
    root_disk_type: DiskType = Field(default="Premium_LRS", description="managed disk; its size sets its throughput")
    security_type: SecurityType | None = Field(default=None, description="none: without Trusted Launch")

    @property
    def reserved(self) -> list[tuple[str, tuple[str, ...]]]:
        """Its group of reservations, of either kind."""
        return _reserved(self.capacity_reservation_group, self.capacity_block)

    @property
    def reservation_group(self) -> str:
        """The id of the only group that its nodes run in; empty: none."""
        return next((value for value, _ in self.reserved), "")


def _reserved(group: str | None, block: CapacityBlock | None) -> list[tuple[str, tuple[str, ...]]]:
    named = ((group, ("capacity_reservation_group",)), (block.group if block else None, ("capacity_block", "group")))
    return [(value, key) for value, key in named if value]


class AzureImages(Images):
    """How the images of pools are baked (`ironburst image`), and how long they stay: versions in a gallery."""

    build_type: str | None = Field(
        default=None,
        pattern=r"^Standard_[A-Za-z0-9_-]+$",
        description="a small size without GPUs, of the pools' architecture; none: the pool's own type",
        examples=["Standard_D16s_v5"],
    )


class AzureController(Strict):
    """Who has the controller's role: a principal that is there before, or an identity that trusts another issuer."""

    principal: str | None = Field(
        default=None,
        pattern=UUID,
        description="object id of the service principal (with a certificate) or managed identity that it signs in as",
    )
    issuer: str | None = Field(
        default=None,
        pattern=ISSUER,
        description="who issues the head's tokens (OpenID Connect), without https://; an identity is made for them",
    )
    subject: str | None = Field(default=None, pattern=r"^[A-Za-z0-9:/@._ -]+$", description="`sub` of those tokens")

    @model_validator(mode="after")
    def _one_way_in(self) -> AzureController:
        if (self.issuer is None) != (self.subject is None):
            raise ValueError("has one of issuer and subject: write both, or principal")
        if (self.principal is None) == (self.issuer is None):
            raise ValueError("needs principal, or issuer and subject: write one way in")
        return self


class AzureCi(Ci):
    """CI that previews changes. It signs in with tokens of its own (OpenID Connect), and has no key."""

    audience: str = Field(
        default="api://AzureADTokenExchange", pattern=r"^[A-Za-z0-9:/._-]+$", description="`aud` of the tokens"
    )


TagKey = Annotated[str, Field(pattern=r"^[^<>%&\\?/\x00-\x1f]{1,512}$")]
TagValue = Annotated[str, Field(max_length=256)]


class AzureCloud(Cloud):
    """Cloud nodes, fixed and rented."""

    store: ClassVar[str] = "azure-keyvault"
    spot_notice_s: ClassVar[int] = 30  # "Scheduled Events for Linux VMs", minimum notice of Preempt

    provider: Literal["azure"]
    subscription: str = Field(
        pattern=UUID,
        examples=["0b1f6471-1bf0-4dda-aec3-cb9272f09590"],
        description="id of the subscription; one of its own for rented nodes, for each launch is a resource group",
    )
    tenant: str | None = Field(
        default=None, pattern=UUID, description="id of its directory; none: that of whoever signs in"
    )
    region: str = Field(description="Azure's location, as `az account list-locations` names it", examples=["eastus"])
    network: AzureNetwork
    ssh_public_key: str = Field(
        pattern=PUBLIC_KEY,
        description="of the user that Azure makes on every node, ssh.cloud_user; it makes no Linux machine without one",
        examples=["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHVsZm9y ops@example.org"],
    )
    groups: list[AzureGroup] = Field(default=[])
    pools: list[AzurePool] = Field(default=[])
    images: AzureImages = Field(default=AzureImages(), description="the images of rented nodes")
    key_vault: str | None = Field(
        default=None,
        pattern=VAULT,
        description="id of the vault whose secrets nodes read; it grants by roles (RBAC), and is there before",
    )
    controller: AzureController | None = Field(
        default=None, description="who has the controller's role; none: whom the subscription's owners give it to"
    )
    ci: AzureCi | None = Field(default=None, description="CI that may preview this stack, and nothing more")
    tags: dict[TagKey, TagValue] = Field(
        default={},
        description="key: value of the organization's own tags, on everything that is made; pools have them after the "
        "next `publish`",
        examples=[{"CostCenter": "4711"}],
    )

    @property
    def account(self) -> str:
        """The subscription."""
        return self.subscription

    def image_place(self, cluster: str, pool: str) -> str:
        """The image in the stack's gallery that a pool's nodes boot the newest version of."""
        return names.image(self.subscription, cluster, pool)
