"""Two schedulers of one site: queues, nodes and pools apart, one budget."""

from dataclasses import replace

from ironburst.burst import Policy, Snapshot, decide, from_json, to_json
from ironburst.burst.budget import Ceiling
from ironburst.burst.sides import promised
from tests.fakes.snapshots import BUSY, NOW, POLICY, home, job, lease, pool, running, snapshot, text_of

BOTH = replace(POLICY, other_homes=("pods",))
PODS = tuple(replace(node, name=f"kube-{node.name}", partitions=("pods",)) for node in home())
SLURM_POOL, KUBE_POOL = pool("p5", home="home"), pool("g5", home="pods")
KUBE = 2**40


def pod(id=KUBE, **more):
    return job(id, partitions=("pods",), **more)


def kube_busy(ends_in):
    return running(KUBE + 90, [node.name for node in PODS], ends_in, partitions=("pods",))


def both(jobs, **more):
    return snapshot(jobs, nodes=[*home(), *PODS], pools=[SLURM_POOL, KUBE_POOL], **more)


def rented(decision):
    return [(launch.pool, launch.jobs) for launch in decision.launches]


def test_free_nodes_of_one_scheduler_are_no_room_for_the_others_jobs():
    decision = decide(both([*BUSY, job(1), pod()]), BOTH)
    assert rented(decision) == [("p5", (1,))]  # the pod has room at its own home, the job hasn't
    assert "home" in text_of(decision, KUBE)


def test_each_rents_in_its_own_pools_alone():
    decision = decide(both([*BUSY, kube_busy(40000), job(1), pod()]), BOTH)
    assert rented(decision) == [("p5", (1,)), ("g5", (KUBE,))]
    alone = decide(replace(both([*BUSY, job(1)]), pools=(KUBE_POOL,)), BOTH)
    assert rented(alone) == [] and alone.infeasible  # a pool of the other one's is none


def test_rented_nodes_of_one_are_no_use_to_the_other():
    idle = lease("g5-1", idle_since_s=NOW - 10)
    decision = decide(both([*BUSY, job(1)], leases=[replace(idle, pool="g5")]), BOTH)
    assert rented(decision) == [("p5", (1,))] and not decision.assigns


def test_one_budget_pays_for_both_and_who_pays_less_now_goes_first():
    jobs = [*BUSY, kube_busy(40000), job(1), pod()]
    one = decide(both(jobs), BOTH).launches[0].committed_usd
    tight = both(jobs, budget=1.5 * one)
    assert rented(decide(tight, BOTH)) == [("p5", (1,))]
    busy = lease("p5-3", idle_since_s=None)  # Slurm's side pays for a node already
    there = running(80, ["p5-3"], 600)
    paying = replace(tight, leases=(busy,), jobs=(*tight.jobs, there))
    assert rented(decide(paying, BOTH)) == [("g5", (KUBE,))]


def test_an_account_and_a_namespace_of_one_name_share_one_ceiling():
    jobs = [*BUSY, kube_busy(40000), job(1, account="vision"), pod(account="vision")]
    plain = both(jobs)
    one = decide(plain, BOTH).launches[0].committed_usd
    own = Ceiling("month", 1.5 * one, NOW - 1e6, NOW + 1e7, account="vision")
    everybody = Ceiling("month", 1e6, NOW - 1e6, NOW + 1e7)
    budget = replace(plain.budget, usd_per_month=1e6, accounts={"vision": 1.5 * one}, ceilings=(everybody, own))
    assert len(decide(plain, BOTH).launches) == 2
    assert len(decide(replace(plain, budget=budget), BOTH).launches) == 1


def test_what_is_promised_is_what_the_launches_set_aside():
    here = both([*BUSY, job(1)])
    decision = decide(here, BOTH)
    (charge,) = promised(here, decision)
    assert abs(charge.usd - decision.launches[0].committed_usd) < 0.01


def test_one_queue_without_another_is_decided_as_if_there_were_one_scheduler():
    jobs = [*BUSY, job(1), job(2)]
    alone = decide(snapshot(jobs, pools=[pool("p5")]), POLICY)
    assert decide(both(jobs), BOTH) == alone


def test_both_are_written_down_and_read_again():
    here = both([*BUSY, pod()])
    assert from_json(Snapshot, to_json(here)) == here
    assert from_json(Policy, to_json(BOTH)) == BOTH
    assert "other_homes" not in to_json(POLICY) and "home" not in to_json(pool("p5"))
