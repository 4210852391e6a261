"""A pool whose nodes may be of several types: one refuses, the next is tried, at its own price."""

import pytest

from ironburst.controller import spending
from ironburst.controller.ledger import Ledger
from ironburst.document import BudgetDocument, PoolType
from ironburst.ports import Malformed, QuotaReached
from tests.fakes import Crash, placed
from tests.fakes.world import World

SMALL, BIG = "p5.48xlarge", "p5en.48xlarge"
ZONES = "us-east-1a", "us-east-1b"
USD = {SMALL: {"on-demand": 55.04, "spot": 24.0}, BIG: {"on-demand": 70.0, "spot": 30.0}}


def world_of(tmp_path, big=USD[BIG], **burst):
    world = World(tmp_path, **burst)
    of_types(world, big=big)
    world.cloud.types = {f"lt-{zone}{end}": kind for zone in ZONES for kind, end in ((SMALL, ""), (BIG, "-big"))}
    world.fill_home()
    return world


def of_types(world, big=USD[BIG], **changes):
    pool = world.document.pools[0]
    places = [
        placed(zone, launch_template_id=f"lt-{zone.zone}-big").model_copy(update={"instance_type": BIG})
        for zone in pool.zones
    ]
    others = [PoolType(instance_type=BIG, usd_per_hour=big)]
    pool = pool.model_copy(update={"zones": [*pool.zones, *places], "other_types": others} | changes)
    world.document = world.document.model_copy(update={"pools": [pool]})


def sold_out(world, kind, market="on-demand"):
    for zone in ZONES:
        world.cloud.capacity[kind, zone, market] = 0


@pytest.fixture
def world(tmp_path):
    return world_of(tmp_path)


def tried(world):
    """(type, zone) of each request."""
    return [(world.cloud.types[request.place["launch_template_id"]], request.zone) for request in world.cloud.requests]


def test_the_next_type_is_tried_as_a_launch_of_its_own_at_its_own_price(world):
    sold_out(world, SMALL)
    gang = world.slurm.submit(nodes=2, limit_s=600, runs_s=60, requeue=False)
    began = world.clock.now()
    world.until(lambda: world.cloud.alive(), 120)
    assert world.clock.now() - began <= 30
    assert tried(world) == [(SMALL, ZONES[0]), (SMALL, ZONES[1]), (BIG, ZONES[0])]
    assert len({request.token for request in world.cloud.requests}) == 3
    assert {(each.instance_type, each.zone) for each in world.cloud.alive()} == {(BIG, ZONES[0])}
    closed = {(row.instance_type, row.zone, row.market) for row in world.ledger.cool_downs(world.clock.now())}
    assert closed == {(SMALL, zone, "on-demand") for zone in ZONES}
    world.until(lambda: world.slurm.state(gang) == "COMPLETED", 300)
    world.until(lambda: not world.ledger.leases() and not world.cloud.alive(), 600)
    paid = [lease for lease in world.ledger.leases(open_only=False) if lease.from_s is not None]
    assert [(lease.instance_type, lease.usd_per_hour) for lease in paid] == [(BIG, 70.0)] * 2
    spent = spending.budget(world.ledger, BudgetDocument(usd_per_month=20000.0), world.clock.now()).spent_usd
    assert spent == pytest.approx(sum((lease.to_s - lease.from_s) / 3600 * 70.0 for lease in paid))
    assert any(f"on-demand {SMALL} in {ZONES[0]}" in text for text in world.events("refused"))


def test_spot_offers_the_ceiling_of_its_type(world):
    pools = [
        each.model_copy(update={"spot_max_usd_per_hour": {SMALL: 26.0, BIG: 33.0}}) for each in world.document.pools
    ]
    world.document = world.document.model_copy(update={"pools": pools})
    sold_out(world, SMALL, "spot")
    world.slurm.submit(limit_s=600)
    world.until(lambda: world.cloud.alive(), 120)
    offered = [
        (kind, request.max_usd_per_hour) for (kind, _), request in zip(tried(world), world.cloud.requests, strict=True)
    ]
    assert offered == [(SMALL, 26.0), (SMALL, 26.0), (BIG, 33.0)]
    assert world.cloud.alive()[0].usd_per_hour == 30.0


def test_a_ceiling_that_pays_only_the_cheaper_type_is_kept(tmp_path):
    world = world_of(tmp_path / "asked")
    world.slurm.submit(limit_s=600, requeue=False)
    world.tick()
    aside = spending.budget(world.ledger, BudgetDocument(usd_per_month=1e6), world.clock.now()).committed_usd
    assert aside > 0
    world = world_of(tmp_path / "kept", usd_per_month=aside * 1.1)
    sold_out(world, SMALL)
    job = world.slurm.submit(limit_s=600, requeue=False)
    world.tick(100)
    assert {kind for kind, _ in tried(world)} == {SMALL} and world.cloud.all == {}
    assert world.slurm.jobs[job].started == []


def test_a_type_without_a_price_is_not_rented(tmp_path):
    world = world_of(tmp_path, big={"on-demand": None, "spot": None})
    sold_out(world, SMALL)
    world.slurm.submit(limit_s=600, requeue=False)
    world.tick(100)
    assert {kind for kind, _ in tried(world)} == {SMALL} and world.cloud.all == {}


@pytest.mark.parametrize(("prefer", "first"), [("price", BIG), ("order", SMALL)])
def test_the_cheapest_or_the_first_declared(tmp_path, prefer, first):
    world = World(tmp_path)
    of_types(world, big={"on-demand": 50.0, "spot": 20.0}, prefer=prefer)
    world.cloud.types = {f"lt-{zone}{end}": kind for zone in ZONES for kind, end in ((SMALL, ""), (BIG, "-big"))}
    world.fill_home()
    world.slurm.submit(limit_s=600)
    world.until(lambda: world.cloud.alive(), 60)
    assert tried(world) == [(first, ZONES[0])] and world.ledger.leases()[0].instance_type == first


@pytest.mark.parametrize("error", [QuotaReached("vCPUs", "VcpuLimitExceeded"), Malformed("cards", "InvalidParameter")])
def test_what_refuses_one_type_everywhere_leaves_the_others_open(world, error):
    world.cloud.errors = [error]
    job = world.slurm.submit(limit_s=600, runs_s=60, requeue=False)
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 300)
    assert tried(world) == [(SMALL, ZONES[0]), (BIG, ZONES[0])]
    assert (len(world.events("needs_a_person")) > 0) is isinstance(error, Malformed)


def test_the_other_type_of_the_pool_is_not_what_was_asked_for(world):
    world.cloud.wrong_type = BIG
    world.slurm.submit(limit_s=600, requeue=False)
    world.until(lambda: world.cloud.all and not world.cloud.alive(), 60)
    assert any(f"has type {BIG}, asked for was {SMALL}" in text for text in world.events("needs_a_person"))
    world.tick(100)
    assert len(world.cloud.all) == 1  # it closes the pool in this market, of every type


def test_what_spot_takes_back_closes_its_type_alone(world):
    world.slurm.submit(limit_s=3600)
    world.until(lambda: "ready" in world.states(), 60)
    world.cloud.interrupt(world.cloud.alive()[0].id)
    world.tick()
    (row,) = world.ledger.all_cool_downs()
    assert (row.instance_type, row.zone, row.market) == (SMALL, ZONES[0], "spot")


def test_a_lost_ledger_knows_type_and_price_by_the_instance(world):
    sold_out(world, SMALL)
    job = world.slurm.submit(limit_s=3600, runs_s=3000, requeue=False)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 120)
    world.ledger.close()
    world.path.unlink()
    world.start()
    world.until(lambda: world.ledger.leases(), 120)
    (lease,) = world.ledger.leases()
    assert (lease.instance_type, lease.usd_per_hour) == (BIG, 70.0)


def test_a_price_declared_anew_counts_for_its_type(world):
    world.slurm.submit(limit_s=3600, runs_s=3000, requeue=False)
    world.until(lambda: world.states() == ["ready"], 120)
    (lease,) = world.ledger.leases()
    other = [PoolType(instance_type=BIG, usd_per_hour={"on-demand": 99.0, "spot": 30.0})]
    pool = world.document.pools[0].model_copy(update={"other_types": other})
    world.document = world.document.model_copy(update={"pools": [pool]})
    world.tick(2)
    assert world.events("price") == [] and world.ledger.leases() != []
    usd = {"on-demand": 60.0, "spot": 24.0}
    pool = pool.model_copy(update={"usd_per_hour": usd})
    world.document = world.document.model_copy(update={"pools": [pool]})
    world.tick(2)
    assert [rate.usd_per_hour for rate in spending.rates(world.ledger, world.clock.now())[lease.id]] == [55.04, 60.0]


def test_a_type_that_is_declared_no_more_serves_its_job_to_the_end(world):
    sold_out(world, SMALL)
    job = world.slurm.submit(limit_s=600, runs_s=100, requeue=False)
    world.until(lambda: world.slurm.state(job) == "RUNNING", 120)
    pool = world.document.pools[0]
    alone = {"other_types": [], "zones": pool.zones[:2]}
    world.document = world.document.model_copy(update={"pools": [pool.model_copy(update=alone)], "serial": 2})
    world.until(lambda: world.slurm.state(job) == "COMPLETED", 300)
    world.until(lambda: not world.ledger.leases() and not world.cloud.alive(), 600)
    assert len(world.slurm.jobs[job].started) == 1


def test_killed_at_any_port_call_between_two_types(tmp_path):
    def scenario(path, **breaking):
        world = world_of(path)
        sold_out(world, SMALL)
        counter = world.start(**breaking) if breaking else None
        world.slurm.submit(nodes=2, limit_s=600, runs_s=20, requeue=False)
        return world, counter

    def live(world):
        world.until(lambda: world.slurm.state(2) == "COMPLETED", 300)

    world, counter = scenario(tmp_path / "count", at=-1)
    live(world)
    total, died = next(counter), 0
    for at in range(1, total, 2):
        world, _ = scenario(tmp_path / f"{at}", at=at, after=at % 4 == 1)
        try:
            live(world)
        except Crash:
            died += 1
            world.ledger.close()
            world.start()
            live(world)
        assert len(world.slurm.jobs[2].started) == 1, at
        assert [each.instance.instance_type for each in world.cloud.all.values()] == [BIG] * 2, at
        paid = [lease for lease in world.ledger.leases(open_only=False) if lease.from_s is not None]
        assert {lease.usd_per_hour for lease in paid} == {70.0}, at
        world.ledger.close()
    assert died == len(range(1, total, 2))


def test_cool_downs_of_a_ledger_of_before_close_every_type(tmp_path):
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    ledger._db.executescript(
        "DROP TABLE cool_downs; CREATE TABLE cool_downs ("
        "pool TEXT NOT NULL, zone TEXT NOT NULL, market TEXT NOT NULL, nodes INTEGER NOT NULL, until_s REAL,"
        "reason TEXT NOT NULL, strikes INTEGER NOT NULL, at_s REAL NOT NULL, serial INTEGER NOT NULL,"
        "PRIMARY KEY (pool, zone, market, nodes)); INSERT INTO cool_downs VALUES ('p5','a','spot',1,99,'ICE',2,9,3)"
    )
    ledger.close()
    reader = Ledger(path, read_only=True)
    assert [(each.zone, each.instance_type) for each in reader.cool_downs(50.0)] == [("a", "")]
    reader.close()
    for _ in range(2):
        ledger = Ledger(path)
        (row,) = ledger.all_cool_downs()
        assert (row.place, row.strikes, row.serial) == (("p5", "a", "spot", 1, ""), 2, 3)
        ledger.close()
