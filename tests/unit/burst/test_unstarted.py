"""Which jobs give their rented nodes up: a rule of values, from tick to tick."""

import json
from dataclasses import replace

from ironburst.burst import decide, from_json, to_json
from ironburst.burst.unstarted import PATIENCE_S, Unstarted, look
from tests.fakes.snapshots import BUSY, NOW, POLICY, code_of, job, lease, pool, running, snapshot, text_of

KEPT = Unstarted()


def test_it_takes_all_of_its_patience_and_then_once():
    waits = [job(reason="Priority")]
    kept, gives_up = look(KEPT, [1], waits, NOW)
    assert kept.offered_s == {"1": NOW} and gives_up == []
    kept, gives_up = look(kept, [1], waits, NOW + PATIENCE_S - 1)
    assert gives_up == []
    kept, gives_up = look(kept, [1], waits, NOW + PATIENCE_S)
    assert [(each.job.id, each.open_s) for each in gives_up] == [(1, PATIENCE_S)] and kept.offered_s == {}
    assert look(kept, [1], waits, NOW + 9 * PATIENCE_S) == (kept, [])


def test_the_count_begins_anew_when_its_nodes_were_not_open_meanwhile():
    kept, _ = look(KEPT, [1], [job()], NOW)
    kept, _ = look(kept, [], [job()], NOW + 200)
    kept, gives_up = look(kept, [1], [job()], NOW + PATIENCE_S)
    assert kept.offered_s == {"1": NOW + PATIENCE_S} and gives_up == []


def test_a_clock_that_went_back_makes_nobody_impatient():
    kept, _ = look(KEPT, [1], [job()], NOW)
    kept, gives_up = look(kept, [1], [job()], NOW - 1e6)
    assert kept.offered_s == {"1": NOW - 1e6} and gives_up == []


def test_what_is_refused_in_words_is_given_up_at_once():
    _, gives_up = look(KEPT, [1], [job(reason="PartitionConfig, uid 7 not in group permitted to use it")], NOW)
    assert [each.job.id for each in gives_up] == [1]


def test_it_holds_until_the_job_is_changed_held_or_gone():
    kept, _ = look(KEPT, [1], [job(reason="BadConstraints")], NOW)
    assert kept.given_up.keys() == {"1"}
    same = [job(reason="Resources", priority=9, partitions=("home", "burst-p5"), excluded=("p5-2",))]
    assert look(kept, [], same, NOW)[0] == kept
    for change in ({"limit_s": 60.0}, {"nodes": 2}, {"account": "x"}, {"restarts": 1}, {"held": True}):
        assert look(kept, [], [job(**change)], NOW)[0] == KEPT
    assert look(kept, [], [running(1, ["dgx1"], 60)], NOW)[0] == KEPT == look(kept, [], [], NOW)[0]


def test_it_is_the_same_through_json():
    kept, _ = look(KEPT, [1, 2], [job(reason="BadConstraints"), job(2)], NOW)
    assert from_json(Unstarted, json.loads(json.dumps(to_json(kept)))) == kept


def test_nothing_is_rented_kept_or_widened_for_it():
    ready = [lease("p5-1", jobs=(1,))]
    widened = job(partitions=("home", "burst-p5"), reason="Priority")
    decision = decide(snapshot([*BUSY, widened], leases=ready, unstarted=(1,)), POLICY)
    assert decision.launches == decision.assigns == decision.widen == ()
    assert [(narrow.job, narrow.partitions) for narrow in decision.narrow] == [(1, ("home",))]
    assert code_of(decision, 1) == "unstarted" and "didn't start it there (Priority)" in text_of(decision)
    same_price = pool(markets=("on-demand",))
    decision = decide(snapshot([*BUSY, widened, job(2)], pools=[same_price], leases=ready, unstarted=(1,)), POLICY)
    assert [(assign.job, assign.leases) for assign in decision.assigns] == [(2, ("l1/p5-1",))]


# ---- jobs that are alike

DAY = 86400.0


def alike(count, word="a", **more):
    return [job(n, alike=word, called=f"team-a/train-{n}", **more) for n in range(1, count + 1)]


def test_of_jobs_that_are_alike_one_is_tried_first_until_such_a_job_has_run_on_rented_nodes():
    jobs = [*BUSY, *alike(3)]
    first = decide(snapshot(jobs, pools=[pool(size=9)]), POLICY)
    assert [launch.jobs for launch in first.launches] == [(1,)]
    assert [code_of(first, n) for n in (2, 3)] == ["tried"] * 2
    assert "job team-a/train-1, which asks for the same, is tried" in text_of(first, 2)
    coming = snapshot(jobs, pools=[pool(size=9)], leases=[lease("p5-1", "coming", jobs=(1,))])
    assert decide(coming, POLICY).launches == () and code_of(decide(coming, POLICY), 2) == "tried"
    first_begins = replace(jobs[-3], state="CONFIGURING", on=("p5-1",))  # its image is pulled
    begins = snapshot([*BUSY, first_begins, *jobs[-2:]], pools=[pool(size=9)], leases=[lease("p5-1", jobs=(1,))])
    assert decide(begins, POLICY).launches == () and code_of(decide(begins, POLICY), 2) == "tried"
    proven = decide(snapshot(jobs, pools=[pool(size=9)], proven=("a",)), POLICY)
    assert sorted(id for launch in proven.launches for id in launch.jobs) == [1, 2, 3]


def test_others_and_those_that_nothing_is_known_of_wait_for_nobody():
    jobs = [*BUSY, job(1, alike="a"), job(2, alike="b"), job(3), job(4)]
    found = decide(snapshot(jobs, pools=[pool(size=9)]), POLICY)
    assert sorted(id for launch in found.launches for id in launch.jobs) == [1, 2, 3, 4]


def test_one_that_gives_up_closes_those_that_are_alike_for_a_day():
    kept, _ = look(KEPT, [1], alike(2), NOW)
    kept, gives_up = look(kept, [1], alike(2), NOW + PATIENCE_S)
    assert [each.job.id for each in gives_up] == [1] and set(kept.misfits) == {"a"}
    until_s = kept.misfits["a"]
    assert until_s == NOW + PATIENCE_S + DAY
    assert look(kept, [], alike(2), until_s - 1)[0].misfits and not look(kept, [], alike(2), until_s)[0].misfits


def test_what_has_run_on_rented_nodes_is_no_misfit_and_is_tried_again_after_a_month():
    kept, _ = look(Unstarted(misfits={"a": NOW + DAY}), [], alike(1), NOW, working=["a"])
    assert kept.misfits == {} and set(kept.proven) == {"a"}
    assert set(look(kept, [], [], NOW + 28 * DAY)[0].proven) == {"a"}
    assert look(kept, [], [], NOW + 31 * DAY)[0].proven == {}
