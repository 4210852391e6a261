"""What would mend a conflict: changes of one word of the declaration (else of two or three) that are tried, so that
each of them solves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ironburst.software.model import Facts, Group
from ironburst.software.versions import version

Span = Sequence[Group]
Solves = Callable[[list[Group]], bool]
Change = tuple[str, dict[str, object]]
"""what to write, and the fields of Wish (or `mig` of Group) that it changes"""
AT_MOST = {"driver": 2, "cuda": 1}
MOST = 5
TRIALS = 500


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
        found: list[str] = []
        for keys in itertools.combinations(choices, size):
            left = min(AT_MOST.get(key, 1) for key in keys)
            for picked in itertools.product(*(choices[key] for key in keys)):
                if not left or next(trials) > TRIALS:
                    break
                if solves(_changed(span, picked)):
                    found.append(" and ".join(text for text, _ in picked))
                    left -= 1
        if found:
            return tuple(found[:MOST])
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
        facts.branches.values(), key=lambda one: (one.status != "supported", one.type != "LTSB", -one.branch)
    )
    for branch in order:
        newest = max(branch.example_versions, key=version, default=None)
        if newest and given != {newest} and (branch.status == "supported" or not supported):
            text = f"driver: {branch.branch}" + ("" if branch.status != "eol" else " (past its end of life)")
            yield text, {"driver": newest}


def _cudas(span: Span, facts: Facts, newest: bool) -> Iterator[Change]:
    """Releases, the newest first; `newest`: of each major version only that one."""
    given, majors = {group.wish.cuda for group in span}, set()
    for name in sorted((name for name in facts.cuda if "u" not in name), key=version, reverse=True):
        major = name.split(".")[0]
        if given != {name} and not (newest and major in majors):
            yield f"cuda: {name}", {"cuda": name}
        majors.add(major)


def _switches(span: Span, facts: Facts) -> dict[str, list[Change]]:
    wishes = [group.wish for group in span]
    found: dict[str, list[Change]] = {}
    if any(wish.kernel_module != "auto" for wish in wishes):
        others = {"open": "proprietary", "proprietary": "open"}
        found["kernel_module"] = [
            (f"kernel_module: {other}", {"kernel_module": other})
            for other in dict.fromkeys(others[wish.kernel_module] for wish in wishes if wish.kernel_module != "auto")
        ] + [("kernel_module: auto", {"kernel_module": "auto"})]
    if len(given := dict.fromkeys(wish.nccl for wish in wishes)) > 1:
        found["nccl"] = [(f"nccl: {one}", {"nccl": one}) for one in given if one]
    if any(wish.slurm is None for wish in wishes):
        releases = dict.fromkeys(profile["slurm"] for profile in facts.extra["profiles"].values())
        found["slurm"] = [(f"slurm: {one}", {"slurm": one}) for one in releases]
    if any(wish.peer_memory != "auto" for wish in wishes):
        found["peer_memory"] = [("peer_memory: auto", {"peer_memory": "auto"})]
    if any(wish.peer_memory == "peermem" and wish.rdma == "inbox" for wish in wishes):
        found["rdma"] = [("rdma: doca-ofed", {"rdma": "doca-ofed"})]
    if any(wish.gds for wish in wishes):
        found["gds"] = [("gds: false", {"gds": False})]
    if any(group.mig for group in span):
        found["mig"] = [("no mig", {"mig": ()})]
    return found


def _rules_alone(span: Span, solves: Solves, facts: Facts) -> Iterator[str]:
    """The last resort: a driver in support, and everything else left to the rules."""
    rest = {"cuda": None, "kernel_module": "auto", "peer_memory": "auto", "gds": False, "nccl": None, "mig": ()}
    slurm = span[0].wish.slurm or next(iter(facts.extra["profiles"].values()))["slurm"]
    for text, change in _drivers(span, facts, True):
        if solves(_changed(span, [("", {**change, **rest, "slurm": slurm})])):
            yield f"{text}, slurm: {slurm} and nothing else of software (no mig)"
            return


def _changed(span: Span, picked: Sequence[Change]) -> list[Group]:
    fields: dict[str, object] = {}
    for _, change in picked:
        fields |= change
    wish = {key: value for key, value in fields.items() if key != "mig"}
    mig = {"mig": ()} if "mig" in fields else {}
    return [replace(group, wish=replace(group.wish, **wish), **mig) for group in span]
