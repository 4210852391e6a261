"""The two schedulers of one site as one (ironburst.ports.Scheduler): what is asked about a node or a job goes to the
one that has it, what is seen is put together (docs/adr/0039).

One that gives no answer is left out until it is asked again at the next claim, which each tick begins with: its jobs
and nodes aren't known then (`Observation.silent`), which says nothing about them, and the other goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ironburst.nodes.naming import SCHEDULERS, scheduler_of
from ironburst.ports import Claim, Node, Observation, Quota, Scheduler, SchedulerError, TeamShare

_Act = Callable[[Scheduler, list[str]], object]


class Both:
    """A Scheduler whose sides are known by their kinds."""

    def __init__(self, sides: Mapping[str, Scheduler], nodes: Mapping[str, str], failed: Mapping[str, str]):
        """`nodes`: of burst pools, declared: whose they are; `failed`: why there is no connection to a kind."""
        self._seen: dict[str, str] = {}  # nodes that aren't declared, or no more
        self._held = False  # this process has claimed the site
        self.declare(sides, nodes, failed)

    def declare(self, sides: Mapping[str, Scheduler], nodes: Mapping[str, str], failed: Mapping[str, str]) -> None:
        """As another document says."""
        self._sides, self._nodes, self._failed = dict(sides), dict(nodes), dict(failed)
        self._down = dict(failed)

    # ---- reading
    def observe(self) -> Observation:
        """Of all that answer. Raises SchedulerError where none does."""
        found: dict[str, Observation] = {}
        for kind, side in self._up():
            try:
                found[kind] = side.observe()
            except SchedulerError as error:
                self._down[kind] = str(error)
        if not found:
            raise SchedulerError(self._why())
        nodes, twice = self._merged(found)
        shown = {node.name for node in nodes}
        silent = [
            f"{SCHEDULERS[kind]} gives no answer ({why}): its jobs and nodes are left as they are, and nothing is "
            "rented for it"
            for kind, why in self._down.items()
        ]
        return Observation(
            jobs=tuple(job for each in found.values() for job in each.jobs),
            nodes=tuple(nodes),
            permits=frozenset().union(*(each.permits for each in found.values())),
            unreadable=(*silent, *twice, *(text for each in found.values() for text in each.unreadable)),
            silent=tuple(self._down),
            comments={job: text for each in found.values() for job, text in each.comments.items()},
            numbers={job: own for each in found.values() for job, own in each.numbers.items()},
            together={job: row for each in found.values() for job, row in each.together.items()},
            answered=frozenset({name for name, kind in self._nodes.items() if kind in found} | shown),
        )

    def _merged(self, found: Mapping[str, Observation]) -> tuple[list[Node], list[str]]:
        """A name that both have is the declared one's, or the first's; the other's is left out, and told."""
        nodes: dict[str, Node] = {}
        twice = []
        for kind, each in found.items():
            for node in each.nodes:
                whose = self._nodes.get(node.name, kind)
                if whose != kind or node.name in nodes:
                    first = SCHEDULERS[whose if whose != kind else self._seen[node.name]]
                    twice.append(
                        f"node {node.name} is in {SCHEDULERS[kind]}, too, and counts as {first}'s alone: a node is of "
                        "one scheduler, take it out of the other or rename it"
                    )
                    continue
                nodes[node.name] = node
                self._seen[node.name] = kind
        return list(nodes.values()), twice

    # ---- the controller's own
    def claim(self, owner: str, said: str, stale_s: float) -> Claim:
        """Of both, and nothing of one where the other is another controller's. A site that isn't ours yet is claimed
        when both answer: else two controllers could have one each, and spend the budget twice.
        """
        self._down = dict(self._failed)
        if owner and not self._held:
            there = self._claims("", "", stale_s)
            if held := [each for each in there if each.owner not in ("", owner) and each.age_s <= stale_s]:
                return min(held, key=lambda each: each.age_s)
            if self._down and any(each.owner != owner for each in there):
                raise SchedulerError(f"the site can't be claimed before both schedulers answer: {self._why()}")
        found = self._claims(owner, said, stale_s)
        self._held = bool(owner) and all(each.owner in ("", owner) or each.age_s > stale_s for each in found)
        return max(found, key=lambda each: (each.owner not in ("", owner), each.owner == owner, -each.age_s))

    def _claims(self, owner: str, said: str, stale_s: float) -> list[Claim]:
        found = []
        for kind, side in self._up():
            try:
                found.append(side.claim(owner, said, stale_s))
            except SchedulerError as error:
                self._down[kind] = str(error)
        if not found:
            raise SchedulerError(self._why())
        return found

    def put_permit(self, nodes: Sequence[str]) -> None:
        """Each at its own scheduler, as all that follows."""
        self._to(nodes, lambda side, names: side.put_permit(names))

    def remove_permit(self, nodes: Sequence[str]) -> None:
        """Of a node that nobody knows: at both."""
        nowhere = [name for name in nodes if not self._whose(name)]
        kinds = [*self._sides] if nowhere else []
        failed = self._tried(kinds, lambda kind: self._side(kind).remove_permit(nowhere))
        self._to([name for name in nodes if name not in nowhere], lambda side, names: side.remove_permit(names))
        _raise(failed)

    def admit(self) -> Sequence[str]:
        """At all that answer."""
        odd = list[str]()
        _raise(self._tried([kind for kind, _ in self._up()], lambda kind: odd.extend(self._side(kind).admit())))
        return odd

    def power_up(self, nodes: Sequence[str]) -> None:
        """See Scheduler."""
        self._to(nodes, lambda side, names: side.power_up(names))

    def resume(self, nodes: Sequence[str]) -> None:
        """See Scheduler."""
        self._to(nodes, lambda side, names: side.resume(names))

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """See Scheduler."""
        self._to(nodes, lambda side, names: side.drain(names, reason))

    def release(self, nodes: Sequence[str]) -> None:
        """See Scheduler."""
        self._to(nodes, lambda side, names: side.release(names))

    def abandon(self, nodes: Sequence[str], reason: str) -> None:
        """See Scheduler."""
        self._to(nodes, lambda side, names: side.abandon(names, reason))

    def heal(self, nodes: Sequence[str]) -> None:
        """See Scheduler."""
        self._to(nodes, lambda side, names: side.heal(names))

    def beat(self, nodes: Mapping[str, int], at_s: float) -> None:
        """See Scheduler."""
        self._to(list(nodes), lambda side, names: side.beat({name: nodes[name] for name in names}, at_s))

    def comment(self, said: Mapping[str, str]) -> None:
        """Only Slurm's jobs: pods have no such place."""
        self._side("slurm").comment(said)

    def notify(self, job: int, text: str) -> None:
        """At the job's own scheduler."""
        self._side(scheduler_of(job)).notify(job, text)

    def end_job(self, job: int) -> None:
        """At the job's own scheduler."""
        self._side(scheduler_of(job)).end_job(job)

    def limit(self, shares: Sequence[TeamShare], now: Mapping[str, Quota], gpus: int) -> None:
        """Not here: a share would be one of both sides, and each counts its own."""
        del shares, now, gpus
        raise SchedulerError("shares are of one scheduler, and this site has two")

    def place(self, job: int, partitions: Sequence[str], excluded: Sequence[str], *, begin_now: bool = False) -> None:
        """At the job's own scheduler."""
        self._side(scheduler_of(job)).place(job, partitions, excluded, begin_now=begin_now)

    def requeue(self, *jobs: int) -> dict[int, str]:
        """Each at its own scheduler."""
        refused: dict[int, str] = {}
        kinds = {kind: [job for job in jobs if scheduler_of(job) == kind] for kind in map(scheduler_of, jobs)}
        _raise(self._tried(kinds, lambda kind: refused.update(self._side(kind).requeue(*kinds[kind]))))
        return refused

    # ---- whose is what
    def _up(self) -> list[tuple[str, Scheduler]]:
        return [(kind, side) for kind, side in self._sides.items() if kind not in self._down]

    def _why(self) -> str:
        """Who gives no answer, and why."""
        return "; ".join(f"{SCHEDULERS[kind]}: {why}" for kind, why in self._down.items())

    def _side(self, kind: str) -> Scheduler:
        if kind in self._down or kind not in self._sides:
            raise SchedulerError(f"{SCHEDULERS[kind]} gives no answer: {self._down.get(kind, 'it is not declared')}")
        return self._sides[kind]

    def _whose(self, node: str) -> str | None:
        return self._nodes.get(node) or self._seen.get(node)

    def _to(self, nodes: Sequence[str], act: _Act) -> None:
        """Act at each scheduler on its nodes; one that fails keeps the other not. Raises the first failure."""
        names: dict[str | None, list[str]] = {}
        for name in nodes:
            names.setdefault(self._whose(name), []).append(name)
        unknown = names.pop(None, [])
        its = {kind: each for kind, each in names.items() if kind}
        failed = self._tried(its, lambda kind: act(self._side(kind), its[kind]))
        if unknown:
            failed.append(SchedulerError(f"no scheduler of the site has the nodes {', '.join(unknown)}"))
        _raise(failed)

    def _tried(self, kinds: Iterable[str], act: Callable[[str], object]) -> list[SchedulerError]:
        failed = []
        for kind in kinds:
            try:
                act(kind)
            except SchedulerError as error:
                failed.append(error)
        return failed


def _raise(failed: Sequence[SchedulerError]) -> None:
    if failed:
        raise failed[0]
