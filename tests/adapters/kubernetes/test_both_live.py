"""Both schedulers of one site: a real API server, kube-scheduler and controller manager, and a Slurm in memory.

Nodes of the cluster are kwok's; what kubelet and the gate would say of a rented one is written here.
"""

import time
from types import SimpleNamespace

import pytest

from ironburst.adapters.both import Both
from ironburst.adapters.kubernetes import Access, Client, Kubernetes
from ironburst.controller import records, status_report
from ironburst.controller.ledger import Ledger
from ironburst.controller.loop import SystemClock
from ironburst.controller.tick import Controller
from ironburst.nodes.naming import NOT_READY_TAINT
from ironburst.wiring import schedulers
from lab.kubernetes.access import Refused
from lab.kubernetes.nodes import NodeSpec
from lab.system import wait_for
from tests import planes
from tests.fakes import FakeClock, FakeCloud, FakeSlurm
from tests.fakes.both import both_document

pytestmark = [pytest.mark.slow, planes.BUILT]
LIMIT_S = 120
ROOM = {"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}


class RealClock(FakeClock):
    """Time as it passes: the controller's own."""

    def __init__(self):
        self.real, self.ahead_s = SystemClock(), 0.0

    @property
    def at(self):
        return self.real.now()

    def wait(self, seconds):
        return self.real.wait(seconds)


class Shown:
    """What the programs on rented nodes see of themselves."""

    down, cloud = False, None

    def __init__(self, slurm):
        self._slurm = slurm

    def show(self, node):
        return self._slurm.show(node) if node in self._slurm.nodes else f"NodeName={node} State=IDLE"

    def steps(self, node):
        return node in self._slurm.nodes and self._slurm.steps(node)


@pytest.fixture
def plane():
    with planes.running("both") as plane:
        yield plane


@pytest.fixture
def site(plane, tmp_path):
    document, clock = both_document(boot_s=600), RealClock()
    slurm = FakeSlurm(clock)
    cloud = FakeCloud(clock, Shown(slurm))
    slurm.cloud = cloud
    cloud.images["/ironburst/lab/g5/image"] = "ami-2"
    cluster = Kubernetes(Client(Access(plane.layout().kubeconfig("admin"))), schedulers.site_of(document), deliver=str)
    nodes = {node: pool.scheduler for pool in document.pools for node in pool.nodes}
    both = Both({"slurm": slurm, "kubernetes": cluster}, nodes, {})
    ledger = Ledger(tmp_path / "ledger.sqlite")
    controller = Controller(both, cloud, ledger, clock)
    yield SimpleNamespace(**locals())
    cluster.close()


def job(api, name, limit_s):
    asks = {"cpu": "1", "memory": "500Mi", "nvidia.com/gpu": "8"}
    container = {"name": "c", "image": "x", "resources": {"requests": asks, "limits": asks}}
    pod = {"activeDeadlineSeconds": limit_s, "restartPolicy": "Never", "containers": [container]}
    body = {"metadata": {"name": name}, "spec": {"template": {"spec": pod}}}
    api.call("POST", "/apis/batch/v1/namespaces/default/jobs", {"apiVersion": "batch/v1", "kind": "Job", **body})


def node_of(api, name):
    """The node that a Job's pod is on; empty: none yet."""
    query = f"/api/v1/namespaces/default/pods?labelSelector=job-name%3D{name}"
    return next((each["spec"].get("nodeName", "") for each in api.call("GET", query)["items"]), "")


def passes_its_gate(api, name):
    """Whether that could be written: kwok writes the same status."""
    gate = {"type": "ironburst.io/GatePassed", "status": "True", "reason": "t", "message": "t"}
    path = f"/api/v1/nodes/{name}"
    raw = api.call("GET", path)
    raw["status"]["conditions"] = [*raw["status"].get("conditions", []), gate]
    try:
        api.call("PUT", f"{path}/status", raw)
    except Refused:
        return False
    return True


def test_one_controller_over_both_goes_on_while_the_api_server_is_away(plane, site):
    api = plane.api()
    api.call(
        "POST",
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ironburst-system"}},
    )
    plane.add_node(NodeSpec("kube1", labels={"ironburst.io/site": "home"}, allocatable=ROOM))
    job(api, "first", 7200)
    wait_for(lambda: node_of(api, "first") == "kube1", LIMIT_S, "a pod at home")
    job(api, "train", 3600)
    site.slurm.submit(nodes=2, limit_s=7200.0, runs_s=7200.0)
    mine = site.slurm.submit(runs_s=7200.0, limit_s=7200.0)

    def ticked(condition):
        site.controller.tick(site.document)
        return condition()

    def lease(node):
        return next((each for each in site.ledger.leases() if each.node == node), None)

    def launched(node):
        return (it := lease(node)) and it.state == records.LAUNCHED

    wait_for(lambda: ticked(lambda: launched("p5-1") and launched("g5-1")), LIMIT_S, "both are rented for")
    said = status_report.gather(site.document, site.both.observe(), site.ledger, time.time())
    said["ticks"] = {"files": 0}
    text = "\n".join(status_report.lines(said))
    assert text.index("queue of Slurm") < text.index("queue of Kubernetes") < text.index("\nrented\n")
    assert "default/train" in text[text.index("queue of Kubernetes") :] and said["silent"] == []
    assert site.both.claim("", "", 600.0).owner  # of one controller, at both

    plane.kill("kube-apiserver")
    wait_for(lambda: ticked(lambda: site.slurm.state(mine) == "RUNNING"), LIMIT_S, "Slurm's job on its rented node")
    assert lease("g5-1").state == records.LAUNCHED and len(site.cloud.alive()) == 2
    assert site.both.observe().silent == ("kubernetes",)
    assert any("Kubernetes gives no answer" in event.text for event in site.ledger.events())

    plane.start("kube-apiserver")
    wait_for(lambda: ticked(lambda: not site.both.observe().silent), LIMIT_S, "the API server answers again")
    plane.add_node(NodeSpec("g5-1", allocatable=ROOM, taints=[f"{NOT_READY_TAINT}=:NoSchedule"], devices_after_s=0.2))
    wait_for(lambda: passes_its_gate(api, "g5-1"), LIMIT_S, "the gate's word")
    wait_for(lambda: ticked(lambda: node_of(api, "train") == "g5-1"), LIMIT_S, "the pod on its rented node")
    assert lease("g5-1").state == records.READY and lease("p5-1").state == records.READY
