"""Two pods of the controller at a real API server, with one ledger in a real PostgreSQL: the Lease and the lock of the
database go together. Beside test_two_controllers.py: the server's own times, versions and refusals.
"""

from types import SimpleNamespace

import pytest

from ironburst.adapters.kubernetes import Access, Client, Kubernetes
from ironburst.controller import records
from ironburst.controller.ledger import Ledger
from ironburst.controller.lock import LockedError, Lost
from ironburst.controller.ownership import OwnedElsewhere
from ironburst.controller.tick import Controller
from ironburst.document import parse
from ironburst.wiring import schedulers
from lab.kubernetes.nodes import NodeSpec
from lab.system import wait_for
from tests import planes, postgresql
from tests.adapters.kubernetes.test_both_live import LIMIT_S, ROOM, RealClock, Shown, job, node_of
from tests.fakes import FakeCloud, FakeSlurm, document
from tests.fakes.both import CLUSTER

pytestmark = [pytest.mark.slow, planes.BUILT]
plane, api = planes.fixtures("pods")
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{CLUSTER['namespace']}/leases"


@pytest.fixture
def pod(plane, tmp_path):
    """Starts a controller as a pod does: connections of its own; one cloud for all."""
    clock = RealClock()
    slurm = FakeSlurm(clock, home=0)  # what the cloud's nodes would look at
    slurm.cloud = cloud = FakeCloud(clock, Shown(slurm))
    declared = parse(document(boot_s=600).model_dump(mode="json") | {"scheduler": CLUSTER})
    started = []

    def start(path):
        client = Client(Access(plane.layout().kubeconfig("admin")))
        kube = Kubernetes(client, schedulers.site_of(declared), deliver=str)
        started.append(kube)
        controller = Controller(kube, cloud, Ledger(path), clock)
        return SimpleNamespace(
            ledger=controller.ledger, cloud=cloud, tick=lambda: controller.tick(declared), stopped=controller.stopped
        )

    yield start
    for kube in started:
        kube.close()


def lease(api):
    """(its holder, when it was renewed, how often it was written)"""
    (raw,) = api.call("GET", LEASES)["items"]
    return raw["spec"]["holderIdentity"], raw["spec"]["renewTime"], raw["metadata"]["resourceVersion"]


def test_one_pod_acts_another_one_goes_on_and_a_ledger_of_its_own_is_kept_out(plane, api, pod, tmp_path):
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": CLUSTER["namespace"]}})
    plane.add_node(NodeSpec("kube1", labels={"ironburst.io/site": "home"}, allocatable=ROOM))
    job(api, "first", 7200)
    wait_for(lambda: node_of(api, "first") == "kube1", LIMIT_S, "a pod at home")
    job(api, "train", 3600)
    shared = postgresql.ledger_file(tmp_path / "shared")
    first = pod(shared)

    def rented():
        first.tick()
        return [each.state for each in first.ledger.leases()] == [records.LAUNCHED]

    wait_for(rented, LIMIT_S, "a rented node")
    held = lease(api)
    with pytest.raises(LockedError, match="another controller holds the ledger"):
        pod(shared)
    with pytest.raises(OwnedElsewhere, match=f"controller {held[0]}"):
        pod(postgresql.ledger_file(tmp_path / "own")).tick()
    assert lease(api) == held

    first.ledger._db._session.close()  # as the kernel does it for a pod that is killed
    second = pod(shared)
    second.tick()
    renewed = lease(api)
    assert renewed[0] == held[0] and renewed[1] > held[1]
    with pytest.raises(Lost):
        first.tick()
    assert lease(api) == renewed and len(second.cloud.alive()) == len(second.cloud.requests) == 1
    assert not [each for each in second.ledger.events() if "took the site over" in each.text], "both are one owner"
