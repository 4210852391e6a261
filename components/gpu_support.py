"""What makes a cluster's GPUs usable: Helm releases of NVIDIA's charts at the catalogue's versions."""

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components import gpu_charts
from ironburst.config import scheduler_models
from ironburst.nodes.naming import logical

NAMESPACE = "ironburst-gpu"


class GpuSupport(pulumi.ComponentResource):
    """Outputs: `versions` (chart: version)."""

    versions: dict[str, str]

    def __init__(
        self,
        name: str,
        *,
        declared: scheduler_models.GpuSupport,
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
        releases = list(gpu_charts.releases(declared))
        for release in releases:
            self._release(logical(name, release.chart.name), release, after)
        self.versions = {release.chart.name: release.chart.version for release in releases}
        self.register_outputs({"versions": self.versions})

    def _release(self, label: str, release: gpu_charts.Release, after: list[pulumi.Resource]) -> None:
        chart = release.chart
        repository: Any = {"repo": chart.repository} if chart.repository else None
        kubernetes.helm.v3.Release(
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
