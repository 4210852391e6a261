"""Solves one exact set of versions per group of equal nodes.
Pure: the same groups, catalogue and previous sets give the same answer.

A partition is solved as one, because a job may run on any of its nodes: one driver, one NCCL, one CUDA major version.
What was locked before is kept while it fits (`previous`); only what must change changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from ironburst.software import packages, rules
from ironburst.software.model import ABSENT, Facts, Group, Hit, SoftwareSet, Wish
from ironburst.software.remedies import remedies
from ironburst.software.state import NodeState
from ironburst.software.versions import branch_of, older, version

OPEN_BY_DEFAULT_FROM = 560
SACKD_FROM = "23.11"
"""the first Slurm whose login nodes get their settings from the head"""
KNOWN = ("container_toolkit", "dcgm", "nccl")
DMA_BUF_NEEDS = ("NET-002",)


@dataclass(frozen=True)
class Solution:
    """What was solved: the groups and their sets by name, the conflicts (errors)
    that left groups without one, and warnings.
    """

    groups: Mapping[str, Group]
    sets: Mapping[str, SoftwareSet]
    conflicts: tuple[Hit, ...] = ()
    warnings: tuple[Hit, ...] = ()


def solve(
    groups: Sequence[Group],
    facts: Facts,
    previous: Mapping[str, SoftwareSet] | None = None,
    *,
    today: date | None = None,
) -> Solution:
    """Every group's set. `previous`: what was locked, by group name;
    empty solves with the newest versions that the wishes allow.
    """
    previous = previous or {}
    sets: dict[str, SoftwareSet] = {}
    conflicts: list[Hit] = []
    for group in groups:
        if group.gpu is None:
            broken = _of_scheduler(group, facts)
            conflicts += broken
            if not broken:
                sets[group.name] = _finish(group, _empty(group, facts), facts)
    for span in spans(groups):
        solved, broken = _solve_span(span, facts, previous)
        if broken:
            changes = remedies(span, lambda changed: not _solve_span(changed, facts, previous)[1], facts)
            broken = [replace(hit, remedies=changes) for hit in broken]
        sets |= solved
        conflicts += broken
    states = [state(group, sets[group.name], facts) for group in groups if group.gpu and group.name in sets]
    hits = [hit for node in states for hit in rules.check_node(node, facts, today=today)]
    hits += rules.check_fleet(states, facts)
    hits += [hit for group in groups if group.name in sets for hit in _not_listed(group, sets[group.name], facts)]
    conflicts += [hit for hit in hits if hit.severity == "error"]
    warnings = [hit for hit in hits if hit.severity != "error"]
    by_name = {group.name: group for group in groups}
    return Solution(by_name, sets, tuple(conflicts), tuple(warnings))


def spans(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """GPU groups by partition, in the order of the declaration."""
    names = dict.fromkeys(group.span for group in groups if group.gpu)
    for name in names:
        yield [group for group in groups if group.span == name and group.gpu]


# ---- one partition


def _solve_span(
    span: list[Group], facts: Facts, previous: Mapping[str, SoftwareSet]
) -> tuple[dict[str, SoftwareSet], list[Hit]]:
    candidates: dict[str, list[str]] = {}
    for group in span:
        given = driver_candidates(group, facts, previous)
        if isinstance(given, Hit):
            return {}, [given]
        candidates[group.name] = given
    first = span[0]
    joint = [driver for driver in candidates[first.name] if all(driver in given for given in candidates.values())]
    if not joint:
        asked = "; ".join(f"{group.name} asks for driver {group.wish.driver}" for group in span)
        return {}, [rules.hit("LCK-003", asked, facts, group=first.span)]
    best: tuple[int, list[Hit]] | None = None
    agreed = _one_nccl(span, facts, previous)
    for driver in joint:
        together = _one_cuda(agreed, driver, facts)
        sets: dict[str, SoftwareSet] = {}
        broken: list[Hit] = []
        for group in together:
            locked, elsewhere = previous.get(group.name), list(previous.values())
            sets[group.name], hits = solve_group(group, driver, facts, locked, elsewhere)
            broken += hits
        if not broken:
            broken = _disagree(span, sets, facts)
            return ({}, broken) if broken else (sets, [])
        if best is None or len(broken) < best[0]:
            best = (len(broken), broken)
    assert best is not None
    return {}, best[1]


def _one_nccl(span: list[Group], facts: Facts, previous: Mapping[str, SoftwareSet]) -> list[Group]:
    """Groups that name no NCCL take the one that another group of the partition names, or has locked."""
    known = facts.extra["known_versions"]["nccl"]["versions"]
    locked = [previous[group.name].nccl for group in span if group.name in previous]
    declared = [group.wish.nccl for group in span if group.wish.nccl]
    nccl = next(iter((*declared, *(release for release in locked if release in known))), None)
    return [replace(group, wish=replace(group.wish, nccl=group.wish.nccl or nccl)) for group in span]


def _one_cuda(span: list[Group], driver: str, facts: Facts) -> list[Group]:
    """Groups that name no CUDA take the one that another group of the partition names,
    or the oldest that the rule gives any of them.
    """
    declared = next((group.wish.cuda for group in span if group.wish.cuda), None)
    by_rule = [cuda for group in span if (cuda := default_cuda(group, driver, facts))]
    cuda = declared or min(by_rule, key=version, default=None)
    return [replace(group, wish=replace(group.wish, cuda=group.wish.cuda or cuda)) for group in span]


def _disagree(span: list[Group], sets: Mapping[str, SoftwareSet], facts: Facts) -> list[Hit]:
    for what in ("driver", "nccl", "cuda"):
        given = {name: _agreeing(what, chosen) for name, chosen in sets.items()}
        if len(set(given.values())) > 1:
            detail = f"{what} differs: " + ", ".join(f"{value} on {name}" for name, value in given.items())
            return [rules.hit("LCK-003", detail, facts, group=span[0].span)]
    return []


def _agreeing(what: str, chosen: SoftwareSet) -> str | None:
    """What must agree in a partition: of CUDA the major version."""
    value: str | None = getattr(chosen, what)
    return value.split(".")[0] if what == "cuda" and value else value


# ---- one group


def driver_candidates(group: Group, facts: Facts, previous: Mapping[str, SoftwareSet]) -> list[str] | Hit:
    """Full versions that the wish allows: what is locked for the group,
    what is locked elsewhere, then the newest first.
    """
    wish = group.wish.driver
    if wish is None:
        return rules.hit("LCK-004", "no driver", facts, group=group.name)
    branch = facts.branches.get(branch_of(wish))
    if branch is None:
        return rules.hit("LCK-001", f"driver {wish}", facts, group=group.name)
    if "." in wish:
        return [wish]
    known = sorted(branch.example_versions, key=version, reverse=True)
    if not known:
        return rules.hit("LCK-002", f"driver {wish}", facts, group=group.name)
    locked = [previous[group.name].driver] if group.name in previous else []
    locked += sorted({chosen.driver for chosen in previous.values() if chosen.driver}, key=version, reverse=True)
    return list(dict.fromkeys([*(driver for driver in locked if driver in known), *known]))


def default_module(group: Group, driver: str) -> str:
    """The kernel module that the GPU and the driver call for."""
    gpu, branch = group.gpu, branch_of(driver)
    assert gpu is not None
    if gpu.open_kernel_module == "required" or branch >= 620:
        return "open"
    if (
        gpu.open_kernel_module == "not_supported"
        or branch < OPEN_BY_DEFAULT_FROM
        or older(driver, gpu.open_first_driver)
    ):
        return "proprietary"
    return "open"


def default_cuda(group: Group, driver: str, facts: Facts) -> str | None:
    """The toolkit of the driver's own branch, or the newest that the GPU still knows."""
    gpu, branch = group.gpu, facts.branches.get(branch_of(driver))
    assert gpu is not None
    native = branch.cuda_native if branch else None
    if native and gpu.cuda_last and version(native)[0] > int(gpu.cuda_last.split(".")[0]):
        releases = [
            name for name in facts.cuda if name.split(".")[0] == gpu.cuda_last.split(".")[0] and "u" not in name
        ]
        return max(releases, key=version)
    return native


def solve_group(
    group: Group, driver: str, facts: Facts, previous: SoftwareSet | None = None, others: Sequence[SoftwareSet] = ()
) -> tuple[SoftwareSet, list[Hit]]:
    """The set of one GPU group with this driver, and the errors that it has."""
    wish = group.wish
    cuda = wish.cuda or default_cuda(group, driver, facts)
    broken = [] if cuda else [rules.hit("LCK-004", "no CUDA", facts, group=group.name)]
    broken += _of_scheduler(group, facts)
    if cuda and cuda not in {name.split("u")[0] for name in facts.cuda}:  # 11.0 is listed as 11.0u3 alone
        broken.append(rules.hit("LCK-001", f"CUDA {cuda}", facts, group=group.name))
    least = facts.extra["known_versions"]["container_toolkit"]["least"]
    if wish.container_toolkit and older(wish.container_toolkit, least):
        broken.append(rules.hit("LCK-007", f"container toolkit {wish.container_toolkit}", facts, group=group.name))
    module = default_module(group, driver) if wish.kernel_module == "auto" else wish.kernel_module
    chosen = replace(
        _empty(group, facts),
        driver=driver,
        driver_branch=branch_of(driver),
        kernel_module=module,
        cuda=cuda,
        persistenced=driver,
        fabric_manager=driver if group.board.nvswitch else None,
        nscq=driver if group.board.nvswitch else None,
        nvlsm=bool(group.board.nvlsm),
        imex=driver if group.board.imex else None,
        container_runtimes=wish.container_runtimes,
        gds=wish.gds,
        container_toolkit=wish.container_toolkit or _kept("container_toolkit", previous, others, facts),
        dcgm=wish.dcgm or _kept("dcgm", previous, others, facts),
        nccl=wish.nccl or _kept("nccl", previous, others, facts),
    )
    rdma = group.fabric if group.fabric in packages.own_rdma(facts) else wish.rdma
    rdma_version = _kept(rdma, previous if previous and previous.rdma == rdma else None, (), facts, "rdma_version")
    chosen = replace(chosen, rdma=rdma, rdma_version=rdma_version if group.fabric != "none" else None)
    chosen = replace(chosen, peer_memory=_peer_memory(group, chosen, facts))
    chosen = _finish(group, chosen, facts)
    broken += [hit for hit in rules.check_node(state(group, chosen, facts), facts) if hit.severity == "error"]
    return chosen, broken


def _kept(
    what: str, previous: SoftwareSet | None, others: Sequence[SoftwareSet], facts: Facts, attribute: str | None = None
) -> str | None:
    """The locked version while the catalogue knows it; else the one locked elsewhere; else the current one."""
    known = facts.extra["known_versions"].get(what)
    if known is None:
        return None
    current: str = known["current"]
    sets = [previous, *others] if previous else others
    locked: list[str | None] = [getattr(chosen, attribute or what) for chosen in sets]
    return next((given for given in locked if given in known["versions"]), current)


def _peer_memory(group: Group, chosen: SoftwareSet, facts: Facts) -> str:
    """auto: DMA-BUF where it can work, else nvidia-peermem where an OFED is there, else none."""
    if group.wish.peer_memory != "auto":
        return group.wish.peer_memory
    if group.fabric == "none":
        return "none"
    trial = state(group, replace(chosen, peer_memory="dma-buf"), facts)
    if not any(hit.id in DMA_BUF_NEEDS for hit in rules.check_node(trial, facts)):
        return "dma-buf"
    return "peermem" if chosen.rdma == "doca-ofed" else "none"


def _empty(group: Group, facts: Facts) -> SoftwareSet:
    """What every node has, also the head."""
    wish = group.wish
    sources = packages.slurm_sources(group.os, wish.slurm, facts) if wish.slurm else []
    return SoftwareSet(
        driver=None,
        driver_branch=None,
        kernel_module=None,
        fabric_manager=None,
        nscq=None,
        nvlsm=False,
        imex=None,
        persistenced=None,
        cuda=None,
        container_toolkit=None,
        container_runtimes=("containerd",) if wish.scheduler == "kubernetes" else (),
        dcgm=None,
        nccl=None,
        rdma="inbox",
        rdma_version=None,
        peer_memory="none",
        gds=False,
        kernel=wish.kernel,
        slurm=wish.slurm,
        kubernetes=wish.kubernetes,
        slurm_packages=wish.slurm_packages or next(iter(sources), "distribution"),
    )


def _of_scheduler(group: Group, facts: Facts) -> list[Hit]:
    """What is wrong with the scheduler's version: there is none, or nobody packages it for the system."""
    wish = group.wish
    name, given = ("Kubernetes", wish.kubernetes) if wish.scheduler == "kubernetes" else ("Slurm", wish.slurm)
    if not given:
        return [rules.hit("LCK-004", f"no {name}", facts, group=group.name)]
    if not wish.slurm:
        return []
    if group.login and older(wish.slurm, SACKD_FROM):
        detail = f"Slurm {wish.slurm} on a login node, which needs sackd ({SACKD_FROM} or newer)"
        return [rules.hit("LCK-006", detail, facts, group=group.name)]
    sources = packages.slurm_sources(group.os, wish.slurm, facts)
    if sources and wish.slurm_packages in (None, *sources):
        return []
    return [rules.hit("LCK-006", _lacks(group.os, wish, facts), facts, group=group.name)]


def _lacks(os: str, wish: Wish, facts: Facts) -> str:
    """Whose packages have no such release, and which ones they have."""
    table = facts.extra["slurm_packages"]
    own, built = table["distribution"]["releases"].get(os, ()), table["schedmd"]["releases"]
    theirs = f"{os}'s own packages have {', '.join(own) or 'none that is known'}"
    if wish.slurm_packages == "distribution":
        return f"Slurm {wish.slurm} from the distribution, and {theirs}"
    return f"Slurm {wish.slurm}, and SchedMD's packages are known for {', '.join(built)}; {theirs}"


def _finish(group: Group, chosen: SoftwareSet, facts: Facts) -> SoftwareSet:
    return replace(chosen, packages=packages.specs(group, chosen, facts))


def state(group: Group, chosen: SoftwareSet, facts: Facts) -> NodeState:
    """What the rules look at, of a group with a set."""
    wanted = packages.packages(group, chosen, facts)
    return NodeState(
        group=group.name,
        os=group.os,
        gpu=group.gpu,
        gpu_count=group.gpu_count,
        board=group.board,
        driver=chosen.driver,
        kernel_module=chosen.kernel_module,
        cuda=chosen.cuda,
        fabric_manager=chosen.fabric_manager or ABSENT,
        nvlsm=chosen.nvlsm,
        imex=chosen.imex or ABSENT,
        kernel=_kernel(group, chosen, facts),
        rdma=chosen.rdma if group.fabric != "none" else None,
        peer_memory=chosen.peer_memory,
        gds=chosen.gds,
        secure_boot=group.secure_boot,
        module_build="dkms",
        package_source="vendor",
        packages={package.name: package.version or "" for of_role in wanted.values() for package in of_role},
        mig=group.mig,
        mig_enabled=bool(group.mig),
    )


def _kernel(group: Group, chosen: SoftwareSet, facts: Facts) -> str | None:
    first_of_the_os: str | None = facts.extra["kernels"].get(group.os)
    return chosen.kernel or first_of_the_os


def _not_listed(group: Group, chosen: SoftwareSet, facts: Facts) -> Iterator[Hit]:
    """Full versions that a person wrote and the catalogue doesn't list."""
    branch = facts.branches.get(chosen.driver_branch or 0)
    if chosen.driver and branch and chosen.driver not in branch.example_versions:
        yield rules.hit("LCK-005", f"driver {chosen.driver}", facts, group=group.name)
    for key in KNOWN:
        given = getattr(chosen, key)
        if given and given not in facts.extra["known_versions"][key]["versions"]:
            yield rules.hit("LCK-005", f"{key} {given}", facts, group=group.name)
