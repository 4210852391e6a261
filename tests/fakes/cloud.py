"""An EC2 in memory that behaves like the real one where it matters: client tokens, capacity, interruption."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from ironburst import ports
from ironburst.ports import Instance, Interruption, LaunchRequest
from tests.fakes.clock import FakeClock
from tests.fakes.slurm import FakeSlurm


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
        self.wrong_type = self.wrong_image = ""  # what the next launches give instead of what was asked for
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
            shown = {"instance_type": self.wrong_type, "image_id": self.wrong_image or request.image_id}
            instance = replace(instance, **shown)  # a request names no type: the template does
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
