"""Of build.py: what a declared scheduler is in the document, and what Slurm is given for a node."""

from __future__ import annotations

from pydantic import BaseModel

from ironburst import catalog
from ironburst.config import spot_notice
from ironburst.config.models import ClusterConfig
from ironburst.config.node_settings import SlurmNode as DeclaredSlurmNode
from ironburst.config.scheduler_models import ControlPlane, Kubernetes, Slurm
from ironburst.config.scheduler_models import Scheduler as DeclaredScheduler
from ironburst.document import Host, Scheduler, SlurmNode

API_PORT = 6443  # kubeadm's
TOLD_MEMORY = 0.95  # of an instance's memory: the system and slurmd need some


class HostedCluster(BaseModel, frozen=True):
    """A control plane as the cloud made it."""

    api_server: str
    ca: str


def scheduler(
    config: ClusterConfig, declared: DeclaredScheduler, hosts: list[Host], hosted: HostedCluster | None
) -> Scheduler:
    """As the document has it. `hosted`: what the cloud made, where it is to make one."""
    known = {key: value for key, value in declared.model_dump(exclude={"kill_wait"}).items() if value is not None}
    address = next((host.address for host in hosts if host.name == declared.head_node), "")
    if isinstance(declared, Kubernetes) and declared.hosted:
        assert hosted  # Pulumi made it
        known |= declared.hosted.in_document(config.name) | hosted.model_dump()
    if isinstance(declared, Slurm):
        notice_s = spot_notice.declared_s(config, declared)
        known["kill_wait_s"] = declared.kill_wait or spot_notice.kill_wait_s(config.burst.tick, notice_s)
        known["head_address"] = address if declared.managed else declared.head
        if second := declared.second_head:
            at = next((host.address for host in hosts if host.name == second.head), "")
            known["second_head"] = {"address": at, **second.model_dump(exclude_none=True)}
            known["conf_server"] = f"{address},{at}"
    if isinstance(declared, Kubernetes):
        support = declared.gpu_support
        known["device_taints"] = support.device_taints
        known["gpus_by_mount"] = support.gpus_by_mount
        known["home_resources"] = sorted({*declared.home_resources, *support.rdma})
    if isinstance(declared, Kubernetes) and declared.control_plane:
        known = {**_made(declared.control_plane, address), **known}
        known["control_plane"] = {"head_address": address, **declared.control_plane.model_dump(exclude_none=True)}
    return Scheduler(**{"shared_filesystem": "", **known})


def _made(declared: ControlPlane, address: str) -> dict[str, str]:
    """What follows from the head of a cluster that is made here."""
    return {"api_server": f"https://{address}:{API_PORT}", "cluster_dns": declared.cluster_dns}


def told(kinds: list[catalog.InstanceType], declared: DeclaredSlurmNode | None) -> SlurmNode:
    """What Slurm is given for an instance: what is declared, else what the catalogue knows. The least of several types:
    Slurm takes no node that registers with less than it was given.
    """
    if declared:
        return declared_node(declared)
    # known of every type with a GPU: tests read all rows
    cpus = min(kind.vcpus for kind in kinds if kind.vcpus is not None)
    memory_mib = min(kind.memory_mib for kind in kinds if kind.memory_mib is not None)
    threads = {kind.threads_per_core for kind in kinds}
    whole = len(threads) == 1 and all(kind.vcpus == cpus for kind in kinds)
    return SlurmNode(
        cpus=cpus, memory_mb=int(memory_mib * TOLD_MEMORY), threads_per_core=threads.pop() if whole else None
    )


def declared_node(given: DeclaredSlurmNode) -> SlurmNode:
    """The same where it is declared."""
    return SlurmNode(**given.model_dump(exclude_none=True))
