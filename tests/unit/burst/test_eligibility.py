"""Why a job can't be rented for, or can't start anywhere, each with its sentence."""

from dataclasses import replace

import pytest

from ironburst.burst import (
    Budget,
    Resources,
    Snapshot,
    decide,
)
from tests.fakes.snapshots import BUSY, FULL, NOW, POLICY, code_of, job, lease, pool, running, snapshot, text_of

HOUR, DAY = 3600.0, 86400.0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"held": True}, "held"),
        ({"dependency": "afterok:7(unfulfilled)"}, "dependency"),
        ({"eligible_s": NOW + 60}, "begin"),
        ({"limit_s": None}, "no_time_limit"),
        ({"demands": "the nodes dgx1"}, "demands"),
        ({"each": Resources(0, 1, 100)}, "no_gpu"),
        ({"each": Resources(16, 1, 1000)}, "too_large"),
        ({"each": Resources(8, 1, 2000)}, "too_large"),
        ({"nodes": 4}, "too_many_nodes"),
        ({"limit_s": 90000.0}, "too_long"),
        ({"gpu_type": "b200"}, "gpu_type"),
    ],
)
def test_what_makes_a_job_unrentable_is_said(change, code):
    decision = decide(snapshot([*BUSY, job(**change)]), POLICY)
    assert decision.launches == () and code_of(decision, 1) == code


SHARED = replace(POLICY, folders=("/shared", "/home"), accounts=("vision", "nlp"))


@pytest.mark.parametrize(
    ("folders", "missing"),
    [
        (("/shared/ann/run", "/home/ann"), None),
        (("/shared",), None),
        ((), None),  # a pod, or a recording of before: not known
        (("/sharedx/ann",), "/sharedx/ann"),
        (("/shared/ann", "/tmp"), "/tmp"),
        (("/scratch/ann",), "/scratch/ann"),
    ],
)
def test_a_job_is_rented_for_only_where_its_folders_are(folders, missing):
    decision = decide(snapshot([*BUSY, job(folders=folders, account="vision")]), SHARED)
    assert bool(decision.launches) == (missing is None)
    if missing:
        assert code_of(decision, 1) == "folder"
        assert f"it works in {missing}, and of home's file systems rented nodes have /shared and /home" in text_of(
            decision, 1
        )


def test_folders_that_are_not_looked_at_keep_nobody_at_home():
    assert decide(snapshot([*BUSY, job(folders=("/nowhere",))]), POLICY).launches


@pytest.mark.parametrize(("account", "words"), [("bio", "account bio isn't"), ("", "charged to no account")])
def test_a_job_of_an_account_that_has_not_opted_in_stays_at_home(account, words):
    decision = decide(snapshot([*BUSY, job(account=account)]), SHARED)
    assert decision.launches == () and code_of(decision, 1) == "not_opted_in" and words in text_of(decision, 1)


MAINTENANCE = "ReqNodeNotAvail, Reserved for maintenance"
NOT_PERMITTED = "PartitionConfig, Job's account not permitted to use this partition (home)"
REFUSED = [
    "AccountNotAllowed",
    "BadConstraints",
    "BurstBufferOperation",
    "Constraints",
    "DeadLine",
    "InvalidAccount",
    "InvalidQOS",
    "PartitionDown",
    "PartitionInactive",
    "QOSNotAllowed",
    "ReservationDeleted",
    "ReservationInvalid",
]
SHARE = [
    "AssocGrpGRES",
    "AssocGrpCPURunMinutesLimit",
    "AssocMaxJobsLimit",
    "AssociationJobLimit",
    "QOSGrpNodeLimit",
    "QOSJobLimit",
    "QOSMaxGRESPerUser",
    "QOSUsageThreshold",
    "MaxGRESPerAccount",
    "MaxNodeRunMinsPerUser",
    "AccountingPolicy",
]
RENTED_FOR = [
    "None",
    "Priority",
    "Resources",
    "Reservation",
    "ReqNodeNotAvail",
    "Prolog",
    "Cleaning",
    "NodeDown",
    "SchedDefer",
    "JobLaunchFailure",
    "PartitionConfig",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "MaxMemPerLimit",
    "SomethingNew",
]


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        *[(word, "refused") for word in (*REFUSED, MAINTENANCE, NOT_PERMITTED, "AccountNotAllowed, uid 7, home")],
        *[(word, "share") for word in SHARE],
        *[("Licenses", "licences_taken"), ("JobArrayTaskLimit", "array_limit"), ("Dependency", "dependency")],
        *[(word, "renting") for word in (*RENTED_FOR, "ReqNodeNotAvail, UnavailableNodes:dgx[1-2]", "")],
        ("ReqNodeNotAvail, May be reserved for other job", "renting"),
    ],
)
def test_a_word_of_slurms_says_whether_a_node_would_help(reason, code):
    decision = decide(snapshot([*BUSY, job(reason=reason)]), POLICY)
    assert code_of(decision, 1) == code and bool(decision.launches) == (code == "renting")


@pytest.mark.parametrize("states", [("MAINTENANCE",), ("RESERVED",)])
def test_a_node_in_a_reservation_is_not_launched(states):
    asked = snapshot([*BUSY, job()], pools=[pool(size=1)])
    off = [replace(node, states=(*node.states, *states)) for node in asked.nodes]
    assert decide(replace(asked, nodes=tuple(off)), POLICY).launches == ()
    assert decide(asked, POLICY).launches != ()


@pytest.mark.parametrize(("losses", "markets"), [(0, ["spot"]), (2, ["spot"]), (3, ["on-demand"]), (9, ["on-demand"])])
def test_a_job_that_spot_was_taken_from_too_often_goes_on_demand(losses, markets):
    """Other restarts (preemption, an administrator's requeue) say nothing of spot."""
    decision = decide(snapshot([*BUSY, job(restarts=9, spot_losses=losses)]), POLICY)
    assert [launch.market for launch in decision.launches] == markets
    spot_alone = decide(snapshot([*BUSY, job(restarts=9, spot_losses=losses)], pools=[pool(markets=("spot",))]), POLICY)
    assert code_of(spot_alone, 1) == ("renting" if markets == ["spot"] else "spot_restarts")


@pytest.mark.parametrize(
    ("needs", "reaches", "code", "said"),
    [
        (
            {"data": ("imagenet", "c4")},
            {"data": ("imagenet",)},
            "data",
            "needs the data set c4, which pool p5 doesn't reach",
        ),
        (
            {"licences": ("matlab",)},
            {"data": ("matlab",)},
            "licences",
            "needs the licence matlab, which pool p5 doesn't reach",
        ),
        ({"fabric": "infiniband"}, {"fabric": "efa"}, "fabric", "must be on the fabric infiniband, pool p5 is on efa"),
    ],
)
def test_a_job_goes_only_where_its_data_licences_and_fabric_are(needs, reaches, code, said):
    decision = decide(snapshot([*BUSY, job(**needs)], pools=[pool(**reaches)]), POLICY)
    assert decision.launches == () and code_of(decision, 1) == code and said in text_of(decision)
    there = {"data": ("c4", "imagenet"), "licences": ("matlab",), "fabric": "infiniband"}
    decision = decide(snapshot([*BUSY, job(**needs)], pools=[pool(**reaches), pool("far", **there)]), POLICY)
    assert [launch.pool for launch in decision.launches] == ["far"]


def test_jobs_that_are_alike_but_for_what_they_need_do_not_share_their_offers():
    jobs = [job(1), job(2, data=("c4",)), job(3, licences=("matlab",)), job(4, fabric="infiniband")]
    decision = decide(snapshot([*BUSY, *jobs], pools=[pool(size=5)]), POLICY)
    assert [launch.jobs for launch in decision.launches] == [(1,)]
    assert [code_of(decision, n) for n in (2, 3, 4)] == ["data", "licences", "fabric"]


def test_nothing_is_placed_that_would_outlive_a_capacity_block():
    for left, rented in ((600 + 7200, True), (600 + 7199, False)):
        decision = decide(snapshot([*BUSY, job()], pools=[pool(ends_s=NOW + left)]), POLICY)
        assert bool(decision.launches) == rented
    assert code_of(decision, 1) == "outlives"
    assert "would outlive pool p5's capacity, which ends at 2026-11-21 14:09:59Z" in text_of(decision)
    ready = [lease("p5-1")]  # a node that is there doesn't outlive it either
    assert decide(snapshot([*BUSY, job()], pools=[pool(ends_s=NOW + 7199)], leases=ready), POLICY).assigns == ()
    far = decide(snapshot([*BUSY, job(limit_s=2 * DAY)], pools=[pool(ends_s=NOW + 30 * DAY)]), POLICY)
    assert code_of(far, 1) == "too_long"


def test_a_pool_of_an_account_is_for_its_jobs_alone():
    theirs, everybodys = pool("theirs", account="vision"), pool(size=1)
    jobs = [job(1, account="vision"), job(2), job(3, account="speech")]  # alike but for who pays
    decision = decide(snapshot([*BUSY, *jobs], pools=[theirs, everybodys]), POLICY)
    assert [(launch.pool, launch.jobs) for launch in decision.launches] == [("theirs", (1,)), ("p5", (2,))]
    alone = decide(snapshot([*BUSY, *jobs], pools=[theirs]), POLICY)
    assert [launch.jobs for launch in alone.launches] == [(1,)]
    assert [code_of(alone, n) for n in (2, 3)] == ["account", "account"]
    assert "it is charged to speech, and pool theirs is for account vision alone" in text_of(alone, 3)
    assert "it is charged to no account" in text_of(alone, 2)


def test_others_jobs_get_no_room_on_an_accounts_nodes_either():
    there = lease("p5-1", jobs=())
    mine, others = job(1, account="vision"), job(2, account="speech")
    for asked, assigned in ((mine, 1), (others, 0)):
        decision = decide(snapshot([*BUSY, asked], pools=[pool(size=1, account="vision")], leases=[there]), POLICY)
        assert len(decision.assigns) == assigned and decision.launches == ()


@pytest.mark.parametrize(
    ("change", "market"),
    [({}, "spot"), ({"batch": False}, "on-demand"), ({"requeue": False}, "on-demand"), ({"nodes": 2}, "on-demand")],
)
def test_spot_is_for_single_node_batch_jobs_that_may_be_requeued(change, market):
    assert [each.market for each in decide(snapshot([*BUSY, job(**change)]), POLICY).launches] == [market]


def test_a_spot_only_pool_can_not_take_the_others():
    decision = decide(snapshot([*BUSY, job(batch=False)], pools=[pool(markets=("spot",))]), POLICY)
    assert decision.infeasible[0].code == "spot_interactive"


def test_a_market_without_a_price_is_not_rented():
    unknown = pool(markets=("on-demand",), usd_per_hour={"on-demand": None})
    assert decide(snapshot([*BUSY, job()], pools=[unknown]), POLICY).infeasible[0].code == "no_price"


def test_a_pool_without_image_is_infeasible():
    decision = decide(snapshot([*BUSY, job()], pools=[pool(obstacle="no image: bake one")]), POLICY)
    assert decision.infeasible[0].code == "pool" and "no image" in decision.infeasible[0].text


@pytest.mark.parametrize("reason", ["AssocGrpGRES", "QOSMaxGRESPerUser", "AssocMaxJobsLimit"])
def test_a_job_whose_team_has_its_share_in_use_is_not_rented_for_and_holds_no_node_at_home(reason):
    full = [running(90, ["dgx1"], 10 * HOUR), running(91, ["dgx2"], 1800)]
    decision = decide(snapshot([*full, job(reason=reason, priority=9, submit_s=NOW - DAY), job(2)]), POLICY)
    assert code_of(decision, 1) == "share" and reason in text_of(decision) and decision.launches == ()
    assert decision.waits[1].start_s == NOW + 1800  # the first one isn't in its way


def test_a_job_that_waits_for_a_licence_is_not_rented_for():
    decision = decide(snapshot([*BUSY, job(reason="Licenses", submit_s=NOW - DAY)]), POLICY)
    assert decision.launches == () and code_of(decision, 1) == "licences_taken"


def test_a_job_larger_than_everything_and_a_site_without_nodes():
    giant = job(nodes=10_000, each=Resources(512, 9999, 10**9))
    assert code_of(decide(snapshot([giant]), POLICY), 1) == "too_large"
    assert code_of(decide(snapshot([job(nodes=1000)]), POLICY), 1) == "too_many_nodes"
    bare = Snapshot(NOW, (job(), job(2, limit_s=None)), (), (), budget=Budget(1.0, 0.0, 0.0, NOW))
    assert [each.code for each in decide(bare, POLICY).infeasible] == ["no_pool", "no_time_limit"]
    assert FULL.gpus == 8
