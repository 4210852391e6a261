"""What a Kubernetes cluster must have before anything is made in it that needs it, asked at every preview and up: an
`up` ends in one sentence, not half way.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pulumi
import yaml

from ironburst.config.bridge_models import Bridge
from ironburst.config.karpenter_models import KarpenterPool
from ironburst.config.scheduler_models import Kubernetes

READINESS = ("readiness.node.x-k8s.io", "v1alpha1")
KUEUE = ("kueue.x-k8s.io", "v1beta2")
DEVICE_TAINTS = ("resource.k8s.io", "v1beta2")
KARPENTER = ("karpenter.sh", "v1")
SERVED = "--runtime-config=resource.k8s.io/v1beta2=true, feature gate DRADeviceTaintRules"
ANSWER_S = 20


def check(declared: Kubernetes | Bridge, kubeconfig: str, karpenter: Sequence[KarpenterPool] = ()) -> None:
    """Raises pulumi.RunError with what isn't installed, or in another version. A cluster that doesn't answer is a
    warning: it may be made in this same `up`.
    """
    needed = list(_needed(declared, karpenter))
    if not needed:
        return
    try:
        served = groups(kubeconfig)
    except Exception as error:  # a credential plugin may raise anything
        said = " ".join(str(error).split())[:300]
        pulumi.log.warn(f"the cluster could not be asked what is installed there, so that isn't checked: {said}")
        return
    missing = []
    for (group, version), path, what in needed:
        if group not in served:
            missing.append(f"{path}: the cluster has no {group}: {what} first, or leave this out")
        elif version not in served[group]:
            there = ", ".join(served[group])
            missing.append(
                f"{path}: the cluster has {group} as {there}, needed is {version}: {what} in a version with it"
            )
    if missing:
        raise pulumi.RunError("\n".join(missing))


def _needed(
    declared: Kubernetes | Bridge, karpenter: Sequence[KarpenterPool]
) -> Iterator[tuple[tuple[str, str], str, str]]:
    if isinstance(declared, Kubernetes) and declared.gate_rule:
        yield READINESS, "scheduler.gate_rule", "install the node-readiness-controller"
    if isinstance(declared, Kubernetes) and declared.gpu_support.device_taints:
        yield DEVICE_TAINTS, "scheduler.gpu_support.device_taints", f"have the API server serve it ({SERVED})"
    if isinstance(declared, Kubernetes) and declared.queue == "kueue":
        yield KUEUE, "scheduler.queue", "install Kueue"
    if karpenter:
        yield KARPENTER, "cloud.karpenter", "install Karpenter"


def groups(kubeconfig: str) -> dict[str, list[str]]:
    """API groups of a cluster, each with its versions. Raises whatever the client and its credentials raise."""
    import kubernetes  # here: it is a quarter of what this program loads, and a stack of Slurm never needs it

    configuration = kubernetes.client.Configuration()
    configuration.retries = False
    content: Any = yaml.safe_load(kubeconfig)
    client = kubernetes.config.new_client_from_config_dict(content, client_configuration=configuration)
    with client:
        found = kubernetes.client.ApisApi(client).get_api_versions(_request_timeout=ANSWER_S)
    return {group.name: [each.version for each in group.versions] for group in found.groups}
