"""What belongs into a Kubernetes cluster: the controller's namespace, account and rights, what bounds them, and the
group by which rented nodes may ask for a certificate.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components import admission
from components.cluster_kinds import KUEUE, READINESS
from components.gpu_support import GpuSupport
from components.karpenter import KarpenterPools
from components.namespaces import Namespaces, secured
from ironburst import kubernetes_rights
from ironburst.config.bridge_models import Bridge
from ironburst.config.karpenter_models import KarpenterPool
from ironburst.config.scheduler_models import GateRule, Kubernetes
from ironburst.config.shares_models import TeamNamespace
from ironburst.kubernetes_rights import BOOTSTRAPPERS, RbacRule
from ironburst.nodes.naming import GATE_CONDITION, GATE_TAINT, check_controller, cluster_object, logical, node_pool
from ironburst.system import secrets

ACCOUNT = "ironburst-controller"
RBAC = "rbac.authorization.k8s.io"
POLICIES = {"pods": admission.pods, "tokens": admission.tokens, "approvals": admission.approvals}


class KubernetesCluster(pulumi.ComponentResource):
    """Outputs: `controller` (the user that the controller must sign in as)."""

    controller: str

    def __init__(
        self,
        name: str,
        *,
        scheduler: Kubernetes | Bridge,
        kubeconfig: pulumi.Input[str],
        user: str | None = None,
        instances: Sequence[pulumi.Output[str]] | None = None,
        karpenter: Sequence[KarpenterPool] = (),
        teams: Sequence[str] = (),
        namespaces: Mapping[str, TeamNamespace] = MappingProxyType({}),
        rents: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`name`: of the stack; `kubeconfig`: its contents, of a cluster-admin. On EKS: `user`, that the controller's
        role signs in as, `instances`, the ids of all fixed nodes, and whether rented ones join, too. `teams`: accounts
        with shares; `namespaces`: those of them that are declared, by name.
        """
        super().__init__("ironburst:components:KubernetesCluster", name, None, opts)
        self._name, self._namespace, self._object = name, scheduler.namespace, cluster_object(name)
        provider = kubernetes.Provider(
            logical(name, "kubernetes"),
            kubeconfig=pulumi.Output.secret(kubeconfig),  # encrypted in the state
            enable_patch_force=True,  # these objects are ours: `up` takes back what somebody changed by hand
            opts=pulumi.ResourceOptions(parent=self),
        )
        self._child = pulumi.ResourceOptions(parent=self, provider=provider)
        self._user, self._instances = user or scheduler.controller_user, instances
        self._rents, self._tokens = rents, instances is None  # EKS knows no bootstrap tokens
        self.controller = self._user or f"system:serviceaccount:{scheduler.namespace}:{ACCOUNT}"
        self._queue = scheduler.queue if isinstance(scheduler, Kubernetes) else "slurm-bridge"
        self._kueue = self._queue == "kueue"
        self._node_pools = tuple(node_pool(name, pool.name) for pool in karpenter)
        self._teams = tuple(teams) if self._kueue else ()
        self._taints_devices = isinstance(scheduler, Kubernetes) and scheduler.gpu_support.device_taints
        bounds = self._bounds()
        self._rights(self._place(), bounds)
        if self._taints_devices:
            self._nodes_taint(bounds)
        if self._kueue:
            self._check()
        if self._tokens:
            self._joining()
        if isinstance(scheduler, Kubernetes) and scheduler.gate_rule:
            self._gate(scheduler.gate_rule)
        if isinstance(scheduler, Kubernetes) and scheduler.gpu_support.anything:
            GpuSupport(
                logical(name, "gpu-support"),
                declared=scheduler.gpu_support,
                opts=pulumi.ResourceOptions(parent=self, providers=[provider]),
            )
        if karpenter:
            opts = pulumi.ResourceOptions(parent=self, providers=[provider])
            KarpenterPools(logical(name, "karpenter"), cluster=name, pools=karpenter, opts=opts)
        if namespaces:
            opts = pulumi.ResourceOptions(parent=self, providers=[provider])
            Namespaces(logical(name, "teams"), declared=namespaces, opts=opts)
        self.register_outputs({"controller": self.controller})

    def _place(self) -> pulumi.Resource:
        """The controller's own namespace, with its account where nobody else says who it is."""
        namespace = kubernetes.core.v1.Namespace(
            logical(self._name, "namespace"),
            metadata={"name": self._namespace, "labels": secured("restricted")},  # no pod of ours runs there
            opts=self._child,
        )
        if not self._user:
            kubernetes.core.v1.ServiceAccount(
                logical(self._name, "controller"),
                metadata={"name": ACCOUNT, "namespace": self._namespace},
                automount_service_account_token=False,
                opts=self._after(namespace),
            )
        return namespace

    def _after(self, *first: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(self._child, pulumi.ResourceOptions(depends_on=list(first)))

    def _bounds(self) -> list[pulumi.Resource]:
        """The policies in force. The rights come after them, and go before."""
        bindings: list[pulumi.Resource] = []
        specs = {kind: policy(self.controller) for kind, policy in POLICIES.items() if self._tokens or kind == "pods"}
        if self._kueue:
            specs["workloads"] = admission.workloads(self.controller, self._object)
        if self._teams:
            specs["queues"] = admission.queues(self.controller)
        if self._instances is not None:
            rents = self._rents
            specs["nodes"] = pulumi.Output.all(*self._instances).apply(lambda ids: admission.nodes(ids, rents))
        if self._taints_devices:
            specs["device-taints"] = admission.device_taints()
        if self._node_pools:
            specs["node-pools"] = admission.node_pools(self.controller)
        for kind, spec in specs.items():
            label, named = logical(self._name, kind), logical(self._object, kind)
            made = kubernetes.admissionregistration.v1.ValidatingAdmissionPolicy(
                label, metadata={"name": named}, spec=spec, opts=self._child
            )
            bound: Any = {"policy_name": named, "validation_actions": ["Deny"]}
            binding = kubernetes.admissionregistration.v1.ValidatingAdmissionPolicyBinding(
                label, metadata={"name": named}, spec=bound, opts=self._after(made)
            )
            bindings.append(binding)
        return bindings

    def _subject(self) -> Any:
        if self._user:
            return {"kind": "User", "name": self._user, "api_group": RBAC}
        return {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self._namespace}

    def _rights(self, namespace: pulumi.Resource, bounds: Sequence[pulumi.Resource]) -> None:
        """The controller's: in the whole cluster, in its own namespace, and for tokens in kube-system."""
        subject = self._subject()
        role = kubernetes.rbac.v1.ClusterRole(
            logical(self._name, "controller"),
            metadata={"name": self._object},
            rules=_rules(
                kubernetes_rights.cluster(
                    self._queue, self._object, self._node_pools, teams=self._teams, certificates=self._tokens
                )
            ),
            opts=self._child,
        )
        kubernetes.rbac.v1.ClusterRoleBinding(
            logical(self._name, "controller"),
            metadata={"name": self._object},
            role_ref={"api_group": RBAC, "kind": "ClusterRole", "name": self._object},
            subjects=[subject],
            opts=self._after(role, *bounds),
        )
        inside = {self._namespace: ("controller", kubernetes_rights.namespaced(self._object))}
        inside |= {"kube-system": ("tokens", kubernetes_rights.TOKENS)} if self._tokens else {}
        for where, (kind, rules) in inside.items():
            metadata: Any = {"name": self._object, "namespace": where}
            local = kubernetes.rbac.v1.Role(
                logical(self._name, kind), metadata=metadata, rules=_rules(rules), opts=self._after(namespace)
            )
            kubernetes.rbac.v1.RoleBinding(
                logical(self._name, kind),
                metadata=metadata,
                role_ref={"api_group": RBAC, "kind": "Role", "name": self._object},
                subjects=[subject],
                opts=self._after(local, *bounds),
            )

    def _nodes_taint(self, bounds: Sequence[pulumi.Resource]) -> None:
        """Each node keeps its bad GPUs from claims: it is the one that knows, and may do so for its own alone."""
        named = logical(self._object, "device-taints")
        role = kubernetes.rbac.v1.ClusterRole(
            logical(self._name, "device-taints"),
            metadata={"name": named},
            rules=_rules(kubernetes_rights.DEVICE_TAINTS),
            opts=self._child,
        )
        kubernetes.rbac.v1.ClusterRoleBinding(
            logical(self._name, "device-taints"),
            metadata={"name": named},
            role_ref={"api_group": RBAC, "kind": "ClusterRole", "name": named},
            subjects=[{"kind": "Group", "name": "system:nodes", "api_group": RBAC}],
            opts=self._after(role, *bounds),
        )

    def _check(self) -> None:
        """What Kueue asks before it lets a workload on a flavor of the cloud. Which flavors those are, a ClusterQueue
        says; it is out of service as long as this isn't there.
        """
        kubernetes.apiextensions.CustomResource(
            logical(self._name, "check"),
            api_version="/".join(KUEUE),
            kind="AdmissionCheck",
            metadata={"name": self._object},
            spec={"controllerName": check_controller(self._name)},
            opts=self._child,
        )

    def _gate(self, rule: GateRule) -> None:
        """Owned nodes whose gate doesn't pass, or hasn't said so yet, take no new pod. The kind lets nobody change a
        rule's selector: with another one it is another rule.
        """
        kubernetes.apiextensions.CustomResource(
            logical(self._name, "gate"),
            api_version="/".join(READINESS),
            kind="NodeReadinessRule",
            metadata={"name": logical(self._object, "gate")},
            spec={
                "conditions": [{"type": GATE_CONDITION, "requiredStatus": "True"}],
                "enforcementMode": "continuous",
                "nodeSelector": {"matchLabels": rule.node_labels},
                "taint": {"key": GATE_TAINT, "value": "not-passed", "effect": "NoSchedule"},
                "dryRun": rule.dry_run,
            },
            opts=pulumi.ResourceOptions.merge(
                self._child,
                pulumi.ResourceOptions(replace_on_changes=["spec.nodeSelector"], delete_before_replace=True),
            ),
        )

    def _joining(self) -> None:
        """Who shows a token of ours may make a certificate request. Nothing approves it but the controller."""
        kubernetes.rbac.v1.ClusterRoleBinding(
            logical(self._name, "bootstrap"),
            metadata={"name": logical(self._object, "bootstrap")},
            role_ref={"api_group": RBAC, "kind": "ClusterRole", "name": "system:node-bootstrapper"},
            subjects=[{"kind": "Group", "name": BOOTSTRAPPERS, "api_group": RBAC}],
            opts=self._child,
        )


def resolved(scheduler: Kubernetes | Bridge, regions: Mapping[str, str]) -> str:
    """The contents of the kubeconfig that Pulumi signs in with. Raises pulumi.RunError."""
    assert scheduler.admin_kubeconfig
    try:
        return secrets.resolve_in(scheduler.admin_kubeconfig, regions)
    except secrets.SecretError as error:
        raise pulumi.RunError(f"scheduler.admin_kubeconfig: {error}") from None


def _rules(rules: Sequence[RbacRule]) -> Any:
    keys = {"apiGroups": "api_groups", "resourceNames": "resource_names"}
    return [{keys.get(k, k): v for k, v in rule.items()} for rule in kubernetes_rights.rendered(tuple(rules))]
