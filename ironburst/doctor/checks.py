"""What a check of the doctor says, and how checks are run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar

State = Literal["ok", "warn", "fail", "unknown"]


@dataclass(frozen=True)
class CheckResult:
    """One thing that was looked at. `todo`: one sentence of what to do; empty where it is ok, and only there."""

    check: str  # quotas
    looked_at: str
    state: State  # unknown: it couldn't be asked, so nothing is promised
    seen: str
    todo: str = ""

    def __post_init__(self) -> None:
        if (self.state == "ok") == bool(self.todo):
            raise ValueError(f"{self.check}, {self.looked_at}: {self.state} with {self.todo or 'nothing'} to do")


class Unasked(Exception):
    """A question without an answer: no right, no network, no such service. `seen` and `todo` as a result's."""

    def __init__(self, seen: str, todo: str):
        super().__init__(f"{seen}; {todo}")
        self.seen, self.todo = seen, todo


Subject = TypeVar("Subject")
Check = Callable[[Subject], Iterator[CheckResult]]
"""A generator function of what is looked at, so a question is asked only when its finding is."""


def run(checks: Iterable[Check[Subject]], subject: Subject) -> Iterator[CheckResult]:
    """Every result as it comes."""
    for check in checks:
        yield from check(subject)


def run_after(
    first: Check[Subject], name: str, looked_at: str, checks: Iterable[Check[Subject]], subject: Subject
) -> Iterator[CheckResult]:
    """Every result as it comes. Where `first`, of that name, has no answer, nothing else is asked."""
    try:
        yield from first(subject)
    except Unasked as error:
        yield CheckResult(name, looked_at, "unknown", error.seen, error.todo)
        return
    yield from run(checks, subject)


def answered(check: str, looked_at: str, findings: Iterator[CheckResult]) -> Iterator[CheckResult]:
    """The results; a question in them that has no answer makes one that says unknown."""
    try:
        yield from findings
    except Unasked as error:
        yield CheckResult(check, looked_at, "unknown", error.seen, error.todo)


def judged(check: str, looked_at: str, wrong: Iterable[tuple[State, str, str]], fine: str) -> Iterator[CheckResult]:
    """A result for each thing that is wrong (its state, what was seen, what to do); `fine`: seen where nothing is."""
    found = [CheckResult(check, looked_at, state, seen, todo) for state, seen, todo in wrong]
    yield from found or [CheckResult(check, looked_at, "ok", fine)]
