"""What a cluster has in AWS. Its resources are the cluster's children."""

from collections.abc import Sequence
from typing import Any

import pulumi

from components.aws.access import BakingAccess, CiAccess, ControllerAccess, LaunchAccess, NodeAccess, scope
from components.aws.account import check
from components.aws.budget import BudgetAlarm
from components.aws.burst_pool import BurstPool
from components.aws.eks import CONTROLLER, VIEW, ZONES, EksCluster
from components.aws.gpu_node_group import GpuNodeGroup
from components.aws.interruptions import Interruptions
from components.aws.network import Network
from components.aws.organization import as_asked
from ironburst.config import estimates
from ironburst.config.aws import eks_cluster, roles, subnets
from ironburst.config.aws.models import AwsCloud
from ironburst.config.models import ClusterConfig
from ironburst.nodes.naming import cluster_object, logical

__all__ = ["OUTPUTS", "REGISTERED", "InCloud", "check"]

OUTPUTS: dict[str, Any] = {
    "controller_role_arn": None,
    "controller_sign_in": {},  # ARNs for its certificate
    "hall_tunnels": [],  # secret
    "baking_policy_arn": None,  # for those who bake images
    "preview_role_arn": None,  # of CI
    "kubeconfig": None,  # of a cluster in EKS; it holds no secret
}
"""of the stack, by name, with what they are where there is no cloud"""
REGISTERED = ("controller_role_arn",)
"""those that are the cluster's own, too"""


class InCloud:
    """`outputs`: of OUTPUTS, what there is; `observed`: the fields of document.build.Observed; `estimates`: worst
    cases, as sentences; `hosted`: what KubernetesCluster gets of a cluster that was made here, None: none was.
    """

    outputs: dict[str, pulumi.Output[Any]]
    observed: dict[str, Any]
    estimates: list[str]
    hosted: dict[str, Any] | None

    def __init__(self, name: str, *, config: ClusterConfig, cloud: AwsCloud, cluster: pulumi.Resource) -> None:
        self._name, self._config, self._cluster = name, config, cluster
        self._where = scope(cloud.region)
        self._child = pulumi.ResourceOptions(parent=cluster, transformations=[as_asked(cloud)])
        self.hosted = None
        # before all that nodes can keep alive, so that a destroy takes it away after them: the nodes can still be ended
        access = ControllerAccess(name, where=self._where, signs_in=cloud.controller, opts=self._child)
        self.outputs = {"controller_role_arn": access.role_arn, "controller_sign_in": access.sign_in}
        network = Network(
            name,
            network=cloud.network,
            region=cloud.region,
            hall_cidrs={hall.name: hall.cidr for hall in config.halls},
            zones_in_use=subnets.zones_in_use(cloud),
            opts=self._after([access]),
        )
        self.outputs["hall_tunnels"] = network.hall_tunnels
        nodes = NodeAccess(name, cloud=cloud, config=config, where=self._where, opts=self._child)
        eks = self._eks(network, nodes, access)
        groups, pools = self._groups(cloud, network, nodes), self._pools(cloud, network, nodes)
        spot = [pool.name for pool in cloud.pools if "spot" in pool.markets]
        interruptions = Interruptions(name, opts=self._child) if spot else None
        if pools:
            self._rights(cloud, list(pools.values()), access, nodes, interruptions)
        if pools and config.budget:
            BudgetAlarm(name, budget=config.budget, pools=list(pools), opts=self._child)
        if cloud.ci:
            ci = CiAccess(name, ci=cloud.ci, buckets=roles.buckets(cloud), where=self._where, opts=self._child)
            self.outputs["preview_role_arn"] = ci.role_arn
            if eks:
                eks.admit("preview", ci.role_arn, policy=VIEW)
        self.estimates = self._estimate(list(pools.values()))
        if eks:
            self.outputs["kubeconfig"] = eks.kubeconfig
            self.hosted = {
                "kubeconfig": eks.kubeconfig,
                "user": CONTROLLER,
                "instances": [instance.apply(lambda made: made.id) for group in groups for instance in group.joining],
                "rents": any(eks_cluster.cluster_of(config, pool) for pool in cloud.pools),
            }
        self.observed = {
            "instances": {node: instance for group in groups for node, instance in group.instances.items()},
            "pool_zones": {declared: pool.zones for declared, pool in pools.items()},
            # where interruption warnings come
            "notices": dict.fromkeys(spot, interruptions.queue_url) if interruptions else {},
            "hosted": {"api_server": eks.api_server, "ca": eks.ca} if eks else None,
        }

    def _after(self, resources: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(self._child, pulumi.ResourceOptions(depends_on=resources))

    def _groups(self, cloud: AwsCloud, network: Network, nodes: NodeAccess) -> list[GpuNodeGroup]:
        return [
            GpuNodeGroup(
                group.name,
                cluster=self._name,
                group=group,
                subnet_id=network.subnet_ids[group.zone],
                security_group_id=network.security_group_id,
                instance_profile=nodes.profile(group),
                key_name=self._config.ssh.key_name,
                eks=eks_cluster.cluster_of(self._config, group),
                asked=cloud.tags,
                opts=self._child,
            )
            for group in cloud.groups
        ]

    def _pools(self, cloud: AwsCloud, network: Network, nodes: NodeAccess) -> dict[str, BurstPool]:
        return {
            pool.name: BurstPool(
                logical("burst", pool.name),
                cluster=self._name,
                cloud=cloud,
                pool=pool,
                subnet_ids=network.subnet_ids,
                security_group_id=network.security_group_id,
                instance_profile=nodes.profile(pool),
                key_name=self._config.ssh.key_name,
                eks=eks_cluster.cluster_of(self._config, pool),
                spans=pool.spans(self._config.burst.spot_max_nodes or 1),
                opts=self._child,
            )
            for pool in cloud.pools
        }

    def _eks(self, network: Network, nodes: NodeAccess, access: ControllerAccess) -> EksCluster | None:
        """The control plane, where one is declared, with the roles that may sign in."""
        declared = self._config.kubernetes
        if not (declared and declared.eks):
            return None
        made = EksCluster(
            self._name,
            called=cluster_object(self._name),
            declared=declared.eks,
            version=eks_cluster.version(self._config, declared),
            where=self._where,
            # EKS keeps to the zones that it began with, so one that is added at the end changes nothing
            subnet_ids=list(network.subnet_ids.values())[:ZONES],
            security_group_id=network.security_group_id,
            opts=self._child,
        )
        made.admit("controller", access.role_arn, user=CONTROLLER)
        made.nodes(nodes.of_eks)
        return made

    def _estimate(self, pools: Sequence[BurstPool]) -> list[str]:
        """Says what costs money all the time; a pool has said its own."""
        fixed = estimates.fixed(self._config)
        for estimate in fixed:
            pulumi.log.info(estimate.told(), self._cluster)
        return [str(worst) for worst in (*fixed, *(pool.worst_case for pool in pools))]

    def _rights(
        self,
        cloud: AwsCloud,
        pools: list[BurstPool],
        access: ControllerAccess,
        nodes: NodeAccess,
        interruptions: Interruptions | None,
    ) -> None:
        """To launch the pools' nodes, and to bake their images."""
        LaunchAccess(
            self._name,
            config=self._config,
            cloud=cloud,
            interruptions=interruptions,
            controller_role=access.role_name,
            node_role_arns=nodes.role_arns,
            where=self._where,
            opts=self._after(pools),
        )
        baking = BakingAccess(self._name, where=self._where, opts=self._child)
        self.outputs["baking_policy_arn"] = baking.policy_arn
