"""The whole cluster: owned nodes, cloud network, fixed nodes and burst
pools, and the ClusterDocument that they make.
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components import cluster_kinds
from components.bare_metal import BareMetalNodes
from components.kubernetes_cluster import KubernetesCluster, resolved
from ironburst.config.clouds import DEFAULT
from ironburst.config.models import ClusterConfig
from ironburst.document.build import Observed, build
from ironburst.software.solve import Solution


class Cluster(pulumi.ComponentResource):
    """Outputs: `document` (ClusterDocument v1 as plain data), and those of the cloud (OUTPUTS of its room)."""

    document: pulumi.Output[dict[str, Any]]

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
        self._name, self._child = name, pulumi.ResourceOptions(parent=self)
        cloud = config.cloud
        room = _room(cloud.provider if cloud else DEFAULT)
        if cloud:
            room.check(cloud)
        for hall in config.halls:
            BareMetalNodes(
                hall.name,
                hall=hall,
                region=config.cloud.region if config.cloud else None,
                ssh_user=config.ssh.user,
                allow=config.allow,
                drivers=drivers,
                opts=self._child,
            )
        there = room.InCloud(name, config=config, cloud=cloud, cluster=self) if cloud else None
        self._kubernetes(config, there.hosted if there else None)
        observed = pulumi.Output.all(**there.observed if there else {"instances": {}})  # of nothing it would be a list
        self.document = observed.apply(lambda known: build(config, Observed(**known), software).model_dump(mode="json"))
        none: dict[str, pulumi.Output[Any]] = {
            key: pulumi.Output.from_input(value) for key, value in room.OUTPUTS.items()
        }
        self._of_cloud = none | (there.outputs if there else {})
        self._estimates: Sequence[str] = there.estimates if there else []
        self.register_outputs({"document": self.document, **{key: self._of_cloud[key] for key in room.REGISTERED}})

    @property
    def outputs(self) -> dict[str, pulumi.Output[Any] | Sequence[str]]:
        """The stack's outputs, by name. `estimates`: worst cases, as sentences."""
        return {"cluster": self.document, "estimates": self._estimates, **self._of_cloud}

    def _kubernetes(self, config: ClusterConfig, hosted: Mapping[str, Any] | None) -> None:
        """What belongs into the cluster, where Pulumi is let in. `hosted`: of one that the cloud runs."""
        shared: Any = {
            "teams": [share.name for share in config.shares],
            "namespaces": {share.name: share.namespace for share in config.shares if share.namespace},
        }
        if config.kubernetes and hosted:
            KubernetesCluster(self._name, scheduler=config.kubernetes, opts=self._child, **shared, **hosted)
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
                opts=self._child,
                **shared,
            )


def _room(provider: str) -> Any:
    """The module of a cloud's components: InCloud, OUTPUTS, REGISTERED and check. It loads that cloud's SDK."""
    try:
        return importlib.import_module(f"components.{provider}.cloud")
    except ModuleNotFoundError as error:
        if str(error.name).startswith("components"):
            raise
        raise pulumi.RunError(
            f"provider: {provider} needs {error.name}, which isn't installed: requirements/dev.in names its version"
        ) from None
