"""The same trace as Slurm's queue and as pods; and that a reader which differs is seen."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import schedulers
from benchmarks.schedulers import EPOCH_S, Lazily, ThroughKubernetes, ThroughSlurm, compare, sayable
from ironburst.burst import Job, Node, Policy, Resources, Snapshot
from ironburst.replay.home import Home
from ironburst.replay.simulate import play
from ironburst.replay.traces import Trace


@pytest.fixture
def trace():
    """A busy afternoon on 32 GPUs."""
    random = np.random.default_rng(5)
    count = 90
    submit_s = np.sort(random.uniform(0, 4 * 3600, count))
    gpus = random.choice([1, 2, 4, 8, 12, 16], count)
    queue = tuple(random.choice(["vision", "speech"], count))
    return Trace(submit_s, random.uniform(30, 5400, count), gpus, queue=queue, user=queue)


def test_a_trace_is_made_sayable(trace):
    said = sayable(trace, 8)
    assert set(said.submit_s % 60) | set(said.duration_s % 60) == {0.0}
    assert set(said.gpus) == {1, 2, 4, 8, 16} and (said.duration_s >= trace.duration_s).all()


def test_pods_are_decided_on_as_slurms_jobs(trace):
    said = compare(trace, 32)
    assert {name: row["jobs_otherwise"] for name, row in said.items()} == dict.fromkeys(said, 0)
    assert said["kubernetes"]["rented_jobs"] > 5 and said["kubernetes"]["decisions"] > 20
    assert said["kubernetes"]["rented_gpu_hours"] == said["slurm"]["rented_gpu_hours"]


def test_what_an_adapter_reads_otherwise_is_counted(trace, monkeypatch):
    class Blind(ThroughKubernetes):
        """Takes every second job for held."""

        def __call__(self, snapshot):
            seen = super().__call__(snapshot)
            return replace(seen, jobs=tuple(replace(job, held=job.id % 2 == 0 and job.pending) for job in seen.jobs))

    monkeypatch.setitem(schedulers.READERS, "kubernetes", lambda: Lazily(Blind))
    assert compare(trace, 32)["kubernetes"]["jobs_otherwise"] > 5


@pytest.mark.parametrize("reader", [ThroughSlurm, lambda: Lazily(ThroughKubernetes)], ids=["slurm", "kubernetes"])
def test_both_read_back_what_they_were_told(trace, reader):
    seen = []

    def shown(snapshot):
        seen.append((snapshot, read(snapshot)))
        return snapshot

    read = reader()
    play(sayable(trace, 8), Home(4, 8), Policy("home", 60.0), shown=shown)
    fields = (
        "id",
        "state",
        "submit_s",
        "nodes",
        "each",
        "time_limit_s",
        "priority",
        "on",
        "start_s",
        "end_s",
        "account",
    )
    assert sum(len(before.jobs) for before, _ in seen) > 200
    for before, after in seen:
        assert [[getattr(job, name) for name in fields] for job in after.jobs] == [
            [getattr(job, name) for name in fields] for job in before.jobs
        ]
        assert [(node.name, node.partitions, node.total) for node in after.nodes] == [
            (node.name, node.partitions, node.total) for node in before.nodes
        ]
        assert [node.launchable for node in after.nodes] == [node.launchable for node in before.nodes]


def test_a_job_on_unlike_nodes_is_refused():
    parts = tuple(
        Job(1, "", "", "RUNNING", 0.0, 1, Resources(gpus), 60.0, ("home",), on=(name,), start_s=0.0)
        for gpus, name in ((8, "home-0"), (4, "home-1"))
    )
    node = Node("home-0", ("home",), Resources(8), ("IDLE",))
    with pytest.raises(ValueError, match="aren't alike"):
        ThroughSlurm()(Snapshot(EPOCH_S, parts, (node,), ()))
