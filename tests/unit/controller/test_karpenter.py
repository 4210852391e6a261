"""Karpenter inside the budget: what it rents is counted, what it may rent is set aside, and its limits follow."""

import dataclasses
import random

import pytest

from ironburst.burst.decision import Launch
from ironburst.burst.headroom import Headroom, charges
from ironburst.controller import karpenter, karpenter_store, money, order_book, records, spending
from ironburst.controller.karpenter_room import Wish
from ironburst.controller.ledger import Ledger
from ironburst.controller.order_book import Order, Request
from ironburst.controller.site import Site
from ironburst.document import BudgetDocument, ClusterDocument, KarpenterPool
from ironburst.nodes.state_times import CLAIM, DELETED
from tests.fakes import T0, FakeClock
from tests.fakes.karpenter import FakeKarpenter
from tests.fakes.world import World

HOUR, USD = 3600.0, Wish.usd
POOL = KarpenterPool(
    name="g6e",
    node_pool="ironburst-lab-g6e",
    instance_type="g6e.12xlarge",
    gpus=4,
    cpus=48,
    market="on-demand",
    usd_per_hour=10.0,
    max_nodes=4,
    max_run_s=3600,
)
FULL_USD = 10.0 * (2 * 3600 + records.ENDING_S) / 3600  # of a new node, at most
RICH = {"usd_per_month": 1e6}


class Room:
    """A site with Karpenter alone: what a tick does with it."""

    def __init__(self, path, pools=(POOL,), clock=None, document=None, **budget):
        self.clock = clock or FakeClock()
        said = document or World(path).document
        budget = BudgetDocument.model_validate(budget or RICH)
        self.document = said.model_copy(update={"karpenter": list(pools), "budget": budget})
        self.ledger = Ledger(path / "karpenter.sqlite")
        self.ledger._db.execute("PRAGMA synchronous=OFF")
        self.karpenter = FakeKarpenter(self.clock)
        self.karpenter.declare(*(pool.node_pool for pool in pools))

    def site(self):
        return Site(self.document, None, None, self.ledger, self.clock, {}, karpenter=self.karpenter)

    def tick(self, times=1, every_s=10.0):
        for _ in range(times):
            if karpenter.look(self.site()):
                karpenter.offer(self.site())
            self.clock.at += every_s

    def limit(self, pool=POOL):
        return self.karpenter.limits[pool.node_pool][-1][1]

    def spent(self):
        return spending.budget(self.ledger, self.document.budget, self.clock.now())

    def left(self):
        return karpenter.budget_of(self.site()).ceilings

    def told(self, kind):
        return [event.text for event in self.ledger.events() if event.kind == kind]

    def declare(self, **changes):
        pools = [replaced.model_copy(update=changes) for replaced in self.document.karpenter]
        self.document = self.document.model_copy(update={"karpenter": pools})


@pytest.fixture
def room(tmp_path):
    return Room(tmp_path)


def test_a_stack_without_karpenter_asks_nobody_and_writes_nothing(tmp_path):
    world = World(tmp_path)
    world.controller.karpenter = FakeKarpenter(world.clock, silent="it must not be asked")
    world.tick(2)
    assert world.ledger.noted("karpenter") is None and world.events("trouble") == []


def test_a_new_node_pool_is_let_have_what_the_money_can_pay(tmp_path):
    room = Room(tmp_path, usd_per_month=2.5 * FULL_USD)
    room.tick()
    assert room.limit() == 2
    assert room.told("limit") == [
        "Karpenter's NodePool ironburst-lab-g6e may have 2 x on-demand g6e.12xlarge, $20.00 an hour"
    ]
    room.tick(3)
    assert room.karpenter.written == [(POOL.node_pool, 2)]  # only what changes


def test_never_more_than_is_declared(room):
    room.tick()
    assert room.limit() == 4
    room.declare(max_nodes=1)
    room.tick()
    assert room.limit() == 1


def test_what_it_may_launch_is_set_aside(tmp_path):
    room = Room(tmp_path, usd_per_month=10 * FULL_USD)
    before = room.left()[0].left_usd
    room.tick()
    assert room.left()[0].left_usd == pytest.approx(before - 4 * FULL_USD)
    assert room.spent().committed_usd == 0.0  # nothing is rented yet


def test_a_node_costs_from_its_creation_to_its_latest_end(room):
    room.tick()
    machine = room.karpenter.launch(POOL)
    room.clock.at += HOUR / 2
    room.tick(every_s=0.0)
    money_now = room.spent()
    assert money_now.spent_usd == pytest.approx(5.0)
    assert money_now.committed_usd == pytest.approx(FULL_USD - 5.0)
    room.karpenter.end(machine, room.clock.now(), 60.0)
    room.clock.at += 60.0
    room.tick(every_s=0.0)
    assert room.spent().committed_usd == 0.0
    assert room.spent().spent_usd == pytest.approx(5.0 + 10.0 / 60)
    room.clock.at += HOUR
    assert room.spent().spent_usd == pytest.approx(5.0 + 10.0 / 60)


def test_one_that_was_never_launched_costs_nothing(room):
    room.tick()
    machine = room.karpenter.launch(POOL, launched=False)
    room.tick()
    assert room.spent().committed_usd == pytest.approx(FULL_USD) and room.spent().spent_usd == 0.0
    room.karpenter.machines.remove(machine)
    room.tick()
    assert (room.spent().committed_usd, room.spent().spent_usd) == (0.0, 0.0)


def test_nodes_that_karpenter_counts_no_more_leave_no_room_for_their_money(tmp_path):
    """One that drains costs on, and Karpenter would launch another one in its place."""
    room = Room(tmp_path, usd_per_month=2 * FULL_USD + 3.0)
    room.tick()
    machines = [room.karpenter.launch(POOL) for _ in range(2)]
    assert all(machines) and room.karpenter.launch(POOL) is None
    room.tick()
    assert room.limit() == 2
    room.karpenter.end(machines[0], room.clock.now(), HOUR)
    room.tick()
    assert room.limit() == 1


def test_a_node_that_has_cost_already_can_not_be_replaced_for_nothing(tmp_path):
    """Two new ones are no longer paid for when two have run half of their time."""
    room = Room(tmp_path, usd_per_month=2 * FULL_USD + 1.0)
    room.tick()
    assert room.karpenter.launch(POOL) and room.karpenter.launch(POOL)
    room.clock.at += HOUR / 2
    room.tick()
    assert room.limit() == 1


def test_one_that_expires_soon_gives_nothing_back(tmp_path):
    room = Room(tmp_path, usd_per_month=2.2 * FULL_USD)
    room.tick()
    room.karpenter.launch(POOL, expires_s=room.clock.now() + 60.0)
    room.tick()
    assert room.limit() == 1  # 60 s and an hour are set aside for that one, and can't pay for another


def test_a_lower_limit_frees_its_money_only_when_it_must_have_been_seen(tmp_path):
    room = Room(tmp_path, usd_per_month=10 * FULL_USD)
    room.tick()
    free = room.left()[0].left_usd
    room.declare(max_nodes=1)
    room.tick(every_s=karpenter.SETTLE_S - 1)
    assert room.limit() == 1 and room.left()[0].left_usd == pytest.approx(free)
    room.clock.at += 2.0
    assert room.left()[0].left_usd == pytest.approx(free + 3 * FULL_USD)


def test_another_node_pool_is_not_given_what_a_lowered_one_may_still_take(tmp_path):
    other = POOL.model_copy(update={"name": "p5", "node_pool": "ironburst-lab-p5"})
    room = Room(tmp_path, (POOL, other.model_copy(update={"max_nodes": 1})), usd_per_month=4 * FULL_USD + 1.0)
    room.tick()
    assert (room.limit(), room.limit(other)) == (3, 1)
    first, second = room.document.karpenter
    changed = [first.model_copy(update={"max_nodes": 1}), second.model_copy(update={"max_nodes": 4})]
    room.document = room.document.model_copy(update={"karpenter": changed})
    room.tick(every_s=karpenter.SETTLE_S)
    assert (room.limit(), room.limit(other)) == (1, 1)
    room.tick()
    assert (room.limit(), room.limit(other)) == (1, 3)


def test_an_account_pays_under_its_own_ceiling(tmp_path):
    paid = POOL.model_copy(update={"account": "vision"})
    room = Room(tmp_path, (paid,), usd_per_month=1e6, accounts={"vision": 1.5 * FULL_USD})
    room.tick()
    assert room.limit() == 1
    room.karpenter.launch(paid)
    room.tick()
    of_account = next(each for each in room.spent().ceilings if each.account == "vision")
    assert of_account.committed_usd > 0.9 * FULL_USD


def test_the_day_is_a_ceiling_too(tmp_path):
    room = Room(tmp_path, usd_per_month=1e6, usd_per_day=1.2 * FULL_USD)
    room.tick()
    assert room.limit() == 1


def test_an_api_server_that_gives_no_answer_changes_nothing(room):
    room.tick()
    room.karpenter.launch(POOL)
    room.tick()
    before, aside = room.spent(), room.left()[0].committed_usd
    room.karpenter.silent = "connection refused"
    room.declare(max_nodes=1)
    room.clock.at += 120.0
    room.tick(every_s=0.0)
    assert room.limit() == 4 and len(room.told("trouble")) == 1 and "connection refused" in room.told("trouble")[0]
    assert room.spent().spent_usd > before.spent_usd  # the node runs on
    assert room.left()[0].committed_usd == pytest.approx(aside, rel=0.1)  # and the others may come


def test_that_nobody_looked_for_long_is_told_with_what_it_may_have_cost(room):
    room.tick()
    room.clock.at += 2 * HOUR
    room.tick()
    (said,) = room.told("trouble")
    assert "weren't seen for 2 h" in said and "$80.11 at most" in said


def test_one_that_went_while_nobody_looked_is_paid_to_its_latest_end_at_most(room):
    room.tick()
    machine = room.karpenter.launch(POOL)
    room.tick()
    room.karpenter.end(machine, room.clock.now(), 30.0)
    room.clock.at += HOUR
    room.tick(every_s=0.0)
    assert room.spent().spent_usd == pytest.approx(10.0, rel=0.01)  # when it went, nobody saw
    book = karpenter_store.read(room.ledger)
    room.clock.at += 30 * HOUR
    assert book.claims[0].to_s < room.clock.now() and room.spent().spent_usd == pytest.approx(10.0, rel=0.01)


def test_what_somebody_else_wrote_into_a_limit_counts_and_is_written_anew(room):
    room.declare(max_nodes=1)
    room.tick(2)
    room.karpenter.limits[POOL.node_pool].append((room.clock.now(), 3))
    room.tick()
    assert room.limit() == 1 and any("may have 3 nodes, 1 were written" in text for text in room.told("limit"))
    assert room.left()[0].committed_usd == pytest.approx(3 * FULL_USD)  # three may come of it


def test_a_limit_that_somebody_took_away_is_told(room):
    room.tick()
    room.karpenter.limits[POOL.node_pool].append((room.clock.now(), None))
    room.tick()
    assert room.limit() == 4 and "has no limit" in room.told("needs_a_person")[0]


def test_a_node_pool_that_is_not_there_is_told(room):
    del room.karpenter.limits[POOL.node_pool]
    room.tick()
    assert any("has no NodePool ironburst-lab-g6e: run `pulumi up`" in text for text in room.told("needs_a_person"))


def test_a_machine_of_another_kind_costs_what_that_kind_costs(room):
    room.tick()
    room.karpenter.launch(POOL, instance_type="p5.48xlarge")
    room.tick()
    assert "is on-demand p5.48xlarge, not the declared on-demand g6e.12xlarge" in room.told("needs_a_person")[0]
    (row,), rates = karpenter_store.rows(room.ledger)
    assert rates[row.id][-1].usd_per_hour == 55.04  # as pool p5 of the document says


def test_a_machine_without_an_end_is_told_and_money_is_set_aside_for_a_new_one(room):
    room.tick()
    room.karpenter.launch(POOL, expires_s=float("inf"))
    room.tick()
    assert "has no end" in room.told("needs_a_person")[0]
    assert room.spent().committed_usd == pytest.approx(FULL_USD, rel=0.01)


def test_a_machine_that_does_not_end_is_told(room):
    """A finalizer that nobody takes off, an instance that can't be ended: it is paid for, and Karpenter waits."""
    room.tick()
    machine = room.karpenter.launch(POOL)
    room.karpenter.end(machine, room.clock.at, drains_s=1e9)
    room.clock.at = machine.claim.ends_s + records.ENDING_S + CLAIM[DELETED].steps[0][0] - 60
    room.tick(5)
    assert room.told("needs_a_person") == []
    room.clock.at += 60
    room.tick()
    assert f"{machine.claim.name} of NodePool {POOL.node_pool} should have ended" in room.told("needs_a_person")[-1]


@pytest.mark.parametrize(
    ("market", "usd", "after"), [("on-demand", 20.0, 20.0), ("spot", 20.0, 20.0), ("spot", 5.0, 10.0)]
)
def test_a_price_that_is_declared_anew(tmp_path, market, usd, after):
    """A lower one of spot says nothing about a node that was rented at a higher one."""
    room = Room(tmp_path, (POOL.model_copy(update={"market": market}),))
    room.tick()
    room.karpenter.launch(room.document.karpenter[0])
    room.tick()
    room.declare(usd_per_hour=usd)
    room.tick()
    (row,), rates = karpenter_store.rows(room.ledger)
    assert rates[row.id][-1].usd_per_hour == after


def test_what_a_pool_that_is_declared_no_more_has_still_costs(room):
    room.tick()
    machine = room.karpenter.launch(POOL)
    room.tick()
    room.document = room.document.model_copy(update={"karpenter": []})
    room.clock.at += HOUR / 2
    room.tick()
    assert room.spent().spent_usd > 5.0 and room.spent().committed_usd > 10.0
    room.karpenter.end(machine, room.clock.now() - 60, 30)
    room.tick(2)
    assert room.spent().committed_usd == 0.0 and all(each.to_s for each in karpenter_store.read(room.ledger).claims)


def test_what_no_ceiling_pays_any_more_is_forgotten(room):
    room.tick()
    machine = room.karpenter.launch(POOL)
    room.tick()
    room.karpenter.end(machine, room.clock.now(), 1.0)
    room.tick(2)
    assert len(karpenter_store.read(room.ledger).claims) == 1
    room.clock.at += 40 * 24 * HOUR
    room.tick()
    assert karpenter_store.read(room.ledger).claims == ()


def test_a_restart_forgets_nothing(room, tmp_path):
    room.tick()
    room.karpenter.launch(POOL)
    room.tick()
    before = room.left()
    room.ledger.close()
    room.ledger = Ledger(tmp_path / "karpenter.sqlite")
    assert room.left() == before


# ---- with the controller


def test_slurm_rents_with_what_karpenter_was_not_offered(tmp_path):
    """The month pays for one node more than Karpenter may have: exactly one is rented, and the limit stays."""
    world = World(tmp_path, usd_per_month=1e6, markets=["on-demand"])
    paid = POOL.model_copy(update={"max_nodes": 2, "usd_per_hour": 55.04, "max_run_s": 3600})
    aside = 2 * 55.04 * (2 * 3600 + records.ENDING_S) / 3600
    job_usd = 55.04 * (120 + 7200 + 60 + records.ENDING_S) / 3600
    budget = BudgetDocument(usd_per_month=aside + 1.5 * job_usd)
    world.document = ClusterDocument.model_validate(
        world.document.model_copy(update={"karpenter": [paid], "budget": budget}).model_dump(mode="json")
    )
    world.controller.karpenter = FakeKarpenter(world.clock)
    world.controller.karpenter.declare(paid.node_pool)
    world.tick()
    world.fill_home()
    for _ in range(2):
        world.slurm.submit(nodes=1, limit_s=7200.0, runs_s=7200.0)
    world.until(lambda: world.ledger.leases(), 600.0)
    world.tick(20)
    assert len(world.ledger.leases()) == 1
    assert world.controller.karpenter.limits[paid.node_pool][-1][1] == 2
    waits = [each.text for each in world.ledger.decisions() if each.kind == "wait" and "month" in each.text]
    assert waits, "the second job is told that the month can't pay"


# ---- ceilings over whole stories


class Story:
    """Random claims, own leases and prices; Karpenter does what it may do, and often the worst of it."""

    def __init__(self, path, seed, document):
        self.rnd = rnd = random.Random(seed)
        self.tick_s = rnd.choice([10.0, 60.0, 300.0])
        pools = [
            POOL.model_copy(
                update={
                    "name": name,
                    "node_pool": f"ironburst-lab-{name}",
                    "usd_per_hour": rnd.uniform(4.0, 60.0),
                    "max_nodes": rnd.randint(1, 6),
                    "max_run_s": rnd.choice([900, 1800, 3600]),
                    "account": rnd.choice(["", "vision"]),
                }
            )
            for name in ("a", "b")[: rnd.randint(1, 2)]
        ]
        full = max(pool.usd_per_hour * karpenter_store.span_s(pool) / 3600 for pool in pools)
        budget = {
            "usd_per_month": full * rnd.uniform(0.5, 12.0),
            "usd_per_day": full * rnd.uniform(0.5, 8.0),
            "accounts": {"vision": full * rnd.uniform(0.5, 6.0)},
        }
        # some cross midnight, and the end of the month
        clock = FakeClock(T0 + rnd.choice([0.0, 11.5 * HOUR, (9 * 24 + 11.5) * HOUR]))
        document = document.model_copy(update={"burst": document.burst.model_copy(update={"tick_s": int(self.tick_s)})})
        self.room = Room(path, pools, clock, document, **budget)
        self.own = []  # (from, until, $/h, account), as it was
        self.pools = pools

    def play(self, ticks):
        for n in range(ticks):
            if self.rnd.random() < 0.1:
                self.declare_anew()
            site = self.room.site()
            seen = self.rnd.random() > 0.05 and karpenter.look(site)
            self.rent(n)
            if seen:
                karpenter.offer(site)
            self.between()

    def declare_anew(self):
        """A NodePool that may have fewer nodes gives money to others."""
        pools = [each.model_copy(update={"max_nodes": self.rnd.randint(1, 6)}) for each in self.pools]
        self.room.document = self.room.document.model_copy(update={"karpenter": pools})

    def rent(self, n):
        """An own lease, as `decide` and `recheck` have it: if no ceiling says no."""
        now, rnd = self.room.clock.now(), self.rnd
        if rnd.random() > 0.3:
            return
        usd, account, until_s = rnd.uniform(5.0, 80.0), rnd.choice(["", "vision"]), now + rnd.uniform(900.0, 7200.0)
        budget = karpenter.budget_of(self.room.site())
        if Headroom(budget).short(charges(budget, account, usd, now, until_s)):
            return
        node, ledger = f"p5-{n}", self.room.ledger
        launch = Launch("p5", ("a",), "on-demand", (node,), (n,), usd, until_s, 0.0, "", account)
        ledger.add_launch(node, launch, "p5", "ami", boot_s=60, serial=1, now_s=now)
        ledger.move(ledger.leases_of(node), records.READY, now, from_s=now)
        self.own.append((now, until_s, usd, account))

    def between(self):
        """Until the next tick: Karpenter launches what it may, by what it has seen, and takes empty nodes away."""
        rnd, clock, its = self.rnd, self.room.clock, self.room.karpenter
        end_s = clock.at + self.tick_s
        for at_s in sorted(rnd.uniform(clock.at, end_s) for _ in range(rnd.randint(0, 6))):
            clock.at = at_s
            self.expire()
            for pool in self.pools:
                for _ in range(rnd.choice([0, 0, 1, 6])):
                    its.launch(pool, late_s=60.0)
            # empty for as long as the pool has them idle
            counted = [each for each in its.machines if each.counted() and at_s - each.claim.created_s > 600.0]
            for machine in rnd.sample(counted, min(len(counted), rnd.choice([0, 0, 1, 5]))):
                its.end(machine, at_s, rnd.uniform(0.0, 300.0))  # it was empty
        clock.at = end_s
        self.expire()

    def expire(self):
        for machine in self.room.karpenter.machines:
            if machine.counted() and machine.claim.expires_s <= self.room.clock.at:
                self.room.karpenter.end(machine, machine.claim.expires_s, machine.claim.grace_s)  # its last pod stays

    def beyond_usd(self):
        """What all that ran costs beyond any ceiling, if all that still runs lives as long as it can."""
        prices = {pool.node_pool: (pool.usd_per_hour, pool.account) for pool in self.pools}
        costs = [(*each,) for each in self.own]
        for machine in self.room.karpenter.machines:
            end_s = machine.ends_s if machine.ends_s is not None else machine.claim.ends_s
            costs.append((machine.claim.created_s, end_s, *prices[machine.claim.node_pool]))
        worst = 0.0
        moments = [from_s for from_s, *_ in costs] + [until_s for _, until_s, *_ in costs]
        declared = self.room.document.budget
        for window, usd, account in (
            (money.month, declared.usd_per_month, None),
            (money.day, declared.usd_per_day, None),
            (money.month, declared.accounts["vision"], "vision"),
        ):
            for from_s, to_s in {window(at_s) for at_s in moments}:
                total = sum(
                    price * max(0.0, min(until_s, to_s) - max(begin_s, from_s)) / 3600
                    for begin_s, until_s, price, payer in costs
                    if account in (None, payer)
                )
                worst = max(worst, total - usd)
        return worst


@pytest.fixture(scope="module", params=[50, pytest.param(200, marks=pytest.mark.slow)])
def played(request, tmp_path_factory):
    """So many of them."""
    document = World(tmp_path_factory.mktemp("world")).document
    stories = []
    for seed in range(request.param):
        story = Story(tmp_path_factory.mktemp("story"), seed, document)
        story.play(40)
        story.room.ledger.close()
        stories.append(story)
    return stories


def test_no_ceiling_is_ever_overrun(played):
    assert max(story.beyond_usd() for story in played) <= 1e-6


def test_and_much_was_rented_by_both(played):
    machines = [len(story.room.karpenter.machines) for story in played]
    own = [len(story.own) for story in played]
    assert sum(machines) > 2.5 * len(played) and sum(own) > {50: 25, 200: 200}[len(played)]
    assert sum(count > 3 for count in machines) > len(played) / 4 / 4
    written = [len(story.room.karpenter.written) for story in played]
    assert sum(count > 3 for count in written) > len(played) / 4  # limits went up and down


@pytest.mark.parametrize(
    ("what", "seed", "broken"),
    [
        ("it isn't set aside", 89, lambda patch: patch.setattr(karpenter, "budget_of", spending.budget_of)),
        ("replacing costs nothing", 13, lambda patch: patch.setattr(Wish, "usd", _for_nothing)),
    ],
)
def test_the_stories_show_a_rule_that_is_missing(tmp_path, monkeypatch, what, seed, broken):
    """Each seed was found by trying; another story may need another one."""
    broken(monkeypatch)
    story = Story(tmp_path, seed, World(tmp_path).document)
    story.play(40)
    story.room.ledger.close()
    assert story.beyond_usd() > 1.0, what


def _for_nothing(self, nodes, ceiling):
    alone = dataclasses.replace(self, there=())
    return USD(alone, max(0, nodes - len(self.there)), ceiling)


@pytest.mark.parametrize(
    "asked", [{"verb": "pause"}, {"verb": "stop", "now": True}, {"verb": "close", "target": "ironburst-lab-g6e"}]
)
def test_by_a_persons_order_karpenter_may_launch_nothing(room, asked):
    room.tick(2)
    assert room.limit() == POOL.max_nodes
    request = Request(**asked)
    order_book.write(room.ledger, [Order("1", "ann", room.clock.now(), request)])
    room.tick(2)
    assert room.limit() == 0
    order_book.write(room.ledger, [])
    room.tick(60)
    assert room.limit() == POOL.max_nodes
