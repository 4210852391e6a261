"""Karpenter's NodePools that launch within our budget (docs/adr/0045). What image and network their nodes have, and how
they join, is their node class's matter, which the platform team has already.
"""

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.aws.karpenter import NODE_CLASS
from ironburst.config.karpenter_models import KarpenterPool
from ironburst.nodes.naming import CLUSTER_LABEL, SITE_LABEL, logical, node_pool

API = "karpenter.sh/v1"
CLOSED = {"nvidia.com/gpu": "0", "cpu": "0", "nodes": "0"}
"""limits of a new NodePool: it launches nothing before the controller says so"""


class KarpenterPools(pulumi.ComponentResource):
    """One NodePool for each declared pool. Its limits are the controller's from its creation on."""

    def __init__(
        self,
        name: str,
        *,
        cluster: str,
        pools: Sequence[KarpenterPool],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`cluster`: of the stack; `opts` has the cluster's provider."""
        super().__init__("ironburst:components:KarpenterPools", name, None, opts)
        child = pulumi.ResourceOptions(parent=self, ignore_changes=["spec.limits"])
        for pool in pools:
            kubernetes.apiextensions.CustomResource(
                logical(name, pool.name),
                api_version=API,
                kind="NodePool",
                metadata={"name": node_pool(cluster, pool.name), "labels": {CLUSTER_LABEL: cluster}},
                spec=spec(cluster, pool),
                opts=child,
            )
        self.register_outputs({})


def spec(cluster: str, pool: KarpenterPool) -> dict[str, Any]:
    """Of a NodePool. Pure."""
    template: dict[str, Any] = {
        "nodeClassRef": {**NODE_CLASS, "name": pool.node_class},
        "expireAfter": f"{pool.max_run}s",
        "terminationGracePeriod": f"{pool.max_run}s",  # of pods that nothing may disrupt
        "requirements": [
            _is_in("node.kubernetes.io/instance-type", [pool.instance_type]),
            _is_in("karpenter.sh/capacity-type", [pool.market]),
            *([_is_in("topology.kubernetes.io/zone", pool.zones)] if pool.zones else []),
        ],
    }
    if pool.taint_gpus:
        template["taints"] = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    labels = {**pool.labels, CLUSTER_LABEL: cluster, SITE_LABEL: pool.name}
    return {
        "limits": CLOSED,
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": f"{pool.idle}s",
            # what is replaced before it ends would be there twice, beyond the limit; no node is older than max_run
            "budgets": [
                {"nodes": "100%", "reasons": ["Empty"]},
                {"nodes": "0", "reasons": ["Drifted", "Underutilized"]},
            ],
        },
        "template": {"metadata": {"labels": labels}, "spec": template},
    }


def _is_in(key: str, values: Sequence[str]) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}
