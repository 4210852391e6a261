"""The published policies: against a simulation too plain to be wrong, and the authors' figures where the data are."""

import time

import numpy as np
import pytest

from benchmarks import figures, peers
from benchmarks.figures import Outcome
from ironburst.replay import traces
from ironburst.replay.traces import Trace

PHILLY = figures.DATA / "philly_first70d.csv.xz"
# authors' own code, seed 1, 512 GPUs: rented GPU-hours, rented jobs, mean wait in hours
AUTHORS = {
    "no_wait": (222_207.4, 16_816, 0),
    "constant": (215_589.5, 7_686, 0.27601),
    "starburst_head": (152_290.2, 55_451, 0.33032),
    "starburst": (119_352.6, 38_906, 0.31127),
}


def slowly(trace, pool_gpus, peer):
    """The rules once more, word for word: at every instant that matters look at everything."""
    free = [8] * (pool_gpus // 8)
    submit, limit = trace.submit_s, trace.submit_s + peer.limit_s(trace)
    start, rented, parts, ended, now = {}, set(), {}, set(), -1.0
    while len(start) < len(trace):
        ends = {job: start[job] + trace.duration_s[job] for job in parts if job not in ended}
        waiting = [job for job in range(len(trace)) if job not in start]
        now = min(t for t in [*ends.values(), *submit[waiting], *limit[waiting]] if t > now)
        for job, end in ends.items():
            if end <= now:
                ended.add(job)
                for node, gpus in parts[job]:
                    free[node] += gpus
        for job in waiting:
            if submit[job] < now and limit[job] <= now:
                start[job] = now
                rented.add(job)
        for job in waiting:
            if job in start or submit[job] > now:
                continue
            whole, rest = divmod(int(trace.gpus[job]), 8)
            empty = [node for node, gpus in enumerate(free) if gpus == 8][:whole]
            last = [node for node, gpus in enumerate(free) if rest and gpus >= rest and node not in empty][:1]
            if len(empty) < whole or (rest and not last):
                if peer.whole_queue:
                    continue
                break
            start[job], parts[job] = now, [(node, 8) for node in empty] + [(node, rest) for node in last]
            for node, gpus in parts[job]:
                free[node] -= gpus
    return [start[job] for job in range(len(trace))], [job in rented for job in range(len(trace))]


@pytest.mark.parametrize("name", [name for name in peers.PEERS if name != "no_wait"])
@pytest.mark.parametrize("seed", range(6))
def test_as_the_slow_simulation(name, seed):
    random = np.random.default_rng(seed)
    gpus = random.choice([1, 1, 2, 4, 5, 8, 12, 16, 24], 60)
    trace = traces.in_order(random.uniform(0, 40_000, 60), random.exponential(9_000, 60), gpus)
    outcome = peers.run(trace, 16, peers.PEERS[name])
    start, rented = slowly(trace, 16, peers.PEERS[name])
    assert outcome.start_s.tolist() == start and outcome.rented.tolist() == rented
    assert 0 < sum(rented) < 60
    figures.figures(trace, outcome, 16, 1.0)  # refuses more GPUs in use than there are


def test_without_waiting_a_job_runs_at_once_at_home_or_rented():
    trace = Trace([0, 1, 2, 20], [10, 10, 10, 10], [8, 8, 1, 8])
    outcome = peers.run(trace, 8, peers.PEERS["no_wait"])
    assert outcome.start_s.tolist() == [0, 1, 2, 20] and outcome.rented.tolist() == [False, True, True, False]


def test_a_pool_is_whole_nodes():
    with pytest.raises(ValueError, match="a pool of 12 GPUs"):
        peers.Pool(12)


@pytest.mark.skipif(not PHILLY.exists(), reason=f"no {PHILLY.name} in {figures.DATA.name}: set IRONBURST_DATA")
def test_as_the_authors_code_and_fast():
    trace = traces.jittered(traces.read(PHILLY), 1)
    for name, (gpu_hours, jobs, mean_h) in AUTHORS.items():
        began = time.process_time()
        outcome = peers.run(trace, 512, peers.PEERS[name])
        measured = figures.figures(trace, outcome, 512, time.process_time() - began)
        assert measured["rented_gpu_hours"] == pytest.approx(gpu_hours, abs=0.1), name
        assert outcome.rented.sum() == jobs and measured["mean_wait_h"] == pytest.approx(mean_h, abs=1e-5), name
        assert measured["jobs_per_s"] > 1_500, "slower than the authors' own code: a straw man"


def test_figures_count_every_job():
    trace = Trace([0, 0, 3600], [3600, 7200, 3600], [1, 2, 4])
    measured = figures.figures(trace, Outcome(np.array([0, 3600, 3600.0]), np.array([False, True, False])), 4, 0.5)
    assert measured["rented_gpu_hours"] == 4 and measured["mean_wait_h"] == pytest.approx(1 / 3)
    assert measured["gpu_hour_weighted_wait_h"] == pytest.approx(4 / 9) and measured["max_wait_h"] == 1
    assert measured["p50_wait_h"] == 0
    assert measured["p99_wait_h"] == pytest.approx(0.98) and measured["jobs_per_s"] == 6


@pytest.mark.parametrize(
    ("start", "rented", "told"),
    [
        ([0, 5], [False, False], "2 GPUs were in use at home"),
        ([0, 4], [False, True], "job 1 was submitted at 5 s but started at 4 s"),
        ([0, np.nan], [False, True], "job 1 was submitted"),
    ],
)
def test_an_outcome_that_cannot_be_is_refused(start, rented, told):
    trace = Trace([0, 5], [10, 10], [1, 1])
    with pytest.raises(ValueError, match=told):
        figures.figures(trace, Outcome(np.array(start, float), np.array(rented)), 1, 1.0)
