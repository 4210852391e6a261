"""The controller itself over the Kubernetes adapter: its whole way, with a cloud and a cluster in memory.

kube-scheduler, the Job controller, the gate and the kubelets are played here: pods of one Job start together and on one
side, as kube-scheduler does for a PodGroup with a topology; each way of theirs that matters has its line in `live`.
"""

import itertools
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ironburst.adapters.kubernetes import Kubernetes, Pool, Site, scheduler
from ironburst.controller.tick import Controller
from ironburst.ports import InsufficientCapacity, Resources, SchedulerError
from lab.system import wait_for
from tests.fakes import FakeSlurm
from tests.fakes.kube_api import Refusal
from tests.fakes.kube_objects import GATED, gang, job, node, pods_of
from tests.fakes.world import World

PODS, NODES, JOBS = "v1 pods", "v1 nodes", "batch/v1 jobs"
SITE = Site("lab", (Pool("burst-p5", ("p5-1", "p5-2", "p5-3"), Resources(8, 2, 1000), "h100"),))


def stamp(at_s):
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class KubeWorld(World):
    def __init__(self, tmp_path, api, client, *, eks=False, **burst):
        """`eks`: rented nodes join under their instances' ids, and by no token."""
        given = {} if eks else {"deliver": str}
        self.api, self.kube = api, Kubernetes(client, replace(SITE, by_instance=eks), first_s=10.0, **given)
        self.eks = eks
        self.runs_s, self.started, self.tries, self.registered = {}, {}, itertools.count(1), set()
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
    def submit(self, name, count=1, runs_s=600):
        raw, its = gang(name, count, cpu="1") if count > 1 else (it := job(name), pods_of(it, 1, cpu="1"))
        self.runs_s[name] = runs_s
        for each in (raw, *its):
            self.api.put(PODS if each in its else JOBS, self.fresh(each))

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
            for home in (True, False):
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


@pytest.fixture(params=["by-token", "eks"])
def world(request, api, client, tmp_path, monkeypatch):
    monkeypatch.setattr(scheduler, "_SETTLE_S", 0.0)
    it = KubeWorld(tmp_path, api, client, eks=request.param == "eks")
    yield it
    it.kube.close()


def fill_home(world, runs_s=7200):
    world.submit("home", 2, runs_s=runs_s)
    world.until(lambda: "home" in world.started)


def test_a_gang_that_home_has_no_room_for_is_rented_for_and_all_of_it_goes_again(world):
    fill_home(world)
    world.submit("train", 2)
    world.until(lambda: "train" in world.started)
    assert world.started["train"][0][1] == ("p5-1", "p5-2")
    assert [request.count for request in world.cloud.requests] == [2]
    world.until(lambda: world.done("train"))
    world.until(world.nothing_left)
    assert len(world.started["train"]) == len(world.started["home"]) == 1
    assert world.events("needs_a_person") == []
    assert world.events("trouble") == []


def test_a_gang_of_more_pods_than_home_has_nodes_is_rented_for_beside_an_idle_home(world):
    """Its pods stay Pending; nothing refuses them."""
    world.submit("large", 3)
    world.until(lambda: "large" in world.started)
    assert world.started["large"][0][1] == ("p5-1", "p5-2", "p5-3")
    world.until(lambda: world.done("large"))


def test_no_capacity_touches_no_job_and_home_takes_it_when_it_is_free(world):
    fill_home(world, runs_s=900)
    world.cloud.errors = [InsufficientCapacity("none", "InsufficientInstanceCapacity")] * 500
    world.submit("train", 2)
    world.until(lambda: "train" in world.started)
    assert world.started["train"][0][1] == ("dgx01", "dgx02")
    assert world.events("refused")
    world.until(lambda: world.done("train"))
    assert world.nothing_left()


def test_a_job_that_home_takes_first_gives_its_rented_nodes_back(world):
    fill_home(world, runs_s=70)
    world.cloud.boot_s = 30.0
    world.submit("train", 2, runs_s=300)
    world.until(lambda: "train" in world.started)
    world.until(lambda: world.done("train"))
    world.until(world.nothing_left)
    assert len(world.started["train"]) == 1


def test_a_spot_notice_puts_the_job_back_and_it_starts_again(world):
    fill_home(world)
    world.submit("train", 2, runs_s=1200)
    world.until(lambda: "train" in world.started)
    world.pass_by(60)
    world.cloud.interrupt(world.cloud.alive()[0].id)
    world.until(lambda: len(world.started["train"]) == 2)
    assert len(world.events("requeued")) == 1
    world.until(lambda: world.done("train"))
    world.until(world.nothing_left)
    assert len(world.started["train"]) == 2


def test_an_instance_that_ends_without_a_word(world):
    fill_home(world)
    world.submit("train", 1, runs_s=1200)
    world.until(lambda: "train" in world.started)
    world.pass_by(30)
    world.cloud.die(world.cloud.alive()[0].id)
    world.until(lambda: len(world.started["train"]) == 2)
    world.until(lambda: world.done("train"))
    world.until(world.nothing_left)
    assert len(world.started["train"]) == 2 and len(world.cloud.all) == 2


def test_nothing_is_lost_or_run_twice_while_the_server_is_difficult(world):
    """Every tick a conflict and a 429, every third the watches break off and what they saw has expired, and now and
    then the server fails: whoever can't see does nothing, and goes on.
    """
    ticks, failed = itertools.count(), []
    tick = world.controller.tick

    def difficult(document):
        n, api = next(ticks), world.api
        api.conflicts = 1
        api.faults.clear()
        api.fail(Refusal(429, "TooManyRequests", "busy", retry_after=0))
        if n % 3 == 0:
            with api.lock:
                api.drop_streams()
                api.compact()
        if n % 4 == 0:
            api.fail(Refusal(500, "InternalError", "etcdserver: leader changed"), when=lambda call: call[0] != "watch")
        try:
            tick(document)
        except SchedulerError as error:
            failed.append(str(error))
        api.conflicts = 0

    world.controller.tick = difficult
    fill_home(world)
    for name, count in (("train", 2), ("one", 1)):
        world.submit(name, count, runs_s=300)
    world.until(lambda: {"train", "one"} <= world.started.keys())
    world.until(lambda: world.done("train") and world.done("one"))
    world.until(world.nothing_left)
    assert [len(world.started[name]) for name in ("train", "one", "home")] == [1, 1, 1]
    assert failed  # it was difficult


def test_a_lost_ledger_is_rebuilt_from_what_the_cluster_shows(world):
    fill_home(world)
    world.submit("train", 2, runs_s=1200)
    world.until(lambda: "train" in world.started)
    world.pass_by(30)
    world.ledger.close()
    world.path.unlink()
    world.start()
    world.until(lambda: world.done("train"))
    world.until(world.nothing_left)
    assert len(world.started["train"]) == 1
