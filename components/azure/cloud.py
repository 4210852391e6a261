"""What a cluster has in Azure. Its resources are the cluster's children."""

from typing import Any

import pulumi
import pulumi_azure_native as azure

from components.azure.access import CiAccess, ControllerAccess, NodeAccess
from components.azure.budget import BudgetAlarm
from components.azure.burst_pool import BurstPool
from components.azure.gpu_node_group import GpuNodeGroup
from components.azure.network import Network
from components.azure.reaper import Reaper
from ironburst.config import estimates
from ironburst.config.azure.models import AzureCloud
from ironburst.config.models import ClusterConfig
from ironburst.document.model import Ssh
from ironburst.nodes import azure as names
from ironburst.nodes.naming import logical, tags

OUTPUTS: dict[str, Any] = {
    "controller_client": None,  # id of the identity that the controller signs in as, if one is made
    "hall_tunnels": [],  # without the key, which the hall has
    "preview_client": None,  # of CI
    "kubeconfig": None,  # none is made here
}
"""of the stack, by name, with what they are where there is nothing"""
REGISTERED = ("controller_client",)
"""those that are the cluster's own, too"""


def check(cloud: AzureCloud) -> None:
    """Raises pulumi.RunError where the provider is told another subscription or tenant. Azure is asked for nothing
    here: the doctor does that.
    """
    told = pulumi.Config("azure-native")
    for key, word, declared in (
        ("subscriptionId", "subscription", cloud.subscription),
        ("tenantId", "tenant", cloud.tenant),
    ):
        if told.get(key) not in (None, declared):
            raise pulumi.RunError(
                f"azure-native:{key} and cloud.{word} ({declared}) differ; write the same {word} in both"
            )


class InCloud:
    """As components.aws.cloud's: `outputs`, `observed`, `estimates`, `hosted` (None: no Kubernetes is made)."""

    outputs: dict[str, pulumi.Output[Any]]
    observed: dict[str, Any]
    estimates: list[str]
    hosted: dict[str, Any] | None = None

    def __init__(self, name: str, *, config: ClusterConfig, cloud: AzureCloud, cluster: pulumi.Resource) -> None:
        child = pulumi.ResourceOptions(parent=cluster)
        labels = cloud.tags | tags(name, "stack")
        made = azure.resources.ResourceGroup(
            logical(name, "group"),
            resource_group_name=names.resource_group(name),
            location=cloud.region,
            tags=labels,
            opts=child,
        )
        group = made.name
        shared: dict[str, Any] = {"cloud": cloud, "group": group, "tags": labels}
        # before all that nodes can keep alive, so that a destroy takes it away after them: the nodes can still be ended
        access = ControllerAccess(name, **shared, opts=child)
        before: list[pulumi.Resource] = [access]
        if cloud.pools:
            before.append(Reaper(name, **shared, opts=child))
        after = pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=before))
        network = Network(name, **shared, hall_cidrs={hall.name: hall.cidr for hall in config.halls}, opts=after)
        ssh = Ssh(user=config.ssh.user, cloud_user=config.ssh.cloud_user)
        groups = [
            GpuNodeGroup(
                each.name,
                cluster=name,
                cloud=cloud,
                group=each,
                network=network,
                resource_group=group,
                admin_user=ssh.user_at("cloud", each.os or config.software.os),
                opts=child,
            )
            for each in cloud.groups
        ]
        pools = self._pools(name, config, cloud, network, shared, ssh, child)
        if pools and config.budget:
            BudgetAlarm(name, budget=config.budget, subscription=cloud.subscription, opts=child)
        self.outputs = {"hall_tunnels": network.hall_tunnels}
        if access.client is not None:
            self.outputs["controller_client"] = access.client
        if cloud.ci:
            self.outputs["preview_client"] = CiAccess(name, **shared, ci=cloud.ci, opts=child).client
        self.estimates = self._estimate(config, cloud, cluster)
        self.observed = {
            "instances": {node: instance for each in groups for node, instance in each.instances.items()},
            "pool_zones": {declared: pool.zones for declared, pool in pools.items()},
            "notices": {},  # Azure tells the machine alone
            "hosted": None,
        }

    @staticmethod
    def _pools(
        name: str,
        config: ClusterConfig,
        cloud: AzureCloud,
        network: Network,
        shared: dict[str, Any],
        ssh: Ssh,
        child: pulumi.ResourceOptions,
    ) -> dict[str, BurstPool]:
        if not cloud.pools:
            return {}
        nodes = NodeAccess(name, **shared, secrets=config.node_secrets(cloud.store), opts=child)
        gallery = azure.compute.Gallery(
            logical(name, "images"),
            gallery_name=names.gallery(name),
            resource_group_name=shared["group"],
            location=cloud.region,
            tags=shared["tags"],
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(retain_on_delete=True)),
        )
        return {
            pool.name: BurstPool(
                logical("burst", pool.name),
                cluster=name,
                cloud=cloud,
                pool=pool,
                network=network,
                identity=nodes.identity,
                gallery=gallery,
                admin_user=ssh.user_at("cloud", pool.os or config.software.os),
                spans=pool.spans(config.burst.spot_max_nodes or 1),
                opts=child,
            )
            for pool in cloud.pools
        }

    @staticmethod
    def _estimate(config: ClusterConfig, cloud: AzureCloud, cluster: pulumi.Resource) -> list[str]:
        """Says what costs money all the time, and each pool's worst case."""
        found = [*(estimates.pool(cloud, pool) for pool in cloud.pools), *estimates.fixed(config)]
        for estimate in found:
            pulumi.log.info(estimate.told(), cluster)
        return [str(estimate) for estimate in found]
