"""What a cluster has in Google Cloud. Its resources are the cluster's children."""

from typing import Any

import pulumi

from components.google.access import CiAccess, ControllerAccess, NodeAccess
from components.google.budget import BudgetAlarm
from components.google.burst_pool import BurstPool
from components.google.gpu_node_group import GpuNodeGroup
from components.google.network import Network
from ironburst.config import estimates
from ironburst.config.google.models import GoogleCloud
from ironburst.config.models import ClusterConfig
from ironburst.nodes.naming import logical

OUTPUTS: dict[str, Any] = {
    "controller_account": None,  # e-mail of the controller's service account
    "hall_tunnels": [],  # without the key, which the hall has
    "preview_account": None,  # of CI
    "preview_provider": None,  # what CI's tokens are exchanged at
    "kubeconfig": None,  # none is made here
}
"""of the stack, by name, with what they are where there is nothing"""
REGISTERED = ("controller_account",)
"""those that are the cluster's own, too"""


def check(cloud: GoogleCloud) -> None:
    """Raises pulumi.RunError where the provider is told another project or region. Google is asked for nothing here:
    the doctor does that.
    """
    told = pulumi.Config("gcp")
    for key, declared in (("project", cloud.project), ("region", cloud.region)):
        if told.get(key) not in (None, declared):
            raise pulumi.RunError(f"gcp:{key} and cloud.{key} ({declared}) differ; write the same {key} in both")


class InCloud:
    """As components.aws.cloud's: `outputs`, `observed`, `estimates`, `hosted` (None: no Kubernetes is made)."""

    outputs: dict[str, pulumi.Output[Any]]
    observed: dict[str, Any]
    estimates: list[str]
    hosted: dict[str, Any] | None = None

    def __init__(self, name: str, *, config: ClusterConfig, cloud: GoogleCloud, cluster: pulumi.Resource) -> None:
        child = pulumi.ResourceOptions(parent=cluster)
        # before all that nodes can keep alive, so that a destroy takes it away after them: the nodes can still be ended
        access = ControllerAccess(name, cloud=cloud, opts=child)
        after = pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[access]))
        network = Network(name, cloud=cloud, hall_cidrs={hall.name: hall.cidr for hall in config.halls}, opts=after)
        nodes = NodeAccess(name, cloud=cloud, secrets=config.node_secrets(cloud.store), opts=child)
        groups = [
            GpuNodeGroup(
                group.name,
                cluster=name,
                cloud=cloud,
                group=group,
                network=network,
                account=nodes.own.get(group.name),
                opts=child,
            )
            for group in cloud.groups
        ]
        pools = {
            pool.name: BurstPool(
                logical("burst", pool.name),
                cluster=name,
                cloud=cloud,
                pool=pool,
                network=network,
                service_account=nodes.own.get(pool.name, nodes.account).email,
                spans=pool.spans(config.burst.spot_max_nodes or 1),
                opts=child,
            )
            for pool in cloud.pools
        }
        if pools:
            own = {logical("nodes", pool): nodes.own[pool] for pool in pools if pool in nodes.own}
            shared = {"nodes": nodes.account} if len(own) < len(pools) else {}
            access.may_launch(shared | own)
        if pools and config.budget and cloud.billing_account:
            BudgetAlarm(
                name, budget=config.budget, project=cloud.project, billing_account=cloud.billing_account, opts=child
            )
        self.outputs = {"controller_account": access.account.email, "hall_tunnels": network.hall_tunnels}
        if cloud.ci:
            ci = CiAccess(name, cloud=cloud, ci=cloud.ci, opts=child)
            self.outputs |= {"preview_account": ci.account.email, "preview_provider": ci.provider}
        self.estimates = self._estimate(config, cloud, cluster)
        self.observed = {
            "instances": {node: instance for group in groups for node, instance in group.instances.items()},
            "pool_zones": {declared: pool.zones for declared, pool in pools.items()},
            "notices": {},  # Google tells the instance alone
            "hosted": None,
        }

    @staticmethod
    def _estimate(config: ClusterConfig, cloud: GoogleCloud, cluster: pulumi.Resource) -> list[str]:
        """Says what costs money all the time, and each pool's worst case."""
        found = [*(estimates.pool(cloud, pool) for pool in cloud.pools), *estimates.fixed(config)]
        for estimate in found:
            pulumi.log.info(estimate.told(), cluster)
        return [str(estimate) for estimate in found]
