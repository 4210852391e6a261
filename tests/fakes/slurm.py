"""A Slurm in memory that behaves like the real one where it matters: power states, drains, permits, first-come
scheduling, requeue.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

from ironburst.burst import Job, Node, Resources, drains
from ironburst.burst.slots import Room
from ironburst.nodes import naming
from ironburst.ports import Claim, Observation, SchedulerError
from tests.fakes.clock import FakeClock

NODE = Resources(8, 2, 1000)
ASK = Resources(8, 1, 1000)
ORDINARY = ("", "None", "Resources", "PartitionDown")  # reasons of a job that only waits for its turn


@dataclass
class FakeNode:
    name: str
    partitions: tuple[str, ...]
    states: set[str]
    reason: str = ""
    address: str = ""
    since: float = 0.0  # of the power state
    comment: str = ""
    reason_by: str = ""  # who set the reason
    reason_s: float = 0.0  # when it was set
    gpu_types: dict[str, int] = field(default_factory=dict)

    def adds(self, words: str, now_s: float) -> None:
        """As set_node_reason of slurmctld: behind what somebody said before, and it signs for all of it."""
        self.reason = f"{self.reason} : {words}" if self.reason else words
        self.reason_by, self.reason_s = "slurm", now_s

    def record(self) -> Node:
        silent_s = self.reason_s if "DOWN" in self.states and self.reason.endswith("Not responding") else None
        states = tuple(sorted(self.states))
        said = (self.reason, self.address, self.reason_by, silent_s)
        return Node(self.name, self.partitions, NODE, states, *said, gpu_types=self.gpu_types)


@dataclass
class FakeJob:
    job: Job
    runs_s: float
    ends: float | None = None
    completes: float | None = None  # being requeued up to then
    done: str = ""
    started: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)


class FakeSlurm:
    """Slurm's side: `power_save_s` until a power_up is handled, `suspend_s` until a node is powered down."""

    power_save_s, suspend_s, requeue_s, complete_s = 1.0, 10.0, 121.0, 3.0
    silent_s, down_s = 100.0, 300.0  # after its instance's end a node doesn't respond, and is DOWN
    call_s = 0.0  # what a command takes, by ssh
    down = False  # slurmctld doesn't answer the nodes

    def __init__(self, clock: FakeClock, home: int = 2, burst: dict[str, list[str]] | None = None):
        self.clock, self.cloud = clock, None
        burst = burst if burst is not None else {"burst-p5": ["p5-1", "p5-2", "p5-3"]}
        self.nodes = {f"dgx{n:02d}": FakeNode(f"dgx{n:02d}", ("home",), {"IDLE"}) for n in range(1, home + 1)}
        for partition, names in burst.items():
            for name in names:
                self.nodes[name] = FakeNode(name, (partition,), {"IDLE", "CLOUD", "DRAIN", "POWERED_DOWN"}, "no lease")
        self.jobs: dict[int, FakeJob] = {}
        self.unfinished: dict[int, FakeJob] = {}  # of these
        self.permits: set[str] = set()
        self.forced: list[tuple[str, int]] = []  # jobs that a forced power-down hit
        self.ids = itertools.count(1)
        self.gate_fails: set[str] = set()
        self.claimed: tuple[str, float, str] | None = None  # the head's spool: owner, when, what it said
        self.beats = 0
        self.unreadable: list[str] = []  # what an answer says of what it couldn't read
        self.refused: dict[tuple[int, str], str] = {}  # (job, partition) that isn't started there, and its reason
        self.limits: list[dict] = []  # of the teams, as written
        self.counted: dict[int, str] = {}  # what jobs count in of their teams' shares
        self.comments: dict[int, str] = {}  # the administrator's, of jobs
        self.notices: list[tuple[int, str]] = []  # in jobs' own output
        self.maintained: set[str] = set()  # nodes in a maintenance reservation: no job starts there

    # ---- what users do
    def submit(self, nodes: int = 1, limit_s: float | None = 3600.0, runs_s: float = 600.0, **more) -> int:
        now = self.clock.now()
        job = Job(
            id=more.pop("id", None) or next(self.ids),
            name=more.pop("name", "train"),
            user=more.pop("user", "alice"),
            state="PENDING",
            submit_s=now,
            nodes=nodes,
            each=more.pop("each", ASK),
            time_limit_s=limit_s,
            partitions=more.pop("partitions", ("home",)),
            eligible_s=now,
            priority=1,
            **more,
        )
        self.jobs[job.id] = self.unfinished[job.id] = FakeJob(job, runs_s)
        self.schedule()
        return job.id

    def cancel(self, job: int) -> None:
        self._end(self.jobs[job], "CANCELLED")

    def change(self, job: int, **changes) -> None:
        """What a user or an admin does with `scontrol update`, hold and release."""
        self.jobs[job].job = replace(self.jobs[job].job, **changes)

    def refuse(self, job: int, reason: str, *partitions: str) -> None:
        """Slurm doesn't start it in these partitions (none: in no partition), and says why."""
        every = {name for node in self.nodes.values() for name in node.partitions}
        self.refused |= {(job, partition): reason for partition in partitions or sorted(every)}

    def state(self, job: int) -> str:
        return self.jobs[job].done or self.jobs[job].job.state

    def show(self, name: str) -> str:
        """As `scontrol --oneliner show node` tells a node of itself."""
        node = self.nodes[name]
        words = [("ALLOCATED" if self._on(name) else "IDLE"), *sorted(node.states - {"IDLE"})]
        comment = f" Comment={node.comment}" if node.comment else ""
        return f"NodeName={name} State={'+'.join(words)}{comment}"

    def steps(self, name: str) -> bool:
        """Whether processes of jobs run on a node, as its own /proc shows them."""
        return bool(self._on(name))

    # ---- Slurm's own doing
    def live(self) -> None:
        """Let pass what time brings: power transitions, boots, ends of jobs, starts."""
        now = self.clock.now()
        if self.cloud:
            self.cloud.nodes_live()
        for node in self.nodes.values():
            if "POWER_UP" in node.states and now - node.since >= self.power_save_s:
                if node.name in self.permits:
                    node.states = {"IDLE", "CLOUD", "POWERING_UP", "NOT_RESPONDING"} | ({"DRAIN"} & node.states)
                else:
                    self._power_down(node)
            if (
                "POWERING_UP" in node.states
                and self.cloud
                and node.name not in self.gate_fails
                and (up := self.cloud.booted(node.name))
            ):
                node.states -= {"POWERING_UP", "NOT_RESPONDING"}
                node.address = up.address or ""
            self._listen(node, now)
            busy = self._on(node.name) or "COMPLETING" in node.states  # by its own count, too
            if "POWER_DOWN" in node.states and "POWERING_DOWN" not in node.states and not busy:
                self._power_down(node)
            if "POWERING_DOWN" in node.states and now - node.since >= self.suspend_s:
                node.states = {"IDLE", "CLOUD", "DRAIN", "POWERED_DOWN"}
                node.address = ""
                held = drains.by_person(node.reason, node.reason_by)  # SuspendProgram keeps a person's words
                said = drains.HELD + node.reason.removeprefix(drains.HELD) if held else "no lease"
                node.reason, node.reason_by = said, "slurm"
        for job in list(self.unfinished.values()):
            if job.ends is not None and job.ends <= self.clock.at:  # a job's work knows no wrong clock
                self._end(job, "COMPLETED")
            if job.completes is not None and job.completes <= now:
                self._requeued(job)
        self.schedule()

    def _listen(self, node: FakeNode, now: float) -> None:
        """A node whose instance has ended answers no more."""
        fake = self.cloud.at(node.address) if self.cloud and node.address else None
        if not fake or fake.ended_at is None or any("POWERED" in state or "POWERING" in state for state in node.states):
            return
        if self.clock.at - fake.ended_at >= self.silent_s:
            node.states |= {"NOT_RESPONDING"}
        if self.clock.at - fake.ended_at >= self.down_s and "DOWN" not in node.states:
            node.states = (node.states - {"IDLE"}) | {"DOWN"}
            node.adds("Not responding", now)
            for job in self._on(node.name):
                self._requeued(job) if job.job.requeue else self._end(job, "NODE_FAIL")

    def schedule(self) -> None:
        now, nodes = self.clock.now(), self.nodes.values()
        # what a job had is its own until its epilog is over
        takes = (node for node in nodes if self._record(node).open and "COMPLETING" not in node.states)
        left = {node.name: self._left(node.name) for node in takes}
        members: dict[str, list[str]] = {}
        for node in nodes:
            for partition in node.partitions:
                members.setdefault(partition, []).append(node.name)
        for fake in sorted(self.unfinished.values(), key=lambda each: each.job.id):
            job = fake.job
            if not job.pending or job.held or (job.eligible_s or 0) > now:
                continue
            said = "Resources"
            for partition in job.partitions:  # a job never spans partitions; its reason is that of the last one tried
                said = self.refused.get((job.id, partition), "Resources")
                if partition == naming.WAITING_PARTITION:
                    said = "PartitionDown"
                if said != "Resources":
                    continue
                there = [name for name in members.get(partition, ()) if name in left and name not in job.excluded]
                free = [name for name in there if left[name].fits(job) and self._may(name, job)]
                if len(free) >= job.nodes:
                    on = tuple(free[: job.nodes])
                    for name in on:
                        left[name].take(job)
                    fake.ends = self.clock.at + fake.runs_s
                    fake.started.append((now, on))
                    end = now + job.time_limit_s if job.time_limit_s else None
                    fake.job = replace(job, state="RUNNING", on=on, start_s=now, end_s=end, reason="None")
                    break
            else:
                if job.reason != said and (job.reason in ORDINARY or job.reason in self.refused.values()):
                    fake.job = replace(job, reason=said)

    def _may(self, name: str, job: Job) -> bool:
        """Whether anything else than its room keeps a job from a node."""
        types = self.nodes[name].gpu_types
        return not types or not job.gpu_type or types.get(job.gpu_type, 0) >= job.each.gpus

    def _left(self, name: str) -> Room:
        return Room.of(NODE, [other.job for other in self._on(name)])

    def _record(self, node: FakeNode) -> Node:
        """As `scontrol show node` has it: a maintenance reservation is a flag beside the power's states."""
        record = node.record()
        return replace(record, states=(*record.states, "MAINTENANCE")) if node.name in self.maintained else record

    def _on(self, name: str) -> list[FakeJob]:
        return [fake for fake in self.unfinished.values() if name in fake.job.on]

    def _end(self, fake: FakeJob, how: str) -> None:
        fake.done, fake.ends, fake.job = how, None, replace(fake.job, on=())
        self.unfinished.pop(fake.job.id, None)

    def _power_down(self, node: FakeNode) -> None:
        node.states, node.since = {"IDLE", "CLOUD", "POWERING_DOWN"}, self.clock.now()

    def _takes(self, calls: int = 1) -> None:
        if self.call_s:
            self.clock.wait(calls * self.call_s)

    # ---- the port
    def observe(self) -> Observation:
        self._takes(3)
        self.live()
        jobs = tuple(fake.job for fake in self.unfinished.values())
        nodes = tuple(map(self._record, self.nodes.values()))
        return Observation(
            jobs,
            nodes,
            frozenset(self.permits),
            tuple(self.unreadable),
            dict(self.counted),
            comments=dict(self.comments),
        )

    def claim(self, owner, said, stale_s):
        self._takes()
        now, before = self.clock.now(), self.claimed
        age_s = now - before[1] if before else 0.0
        if owner and (before is None or before[0] == owner or age_s > stale_s):
            self.claimed = (owner, now, said or (before[2] if before else ""))
        return Claim(before[0], age_s, before[2]) if before else Claim("", 0.0, "")

    def put_permit(self, nodes):
        self._takes()
        self.permits |= set(nodes)

    def remove_permit(self, nodes):
        self._takes()
        self.permits -= set(nodes)

    def admit(self):
        return ()

    def power_up(self, nodes):
        self._takes()
        for name in nodes:
            node = self.nodes[name]
            if "POWERED_DOWN" in node.states:
                node.states, node.since = node.states | {"POWER_UP"}, self.clock.now()

    def resume(self, nodes):
        self._takes()
        for name in nodes:
            self.nodes[name].states -= {"DRAIN", "DOWN"}
            self.nodes[name].reason = self.nodes[name].reason_by = ""
        self.schedule()

    def drain(self, nodes, reason):
        self._takes()
        for name in nodes:
            self.nodes[name].states |= {"DRAIN"}
            self.nodes[name].reason, self.nodes[name].reason_by = reason, "root"

    def release(self, nodes):
        self._takes()
        for name in nodes:
            self.nodes[name].states |= {"POWER_DOWN", "DRAIN"}

    def abandon(self, nodes, reason):
        self._takes()
        for name in nodes:
            self.nodes[name].reason, self.nodes[name].reason_by = reason, "root"
            for fake in self._on(name):
                self.forced.append((name, fake.job.id))
                if fake.job.state == "COMPLETING" and fake.completes is None:  # it had ended already
                    self._end(fake, "COMPLETED")
                    continue
                self._end(fake, "NODE_FAIL") if not fake.job.requeue else self._requeued(fake)
            self._power_down(self.nodes[name])

    def heal(self, nodes):
        self._takes(2)
        for name in nodes:
            self.nodes[name].reason, self.nodes[name].reason_by = "no lease", "root"
            self.nodes[name].states = (self.nodes[name].states - {"DOWN"}) | {"IDLE", "DRAIN"}

    def place(self, job, partitions, excluded, *, begin_now=False):
        self._takes()
        fake = self.jobs[job]
        if fake.done or not fake.job.pending:
            raise SchedulerError(f"job {job} isn't pending")
        eligible = self.clock.now() if begin_now else fake.job.eligible_s
        fake.job = replace(fake.job, partitions=tuple(partitions), excluded=tuple(excluded), eligible_s=eligible)

    def limit(self, shares, now, gpus):
        self.limits.append(dict(now))

    def beat(self, nodes, at_s):
        """It stays in the node's record, also through power cycles."""
        self._takes()
        if unknown := set(nodes) - self.nodes.keys():
            raise SchedulerError(f"Invalid node name specified: {unknown}")
        for name, left_s in nodes.items():
            self.nodes[name].comment = f"ironburst,at={int(at_s)},left={int(left_s)}"
        self.beats += 1

    def comment(self, said):
        """Of a job that has gone it takes none. By what it calls them: a task of an array has a name of its own."""
        self._takes()
        ids = {fake.job.called or naming.called(id): id for id, fake in self.jobs.items() if not fake.done}
        self.comments |= {ids[called]: text for called, text in said.items() if called in ids}

    def notify(self, job, text):
        self._takes()
        if self.jobs[job].done or not self.jobs[job].job.on:
            raise SchedulerError(f"Invalid job id specified: {job}")
        self.notices.append((job, text))

    def end_job(self, job):
        self._takes()
        if self.jobs[job].done:
            raise SchedulerError(f"Kill job error on job id {job}: Invalid job id specified")
        self.cancel(job)

    def requeue(self, *jobs):
        self._takes()
        refused = {}
        for job in jobs:
            fake = self.jobs.get(job)
            if not fake or not fake.job.requeue:
                refused[job] = f"job {job} can't be requeued"
            elif not fake.done:  # `Incomplete`: nothing is said of one that has ended
                self._requeue(fake)
        return refused

    def _requeue(self, fake: FakeJob) -> None:
        """Its processes are ended first: it holds its nodes for a moment."""
        fake.ends, fake.completes = None, self.clock.now() + self.complete_s
        fake.job = replace(fake.job, state="COMPLETING", end_s=self.clock.now())

    def _requeued(self, fake: FakeJob) -> None:
        """As batch_requeue_fini of slurmctld: it is put off, unless its user has put it off for longer."""
        now, fake.completes, fake.ends = self.clock.now(), None, None
        fake.job = replace(
            fake.job,
            state="PENDING",
            on=(),
            start_s=None,
            end_s=None,
            submit_s=now,
            eligible_s=eligible if (eligible := fake.job.eligible_s or 0.0) > now else now + self.requeue_s,
            restarts=fake.job.restarts + 1,
        )
