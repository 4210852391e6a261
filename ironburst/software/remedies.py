"""What would mend a conflict: changes of one word of the declaration (else of two or three)
that are tried, so that each of them solves.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ironburst.software.model import Facts, Group
from ironburst.software.versions import version

Span = Sequence[Group]
Solves = Callable[[list[Group]], bool]
AT_MOST = {"driver": 2, "cuda": 1}
MOST = 5
TRIALS = 500
OTHER_MODULE = {"open": "proprietary", "proprietary": "open"}


@dataclass(frozen=True)
class Change:
    """One thing that may be written differently: as a person writes it, and what it makes of a group."""

    text: str
    applied: Callable[[Group], Group]


def _wishing(text: str, **fields: Any) -> Change:
    """A change of these fields of the group's wish."""
    return Change(text, lambda group: replace(group, wish=replace(group.wish, **fields)))


NO_MIG = Change("no mig", lambda group: replace(group, mig=()))


def remedies(span: Span, solves: Solves, facts: Facts) -> tuple[str, ...]:
    """Texts as a person would write them: `driver: 580`, `cuda: 12.9`. Empty: no change that was tried solves it.

    Single changes look at every branch and release of the catalogue; changes of two or three at the branches in support
    and the newest release of each CUDA major version.
    """
    span = [_newest(group, facts) for group in span]
    switches = _switches(span, facts)
    trials = itertools.count()
    for size in (1, 2, 3):
        choices = {
            "driver": list(_drivers(span, facts, size > 1)),
            "cuda": list(_cudas(span, facts, size > 1)),
            **switches,
        }
        solving: list[str] = []
        for keys in itertools.combinations(choices, size):
            left = min(AT_MOST.get(key, 1) for key in keys)
            for picked in itertools.product(*(choices[key] for key in keys)):
                if not left or next(trials) > TRIALS:
                    break
                if solves(_changed(span, picked)):
                    solving.append(" and ".join(change.text for change in picked))
                    left -= 1
        if solving:
            return tuple(solving[:MOST])
    return tuple(_rules_alone(span, solves, facts))


def _newest(group: Group, facts: Facts) -> Group:
    """The group with its branch's newest version: what that can't mend, an older one hardly does."""
    branch = facts.branches.get(int(group.wish.driver)) if group.wish.driver and group.wish.driver.isdigit() else None
    if branch is None or not branch.example_versions:
        return group
    return replace(group, wish=replace(group.wish, driver=max(branch.example_versions, key=version)))


def _drivers(span: Span, facts: Facts, supported: bool) -> Iterator[Change]:
    """Branches in support first (long-term ones before others), then the newest."""
    given = {group.wish.driver for group in span}
    order = sorted(
        facts.branches.values(),
        key=lambda branch: (branch.status != "supported", branch.type != "LTSB", -branch.branch),
    )
    for branch in order:
        newest = max(branch.example_versions, key=version, default=None)
        if newest and given != {newest} and (branch.status == "supported" or not supported):
            past = " (past its end of life)" if branch.status == "eol" else ""
            yield _wishing(f"driver: {branch.branch}{past}", driver=newest)


def _cudas(span: Span, facts: Facts, newest: bool) -> Iterator[Change]:
    """Releases, the newest first; `newest`: of each major version only that one."""
    given, majors = {group.wish.cuda for group in span}, set()
    for name in sorted((name for name in facts.cuda if "u" not in name), key=version, reverse=True):
        major = name.split(".")[0]
        if given != {name} and not (newest and major in majors):
            yield _wishing(f"cuda: {name}", cuda=name)
        majors.add(major)


def _switches(span: Span, facts: Facts) -> dict[str, list[Change]]:
    """Key of the declaration: other values for it, where the partition's groups say one."""
    wishes = [group.wish for group in span]
    switches: dict[str, list[Change]] = {}
    modules = [wish.kernel_module for wish in wishes if wish.kernel_module != "auto"]
    if modules:
        switches["kernel_module"] = [
            _wishing(f"kernel_module: {module}", kernel_module=module)
            for module in (*dict.fromkeys(OTHER_MODULE[module] for module in modules), "auto")
        ]
    if len(given := dict.fromkeys(wish.nccl for wish in wishes)) > 1:
        switches["nccl"] = [_wishing(f"nccl: {nccl}", nccl=nccl) for nccl in given if nccl]
    scheduler = wishes[0].scheduler
    if any(getattr(wish, scheduler) is None for wish in wishes):
        releases = dict.fromkeys(profile[scheduler] for profile in facts.extra["profiles"].values())
        switches[scheduler] = [_wishing(f"{scheduler}: {release}", **{scheduler: release}) for release in releases]
    if any(wish.peer_memory != "auto" for wish in wishes):
        switches["peer_memory"] = [_wishing("peer_memory: auto", peer_memory="auto")]
    if any(wish.peer_memory == "peermem" and wish.rdma == "inbox" for wish in wishes):
        switches["rdma"] = [_wishing("rdma: doca-ofed", rdma="doca-ofed")]
    if any(wish.gds for wish in wishes):
        switches["gds"] = [_wishing("gds: false", gds=False)]
    if any(group.mig for group in span):
        switches["mig"] = [NO_MIG]
    return switches


def _rules_alone(span: Span, solves: Solves, facts: Facts) -> Iterator[str]:
    """The last resort: a driver in support, and everything else left to the rules."""
    scheduler = span[0].wish.scheduler
    release = getattr(span[0].wish, scheduler) or next(iter(facts.extra["profiles"].values()))[scheduler]
    own = {scheduler: release}
    rest = _wishing("", cuda=None, kernel_module="auto", peer_memory="auto", gds=False, nccl=None, **own)
    for driver in _drivers(span, facts, True):
        if solves(_changed(span, (driver, rest, NO_MIG))):
            yield f"{driver.text}, {scheduler}: {release} and nothing else of software (no mig)"
            return


def _changed(span: Span, picked: Sequence[Change]) -> list[Group]:
    return [functools.reduce(lambda changed, change: change.applied(changed), picked, group) for group in span]
