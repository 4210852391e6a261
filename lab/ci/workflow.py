"""A workflow file as the runner takes it: every key is implemented, or the file is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from lab.ci.expressions import Refused

TOP = {"name", "on", "permissions", "jobs"}
EVENTS = {"pull_request", "push", "schedule", "workflow_dispatch"}
JOB = {"if", "strategy", "runs-on", "timeout-minutes", "environment", "concurrency", "permissions", "env", "steps"}
STRATEGY = {"fail-fast", "max-parallel", "matrix"}
STEP = {"name", "id", "if", "uses", "with", "run", "env"}
RIGHTS = {"contents", "id-token", "pull-requests", "issues", "actions"}
READS = {"none": 0, "read": 1, "write": 2}


@dataclass(frozen=True)
class Job:
    """One job with one row of its matrix."""

    workflow: str
    name: str
    matrix: Mapping[str, Any]
    said: Mapping[str, Any]
    rights: Mapping[str, str] = field(default_factory=dict)

    def may(self, what: str, how: str) -> bool:
        return READS[self.rights.get(what, "none")] >= READS[how]


@dataclass(frozen=True)
class Workflow:
    name: str
    events: Mapping[str, Any]
    jobs: tuple[tuple[Mapping[str, Any], tuple[Job, ...]], ...]
    """strategy of a job in the file, and the jobs that its matrix makes of it"""


def read(path: Path) -> Workflow:
    """Raises Refused."""
    said = yaml.safe_load(path.read_text())
    said = {("on" if key is True else key): each for key, each in said.items()}  # YAML 1.1 takes on for yes
    _known(said, TOP, str(path.name))
    events = said["on"] if isinstance(said["on"], dict) else dict.fromkeys(_list(said["on"]))
    _known(events, EVENTS, f"{path.name}: on")
    jobs = []
    for name, job in said["jobs"].items():
        where = f"{path.name}: jobs.{name}"
        _known(job, JOB, where)
        strategy = job.get("strategy", {})
        _known(strategy, STRATEGY, f"{where}.strategy")
        for n, step in enumerate(job["steps"]):
            _known(step, STEP, f"{where}.steps[{n}]")
            if ("run" in step) == ("uses" in step):
                raise Refused(f"{where}.steps[{n}] has both of run and uses, or none")
        # what permissions doesn't name, the token may not, as soon as it names anything
        rights = job.get("permissions", said.get("permissions", {}))
        if not isinstance(rights, dict):
            raise Refused(f"{where}: permissions {rights!r} isn't implemented: name the rights")
        _known(rights, RIGHTS, f"{where}.permissions")
        rows = tuple(Job(path.stem, name, row, job, rights) for row in _rows(strategy.get("matrix", {}), where))
        jobs.append((strategy, rows))
    return Workflow(path.stem, events, tuple(jobs))


def _rows(matrix: Mapping[str, Any], where: str) -> Iterator[Mapping[str, Any]]:
    _known(matrix, set(matrix) - {"include", "exclude"}, f"{where}.strategy.matrix")
    for values in product(*matrix.values()):
        yield dict(zip(matrix, values, strict=True))


def _list(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _known(given: Mapping[str, Any], known: set[str], where: str) -> None:
    if unknown := sorted(set(given) - known):
        raise Refused(f"{where}: {unknown[0]} isn't implemented by lab/ci")
