"""The message for each pending job: the only place that adds sentence, figures and alternatives to a verdict.

A verdict (ironburst.burst.lateness) or what came of renting (ironburst.burst.renting)
goes in; a `Wait` or an `Infeasible` comes out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ironburst.burst import explain
from ironburst.burst.alternatives import Alternatives, run_s
from ironburst.burst.cost import boot_s
from ironburst.burst.decision import Infeasible, Launch, Wait
from ironburst.burst.eligibility import Reason
from ironburst.burst.home import could_ever_fit
from ironburst.burst.lateness import Late, NotYet, NotYetCode
from ironburst.burst.limits import Limit
from ironburst.burst.policy import Policy
from ironburst.burst.renting import Impossible, Renting, RentingRefused
from ironburst.burst.reuse import Reused
from ironburst.burst.slots import Slot
from ironburst.burst.snapshot import Job, Lease, Node
from ironburst.burst.spot import Choice

# why a job that waits isn't rented for: words of `sentence.WHY_NOT`
_WHY_NOT_RENTED: dict[NotYetCode, str] = {
    "home_soon": "soon",
    "home_sooner": "sooner",
    "home_down": "limit",
    "deadline": "yet",
    "settling": "yet",
    "spot": "spot",
}


class Answers:
    """The answers of one decision. A job has one: a later one replaces it."""

    def __init__(self, policy: Policy, home: Sequence[Node], renting: Renting):
        """`home`: all nodes of home's, up or not."""
        self.infeasible: list[Infeasible] = []
        self._waits: dict[int, Wait] = {}
        self._policy, self._home, self._now_s = policy, home, renting.snapshot.now_s
        self._alternatives = Alternatives(renting)

    @property
    def waits(self) -> Iterable[Wait]:
        """In the order in which they were given."""
        return self._waits.values()

    # ---- one for each thing that can come of a job

    def damaged(self, job: int, text: str) -> None:
        """It can't be right, so it was left out."""
        self.infeasible.append(Infeasible(job, "damaged", text))

    def sent_to_pool(self, job: Job, partition: str) -> None:
        """It is in no home partition, so nobody rents for it."""
        home = self._policy.home_partition
        text = f"it was submitted to {partition}, where only the controller sends jobs: submit it to {home}"
        self.infeasible.append(Infeasible(job.id, "partition", text))

    def cannot_start(self, job: Job, reason: Reason) -> None:
        """No node would help it now."""
        code, text = reason
        self._wait(Wait(job.id, code, text, look_again_s=job.eligible_s if code == "begin" else None))

    def unstarted(self, job: Job) -> None:
        """Rented nodes were there for it, to no end."""
        said = f" ({job.reason})" if job.reason else ""
        text = f"rented nodes were open to it, and the scheduler didn't start it there{said}: none are rented for it"
        again = "or others like it for a day, or until they are changed" if job.alike else ""
        self._wait(Wait(job.id, "unstarted", f"{text} {again or 'until it is changed, or held and released'}"))

    def tried(self, job: Job, first: Job) -> None:
        """One like it has rented nodes, and whether such jobs start there isn't known yet."""
        name = first.called or str(first.id)
        text = f"job {name}, which asks for the same, is tried on rented nodes first: it is rented for when that starts"
        self._wait(Wait(job.id, "tried", text))

    def served(self, job: Job, leases: Sequence[Lease]) -> None:
        """It has rented nodes already."""
        coming = [lease.node for lease in leases if lease.state == "coming"]
        if not coming:
            self._widened(job, [lease.node for lease in leases])
            return
        missing = "" if len(coming) == len(leases) else f" ({explain.listed(coming)} not yet)"
        names = explain.listed(lease.node for lease in leases)
        self._wait(Wait(job.id, "coming", f"rented for it, to boot and pass the gate: {names}{missing}"))

    def not_yet(self, job: Job, verdict: NotYet) -> None:
        """It waits at home."""
        self._wait(
            Wait(
                job.id,
                verdict.code,
                self.why(job, verdict),
                look_again_s=verdict.look_again_s,
                rent_s=verdict.rent_s,
                start_s=_known(verdict.start_s),
                run_s=run_s(job),
                alternatives=self._alternatives.of_waiting(job, _WHY_NOT_RENTED[verdict.code]),
            )
        )

    def rented(self, job: Job, late: Late, why: str, got: Launch | Reused) -> None:
        """Nodes are launched for it, or it shares some; `why` is that of `late`."""
        if isinstance(got, Launch):
            text = f"being rented for it: {explain.listed(got.nodes)} ({got.market}); {why}"
            ready_s, usd, others = self._alternatives.of_rented(job, got, _known(late.start_s))
            self._wait(Wait(job.id, "renting", text, start_s=ready_s, usd=usd, run_s=run_s(job), alternatives=others))
        elif got.assign is None:
            text = f"it shares what is being rented: {_names(got.slots)}; {why}"
            ready_s = self._now_s + boot_s(got.slots[0].pool)
            self._wait(Wait(job.id, "renting", text, start_s=ready_s, run_s=run_s(job)))
        elif got.coming:
            self._wait(Wait(job.id, "coming", f"rented already, to boot and pass the gate: {_names(got.slots)}"))
        else:
            self._widened(job, [slot.node for slot in got.slots])

    def not_rented(self, job: Job, late: Late, why: str, what: RentingRefused | Impossible) -> None:
        """It stays at home though it is late; `why` is that of `late`."""
        if isinstance(what, Impossible):
            reasons = "; ".join(text for _, text in what.reasons)
            self.infeasible.append(Infeasible(job.id, what.reasons[0][0], f"{why}; but {reasons}"))
            return
        refusal = what.all
        self._wait(
            Wait(
                job.id,
                refusal.codes[0],
                f"{why}; worth renting for, but {refusal.text}",
                look_again_s=refusal.look_again_s,
                start_s=_known(late.start_s),
                run_s=run_s(job),
                alternatives=self._alternatives.of_refused(job, what.launching),
            )
        )

    def _widened(self, job: Job, nodes: Sequence[str]) -> None:
        names = explain.listed(nodes)
        text = f"it may start on {names}"
        if could_ever_fit(job, self._home):
            text += " or at home, whichever the scheduler finds first"
        self._wait(Wait(job.id, "widened", text))

    def _wait(self, wait: Wait) -> None:
        self._waits.pop(wait.job, None)
        self._waits[wait.job] = wait

    # ---- verdicts in words

    def why(self, job: Job, verdict: Late | NotYet) -> str:
        """The sentence of a verdict."""
        return self._why_late(job, verdict) if isinstance(verdict, Late) else self._why_not_yet(job, verdict)

    def _why_not_yet(self, job: Job, verdict: NotYet) -> str:
        match verdict.code:
            case "home_soon":
                predicted = self._predicted(job, verdict.start_s, verdict.limit)
                if verdict.limit.gpu_hours is None:
                    return f"{predicted}, within the wait limit of {explain.duration(verdict.limit.seconds)}"
                return f"{predicted}; {_may_wait(verdict.limit)}"
            case "home_sooner":
                predicted = self._predicted(job, verdict.start_s, verdict.limit)
                return f"{predicted}: sooner than a rented node, which takes {explain.duration(verdict.boot_s)} to boot"
            case "home_down":
                waited, allowed = explain.duration(self._now_s - job.since_s), explain.duration(verdict.limit.seconds)
                return f"{self._no_end(job)}; it has waited {waited} of {allowed}"
            case "deadline":
                late = self._too_late(job, verdict.start_s)
                return f"{late}; it isn't rented for before {explain.at(verdict.look_again_s)}"
            case "settling":
                assert verdict.because
                settle = explain.duration(self._policy.settle_s)
                late = self.why(job, verdict.because)
                return f"{late}; it isn't rented for before it has waited {settle}"
            case "spot":
                assert verdict.because and verdict.choice
                late, spare = self.why(job, verdict.because), explain.duration(verdict.choice.spare_s)
                there = "which is to be had but isn't worth it yet" if verdict.choice.there else "which isn't to be had"
                return f"{late}; it waits for spot, {there}, and can do so for {spare} until it has to be on demand"

    def _why_late(self, job: Job, verdict: Late) -> str:
        if verdict.choice:
            return f"{self._why_late(job, verdict._replace(choice=None))}{_by_slack(verdict.choice)}"
        match verdict.code:
            case "never_at_home":
                return f"it can never start at home: {self._never_at_home(job)}"
            case "home_down":
                waited, allowed = explain.duration(self._now_s - job.since_s), explain.duration(verdict.limit.seconds)
                return f"it has waited {waited}, over the limit of {allowed}, and {self._no_end(job)}"
            case "over_limit" if verdict.limit.gpu_hours is None:
                predicted = self._predicted(job, verdict.start_s, verdict.limit)
                return f"{predicted}, over the wait limit of {explain.duration(verdict.limit.seconds)}"
            case "over_limit" | "over_predicted_limit":
                predicted = self._predicted(job, verdict.start_s, verdict.limit)
                after = explain.duration(verdict.start_s - job.since_s)
                allowed = _may_wait(verdict.limit) if verdict.code == "over_limit" else _may_be_predicted(verdict.limit)
                return f"{predicted}, {after} after it was submitted; {allowed}"
            case "deadline":
                return self._too_late(job, verdict.start_s)
            case "last_call":
                last = f"a node that is rented after {explain.at(verdict.rent_by_s)} would be too late for its deadline"
                return f"it hasn't started at home yet, and {last}"
            case "prepaid":
                assert verdict.because
                return f"{self.why(job, verdict.because)}; but a node that is paid for anyway can take it sooner"
            case "makes_room":
                late = verdict.room_for
                assert late and verdict.because
                makes_room = f"the cheapest job before job {late.called or late.id}, for which it makes room"
                return f"{makes_room}: {self.why(late, verdict.because)}"

    def _predicted(self, job: Job, start_s: float, limit: Limit) -> str:
        if limit.gpu_hours is not None:
            return f"predicted to start at home at {explain.at(round(start_s))}"
        after = explain.duration(start_s - job.since_s)
        return f"predicted to start at home at {explain.at(start_s)}, {after} after it was submitted"

    def _too_late(self, job: Job, start_s: float) -> str:
        start, deadline = explain.at(start_s), explain.at(job.deadline_s or 0.0)
        return f"its predicted start at home, {start}, is too late to end by its deadline {deadline}"

    def _no_end(self, job: Job) -> str:
        if could_ever_fit(job, (node for node in self._home if node.open)):
            return "jobs without a time limit are on its nodes at home"
        return "its nodes at home are down or drained"

    def _never_at_home(self, job: Job) -> str:
        if job.over_home_limit:
            what = "time limit" if job.reason_word == "PartitionTimeLimit" else "number of nodes"
            return f"its {what} is over what partition {job.partitions[0]} allows"
        for what, name in (("GPUs", "gpus"), ("CPUs", "cpus"), ("MiB of memory", "memory_mb")):
            needs, has = getattr(job.each, name), max((getattr(node.total, name) for node in self._home), default=0)
            if needs > has:
                return f"it needs {needs} {what} per node, home's have {has} at most"
        none = f"it asks for GPUs of type {job.gpu_type}, home has none" if job.gpu_type else "no node there suits it"
        if job.gpu_type and all(node.gpu_types and job.gpu_type not in node.gpu_types for node in self._home):
            return none
        if job.nodes > (fit := sum(node.could_take(job) for node in self._home)):
            needs = f"{explain.plural(job.nodes, 'node')} of {explain.plural(job.each.gpus, 'GPU')}"
            of_type = f" of type {job.gpu_type}" if job.gpu_type else ""
            may = " that it may use" if job.excluded or job.passed_over else ""
            return f"it needs {needs}{of_type}, home has {fit}{may}"
        return none


def to_spot(choice: Choice) -> str:
    """Why spot is rented for a job that runs on demand."""
    return f"it runs on demand, and is to go on on spot{_by_slack(choice)}"


def _by_slack(choice: Choice) -> str:
    """Of a job that moves between spot and on demand."""
    spare = explain.duration(choice.spare_s)
    if choice.do == "spot":
        return f"; {spare} could be lost before it has to be on demand for its deadline"
    if choice.spare_s <= 0:
        return "; it has no time left to lose for its deadline, so it is on demand"
    return f"; {spare} could be lost before its deadline, but on demand is expected to cost less in the end"


def _may_wait(limit: Limit) -> str:
    return f"{_sized(limit)} may wait {explain.duration(limit.seconds)}"


def _may_be_predicted(limit: Limit) -> str:
    return f"{_sized(limit)} is rented for if it is predicted to wait over {explain.duration(limit.seconds)}"


def _sized(limit: Limit) -> str:
    size = limit.gpu_hours
    return "a job without a time limit" if size is None or math.isinf(size) else f"a job of {size:,.1f} GPU-hours"


def _names(slots: Sequence[Slot]) -> str:
    return explain.listed(slot.node for slot in slots)


def _known(start_s: float) -> float | None:
    return start_s if start_s < math.inf else None
