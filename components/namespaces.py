"""The teams' namespaces, from their shares: who may work there, and what bounds it."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from ironburst.config import shares_models
from ironburst.config.types import duration_text
from ironburst.nodes.naming import TEAM_LABEL, TIME_LIMIT, logical

RBAC = "rbac.authorization.k8s.io"
NAME = "ironburst-team"
"""of each object in a team's namespace"""


def secured(level: str) -> dict[str, str]:
    """Labels of a namespace that hold its pods to a level of the Pod Security Standards."""
    return {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "audit", "warn")}


class Namespaces(pulumi.ComponentResource):
    """One for each share that declares it."""

    def __init__(
        self,
        name: str,
        *,
        declared: Mapping[str, shares_models.TeamNamespace],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`declared`: {namespace: what is declared of it}; `opts` has the cluster's provider."""
        super().__init__("ironburst:components:Namespaces", name, None, opts)
        for namespace, its in declared.items():
            self._namespace(logical(name, namespace), namespace, its)
        self.register_outputs({})

    def _namespace(self, label: str, name: str, declared: shares_models.TeamNamespace) -> None:
        named: Any = {"name": name, "labels": {TEAM_LABEL: name, **secured(declared.pod_security)}}
        if declared.time_limit:
            named["annotations"] = {TIME_LIMIT: duration_text(declared.time_limit)}
        made = kubernetes.core.v1.Namespace(
            label,
            metadata=named,
            # its pods and volumes are the team's: a share that goes takes none of them along
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
        )
        inside = pulumi.ResourceOptions(parent=self, depends_on=[made])
        metadata: Any = {"name": NAME, "namespace": name}
        if declared.groups:
            kubernetes.rbac.v1.RoleBinding(
                label,
                metadata=metadata,
                role_ref={"api_group": RBAC, "kind": "ClusterRole", "name": declared.role},
                subjects=[{"kind": "Group", "name": group, "api_group": RBAC} for group in declared.groups],
                opts=inside,
            )
        if declared.quota:
            kubernetes.core.v1.ResourceQuota(label, metadata=metadata, spec={"hard": declared.quota}, opts=inside)
        if declared.limit_range:
            kubernetes.core.v1.LimitRange(label, metadata=metadata, spec=_limits(declared.limit_range), opts=inside)
        if declared.network == "same-namespace":
            kubernetes.networking.v1.NetworkPolicy(
                label, metadata=metadata, spec=_ingress(declared.open_to), opts=inside
            )


def _limits(declared: shares_models.LimitRange) -> Any:
    of_each = {"default_request": declared.default_request, "default": declared.default, "max": declared.max}
    return {"limits": [{"type": "Container", **{key: amounts for key, amounts in of_each.items() if amounts}}]}


def _ingress(open_to: list[str]) -> Any:
    """From its own pods, and from those of these namespaces; to where they connect isn't bound."""
    named = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": open_to}
    others = [{"namespace_selector": {"match_expressions": [named]}}] if open_to else []
    return {"pod_selector": {}, "policy_types": ["Ingress"], "ingress": [{"from_": [{"pod_selector": {}}, *others]}]}
