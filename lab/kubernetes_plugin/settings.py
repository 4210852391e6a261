"""The provider's configuration: what the stand-in takes, refuses, and makes of it."""

from __future__ import annotations

from collections.abc import Iterator

import pulumi_kubernetes
from pulumi import _types

from lab.kubernetes_plugin.api import OUTSIDE, active, parsed
from lab.provider.fence import in_lab
from lab.provider.schema import Problem
from lab.provider.wire import UNKNOWN, Props

TAKEN = (
    *("kubeconfig", "context", "cluster", "namespace", "clusterIdentifier"),
    *("enablePatchForce", "upsertExistingObjects", "enableConfigMapMutable", "enableSecretMutable"),
    *("deleteUnreachable", "suppressDeprecationWarnings", "suppressHelmHookWarnings"),
)
ON_ALREADY = "enableServerSideApply"  # "true" is the default; client-side apply isn't implemented
NO_KUBECONFIG = (
    "is not set: this is the lab's stand-in for the kubernetes plugin, which never uses the caller's own kubeconfig; "
    "give the provider the lab's (python -m lab.kubernetes up prints where it is)"
)


def known(raw: Props) -> Props:
    """The settings alone, as text: the engine sends every value so, true as `true`."""
    settings = {key: value for key, value in raw.items() if key != "version" and not key.startswith("__")}
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in settings.items()}


def problems(raw: Props) -> Iterator[Problem]:
    """What is wrong with a configuration without marks."""
    settings = known(raw)
    declared = _types.input_type_types(pulumi_kubernetes.ProviderArgs)
    for key, value in settings.items():
        if key not in declared:
            yield key, "is no setting of pulumi-kubernetes"
        elif key not in TAKEN and not (key == ON_ALREADY and value == "true"):
            yield key, f"{value!r} is not implemented by the lab's stand-in for the kubernetes plugin"
    kubeconfig = settings.get("kubeconfig")
    if kubeconfig == UNKNOWN:
        return
    if not kubeconfig:
        yield "kubeconfig", NO_KUBECONFIG
        return
    try:
        cluster, _, _ = active(parsed(kubeconfig), settings)
    except ValueError as error:
        yield "kubeconfig", str(error)
        return
    if not in_lab(str(cluster.get("server", ""))):
        yield "kubeconfig", f"its server {cluster.get('server')!r} {OUTSIDE}"


def cluster_of(raw: Props) -> Props | None:
    """The cluster that a configuration means; None where that can't be said."""
    try:
        return active(parsed(raw["kubeconfig"]), raw)[0]
    except (KeyError, ValueError):
        return None
