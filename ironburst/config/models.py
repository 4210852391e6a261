"""What a person writes under `ironburst:cluster` in stacks/Pulumi.<env>.yaml.

The models hold shape and units only; what needs two places of the file, or the catalogue, is in the package checks.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from ironburst.config.allowance_models import Allowance
from ironburst.config.bios_models import Settings
from ironburst.config.bridge_models import Bridge
from ironburst.config.burst_models import Burst
from ironburst.config.cloud_models import Cloud, Group, Pool
from ironburst.config.clouds import DeclaredCloud
from ironburst.config.firmware_models import FirmwareMinimum
from ironburst.config.hall_models import Chassis, Cord, Facilities, Rack
from ironburst.config.install_models import Install, NodeNames
from ironburst.config.karpenter_models import KarpenterPool
from ironburst.config.monitoring_models import Monitoring
from ironburst.config.node_settings import NodeSettings
from ironburst.config.scheduler_models import Kubernetes, Scheduler, Slurm, in_store
from ironburst.config.shares_models import Share
from ironburst.config.software_models import DataScience, Software, Strict
from ironburst.config.types import (
    Account,
    BmcNetwork,
    Fingerprint,
    Mac,
    Mail,
    Name,
    Network,
    Range,
    SecretRef,
    Usd,
)
from ironburst.config.user_models import Users

C = TypeVar("C", bound=Cloud)
LoginUser = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9._-]*$", examples=["ubuntu"])]


class Ssh(Strict):
    """How Ansible reaches the hosts."""

    user: LoginUser = Field(
        default="root", description="user that Ansible logs in as; anybody but root becomes root by sudo"
    )
    sudo_password: SecretRef | None = Field(
        default=None, description="sudo's password of `user`; none: sudo asks for none. Cloud nodes never have one"
    )
    cloud_user: LoginUser | None = Field(
        default=None,
        description="the same at cloud nodes; none: the user of the system's stock images (`ironburst catalog images` "
        "lists them); Rocky's images have rocky",
    )
    key_name: str | None = Field(
        default=None, description="existing key pair of the cloud, for its nodes; none: the image has the key"
    )


class Bmc(Strict):
    """Redfish endpoints of a range of nodes, one each."""

    addresses: Range = Field(description="URLs, one a node", examples=["https://10.0.9.[11-14]"])
    username: str = Field(min_length=1)
    password: SecretRef
    verify_tls: bool = Field(
        default=True, description="no: whatever certificate is shown is taken, and the password sent there; see sha256"
    )
    ca_file: str | None = Field(
        default=None,
        min_length=1,
        description="CAs that signed the certificates, in PEM, a path where Pulumi runs; none: those of that system",
    )
    sha256: list[Fingerprint] | None = Field(
        default=None,
        description="fingerprint of each BMC's own certificate, one a node: that one is taken, whoever signed it",
    )


class OwnedPrice(Strict):
    """USD for an hour of one of your GPUs, used or not: what `ironburst report` counts for jobs at home."""

    depreciation: float = Field(
        ge=0, allow_inf_nan=False, description="price of the nodes over their life, with space and people"
    )
    power: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="with cooling")

    @property
    def usd(self) -> float:
        """All of it."""
        return self.depreciation + self.power


class _OwnedAlone(Strict):
    names: Range = Field(examples=["dgx[01-04]"])
    role: Literal["gpu", "head", "login"] = Field(
        default="gpu",
        description="head: runs the scheduler, no jobs; login: users log in and submit there, it runs nothing of Slurm",
    )
    platform: str | None = Field(
        default=None, description="catalogue platform; a GPU node needs one", examples=["dgx-h100"]
    )
    managed: bool = Field(
        default=True,
        description="no: the policy knows the nodes, and nothing else touches them: no Ansible, BMC or health check",
    )
    rack: Name | None = Field(default=None, description="one of the hall's racks; none: not said, and not checked")
    units: list[Annotated[int, Field(gt=0)]] = Field(
        default=[], description="lowest rack unit of each node; with a rack"
    )
    height: int | None = Field(default=None, gt=0, description="rack units; where absent, the platform's")
    chassis: Chassis = Chassis()
    cords: list[Cord] = Field(
        default=[],
        description="where each power supply is plugged in, the same for every node: a PDU of the rack, or PDU/L1 for "
        "one of its phases; none: they are planned, by turns on both feeds",
        examples=[["a03-a/L1", "a03-b/L1"]],
    )
    gpu_power_limit_w: int | None = Field(
        default=None, gt=0, description="most that each GPU may draw (nvidia-smi -pl); none: left alone", examples=[500]
    )
    addresses: Range = Field(
        default=[], description="in the hall's cidr, one a node; managed nodes need them", examples=["10.0.1.[11-14]"]
    )
    macs: list[Mac] | None = Field(default=None, description="verified against the BMC's inventory")
    serials: list[Annotated[str, Field(min_length=1)]] | None = Field(
        default=None, description="verified against the BMC's inventory"
    )
    node_objects: Range | None = Field(
        default=None,
        description="names of their Node objects in Kubernetes, one a node; where absent, the nodes' own",
        examples=["dgx[01-04].dc1.example"],
    )
    bmc: Bmc | None = Field(default=None, description="none: Pulumi neither verifies nor powers these nodes")
    install: Install | None = Field(default=None, description="none: ironburst installs no system on these nodes")
    firmware: list[FirmwareMinimum] = Field(default=[], description="least versions, held against the BMC's inventory")
    allow_update: NodeNames = Field(default=[], description="GPU nodes whose firmware `--update` may write")
    bios: Settings = Field(default={}, description="settings by AttributeName, held against what is in force")
    allow_bios: NodeNames = Field(default=[], description="nodes whose BIOS `ironburst node bios --set` may set")
    secure_boot: bool | None = Field(default=None, description="whether the firmware enforces it; none: not known")
    dgx_os: bool = Field(
        default=False,
        description="the nodes run DGX OS (6 is os ubuntu2204, 7 is ubuntu2404): its driver, Docker and kernels stay",
    )
    infiniband_links: int | None = Field(
        default=None, ge=0, le=64, description="compute HCAs a node; a GPU node needs the figure, 0 is none"
    )
    usd_per_gpu_hour: OwnedPrice | None = Field(
        default=None, description="what an hour of one of their GPUs costs you; none: not known, and told nowhere"
    )
    power_off_on_delete: bool = Field(default=False, description="destroy powers the node off; else it goes on running")


class Nodes(NodeSettings, _OwnedAlone):
    """One or more equal bare-metal nodes. Lists and ranges give one value a node, in the order of `names`."""


class _Place(Strict):
    name: Name
    cidr: Network = Field(description="network of the nodes")
    bmc_cidr: BmcNetwork | None = Field(
        default=None, description="out-of-band network of the BMCs; needed where nodes have one"
    )
    racks: list[Rack] = Field(default=[], description="none: where the nodes stand isn't said")
    nodes: list[Nodes] = Field(min_length=1)
    subnet_managers: list[str] = Field(
        default=[],
        description="hosts that run opensm, in order of priority, at most two; none: the switches or UFM do",
        examples=[["head"]],
    )


class Hall(Facilities, _Place):
    """A place with racks."""


class Filesystem(Strict):
    """What is mounted at scheduler.shared_filesystem."""

    kind: Literal["nfs", "lustre", "beegfs"]
    source: str = Field(
        min_length=1,
        description="as mount takes it; beegfs: the management host",
        examples=["10.0.0.5:/export", "mgs@o2ib:/scratch"],
    )
    options: str = Field(
        default="",
        pattern=r"^\S*$",
        description="mount options, without blanks",
        examples=["nconnect=8,noatime"],
    )

    @model_validator(mode="after")
    def _as_mount_takes_it(self) -> Filesystem:
        form = {"nfs": r"\S+:/\S*", "lustre": r"\S+:/\S+", "beegfs": r"[^\s:/]+"}[self.kind]
        if not re.fullmatch(form, self.source):
            example = {"nfs": "10.0.0.5:/export", "lustre": "mgs@o2ib:/scratch", "beegfs": "10.0.0.5"}[self.kind]
            raise ValueError(
                f"has source {self.source!r}, which {self.kind} doesn't mount; write for example {example}"
            )
        return self


class Budget(Strict):
    """Hard ceilings for rented nodes, by the declared prices. Days and months are UTC's; the least of what is left
    applies.
    """

    usd_per_month: float = Field(gt=0, allow_inf_nan=False, description="the most for rented nodes in a calendar month")
    usd_per_day: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="the most that is spent in a day; none: no such ceiling"
    )
    total_usd_per_month: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="the most that a month may cost at worst, fixed nodes and network too: `ironburst plan` refuses "
        "what is dearer; none: nothing is refused for its price",
    )
    accounts: dict[Account, Usd] = Field(
        default={},
        description="Slurm account: the most that is spent on its jobs in a month; "
        "others have the common ceilings only",
    )
    notify: list[Mail] = Field(default=[], description="mail addresses for the budget alarm")


class ClusterConfig(Strict):
    """The whole declaration of one environment."""

    name: Name
    software: Software
    ssh: Ssh = Ssh()
    halls: list[Hall] = Field(
        default=[],
        description="where the owned nodes stand; none only with the cloud's control plane, or an unmanaged Slurm",
    )
    cloud: DeclaredCloud | None = Field(default=None, description="none: nothing is rented")
    other_clouds: list[DeclaredCloud] = Field(
        default=[],
        description="beside `cloud`, at most one of each provider: one burst policy and one budget over all, and names "
        "of pools and groups that are used once",
    )
    budget: Budget | None = Field(default=None, description="needed where there are burst pools")
    scheduler: Scheduler = Field(description="Slurm, or a Kubernetes cluster: kind says which")
    other_schedulers: list[Scheduler] = Field(
        default=[],
        max_length=1,
        description="the one of the other kind, where a site has both: one burst policy and one budget over both, and "
        "nodes, groups and pools say by their scheduler whose they are",
    )
    users: Users | None = Field(default=None, description="none: users and accounts are made by somebody else")
    names: Literal["hosts", "dns"] | None = Field(
        default=None,
        description="how hosts find each other: by a part of /etc/hosts that is written, or by a DNS that is asked "
        "whether it knows them; both set the hostname. None: not looked at",
    )
    shares: list[Share] = Field(default=[], description="teams that share the owned GPUs; none: whoever comes first")
    burst: Burst = Burst()
    filesystem: Filesystem | None = Field(default=None, description="shared; none: somebody else mounts it")
    metrics: bool = Field(default=False, description="exporters for Prometheus on every node")
    monitoring: Monitoring = Monitoring()
    allow: list[Allowance] = Field(
        default=[], description="what `ironburst plan` would refuse and somebody answers for, for some days"
    )
    data_science: list[DataScience] = Field(
        default=[], description="frameworks that GPU nodes offer as module files and containers"
    )

    @property
    def clouds(self) -> list[DeclaredCloud]:
        """All of them, the first one first."""
        return [*([self.cloud] if self.cloud else []), *self.other_clouds]

    @property
    def regions(self) -> dict[str, str]:
        """Of each cloud, by provider."""
        return {each.provider: each.region for each in self.clouds}

    @property
    def groups(self) -> list[Group]:
        """The fixed groups of all clouds."""
        return [group for each in self.clouds for group in each.groups]

    @property
    def pools(self) -> list[Pool]:
        """The burst pools of all clouds."""
        return [pool for each in self.clouds for pool in each.pools]

    @property
    def karpenter(self) -> list[KarpenterPool]:
        """What Karpenter launches in all clouds."""
        return [pool for each in self.clouds for pool in each.karpenter]

    def cloud_by_class(self, kind: type[C]) -> C | None:
        """That of one provider; None: there is none of it."""
        return next((each for each in self.clouds if isinstance(each, kind)), None)

    def cloud_of(self, nodes: Group | Pool) -> DeclaredCloud:
        """Whose nodes these are."""
        return next(each for each in self.clouds if any(nodes is its for its in (*each.groups, *each.pools)))

    def in_cloud(self, cloud: DeclaredCloud) -> ClusterConfig:
        """The declaration as one of its clouds has it: that cloud alone, and secrets in its store."""
        if not self.other_clouds and not cloud.secrets:
            return self
        schedulers = [in_store(each, cloud.secrets) for each in self.schedulers]
        update = {"cloud": cloud, "other_clouds": [], "scheduler": schedulers[0], "other_schedulers": schedulers[1:]}
        return self.model_copy(update=update)

    @property
    def schedulers(self) -> list[Scheduler]:
        """All of them, the first one first."""
        return [self.scheduler, *self.other_schedulers]

    def node_secrets(self, store: str) -> list[tuple[str, str]]:
        """(place, name) in a store of what rented nodes join with; a place is a vault, or a project."""
        keys = [getattr(each, key, None) for each in self.schedulers for key in ("munge_key", "join_token")]
        named = (str(key or "").partition(":") for key in keys)
        split = (rest.partition("#")[0].partition("/") for scheme, _, rest in named if scheme == store)
        return sorted({(place, name) for place, _, name in split})

    def scheduler_of(self, nodes: NodeSettings) -> Scheduler:
        """Whose nodes these are: the first one's, unless they say another; a head is of the one that names it, a login
        node of Slurm.
        """
        if isinstance(nodes, Nodes) and nodes.role != "gpu":
            heads = (each for each in self.schedulers if nodes.role == "head" and each.head_node in nodes.names)
            return next(heads, self.slurm or self.scheduler)
        return next((each for each in self.schedulers if each.kind == nodes.scheduler), self.scheduler)

    @property
    def slurm(self) -> Slurm | None:
        """None: it has none."""
        return next((each for each in self.schedulers if isinstance(each, Slurm)), None)

    @property
    def bridge(self) -> Bridge | None:
        """None: Slurm is the queue of no cluster."""
        return self.slurm.bridge if self.slurm else None

    @property
    def kubernetes(self) -> Kubernetes | None:
        """None: it has none."""
        return next((each for each in self.schedulers if isinstance(each, Kubernetes)), None)
