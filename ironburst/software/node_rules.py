"""FAB, MIG, PKG and NET of one node. Each returns what is wrong, or None."""

from __future__ import annotations

from ironburst.software.model import ABSENT, Facts, MigProfile
from ironburst.software.node_rule import NodeRule, of_node, of_node_and_facts
from ironburst.software.packages import RENAMED_FROM
from ironburst.software.state import NodeState
from ironburst.software.versions import branch_of, kernel_version, older, version

BEFORE_TURING = ("Kepler", "Maxwell", "Pascal", "Volta")
DMA_BUF_KERNEL, DMA_BUF_CUDA = (5, 12), (11, 7)
MLNX_OFED_BEFORE_KERNEL = (6,)
DEEP_DIAGNOSTICS = 4


def fab_001(node: NodeState) -> str | None:
    """A board with NVSwitch needs a running fabric manager."""
    if node.board.nvswitch and node.fabric_manager == ABSENT:
        return "the board has NVSwitch and no fabric manager"
    if node.board.nvswitch and node.fabric_manager_active is False:
        return "the board has NVSwitch and fabric manager is not active"
    return None


def fab_002(node: NodeState) -> str | None:
    """Fabric manager has exactly the driver's version."""
    if node.fabric_manager in (None, ABSENT) or not node.driver or node.fabric_manager == node.driver:
        return None
    return f"fabric manager {node.fabric_manager} with driver {node.driver}"


def fab_003(node: NodeState) -> str | None:
    """Trays of a rack-scale system are FAB-006's."""
    if node.fabric_manager not in (None, ABSENT) and node.board.nvswitch is False and not node.board.imex:
        return "fabric manager without NVSwitch"
    return None


def fab_004(node: NodeState) -> str | None:
    """Before 580: nvidia-fabricmanager-<branch> (Debian family),
    nvidia-fabric-manager (RHEL). From 580: nvidia-fabricmanager.
    """
    if not node.driver or not node.packages:
        return None
    branch = branch_of(node.driver)
    renamed = branch >= RENAMED_FROM
    for name in node.packages:
        runtime = name.startswith(("nvidia-fabricmanager", "nvidia-fabric-manager")) and not name.endswith(
            ("-dev", "-devel")
        )
        if runtime and (name != "nvidia-fabricmanager" if renamed else name == "nvidia-fabricmanager"):
            return f"package {name} with branch {branch}"
        if not renamed and name.startswith("nvidia-fabricmanager-") and name != f"nvidia-fabricmanager-{branch}":
            return f"package {name} with branch {branch}"
    return None


def fab_005(node: NodeState) -> str | None:
    """An NVLink5 board needs nvlsm, and the module ib_umad for it."""
    if not node.board.nvlsm:
        return None
    if node.nvlsm is False:
        return "nvlsm is absent"
    if node.loaded_modules is not None and "ib_umad" not in node.loaded_modules:
        return "ib_umad is not loaded"
    return None


def fab_006(node: NodeState) -> str | None:
    """A tray of a rack-scale system has IMEX, and its fabric manager elsewhere."""
    if not node.board.imex:
        return None
    if node.imex == ABSENT:
        return "nvidia-imex is absent"
    return "fabric manager is present" if node.fabric_manager not in (None, ABSENT) else None


def mig_001(node: NodeState) -> str | None:
    """MIG on a GPU that has none."""
    return f"MIG on {node.gpu.model}" if node.gpu and node.mig and node.gpu.mig_max_instances == 0 else None


def mig_002(node: NodeState) -> str | None:
    """MIG with a driver that is too old for it."""
    if node.gpu and node.mig and node.driver and older(node.driver, node.gpu.mig_min_driver):
        return f"MIG on {node.gpu.model} (it needs {node.gpu.mig_min_driver}) with driver {node.driver}"
    return None


def mig_profiles(node: NodeState, facts: Facts) -> dict[str, MigProfile]:
    """The profiles of the node's GPU by name; empty: none are known."""
    ids = set(node.gpu.pci_device_ids) if node.gpu else set()
    return {profile.profile: profile for profile in facts.mig_profiles if ids & set(profile.pci_device_ids)}


def mig_003(node: NodeState, facts: Facts) -> str | None:
    """A profile of another model, too many instances of one, or more compute slices than the GPU has."""
    if not (node.gpu and node.mig) or node.gpu.mig_max_instances == 0:
        return None
    known = mig_profiles(node, facts)
    if not known:
        return None
    for layout in node.mig:
        slices = 0
        for profile, count in layout.profiles.items():
            if profile not in known:
                return f"{profile} on {node.gpu.model}, which has {', '.join(known)}"
            row = known[profile]
            if row.max_instances is not None and count > row.max_instances:
                return f"{count} x {profile} on {node.gpu.model}, which holds {row.max_instances}"
            slices += count * (row.compute_slices or 0)
        most = node.gpu.mig_max_instances
        if most is not None and slices > most:
            return f"{slices} compute slices on {node.gpu.model}, which has {most}"
        if node.gpu_count is not None and any(index >= node.gpu_count for index in layout.gpus):
            return f"GPU {max(layout.gpus)} on a node with {node.gpu_count} GPUs"
    return None


def mig_005(node: NodeState) -> str | None:
    """DCGM's deep diagnostics do not run with MIG on."""
    if node.dcgm_level is not None and node.dcgm_level >= DEEP_DIAGNOSTICS and node.mig_enabled:
        return f"dcgmi diag -r {node.dcgm_level} with MIG on"
    return None


def pkg_001(node: NodeState) -> str | None:
    """DCGM 3 and 4 exclude each other."""
    names = node.packages or {}
    both = "datacenter-gpu-manager" in names and any(name.startswith("datacenter-gpu-manager-4") for name in names)
    return "DCGM 3 and DCGM 4 together" if both else None


def pkg_002(node: NodeState, facts: Facts) -> str | None:
    """The container toolkit's four packages have one version."""
    four = facts.package_names["container_toolkit"]["packages_same_version"]
    versions = {name: (node.packages or {})[name] for name in four if (node.packages or {}).get(name)}
    if len(set(versions.values())) > 1:
        return ", ".join(f"{name} {given}" for name, given in versions.items())
    return None


def net_001(node: NodeState) -> str | None:
    """nvidia-peermem needs an OFED."""
    if node.peer_memory == "peermem" and node.rdma is not None and node.rdma not in ("doca-ofed", "mlnx-ofed"):
        return f"nvidia-peermem with rdma {node.rdma}"
    return None


def net_002(node: NodeState) -> str | None:
    """What DMA-BUF needs: open module, kernel, CUDA and GPU."""
    if node.peer_memory != "dma-buf":
        return None
    wrong = []
    if node.kernel_module not in (None, "open"):
        wrong.append(f"the {node.kernel_module} module")
    if node.kernel is not None and kernel_version(node.kernel) < DMA_BUF_KERNEL:
        wrong.append(f"kernel {node.kernel}")
    if node.cuda is not None and version(node.cuda) < DMA_BUF_CUDA:
        wrong.append(f"CUDA {node.cuda}")
    if node.gpu and node.gpu.architecture in BEFORE_TURING:
        wrong.append(f"a {node.gpu.architecture} GPU")
    return f"DMA-BUF with {', '.join(wrong)}" if wrong else None


def net_003(node: NodeState) -> str | None:
    """Where the OFED's list is unknown, kernels from 6 on count as too new for it (package_names.yaml, doca_ofed)."""
    if node.rdma != "mlnx-ofed" or node.kernel is None:
        return None
    if node.ofed_kernels is not None:
        listed = node.kernel.startswith(node.ofed_kernels)
        return None if listed else f"MLNX_OFED with kernel {node.kernel}, which it doesn't list"
    return f"MLNX_OFED with kernel {node.kernel}" if kernel_version(node.kernel) >= MLNX_OFED_BEFORE_KERNEL else None


def net_004(node: NodeState) -> str | None:
    """GPUDirect Storage needs the open module, and no Secure Boot."""
    if not node.gds:
        return None
    if node.kernel_module == "proprietary":
        return "GPUDirect Storage with the proprietary module"
    return "GPUDirect Storage with Secure Boot" if node.secure_boot else None


RULES: dict[str, NodeRule] = {
    "FAB-001": of_node(fab_001),
    "FAB-002": of_node(fab_002),
    "FAB-003": of_node(fab_003),
    "FAB-004": of_node(fab_004),
    "FAB-005": of_node(fab_005),
    "FAB-006": of_node(fab_006),
    "MIG-001": of_node(mig_001),
    "MIG-002": of_node(mig_002),
    "MIG-003": of_node_and_facts(mig_003),
    "MIG-005": of_node(mig_005),
    "PKG-001": of_node(pkg_001),
    "PKG-002": of_node_and_facts(pkg_002),
    "NET-001": of_node(net_001),
    "NET-002": of_node(net_002),
    "NET-003": of_node(net_003),
    "NET-004": of_node(net_004),
}
