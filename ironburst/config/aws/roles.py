"""The roles that a stack makes, and what each may: only from the declaration, so that `ironburst validate` counts what
`up` makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironburst.config.aws import eks_cluster, policies
from ironburst.config.aws.data_models import DataSet
from ironburst.config.aws.models import AwsCloud, AwsGroup, AwsPool
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import Scheduler, Slurm
from ironburst.nodes.naming import logical, node_role

WORDS = {"munge_key": "the munge key", "join_token": "the join token"}
"""what rented nodes join with, by the key of the stack file that names it"""
EKS_NODE = ("AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly")
"""what AWS's own pods of a node need of its role: addresses for pods, and the images of those pods"""
EKS_PLANE = ("AmazonEKSClusterPolicy",)
"""of a control plane's role"""


@dataclass(frozen=True)
class NodeRole:
    """A role of nodes. `label`: of its logical name; `joins_with`: references to secrets that it reads."""

    label: str
    description: str
    joins_with: Sequence[str] = ()
    data: Sequence[DataSet] = ()
    eks: bool = False


@dataclass(frozen=True)
class NodeRoles:
    """`passed`: labels of those that the controller passes on; `label_of`: name of a group or pool -> its role's."""

    roles: Sequence[NodeRole]
    passed: Sequence[str]
    label_of: Mapping[str, str]


def of_nodes(config: ClusterConfig, cloud: AwsCloud) -> NodeRoles:
    """Rented nodes read what they join with, fixed ones nothing (Ansible writes their key); those with data in S3 have
    a role of their pool's or group's own, which reads that, too.
    """
    made: dict[str, NodeRole] = {}
    label_of: dict[str, str] = {}

    def add(role: NodeRole) -> str:
        return made.setdefault(role.label, role).label

    # a role that reads a secret is there before the pools are; one of EKS only with them
    rented = {
        each.kind: add(_rented(config, each))
        for each in config.schedulers
        if each.joins_with or any(config.scheduler_of(pool) is each for pool in cloud.pools)
    }
    add(NodeRole("fixed", "fixed GPU nodes: no rights"))
    if any(eks_cluster.cluster_of(config, group) for group in cloud.groups):
        add(NodeRole("fixed-eks", "fixed GPU nodes of EKS: join", eks=True))
    for pool in cloud.pools:
        scheduler, data, eks = config.scheduler_of(pool), _data(cloud, pool), _on_eks(config, pool)
        label_of[pool.name] = rented.get(scheduler.kind, "")
        if data:
            read, references = _joins_with(scheduler)
            what = f"rented GPU nodes of {pool.name}: reads {read} and their data"
            label_of[pool.name] = add(NodeRole(node_role("", pool.name), what, references, data, eks))
    passed = list(dict.fromkeys(label_of.values()))
    for group in cloud.groups:
        data, eks = _data(cloud, group), _on_eks(config, group)
        label_of[group.name] = "fixed-eks" if eks else "fixed"
        if data:
            what = f"fixed GPU nodes of {group.name}: reads their data"
            label_of[group.name] = add(NodeRole(logical("fixed", group.name), what, (), data, eks))
    return NodeRoles(list(made.values()), passed, label_of)


def _on_eks(config: ClusterConfig, nodes: AwsGroup | AwsPool) -> bool:
    return bool(eks_cluster.cluster_of(config, nodes))


def _joins_with(scheduler: Scheduler) -> tuple[str, list[str]]:
    """What rented nodes join with, for people, and the references to it that they can read."""
    if not scheduler.joins_with:
        return "nothing", []
    keys = dict([scheduler.joins_with])
    if isinstance(scheduler, Slurm) and scheduler.bridge:
        keys["join_token"] = scheduler.bridge.join_token
    read = " and ".join(WORDS[key] for key in keys)
    return read, [reference for reference in keys.values() if reference.partition(":")[0] == AwsCloud.store]


def _rented(config: ClusterConfig, scheduler: Scheduler) -> NodeRole:
    """The role of what joins this scheduler: it reads nothing of the other."""
    read, references = _joins_with(scheduler)
    label = node_role("" if scheduler is config.scheduler else scheduler.kind, "")
    return NodeRole(label, f"rented GPU nodes: reads {read}", references, eks=not scheduler.joins_with)


def _data(cloud: AwsCloud, nodes: AwsGroup | AwsPool) -> list[DataSet]:
    """What they read in S3. FSx asks for no right, only for a way through its security group."""
    declared = [cloud.data[name] for name in nodes.data if name in cloud.data]
    return [each for each in declared if each.s3]


def launching(
    config: ClusterConfig, cloud: AwsCloud, where: policies.Scope, queues: Sequence[str], node_role_arns: Sequence[str]
) -> policies.Document:
    """The controller's right to launch, as narrow as the pools that are declared."""
    reservations = [f"capacity-reservation/{reserved}" for pool in cloud.pools if (reserved := _reserved(pool))]
    groups = [pool.capacity_reservation_group for pool in cloud.pools if pool.capacity_reservation_group]
    cluster = config.kubernetes or config.bridge
    allowed = policies.Pools(
        names=[pool.name for pool in cloud.pools],
        instance_types=sorted({name for pool in cloud.pools for name in pool.types}),
        bought_arns=list(dict.fromkeys([*(where.arn("ec2", each) for each in reservations), *groups])),
        spot=any("spot" in pool.markets for pool in cloud.pools),
        queue_arns=queues,
        image_owners=[where.account, *(owner for owner in cloud.images.owners if owner != where.account)],
        join_token=cluster.join_token if cluster else None,
    )
    return policies.launching(where, config.name, allowed, node_role_arns)


def _reserved(pool: AwsPool) -> str | None:
    """The reservation of its launches by id. EC2 chooses one of a group's, so a group needs the right to any."""
    if pool.capacity_reservation_group:
        return "*"
    return pool.capacity_block.id if pool.capacity_block else pool.capacity_reservation


def buckets(cloud: AwsCloud) -> list[str]:
    """Those with declared data."""
    return sorted({data.s3.partition("/")[0] for data in cloud.data.values() if data.s3})
