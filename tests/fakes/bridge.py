"""slurm-bridge, and a Slurm with its jobs, in memory: a stand-in, written from slurm-bridge's documents and source
(1.2) and slurmctld's (25.11). No real one was ever asked. What it does as they say:

- it makes a job only when as many Nodes fit as there are pods; a Node with a taint that the pod doesn't tolerate fits
  not, a busy one does;
- as long as a job waits it writes its partitions and the nodes that it may be given anew, each time it looks;
- Slurm can't requeue its jobs; one that is cancelled is gone at once, and its pods are deleted up to 30 s later, with
  their grace time;
- a Node that Slurm knows gets its taint; a cordoned one is drained in Slurm; a drain without a reason, or with one of
  its own, is lifted again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from ironburst.adapters.kubernetes.bridged import JOB_LABEL, MANAGED
from ironburst.adapters.slurm import bridge as slurm_bridge
from ironburst.burst import Resources
from ironburst.ports import SchedulerError
from tests.fakes.kube_objects import GATED, csr, node, pem, uid
from tests.fakes.slurm import FakeSlurm

NAME = "slurm-bridge-scheduler"
GROUP = "scheduling.x-k8s.io/pod-group"
NODES, PODS, REQUESTS = "v1 nodes", "v1 pods", "certificates.k8s.io/v1 certificatesigningrequests"
OWN = "slurm-bridge:"


class BridgedFakeSlurm(FakeSlurm):
    """ironburst.adapters.bridged.Queue."""

    def __init__(self, *given, **more):
        super().__init__(*given, **more)
        self.pools, self.pods, self.its, self.fitting = {}, {}, {}, {}
        self.opened = []  # powered-down nodes that were without their drain for a moment

    def observe(self):
        seen = super().observe()
        self.pods = {job.id: self.its[job.id] for job in seen.jobs if job.id in self.its}
        jobs = tuple(slurm_bridge.told(job, self.pools) if job.id in self.its else job for job in seen.jobs)
        return replace(seen, jobs=jobs)

    def exclude(self, job, nodes, *, begin_now):
        fake = self.jobs[job]
        if fake.done or not fake.job.pending:
            raise SchedulerError(f"job {job} isn't pending")
        fake.job = replace(fake.job, excluded=tuple(nodes))

    def cancel(self, jobs):
        for job in jobs:
            self._end(self.jobs[job], "CANCELLED")

    def heal(self, nodes):
        """It resumes, then drains."""
        self.opened += [name for name in nodes if "DOWN" not in self.nodes[name].states]
        super().heal(nodes)

    def _may(self, name, job):
        return job.id not in self.its or name in self.fitting[job.id]


class FakeBridge:
    """Its scheduler and controllers, kubelets, and who makes pods anew. `step` lets them all look once."""

    gate_s, notice_s, grace_s = 20.0, 30.0, 30.0
    gate = "True"  # of rented nodes
    runs = True  # its controllers
    by_lua = True  # ironburst's job_submit.lua is on the head: its jobs are kept off rented nodes from the beginning

    def __init__(self, api, slurm, cloud, clock, partitions=("home", "burst-p5")):
        self.api, self.slurm, self.cloud, self.clock, self.partitions = api, slurm, cloud, clock, partitions
        self.joined, self.deleted, self.remade = {}, {}, 0
        for name in slurm.nodes:
            if "CLOUD" not in slurm.nodes[name].states:
                api.put(NODES, node(name, gate=None))

    # ---- what users do
    def pod(self, name, *, group="", owner=True, limit_s=3600.0, runs_s=600.0, made="2026-11-23T07:00:00Z"):
        labels = {GROUP: group} if group else {}
        self.api.put(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": "team-a",
                    "uid": uid(),
                    "creationTimestamp": made,
                    "labels": labels,
                    "annotations": {"limit": str(limit_s), "runs": str(runs_s), "owner": "job" if owner else ""},
                },
                "spec": {"schedulerName": NAME, "nodeName": ""},
                "status": {"phase": "Pending"},
            },
        )

    def of(self, name):
        """(node, phase, job) of a pod; None: it is gone."""
        if (raw := self.api.get(PODS, "team-a", name)) is None:
            return None
        return raw["spec"]["nodeName"], raw["status"]["phase"], raw["metadata"]["labels"].get(JOB_LABEL)

    def every(self, resource):
        return [raw for key, raw in sorted(self.api.objects.items()) if key[0] == resource]

    # ---- what happens by itself
    def step(self):
        self._kubelets()
        if self.runs:
            self._nodes()
            self._schedule()
        self._pods()

    def _kubelets(self):
        for name in self.slurm.nodes:
            there = next((raw for raw in self.every(NODES) if raw["metadata"]["name"] == name), None)
            up = self.cloud.booted(name)
            if "CLOUD" not in self.slurm.nodes[name].states:
                continue
            if up is None:
                self.joined.pop(name, None)
                if there:
                    self.api.edit(NODES, "", name, lambda raw: _set(raw, "Ready", "Unknown", self.api.now()))
            elif name not in self.joined:
                self._ask(name, up.id)
            elif there and self.clock.now() - self.joined[name] >= self.gate_s:
                self.api.edit(NODES, "", name, lambda raw: _set(raw, "ironburst.io/GatePassed", self.gate))

    def _ask(self, name, instance):
        request = f"csr-{instance}"
        found = next((raw for raw in self.every(REQUESTS) if raw["metadata"]["name"] == request), None)
        if found is None:
            self.api.put(REQUESTS, csr(request, pem(f"system:node:{name}")))
        elif any(each["type"] == "Approved" for each in (found.get("status") or {}).get("conditions") or []):
            self.joined[name] = self.clock.now()
            (partition,) = self.slurm.nodes[name].partitions
            made = node(name, taints=[GATED])
            made["metadata"]["labels"]["ironburst.io/site"] = partition
            if not any(raw["metadata"]["name"] == name for raw in self.every(NODES)):  # else it keeps what it has
                self.api.put(NODES, made)

    def _nodes(self):
        for raw in self.every(NODES):
            name, slurms = raw["metadata"]["name"], self.slurm.nodes.get(raw["metadata"]["name"])
            if slurms and not any(taint["key"] == MANAGED for taint in raw["spec"]["taints"]):
                taint = {"key": MANAGED, "value": NAME, "effect": "NoExecute"}
                self.api.edit(NODES, "", name, lambda raw, new=taint: raw["spec"]["taints"].append(new))
            if slurms and raw["spec"].get("unschedulable") and "DRAIN" not in slurms.states:
                self.slurm.drain([name], f"{OWN} Corresponding Kubernetes node ({name}) is unschedulable")
            elif slurms and "DRAIN" in slurms.states and (not slurms.reason or OWN in slurms.reason):
                slurms.states -= {"DRAIN"}

    def _schedule(self):
        groups = {}
        for raw in self.every(PODS):
            if raw["status"]["phase"] == "Pending" and not raw["metadata"].get("deletionTimestamp"):
                groups.setdefault(raw["metadata"]["labels"].get(GROUP) or raw["metadata"]["name"], []).append(raw)
        fits = [raw["metadata"]["name"] for raw in self.every(NODES) if self._fits(raw)]
        for pods in groups.values():
            self._group(pods, fits)

    def _fits(self, raw):
        ready = next(each["status"] for each in raw["status"]["conditions"] if each["type"] == "Ready") == "True"
        others = [taint for taint in raw["spec"]["taints"] if taint["key"] != MANAGED]
        return (
            ready
            and not others
            and not raw["spec"].get("unschedulable")
            and raw["metadata"]["name"] in self.slurm.nodes
        )

    def _group(self, pods, fits):
        notes, id = pods[0]["metadata"]["annotations"], int(pods[0]["metadata"]["labels"].get(JOB_LABEL, 0))
        fake = self.slurm.jobs.get(id)
        if fake and not fake.done and fake.job.on:
            for raw, name in zip(pods, fake.job.on, strict=True):
                self._edit(raw, lambda pod, name=name: (pod["spec"].update(nodeName=name), _phase(pod, "Running")))
        elif len(fits) < len(pods):
            return  # as long as that is so there is no job, or the one that there is stays as it is
        elif fake and not fake.done:
            self.slurm.fitting[id] = set(fits)
            fake.job = replace(fake.job, partitions=self.partitions)
        else:
            self._submit(pods, fits, float(notes["limit"]), float(notes["runs"]))

    def _submit(self, pods, fits, limit_s, runs_s):
        keys = tuple(f"team-a/{raw['metadata']['name']}" for raw in pods)
        more = {"name": keys[0], "user": "slurm", "requeue": False, "each": Resources(8, 1, 1000)}
        id = self.slurm.submit(len(pods), limit_s, runs_s, partitions=(), **more)
        self.slurm.its[id], self.slurm.fitting[id] = keys, set(fits)
        barred = [name for name in self.slurm.nodes if "CLOUD" in self.slurm.nodes[name].states]
        self.slurm.change(id, partitions=self.partitions, excluded=tuple(barred) if self.by_lua else ())
        self.slurm.schedule()
        for raw in pods:
            self._edit(raw, lambda pod: pod["metadata"]["labels"].update({JOB_LABEL: str(id)}))

    def _pods(self):
        """A pod ends with its job; one whose job ended, or whose Node is gone, is deleted."""
        there, late_s = {raw["metadata"]["name"] for raw in self.every(NODES)}, self.notice_s + self.grace_s
        for raw in self.every(PODS):
            name, now = raw["metadata"]["name"], self.clock.now()
            job = self.slurm.jobs.get(int(raw["metadata"]["labels"].get(JOB_LABEL, 0)))
            if raw["status"]["phase"] != "Running":
                continue
            if job.done == "COMPLETED":
                self._edit(raw, lambda pod: _phase(pod, "Succeeded"))
            elif raw["spec"]["nodeName"] not in there or now - self.deleted.get(name, now) >= late_s:
                self._gone(raw)
            elif job.done:
                self.deleted.setdefault(name, now)

    def _gone(self, raw):
        meta = raw["metadata"]
        self.deleted.pop(meta["name"], None)
        self.api.remove(PODS, "team-a", meta["name"])
        if meta["annotations"]["owner"]:
            self.remade += 1
            notes = {key: float(meta["annotations"][f"{key[:-2]}"]) for key in ("limit_s", "runs_s")}
            group = meta["labels"].get(GROUP, "")
            self.pod(f"{meta['name'].split('.')[0]}.{self.remade}", group=group, **notes)

    def _edit(self, raw, change):
        self.api.edit(PODS, "team-a", raw["metadata"]["name"], change)


def _phase(raw, phase):
    raw["status"]["phase"] = phase


def _set(raw, kind, status, at_s=0.0):
    """A condition of a Node, and when it changed."""
    kept = [each for each in raw["status"]["conditions"] if each["type"] != kind]
    before = next((each for each in raw["status"]["conditions"] if each["type"] == kind), {})
    at = datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    new = {"type": kind, "status": status, "reason": "Fake", "message": "as a test wants it", "lastTransitionTime": at}
    raw["status"]["conditions"] = [*kept, before if before.get("status") == status else new]
