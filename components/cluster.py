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
from ironburst.config.checks import placed
from ironburst.config.checks.common import clouds
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
        providers: list[str] = [cloud.provider for cloud in config.clouds]
        rooms = {provider: _room(provider) for provider in providers or [DEFAULT]}
        for at, cloud in clouds(config):
            try:
                rooms[cloud.provider].check(cloud)
            except pulumi.RunError as error:
                raise pulumi.RunError(placed(str(error), at)) from None
        for hall in config.halls:
            BareMetalNodes(
                hall.name,
                hall=hall,
                regions=config.regions,
                ssh_user=config.ssh.user,
                allow=config.allow,
                drivers=drivers,
                opts=self._child,
            )
        there = {
            cloud.provider: rooms[cloud.provider].InCloud(
                name, config=config.in_cloud(cloud), cloud=cloud, cluster=self
            )
            for cloud in config.clouds
        }
        self._kubernetes(config, next((each.hosted for each in there.values() if each.hosted), None))
        observed = pulumi.Output.all(**_together([each.observed for each in there.values()]))
        self.document = observed.apply(lambda known: build(config, Observed(**known), software).model_dump(mode="json"))
        self._of_cloud: dict[str, pulumi.Output[Any]] = {
            key: pulumi.Output.from_input(value) for room in rooms.values() for key, value in room.OUTPUTS.items()
        }
        for key in self._of_cloud:
            made = [each.outputs[key] for each in there.values() if key in each.outputs]
            if made:
                self._of_cloud[key] = made[0] if len(made) == 1 else pulumi.Output.all(*made).apply(_joined)
        whose = {provider: f"{provider}: " if len(there) > 1 else "" for provider in there}
        self._estimates: Sequence[str] = [
            f"{whose[provider]}{told}" for provider, its in there.items() for told in its.estimates
        ]
        registered = {key: self._of_cloud[key] for room in rooms.values() for key in room.REGISTERED}
        self.register_outputs({"document": self.document, **registered})

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
            kubeconfig = resolved(declared, config.regions)
            karpenter = config.karpenter
            cluster_kinds.check(declared, kubeconfig, karpenter)
            KubernetesCluster(
                self._name,
                scheduler=declared,
                kubeconfig=kubeconfig,
                karpenter=karpenter,
                opts=self._child,
                **shared,
            )


def _together(observed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the clouds made, as the fields of one Observed; at least one field: of nothing Output.all makes a list."""
    found: dict[str, Any] = {"instances": {}}
    for each in observed:
        for key, value in each.items():
            found[key] = found.get(key) if value is None else (found.get(key) or {}) | value
    return found


def _joined(values: list[Any]) -> Any:
    """An output that several clouds have: a list of all, or of the first one that has something."""
    if all(isinstance(value, list) for value in values):
        return [item for value in values for item in value]
    return next((value for value in values if value is not None), None)


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
