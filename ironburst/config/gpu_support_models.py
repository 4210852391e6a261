"""What makes a Kubernetes cluster's GPUs usable, as a person declares it (`gpu_support` of a scheduler)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ironburst.config.aws.fabric_models import FabricChart, FabricPlugin
from ironburst.config.software_models import Strict
from ironburst.config.types import Name

ChartName = Literal["device-plugin", "gpu-operator", "dcgm-exporter", "network-operator", "dra-driver"] | FabricChart


class GpuSharing(Strict):
    """Several pods on one GPU, on nodes with the label nvidia.com/device-plugin.config=shared only. They ask for
    nvidia.com/gpu.shared, which nothing is rented for.
    """

    by: Literal["time-slicing", "mps"] = Field(
        description="time-slicing: in turns, without limits of memory; mps: at once, each with its part of the memory"
    )
    replicas: int = Field(ge=2, le=48, description="pods for each GPU")


class GpuSupport(FabricPlugin):
    """What makes a cluster's GPUs usable, as Helm releases at the catalogue's versions. Rented nodes count on it: one
    is in service when nvidia.com/gpu is allocatable there.
    """

    plugin: Literal["device-plugin", "gpu-operator", "none"] = Field(
        default="none",
        description="who hands out GPUs: NVIDIA's device plugin with feature discovery, or its GPU operator (without "
        "driver and container toolkit: the hosts have them); none: what the cluster has already",
    )
    device_list: Literal["envvar", "volume-mounts"] = Field(
        default="envvar",
        description="how device-plugin tells the hosts' runtime which GPUs a pod has. With envvar, which an image may "
        "say, too, pods of CUDA images that ask for no GPU see all of their node's; volume-mounts needs hosts whose "
        "runtime accepts them, as our converged nodes do. gpu-operator does it by CDI",
    )
    mig_strategy: Literal["none", "single", "mixed"] = Field(
        default="none", description="how MIG instances are offered: single as nvidia.com/gpu, mixed by their profiles"
    )
    dra: Literal["none", "compute-domains", "gpus"] = Field(
        default="none",
        description="NVIDIA's driver for dynamic resource allocation: for NVLink domains of several nodes beside a "
        "plugin, or for the GPUs, too, instead of one (DeviceClass gpu.nvidia.com)",
    )
    device_taints: bool = Field(
        default=False,
        description="a GPU that alone fails the gate is kept from claims (DeviceTaintRule), and the node's others stay "
        "in use; needs dra: gpus, and a cluster that serves resource.k8s.io/v1beta2 with DRADeviceTaintRules",
    )
    dcgm_exporter: bool = Field(default=False, description="GPU metrics for Prometheus, from a pod on each GPU node")
    network_operator: bool = Field(default=False, description="NVIDIA's network operator, for RDMA in pods")
    rdma_resource: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$",
        description="pods ask for rdma/ and this name, and share their host's NVIDIA NICs (NicClusterPolicy); needs "
        "network_operator, and the driver on the hosts. None: the operator alone, which gives pods nothing",
        examples=["rdma_shared_device_a"],
    )
    dcgm_hostengine: Literal["embedded", "host"] = Field(
        default="embedded",
        description="what dcgm_exporter reads from: its own, or the host's (nvidia-dcgm.service, port 5555, as role "
        "dcgm starts it); two on one GPU disturb each other's profiling metrics. With host every node with GPUs has "
        "one, and the exporter takes the host's port 9400",
    )
    sharing: GpuSharing | None = Field(default=None, description="none: each pod has its GPUs alone")
    registry: str | None = Field(
        default=None,
        pattern=r"^[^\s:/]+(:\d+)?(/[^\s:/]+)*$",
        description="where nodes pull the charts' images from, under their own paths (nvcr.io/nvidia/k8s is "
        "REGISTRY/nvidia/k8s); none: the vendors' registries",
        examples=["registry.example.org/mirror"],
    )
    chart_repository: str | None = Field(
        default=None,
        pattern=r"^(https?|oci)://[^\s@/]+(/[^\s@/]+)*$",
        description="where `pulumi up` loads the charts from, under their names: a chart repository that asks for "
        "no password (https://), or a registry (oci://), where `helm registry login` has signed in; none: the vendors'",
        examples=["oci://registry.example.org/charts"],
    )
    pull_secrets: list[Name] = Field(
        default=[], description="Secrets with the registry's credentials, that you make in the namespace ironburst-gpu"
    )
    values: dict[ChartName, dict[str, Any]] = Field(
        default={},
        description="more of a chart's values, merged over ours: maps by key, anything else in the place of ours",
        examples=[{"dcgm-exporter": {"serviceMonitor": {"enabled": True}}}],
    )
    runtime_class: Name = Field(
        default="nvidia",
        description="runtime of the hosts' containerd that gives containers the driver; with device-plugin a "
        "RuntimeClass of this name is made",
    )

    @property
    def anything(self) -> bool:
        """Whether there is something to install."""
        return bool(self.charts)

    @property
    def charts(self) -> list[ChartName]:
        """By our names, in the order of their installation: who brings feature discovery, and its kinds, first."""
        operator = self.plugin == "gpu-operator"
        wanted: dict[ChartName, bool] = {
            "gpu-operator": operator,
            "device-plugin": self.plugin == "device-plugin",
            "dra-driver": self.dra != "none" and not (operator and self.dra == "gpus"),
            "dcgm-exporter": self.dcgm_exporter and not operator,
            "network-operator": self.network_operator,
        }
        return [*(name for name, is_wanted in wanted.items() if is_wanted), *self.fabric_charts]

    @property
    def gpus_by_mount(self) -> bool:
        """Whether pods are handed their GPUs by what no image can say: mounts or CDI."""
        mounts = self.plugin == "device-plugin" and self.device_list == "volume-mounts"
        return mounts or self.plugin == "gpu-operator" or self.dra == "gpus"

    @property
    def rdma(self) -> list[str]:
        """The resource by which pods get the hosts' NICs."""
        return [f"rdma/{self.rdma_resource}"] if self.rdma_resource else []
