"""What the doctor asks of an AWS account: a Protocol, and the records that pass through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ironburst.ports import LaunchRequest


@dataclass(frozen=True)
class Caller:
    """Who asks."""

    arn: str
    account: str

    @property
    def partition(self) -> str:
        """aws, aws-cn, aws-us-gov."""
        return self.arn.split(":")[1]


@dataclass(frozen=True)
class ServiceQuota:
    """A service quota as it is applied to the account."""

    name: str
    value: float


@dataclass(frozen=True)
class InUse:
    """What counts against quotas of networks already, but for the cluster's own."""

    addresses: int
    vpcs: int
    nat_gateways: Mapping[str, int]  # zone -> how many
    interfaces: int = 0
    gp3_gib: int = 0


@dataclass(frozen=True)
class Zone:
    """An availability zone as the account sees it."""

    state: str  # available, impaired, unavailable
    opt_in: str  # opt-in-not-required, opted-in, not-opted-in


@dataclass(frozen=True)
class TypeFacts:
    """An instance type, as EC2 describes it."""

    vcpus: int
    architectures: tuple[str, ...]
    boot_modes: tuple[str, ...]  # legacy-bios, uefi


@dataclass(frozen=True)
class ImageFacts:
    """An image, as EC2 describes it."""

    state: str
    architecture: str
    owner: str  # account number
    owner_alias: str  # amazon, aws-marketplace; empty: neither
    root_device: str
    root_device_type: str  # ebs, instance-store
    root_gb: int  # 0: no volume is named as the root device
    ena: bool
    boot_mode: str  # legacy-bios, uefi, uefi-preferred; empty: the architecture's own
    deprecated: datetime | None


@dataclass(frozen=True)
class IamQuestion:
    """One question to IAM's simulator."""

    action: str
    resource: str = "*"
    context: Mapping[str, str] | None = None


@dataclass(frozen=True)
class IamDecision:
    """What the simulator says. It sees no resource's own policy, and no tags but those of the question."""

    decision: str  # allowed, explicitDeny, implicitDeny
    missing: tuple[str, ...] = ()  # condition keys of the policies that the question didn't give
    by_organization: bool = False  # a policy of the organization says no


@dataclass(frozen=True)
class DryRun:
    """EC2's answer to a dry run of a launch."""

    code: str  # DryRunOperation: it would have
    text: str


@dataclass(frozen=True)
class Tunnel:
    """One of a VPN connection's two."""

    address: str
    up: bool
    message: str
    routes: int  # accepted from the hall by BGP


@dataclass(frozen=True)
class Vpn:
    """A site-to-site VPN connection."""

    id: str
    name: str  # its tag Name
    state: str
    tunnels: tuple[Tunnel, ...]
    static: bool


@dataclass(frozen=True)
class Route:
    """A route of a route table."""

    destination: str  # an IPv4 network
    target: str  # id of the gateway
    active: bool


@dataclass(frozen=True)
class Association:
    """The cluster's network at a Direct Connect gateway, or attached to a transit gateway."""

    id: str  # of the virtual private gateway, or of the attachment
    state: str
    error: str


@dataclass(frozen=True)
class Secret:
    """A secret's description; its value is never asked for."""

    arn: str
    deleted: datetime | None
    kms_key: str  # empty: AWS's own


@dataclass(frozen=True)
class Reservation:
    """A capacity reservation or block."""

    state: str
    instance_type: str
    zone: str
    count: int
    kind: str  # default, capacity-block
    starts: datetime | None
    ends: datetime | None


class Account(Protocol):
    """All methods raise Unasked, and change nothing."""

    def caller(self) -> Caller:
        """Who asks; nobody can be kept from this answer."""

    def region_opt_in(self) -> str:
        """Whether the account has the region: opt-in-not-required, opted-in or not-opted-in."""

    def quota(self, service: str, code: str) -> ServiceQuota:
        """The applied value, not the default."""

    def fixed(self, cluster: str) -> Mapping[str, str]:
        """The cluster's fixed nodes that aren't ended: {instance id: group}, by their tags."""

    def nat_gateways(self, cluster: str) -> Set[str]:
        """The cluster's that are there, or come."""

    def addresses(self, cluster: str) -> Mapping[str, bool]:
        """The cluster's: {allocation id: whether something has it}."""

    def in_use(self, cluster: str) -> InUse:
        """Others' networks, addresses and NAT gateways."""

    def zones(self) -> Mapping[str, Zone]:
        """All of the region, those not opted in too, by name."""

    def offered(self, types: Sequence[str]) -> set[tuple[str, str]]:
        """(instance type, zone) that EC2 offers."""

    def types(self, names: Sequence[str]) -> Mapping[str, TypeFacts]:
        """Those of these types that the region has."""

    def parameter(self, name: str) -> str | None:
        """The value of an SSM parameter; None: there is none."""

    def image(self, image_id: str) -> ImageFacts | None:
        """None: there is none of that id, or it isn't shared with the account."""

    def role(self, cluster: str, name: str) -> str | None:
        """The ARN of the role that Pulumi made under a logical name, by that and its tags; None: there is none."""

    def role_named(self, name: str) -> bool:
        """Whether the account has a role of this very name."""

    def simulate(self, role_arn: str, question: IamQuestion) -> IamDecision:
        """What a role's policies, its boundary and the organization say."""

    def dry_run(self, request: LaunchRequest, role_arn: str | None) -> DryRun:
        """A launch that isn't done; as a role that the caller takes for it, or as the caller."""

    def vpns(self, cluster: str) -> list[Vpn]:
        """Those with the cluster's tag that aren't deleted."""

    def vpn_gateways(self, cluster: str) -> Set[str]:
        """Their ids, attached or not, of those with the cluster's tag that aren't deleted."""

    def associations(self, cluster: str, gateway_id: str) -> list[Association]:
        """The cluster's at a Direct Connect gateway, which may be others' too."""

    def attachments(self, cluster: str, gateway_id: str) -> list[Association]:
        """The cluster's to a transit gateway."""

    def routes(self, cluster: str) -> Mapping[str, list[Route]]:
        """Of the cluster's route tables, by their tag Name."""

    def secret(self, name: str) -> Secret | None:
        """By name or ARN; None: there is none."""

    def default_key(self) -> str | None:
        """The ARN of the account's own key for EBS volumes in this region; None: AWS's."""

    def grantees(self, key_arn: str) -> Set[str]:
        """The principals that grants let use a key."""

    def cost_tag(self, key: str) -> str | None:
        """Active or Inactive; None: AWS has seen no such tag. Costs a cent a call."""

    def budgets(self) -> list[str]:
        """The names of the account's budgets."""

    def reservation(self, reservation_id: str) -> Reservation | None:
        """None: there is none."""

    def queue(self, url: str) -> str | None:
        """The ARN of a queue; None: there is none."""

    def rules(self, queue_arn: str) -> Mapping[str, bool]:
        """The event rules that send to a queue: name -> whether it is enabled."""
