"""From the API server's record, the Jobs' status and the controller's ledger to one History."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ironburst.controller.ledger import Ledger
from ironburst.document import ClusterDocument
from lab.demo import trace
from lab.demo.aws import AWS
from lab.demo.burst import Faults, Submitted
from lab.demo.collect import leases_of, marks_of
from lab.demo.history import History, JobHistory, Run
from lab.demo.kubernetes import pods
from lab.demo.kubernetes.record import PodSeen
from lab.demo.kubernetes.trials import Trial
from lab.demo.kubernetes.world import HOME, HOME_HAS, Cluster
from lab.demo.summary import facts as common_facts
from lab.demo.summary import faults as common_faults

REAL = "etcd, kube-apiserver, kube-scheduler, kube-controller-manager, RBAC and NodeRestriction, Redfish, the Pulumi "
REAL += "protocol and program, the controller with its rights in both"
STAND_INS = "nodes and what runs on them (kwok), what an instance does after its boot, AWS (moto); a job's work is time"


def facts(document: ClusterDocument, engine: str) -> dict[str, str]:
    """Lines for the head of the report."""
    common = common_facts(document, engine, pods.COMPRESSION, AWS.stand_in)
    least = f"{common['Input']}; no job shorter than {pods.SHORTEST_S:g} s"
    return common | {"Input": least, "Real": REAL, "Stand-ins": STAND_INS}


def faults(
    history: History, injected: Faults, ledger: Ledger, trials: Sequence[Trial] = ()
) -> dict[str, dict[str, Any]]:
    """As in summary.py; a spot interruption counts only if it ended a run, and the job ran again."""
    well = not any(job.fate == "lost" for job in history.jobs) and history.run_twice == 0
    tried = {trial.what: {"injected": trial.what, "met": trial.met()} for trial in trials}
    said = common_faults(history, injected)
    spot = said["spot interruption"]
    lost = {lease.node for lease in ledger.leases(open_only=False) if lease.instance_id == injected.interrupted}
    again = [job.name for job in history.jobs if any(lost & set(run.nodes) for run in job.runs[:-1])]
    said |= {"spot interruption": spot | {"ran again": again, "survived": spot["survived"] and bool(again)}}
    return said | {what: each | {"survived": well and bool(each["met"])} for what, each in tried.items()}


def history(
    cluster: Cluster, ledger: Ledger, document: ClusterDocument, submitted: Submitted, told: dict[str, str]
) -> History:
    """What became of each job of the trace."""
    status = {job["metadata"]["name"]: job for job in cluster.jobs()}
    rented = {node for pool in document.pools for node in pool.nodes}
    seen = {job.name: cluster.record.of(job.name) for job in pods.jobs()}
    jobs = []
    for job in pods.jobs():
        id = submitted.ids[job.name]
        waited = any(decision.kind == "wait" and decision.last_s > decision.at_s for decision in ledger.decisions(id))
        runs = tuple(attempts(seen[job.name], rented, submitted.began))
        done = complete(status.get(job.name, {}), job.nodes) and succeeded(seen[job.name]) == job.nodes
        fate = "lost" if not done or not runs else "rented" if runs[-1].rented else "waited" if waited else "home"
        jobs.append(JobHistory(id, job.name, job.gpus, job.nodes, job.submit_s, runs, fate))
    return History(
        home_gpus=len(HOME) * int(HOME_HAS["nvidia.com/gpu"]),
        gpus_per_node=trace.GPUS_PER_NODE,
        jobs=tuple(jobs),
        leases=leases_of(ledger, submitted.began),
        marks=marks_of(ledger, submitted),
        run_twice=sum(twice(each) for each in seen.values()),
        budget_usd=document.budget.usd_per_month if document.budget else 0.0,
        facts=told | {"Pods": f"{len(cluster.record.pods())} seen, {cluster.record.gaps} gaps in what was seen"},
    )


def complete(job: dict[str, Any], nodes: int) -> bool:
    """By its own status."""
    status = job.get("status", {})
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    return conditions.get("Complete") == "True" and status.get("succeeded") == nodes


def succeeded(seen: Iterable[PodSeen]) -> int:
    """Indexes of which a pod ran to its end."""
    return len({pod.index for pod in seen if pod.phase == "Succeeded"})


def twice(seen: Iterable[PodSeen]) -> bool:
    """Whether the work of an index was done to the end more than once, or at two places at the same time."""
    ran = sorted((pod for pod in seen if pod.ran), key=lambda pod: pod.began or 0.0)
    ends = Counter(pod.index for pod in ran if pod.phase == "Succeeded")
    together = any(
        one.index == other.index and (one.ended is None or (other.began or 0.0) < one.ended)
        for n, one in enumerate(ran)
        for other in ran[n + 1 :]
    )
    return together or any(count > 1 for count in ends.values())


def attempts(seen: Iterable[PodSeen], rented: set[str], began: float) -> list[Run]:
    """Each start of a job: a pod whose index has run before begins the next one."""
    tries: list[dict[int, PodSeen]] = []
    for pod in seen:
        if pod.ran:
            if not tries or pod.index in tries[-1]:
                tries.append({})
            tries[-1][pod.index] = pod
    runs = []
    for each in (list(one.values()) for one in tries):
        nodes = tuple(sorted({pod.node for pod in each}))
        start = min(pod.began or 0.0 for pod in each)
        ended = [pod.ended for pod in each if pod.ended is not None]
        state = "COMPLETED" if all(pod.phase == "Succeeded" for pod in each) else "ENDED"
        runs.append(Run(start - began, max(ended, default=start) - began, nodes, nodes[0] in rented, state))
    return runs


def gangs(history: History) -> dict[str, int]:
    """How many jobs of several nodes had theirs at home, and rented."""
    fates = [job.fate for job in history.jobs if job.nodes > 1]
    return {
        "gangs_at_home": len(fates) - fates.count("rented") - fates.count("lost"),
        "gangs_rented": fates.count("rented"),
    }


def coming(ledger: Ledger, began: float) -> dict[str, float]:
    """The slowest node from its launch until the controller saw that its gate had passed, seconds."""
    events = ledger.events(began)
    launched = {event.launch: event.at_s for event in reversed(events) if event.kind == "launched"}
    took = [
        event.at_s - launched[event.launch] for event in events if event.kind == "joined" and event.launch in launched
    ]
    return {"launched_to_joined_s": round(max(took), 1)} if took else {}
