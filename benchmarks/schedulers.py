"""Is a queue of pods decided on as a queue of Slurm's jobs is? python -m benchmarks.schedulers [--jobs 5000] [--json]

A trace is played three times on the same home nodes: as the policy's own records, as what Slurm's commands print
(`squeue --json`, `scontrol show node --json`), and as Kubernetes' objects (Jobs, pods, Nodes). At each decision the
whole queue and all nodes are rendered and read back by the adapter that the controller uses. Compared are the five
waits, what was rented, and the moments at which each job began.

The trace is played in what both can say: moments and time limits in whole minutes, jobs of more than one node in whole
nodes; of pods that are alike none is tried first (docs/adr/0100). The three differ in nothing else: the home scheduler
is ironburst.replay's, not kube-scheduler.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from benchmarks import burst, peers
from benchmarks.figures import WAITS, Outcome, figures, finite, trace_path
from ironburst.adapters.kubernetes import nodes as kube_nodes
from ironburst.adapters.kubernetes import objects, pods, queue
from ironburst.adapters.kubernetes.gangs import Gang
from ironburst.adapters.kubernetes.site import SITE_KEY
from ironburst.adapters.kubernetes.site import KubernetesPool as KubePool
from ironburst.adapters.kubernetes.site import KubernetesSite as KubeSite
from ironburst.adapters.slurm import answers as slurm_json
from ironburst.burst import Job, Node, Policy, Snapshot
from ironburst.burst.limits import Limits, WaitTarget
from ironburst.replay import traces
from ironburst.replay.home import HOME, Home
from ironburst.replay.simulate import Played, play
from ironburst.replay.traces import Trace

Json = dict[str, Any]
Reader = Callable[[Snapshot], Snapshot]
# a trace begins at 0, which both schedulers take for "never"; its first job is number 0, which is no id; and the place
# in the queue is a priority below 0, where Slurm's 0 is "held"
EPOCH_S, FIRST_ID, TOP = 1_700_000_000, 1, 1_000_000
MINUTE_S = 60.0


def sayable(trace: Trace, gpus: int) -> Trace:
    """The trace in whole minutes and, above one node, whole nodes."""
    whole = np.where(trace.gpus > gpus, -(-trace.gpus // gpus) * gpus, trace.gpus)
    return replace(
        trace,
        submit_s=np.floor(trace.submit_s / MINUTE_S) * MINUTE_S,
        duration_s=np.maximum(np.ceil(trace.duration_s / MINUTE_S), 1) * MINUTE_S,
        gpus=whole,
    )


def merged(snapshot: Snapshot) -> list[Job]:
    """Each job once: a replay shows one on unlike nodes in parts, but of whole nodes there is one part."""
    ids = [job.id for job in snapshot.jobs]
    if len(ids) != len(set(ids)):
        raise ValueError("a job is on nodes that aren't alike")
    return list(snapshot.jobs)


def read_back(snapshot: Snapshot, found: list[Job], nodes: list[Node]) -> Snapshot:
    """What an adapter read, in the terms of the replay: its numbers, its moments, its order."""

    def at(moment: float | None) -> float | None:
        return None if moment is None else moment - EPOCH_S

    order = {name: place for place, name in enumerate(node.name for node in snapshot.nodes)}
    first = {job.id: place for place, job in enumerate(snapshot.jobs)}
    jobs = [
        replace(
            job,
            name="",
            submit_s=job.submit_s - EPOCH_S,
            eligible_s=at(job.eligible_s),
            start_s=at(job.start_s),
            end_s=at(job.end_s),
            priority=job.priority - TOP,
            alike="",  # of pods that are alike one is tried first, which no trace says of Slurm's jobs
        )
        for job in found
    ]
    jobs.sort(key=lambda job: first[job.id])
    return replace(snapshot, jobs=tuple(jobs), nodes=tuple(sorted(nodes, key=lambda node: order[node.name])))


# ---- Slurm


class ThroughSlurm:
    """Renders a snapshot as Slurm's commands print it, and reads that."""

    def __call__(self, snapshot: Snapshot) -> Snapshot:
        said = json.loads(json.dumps({"jobs": [_squeue(job) for job in merged(snapshot)]}))
        shown = json.loads(json.dumps({"nodes": [_scontrol(node) for node in snapshot.nodes]}))
        found = [replace(job, id=job.id - FIRST_ID) for job in slurm_json.jobs(said)]
        return read_back(snapshot, found, slurm_json.nodes(shown))


def _set(value: float | None) -> Json:
    return {"set": value is not None, "infinite": False, "number": 0 if value is None else int(value)}


def _moment(value: float | None) -> Json:
    return _set(None if value is None else EPOCH_S + value)


def _squeue(job: Job) -> Json:
    asked = f"node={job.nodes},gres/gpu={job.nodes * job.each.gpus}"
    return {
        "job_id": job.id + FIRST_ID,
        "name": f"job-{job.id}",
        "user_name": job.user,
        "account": job.account,
        "job_state": [job.state],
        "state_reason": "Resources" if job.pending else "None",
        "node_count": _set(job.nodes),
        "nodes": ",".join(job.on),
        "tres_req_str": asked,
        "tres_alloc_str": asked if job.on else "",
        "submit_time": _moment(job.submit_s),
        "eligible_time": _moment(job.eligible_s),
        "start_time": _moment(job.start_s),
        "end_time": _moment(job.end_s),
        "time_limit": _set(None if job.time_limit_s is None else job.time_limit_s / MINUTE_S),
        "partition": HOME,
        "priority": _set(job.priority + TOP),
        "batch_flag": True,
        "requeue": job.requeue,
        "restart_cnt": job.restarts,
    }


def _scontrol(node: Node) -> Json:
    return {
        "name": node.name,
        "partitions": list(node.partitions),
        "tres": f"gres/gpu={node.total.gpus}",
        "state": list(node.states),
    }


# ---- Kubernetes


class ThroughKubernetes:
    """Renders a snapshot as the API server's objects, and reads them as the adapter's cache and queue do."""

    def __init__(self, snapshot: Snapshot):
        declared = tuple(KubePool(each.partition, each.nodes, each.each) for each in snapshot.pools)
        self._site = KubeSite("replay", declared, account_label="account", user_label="user")
        of_pools = {name for pool in declared for name in pool.nodes}
        self._nodes = {
            node.name: objects.read_node(_node(node)) for node in snapshot.nodes if node.name not in of_pools
        }
        self._memo = queue.Memo()

    def __call__(self, snapshot: Snapshot) -> Snapshot:
        site, jobs, views, numbers = self._site, {}, {}, {}
        for job in merged(snapshot):
            name = f"job-{job.id}"
            raw = _job(name, job)
            jobs[f"trace/{name}"] = view = objects.read_job(raw, site)
            for n in range(job.nodes):
                pod = pods.read_pod(_pod(name, n, view.uid, job), site)
                views[pod.key] = pod
            numbers[name] = job.id
        seen = queue.Objects(pods=views, nodes=self._nodes, jobs=jobs, groups={}, claims={}, volumes={})
        ids = {gang.id: numbers[_name(gang)] for gang in seen.gangs[0]}
        found = [replace(job, id=ids[job.id]) for job in queue.jobs_of(seen, site, self._memo)]
        bound = [pod for pod in views.values() if pod.node]
        nodes = kube_nodes.nodes_of(self._nodes, bound, kube_nodes.NodesRecord(), site, EPOCH_S + snapshot.now_s)
        return read_back(snapshot, found, nodes)


def _name(gang: Gang) -> str:
    owner = gang.pods[0].owner
    assert owner is not None
    return owner.name


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(EPOCH_S + seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _meta(name: str, created_s: float, **more: Any) -> Json:
    uid = f"uid-of-{name}"
    return {
        "name": name,
        "uid": uid,
        "resourceVersion": "1",
        "creationTimestamp": _when(created_s),
        **more,
    }


def _job(name: str, job: Job) -> Json:
    """Between two interruptions a job is made anew by its controller; a moment from which on it waits is its pods'."""
    spec = {"parallelism": job.nodes, "completions": job.nodes, "completionMode": "Indexed", "backoffLimit": 6}
    return {
        "metadata": _meta(name, job.submit_s, namespace="trace"),
        "spec": spec,
        "status": {"startTime": _when(job.submit_s)},
    }


def _pod(name: str, index: int, owner: str, job: Job) -> Json:
    limit = {} if job.time_limit_s is None else {"activeDeadlineSeconds": int(job.time_limit_s)}
    near = {"labelSelector": {"matchLabels": {"job-name": name}}, "topologyKey": SITE_KEY}
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0 nodes are available"}
    bound = bool(job.on)
    return {
        "metadata": _meta(
            f"{name}-{index}",
            job.submit_s,
            namespace="trace",
            labels={"job-name": name, "account": job.account, "user": job.user},
            annotations={"batch.kubernetes.io/job-completion-index": str(index)},
            ownerReferences=[{"kind": "Job", "name": name, "uid": owner, "controller": True}],
        ),
        "spec": {
            "schedulerName": "default-scheduler",
            "priority": job.priority + TOP,
            "containers": [{"resources": {"requests": {"nvidia.com/gpu": str(job.each.gpus)}}}],
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}},
            **({"nodeName": job.on[index]} if bound else {}),
            **limit,
        },
        "status": {
            "phase": "Running" if bound else "Pending",
            "conditions": [] if bound else [waits],
            **({"startTime": _when(job.start_s)} if job.start_s is not None else {}),
        },
    }


def _node(node: Node) -> Json:
    meta = _meta(node.name, 0.0, labels={SITE_KEY: HOME})
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": _when(0.0)}
    return {
        "metadata": meta,
        "spec": {},
        "status": {"conditions": [ready], "allocatable": {"nvidia.com/gpu": str(node.total.gpus)}},
    }


# ---- the comparison


class Lazily:
    """A reader that is made of the first snapshot."""

    def __init__(self, make: Callable[[Snapshot], Reader]):
        self._make, self._reader = make, None

    def __call__(self, snapshot: Snapshot) -> Snapshot:
        self._reader = self._reader or self._make(snapshot)
        return self._reader(snapshot)


READERS: dict[str, Callable[[], Reader | None]] = {
    "records": lambda: None,
    "slurm": ThroughSlurm,
    "kubernetes": lambda: Lazily(ThroughKubernetes),
}


def compare(trace: Trace, pool_gpus: int) -> Json:
    """Each way of saying the queue: its five waits, what it rented, how many jobs began otherwise than in `slurm`."""
    home, trace = Home(pool_gpus // burst.GPUS_PER_NODE, burst.GPUS_PER_NODE), sayable(trace, burst.GPUS_PER_NODE)
    theirs = burst.measure(lambda run, gpus: peers.run(run, gpus, peer=peers.PEERS["starburst"]), {1: trace}, pool_gpus)
    waits = burst.wait_limits(theirs)
    limits = Limits(WaitTarget(waits.mean_h, waits.p99_h, waits.p999_h, waits.max_h, waits.gpu_hour_weighted_h))
    played: dict[str, Played] = {}
    said: Json = {}
    for name, reader in READERS.items():
        began = time.perf_counter()
        played[name] = found = play(trace, home, Policy("home", 0.0, limits=limits), shown=reader())
        took = time.perf_counter() - began
        said[name] = figures(trace, Outcome(found.start_s, found.rented), pool_gpus, took)
        said[name] |= {"decisions": found.decisions, "rented_jobs": int(np.count_nonzero(found.rented))}
    for name, found in played.items():
        other = (found.start_s != played["slurm"].start_s) | (found.rented != played["slurm"].rented)
        said[name]["jobs_otherwise"] = int(np.count_nonzero(other))
    return said


def table(said: Json) -> str:
    """For people."""
    columns = ("rented_gpu_hours", *WAITS, "decisions", "jobs_otherwise")
    lines = ["".join(f"{head:>26}" for head in ("", *columns))]
    for name, row in said.items():
        lines.append(f"{name:>26}" + "".join(f"{row[column]:>26,.6g}" for column in columns))
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.schedulers", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--trace", default="philly_first70d.csv.xz", help="file, or its name in the shared data")
    parser.add_argument("--pool-gpus", type=int, default=512, help="GPUs at home, in nodes of 8")
    parser.add_argument("--jobs", type=int, default=0, help="only so many of the trace's jobs; 0: all")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    path = trace_path(arguments.trace, arguments.json)
    if not path:
        return 0
    trace = traces.read(path)
    if arguments.jobs:
        trace, _ = traces.split(trace, 1 - min(1.0, arguments.jobs / len(trace)))
    said = compare(trace, arguments.pool_gpus)
    what = {"trace": path.name, "jobs": len(trace), "pool_gpus": arguments.pool_gpus}
    print(json.dumps(finite({**what, "schedulers": said}), indent=1) if arguments.json else table(said))
    return 0 if said["kubernetes"]["jobs_otherwise"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
