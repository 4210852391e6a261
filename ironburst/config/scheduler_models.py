"""What a person writes of the scheduler: Slurm, or a Kubernetes cluster. Part of models.py's declaration."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Discriminator, Field, Tag

from ironburst.config.aws.eks_models import Hosted
from ironburst.config.bridge_models import Bridge
from ironburst.config.cluster_models import InCluster
from ironburst.config.gpu_support_models import GpuSupport
from ironburst.config.software_models import Strict
from ironburst.config.types import Address, Certificates, Duration, Folder, Mail, Name, Network, Ports, SecretRef
from ironburst.nodes.naming import SITE_LABEL
from ironburst.system import secrets

Part = TypeVar("Part", bound=Strict)


def _partition(value: str) -> str:
    if value.upper() in ("DEFAULT", "ALL"):
        raise ValueError(f"{value!r} is a word of slurm.conf's own; call the partition otherwise, as in home")
    return value


def _accounting(value: str) -> str:
    if not re.fullmatch(r"mysql://[^\s:@/?#]+@[A-Za-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9_$]+", value):  # likewise
        raise ValueError(
            "is no database of MariaDB; write mysql://USER@HOST/DATABASE, and a password as a reference in "
            "accounting_password"
        )
    return value


def _database(value: str) -> str:
    if not re.fullmatch(r"postgresql://[^\s:@/?#]+@[^\s@/?#]+/[^\s/?#]+(\?\S*)?", value):  # it may hold a password
        raise ValueError(
            "is no database of PostgreSQL; write postgresql://USER@HOST/DATABASE, and a password as a reference in "
            "ledger_password"
        )
    return value


Partition = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples=["home"]), AfterValidator(_partition)
]
SHARED = "mounted on every node; the gate checks it"


class SlurmMail(Strict):
    """Mail of `--mail-type`: queued on the head by Postfix, which hands it to the site's relay."""

    relay: str = Field(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$",
        description="host of the site, or host:port, that takes the head's mail without a password",
        examples=["mail.example.org:25"],
    )
    sender: Mail = Field(
        description="whom the mail is from; its domain completes users' names", examples=["slurm@example.org"]
    )


class SecondHead(Strict):
    """A head that goes on where the first one dies: with Slurm's state, which lies on a storage that both see, and the
    controller's ledger, which is in PostgreSQL.
    """

    head: str = Field(min_length=1, description="name of the bare-metal node, with role head")
    state: Folder = Field(
        description="folder that is mounted on both heads, on neither's disk, and for root alone to mount: Slurm's "
        "StateSaveLocation, orders and permits",
        examples=["/srv/heads"],
    )
    ledger: Annotated[str, AfterValidator(_database)] = Field(
        description="database of this site alone, in a PostgreSQL (14 or newer) on neither head: "
        "postgresql://USER@HOST/DATABASE, without a password",
        examples=["postgresql://ironburst@db.example.org/ironburst?sslmode=verify-full"],
    )
    ledger_password: SecretRef | None = Field(
        default=None,
        description="as both heads resolve it; none: PostgreSQL asks for none, for certificates or Kerberos say",
        examples=["file:/etc/ironburst/ledger.password"],
    )
    accounting: Annotated[str, AfterValidator(_accounting)] | None = Field(
        default=None,
        description="database of Slurm's accounting in a MariaDB on neither head, for a slurmdbd on each: "
        "mysql://USER@HOST/DATABASE, without a password; none: accounting stays on the first head, with its MariaDB",
        examples=["mysql://slurm@db.example.org/slurm_acct"],
    )
    accounting_password: SecretRef | None = Field(
        default=None, description="as the machine that converges resolves it; both heads get it in slurmdbd.conf"
    )


class Slurm(Strict):
    """Slurm, as the owned nodes have it."""

    kind: Literal["slurm"] = "slurm"
    managed: bool = Field(
        default=True,
        description="no: this Slurm is there already, and stays as it is; `ironburst slurm snippet` prints what its "
        "administrator adds to it",
    )
    head: str = Field(
        min_length=1,
        description="name of the bare-metal node with slurmctld; not managed: its address or name, as rented nodes "
        "reach it",
    )
    second_head: SecondHead | None = Field(
        default=None, description="takes over where the first one dies; none: there is one head"
    )
    home_partition: Partition = Field(
        default="home", description="Slurm partition of the owned nodes, where users submit"
    )
    munge_key: SecretRef = Field(
        description=f"one key for owned and rented nodes; rented ones can only read {secrets.STORED}"
    )
    shared_filesystem: Folder = Field(default="/shared", description=SHARED)
    slurm_uid: int = Field(
        default=64030, gt=0, lt=2**31, description="number of Slurm's user and group, the same on head and nodes"
    )
    srun_ports: Ports = Field(
        default="61001-64000",
        description="SrunPortRange: what srun listens on; open in firewalld where it runs",
    )
    kill_wait: Duration | None = Field(
        default=None,
        description="KillWait: so long after SIGTERM a job that is ended, put back or out of time may save; none: what "
        "the shortest notice of its spot pools' clouds leaves beside a turn of the controller, from 30s to 90s",
        examples=["90s"],
    )
    mail: SlurmMail | None = Field(
        default=None, description="how `--mail-type` sends; none: it sends nothing, and Slurm says nothing of it"
    )
    bridge: Bridge | None = Field(
        default=None,
        description="the Kubernetes cluster whose pods wait in Slurm's queue, by slurm-bridge; none: no one",
    )

    @property
    def joins_with(self) -> tuple[str, str] | None:
        """What a rented node joins with: the key of this section that names it, and the reference."""
        return "munge_key", self.munge_key

    @property
    def head_node(self) -> str | None:
        """Name of the declared node that it runs on; None: it is there already."""
        return self.head if self.managed else None


class GateRule(Strict):
    """A NodeReadinessRule (readiness.node.x-k8s.io/v1alpha1, mode continuous): owned nodes whose health gate doesn't
    pass get a taint, so that no pod starts there. Needs the node-readiness-controller in the cluster.
    """

    node_labels: dict[str, str] = Field(
        default={SITE_LABEL: "home"},
        min_length=1,
        description="nodes with all of these labels, of which each must have our gate: one that never said whether it "
        "passes is tainted, too",
    )
    dry_run: bool = Field(default=False, description="only say in the rule's status what would be tainted")


class Cni(Strict):
    """The manifest that gives the cluster its pod network; which one is the site's choice."""

    manifest: str = Field(
        pattern=r"^(https://\S+|[^\s:]+)$",
        description="https: URL that the head reaches, or a file on the machine that runs Ansible, from the checkout's "
        "folder",
        examples=["https://example.org/cni/v1.2.3/install.yaml", "/srv/site/cni.yaml"],
    )
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="of that file: sha256sum prints it")


class ControlPlane(Strict):
    """A cluster that is made here, by kubeadm, with one node of control plane."""

    head: str = Field(description="name of the bare-metal node, with role head")
    pod_cidr: Network = Field(default="10.244.0.0/16", description="addresses of pods; each node takes a /24")
    service_cidr: Network = Field(default="10.96.0.0/12", description="addresses of services")
    cni: Cni | None = Field(
        default=None, description="pod network; none: you install one, and nodes are NotReady until then"
    )
    image_repository: str | None = Field(
        default=None,
        pattern=r"^[^\s:/]+(:\d+)?(/[^\s:]+)*$",
        description="where the images of the control plane are; none: Kubernetes' own registry",
        examples=["registry.example.org/kubernetes"],
    )

    @property
    def cluster_dns(self) -> str:
        """Address of the DNS service: the tenth of service_cidr, as kubeadm has it."""
        return str(ipaddress.IPv4Network(self.service_cidr).network_address + 10)


class _MadeHere(InCluster):
    kind: Literal["kubernetes"]
    control_plane: ControlPlane | None = Field(
        default=None, description="the cluster is made on a host of a hall, by kubeadm"
    )


class Kubernetes(Hosted, _MadeHere):
    """A Kubernetes cluster, that is there already or made here: rented nodes join it, and its own scheduler starts the
    pods.
    """

    api_server: str | None = Field(
        default=None,
        pattern=r"^https://[^/\s]+$",
        description="as nodes and the controller reach it; needed of a cluster that is there already. With "
        "control_plane: the head's address, port 6443",
        examples=["https://10.0.0.5:6443"],
    )
    ca: Certificates | None = Field(
        default=None,
        description="certificate of the cluster's authority, PEM; kubeadm has it as /etc/kubernetes/pki/ca.crt. With "
        "control_plane needed for rented nodes only",
    )
    admin_kubeconfig: SecretRef | None = Field(
        default=None,
        description="how Pulumi gets in to declare the controller's rights and the GPU support, as cluster-admin; "
        "none: Pulumi declares nothing in the cluster",
        examples=["file:/etc/ironburst/admin.kubeconfig"],
    )
    gpu_support: GpuSupport = GpuSupport()
    home_resources: list[str] = Field(
        default=[],
        description="extended resources beside GPUs that nodes at home have: pods that ask for them run there alone, "
        "and the queues of `ironburst shares --for kueue` have no limit of them. gpu_support.rdma_resource is one, too",
        examples=[["rdma/ib"]],
    )
    gate_rule: GateRule | None = Field(
        default=None, description="none: a node whose gate fails is only cordoned, if rented"
    )
    join_token: SecretRef | None = Field(
        default=None,
        description="the controller writes the short-lived token there that a rented node joins with; "
        f"{secrets.STORED} alone; needed where the control plane isn't the cloud's",
        examples=[secrets.in_store("ironburst/prod/join-token")],
    )
    queue: Literal["pods", "kueue"] = Field(
        default="pods",
        description="whose queue is rented for: pods that kube-scheduler calls unschedulable, or workloads that Kueue "
        "(0.15 or newer) holds for an AdmissionCheck of ours, which flavors of the cloud carry",
    )
    cluster_dns: Address | None = Field(
        default=None,
        description="address of the cluster's DNS service; with control_plane it follows from service_cidr",
        examples=["10.96.0.10"],
    )
    home_partition: Name = Field(default="home", description="what the nodes that the cluster has are called as one")
    account_label: str = Field(default="", description="label of a pod that names who pays; none: its namespace does")
    shared_filesystem: Folder | None = Field(default=None, description=SHARED + "; none: there is none")

    @property
    def joins_with(self) -> tuple[str, str] | None:
        """What a rented node joins with: the key of this section that names it, and the reference; None: its own role
        in the cloud.
        """
        return ("join_token", self.join_token) if self.join_token else None

    @property
    def head_node(self) -> str | None:
        """Name of the node that it is made on; None: it is there already."""
        return self.control_plane.head if self.control_plane else None


def in_store(part: Part, copies: Mapping[str, str]) -> Part:
    """A section whose references to secrets are to their copies, where they have one."""
    update: dict[str, Any] = {}
    for key, value in part:
        if isinstance(value, Strict):
            update[key] = in_store(value, copies)
        elif isinstance(value, str) and value in copies:
            update[key] = copies[value]
    return part.model_copy(update=update)


def _kind(value: Any) -> str:
    """Slurm where nothing is said."""
    return value.get("kind", "slurm") if isinstance(value, dict) else getattr(value, "kind", "slurm")


Scheduler = Annotated[
    Annotated[Slurm, Tag("slurm")] | Annotated[Kubernetes, Tag("kubernetes")],
    Discriminator(
        _kind,
        custom_error_type="scheduler_kind",
        custom_error_message="has a kind that isn't known; allowed are slurm and kubernetes",
    ),
]
"""of which a stack has one, or one of each kind"""
