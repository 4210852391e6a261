"""The join level: what a GPU node must show in seconds, at boot and after every converge. checks.py has the first six;
here are the others.

Pure: `evaluate(settings, observed)` judges what the gate's program has read. A check that this kind of machine cannot
answer (a container has no kernel log) is left out only where the inventory names it in `not_applicable`, and its
finding says so.
"""

import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import checks, fabricmanager, tools, xid
from .checks import LAYERS, Expected, Outcome, Unreadable, answer
from .gpus import find_models
from .report import Expectation, Finding, Model
from .report import Unreadable as UnreadableOutput

COMMANDS = {
    "gpu_health": ("nvidia-smi", "-q", "-x"),
    "nvlink": ("nvidia-smi", "nvlink", "-s"),
    "fabric_manager": (
        "systemctl",
        "show",
        "nvidia-fabricmanager.service",
        "-p",
        "LoadState,ActiveState,SubState,Result,MainPID",
    ),
    "xid": ("journalctl", "-k", "-b", "--no-pager", "-o", "short-monotonic"),
    "time": ("timedatectl", "show", "-p", "NTPSynchronized"),
}  # type: Dict[str, Tuple[str, ...]]
FREE_MEMORY = 0.1  # of all: less at boot means that something is left running, or that DIMMs are gone
FREE_DISK = 0.05


class Port(NamedTuple):
    """One port of an RDMA device as sysfs has it: rate "400 Gb/sec (4X NDR)", physical state "5: LinkUp"."""

    name: str
    layer: str
    rate: str
    physical: str


class Disk(NamedTuple):
    """One file system: bytes, and whether it can be written."""

    path: str
    free: int
    total: int
    writable: bool


class Observed(NamedTuple):
    """What the gate's program has read. outcomes: check -> its tool's. uncorrected: memory errors of the host, None
    where not counted.
    """

    base: checks.Observed
    outcomes: Dict[str, Outcome]
    ports: Tuple[Port, ...]
    memory_kib: Dict[str, int]
    uncorrected: Optional[int]
    disks: Tuple[Disk, ...]
    xid_handled_s: float = -1


class Settings(NamedTuple):
    """The decoded gate.json."""

    expected: Expected
    not_applicable: Tuple[str, ...] = ()
    fabric_manager: bool = False
    fabric_rate_gb_s: Optional[float] = None
    pcie_width: Optional[int] = None
    accepted_uncorrectable: int = 0
    memory_gib: Optional[float] = None
    disks: Tuple[str, ...] = ("/",)
    dcgm_level: int = 2
    burn_in_dcgm_level: int = 4
    nccl_command: Tuple[str, ...] = ()
    nccl_threshold: Optional[str] = None
    rdma_threshold: Optional[str] = None
    platform: Optional[str] = None
    baseline_tolerance: float = 0.05


class Tables(NamedTuple):
    """The catalogue's data on the node."""

    models: Tuple[Model, ...]
    thresholds: Tuple[Any, ...]
    xids: Dict[int, xid.Action]


def settings_from(data: Any) -> Settings:
    """Settings from the decoded gate.json. Raises Unreadable for anything missing, of a wrong type or unknown."""
    expected = checks.expected_from(data)
    kinds = {
        "not_applicable": list,
        "fabric_manager": bool,
        "fabric_rate_gb_s": (int, float),
        "pcie_width": int,
        "accepted_uncorrectable": int,
        "memory_gib": (int, float),
        "disks": list,
        "dcgm_level": int,
        "burn_in_dcgm_level": int,
        "nccl_command": list,
        "nccl_threshold": str,
        "rdma_threshold": str,
        "platform": str,
        "baseline_tolerance": float,
    }  # type: Dict[str, Any]
    found = {}
    for name, kind in kinds.items():
        value = data.get(name)
        if value is None:
            continue
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise Unreadable(f"the gate's settings have no usable {name}: {value!r}")
        found[name] = tuple(value) if kind is list else value
    settings = Settings(expected=expected, **found)
    unknown = sorted(set(data) - set(kinds) - set(Expected._fields))
    names = [*checks.CHECKS, *CHECKS, "dcgm", "nccl", "rdma_bandwidth"]
    wrong = [name for name in settings.not_applicable if name not in names]
    if unknown or wrong:
        raise Unreadable(f"the gate's settings name {(unknown + wrong)[0]!r}, which is unknown")
    if not 0 < settings.baseline_tolerance < 0.5:
        raise Unreadable(f"the gate's settings have no usable baseline_tolerance: {settings.baseline_tolerance!r}")
    return settings


def needed(settings: Settings, tables: Tables) -> List[str]:
    """The checks whose tools the gate must run."""
    names = [name for name in COMMANDS if name not in settings.not_applicable]
    if not settings.fabric_manager:
        names = [name for name in names if name != "fabric_manager"]
    return names if nvlinks(settings, tables) else [name for name in names if name != "nvlink"]


def nvlinks(settings: Settings, tables: Tables) -> int:
    """NVLinks that each GPU must have up: those of an SXM board, where the node has more than one of its GPUs."""
    model = next((model for model in tables.models if model.name == settings.expected.gpu_model), None)
    return model.links or 0 if model and "PCIe" not in model.form_factor and settings.expected.gpu_count > 1 else 0


def expectation(settings: Settings, tables: Tables) -> Expectation:
    """What the parsers are to hold an output against."""
    return Expectation(
        gpu_model=settings.expected.gpu_model,
        gpus=settings.expected.gpu_count,
        driver=settings.expected.driver,
        pcie_width=settings.pcie_width,
        accepted_uncorrectable=settings.accepted_uncorrectable,
        platform=settings.platform,
        models=tables.models,
        thresholds=tables.thresholds,
    )


def worst(findings: List[Finding]) -> Tuple[bool, str]:
    """Several findings of a parser as one: every reason, or the last thing that was said."""
    failed = [finding.text for finding in findings if finding.passed is not True]
    return (not failed and bool(findings)), "; ".join(
        failed or [finding.text for finding in findings][-1:]
    ) or "nothing was judged"


def check_gpu_health(settings: Settings, observed: Observed, tables: Tables) -> Tuple[bool, str]:
    text = answer("nvidia-smi -q", observed.outcomes["gpu_health"])
    return worst(tools.parse("nvidia-smi", text, expectation(settings, tables)))


def check_nvlink(settings: Settings, observed: Observed, tables: Tables) -> Tuple[bool, str]:
    links = nvlinks(settings, tables)
    if not links:
        return True, "no NVLink board is declared"
    text = answer("nvidia-smi nvlink", observed.outcomes["nvlink"])
    if (
        find_models(settings.expected.gpu_model, tables.models)
        and text.count("GB/s") != links * settings.expected.gpu_count
    ):
        return False, f"{text.count('GB/s')} of {links * settings.expected.gpu_count} NVLinks are up"
    return worst(tools.parse("nvidia-smi", text, expectation(settings, tables)))


def check_fabric_manager(settings: Settings, observed: Observed, tables: Tables) -> Tuple[bool, str]:
    if not settings.fabric_manager:
        return True, "no fabric manager is declared"
    text = answer("systemctl", observed.outcomes["fabric_manager"])
    return worst(fabricmanager.parse(text, expectation(settings, tables)))


def check_fabric_rate(settings: Settings, observed: Observed, tables: Tables) -> Tuple[bool, str]:
    if settings.expected.fabric == "none":
        return True, "no fabric is declared"
    ports = [port for port in observed.ports if port.layer == LAYERS[settings.expected.fabric]]
    rates = {}
    for port in ports:
        match = re.match(r"^([\d.]+) Gb/sec \(\d+X \w+\)$", port.rate)
        if not match or port.physical != "5: LinkUp":
            return False, f"{port.name} is {port.physical or 'unknown'} at {port.rate or 'no rate'}"
        rates[port.name] = float(match.group(1))
    if not rates:
        return False, f"no {settings.expected.fabric} port is found"
    wanted = settings.fabric_rate_gb_s or max(rates.values())
    slow = [f"{name} runs at {rate:g} of {wanted:g} Gb/s" for name, rate in sorted(rates.items()) if rate < wanted]
    return not slow, "; ".join(slow) or f"{len(rates)} ports run at {wanted:g} Gb/s"


def check_xid(settings: Settings, observed: Observed, tables: Tables) -> Tuple[bool, str]:
    log = answer("journalctl", observed.outcomes["xid"])
    if not re.search(r"(?m)^\[ *\d+\.\d+\] ", log):
        raise Unreadable("the kernel log has no line with a time")
    return worst(xid.judge(log, tables.xids, settings.expected.gpu_model, observed.xid_handled_s))


def check_time(settings: Settings, observed: Observed, tables: Tables) -> Tuple[bool, str]:
    said = answer("timedatectl", observed.outcomes["time"]).strip()
    if said not in ("NTPSynchronized=yes", "NTPSynchronized=no"):
        raise Unreadable(f"timedatectl says {said!r}, which is not understood")
    return said.endswith("yes"), f"the clock is {'' if said.endswith('yes') else 'not '}synchronised"


def check_memory(settings: Settings, observed: Observed, tables: Tables) -> Tuple[bool, str]:
    total, free = observed.memory_kib.get("MemTotal", 0), observed.memory_kib.get("MemAvailable", 0)
    if not total:
        raise Unreadable("the kernel says no amount of memory")
    if settings.memory_gib and total < 0.95 * settings.memory_gib * (1 << 20):
        return False, f"the host has {total / (1 << 20):.0f} of {settings.memory_gib:g} GiB of memory"
    if free < FREE_MEMORY * total:
        return False, f"{free / (1 << 20):.1f} of {total / (1 << 20):.0f} GiB of memory are free"
    if observed.uncorrected:
        return False, f"the host's memory had {observed.uncorrected} uncorrected errors"
    counted = "" if observed.uncorrected == 0 else ", errors are not counted"
    return True, f"{free / (1 << 20):.0f} of {total / (1 << 20):.0f} GiB are free{counted}"


def check_disks(settings: Settings, observed: Observed, tables: Tables) -> Tuple[bool, str]:
    found = {disk.path: disk for disk in observed.disks}
    wrong = []
    for path in settings.disks:
        disk = found.get(path)
        if disk is None:
            wrong.append(f"{path} is not there")
        elif not disk.writable:
            wrong.append(f"{path} cannot be written")
        elif disk.free < FREE_DISK * disk.total:
            wrong.append(f"{path} has {disk.free / 1e9:.1f} of {disk.total / 1e9:.0f} GB free")
    return bool(settings.disks) and not wrong, "; ".join(wrong) or f"{', '.join(settings.disks)} can be written"


Check = Callable[[Settings, Observed, Tables], Tuple[bool, str]]
CHECKS = {
    "gpu_health": check_gpu_health,
    "nvlink": check_nvlink,
    "fabric_manager": check_fabric_manager,
    "fabric_rate": check_fabric_rate,
    "xid": check_xid,
    "time": check_time,
    "memory": check_memory,
    "disks": check_disks,
}  # type: Dict[str, Check]


def evaluate(settings: Settings, observed: Observed, tables: Tables) -> List[Finding]:
    """One finding a check, in a fixed order. An error in a check is a failed check."""
    findings = [Finding(*finding) for finding in checks.evaluate(settings.expected, observed.base)]
    for name, check in CHECKS.items():
        try:
            good, text = check(settings, observed, tables) if name not in settings.not_applicable else (True, "")
        except (Unreadable, UnreadableOutput) as error:
            good, text = False, str(error)
        except Exception as error:  # fail closed, whatever it is
            good, text = False, f"the check itself failed: {error!r}"
        findings.append(Finding(name, good is True, text))
    left_out = settings.not_applicable
    return [
        Finding(each.check, True, "not applicable: the inventory says so") if each.check in left_out else each
        for each in findings
    ]


def passed(findings: List[Finding], more: Tuple[str, ...] = ()) -> bool:
    """Whether the node may take jobs: every known check is there and passed."""
    names = {finding.check for finding in findings}
    return names == {*checks.CHECKS, *CHECKS, *more} and all(finding.passed is True for finding in findings)
