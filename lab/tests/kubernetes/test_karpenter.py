"""What the real Karpenter does with a NodePool's limits, as docs/adr/0045 says: its scheduler, its controllers and a
real API server; the nodes are kwok's.
"""

import random
import time

import pytest

from components.karpenter import spec
from ironburst.adapters.kubernetes import Access, Karpenter
from ironburst.adapters.kubernetes.client import Client
from ironburst.config.karpenter_models import KarpenterPool
from ironburst.ports.karpenter import Size
from lab.kubernetes import access, binaries, karpenter
from lab.kubernetes.commands import ALIVE
from lab.system import wait_for
from tests import planes

pytestmark = [
    pytest.mark.slow,
    planes.BUILT,
    pytest.mark.skipif(
        not binaries.karpenter_built(), reason="Karpenter isn't built: python -m lab.kubernetes.karpenter"
    ),
]
API, PODS = "/apis/karpenter.sh/v1", "/api/v1/namespaces/default/pods"
NAME, SIZE = "ironburst-lab-wide", Size(gpus=4, cpus=48)
POOL = KarpenterPool(name="wide", instance_type="g6e.12xlarge", max_nodes=20, node_class="default")
TYPES = [karpenter.instance_type(POOL.instance_type, {"on-demand": 10.49}, {"cpu": "48", "nvidia.com/gpu": "4"})]
LIMIT_S, QUIET_S = 90, 4.0


@pytest.fixture(scope="module")
def plane():
    with planes.running("realk") as plane:
        process = karpenter.start(plane, TYPES)
        yield plane
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def api(plane):
    return plane.api()


@pytest.fixture
def its(plane, api):
    """The adapter, and the NodePool as `up` declares it, but for the node class; closed, and nothing there."""
    said = spec("lab", POOL)
    said["template"]["spec"]["nodeClassRef"] = karpenter.CLASS
    del said["template"]["spec"]["taints"]  # the pods of this test are plain
    said["template"]["metadata"]["labels"][ALIVE] = "true"
    labels = {"ironburst.io/cluster": "lab"}
    made = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": NAME, "labels": labels}}
    api.call("POST", f"{API}/nodepools", {**made, "spec": said})
    yield Karpenter(Client(Access(plane.layout().kubeconfig("admin"))))
    for path in (PODS, f"{API}/nodepools", f"{API}/nodeclaims"):
        for each in api.call("GET", path)["items"]:
            gone(api, f"{path}/{each['metadata']['name']}")
    left = (f"{API}/nodepools", f"{API}/nodeclaims", "/api/v1/nodes", PODS)
    wait_for(lambda: not any(api.call("GET", path)["items"] for path in left), LIMIT_S, "nothing is left", pause=0.3)


def gone(api, path):
    try:
        api.call("DELETE", path, {"gracePeriodSeconds": 0})
    except access.Refused as refusal:
        assert refusal.status == 404


def submit(api, count, **annotations):
    """Pods that need a node each."""
    each = {"nvidia.com/gpu": "4", "cpu": "40"}
    container = {"name": "c", "image": "x", "resources": {"limits": each, "requests": each}}
    for _ in range(count):
        meta = {"generateName": "p-", "annotations": annotations}
        api.call("POST", PODS, {"metadata": meta, "spec": {"containers": [container]}})


def most(its, seconds=QUIET_S):
    """(that Karpenter counts, that cost), the most at a time, until neither has grown for so long."""
    counted = cost = 0
    grown_s = time.monotonic()

    def quiet():
        nonlocal counted, cost, grown_s
        claims = its.look("lab", {}).claims
        now = sum(each.deleting_s is None for each in claims), len(claims)
        if now[0] > counted or now[1] > cost:
            counted, cost, grown_s = max(counted, now[0]), max(cost, now[1]), time.monotonic()
        return time.monotonic() - grown_s >= seconds

    wait_for(quiet, LIMIT_S, "no more nodes")
    return counted, cost


def started(its, count):
    wait_for(lambda: sum(each.launched for each in its.look("lab", {}).claims) == count, LIMIT_S, f"{count} nodes")


def test_a_closed_node_pool_launches_nothing_and_an_open_one_up_to_its_limit(api, its):
    submit(api, 5)
    assert most(its) == (0, 0)
    its.limit(NAME, SIZE, 3)
    started(its, 3)
    assert most(its) == (3, 3)
    (claim, *_) = its.look("lab", {}).claims
    assert (claim.node_pool, claim.instance_type, claim.market) == (NAME, "g6e.12xlarge", "on-demand")
    assert claim.ends_s - claim.created_s == 2 * POOL.max_run


@pytest.mark.parametrize("seed", range(3))
def test_a_limit_that_is_lowered_in_the_middle_is_overrun_by_the_old_one_at_most(api, its, seed):
    rnd = random.Random(seed)
    before, after = rnd.randint(6, 12), rnd.randint(0, 5)
    seen = rnd.randint(0, before - 1)
    its.limit(NAME, SIZE, before)
    submit(api, 14)
    wait_for(lambda: len(its.look("lab", {}).claims) >= seen, LIMIT_S, f"{seen} of its batch")
    its.limit(NAME, SIZE, after)
    counted, _ = most(its)
    assert counted <= before


def test_nodes_that_drain_are_not_counted(api, its):
    """Why a limit has to be paid for as that many new nodes."""
    its.limit(NAME, SIZE, 2)
    submit(api, 2, **{"karpenter.sh/do-not-disrupt": "true"})
    started(its, 2)
    wait_for(lambda: all(each["spec"].get("nodeName") for each in api.call("GET", PODS)["items"]), LIMIT_S, "all bound")
    for claim in its.look("lab", {}).claims:
        gone(api, f"{API}/nodeclaims/{claim.name}")
    submit(api, 4)
    assert most(its) == (2, 4)


def test_a_limit_of_nodes_alone_is_none_within_a_batch(api, its):
    """Why there are three of them."""
    alone = {"nodes": "2", "nvidia.com/gpu": None, "cpu": None}
    api.call("PATCH", f"{API}/nodepools/{NAME}", {"spec": {"limits": alone}})
    submit(api, 6)
    assert most(its)[0] > 2
