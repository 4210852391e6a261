"""What makes a cluster's GPUs usable: Helm releases of NVIDIA's charts at the catalogue's versions."""

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components import gpu_charts
from ironburst.config import gpu_support_models
from ironburst.nodes.naming import logical

NAMESPACE = "ironburst-gpu"


class GpuSupport(pulumi.ComponentResource):
    """Outputs: `versions` (chart: version)."""

    versions: dict[str, str]

    def __init__(
        self,
        name: str,
        *,
        declared: gpu_support_models.GpuSupport,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`opts`: with the provider of the cluster."""
        super().__init__("ironburst:components:GpuSupport", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        namespace = kubernetes.core.v1.Namespace(
            logical(name, "namespace"),
            # drivers and devices of the host are mounted there
            metadata={"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
            opts=child,
        )
        after: list[pulumi.Resource] = [namespace]
        if declared.plugin == "device-plugin":
            runtime = kubernetes.node.v1.RuntimeClass(
                logical(name, "runtime"),
                metadata={"name": declared.runtime_class},
                handler=declared.runtime_class,
                opts=child,
            )
            after.append(runtime)
        made: dict[str, pulumi.Resource] = {}
        self.versions = {}
        for release in gpu_charts.releases(declared):
            first = [*after, *(made[chart] for chart in release.after)]
            chart = release.chart
            made[chart.name] = self._release(logical(name, chart.name), release, first)
            self.versions[chart.name] = chart.version
        if declared.rdma_resource:
            kubernetes.apiextensions.CustomResource(
                logical(name, "nics"),
                api_version="mellanox.com/v1alpha1",
                kind="NicClusterPolicy",
                metadata={"name": "nic-cluster-policy"},  # the operator looks at no other
                spec=gpu_charts.nic_cluster_policy(declared),
                opts=pulumi.ResourceOptions(parent=self, depends_on=[made["network-operator"]]),
            )
        self.register_outputs({"versions": self.versions})

    def _release(
        self, label: str, release: gpu_charts.Release, after: list[pulumi.Resource]
    ) -> kubernetes.helm.v3.Release:
        chart = release.chart
        repository: Any = {"repo": chart.repository} if chart.repository else None
        return kubernetes.helm.v3.Release(
            label,
            name=chart.name,
            chart=chart.chart,
            version=chart.version,
            repository_opts=repository,
            namespace=NAMESPACE,
            values=release.values,
            # its pods are ready only where nodes with GPUs are, and those may be rented later
            skip_await=True,
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )
