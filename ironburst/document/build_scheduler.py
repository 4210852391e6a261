"""Of build.py: what a declared scheduler is in the document."""

from __future__ import annotations

from pydantic import BaseModel

from ironburst import naming
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import ControlPlane, Kubernetes, Slurm
from ironburst.config.scheduler_models import Scheduler as DeclaredScheduler
from ironburst.document import Host, Scheduler

API_PORT = 6443  # kubeadm's


class EksCluster(BaseModel, frozen=True):
    """A control plane as AWS made it."""

    api_server: str
    ca: str


def scheduler(
    config: ClusterConfig, declared: DeclaredScheduler, hosts: list[Host], eks: EksCluster | None
) -> Scheduler:
    """As the document has it. `eks`: what AWS made, where it is to make one."""
    known = {key: value for key, value in declared.model_dump(exclude={"eks"}).items() if value is not None}
    address = next((host.address for host in hosts if host.name == declared.head_node), "")
    if isinstance(declared, Kubernetes) and declared.eks:
        assert eks  # Pulumi made it
        own = {"eks": naming.cluster_object(config.name), "cluster_dns": declared.eks.cluster_dns}
        known |= own | eks.model_dump()
    if isinstance(declared, Slurm):
        known["head_address"] = address
    elif declared.control_plane:
        known = {**_made(declared.control_plane, address), **known}
        known["control_plane"] = {"head_address": address, **declared.control_plane.model_dump(exclude_none=True)}
    return Scheduler(**{"shared_filesystem": "", **known})


def _made(declared: ControlPlane, address: str) -> dict[str, str]:
    """What follows from the head of a cluster that is made here."""
    return {"api_server": f"https://{address}:{API_PORT}", "cluster_dns": declared.cluster_dns}
