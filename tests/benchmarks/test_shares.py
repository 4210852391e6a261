"""The random sequences against the rules: none breaks a guarantee, and a scheduler that ends nothing does."""

import pytest

from benchmarks import shares
from benchmarks.share_sequences import figures
from ironburst.shares.placing import Round


def test_no_guarantee_is_broken():
    found = figures([shares.play(seed) for seed in range(200)])
    assert found["guarantees_broken"] == 0
    assert found["preempted"] > 100 and found["started"] > 2000  # they are about something


@pytest.mark.parametrize("fault", ["ends nothing", "ends what is guaranteed"])
def test_a_scheduler_that_breaks_guarantees_is_seen(monkeypatch, fault):
    def schedule(given, nodes, jobs):
        jobs = list(jobs)
        made = real(given, nodes, jobs)
        if fault == "ends nothing":
            return made if not made.ended else Round((), ())
        sure = tuple(job for job in jobs if job.on and not job.over)
        return Round(made.started, sure[:1]) if made.started else made

    real = shares.schedule
    monkeypatch.setattr(shares, "schedule", schedule)
    assert figures([shares.play(seed) for seed in range(20)])["guarantees_broken"] > 0
