"""Models of the document's parts. Fields after version 1 have a default: a document may be older than its reader."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ironburst.document.aws import LOGIN_USERS, Hosted
from ironburst.document.bridge import Bridge
from ironburst.document.control_plane import ControlPlane
from ironburst.document.hall_model import HallDocument
from ironburst.document.karpenter_model import KarpenterPool
from ironburst.document.monitoring import MonitoringDocument
from ironburst.document.part import Part
from ironburst.document.places import CloudDocument, Place
from ironburst.document.policy_model import BudgetDocument, Burst, Share
from ironburst.document.slurm_node import SecondHead, SlurmMail, SlurmNode
from ironburst.document.user_model import Users


class DocumentError(ValueError):
    """A document that can't be used; the text is one sentence."""


class NewerDocument(DocumentError):
    """Of a version or a cloud that this ironburst doesn't know: no damage, and an old copy would hide it."""


class Software(Part):
    """Cluster-wide; the driver's are those of the first group of GPU nodes. Hosts have their own: NodeSoftware."""

    driver: str | None
    kernel_module: str | None
    cuda: str | None
    container_toolkit: str | None
    container_runtime: str
    container_runtimes: list[str] = Field(default=["containerd"])
    rdma: str
    slurm: str | None


class NodeSoftware(Part):
    """The exact set of one group of nodes, as the version lock solved it. None: not on these nodes (or, for `kernel`,
    not pinned). It names the fields of software.SoftwareSet again, because it is a contract with readers of any age.
    """

    driver: str | None
    driver_branch: int | None
    kernel_module: str | None
    fabric_manager: str | None
    nscq: str | None
    nvlsm: bool
    imex: str | None
    persistenced: str | None = None
    cuda: str | None
    container_toolkit: str | None
    container_runtimes: list[str]
    dcgm: str | None
    nccl: str | None
    rdma: str
    rdma_version: str | None
    peer_memory: str
    gds: bool
    kernel: str | None
    slurm: str | None
    kubernetes: str | None = Field(default=None, description="kubelet")
    slurm_packages: str = Field(default="distribution", description="whose Slurm's are: distribution or schedmd")
    packages: dict[str, list[str]] = Field(description="role: package specs in the OS's own syntax; every one is held")


class MigDocument(Part):
    """MIG layout of some GPUs of each node: instances of each profile on each of these GPUs."""

    gpus: list[int]
    profiles: dict[str, int]


class Scratch(Part):
    """Local scratch space."""

    path: str
    devices: list[str] = Field(description="empty: every unused local NVMe disk")
    filesystem: str


class Filesystem(Part):
    """The shared file system, as mount takes it."""

    kind: str
    source: str
    options: str


class DataSet(Part):
    """Files that cloud nodes read, and where they have them."""

    kind: str = Field(description="lustre: mounted; else the cloud's own store of objects, copied to the node's disks")
    source: str = Field(description="lustre: as mount takes it; else bucket/prefix")
    path: str


class SubnetManager(Part):
    """A host that runs opensm."""

    host: str
    priority: int = Field(description="opensm's, 0 to 15: the highest becomes master")


class GpuDocument(Part):
    """The GPUs of one node; `model` as the catalogue names it."""

    model: str
    count: int
    memory_gb: float | None = Field(
        default=None, description="of each, as marketed; of rented ones the smallest part of one; null: unknown"
    )
    nvlink: bool | None = Field(default=None, description="it joins all GPUs of the node; null: unknown")
    pcie_width: int | None = Field(
        default=None, description="PCIe lanes that the machine wires to each; 0: all that a GPU has; null: unknown"
    )


class Ssh(Part):
    """How Ansible logs in."""

    user: str
    sudo_secret: str = Field(default="", description="of `user`, as a reference; empty: sudo asks for none")
    cloud_user: str | None = Field(default=None, description="at cloud hosts; null: the user of the system's image")

    def user_at(self, kind: str, os: str | None) -> str:
        """Who logs in at a host: `kind` is bare_metal or cloud. Anybody but root becomes root by sudo."""
        if kind != "cloud":
            return self.user
        return self.cloud_user or LOGIN_USERS.get((os or "").rstrip("0123456789"), self.user)


class Scheduler(Hosted):
    """Slurm's head, or the Kubernetes cluster; what is the other kind's is empty. `munge_key`, `kubeconfig` and
    `join_token` are references, never the secret.
    """

    kind: str
    home_partition: str
    shared_filesystem: str = Field(description="empty: there is none")
    head: str = ""
    head_address: str = ""
    second_head: SecondHead | None = Field(default=None, description="null: there is one head")
    conf_server: str = Field(default="", description="where slurmd asks: addresses of two heads; empty: head_address")
    munge_key: str = ""
    managed: bool = Field(
        default=True, description="false: a Slurm that somebody else sets up; nothing is written there"
    )
    slurm_uid: int = Field(default=64030, description="number of Slurm's user and group")
    srun_ports: str = Field(default="61001-64000", description="SrunPortRange")
    kill_wait_s: int = Field(default=90, description="KillWait: so long after SIGTERM a job may save")
    mail: SlurmMail | None = Field(default=None, description="of --mail-type; null: it sends nothing")
    control_plane: ControlPlane | None = Field(default=None, description="null: the cluster is there already")
    api_server: str = Field(default="", description="URL, as nodes and the controller reach it")
    ca: str = Field(
        default="",
        description="certificates of the cluster's authority, PEM; empty: only the head has it",
    )
    kubeconfig: str = ""
    join_token: str = ""
    cluster_dns: str = ""
    cluster_domain: str = ""
    device_taints: bool = Field(default=False, description="a node taints its bad GPUs, and its others stay in use")
    gpus_by_mount: bool = Field(
        default=False, description="pods are given GPUs by mounts or CDI, so that no image's word has to be believed"
    )
    home_resources: list[str] = Field(default=[], description="extended resources beside GPUs that home's nodes have")
    namespace: str = ""
    queue: str = ""
    account_label: str = ""
    bridge: Bridge | None = Field(default=None, description="of Slurm; rented nodes join it, too; null: there is none")


class Host(Part):
    """A declared host, owned or a fixed cloud node."""

    name: str
    scheduler: str = Field(default="", description="kind of the one that it is a node of; empty: there is only one")
    node_object: str = Field(default="", description="its name in Kubernetes; empty: its own")
    kind: Literal["bare_metal", "cloud"]
    managed: bool = Field(default=True, description="false: the policy knows it, and nothing else touches it")
    role: Literal["gpu", "head", "login"]
    address: str
    partition: str | None
    gpu: GpuDocument | None
    fabric: str
    fabric_links: int
    slurm: SlurmNode | None
    serial: str | None = None
    hall: str | None = None
    rack: str | None = None
    instance_id: str | None = None
    instance_type: str | None = None
    zone: str | None = None
    os: str | None = None
    software: NodeSoftware | None = None
    mig: list[MigDocument] | None = None
    gpu_power_limit_w: int | None = Field(default=None, description="of each GPU; null: left alone")
    power_w: float | None = Field(default=None, description="the most that it draws, with that limit; null: unknown")
    gpu_w: float | None = Field(default=None, description="the same of each GPU; null: unknown")
    scratch: Scratch | None = None
    data: list[str] = Field(default=[], description="data sets that it has")
    usd_per_gpu_hour: float | None = Field(
        default=None,
        description="as declared; of a fixed cloud node its on-demand price over its GPUs; null: not known",
    )
    roles: list[str]


class PoolZone(Part):
    """What a launch in one zone needs."""

    zone: str
    instance_type: str = Field(default="", description="that is launched there; empty: the pool's first")
    place: Place = Field(description="of the cloud's own; of each cloud another type")


class PoolType(Part):
    """Another instance type of a pool, and what differs from its first one."""

    instance_type: str
    usd_per_hour: dict[str, float | None] = Field(description="market: USD per node-hour; null: unknown, so not rented")
    interruptions_per_hour: dict[str, float] = Field(
        default={}, description="market: how often one instance is taken back; none: never"
    )


class PoolDocument(Part):
    """The envelope of one burst pool: limits, prices, and what a launch needs."""

    name: str
    scheduler: str = Field(default="", description="kind of the one that its nodes join; empty: there is only one")
    partition: str
    nodes: list[str]
    instance_type: str
    gpu: GpuDocument
    fabric: str
    fabric_links: int
    slurm: SlurmNode
    markets: list[str]
    usd_per_hour: dict[str, float | None] = Field(
        description="market: USD per node-hour; null: unknown, so not rented; a capacity block's is 0: it was paid for"
    )
    spot_max_usd_per_hour: dict[str, float] = Field(default={}, description="type: the most paid for spot; none: any")
    price_as_of: str | None = Field(description="day of the oldest list price in it; null: all are declared")
    prices_as_of: dict[str, str] = Field(default={}, description="market: the same of its prices; none: declared")
    zones: list[PoolZone]
    image: str = Field(description="where the cloud keeps the id of its nodes' image")
    notices: str = Field(default="", description="where the cloud says that it takes nodes back; empty: nowhere")
    bought: bool = Field(default=False, description="its nodes run in capacity that is paid for, used or not")
    boot_s: int
    idle_s: int
    max_run_s: int
    capacity_ends_s: float | None = Field(
        default=None, description="seconds since 1970; its capacity is taken back then"
    )
    capacity_starts_s: float | None = Field(
        default=None, description="seconds since 1970; nothing can be launched before; null: it has begun"
    )
    account: str | None = Field(default=None, description="Slurm account whose jobs alone rent in it; null: all")
    data: list[str] = Field(default=[])
    licences: list[str] = Field(default=[])
    labels: dict[str, str] = Field(default={}, description="of its nodes in Kubernetes, beside our own")
    interruptions_per_hour: dict[str, float] = Field(
        default={}, description="market: how often one instance is taken back; none: never"
    )
    checkpoint_s: int = 0
    relative_speed: float | None = Field(default=None, description="of home's; null: not known, counted as 1")
    root_disk_gb: int | None = Field(default=None, description="GiB of the nodes' root disk; null: as the image has it")
    root_disk_mb_s: int | None = Field(default=None, description="MiB/s of the nodes' root disk; null: the cloud's own")
    os: str | None = None
    software: NodeSoftware | None = None
    mig: list[MigDocument] | None = None
    scratch: Scratch | None = None
    roles: list[str]
    other_types: list[PoolType] = Field(
        default=[], description="that its nodes may be beside instance_type; prices and interruptions are that one's"
    )
    prefer: Literal["price", "order"] = Field(default="price", description="by what a type is chosen in a market")

    @property
    def zone_names(self) -> list[str]:
        """Its zones, in order of preference."""
        return list(dict.fromkeys(place.zone for place in self.zones))

    def place(self, zone: str, instance_type: str) -> PoolZone | None:
        """What a launch of this type in this zone needs; None: the pool has no such place."""
        wanted = zone, instance_type
        return next(
            (each for each in self.zones if (each.zone, each.instance_type or self.instance_type) == wanted), None
        )

    @property
    def prices(self) -> dict[str, dict[str, float | None]]:
        """Instance type: its usd_per_hour."""
        others = {other.instance_type: other.usd_per_hour for other in self.other_types}
        return {self.instance_type: self.usd_per_hour} | others

    def price(self, instance_type: str, market: str) -> float | None:
        """USD per hour of a node of this type; None: not known, or it isn't the pool's."""
        return self.prices.get(instance_type, {}).get(market)

    @property
    def dearest_usd_per_hour(self) -> float:
        """Of all its types and markets whose price is known; 0 without any."""
        return max((usd for each in self.prices.values() for usd in each.values() if usd is not None), default=0.0)


class ImagesDocument(Part):
    """How the images of pools are baked, and how long they stay."""

    build_type: str | None = Field(default=None, description="instance type of builds; null: the pool's own")
    keep: int = Field(default=3, description="images of a pool that stay")


class ClusterDocument(Part):
    """The whole document; `serial` counts what was published, 0: not yet."""

    version: Literal[6] = Field(
        description="6: the cloud is named, or null, and a place is that cloud's own. Of before it are read: "
        "1 of a Slurm alone that is managed, 2 of Kubernetes, 3 of both, 4 of slurm-bridge or Karpenter, 5 of what "
        "isn't managed"
    )
    serial: int
    commit: str = Field(default="", description="git's id of what it was published from; empty: not known")
    committed_s: float | None = Field(default=None, description="when that was committed, seconds since 1970")
    cluster: str
    cloud: CloudDocument | None = Field(description="null: nothing is rented")
    software: Software
    ssh: Ssh
    scheduler: Scheduler
    other_schedulers: list[Scheduler] = Field(default=[], description="beside the first; each of another kind")
    hosts: list[Host]
    halls: dict[str, HallDocument] = Field(default={}, description="those that hosts stand in, by name")
    pools: list[PoolDocument]
    karpenter: list[KarpenterPool] = Field(default=[], description="what Karpenter may launch within the budget")
    budget: BudgetDocument | None
    burst: Burst
    filesystem: Filesystem | None = Field(
        default=None, description="mounted at scheduler.shared_filesystem; null: somebody else does"
    )
    subnet_managers: dict[str, list[SubnetManager]] = Field(
        default={}, description="by hall; empty: the switches or UFM do"
    )
    topology: str = Field(
        default="", description="Slurm's topology.conf; empty: its nodes are on no fabric that a hall declares"
    )
    data_science: list[str] = Field(default=[])
    data: dict[str, DataSet] = Field(default={}, description="declared data sets; names of others are only names")
    images: ImagesDocument = ImagesDocument()
    shares: list[Share] = Field(default=[], description="empty: whoever comes first has the owned GPUs")
    users: Users = Users()
    monitoring: MonitoringDocument = MonitoringDocument()
    names: str = Field(default="", description="how hosts find each other: hosts or dns; empty: not our matter")

    @property
    def region(self) -> str | None:
        """The cloud's, where there is one."""
        return self.cloud.region if self.cloud else None

    @property
    def managed_hosts(self) -> list[Host]:
        """Those that Ansible, converge and health may touch."""
        return [host for host in self.hosts if host.managed]

    @property
    def schedulers(self) -> list[Scheduler]:
        """All of them, the first one first."""
        return [self.scheduler, *self.other_schedulers]

    def scheduler_of(self, nodes: Host | PoolDocument) -> Scheduler:
        """Whose nodes these are."""
        return next((each for each in self.schedulers if each.kind == nodes.scheduler), self.scheduler)

    def scheduler_of_kind(self, kind: str) -> Scheduler | None:
        """None: it has none of that kind."""
        return next((each for each in self.schedulers if each.kind == kind), None)

    def host(self, name: str) -> Host:
        """The declared host with this name; StopIteration without one."""
        return next(host for host in self.hosts if host.name == name)

    def pool(self, name: str) -> PoolDocument | None:
        """The pool with this name; None: it isn't declared, or no more."""
        return next((pool for pool in self.pools if pool.name == name), None)

    def data_of(self, nodes: Host | PoolDocument) -> dict[str, DataSet]:
        """The declared ones of the data sets that a host or a pool's nodes have."""
        return {name: self.data[name] for name in nodes.data if name in self.data}
