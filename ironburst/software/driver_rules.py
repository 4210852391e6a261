"""DRV and CUD: what a driver, its kernel module and CUDA need of each other and of the
GPU. Each returns what is wrong, or None.
"""

from __future__ import annotations

import re
from datetime import date

from ironburst.software.model import Facts
from ironburst.software.node_rule import NodeRule, of_node, of_node_and_facts
from ironburst.software.state import NodeState
from ironburst.software.versions import branch_of, older, version

LAST_FOR_OLD_GPUS = 580
OPEN_ONLY_FROM = 620
T4_OPEN_FROM = 575
OLD = ("Pascal", "Volta")
RETIRABLE = re.compile(r"nvidia-(?:headless|driver|utils|dkms)-(?:no-dkms-)?(\d{3})(?:-server)?(?:-open)?")
"""packages of Ubuntu's own archive that name their branch"""
WITHOUT_CUDA_13 = ("Maxwell", "Pascal", "Volta")


def _with(node: NodeState, *parts: str) -> str:
    return f"{node.gpu.model if node.gpu else 'the node'} with {' and '.join(parts)}"


def drv_001(node: NodeState) -> str | None:
    """Pascal and Volta end with branch 580."""
    if node.gpu and node.driver and node.gpu.architecture in OLD and branch_of(node.driver) > LAST_FOR_OLD_GPUS:
        return _with(node, f"driver {node.driver}")
    return None


def drv_002(node: NodeState) -> str | None:
    """Kepler ended with branch 470."""
    return f"{node.gpu.model} is a Kepler" if node.gpu and node.gpu.architecture == "Kepler" else None


def drv_003(node: NodeState) -> str | None:
    """The open kernel module on a GPU that it does not know."""
    if node.gpu and node.gpu.open_kernel_module == "not_supported" and node.kernel_module == "open":
        return _with(node, "the open kernel module")
    return None


def drv_004(node: NodeState) -> str | None:
    """The proprietary kernel module on a GPU that only the open one knows."""
    if node.gpu and node.gpu.open_kernel_module == "required" and node.kernel_module == "proprietary":
        return _with(node, "the proprietary kernel module")
    return None


def drv_005(node: NodeState) -> str | None:
    """From branch 620 on there is no proprietary kernel module."""
    if node.driver and branch_of(node.driver) >= OPEN_ONLY_FROM and node.kernel_module == "proprietary":
        return f"driver {node.driver} with the proprietary kernel module"
    return None


def drv_006(node: NodeState) -> str | None:
    """A T4 takes the open kernel module from branch 575 on."""
    if (
        node.gpu
        and node.driver
        and node.gpu.model == "T4"
        and node.kernel_module == "open"
        and branch_of(node.driver) < T4_OPEN_FROM
    ):
        return _with(node, f"driver {node.driver}", "the open kernel module")
    return None


def drv_007(node: NodeState) -> str | None:
    """A driver older than the GPU."""
    if not (node.gpu and node.driver):
        return None
    if older(node.driver, node.gpu.min_driver):
        return f"{node.gpu.model} (it needs {node.gpu.min_driver}) with driver {node.driver}"
    least = node.gpu.min_driver_branch
    return (
        f"{node.gpu.model} (it needs branch {least}) with driver {node.driver}"
        if least and branch_of(node.driver) < least
        else None
    )


def drv_008(node: NodeState, facts: Facts, today: date | None) -> str | None:
    """Past the end of the month that the vendor names; or the vendor's list says so without a date."""
    branch = facts.branches.get(branch_of(node.driver)) if node.driver else None
    if branch is None:
        return None
    if branch.eol and today:
        year, month = map(int, branch.eol.split("-"))
        return f"driver {node.driver}, ended {branch.eol}" if (today.year, today.month) > (year, month) else None
    return f"driver {node.driver}" if branch.status == "eol" else None


def drv_010(node: NodeState) -> str | None:
    """Packages of the locked stack that may change by themselves."""
    if node.not_held:
        return f"not held: {', '.join(node.not_held)}"
    return "unattended upgrades may change the locked packages" if node.unattended_upgrades == "on" else None


def drv_011(node: NodeState, facts: Facts) -> str | None:
    """A name with a retired branch from Ubuntu's own archive;
    where the candidate is known, only if it is of another branch.
    """
    if not (node.os or "").startswith("ubuntu") or node.package_source != "distro":
        return None
    for name in node.packages or {}:
        match = RETIRABLE.fullmatch(name)
        branch = facts.branches.get(int(match[1])) if match else None
        if branch is None or branch.status != "eol":
            continue
        candidate = (node.candidates or {}).get(name)
        if candidate is None:
            return f"{name} is of a retired branch"
        if not candidate.startswith(f"{branch.branch}."):
            return f"{name} now installs {candidate}"
    return None


def drv_012(node: NodeState) -> str | None:
    """Secure Boot refuses a module that DKMS has built, unless its key is enrolled."""
    if node.secure_boot and node.module_build == "dkms" and node.module_key_enrolled is False:
        return "Secure Boot is on and the module's key isn't enrolled"
    return None


def floor(major: int, facts: Facts) -> str | None:
    """The oldest driver that runs any CUDA of this major version; None where no release of it is known."""
    floors = [cuda.compat_floor_driver for name, cuda in facts.cuda.items() if version(name)[0] == major]
    return min((driver for driver in floors if driver), key=version, default=None)


def cud_001(node: NodeState, facts: Facts) -> str | None:
    """A driver too old for the major version of CUDA."""
    if not (node.cuda and node.driver):
        return None
    least = floor(version(node.cuda)[0], facts)
    return f"CUDA {node.cuda} with driver {node.driver} (it needs {least})" if older(node.driver, least) else None


def cud_002(node: NodeState) -> str | None:
    """CUDA 13 has dropped Maxwell, Pascal and Volta."""
    if node.gpu and node.cuda and version(node.cuda) >= (13,) and node.gpu.architecture in WITHOUT_CUDA_13:
        return _with(node, f"CUDA {node.cuda}")
    return None


def cud_003(node: NodeState) -> str | None:
    """A CUDA older than the GPU."""
    if node.gpu and node.cuda and older(node.cuda, node.gpu.cuda_first):
        return f"{node.gpu.model} (it needs CUDA {node.gpu.cuda_first}) with CUDA {node.cuda}"
    return None


RULES: dict[str, NodeRule] = {
    "DRV-001": of_node(drv_001),
    "DRV-002": of_node(drv_002),
    "DRV-003": of_node(drv_003),
    "DRV-004": of_node(drv_004),
    "DRV-005": of_node(drv_005),
    "DRV-006": of_node(drv_006),
    "DRV-007": of_node(drv_007),
    "DRV-008": drv_008,
    "DRV-010": of_node(drv_010),
    "DRV-011": of_node_and_facts(drv_011),
    "DRV-012": of_node(drv_012),
    "CUD-001": of_node_and_facts(cud_001),
    "CUD-002": of_node(cud_002),
    "CUD-003": of_node(cud_003),
}
