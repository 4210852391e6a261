"""The whole cluster: owned nodes, cloud network, fixed nodes and burst
pools, and the ClusterDocument that they make.
"""

from collections.abc import Mapping
from typing import Any

import pulumi

from components import cluster_kinds
from components.aws import account, policies
from components.aws.access import BakingAccess, CiAccess, ControllerAccess, LaunchAccess, NodeAccess, scope
from components.aws.budget import BudgetAlarm
from components.aws.burst_pool import BurstPool
from components.aws.eks import CONTROLLER, ZONES, EksCluster
from components.aws.gpu_node_group import GpuNodeGroup
from components.aws.interruptions import Interruptions
from components.aws.network import Network
from components.bare_metal import BareMetalNodes
from components.kubernetes_cluster import KubernetesCluster, resolved
from ironburst.config.aws import eks_cluster, estimates, subnets
from ironburst.config.aws.models import AwsCloud
from ironburst.config.models import ClusterConfig
from ironburst.document.build import Observed, build
from ironburst.nodes.naming import cluster_object, logical
from ironburst.software.solve import Solution


class Cluster(pulumi.ComponentResource):
    """Outputs: `document` (ClusterDocument v1 as plain data),
    `estimates` (worst cases, as sentences), `controller_role_arn`, `controller_sign_in` (ARNs for its certificate),
    `hall_tunnels` (secret), `baking_policy_arn` (for those who bake images), `preview_role_arn` (of CI),
    `kubeconfig` (of a cluster in EKS; it holds no secret).
    """

    document: pulumi.Output[dict[str, Any]]
    estimates: list[str]
    controller_role_arn: pulumi.Output[str | None]
    controller_sign_in: pulumi.Output[dict[str, str]]
    hall_tunnels: pulumi.Output[list[dict[str, str]]]
    baking_policy_arn: pulumi.Output[str | None]
    preview_role_arn: pulumi.Output[str | None]
    kubeconfig: pulumi.Output[str | None]

    def __init__(
        self,
        name: str,
        config: ClusterConfig,
        software: Solution,
        drivers: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`software`: the set of every group of nodes, solved for this declaration (config.stack); `drivers`: the
        lock's, by node.
        """
        super().__init__("ironburst:components:Cluster", name, None, opts)
        self._name, self._config, self._child = name, config, pulumi.ResourceOptions(parent=self)
        self.estimates, self.controller_role_arn = [], pulumi.Output.from_input(None)
        self.controller_sign_in = pulumi.Output.from_input({})
        self.hall_tunnels = pulumi.Output.from_input([])
        if config.cloud:
            account.check(config.cloud)
        self.baking_policy_arn = self.preview_role_arn = self.kubeconfig = pulumi.Output.from_input(None)
        for hall in config.halls:
            region = config.cloud.region if config.cloud else None
            BareMetalNodes(
                hall.name,
                hall=hall,
                region=region,
                ssh_user=config.ssh.user,
                allow=config.allow,
                drivers=drivers,
                opts=self._child,
            )
        self._interruptions: Interruptions | None = None
        self._eks: EksCluster | None = None
        groups, pools = self._cloud(config.cloud) if config.cloud else ([], {})
        self._kubernetes(config, groups)
        observed = pulumi.Output.all(
            instances={node: instance for group in groups for node, instance in group.instances.items()},
            pool_zones={declared: pool.zones for declared, pool in pools.items()},
            notices=self._queue_urls(),
            hosted={"api_server": self._eks.api_server, "ca": self._eks.ca} if self._eks else None,
        )
        self.document = observed.apply(lambda known: build(config, Observed(**known), software).model_dump(mode="json"))
        self.register_outputs({"document": self.document, "controller_role_arn": self.controller_role_arn})

    @property
    def outputs(self) -> dict[str, pulumi.Output[Any] | list[str]]:
        """The stack's outputs, by name."""
        return {
            "cluster": self.document,
            "estimates": self.estimates,
            "controller_role_arn": self.controller_role_arn,
            "controller_sign_in": self.controller_sign_in,
            "hall_tunnels": self.hall_tunnels,
            "baking_policy_arn": self.baking_policy_arn,
            "preview_role_arn": self.preview_role_arn,
            "kubeconfig": self.kubeconfig,
        }

    def _kubernetes(self, config: ClusterConfig, groups: list[GpuNodeGroup]) -> None:
        """What belongs into the cluster, where Pulumi is let in."""
        teams = [share.name for share in config.shares]
        if config.kubernetes and self._eks:
            pools = config.cloud.pools if config.cloud else []
            ids = [instance.apply(lambda made: made.id) for group in groups for instance in group.joining]
            KubernetesCluster(
                self._name,
                scheduler=config.kubernetes,
                kubeconfig=self._eks.kubeconfig,
                user=CONTROLLER,
                instances=ids,
                teams=teams,
                rents=any(eks_cluster.cluster_of(config, pool) for pool in pools),
                opts=self._child,
            )
            return
        declared = config.kubernetes or config.bridge
        if declared and declared.admin_kubeconfig:
            kubeconfig = resolved(declared, config.cloud.region if config.cloud else None)
            karpenter = config.cloud.karpenter if config.cloud else []
            cluster_kinds.check(declared, kubeconfig, karpenter)
            KubernetesCluster(
                self._name,
                scheduler=declared,
                kubeconfig=kubeconfig,
                karpenter=karpenter,
                teams=teams,
                opts=self._child,
            )

    def _queue_urls(self) -> dict[str, pulumi.Output[str]]:
        """Pool -> where its interruption warnings come; none for one without spot."""
        cloud, interruptions = self._config.cloud, self._interruptions
        if not cloud or not interruptions:
            return {}
        return {pool.name: interruptions.queue_url for pool in cloud.pools if "spot" in pool.markets}

    def _cloud(self, cloud: AwsCloud) -> tuple[list[GpuNodeGroup], dict[str, BurstPool]]:
        name, config = self._name, self._config
        where = scope(cloud.region)
        # before all that nodes can keep alive, so that a destroy takes it away after them: the nodes can still be ended
        access = ControllerAccess(name, where=where, signs_in=cloud.controller, opts=self._child)
        self.controller_role_arn, self.controller_sign_in = access.role_arn, access.sign_in
        network = Network(
            name,
            network=cloud.network,
            region=cloud.region,
            hall_cidrs={hall.name: hall.cidr for hall in config.halls},
            zones_in_use=subnets.zones_in_use(cloud),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[access]),
        )
        self.hall_tunnels = network.hall_tunnels
        nodes = NodeAccess(name, cloud=cloud, config=config, where=where, opts=self._child)
        self._make_eks(network, nodes, access, where)
        groups = [
            GpuNodeGroup(
                group.name,
                cluster=name,
                group=group,
                subnet_id=network.subnet_ids[group.zone],
                security_group_id=network.security_group_id,
                instance_profile=nodes.profile(group),
                key_name=config.ssh.key_name,
                eks=eks_cluster.cluster_of(config, group),
                opts=self._child,
            )
            for group in cloud.groups
        ]
        pools = {
            pool.name: BurstPool(
                logical("burst", pool.name),
                cluster=name,
                cloud=cloud,
                pool=pool,
                subnet_ids=network.subnet_ids,
                security_group_id=network.security_group_id,
                instance_profile=nodes.profile(pool),
                key_name=config.ssh.key_name,
                eks=eks_cluster.cluster_of(config, pool),
                opts=self._child,
            )
            for pool in cloud.pools
        }
        if any("spot" in pool.markets for pool in cloud.pools):
            self._interruptions = Interruptions(name, opts=self._child)
        if pools:
            self._rights(list(pools.values()), access, nodes, network.security_group_id, where)
        if pools and config.budget:
            BudgetAlarm(name, budget=config.budget, pools=list(pools), opts=self._child)
        if cloud.ci:
            buckets = sorted({data.s3.partition("/")[0] for data in cloud.data.values() if data.s3})
            ci = CiAccess(name, ci=cloud.ci, buckets=buckets, where=where, opts=self._child)
            self.preview_role_arn = ci.role_arn
        self._estimate(list(pools.values()))
        return groups, pools

    def _make_eks(
        self,
        network: Network,
        nodes: NodeAccess,
        access: ControllerAccess,
        where: pulumi.Output[policies.Scope],
    ) -> None:
        """The control plane, where one is declared, with the roles that may sign in."""
        declared = self._config.kubernetes
        if not (declared and declared.eks):
            return
        self._eks = EksCluster(
            self._name,
            called=cluster_object(self._name),
            declared=declared.eks,
            version=eks_cluster.version(self._config, declared),
            where=where,
            # EKS keeps to the zones that it began with, so one that is added at the end changes nothing
            subnet_ids=list(network.subnet_ids.values())[:ZONES],
            security_group_id=network.security_group_id,
            opts=self._child,
        )
        self._eks.admit("controller", access.role_arn, user=CONTROLLER)
        self._eks.nodes(nodes.of_eks)
        self.kubeconfig = self._eks.kubeconfig

    def _estimate(self, pools: list[BurstPool]) -> None:
        """Says what costs money all the time; a pool has said its own."""
        fixed = estimates.fixed(self._config)
        for estimate in fixed:
            pulumi.log.info(str(estimate), self)
        self.estimates = [str(worst) for worst in (*fixed, *(pool.worst_case for pool in pools))]

    def _rights(
        self,
        pools: list[BurstPool],
        access: ControllerAccess,
        nodes: NodeAccess,
        security_group_id: pulumi.Output[str],
        where: pulumi.Output[policies.Scope],
    ) -> None:
        """To launch the pools' nodes, and to bake their images."""
        LaunchAccess(
            self._name,
            config=self._config,
            pools=pools,
            interruptions=self._interruptions,
            controller_role=access.role_name,
            security_group_id=security_group_id,
            node_role_arns=nodes.role_arns,
            where=where,
            opts=self._child,
        )
        baking = BakingAccess(self._name, where=where, opts=self._child)
        self.baking_policy_arn = baking.policy_arn
