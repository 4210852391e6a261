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
            90 + n,
            "run",
            "u",
            "RUNNING",
            NOW - 99,
            1,
            Resources(often(8, 4), 1, 9),
            3600.0,
            ("home",),
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
        id,
        "train",
        "u",
        often("PENDING", "SUSPENDED"),
        NOW - rng.uniform(0, 9000),
        once((1, 1, 1, 2, 3, 4)),
        Resources(once((8, 8, 4, 2, 1, 9, 0)), once((0, 1, 2)), once((0, 400, 1000))),
        limit_s,
        often(("home",), ("home", "burst-p5")),
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
        name,
        f"burst-{name}",
        tuple(f"{name}-{n}" for n in range(1, size + 1)),
        "p5.48xlarge",
        often(Resources(8, 2, 1000), Resources(4, 4, 4000)),
        once(("h100", "a100")),
        often(("spot", "on-demand"), ("on-demand",)),
        {"spot": often(20.0, None), "on-demand": once((50.0, 30.0))},
        often(("a", "b"), ("a",), ()),
        often(600.0, 0.0),
        often(300.0, 0.0),
        often(86400.0, 7200.0),
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
        f"l/{node}",
        once(("l1", "l2")),
        node,
        node[:2],
        once("ab"),
        once(("spot", "on-demand")),
        once(("coming", "joined", "ready", "ready", "leaving")),
        tuple(rng.sample(range(1, 9), rng.randint(0, 2))),
        40.0,
        NOW + rng.uniform(0, 5000),
        once((None, NOW - rng.uniform(0, 2000))),
        rng.random() < 0.5,
        once((None, NOW - rng.uniform(0, 9000))),
    )
