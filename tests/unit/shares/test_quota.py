"""What each team may have now: guarantees, and what is idle by weight."""

import random

import pytest

from ironburst.shares import Quota, SharedJob, TeamShare, guarantees, kinds, quotas


def waiting(account, *sizes, start=0):
    return [SharedJob(start + n, account, 1, gpus, order=start + n) for n, gpus in enumerate(sizes)]


def running(id, account, gpus, over=False):
    return SharedJob(id, account, 1, gpus, order=id, on=("n1",), over=over)


A, B, C = TeamShare("a", 16), TeamShare("b", 8), TeamShare("c", 0)


def test_guarantees_are_as_promised_while_there_is_room():
    assert guarantees([A, B, C], 24) == {"a": 16, "b": 8, "c": 0} == guarantees([A, B, C], 40)


def test_they_shrink_in_proportion_and_say_so():
    assert guarantees([A, B, C], 12) == {"a": 8, "b": 4, "c": 0}
    assert guarantees([TeamShare("a", 10), TeamShare("b", 10), TeamShare("c", 10)], 8) == {"a": 3, "b": 3, "c": 2}
    assert quotas([A, B, C], 12, []) == {"a": Quota(8, 4 + 8, 8), "b": Quota(4, 12, 4), "c": Quota(0, 12)}
    assert guarantees([A, B], 0) == {"a": 0, "b": 0}


def test_what_nobody_asks_for_is_open_to_all_and_a_guarantee_in_use_is_not():
    found = quotas([A, B, C], 40, [running(1, "a", 16), running(2, "b", 4)])
    assert found == {"a": Quota(16, 20), "b": Quota(8, 20), "c": Quota(0, 20)}


def test_what_is_idle_goes_by_weight():
    shares = [TeamShare("a", 8, weight=3), TeamShare("b", 8, weight=1)]
    jobs = waiting("a", *[1] * 100) + waiting("b", *[1] * 100, start=200)
    assert quotas(shares, 32, jobs) == {"a": Quota(8, 12), "b": Quota(8, 4)}


def test_a_gang_is_over_quota_as_a_whole_or_not_at_all():
    """In steps of GPUs each would have four, and neither could start."""
    shares = [TeamShare("a"), TeamShare("b")]
    found = quotas(shares, 8, waiting("a", 8) + waiting("b", 8, start=9))
    assert found == {"a": Quota(0, 8), "b": Quota(0, 0)}
    # four of the guarantee's eight are used: a job of eight isn't half over quota
    jobs = [running(1, "a", 4), *waiting("a", 8, 4, start=5)]
    assert kinds([TeamShare("a", 8)], 16, jobs) == {1: False, 5: True, 6: False}


def test_a_job_that_fits_nowhere_isnt_waited_for():
    found = quotas([TeamShare("a"), TeamShare("b")], 8, waiting("a", 16, 4) + waiting("b", 4, start=9))
    assert found == {"a": Quota(0, 4), "b": Quota(0, 4)}


def test_a_team_that_may_not_has_nothing_over_quota_and_no_team_more_than_its_most():
    strict, bounded = TeamShare("a", 4, over_quota=False), TeamShare("b", 4, most=6)
    jobs = waiting("a", *[1] * 20) + waiting("b", *[1] * 20, start=30)
    assert quotas([strict, bounded], 16, jobs) == {"a": Quota(4, 0), "b": Quota(4, 2)}
    assert quotas([strict, bounded], 16, [])["b"] == Quota(4, 6)  # of any kind, six together


def test_what_runs_over_quota_is_asked_first_and_no_more_starts_above_the_fair_part():
    shares = [TeamShare("a"), TeamShare("b")]
    jobs = [running(n, "a", 8, over=True) for n in range(4)] + waiting("b", 8, 8, 8, start=10)
    assert quotas(shares, 32, jobs) == {"a": Quota(0, 16), "b": Quota(0, 16)}


@pytest.mark.parametrize("seed", range(60))
def test_at_any_numbers(seed):
    dice = random.Random(seed)
    shares = [
        TeamShare(f"t{n}", dice.randint(0, 20), dice.random() < 0.8, dice.randint(1, 4), dice.choice([None, 20, 30]))
        for n in range(dice.randint(1, 6))
    ]
    gpus = dice.randint(0, 80)
    jobs = waiting("nobody", 4, start=900)
    for n in range(dice.randint(0, 40)):
        share = dice.choice(shares)
        over = dice.random() < 0.5
        on = ("n",) if dice.random() < 0.3 else ()
        jobs.append(
            SharedJob(n, share.account, dice.randint(1, 2), dice.choice([1, 2, 4, 8]), n, on, bool(on) and over)
        )
    found = quotas(shares, gpus, jobs)
    assert sum(quota.guaranteed for quota in found.values()) <= gpus
    assert found == quotas(shares, gpus, list(reversed(jobs)))  # whatever the order that they are told in
    for share in shares:
        quota = found[share.account]
        assert 0 <= quota.guaranteed <= share.guaranteed and quota.short == share.guaranteed - quota.guaranteed
        assert 0 <= quota.over <= (gpus if share.over_quota else 0)
        assert share.most is None or quota.over <= share.most
    if sum(share.guaranteed for share in shares) > gpus:  # no part is off by a whole GPU
        promised = sum(share.guaranteed for share in shares)
        assert sum(quota.guaranteed for quota in found.values()) == gpus
        assert all(abs(found[s.account].guaranteed - s.guaranteed * gpus / promised) < 1 for s in shares)
