"""Rules of the fleet, an InfiniBand fabric, cluster settings,
detection and thresholds. Each returns what is wrong, or None.
"""

from __future__ import annotations

from collections.abc import Sequence

from ironburst.software.driver_rules import OLD
from ironburst.software.model import Facts
from ironburst.software.state import ClusterState, DetectionState, FabricState, NodeState, ThresholdState

B200_GPU_ID = "2901"
VOID_DCGM_MINIMUM = 10_000  # DCGM's other memory bandwidth minima are about 0.5 to 4 million
XID_THE_PLUGIN_IGNORES = 109


def drv_009(fleet: Sequence[NodeState], _: Facts) -> str | None:
    """Pascal or Volta beside Blackwell or GH200: only branch 580 serves both."""
    old = [node.group for node in fleet if node.gpu and node.gpu.architecture in OLD]
    new = [
        node.group
        for node in fleet
        if node.gpu and (node.gpu.architecture == "Blackwell" or node.gpu.model.startswith("GH200"))
    ]
    return f"{', '.join(old)} and {', '.join(new)}" if old and new else None


def mig_004(fleet: Sequence[NodeState], facts: Facts) -> str | None:
    """One profile, so one mig.config name, that means other counts on other models."""
    counts: dict[str, dict[str, int]] = {}
    for node in fleet:
        ids = set(node.gpu.pci_device_ids) if node.gpu else set()
        wanted = {profile for layout in node.mig or () for profile in layout.profiles}
        for row in facts.mig_profiles:
            if (
                node.gpu
                and row.profile in wanted
                and row.config_name
                and row.max_instances
                and ids & set(row.pci_device_ids)
            ):
                counts.setdefault(row.config_name, {})[node.gpu.model] = row.max_instances
    for name, by_model in counts.items():
        if len(set(by_model.values())) > 1:
            return f"{name} is " + " and ".join(f"{count} on {model}" for model, count in by_model.items())
    return None


def net_005(fabric: FabricState) -> str | None:
    """One master subnet manager; two hosts at most run opensm, and no others."""
    if fabric.masters is not None and fabric.masters != 1:
        return f"{fabric.masters} master subnet managers"
    if fabric.managers is not None and len(fabric.managers) > 2:
        return f"{len(fabric.managers)} hosts are to run opensm"
    stray = set(fabric.opensm_hosts or ()) & set(fabric.compute_hosts) - set(fabric.managers or ())
    return f"opensm is enabled on {', '.join(sorted(stray))}" if stray else None


def net_006(fabric: FabricState) -> str | None:
    """Rules are `Name=0x7fff, flags : members;` and may span lines; # begins a comment."""
    if fabric.partitions_conf is None:
        return None
    text = " ".join(line.partition("#")[0] for line in fabric.partitions_conf.splitlines())
    names = [rule.strip().split("=")[0].split(",")[0].split(":")[0].strip() for rule in text.split(";") if rule.strip()]
    return None if names and names[0] == "Default" else "partitions.conf doesn't begin with the Default rule"


def pkg_003(cluster: ClusterState) -> str | None:
    """GPU Operator does not manage what the hosts have of their own."""
    if cluster.host_driver and (cluster.operator_driver or cluster.operator_toolkit):
        return "the hosts have a stack of their own and GPU Operator manages one too"
    return None


def slm_003(cluster: ClusterState) -> str | None:
    """AutoDetect=nvidia knows neither MIG nor NVLink affinity."""
    if cluster.gres_autodetect == "nvidia" and (cluster.mig_used or cluster.nvlink_affinity):
        return "AutoDetect=nvidia with " + ("MIG" if cluster.mig_used else "NVLink affinity")
    return None


def k8s_001(cluster: ClusterState) -> str | None:
    """The device plugin ignores Xid 109."""
    return (
        "nothing else acts on Xid 109" if XID_THE_PLUGIN_IGNORES in (cluster.relies_on_plugin_for_xids or ()) else None
    )


def fab_007(detection: DetectionState) -> str | None:
    """What looks for the B200's own id finds GPUs, not NVSwitches."""
    wrong = [
        given for given in detection.pci_ids if given.lower().removeprefix("10de:").removeprefix("0x") == B200_GPU_ID
    ]
    return f"{detection.name} looks for {wrong[0]}" if wrong else None


def acc_001(threshold: ThresholdState) -> str | None:
    """A bandwidth threshold says of what, and is no average over a sweep."""
    if threshold.kind != "bandwidth":
        return None
    absent = [name.replace("_", " ") for name in ("message_size", "nodes", "unit") if getattr(threshold, name) is None]
    if absent:
        return f"{threshold.name} has no {' and no '.join(absent)}"
    return f"{threshold.name} takes the average over a sweep" if threshold.statistic == "average-over-sweep" else None


def acc_002(threshold: ThresholdState) -> str | None:
    """DCGM's minimum for the H200's memory bandwidth is void."""
    gate = (
        threshold.kind == "dcgm-memory-bandwidth"
        and threshold.minimum is not None
        and threshold.minimum < VOID_DCGM_MINIMUM
    )
    return f"{threshold.name}: {threshold.minimum:g}" if gate and (threshold.gpu or "").startswith("H200") else None


FLEET = {"DRV-009": drv_009, "MIG-004": mig_004}
FABRIC = {"NET-005": net_005, "NET-006": net_006}
CLUSTER = {"PKG-003": pkg_003, "SLM-003": slm_003, "K8S-001": k8s_001}
DETECTION = {"FAB-007": fab_007}
THRESHOLD = {"ACC-001": acc_001, "ACC-002": acc_002}
