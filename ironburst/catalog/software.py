"""Driver branches, the drivers that CUDA needs, and the compatibility rules (data only: ironburst/software applies them)."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from ironburst.catalog.errors import unknown
from ironburst.catalog.tables import document, integer, table, text


@dataclass(frozen=True)
class DriverBranch:
    """One branch of the NVIDIA driver. `eol` is "YYYY-MM"; None is unknown."""

    branch: int
    type: str | None
    eol: str | None
    cuda_major_max: int | None
    cuda_native: str | None
    kernel_modules: tuple[str, ...]
    example_versions: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Cuda:
    """One CUDA release: the driver it came with, and the oldest driver that can run its major version at all."""

    version: str
    min_driver: str | None
    compat_floor_driver: str | None
    compat_floor_branch: int | None
    source: str


@dataclass(frozen=True)
class Rule:
    """One rule of the rule file: `severity` is error (stop) or warning (report), `when` plain text over the data."""

    id: str
    severity: str
    scope: str
    when: str
    message: str
    source: str
    confidence: str
    data: str | None


@functools.cache
def driver_branches() -> dict[int, DriverBranch]:
    """All driver branches by number."""
    return {
        int(row["branch"]): DriverBranch(
            branch=int(row["branch"]),
            type=text(row, "type"),
            eol=text(row, "eol"),
            cuda_major_max=integer(row, "cuda_major_max"),
            cuda_native=text(row, "cuda_native"),
            kernel_modules=tuple(row["kernel_modules"].split("+")),
            example_versions=tuple(row["example_versions"].split()),
            source=row["source"],
        )
        for row in table("driver_branches.csv").rows
    }


def driver_branch(branch: int) -> DriverBranch:
    """The branch with this number; raises Unknown."""
    try:
        return driver_branches()[branch]
    except KeyError:
        raise unknown("driver branch", str(branch), map(str, driver_branches())) from None


@functools.cache
def cuda_releases() -> dict[str, Cuda]:
    """All CUDA releases by version ("12.8", "12.8u1")."""
    return {
        row["cuda"]: Cuda(
            version=row["cuda"],
            min_driver=text(row, "min_driver_linux"),
            compat_floor_driver=text(row, "compat_floor_driver"),
            compat_floor_branch=integer(row, "compat_floor_branch"),
            source=row["source"],
        )
        for row in table("cuda_min_driver.csv").rows
    }


def cuda(version: str) -> Cuda:
    """The CUDA release with this version; raises Unknown."""
    try:
        return cuda_releases()[version]
    except KeyError:
        raise unknown("CUDA version", version, cuda_releases()) from None


@functools.cache
def rules() -> tuple[Rule, ...]:
    """All rules, in the order of the file."""
    return tuple(Rule(**{"data": None} | each) for each in document("rules.yaml")["rules"])


def rule(rule_id: str) -> Rule:
    """The rule with this id ("DRV-001"); raises Unknown."""
    for each in rules():
        if each.id == rule_id:
            return each
    raise unknown("rule", rule_id, [each.id for each in rules()])


@dataclass(frozen=True)
class SoftwareFacts:
    """What the rules of ironburst/software are applied with."""

    rules: Mapping[str, Rule]
    cuda: Mapping[str, Cuda]


@functools.cache
def software_facts() -> SoftwareFacts:
    """The rules by id and the CUDA releases by version."""
    return SoftwareFacts({each.id: each for each in rules()}, cuda_releases())
