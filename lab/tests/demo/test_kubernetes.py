"""The demo with pods: its own pure parts."""

import pytest

from lab.demo.kubernetes import collect, pods
from lab.demo.kubernetes.record import INDEX, PodSeen, seen
from lab.demo.trace import TraceJob

UID = "0-1"


def pod(index, node, began, ended, phase="Succeeded"):
    return PodSeen("a", index, node, phase, began, ended)


def raw(phase="Running", **state):
    status = {"phase": phase, **({"containerStatuses": [{"state": state}]} if state else {})}
    meta = {"uid": UID, "labels": {pods.NAME_LABEL: "a"}, "annotations": {INDEX: "1"}}
    return {"metadata": meta, "spec": {"nodeName": "p5-1"}, "status": status}


def test_a_gang_is_one_indexed_job_whose_pods_start_on_one_side():
    made = pods.of(TraceJob(1, 0.0, 20.0, 16, "vc"))
    assert made["spec"]["parallelism"] == made["spec"]["completions"] == 2
    pod = made["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "8"
    (term,) = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "ironburst.io/site"
    assert term["labelSelector"]["matchLabels"] == {"batch.kubernetes.io/job-name": "philly-01"}
    assert pod["activeDeadlineSeconds"] == pods.LIMIT_S
    assert all(job.run_s < pods.LIMIT_S / 2 for job in pods.jobs())


def test_a_job_of_one_pod_asks_for_no_company_and_runs_for_long_enough():
    made = pods.of(TraceJob(2, 0.0, 0.4, 4, "vc"))["spec"]["template"]
    assert "affinity" not in made["spec"]
    assert made["metadata"]["annotations"]["lab.ironburst/run-seconds"] == f"{pods.SHORTEST_S:.0f}"


def test_a_pod_is_followed_to_its_end():
    waiting = seen(raw("Pending", waiting={"reason": "ContainerCreating"}), None, None)
    assert (waiting.job, waiting.index, waiting.ran) == ("a", 1, False)
    running = seen(raw(running={"startedAt": "1970-01-01T00:00:10Z"}), waiting, None)
    assert (running.began, running.ended) == (10.0, None)
    times = {"startedAt": "1970-01-01T00:00:10Z", "finishedAt": "1970-01-01T00:00:30Z"}
    assert seen(raw("Succeeded", terminated=times), running, None) == pod(1, "p5-1", 10.0, 30.0)


def test_a_pod_that_goes_without_a_word_ended_when_it_was_deleted():
    running = seen(raw(running={"startedAt": "1970-01-01T00:00:10Z"}), None, None)
    gone = seen(raw(running={"startedAt": "1970-01-01T00:00:10Z"}), running, 17.0)
    assert (gone.ended, gone.phase) == (17.0, "Running")
    assert seen(raw("Pending"), None, 17.0).ended is None


def test_each_start_of_a_gang_is_a_run():
    first = [pod(0, "p5-1", 10.0, 20.0, "Failed"), pod(1, "p5-2", 11.0, 20.0, "Failed")]
    again = [pod(0, "dgx01", 40.0, 60.0), pod(1, "dgx02", 41.0, 61.0)]
    lost, done = collect.attempts([*first, *again], {"p5-1", "p5-2"}, began=5.0)
    assert (lost.start, lost.end, lost.nodes, lost.rented, lost.state) == (5.0, 15.0, ("p5-1", "p5-2"), True, "ENDED")
    assert (done.start, done.end, done.nodes, done.rented, done.state) == (
        35.0,
        56.0,
        ("dgx01", "dgx02"),
        False,
        "COMPLETED",
    )
    assert not collect.twice([*first, *again]) and collect.succeeded([*first, *again]) == 2


@pytest.mark.parametrize(
    "pods_seen",
    [
        [pod(0, "a", 1.0, 5.0), pod(0, "b", 6.0, 9.0)],  # done to the end twice
        [pod(0, "a", 1.0, 5.0, "Failed"), pod(0, "b", 4.0, 9.0)],  # at two places at once
        [pod(0, "a", 1.0, None, "Running"), pod(0, "b", 4.0, 9.0)],
    ],
)
def test_what_counts_as_run_twice(pods_seen):
    assert collect.twice(pods_seen)


def test_a_job_is_complete_by_its_own_word_only():
    done = {"status": {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 2}}
    assert collect.complete(done, 2)
    assert not collect.complete(done, 3) and not collect.complete({}, 0)
    failed = {"status": {"conditions": [{"type": "Failed", "status": "True"}], "succeeded": 2}}
    assert not collect.complete(failed, 2)
