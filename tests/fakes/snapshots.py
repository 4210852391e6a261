"""Snapshots written by hand: two home nodes, a pool p5 of three, jobs and leases with only what a test is about."""

from ironburst.burst import Budget, Job, Lease, Node, Policy, Pool, Resources, Snapshot

NOW = 1_795_262_400.0
WHOLE, FULL = Resources(8, 1, 1000), Resources(8, 2, 1000)
POLICY = Policy(home_partition="home", wait_limit_s=3600)
OFF = ("CLOUD", "DRAIN", "IDLE", "POWERED_DOWN")


def job(id=1, nodes=1, limit_s=7200.0, **more):
    values = {
        "name": "train",
        "user": "alice",
        "state": "PENDING",
        "submit_s": NOW,
        "each": WHOLE,
        "partitions": ("home",),
    } | more
    return Job(id=id, nodes=nodes, time_limit_s=limit_s, **values)


def running(id, on, ends_in, **more):
    return job(id, nodes=len(on), state="RUNNING", on=tuple(on), start_s=NOW - 60, end_s=NOW + ends_in, **more)


def home(count=2, states=("IDLE",)):
    return [Node(f"dgx{n}", ("home",), FULL, states) for n in range(1, count + 1)]


def pool(name="p5", size=3, **more):
    values = {
        "markets": ("spot", "on-demand"),
        "usd_per_hour": {"spot": 20.0, "on-demand": 50.0},
        "zones": ("a", "b"),
        "gpu_type": "h100",
    } | more
    limits = {"boot_s": 600.0, "idle_s": 300.0, "max_run_s": 86400.0} | {
        k: values.pop(k) for k in list(values) if k.endswith("_s")
    }
    return Pool(
        name=name,
        partition=f"burst-{name}",
        nodes=tuple(f"{name}-{n}" for n in range(1, size + 1)),
        instance_type="p5.48xlarge",
        each=FULL,
        **values,
        **limits,
    )


def snapshot(jobs, nodes=None, pools=None, leases=(), budget=10000.0, **more):
    pools = [pool()] if pools is None else pools
    leased = {lease.node: lease for lease in leases}
    up = {
        "joined": ("CLOUD", "DRAIN", "IDLE"),
        "ready": ("CLOUD", "IDLE"),
        "coming": ("CLOUD", "DRAIN", "IDLE", "POWERING_UP"),
    }
    rentable = [
        Node(n, (p.partition,), FULL, up.get(leased[n].state, OFF) if n in leased else OFF)
        for p in pools
        for n in p.nodes
    ]
    month = None if budget is None else Budget(budget, 0.0, 0.0, NOW + 86400 * 9)
    nodes = home() if nodes is None else nodes
    return Snapshot(NOW, tuple(jobs), (*nodes, *rentable), tuple(pools), tuple(leases), budget=month, **more)


BUSY = [running(90, ["dgx1", "dgx2"], 10 * 3600)]


def lease(node, state="ready", jobs=(), zone="a", market="on-demand", idle_since_s=NOW, worked=True, launch="l1"):
    return Lease(
        id=f"{launch}/{node}",
        launch=launch,
        node=node,
        pool="p5",
        zone=zone,
        market=market,
        state=state,
        jobs=tuple(jobs),
        usd_per_hour=50.0,
        committed_until_s=NOW + 300,
        idle_since_s=idle_since_s,
        worked=worked,
    )


def answer(decision, id):
    """The Wait or Infeasible of a job."""
    return next(answer for answer in (*decision.waits, *decision.infeasible) if answer.job == id)


def code_of(decision, id):
    return answer(decision, id).code


def text_of(decision, id=1):
    return answer(decision, id).text
