"""An EC2 in memory that behaves like the real one where it matters: client tokens, capacity, interruption."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace

from ironburst import ports
from ironburst.ports import Instance, InstanceTrouble, Interruption, LaunchRequest
from ironburst.wiring import clouds
from tests.fakes import dead_man
from tests.fakes.clock import FakeClock
from tests.fakes.slurm import FakeSlurm

TAGGED = ("pool", "market", "owner", "account", "usd_per_hour")  # what the tags say of an instance


@dataclass
class FakeInstance:
    instance: Instance
    node: str
    boots_at: float
    switch: dead_man.Switch | None = None
    ended_at: float | None = None


class FakeCloud:
    """EC2's side, by its own clock, which is right: capacity by (zone, market) or (type, zone, market), tokens, one
    error at a time on demand.
    """

    id_form, addresses = "i-{}", "10.90.0"
    boot_s = 4.0
    ended_shown_s = 3600.0  # EC2 shows ended instances for about an hour, then knows them no more
    call_s, launch_s = 0.0, 0.0  # what a call takes; launches side by side take as long as one
    wrong_clock_s = 300.0  # it refuses the calls of a clock that is further off

    def __init__(self, clock: FakeClock, slurm: FakeSlurm):
        self.clock, self.slurm = clock, slurm
        slurm.cloud = self
        self.images = {"/ironburst/lab/p5/image": "ami-1"}
        self.capacity: dict[tuple[str, ...], int] = {}  # missing: unlimited
        self.types: dict[str, str] = {}  # by launch template; missing: not told
        self.errors: list[ports.CloudError | None] = []  # of the next launches; None: no error
        self.under_way_s = 0.0  # for so long the cloud works at a launch, as Google does
        self.taken_back: list[ports.CloudError] = []  # how the next of these end, when they are over: with nothing
        self.refused: dict[str, ports.CloudError] = {}  # by token: those that ended so
        self.works: dict[str, float] = {}  # token of a launch under way -> when it is over
        self.lost_answers = 0  # of the next launches: they happen, the answer doesn't arrive
        self.all: dict[str, FakeInstance] = {}
        self.tokens: dict[str, tuple[LaunchRequest, list[str]]] = {}
        self.requests: list[LaunchRequest] = []
        self.queue: list[Interruption] = []
        self.hidden: set[str] = set()  # not shown by lists yet
        self.lost: set[str] = set()  # not shown by their ids either
        self.partial: list[int | None] = []  # of the next lists: only so many are shown (paging broke off); None: all
        self.broken_queues: set[str] = set()
        self.unlisted: ports.CloudError | None = None  # of DescribeInstances: by tags, ids and tokens
        self.protected: dict[str, ports.CloudError] = {}  # instances that can't be ended, and how EC2 says so
        self.until: dict[str, float] = {}  # by id, as `prolong` was told
        self.ill: list[InstanceTrouble] = []  # failed status checks and scheduled events
        self.most_at_once = 0  # launches
        self.spot_usd: dict[str, float] = {}  # what spot costs an hour now, by zone; missing: less than anybody offers
        self.no_spot_prices: ports.CloudError | None = None  # of DescribeSpotPriceHistory
        self.consoles: dict[str, str] = {}  # what a node's console shows, by node name; missing: nothing yet
        self.wrong_type = self.wrong_image = ""  # what the next launches give instead of what was asked for
        self.ids = itertools.count(1)

    def _settle(self) -> None:
        """Launches whose time is over have all their instances, or none."""
        for token in [token for token, over_s in self.works.items() if over_s <= self.clock.at]:
            del self.works[token]
            request, ids = self.tokens[token]
            if self.taken_back:
                self.tokens[token] = request, []
                self.refused[token] = self.taken_back.pop(0)
                for id in ids:
                    del self.all[id]
            for id in self.tokens[token][1]:
                if self.all[id].instance.alive:
                    self.all[id].instance = replace(self.all[id].instance, state="running")

    def booted(self, node: str) -> Instance | None:
        self._settle()
        now = self.clock.at
        return next(
            (f.instance for f in self.all.values() if f.node == node and f.instance.alive and now >= f.boots_at), None
        )

    def nodes_live(self) -> None:
        """The program of every rented node that has booted looks once a minute whether it is to end itself."""
        now = self.clock.at
        for id, fake in self.all.items():
            if fake.switch and fake.instance.alive and now >= fake.boots_at and fake.switch.ends(now, self.slurm):
                self.die(id, "Client.InstanceInitiatedShutdown")

    def alive(self) -> list[Instance]:
        self._settle()
        return [fake.instance for fake in self.all.values() if fake.instance.alive]

    def spot_costs(self, usd_per_hour: float) -> None:
        """Spot's price rises or falls: those who offered less are told that their instances go."""
        zones = {instance.zone for instance in self.alive()}
        self.spot_usd = dict.fromkeys(sorted(zones), usd_per_hour)
        for instance in self.alive():
            request, _ = self.tokens[instance.token]
            most = request.max_usd_per_hour
            if request.market == "spot" and most is not None and usd_per_hour > most:
                self.interrupt(instance.id)

    def interrupt(self, id: str, queue: str = "q") -> None:
        self.queue.append(Interruption(id, f"receipt-{id}", queue))

    def die(self, id: str, reason: str = "Server.InternalError") -> None:
        fake = self.all[id]
        taken = reason.startswith("Server.")  # EC2's word for its own doing
        fake.instance = replace(fake.instance, state="terminated", reason=reason, taken=taken)
        fake.ended_at = self.clock.at

    def at(self, address: str) -> FakeInstance | None:
        """Whose address it is; ended instances come last."""
        here = [fake for fake in self.all.values() if fake.instance.address == address]
        return max(here, key=lambda fake: fake.instance.alive, default=None)

    def _known(self, id: str) -> bool:
        ended_at = self.all[id].ended_at if id in self.all else 0.0
        return id not in self.lost and (ended_at is None or self.clock.at - ended_at < self.ended_shown_s)

    def _takes(self, seconds: float | None = None) -> None:
        if spent_s := self.call_s if seconds is None else seconds:
            self.clock.wait(spent_s)
        if abs(self.clock.ahead_s) > self.wrong_clock_s:
            raise ports.Refused("the request has expired", "RequestExpired")

    # ---- the port
    def image_id(self, parameter):
        self._takes()
        return self.images.get(parameter)

    def launch_all(self, requests):
        self._takes(self.launch_s)
        self.most_at_once = max(self.most_at_once, len(requests))
        answers = []
        for request in requests:
            try:
                answers.append(self.launch(request))
            except ports.CloudError as error:
                answers.append(error)
        return answers

    def launch(self, request):
        self.requests.append(request)
        self._settle()
        if error := self.errors.pop(0) if self.errors else None:
            raise error
        if request.token in self.tokens:
            before, ids = self.tokens[request.token]
            if before != request:
                raise ports.TokenMismatch("other parameters", "IdempotentParameterMismatch")
            if request.token in self.works:
                raise ports.UnderWay("the cloud works at it")
            if request.token in self.refused:
                raise self.refused[request.token]
            return [self.all[id].instance for id in ids]
        most, asked = request.max_usd_per_hour, self.spot_usd.get(request.zone, 0.0)
        if request.market == "spot" and most is not None and asked > most:
            raise ports.TooExpensive(f"spot costs {asked} now, above {most}", "SpotMaxPriceTooLow")
        place, kind = (request.zone, request.market), self.types.get(request.place.get("launch_template_id"), "")
        free = self.capacity.get((kind, *place), self.capacity.get(place, 99))
        used = sum(i.zone == request.zone and self.tokens[i.token][0].market == request.market for i in self.alive())
        if free - used < request.count:
            raise ports.InsufficientCapacity("no capacity", "InsufficientInstanceCapacity")
        said = json.loads(request.user_data)
        names, ids, now = said["nodes"], [], self.clock.at
        for index in range(request.count):
            id = self.id_form.format(next(self.ids))
            state = ports.LAUNCHING if self.under_way_s else "running"
            instance = Instance(
                id, index, state, f"{self.addresses}.{next(self.ids)}", request.zone, request.launch, request.token, now
            )
            instance = replace(instance, **{name: getattr(request, name) for name in TAGGED})
            shown = {"instance_type": self.wrong_type or kind, "image_id": self.wrong_image or request.image_id}
            instance = replace(instance, **shown)  # a request names no type: the template does
            self.all[id] = FakeInstance(
                instance, names[index], now + self.under_way_s + self.boot_s, dead_man.switch_of(said, names[index])
            )
            ids.append(id)
        self.tokens[request.token] = (request, ids)
        if self.under_way_s:
            self.works[request.token] = now + self.under_way_s
        if self.lost_answers:
            self.lost_answers -= 1
            raise ports.OutcomeUnknown("no answer")
        if request.token in self.works:
            raise ports.UnderWay("the cloud works at it")
        return [self.all[id].instance for id in ids]

    def _lists(self):
        self._takes()
        if self.unlisted:
            raise self.unlisted
        self._settle()

    def instances(self, cluster):
        self._lists()
        shown = [fake.instance for id, fake in self.all.items() if id not in self.hidden and self._known(id)]
        return shown[: self.partial.pop(0) if self.partial else None]

    def described(self, ids):
        self._lists()
        return [self.all[id].instance for id in ids if self._known(id)]

    def by_token(self, token):
        self._lists()
        if token in self.works:
            raise ports.UnderWay("the cloud works at it")
        if token in self.refused:
            return self.refused[token]
        shown = {id: fake.instance for id, fake in self.all.items() if id not in self.hidden and self._known(id)}
        return [instance for instance in shown.values() if instance.token == token]

    def console(self, instance_id):
        self._takes()
        if instance_id not in self.all:
            raise ports.Refused("no such instance", "InvalidInstanceID.NotFound")
        return self.consoles.get(self.all[instance_id].node, "")

    def terminate(self, ids):
        self._takes()
        for id in ids:
            if id in self.all and self.all[id].instance.alive and id not in self.protected:
                self.die(id, "Client.UserInitiatedShutdown")
        for id in self.protected.keys() & set(ids):
            raise self.protected[id]
        return {id for id in ids if id in self.all and not self.all[id].instance.alive}

    def prolong(self, until):
        self.until |= until

    def spot_prices(self, types):
        self._takes()
        if self.no_spot_prices:
            raise self.no_spot_prices
        return {(kind, zone): usd for zone, usd in self.spot_usd.items() for kind in types}

    def interruptions(self, queues):
        if broken := self.broken_queues & set(queues):
            raise ports.Refused(f"no queue {sorted(broken)}", "AWS.SimpleQueueService.NonExistentQueue")
        waiting = [each for each in self.queue if each.queue in queues]
        self._takes(self.call_s * (len(waiting) // 10 + 1))  # they come by tens
        return waiting

    def acknowledge(self, *interruptions):
        if interruptions:
            self._takes(self.call_s * (len(interruptions) // 10 + 1))
        receipts = {each.receipt for each in interruptions}
        self.queue = [each for each in self.queue if each.receipt not in receipts]

    def troubles(self, ids):
        self._takes()
        return [each for each in self.ill if each.instance_id in ids]


def connect_to(cloud, monkeypatch):
    """Let the command line reach this one as AWS, whatever the region."""
    row = replace(clouds.PROVIDERS["aws"], api=lambda region: cloud)
    monkeypatch.setitem(clouds.PROVIDERS, "aws", row)
