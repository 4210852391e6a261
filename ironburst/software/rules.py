"""Applies the rules DRV-001..007 and CUD-001..003 to the stack of one group of nodes. Severity and text come from the rule data."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class Gpu(Protocol):
    """What the rules read of a GPU model; catalog.Gpu fits. None is unknown."""

    @property
    def model(self) -> str: ...
    @property
    def architecture(self) -> str: ...
    @property
    def open_kernel_module(self) -> str: ...
    @property
    def open_first_driver(self) -> str | None: ...
    @property
    def min_driver(self) -> str | None: ...
    @property
    def min_driver_branch(self) -> int | None: ...
    @property
    def cuda_first(self) -> str | None: ...


class Rule(Protocol):
    """catalog.Rule fits."""

    @property
    def severity(self) -> str: ...
    @property
    def message(self) -> str: ...


class Cuda(Protocol):
    """catalog.Cuda fits."""

    @property
    def compat_floor_driver(self) -> str | None: ...


class Facts(Protocol):
    """catalog.software_facts() fits: rules by id, CUDA releases by version."""

    @property
    def rules(self) -> Mapping[str, Rule]: ...
    @property
    def cuda(self) -> Mapping[str, Cuda]: ...


@dataclass(frozen=True)
class Hit:
    """One rule that the stack breaks. `severity` is error or warning."""

    id: str
    severity: str
    message: str


Version = tuple[int, ...]


def version(text: str) -> Version:
    """ "580.95.05" -> (580, 95, 5); "12.8u1" -> (12, 8, 1). Raises ValueError for anything else."""
    if not re.fullmatch(r"\d+(\.\d+)*(u\d+)?", text):
        raise ValueError(f"{text!r} is not a version")
    return tuple(int(part) for part in re.split(r"[.u]", text))


def check(gpu: Gpu, *, driver: str, cuda: str, kernel_module: str, facts: Facts) -> list[Hit]:
    """Every rule that this GPU breaks with this driver ("580.95.05"), CUDA ("13.0") and kernel module (open, proprietary).

    An unknown fact (None) breaks no rule. Raises ValueError for a version that isn't one.
    """
    running, toolkit = version(driver), version(cuda)
    branch = running[0]
    floor = _floor(toolkit[0], facts)
    broken = {
        "DRV-001": gpu.architecture in ("Pascal", "Volta") and branch > 580,
        "DRV-002": gpu.architecture == "Kepler",
        "DRV-003": gpu.open_kernel_module == "not_supported" and kernel_module == "open",
        "DRV-004": gpu.open_kernel_module == "required" and kernel_module == "proprietary",
        "DRV-005": branch >= 620 and kernel_module == "proprietary",
        "DRV-006": gpu.model == "T4" and kernel_module == "open" and _older(running, gpu.open_first_driver, branch_only=True),
        "DRV-007": _older(running, gpu.min_driver) or (gpu.min_driver_branch is not None and branch < gpu.min_driver_branch),
        "CUD-001": _older(running, floor),
        "CUD-002": toolkit >= (13,) and gpu.architecture in ("Maxwell", "Pascal", "Volta"),
        "CUD-003": _older(toolkit, gpu.cuda_first),
    }
    return [Hit(id, facts.rules[id].severity, facts.rules[id].message) for id, is_broken in broken.items() if is_broken]


def _older(given: Version, least: str | None, *, branch_only: bool = False) -> bool:
    """Is `given` older than `least` (unknown: no)? `branch_only` compares the first number alone."""
    if least is None:
        return False
    return given[0] < version(least)[0] if branch_only else given < version(least)


def _floor(major: int, facts: Facts) -> str | None:
    """The oldest driver that runs any CUDA of this major version; None where no release of it is known."""
    floors = [cuda.compat_floor_driver for name, cuda in facts.cuda.items() if version(name)[0] == major]
    return min((floor for floor in floors if floor), key=version, default=None)
