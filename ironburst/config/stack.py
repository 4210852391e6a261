"""A stack as a whole: its declaration, its lock file and its secrets, looked at together. The software is solved here,
once: validation, lock and document go by the same solution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

from ironburst import catalog
from ironburst.config import lockfile
from ironburst.config import software as declared_software
from ironburst.config.checks import check, gpu_support, software
from ironburst.config.checks.aws import provider
from ironburst.config.checks.common import Findings, owned_nodes, schedulers
from ironburst.config.finding import ConfigError, Finding, path_of
from ironburst.config.load import from_value, settings, value_in
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import Kubernetes, Slurm
from ironburst.software.lock import LockError
from ironburst.software.solve import Solution
from ironburst.system import secrets


@dataclass(frozen=True)
class Stack:
    """A valid stack. `software`: the set of every group, as locked or (without a lock file) as solved just now;
    `warnings`: reported, and stop nothing.
    """

    config: ClusterConfig
    software: Solution
    warnings: list[Finding]


def load_valid(path: Path | str, *, now: datetime, resolve_secrets: bool = False) -> Stack:
    """The stack of a stack file and the lock beside it. Raises ConfigError with every error."""
    given = settings(Path(path))
    config = from_value(value_in(given, Path(path)))
    of_file = list(provider.beside(config, given, Path(path)))
    try:
        stack = valid(config, Path(path), now=now, resolve_secrets=resolve_secrets)
    except ConfigError as error:
        raise ConfigError([*of_file, *error.findings]) from None
    if any(finding.severity == "error" for finding in of_file):
        raise ConfigError([*of_file, *stack.warnings])
    return replace(stack, warnings=[*of_file, *stack.warnings])


def valid(config: ClusterConfig, stack_file: Path, *, now: datetime, resolve_secrets: bool = False) -> Stack:
    """The stack of a declaration; its lock is beside `stack_file`, which itself needn't exist.

    `now` decides whether a capacity block or a driver branch is over; `resolve_secrets`: references that don't resolve
    here are errors. Raises ConfigError with every error of the declaration, else with what is wrong with the lock.
    """
    solution: Solution | None = None
    of_lock: list[Finding] = []
    try:
        solution, of_lock = _solved(config, stack_file, now.date())
        of_software = [*software.findings(config, solution), *gpu_support.drivers(config, solution)]
    except catalog.Unknown:  # of hardware: the other checks say it
        of_software = list(software.profile(config))
    findings = check(config, now, of_software) + (
        list(secret_references(config, stack_file)) if resolve_secrets else []
    )
    for about in (findings, of_lock):
        if any(finding.severity == "error" for finding in about):
            raise ConfigError(about)
    assert solution is not None  # what the catalogue doesn't know is an error of the checks
    return Stack(config, solution, findings + of_lock)


def _solved(config: ClusterConfig, stack_file: Path, today: date) -> tuple[Solution, list[Finding]]:
    """The software, and what is wrong with the lock file. A lock that can't be read doesn't count."""
    try:
        plan = lockfile.plan(config, stack_file, today=today)
    except LockError as error:
        message = f"{error}; {lockfile.restore(stack_file)}"
        damaged = Finding(str(lockfile.path_of_lock(stack_file)), None, "lock", message)
        return declared_software.solved(config, today=today), [damaged]
    return plan.solution, list(_of_lock(plan, stack_file))


def _of_lock(plan: lockfile.LockPlan, stack_file: Path) -> Findings:
    """Whether there is a lock, and whether it fits the stack."""
    path, command = str(plan.path), f"`ironburst lock {stack_file}`"
    if plan.before is None:
        message = f"no versions are locked, so these were solved just now: run {command} and commit {plan.path.name}"
        yield Finding(path, None, "lock", message, "warning")
    elif plan.changes:
        more = f" and {len(plan.changes) - 1} more" if len(plan.changes) > 1 else ""
        message = f"doesn't fit the stack: {plan.changes[0]}{more}; run {command} and review what it writes"
        yield Finding(path, None, "lock", message)


def secret_references(config: ClusterConfig, stack_file: Path | None = None) -> Findings:
    """References that do not resolve here; `stack_file`: relative paths lie in its project. AWS Secrets Manager is not
    asked: validate needs no cloud.
    """
    references: dict[str, str] = {}
    for at, scheduler in schedulers(config):
        if scheduler.joins_with:
            key, joins_with = scheduler.joins_with
            references[at(key)] = joins_with
        if isinstance(scheduler, Slurm) and scheduler.bridge:
            references[at("bridge", "join_token")] = scheduler.bridge.join_token
            if scheduler.bridge.admin_kubeconfig:
                references[at("bridge", "admin_kubeconfig")] = scheduler.bridge.admin_kubeconfig
        if isinstance(scheduler, Kubernetes) and scheduler.admin_kubeconfig:
            references[at("admin_kubeconfig")] = scheduler.admin_kubeconfig
    references |= {at("bmc", "password"): nodes.bmc.password for at, _, nodes in owned_nodes(config) if nodes.bmc}
    if config.ssh.sudo_password:
        references[path_of("ssh", "sudo_password")] = config.ssh.sudo_password
    if config.users and config.users.directory and config.users.directory.bind_password:
        references[path_of("users", "directory", "bind_password")] = config.users.directory.bind_password
    references |= _of_monitoring(config)
    for path, reference in references.items():
        if not secrets.in_a_store(reference):
            try:
                secrets.resolve(reference, near=stack_file)
            except secrets.SecretError as error:
                yield Finding(path, reference, "secret", str(error))


def _of_monitoring(config: ClusterConfig) -> dict[str, str]:
    found = {path_of("monitoring", "tell", n, "secret"): each.secret for n, each in enumerate(config.monitoring.tell)}
    if config.monitoring.relay:
        found[path_of("monitoring", "relay", "password")] = config.monitoring.relay.password
    return {path: reference for path, reference in found.items() if reference}
