"""What starts and what ends: work over quota alone, and never a guarantee broken."""

from dataclasses import replace

from ironburst.shares import SharedJob, TeamShare
from ironburst.shares.placing import deprived, schedule

NODES = {"n1": 8, "n2": 8}


def job(id, account, each, nodes=1, on=(), over=False):
    return SharedJob(id, account, nodes, each, float(id), on, over)


def starts(shares, jobs, nodes=NODES):
    round = schedule(shares, nodes, jobs)
    return {each.id: (each.on, each.over) for each in round.started}, [each.id for each in round.ended]


def test_idle_gpus_are_used_over_quota():
    assert starts([TeamShare("a", 8), TeamShare("b", 8)], [job(1, "a", 8), job(2, "a", 8)]) == (
        {1: (("n1",), False), 2: (("n2",), True)},
        [],
    )


def test_a_guarantee_ends_work_over_quota_the_newest_first():
    jobs = [job(1, "a", 4, on=("n1",), over=True), job(2, "a", 4, on=("n1",), over=True)]
    jobs += [job(3, "a", 8, on=("n2",)), job(4, "b", 4)]
    assert starts([TeamShare("a", 8), TeamShare("b", 8)], jobs) == ({4: (("n1",), False)}, [2])


def test_a_gang_ends_as_a_whole():
    jobs = [job(1, "a", 8, nodes=2, on=("n1", "n2"), over=True), job(2, "b", 1)]
    found, ended = starts([TeamShare("a"), TeamShare("b", 1)], jobs)
    assert (found[2], ended) == ((("n1",), False), [1])


def test_nothing_ends_for_work_over_quota_nor_for_what_is_above_the_guarantee():
    jobs = [job(1, "a", 8, on=("n1",), over=True), job(2, "a", 8, on=("n2",), over=True)]
    shares = [TeamShare("a"), TeamShare("b", 4, weight=9)]
    assert starts(shares, [*jobs, job(3, "b", 8)]) == ({}, [])
    assert deprived(shares, NODES, [*jobs, job(3, "b", 8)]) == ()


def test_nothing_ends_where_that_would_not_help():
    """Two nodes, each half full of guaranteed work: eight on one node isn't to be had."""
    jobs = [job(n, "a", 4, on=(f"n{n}",)) for n in (1, 2)] + [job(3, "c", 4, on=("n1",), over=True), job(4, "b", 8)]
    shares = [TeamShare("a", 8), TeamShare("b", 8), TeamShare("c")]
    assert starts(shares, jobs) == ({}, [])
    assert deprived(shares, NODES, jobs) == ()


def test_a_broken_guarantee_is_seen():
    shares = [TeamShare("a"), TeamShare("b", 8)]
    jobs = [job(1, "a", 8, nodes=2, on=("n1", "n2"), over=True), job(2, "b", 8)]
    assert [each.id for each in deprived(shares, NODES, jobs)] == [2]
    kept = [replace(jobs[0], over=False), jobs[1]]  # had it a guarantee of its own, nothing were broken
    assert deprived(shares, NODES, kept) == ()


def test_who_has_least_over_quota_by_weight_starts_first():
    shares = [TeamShare("a", weight=1), TeamShare("b", weight=3)]
    jobs = [job(n, "a", 2) for n in range(20)] + [job(n, "b", 2) for n in range(20, 40)]
    found, _ = starts(shares, jobs)
    assert [sum(id // 20 == team for id in found) for team in (0, 1)] == [2, 6]


def test_no_team_gets_more_than_its_most():
    assert starts([TeamShare("a", 4, most=6)], [job(1, "a", 4), job(2, "a", 4), job(3, "a", 2)]) == (
        {1: (("n1",), False), 3: (("n1",), True)},
        [],
    )
