"""In-memory ports for tests of the controller: a clock that only tests move, a Slurm and an EC2 that behave like the
real ones where it matters (power states, drains, leases, first-come scheduling, requeue; client tokens, capacity,
interruption).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

from ironburst import ports
from ironburst.burst import Job, Node, Resources
from ironburst.ports import Instance, Interruption, LaunchRequest, Observation, SchedulerError, Uptime

T0 = 1_795_262_400.0  # 2026-11-21 12:00:00Z
NODE = Resources(8, 2, 1000)
ASK = Resources(8, 1, 1000)


class Crash(BaseException):
    """The controller dies here (kill -9): not an Exception, so nothing may catch it."""


class FakeClock:
    def __init__(self, now: float = T0):
        self.at = now

    def now(self) -> float:
        return self.at

    def uptime(self) -> Uptime:
        return Uptime("boot", self.at)

    def wait(self, seconds: float) -> bool:
        self.at += seconds
        return False


class Breaking:
    """A port whose n-th changing call dies, before or after it has done its work. Ports that share `counter` count
    together.
    """

    READS = ("observe", "instances", "image_id", "by_token", "interruptions")

    def __init__(self, port, counter, at: int | None = None, after: bool = False):
        self._port, self._counter, self._at, self._after = port, counter, at, after

    def __getattr__(self, name):
        method = getattr(self._port, name)

        def call(*args, **kwargs):
            number = None if name in self.READS else next(self._counter)
            if number is not None and number == self._at and not self._after:
                raise Crash(f"before {name}")
            result = method(*args, **kwargs)
            if number is not None and number == self._at:
                raise Crash(f"after {name}")
            return result

        return call


@dataclass
class FakeNode:
    name: str
    partitions: tuple[str, ...]
    states: set[str]
    reason: str = ""
    address: str = ""
    since: float = 0.0  # of the power state

    def record(self) -> Node:
        return Node(self.name, self.partitions, NODE, tuple(sorted(self.states)), self.reason, self.address)


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

    def __init__(self, clock: FakeClock, home: int = 2, burst: dict[str, list[str]] | None = None):
        self.clock, self.cloud = clock, None
        burst = burst if burst is not None else {"burst-p5": ["p5-1", "p5-2", "p5-3"]}
        self.nodes = {f"dgx{n:02d}": FakeNode(f"dgx{n:02d}", ("home",), {"IDLE"}) for n in range(1, home + 1)}
        for partition, names in burst.items():
            for name in names:
                self.nodes[name] = FakeNode(name, (partition,), {"IDLE", "CLOUD", "DRAIN", "POWERED_DOWN"}, "no lease")
        self.jobs: dict[int, FakeJob] = {}
        self.leases: set[str] = set()
        self.forced: list[tuple[str, int]] = []  # jobs that a forced power-down hit
        self.ids = itertools.count(1)
        self.gate_fails: set[str] = set()

    # ---- what users do
    def submit(self, nodes: int = 1, limit_s: float | None = 3600.0, runs_s: float = 600.0, **more) -> int:
        now = self.clock.now()
        job = Job(
            id=next(self.ids),
            name="train",
            user="alice",
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
        self.jobs[job.id] = FakeJob(job, runs_s)
        self.schedule()
        return job.id

    def cancel(self, job: int) -> None:
        self._end(self.jobs[job], "CANCELLED")

    def state(self, job: int) -> str:
        return self.jobs[job].done or self.jobs[job].job.state

    # ---- Slurm's own doing
    def live(self) -> None:
        """Let pass what time brings: power transitions, boots, ends of jobs, starts."""
        now = self.clock.now()
        for node in self.nodes.values():
            if "POWER_UP" in node.states and now - node.since >= self.power_save_s:
                if node.name in self.leases:
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
            if "POWER_DOWN" in node.states and "POWERING_DOWN" not in node.states and not self._on(node.name):
                self._power_down(node)
            if "POWERING_DOWN" in node.states and now - node.since >= self.suspend_s:
                node.states = {"IDLE", "CLOUD", "DRAIN", "POWERED_DOWN"}
                node.address = ""
        for job in self.jobs.values():
            if job.ends is not None and job.ends <= now and not job.done:
                self._end(job, "COMPLETED")
            if job.completes is not None and job.completes <= now:
                self._requeued(job)
        self.schedule()

    def schedule(self) -> None:
        now = self.clock.now()
        for fake in sorted(self.jobs.values(), key=lambda each: each.job.id):
            job = fake.job
            if fake.done or not job.pending or job.held or (job.eligible_s or 0) > now:
                continue
            for partition in job.partitions:  # a job never spans partitions
                free = [
                    n.name
                    for n in self.nodes.values()
                    if partition in n.partitions and n.name not in job.excluded and self._free(n, job)
                ]
                if len(free) >= job.nodes:
                    on = tuple(free[: job.nodes])
                    fake.ends = now + fake.runs_s
                    fake.started.append((now, on))
                    end = now + job.time_limit_s if job.time_limit_s else None
                    fake.job = replace(job, state="RUNNING", on=on, start_s=now, end_s=end)
                    break

    def _free(self, node: FakeNode, job: Job) -> bool:
        left = NODE
        for other in self._on(node.name):
            left = left - other.job.each
        return node.record().open and job.each.within(left)

    def _on(self, name: str) -> list[FakeJob]:
        return [fake for fake in self.jobs.values() if name in fake.job.on]

    def _end(self, fake: FakeJob, how: str) -> None:
        fake.done, fake.ends, fake.job = how, None, replace(fake.job, on=())

    def _power_down(self, node: FakeNode) -> None:
        node.states, node.since = {"IDLE", "CLOUD", "POWERING_DOWN"}, self.clock.now()

    # ---- the port
    def observe(self) -> Observation:
        self.live()
        jobs = tuple(fake.job for fake in self.jobs.values() if not fake.done)
        return Observation(jobs, tuple(node.record() for node in self.nodes.values()), frozenset(self.leases))

    def put_lease(self, nodes):
        self.leases |= set(nodes)

    def remove_lease(self, nodes):
        self.leases -= set(nodes)

    def power_up(self, nodes):
        for name in nodes:
            node = self.nodes[name]
            if "POWERED_DOWN" in node.states:
                node.states, node.since = node.states | {"POWER_UP"}, self.clock.now()

    def resume(self, nodes):
        for name in nodes:
            self.nodes[name].states -= {"DRAIN", "DOWN"}
        self.schedule()

    def drain(self, nodes, reason):
        for name in nodes:
            self.nodes[name].states |= {"DRAIN"}
            self.nodes[name].reason = reason

    def release(self, nodes):
        for name in nodes:
            self.nodes[name].states |= {"POWER_DOWN", "DRAIN"}

    def abandon(self, nodes, reason):
        for name in nodes:
            for fake in self._on(name):
                self.forced.append((name, fake.job.id))
                self._end(fake, "NODE_FAIL") if not fake.job.requeue else self._requeued(fake)
            self._power_down(self.nodes[name])

    def heal(self, nodes):
        for name in nodes:
            self.nodes[name].states = (self.nodes[name].states - {"DOWN"}) | {"IDLE", "DRAIN"}

    def place(self, job, partitions, excluded, *, begin_now=False):
        fake = self.jobs[job]
        if fake.done or not fake.job.pending:
            raise SchedulerError(f"job {job} isn't pending")
        eligible = self.clock.now() if begin_now else fake.job.eligible_s
        fake.job = replace(fake.job, partitions=tuple(partitions), excluded=tuple(excluded), eligible_s=eligible)

    def requeue(self, job):
        fake = self.jobs.get(job)
        if not fake or fake.done or not fake.job.requeue:
            raise SchedulerError(f"job {job} can't be requeued")
        self._requeue(fake)

    def _requeue(self, fake: FakeJob) -> None:
        """Its processes are ended first: it holds its nodes for a moment."""
        fake.ends, fake.completes = None, self.clock.now() + self.complete_s
        fake.job = replace(fake.job, state="COMPLETING")

    def _requeued(self, fake: FakeJob) -> None:
        now, fake.completes = self.clock.now(), None
        fake.job = replace(
            fake.job,
            state="PENDING",
            on=(),
            start_s=None,
            end_s=None,
            submit_s=now,
            eligible_s=now + self.requeue_s,
            restarts=fake.job.restarts + 1,
        )


@dataclass
class FakeInstance:
    instance: Instance
    node: str
    boots_at: float


class FakeCloud:
    """EC2's side: capacity by (zone, market), tokens, one error at a time on demand."""

    boot_s = 4.0

    def __init__(self, clock: FakeClock, slurm: FakeSlurm):
        self.clock, self.slurm = clock, slurm
        slurm.cloud = self
        self.images = {"/ironburst/lab/p5/image": "ami-1"}
        self.capacity: dict[tuple[str, str], int] = {}  # missing: unlimited
        self.errors: list[ports.CloudError | None] = []  # of the next launches; None: no error
        self.lost_answers = 0  # of the next launches: they happen, the answer doesn't arrive
        self.all: dict[str, FakeInstance] = {}
        self.tokens: dict[str, tuple[LaunchRequest, list[str]]] = {}
        self.requests: list[LaunchRequest] = []
        self.queue: list[Interruption] = []
        self.hidden: set[str] = set()  # not shown by describe calls yet
        self.ids = itertools.count(1)

    def booted(self, node: str) -> Instance | None:
        now = self.clock.now()
        return next(
            (f.instance for f in self.all.values() if f.node == node and f.instance.alive and now >= f.boots_at), None
        )

    def alive(self) -> list[Instance]:
        return [fake.instance for fake in self.all.values() if fake.instance.alive]

    def interrupt(self, id: str) -> None:
        self.queue.append(Interruption(id, f"receipt-{id}", "q"))

    def die(self, id: str, reason: str = "Server.InternalError") -> None:
        fake = self.all[id]
        fake.instance = replace(fake.instance, state="terminated", reason=reason)

    # ---- the port
    def image_id(self, parameter):
        return self.images.get(parameter)

    def launch(self, request):
        self.requests.append(request)
        if error := self.errors.pop(0) if self.errors else None:
            raise error
        if request.token in self.tokens:
            before, ids = self.tokens[request.token]
            if before != request:
                raise ports.TokenMismatch("other parameters", "IdempotentParameterMismatch")
            return [self.all[id].instance for id in ids]
        free = self.capacity.get((request.zone, request.market), 99)
        used = sum(i.zone == request.zone and self.tokens[i.token][0].market == request.market for i in self.alive())
        if free - used < request.count:
            raise ports.InsufficientCapacity("no capacity", "InsufficientInstanceCapacity")
        import json

        names, ids, now = json.loads(request.user_data)["nodes"], [], self.clock.now()
        for index in range(request.count):
            id = f"i-{next(self.ids)}"
            instance = Instance(
                id, index, "running", f"10.90.0.{next(self.ids)}", request.zone, request.launch, request.token, now
            )
            self.all[id] = FakeInstance(instance, names[index], now + self.boot_s)
            ids.append(id)
        self.tokens[request.token] = (request, ids)
        if self.lost_answers:
            self.lost_answers -= 1
            raise ports.OutcomeUnknown("no answer")
        return [self.all[id].instance for id in ids]

    def instances(self, cluster):
        return [fake.instance for id, fake in self.all.items() if id not in self.hidden]

    def by_token(self, token):
        return [fake.instance for fake in self.all.values() if fake.instance.token == token]

    def terminate(self, ids):
        for id in ids:
            if id in self.all and self.all[id].instance.alive:
                self.die(id, "Client.UserInitiatedShutdown")
        return {id for id in ids if id in self.all and not self.all[id].instance.alive}

    def interruptions(self, queues):
        return list(self.queue) if queues else []

    def acknowledge(self, interruption):
        self.queue = [each for each in self.queue if each.receipt != interruption.receipt]


def document(**burst):
    """A ClusterDocument of a lab-like site: two nodes at home, pool p5 of up to three."""
    from ironburst.document import parse

    settings = {
        "usd_per_month": 20000.0,
        "markets": ["spot", "on-demand"],
        "zones": ["us-east-1a", "us-east-1b"],
        "boot_s": 120,
        "idle_s": 60,
    }
    settings |= {
        "max_run_s": 86400,
        "wait_limit_s": 60,
        "cool_down_s": 30,
        "tick_s": 2,
        "nodes": ["p5-1", "p5-2", "p5-3"],
    } | burst
    pool = {
        "name": "p5",
        "partition": "burst-p5",
        "nodes": settings["nodes"],
        "instance_type": "p5.48xlarge",
        "roles": ["base"],
        "gpu": {"model": "H100 SXM5 80GB", "count": 8},
        "fabric": "efa",
        "fabric_links": 32,
        "slurm": {"cpus": 2, "memory_mb": 1000},
        "markets": settings["markets"],
        "usd_per_hour": {"on-demand": 55.04, "spot": 24.0},
        "price_as_of": "2026-11-01",
        "zones": [
            {"zone": zone, "subnet_id": f"subnet-{zone}", "launch_template_id": f"lt-{zone}"}
            for zone in settings["zones"]
        ],
        "image_parameter": "/ironburst/lab/p5/image",
        "interruption_queue_url": "q",
        "capacity_reservation_id": None,
        "boot_s": settings["boot_s"],
        "idle_s": settings["idle_s"],
        "max_run_s": settings["max_run_s"],
    }
    return parse(
        {
            "version": 1,
            "serial": settings.get("serial", 1),
            "cluster": "lab",
            "region": "us-east-1",
            "ssh": {"user": "root"},
            "software": {
                "driver": "580.95.05",
                "kernel_module": "open",
                "cuda": "13.0",
                "container_toolkit": "1.18.0",
                "container_runtime": "containerd",
                "rdma": "inbox",
                "slurm": "24.11",
            },
            "scheduler": {
                "kind": "slurm",
                "head": "head",
                "head_address": "10.78.0.10",
                "home_partition": "home",
                "munge_key": "aws-secretsmanager:ironburst/lab/munge-key",
                "shared_filesystem": "/shared",
            },
            "hosts": [],
            "pools": [pool],
            "budget": {"usd_per_month": settings["usd_per_month"]},
            "burst": {key: settings[key] for key in ("tick_s", "wait_limit_s", "cool_down_s")},
        }
    )
