"""Driver branches and their security bulletins, CUDA, MIG profiles, package names, profiles, compatibility rules.
Data only: ironburst/software applies them.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from ironburst.catalog.errors import look_up
from ironburst.catalog.tables import Row, document, filled, table, text


@dataclass(frozen=True)
class DriverBranch:
    """One branch of the NVIDIA driver. `eol` is "YYYY-MM"; None is unknown."""

    branch: int
    type: str | None
    status: str
    """supported, eol or unknown, at the data's date"""
    eol: str | None
    cuda_major_max: int | None
    cuda_native: str | None
    kernel_modules: tuple[str, ...]
    example_versions: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Bulletin:
    """What one of NVIDIA's security bulletins says of one driver branch on Linux, for data centre GPUs: drivers of the
    branch older than `fixed` have its `cves`, of which the worst has `cvss_max`. A branch without an entry is unknown.
    """

    bulletin: str
    updated: str
    """YYYY-MM-DD"""
    branch: int
    fixed: str
    cves: tuple[str, ...]
    cvss_max: float | None
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


@dataclass(frozen=True)
class MigProfile:
    """One MIG profile of the GPUs with these PCI ids. None is unknown."""

    gpu: str
    pci_device_ids: tuple[str, ...]
    profile: str
    memory_gb: int | None
    compute_slices: int | None
    max_instances: int | None
    config_name: str | None
    source: str


@functools.cache
def driver_branches() -> dict[int, DriverBranch]:
    """All driver branches by number."""
    return {int(row["branch"]): _branch(row) for row in table("driver_branches.csv").rows}


def _branch(row: Row) -> DriverBranch:
    return filled(
        DriverBranch,
        row,
        status=text(row, "status_2026_11_21") or "unknown",
        kernel_modules=tuple(row["kernel_modules"].split("+")),
        example_versions=tuple(row["example_versions"].split()),
    )


def driver_branch(branch: int) -> DriverBranch:
    """The branch with this number; raises Unknown."""
    return look_up("driver branch", branch, driver_branches())


@functools.cache
def driver_bulletins() -> tuple[Bulletin, ...]:
    """All entries, oldest bulletin first."""
    return tuple(filled(Bulletin, row) for row in table("driver_bulletins.csv").rows)


@functools.cache
def cuda_releases() -> dict[str, Cuda]:
    """All CUDA releases by version ("12.8", "12.8u1")."""
    return {
        row["cuda"]: filled(Cuda, row, version=row["cuda"], min_driver=text(row, "min_driver_linux"))
        for row in table("cuda_min_driver.csv").rows
    }


def cuda(version: str) -> Cuda:
    """The CUDA release with this version; raises Unknown."""
    return look_up("CUDA version", version, cuda_releases())


@functools.cache
def mig_profiles() -> tuple[MigProfile, ...]:
    """All MIG profiles; the file's rows without one (GPUs without MIG, names not sourced) are left out."""
    rows = table("mig_profiles.csv").rows
    return tuple(filled(MigProfile, row) for row in rows if row["profile"] not in ("", "none"))


@functools.cache
def rules() -> tuple[Rule, ...]:
    """All rules, in the order of the file."""
    return _rules_of("rules.yaml")


@functools.cache
def lock_rules() -> tuple[Rule, ...]:
    """The version lock's own rules (LCK-...)."""
    return _rules_of("lock_rules.yaml")


def _rules_of(name: str) -> tuple[Rule, ...]:
    return tuple(Rule(**{"data": None} | given) for given in document(name)["rules"])


def rule(rule_id: str) -> Rule:
    """The rule with this id ("DRV-001"); raises Unknown."""
    return look_up("rule", rule_id, _rules_by_id())


@functools.cache
def _rules_by_id() -> dict[str, Rule]:
    return {rule.id: rule for rule in (*rules(), *lock_rules())}


@functools.cache
def package_names() -> Mapping[str, Any]:
    """Names of NVIDIA's packages per operating system (package_names.yaml)."""
    names: Mapping[str, Any] = document("package_names.yaml")
    return names


@functools.cache
def software_extra() -> Mapping[str, Any]:
    """Profiles, versions that a lock may hold, the distributions' packages and kernels (software.yaml)."""
    data: Mapping[str, Any] = document("software.yaml")
    return data


def profiles() -> Mapping[str, Mapping[str, Any]]:
    """What `profile:` in a stack file stands for, by name."""
    by_name: Mapping[str, Mapping[str, Any]] = software_extra()["profiles"]
    return by_name


def profile(name: str) -> Mapping[str, Any]:
    """The profile with this name ("training-2026"); raises Unknown."""
    return look_up("profile", name, profiles())


@functools.cache
def software_date() -> date:
    """The newest date of the data that the lock is solved with."""
    tables = [table(name) for name in ("driver_branches.csv", "cuda_min_driver.csv", "gpus.csv", "mig_profiles.csv")]
    return max(data.as_of for data in tables if data.as_of)


@dataclass(frozen=True)
class SoftwareFacts:
    """What ironburst/software works with."""

    rules: Mapping[str, Rule]
    cuda: Mapping[str, Cuda]
    branches: Mapping[int, DriverBranch]
    bulletins: tuple[Bulletin, ...]
    mig_profiles: tuple[MigProfile, ...]
    package_names: Mapping[str, Any]
    extra: Mapping[str, Any]


@functools.cache
def software_facts() -> SoftwareFacts:
    """The rules by id, CUDA releases by version, driver branches by number, security bulletins,
    MIG profiles, package names and the rest.
    """
    return SoftwareFacts(
        rules=_rules_by_id(),
        cuda=cuda_releases(),
        branches=driver_branches(),
        bulletins=driver_bulletins(),
        mig_profiles=mig_profiles(),
        package_names=package_names(),
        extra=software_extra(),
    )
