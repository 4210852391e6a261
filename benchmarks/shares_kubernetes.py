"""The sequences of benchmarks.shares against a real kube-apiserver, kube-scheduler and controller manager.

Each sequence has nodes and namespaces of its own; a batch of them goes on step by step, side by side. A job is a pod.
Its class is guaranteed or over quota, as its user chose; one that the API server refuses for its quota is sent again,
as a Job's controller would, once the quota's status has room. Quotas are written anew after each step from what is
there (ironburst.shares.quotas). The nodes are kwok's, a stand-in: pods start and end there as their status says, and a
deleted one has a second's grace.

A pod that the API server took counts in its quota while it waits, too: one that fits nowhere keeps its own team's later
ones away. Nobody else has taken anything from the team then; how often it happens is counted beside (`behind_own`).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.share_sequences import NODES, STEPS, Played, Step, figures, overfull, shares_of, steps_of
from ironburst.shares import SharedJob, TeamShare, kubernetes, quotas
from ironburst.shares.placing import deprived
from ironburst.shares.quota import capacity
from lab.kubernetes.access import Api, Refused
from lab.kubernetes.commands import Options
from lab.kubernetes.control_plane import ControlPlane
from lab.kubernetes.nodes import NodeSpec
from lab.system import LabError, wait_for

BATCH = 40
AT_ONCE = 6  # sequences whose calls go side by side
GRACE_S = 80  # no node goes away here, and a hundred of them needn't say so each second
SETTLE_S = 180.0  # the scheduler's rounds; kube-scheduler tries a pod again after 10 s, but this machine may be busy
PAUSE_S = 0.5
SEQUENCE = "lab.ironburst/sequence"  # label of a sequence's nodes
PLACES = {
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Namespace": "/api/v1/namespaces",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "ResourceQuota": "/api/v1/namespaces/{namespace}/resourcequotas",
}
Json = dict[str, Any]


@dataclass
class Running:
    """One sequence, as it stands."""

    seed: int
    steps: list[Step]
    shares: list[TeamShare]
    played: Played = field(default_factory=Played)
    jobs: dict[int, SharedJob] = field(default_factory=dict)  # all that were submitted and haven't ended
    sent: set[int] = field(default_factory=set)  # those that the API server has
    bound: dict[int, str] = field(default_factory=dict)  # job: node, as seen last
    drained: set[str] = field(default_factory=set)
    hard: dict[tuple[str, str], int] = field(default_factory=dict)  # quotas as written
    refused: set[int] = field(default_factory=set)  # jobs that the API server didn't take, at least once
    behind: int = 0  # jobs at the ends of steps that wait for their team's own earlier pods

    @classmethod
    def of(cls, seed: int) -> Running:
        return cls(seed, list(steps_of(seed, gangs=False)), shares_of(seed))

    def team(self, account: str) -> str:
        """The namespace of a team."""
        return f"s{self.seed}-{account}"

    def now(self) -> list[SharedJob]:
        """The jobs with the nodes that they are on."""
        return [replace(job, on=(self.bound[job.id],) if job.id in self.bound else ()) for job in self.jobs.values()]

    def nodes(self) -> dict[str, int]:
        """Of those in service."""
        return {name: gpus for name, gpus in NODES.items() if name not in self.drained}


def figures_of(seeds: Iterable[int]) -> Json:
    """Plays them all, a batch at a time, and counts."""
    begun, all_seeds = time.monotonic(), list(seeds)
    plane = ControlPlane(f"shares-{os.getpid()}")
    plane.up(Options(grace_s=GRACE_S), tied=True)
    try:
        played, behind = list[Played](), 0
        found = figures(played)
        for first in range(0, len(all_seeds), BATCH):
            batch = [Running.of(seed) for seed in all_seeds[first : first + BATCH]]
            _play(plane, batch)
            played += [each.played for each in batch]
            behind += sum(each.behind for each in batch)
            slowest = max((each.slowest_s for each in played), default=0.0)
            wall_s = round(time.monotonic() - begun)
            found = figures(played, behind_own=behind, slowest_guarantee_s=round(slowest, 1), wall_s=wall_s)
            print(f"so far: {found}", file=sys.stderr, flush=True)
    finally:
        plane.down()
    return found


def _play(plane: ControlPlane, batch: Sequence[Running]) -> None:
    api = plane.api()
    _set_up(plane, api, batch)
    for number in range(STEPS):
        _each(batch, lambda each, number=number: _happen(api, each, each.steps[number]))
        _settle(api, batch)
    for each in batch:
        for share in each.shares:
            api.call("DELETE", f"/api/v1/namespaces/{each.team(share.account)}")
        for name in NODES:
            api.call("DELETE", f"/api/v1/nodes/s{each.seed}-{name}")


def _set_up(plane: ControlPlane, api: Api, batch: Sequence[Running]) -> None:
    every = [TeamShare(each.team(share.account)) for each in batch for share in each.shares]
    for thing in [*kubernetes.classes(), *kubernetes.namespaces(every), *kubernetes.policy(every)]:
        apply(api, thing)
    for each in batch:
        for name, gpus in NODES.items():
            labels = {SEQUENCE: str(each.seed)}
            spec = NodeSpec(f"s{each.seed}-{name}", labels, {"nvidia.com/gpu": str(gpus)}, devices_after_s=0.1)
            plane.add_node(spec)
    _each(batch, lambda each: _write_quotas(api, each))
    for share in every:
        account = f"/api/v1/namespaces/{share.account}/serviceaccounts/default"
        wait_for(lambda path=account: _there(api, path), SETTLE_S, f"{account}")
    names = [f"s{each.seed}-{name}" for each in batch for name in NODES]

    def ready() -> bool:
        seen = {item["metadata"]["name"]: item for item in api.call("GET", "/api/v1/nodes")["items"]}
        return all("nvidia.com/gpu" in seen[name]["status"]["allocatable"] for name in names)

    wait_for(ready, SETTLE_S, "the nodes' GPUs", pause=PAUSE_S)


def _each(batch: Sequence[Running], act: Callable[[Running], bool | None]) -> list[bool | None]:
    """Act on all, some side by side."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(act, batch))


def apply(api: Api, thing: Json) -> None:
    """Make an object, or bring it to what it should be."""
    namespace = thing["metadata"].get("namespace", "")
    place, name = PLACES[thing["kind"]].format(namespace=namespace), thing["metadata"]["name"]
    try:
        api.call("POST", place, thing)
    except Refused as refusal:
        if refusal.reason != "AlreadyExists":
            raise
        api.call("PATCH", f"{place}/{name}", thing)


def _there(api: Api, path: str) -> bool:
    try:
        return bool(api.call("GET", path))
    except Refused as refusal:
        if refusal.status != 404:
            raise
        return False


# ---- one step


def _happen(api: Api, each: Running, step: Step) -> None:
    if step.job:
        share = next(share for share in each.shares if share.account == step.job.account)
        over = share.over_quota and (not share.guaranteed or step.pick < 0.5)
        if over or share.guaranteed:
            each.jobs[step.job.id] = SharedJob(
                step.job.id, step.job.account, 1, step.job.each, step.job.order, over=over
            )
    elif step.what == "drain":
        name = sorted(NODES)[int(step.pick * len(NODES))]
        each.drained ^= {name}
        body = {"spec": {"unschedulable": name in each.drained}}
        api.call("PATCH", f"/api/v1/nodes/s{each.seed}-{name}", body)
    elif each.bound:
        job = sorted(each.bound)[int(step.pick * len(each.bound))]
        api.call("DELETE", f"/api/v1/namespaces/{each.team(each.jobs[job].account)}/pods/j{job}")
        del each.bound[job]
        each.sent.discard(job)
        if step.what == "finish":
            del each.jobs[job]


def _settle(api: Api, batch: Sequence[Running]) -> None:
    """The scheduler's rounds: until no guarantee is broken and nothing is under way, or until their time is over."""
    begun = time.monotonic()
    while True:
        quiet = _look(api, batch)
        broken = [(each, job) for each in batch for job in _deprived(each)]
        took = time.monotonic() - begun
        for each, _ in broken:
            each.played.slowest_s = max(each.played.slowest_s, took)
        if quiet and not broken:
            for each in batch:
                each.behind += len(deprived(each.shares, each.nodes(), each.now()))
            return
        if took > SETTLE_S:
            for each, job in broken:
                words = f"sequence {each.seed}: job {job.id} of {job.account}, {job.each} GPUs, waits: {each.now()}"
                each.played.broken.append(words)
            if not broken:
                raise LabError(f"after {SETTLE_S:.0f} s something is under way still: {_under_way(api)}")
            return
        time.sleep(PAUSE_S)


def _deprived(each: Running) -> list[SharedJob]:
    """The jobs for which a guarantee is broken: that wait as pods, or for which the quota has room."""
    found = []
    for job in deprived(each.shares, each.nodes(), each.now()):
        held = sum(
            other.gpus
            for other in each.jobs.values()
            if other.id in each.sent and other.account == job.account and not other.over
        )
        hard = each.hard[each.team(job.account), kubernetes.GUARANTEED]
        if job.id in each.sent or held + job.gpus <= hard:
            found.append(job)
    return found


def _look(api: Api, batch: Sequence[Running]) -> bool:
    """See which pods are where, write the quotas, and send what isn't there. True: nothing is under way."""
    pods, room = everything(api, "pods"), everything(api, "resourcequotas")
    return all(_each(batch, lambda each: _look_at(api, each, pods, room)))


def everything(api: Api, kind: str) -> dict[tuple[str, str], Json]:
    """By namespace and name."""
    items = api.call("GET", f"/api/v1/{kind}")["items"]
    return {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in items}


def _look_at(api: Api, each: Running, pods: dict[tuple[str, str], Json], room: dict[tuple[str, str], Json]) -> bool:
    quiet = True
    for job in list(each.sent):
        pod = pods.get((each.team(each.jobs[job].account), f"j{job}"))
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            quiet = False
            if pod is None:
                _ended(each, job)
            elif pod["status"].get("phase") in ("Succeeded", "Failed"):
                each.bound.pop(job, None)  # its containers have ended: kube-scheduler gives its GPUs away already
            continue
        node = pod["spec"].get("nodeName", "")
        if node and job not in each.bound:
            each.bound[job] = node.partition("-")[2]
            each.played.started += 1
        quiet = quiet and (bool(node) or _answered(pod))
    each.played.broken += overfull({job.id: job for job in each.now()})
    changed = _write_quotas(api, each)
    return not _send(api, each, pods, room) and not changed and quiet


def _answered(pod: Json) -> bool:
    """Whether the scheduler has said that it can't place a pod, and isn't making room for it."""
    said = any(
        each["type"] == "PodScheduled" and each["status"] == "False" for each in pod["status"].get("conditions", [])
    )
    return said and not pod["status"].get("nominatedNodeName")


def _under_way(api: Api) -> list[str]:
    """The pods that are neither on a node nor told that there is no room, and those that are being deleted."""
    return [
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}: {pod['status']}"
        for pod in api.call("GET", "/api/v1/pods")["items"]
        if "deletionTimestamp" in pod["metadata"] or not (pod["spec"].get("nodeName") or _answered(pod))
    ]


def _ended(each: Running, job: int) -> None:
    """The scheduler has ended it for another: it waits again."""
    if not each.jobs[job].over:
        each.played.broken.append(f"sequence {each.seed}: job {job} was ended, and isn't over quota")
    each.played.preempted += 1
    each.sent.discard(job)
    each.bound.pop(job, None)


def _write_quotas(api: Api, each: Running) -> bool:
    """Whether some changed."""
    jobs, changed = each.now(), False
    now = quotas(each.shares, capacity(each.nodes(), jobs), jobs)
    named = [TeamShare(each.team(share.account), share.guaranteed, most=share.most) for share in each.shares]
    for thing in kubernetes.quotas_of(named, {}, {each.team(account): quota for account, quota in now.items()}):
        key = thing["metadata"]["namespace"], thing["metadata"]["name"]
        hard = int(next(iter(thing["spec"]["hard"].values())))
        if key not in each.hard:
            apply(api, thing)
        elif each.hard[key] != hard:
            api.call("PATCH", f"{PLACES['ResourceQuota'].format(namespace=key[0])}/{key[1]}", {"spec": thing["spec"]})
        changed = changed or each.hard.get(key) != hard
        each.hard[key] = hard
    return changed


def _send(api: Api, each: Running, pods: dict[tuple[str, str], Json], room: dict[tuple[str, str], Json]) -> bool:
    """Send the jobs that the API server doesn't have, in their order; whether some went."""
    went = False
    for job in sorted(each.jobs.values(), key=lambda job: job.order):
        namespace = each.team(job.account)
        if job.id in each.sent or (namespace, f"j{job.id}") in pods:
            continue
        if job.id in each.refused and not fits(job, namespace, room):
            continue
        try:
            api.call("POST", f"/api/v1/namespaces/{namespace}/pods", pod_of(job, str(each.seed)))
        except Refused as refusal:
            if "exceeded quota" not in str(refusal):
                raise
            each.refused.add(job.id)
            continue
        each.sent.add(job.id)
        went = True
    return went


def fits(job: SharedJob, namespace: str, room: dict[tuple[str, str], Json]) -> bool:
    """Whether all quotas that count a job have room for it by their status."""
    for name in (kubernetes.OVER_QUOTA if job.over else kubernetes.GUARANTEED, "ironburst-most"):
        status = room.get((namespace, name), {}).get("status", {})
        key = f"requests.{kubernetes.GPU}"
        if key in status.get("hard", {}) and job.gpus + int(status["used"][key]) > int(status["hard"][key]):
            return False
    return True


def pod_of(job: SharedJob, sequence: str = "") -> Json:
    """A job's pod."""
    return {
        "metadata": {"name": f"j{job.id}"},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {SEQUENCE: sequence} if sequence else {},
            "priorityClassName": kubernetes.OVER_QUOTA if job.over else kubernetes.GUARANTEED,
            "containers": [{"name": "work", "image": "work", "resources": {"limits": {kubernetes.GPU: str(job.each)}}}],
        },
    }
