"""Random snapshots from a seed."""

from random import Random

from ironburst.burst import Budget, CoolDown, Job, Lease, Node, Pool, Resources, Snapshot

NOW = 1_795_262_400.0
OFF = ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN")
WORDS = ("imagenet", "c4")


def made(seed, count):
    """A site with so many pending jobs, most of them late and fit to be rented for. From a seed: that is 20 times as
    fast as drawing each field, so there are as many more examples; `count` is what a counterexample gets smaller by.
    """
    rng = Random(seed)
    often, once = (lambda value, *others: value if rng.random() < 0.75 else rng.choice(others)), rng.choice
    home = [Node(f"dgx{n}", ("home",), Resources(8, 2, 1000), often(("IDLE",), ("DRAIN",))) for n in (1, 2)]
    declared = tuple(_pool(rng, name, size) for name, size in (("p5", 3), ("g6", 2)))
    rented = [_lease(rng, node) for node in ("p5-1", "p5-2", "g6-1") if rng.random() < 0.4]
    up = {"coming": (*OFF[:3], "POWERING_UP"), "joined": OFF[:3], "ready": ("CLOUD", "IDLE"), "leaving": OFF}
    states = {lease.node: up[lease.state] for lease in rented}
    cloud = [
        Node(name, (pool.partition,), pool.each, states.get(name, OFF)) for pool in declared for name in pool.nodes
    ]
    queue = [
        Job(
            id=90 + n,
            name="run",
            user="u",
            state="RUNNING",
            submit_s=NOW - 99,
            nodes=1,
            each=Resources(often(8, 4), 1, 9),
            time_limit_s=3600.0,
            partitions=("home",),
            on=(node,),
            end_s=NOW + often(rng.uniform(0, 90_000), -100.0),
        )
        for n, node in enumerate(("dgx1", "dgx2", "p5-1"))
        if rng.random() < (0.85 if n < 2 else 0.2)
    ]
    queue += [_job(rng, n) for n in range(1, count + 1)]
    closed = [
        CoolDown("p5", zone, "spot", once((1, 3)), once((None, NOW + 60, NOW - 60)), "ICE")
        for zone in "ab"
        if rng.random() < 0.3
    ]
    budget = often(
        Budget(once((300.0, 1500.0, 20_000.0)) * rng.random(), 0.0, 0.0, NOW + 86400), None, Budget(9.0, 9.0, 9.0, NOW)
    )
    return Snapshot(NOW, tuple(queue), (*home, *cloud), declared, tuple(rented), tuple(closed), budget)


def _job(rng, id):
    often, once = (lambda value, *others: value if rng.random() < 0.85 else rng.choice(others)), rng.choice
    limit_s = often(float(rng.randint(60, 20_000)), 90_000.0, None)
    deadline_s = often(None, NOW + rng.uniform(0, 30_000), NOW + (limit_s or 0.0) + rng.uniform(0, 1300))
    return Job(
        id=id,
        name="train",
        user="u",
        state=often("PENDING", "SUSPENDED"),
        submit_s=NOW - rng.uniform(0, 9000),
        nodes=once((1, 1, 1, 2, 3, 4)),
        each=Resources(once((8, 8, 4, 2, 1, 9, 0)), once((0, 1, 2)), once((0, 400, 1000))),
        time_limit_s=limit_s,
        partitions=often(("home",), ("home", "burst-p5")),
        priority=rng.randint(0, 3),
        batch=often(True, False),
        requeue=often(True, False),
        reason=often("", "Priority", "QOSGrpGRES", "Licenses"),
        gpu_type=often("", "h100", "a100"),
        excluded=often((), ("p5-1",), ("dgx1",)),
        eligible_s=often(None, NOW - 50, NOW + 50),
        deadline_s=deadline_s,
        data=often((), ("imagenet",), WORDS),
        licences=often((), ("matlab",)),
        fabric=often("", "infiniband"),
    )


def _pool(rng, name, size):
    often, once = (lambda value, *others: value if rng.random() < 0.8 else rng.choice(others)), rng.choice
    return Pool(
        name=name,
        partition=f"burst-{name}",
        nodes=tuple(f"{name}-{n}" for n in range(1, size + 1)),
        instance_type="p5.48xlarge",
        each=often(Resources(8, 2, 1000), Resources(4, 4, 4000)),
        gpu_type=once(("h100", "a100")),
        markets=often(("spot", "on-demand"), ("on-demand",)),
        usd_per_hour={"spot": often(20.0, None), "on-demand": once((50.0, 30.0))},
        zones=often(("a", "b"), ("a",), ()),
        boot_s=often(600.0, 0.0),
        idle_s=often(300.0, 0.0),
        max_run_s=often(86400.0, 7200.0),
        obstacle=often("", "no image"),
        ends_s=once((None, NOW + rng.uniform(0, 30_000))),
        data=once(((), ("imagenet",), WORDS)),
        licences=once(((), ("matlab",))),
        fabric=once(("efa", "infiniband")),
        min_billing_s=once((0.0, 3600.0)),
    )


def _lease(rng, node):
    once = rng.choice
    return Lease(
        id=f"l/{node}",
        launch=once(("l1", "l2")),
        node=node,
        pool=node[:2],
        zone=once("ab"),
        market=once(("spot", "on-demand")),
        state=once(("coming", "joined", "ready", "ready", "leaving")),
        jobs=tuple(rng.sample(range(1, 9), rng.randint(0, 2))),
        usd_per_hour=40.0,
        committed_until_s=NOW + rng.uniform(0, 5000),
        idle_since_s=once((None, NOW - rng.uniform(0, 2000))),
        worked=rng.random() < 0.5,
        paid_from_s=once((None, NOW - rng.uniform(0, 9000))),
    )
