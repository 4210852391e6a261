"""Models of the document's parts. Fields after version 1 have a default: a document may be older than its reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from ironburst.document.aws import LOGIN_USERS, Hosted
from ironburst.document.bridge import Bridge
from ironburst.document.cloud_model import CloudDocument, DataSet, ImagesDocument, OtherCloud
from ironburst.document.control_plane import ControlPlane
from ironburst.document.hall_model import HallDocument
from ironburst.document.karpenter_model import KarpenterPool
from ironburst.document.monitoring import MonitoringDocument
from ironburst.document.node_model import GpuDocument, MigDocument, NodeSoftware, Scratch
from ironburst.document.part import Part
from ironburst.document.policy_model import BudgetDocument, Burst, Share
from ironburst.document.pool_model import PoolDocument
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


class Filesystem(Part):
    """The shared file system, as mount takes it."""

    kind: str
    source: str
    options: str


class SubnetManager(Part):
    """A host that runs opensm."""

    host: str
    priority: int = Field(description="opensm's, 0 to 15: the highest becomes master")


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

    def in_store(self, copies: Mapping[str, str]) -> Scheduler:
        """With references to the copies of its secrets, where there are some."""
        its = {"munge_key": self.munge_key, "join_token": self.join_token}
        update: dict[str, Any] = {key: copies[reference] for key, reference in its.items() if reference in copies}
        if self.bridge and self.bridge.join_token in copies:
            update["bridge"] = self.bridge.model_copy(update={"join_token": copies[self.bridge.join_token]})
        return self.model_copy(update=update)


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
    provider: str = Field(default="", description="whose, of a fixed cloud node; empty: the document's first cloud's")
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
    other_clouds: list[OtherCloud] = Field(default=[], description="beside the first; each of another provider")
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
    def clouds(self) -> list[CloudDocument]:
        """All of them, the first one first."""
        return [*([self.cloud] if self.cloud else []), *self.other_clouds]

    @property
    def regions(self) -> dict[str, str]:
        """Of each cloud, by provider."""
        return {each.provider: each.region for each in self.clouds}

    def in_cloud(self, nodes: Host | PoolDocument) -> ClusterDocument:
        """The document as the cloud of these nodes has it: that cloud alone, and secrets in its store."""
        return self.of_provider(nodes.provider)

    def of_provider(self, provider: str) -> ClusterDocument:
        """The same by the cloud's provider; the first's, where no other has it."""
        other = self._other(provider)
        cloud = other or self.cloud
        if cloud is None or not (other or cloud.secrets):
            return self
        first, *rest = [each.in_store(cloud.secrets) for each in self.schedulers]
        its = [pool for pool in self.pools if (self._other(pool.provider) or self.cloud) is cloud]
        update = {"cloud": cloud, "other_clouds": [], "scheduler": first, "other_schedulers": rest, "pools": its}
        if other:
            energy = self.monitoring.model_copy(update={"cloud": other.energy})
            update |= {"data": other.data, "images": other.images, "monitoring": energy}
        return self.model_copy(update=update)

    def _other(self, provider: str) -> OtherCloud | None:
        return next((each for each in self.other_clouds if each.provider == provider), None)

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
        other = self._other(nodes.provider)
        known = other.data if other else self.data
        return {name: known[name] for name in nodes.data if name in known}
