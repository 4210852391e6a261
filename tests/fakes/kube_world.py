"""A site whose scheduler is Kubernetes: the controller over the adapter, with a cloud and a cluster in memory.

kube-scheduler, the Job controller, the gate and the kubelets are played here: pods of one Job start together and on one
side, as kube-scheduler does for a PodGroup with a topology; each way of theirs that matters has its line in `live`.
"""

import itertools
from dataclasses import replace
from datetime import UTC, datetime

from ironburst.adapters.kubernetes import Kubernetes, KubernetesPool, KubernetesSite
from ironburst.controller.tick import Controller
from ironburst.ports import Resources
from lab.system import wait_for
from tests.fakes import FakeSlurm, kube_objects
from tests.fakes.kube_objects import GATED, gang, job, node, owner, pods_of, uid
from tests.fakes.world import World

PODS, NODES, JOBS = "v1 pods", "v1 nodes", "batch/v1 jobs"
SITE = KubernetesSite("lab", (KubernetesPool("burst-p5", ("p5-1", "p5-2", "p5-3"), Resources(8, 2, 1000), "h100"),))


def stamp(at_s):
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class KubeWorld(World):
    def __init__(self, tmp_path, api, client, *, eks=False, **burst):
        """`eks`: rented nodes join under their instances' ids, and by no token."""
        given = {} if eks else {"deliver": str}
        self.api, self.kube = api, Kubernetes(client, replace(SITE, by_instance=eks), first_s=10.0, **given)
        self.eks = eks
        self.runs_s, self.started, self.tries, self.registered = {}, {}, itertools.count(1), set()
        self.stays_home = lambda name: False  # whose pods no rented node takes, whatever the reason
        self.begin_as, self.lingers = {}, set()  # by job: the status of its pods once bound; whose pods never go
        super().__init__(tmp_path, home=0, **burst)
        api.now = self.clock.now
        for n in (1, 2):
            api.put(NODES, node(f"dgx0{n}"))
        self.slurm = FakeSlurm(self.clock, home=0)  # what the cloud's nodes would look at
        self.cloud.slurm = self.slurm

    def start(self, **breaking):
        super().start()
        self.controller = Controller(self.kube, self.cloud, self.ledger, self.clock)

    def until(self, condition, limit_s=7200.0, every_s=10.0):
        super().until(condition, limit_s, every_s)

    def tick(self, times=1):
        for _ in range(times):
            self.live()
            report = super().tick()
        return report

    # ---- what users and the cluster do
    def submit(self, name, count=1, runs_s=600, limit_s=None):
        """`limit_s`: of each pod, from its start on; None: an hour of the Job, pending or not."""
        raw, its = gang(name, count, cpu="1") if count > 1 else (it := job(name), pods_of(it, 1, cpu="1"))
        if limit_s is not None:
            del raw["spec"]["activeDeadlineSeconds"]
            for each in its:
                each["spec"]["activeDeadlineSeconds"] = int(limit_s)
        self.runs_s[name] = runs_s
        for each in (raw, *its):
            self.api.put(PODS if each in its else JOBS, self.fresh(each))

    def serve(self, name, notes, kind="StatefulSet"):
        """A pod of a controller that makes it again, for ever."""
        self.runs_s[name] = float("inf")
        self.api.put(
            PODS, self.fresh(kube_objects.pod(f"{name}-0", cpu="1", notes=notes, owner=owner(kind, name, uid())))
        )

    def fresh(self, raw):
        raw["metadata"]["creationTimestamp"] = stamp(self.clock.now())
        raw["metadata"].pop("deletionTimestamp", None)
        asked = raw["spec"].get("containers", [{}])[0].get("resources", {}).get("requests", {})
        asked.update({"memory": "500Mi"} if asked else {})
        if "parallelism" in raw["spec"]:
            raw["status"]["startTime"] = stamp(self.clock.now())
        return raw

    def of(self, resource):
        return [raw for key, raw in list(self.api.objects.items()) if key[0] == resource]

    def live(self):
        now = self.clock.now()
        for fake in self.cloud.all.values():
            name = f"i-{int(fake.instance.id[2:]):017x}" if self.eks else fake.node
            found = self.api.get(NODES, "", name)
            booted = fake.instance.alive and now >= fake.boots_at
            if booted and fake.instance.id not in self.registered:  # a kubelet does so once, when it starts
                self.registered.add(fake.instance.id)
                raw = node(name, gate="True", taints=[GATED], since=stamp(now))
                raw["metadata"]["labels"] |= {"ironburst.io/node": fake.node} if self.eks else {}
                raw["status"]["addresses"][0]["address"] = fake.instance.address
                self.api.put(NODES, raw)
            elif found and not fake.instance.alive and self.at(found) == fake.instance.address:
                self.api.edit(NODES, "", name, lambda raw: self.silent(raw, now))
        for raw in self.of(PODS):
            self.end(raw, now)
        self.schedule(now)
        self.caught_up()

    def at(self, raw):
        return raw["status"]["addresses"][0]["address"]

    def silent(self, raw, now):
        ready = raw["status"]["conditions"][0]
        if ready["status"] == "True":
            ready |= {"status": "Unknown", "lastTransitionTime": stamp(now)}

    def end(self, raw, now):
        meta, of = raw["metadata"], raw["metadata"]["ownerReferences"][0]["name"]
        if raw["status"]["phase"] == "Succeeded":
            return
        gone = raw["spec"].get("nodeName") and not self.api.get(NODES, "", raw["spec"]["nodeName"])
        if (
            meta.get("deletionTimestamp") and of not in self.lingers
        ) or gone:  # the kubelet, or pod garbage collection; then the Job's next try
            self.api.remove(PODS, meta["namespace"], meta["name"])
            again = self.fresh({**raw, "metadata": {**meta, "name": f"{meta['name']}-{next(self.tries)}"}})
            again["metadata"].pop("uid")
            again["spec"] = {key: value for key, value in raw["spec"].items() if key != "nodeName"}
            again["spec"]["tolerations"] = [each for each in raw["spec"]["tolerations"] if "value" not in each]
            again["status"] = pods_of(job(of), 1)[0]["status"]
            self.api.put(PODS, again)
            if self.api.get(JOBS, "team-a", of):
                self.api.edit(
                    JOBS, "team-a", of, lambda job: job["status"].update(failed=job["status"].get("failed", 0) + 1)
                )
        elif raw["status"]["phase"] == "Running" and now >= self.started[of][-1][0] + self.runs_s[of]:
            self.api.edit(PODS, meta["namespace"], meta["name"], lambda pod: pod["status"].update(phase="Succeeded"))
            self.api.edit(JOBS, "team-a", of, lambda job: job["status"].update(succeeded=1))

    def schedule(self, now):
        busy = {pod["spec"].get("nodeName") for pod in self.of(PODS) if pod["status"]["phase"] != "Succeeded"}
        waiting = {}
        for pod in self.of(PODS):
            if not pod["spec"].get("nodeName"):
                waiting.setdefault(pod["metadata"]["ownerReferences"][0]["name"], []).append(pod)
        for name, pods in sorted(waiting.items(), key=lambda item: item[1][0]["metadata"]["creationTimestamp"]):
            for home in (True,) if self.stays_home(name) else (True, False):
                free = [
                    raw["metadata"]["name"]
                    for raw in self.of(NODES)
                    if raw["metadata"]["name"].startswith("dgx") == home
                    and raw["metadata"]["name"] not in busy
                    and not raw["spec"].get("unschedulable")
                    and raw["status"]["conditions"][0]["status"] == "True"
                    and all(self.tolerates(pod, taint) for pod in pods for taint in raw["spec"]["taints"])
                ]
                if len(free) >= len(pods):
                    self.bind(name, pods, free, now)
                    busy |= set(free[: len(pods)])
                    break

    def tolerates(self, pod, taint):
        alike = [(each.get("key"), each.get("value")) for each in pod["spec"]["tolerations"]]
        return (taint["key"], taint.get("value")) in alike

    def bind(self, name, pods, free, now):
        labels = [self.api.get(NODES, "", there)["metadata"]["labels"] for there in free[: len(pods)]]
        ours = tuple(has.get("ironburst.io/node", has["kubernetes.io/hostname"]) for has in labels)
        self.started.setdefault(name, []).append((now, ours))
        for pod, there in zip(pods, free, strict=False):

            def bound(raw, there=there):
                raw["spec"]["nodeName"] = there
                status = self.begin_as.get(name, {"phase": "Running"})
                raw["status"] = {"startTime": stamp(now), "conditions": [], **status}

            self.api.edit(PODS, "team-a", pod["metadata"]["name"], bound)

    def caught_up(self):
        """The watches are asynchronous, and time passes only here."""
        self.kube._cache.copies(10.0)
        for watched in self.kube._cache._of.values():
            group = watched._path.split("/")
            resource = f"{group[2]} {group[-1]}" if group[1] == "api" else f"{group[2]}/{group[3]} {group[-1]}"
            newest = max((row[0] for row in self.api.history if row[2] == resource), default=0)

            def has_it(watched=watched, newest=newest):
                return not watched._version or int(watched._version) >= newest

            wait_for(has_it, 10.0, f"the watch of {resource}", pause=0.002)

    # ---- what is asked of it
    def done(self, name):
        return all(
            pod["status"]["phase"] == "Succeeded"
            for pod in self.of(PODS)
            if pod["metadata"]["ownerReferences"][0]["name"] == name
        )

    def nothing_left(self):
        nodes = {raw["metadata"]["name"] for raw in self.of(NODES)}
        return not self.ledger.leases() and not self.cloud.alive() and nodes == {"dgx01", "dgx02"}


def fill_home(world, runs_s=7200):
    world.submit("home", 2, runs_s=runs_s)
    world.until(lambda: "home" in world.started)
