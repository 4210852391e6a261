"""The join level: what a GPU node must show in seconds, at boot and after every converge.

Pure: `evaluate(node)` judges what the gate's program has read. It fails closed: a tool that is missing, hangs, answers
with something that is not understood, or answers with nothing, is a failed check, never a passed one. A check that this
kind of machine cannot answer (a container has no kernel log) is left out only where the inventory names it in
`not_applicable`, and its finding says so.
"""

import re
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import models, smi, smi_csv, smi_query, xid
from .expectation import Expectation
from .findings import Finding, Unreadable, Verdict, healthy, merged, run_checks
from .google import CARD
from .lspci import NVIDIA_DEVICES, gpus_on_bus
from .models import find_models, model_matches
from .settings import LAYERS, Settings, expectation
from .tables import Tables
from .tools import Outcome, answer, parse, verdict

SERVICE = ("systemctl", "show", "nvidia-fabricmanager.service")
# what is asked of the node's tools; the check of this name, or several, judge the answer
COMMANDS: Dict[str, Tuple[str, ...]] = {
    "lspci": NVIDIA_DEVICES,
    "gpus": smi_csv.GPU_LIST,
    "gpu_health": ("nvidia-smi", "-q", "-x"),
    "nvlink": ("nvidia-smi", "nvlink", "-s"),
    "fabric_manager": (*SERVICE, "-p", "LoadState,ActiveState,SubState,Result,MainPID"),
    "xid": ("journalctl", "-k", "-b", "--no-pager", "-o", "short-monotonic"),
    "time": ("timedatectl", "show", "-p", "NTPSynchronized"),
}
FREE_MEMORY = 0.1  # of all: less at boot means that something is left running, or that DIMMs are gone
FREE_DISK = 0.05
MISSING_MEMORY = 0.05  # of what is declared: the kernel keeps some for itself


class RdmaPort(NamedTuple):
    """One port of an RDMA device as sysfs has it: name "mlx5_0/1", layer "InfiniBand", state "4: ACTIVE", rate "400
    Gb/sec (4X NDR)", physical state "5: LinkUp". A network card is one, too: its interface, its driver, and "up" as
    operstate has it.
    """

    name: str
    layer: str
    state: str
    rate: str
    physical: str


class Disk(NamedTuple):
    """One file system: bytes, and whether it can be written."""

    path: str
    free: int
    total: int
    writable: bool


class Observed(NamedTuple):
    """What the gate's program has read. outcomes: name in COMMANDS -> its outcome. mount_points: every one of the node.
    memory_kib: /proc/meminfo. uncorrected: memory errors of the host, None where not counted. xid_handled_s: seconds
    since boot up to which Xids were dealt with.
    """

    outcomes: Dict[str, Outcome]
    ports: Tuple[RdmaPort, ...]
    mount_points: Tuple[str, ...]
    memory_kib: Dict[str, int]
    uncorrected: Optional[int]
    disks: Tuple[Disk, ...]
    xid_handled_s: float = -1


class Node(NamedTuple):
    """What is known of the node: declared, in the catalogue, read."""

    settings: Settings
    tables: Tables
    observed: Observed

    @property
    def expected(self) -> Expectation:
        """What the parsers are to hold an output against."""
        return expectation(self.settings, self.tables)

    def said(self, command: str, name: str) -> str:
        """The output of one of COMMANDS; `name`: what sentences call it. Raises Unreadable."""
        return answer(command, self.observed.outcomes[name])


def needed(settings: Settings, tables: Tables) -> List[str]:
    """The names in COMMANDS that the gate must ask."""
    unasked = set(settings.not_applicable)
    if not settings.fabric_manager:
        unasked.add("fabric_manager")
    if not nvlinks(settings, tables):
        unasked.add("nvlink")
    return [name for name in COMMANDS if name not in unasked]


def nvlinks(settings: Settings, tables: Tables) -> int:
    """NVLinks that each GPU must have up: those of an SXM board, where the node has more than one of its GPUs."""
    return models.nvlinks(models.declared_model(settings.gpu_model, tables.models), settings.gpu_count)


def _gpus(node: Node) -> List[smi_csv.SmiGpu]:
    return smi_csv.gpu_list(node.said("nvidia-smi", "gpus"))


def _check_gpus_on_bus(node: Node) -> Verdict:
    wanted, count = node.settings.gpu_count, len(gpus_on_bus(node.said("lspci", "lspci")))
    return count == wanted, f"{count} of {wanted} GPUs on the PCI bus"


def _check_gpu_count(node: Node) -> Verdict:
    wanted, count = node.settings.gpu_count, len(_gpus(node))
    return count == wanted, f"the driver has {count} of {wanted} GPUs"


def _check_gpu_model(node: Node) -> Verdict:
    model, gpus = node.settings.gpu_model, _gpus(node)
    other = [gpu for gpu in gpus if not model_matches(model, gpu.name, gpu.memory_mib)]
    said = [f"GPU {gpu.number} is {gpu.name} with {gpu.memory_mib} MiB" for gpu in other]
    return bool(gpus) and not other, "; ".join(said) or f"all are {model}"


def _check_driver(node: Node) -> Verdict:
    declared, versions = node.settings.driver, sorted({gpu.driver for gpu in _gpus(node)})
    return versions == [declared], f"driver {', '.join(versions)}, declared {declared}"


def _fabric_ports(node: Node) -> List[RdmaPort]:
    """The ports of the declared fabric."""
    return [port for port in node.observed.ports if port.layer == LAYERS[node.settings.fabric]]


def _check_fabric(node: Node) -> Verdict:
    fabric, wanted = node.settings.fabric, node.settings.fabric_links
    if fabric == "none":
        return True, "no fabric is declared"
    ports = _fabric_ports(node)
    down = [port for port in ports if port.state not in ("4: ACTIVE", "up")]
    active = len(ports) - len(down)
    said = [f"{active} of {wanted} {fabric} links are active"]
    said += [f"{port.name} is {port.state or 'unknown'}" for port in down]
    return active >= wanted and not down, "; ".join(said)


def _check_mounts(node: Node) -> Verdict:
    mounts = node.settings.mounts
    missing = [path for path in mounts if path not in node.observed.mount_points]
    if missing:
        return False, f"not mounted: {', '.join(missing)}"
    return True, f"mounted: {', '.join(mounts) or 'nothing declared'}"


def _check_gpu_health(node: Node) -> Finding:
    return merged(parse("nvidia-smi", node.said("nvidia-smi -q", "gpu_health"), node.expected))


def _check_nvlink(node: Node) -> Verdict:
    if node.settings.gpu_model not in [model.name for model in node.tables.models]:
        raise Unreadable(
            f"whether a {node.settings.gpu_model} has NVLinks is not known: it is no model of the catalogue"
        )
    of_each = nvlinks(node.settings, node.tables)
    if not of_each:
        return True, "no NVLink board is declared"
    text = node.said("nvidia-smi nvlink", "nvlink")
    cut_up = text.count(smi.MIG_LINKS) if node.settings.mig else 0
    links, up = of_each * (node.settings.gpu_count - cut_up), text.count("GB/s")
    undeclared = smi.MIG_LINKS in text and not node.settings.mig  # said better by the parser
    if find_models(node.settings.gpu_model, node.tables.models) and up != links and not undeclared:
        return False, f"{up} of {links} NVLinks are up"
    return verdict("nvidia-smi", text, node.expected)


def _check_fabric_manager(node: Node) -> Verdict:
    if not node.settings.fabric_manager:
        return True, "no fabric manager is declared"
    return verdict("fabricmanager", node.said("systemctl", "fabric_manager"), node.expected)


def _check_fabric_rate(node: Node) -> Verdict:
    fabric = node.settings.fabric
    if fabric == "none":
        return True, "no fabric is declared"
    if LAYERS[fabric] == CARD:
        return True, "network cards tell no rate"
    rates: Dict[str, float] = {}
    for port in _fabric_ports(node):
        match = re.match(r"^([\d.]+) Gb/sec \(\d+X \w+\)$", port.rate)
        if not match or port.physical != "5: LinkUp":
            return False, f"{port.name} is {port.physical or 'unknown'} at {port.rate or 'no rate'}"
        rates[port.name] = float(match.group(1))
    if not rates:
        return False, f"no {fabric} port is found"
    wanted = node.settings.fabric_rate_gb_s or max(rates.values())
    slow = [f"{name} runs at {rate:g} of {wanted:g} Gb/s" for name, rate in sorted(rates.items()) if rate < wanted]
    return not slow, "; ".join(slow) or f"{len(rates)} ports run at {wanted:g} Gb/s"


def _check_xid(node: Node) -> Finding:
    log = node.said("journalctl", "xid")
    if not re.search(r"(?m)^\[ *\d+\.\d+\] ", log):
        raise Unreadable("the kernel log has no line with a time")
    asked = node.observed.outcomes.get("gpu_health")
    uuids = smi_query.uuids(asked.stdout) if asked else {}
    settings, handled_s = node.settings, node.observed.xid_handled_s
    return merged(xid.judge(log, node.tables.xids, settings.gpu_model, handled_s, uuids))


def _check_time(node: Node) -> Verdict:
    said = node.said("timedatectl", "time").strip()
    if said not in ("NTPSynchronized=yes", "NTPSynchronized=no"):
        raise Unreadable(f"timedatectl says {said!r}, which is not understood")
    synchronised = said.endswith("yes")
    return synchronised, f"the clock is {'' if synchronised else 'not '}synchronised"


def _check_memory(node: Node) -> Verdict:
    memory_kib, declared_gib = node.observed.memory_kib, node.settings.memory_gib
    total, free = memory_kib.get("MemTotal", 0), memory_kib.get("MemAvailable", 0)
    total_gib, free_gib = total / (1 << 20), free / (1 << 20)
    if not total:
        raise Unreadable("the kernel says no amount of memory")
    if declared_gib and total < (1 - MISSING_MEMORY) * declared_gib * (1 << 20):
        return False, f"the host has {total_gib:.0f} of {declared_gib:g} GiB of memory"
    if free < FREE_MEMORY * total:
        return False, f"{free_gib:.1f} of {total_gib:.0f} GiB of memory are free"
    if node.observed.uncorrected:
        return False, f"the host's memory had {node.observed.uncorrected} uncorrected errors"
    counted = "" if node.observed.uncorrected == 0 else ", errors are not counted"
    return True, f"{free_gib:.0f} of {total_gib:.0f} GiB are free{counted}"


def _check_disks(node: Node) -> Verdict:
    disks = {disk.path: disk for disk in node.observed.disks}
    paths = node.settings.disks
    wrong = [problem for problem in (_disk_problem(path, disks.get(path)) for path in paths) if problem]
    return bool(paths) and not wrong, "; ".join(wrong) or f"{', '.join(paths)} can be written"


def _disk_problem(path: str, disk: Optional[Disk]) -> str:
    if disk is None:
        return f"{path} is not there"
    if not disk.writable:
        return f"{path} cannot be written"
    if disk.free < FREE_DISK * disk.total:
        return f"{path} has {disk.free / 1e9:.1f} of {disk.total / 1e9:.0f} GB free"
    return ""


CHECKS: Dict[str, Callable[[Node], Union[Verdict, Finding]]] = {
    "gpus_on_bus": _check_gpus_on_bus,
    "gpu_count": _check_gpu_count,
    "gpu_model": _check_gpu_model,
    "driver": _check_driver,
    "fabric": _check_fabric,
    "mounts": _check_mounts,
    "gpu_health": _check_gpu_health,
    "nvlink": _check_nvlink,
    "fabric_manager": _check_fabric_manager,
    "fabric_rate": _check_fabric_rate,
    "xid": _check_xid,
    "time": _check_time,
    "memory": _check_memory,
    "disks": _check_disks,
}


def evaluate(node: Node) -> List[Finding]:
    """One finding a check, in the order of CHECKS. An error in a check is a failed check."""
    return run_checks(CHECKS, node, node.settings.not_applicable)


def passed(findings: Sequence[Finding], more: Tuple[str, ...] = ()) -> bool:
    """Whether the node may take jobs: every check of this level, and `more`, is there and passed."""
    return {finding.check for finding in findings} == {*CHECKS, *more} and healthy(findings)
