"""Karpenter's NodePools in a real API server: what `up` makes there, what the controller reads and writes with its own
rights, and what it may not. The kinds are our own (karpenter_crds.py); Karpenter itself isn't there.
"""

import copy
import re

import pytest
import yaml

from ironburst.adapters.kubernetes import Access, Karpenter
from ironburst.adapters.kubernetes.client import Client
from ironburst.ports import SchedulerError
from ironburst.ports.karpenter import Size
from lab.kubernetes import access
from lab.system import LabError, wait_for
from tests import planes
from tests.components.karpenter_crds import API, crds
from tests.components.projects import done
from tests.components.test_kubernetes_lab import ADMISSION, CONTROLLER, made_engine, refused

pytestmark = [pytest.mark.slow, planes.BUILT]
POOL = {"name": "wide", "instance_type": "g6e.12xlarge", "max_nodes": 4, "node_class": "gpu", "max_run": "2h"}
NAME, SIZE = "ironburst-lab-wide", Size(gpus=4, cpus=48)
LIMIT_S = 60


@pytest.fixture(scope="module")
def plane():
    with planes.running("karp") as plane:
        yield plane


@pytest.fixture(scope="module")
def bare(plane, tmp_path_factory):
    """A cluster without Karpenter, and the engine of a stack that needs it."""
    return plane.api(), made_engine(plane, tmp_path_factory.mktemp("stack"), karpenter=[POOL])


@pytest.fixture(scope="module")
def api(bare):
    api, engine = bare
    for each in crds():
        api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", each)

    def served():
        try:
            return len([each for each in api.call("GET", API)["resources"] if "/" not in each["name"]]) == len(crds())
        except LabError:  # a group that is new has no answer in JSON for a moment
            return False

    wait_for(served, LIMIT_S, "Karpenter's kinds")
    done(engine("up", "--yes", "--skip-preview"))
    return api


@pytest.fixture(scope="module")
def kubeconfig(plane, api, tmp_path_factory):
    """The controller's own: its ServiceAccount, with the rights that were declared."""
    path = "/api/v1/namespaces/ironburst-system/serviceaccounts/ironburst-controller/token"
    token = api.call("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    config = yaml.safe_load(plane.layout().kubeconfig("admin").read_text())
    config["users"][0]["user"] = {"token": token}
    path = tmp_path_factory.mktemp("controller") / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture
def karpenter(kubeconfig):
    return Karpenter(Client(Access(kubeconfig)))


@pytest.fixture
def pool(api):
    """As `up` made it; what a test changes is put back."""
    yield api.call("GET", f"{API}/nodepools/{NAME}")
    zero = {"nvidia.com/gpu": "0", "cpu": "0", "nodes": "0"}
    api.call("PATCH", f"{API}/nodepools/{NAME}", {"spec": {"limits": zero}})


def test_without_karpenter_one_sentence_says_what_is_missing(plane, bare):
    nobody = Karpenter(Client(Access(plane.layout().kubeconfig("admin"))))
    if any(each["name"] == "karpenter.sh" for each in bare[0].call("GET", "/apis")["groups"]):
        pytest.skip("the kinds are there already: run this test alone, or first")
    with pytest.raises(
        SchedulerError, match=r"the API server has no nodepools of karpenter.sh/v1: install what serves"
    ):
        nobody.look("lab", {})


def test_up_makes_a_closed_node_pool_that_the_schema_takes(pool, karpenter):
    assert pool["spec"]["limits"] == {"nvidia.com/gpu": "0", "cpu": "0", "nodes": "0"}
    assert pool["spec"]["template"]["spec"]["terminationGracePeriod"] == "7200s"
    assert karpenter.look("lab", {NAME: SIZE}).limits == {NAME: 0}


def test_limits_are_written_by_nodes_gpus_and_cpus(api, pool, karpenter):
    karpenter.limit(NAME, SIZE, 3)
    now = api.call("GET", f"{API}/nodepools/{NAME}")["spec"]
    assert now["limits"] == {"nvidia.com/gpu": "12", "cpu": "144", "nodes": "3"}
    assert now["template"] == pool["spec"]["template"]
    assert karpenter.look("lab", {NAME: SIZE}).limits == {NAME: 3}


@pytest.mark.parametrize(
    ("limits", "nodes"),
    [
        ({"nvidia.com/gpu": "100", "cpu": "100"}, 2),
        ({"nodes": "1"}, 1),
        ({"cpu": "47500m"}, 0),
        ({"memory": "1Ti"}, None),
    ],
)
def test_what_somebody_wrote_is_read_as_nodes(api, pool, karpenter, limits, nodes):
    everything = {"nvidia.com/gpu": None, "cpu": None, "nodes": None} | limits
    api.call("PATCH", f"{API}/nodepools/{NAME}", {"spec": {"limits": everything}})
    assert karpenter.look("lab", {NAME: SIZE}).limits == {NAME: nodes}


def test_an_up_leaves_the_controllers_limits_alone(api, pool, karpenter, bare):
    karpenter.limit(NAME, SIZE, 2)
    done(bare[1]("up", "--yes", "--skip-preview"))
    assert karpenter.look("lab", {NAME: SIZE}).limits == {NAME: 2}


def test_node_claims_are_read_with_their_end(api, karpenter):
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    labels = {
        "ironburst.io/cluster": "lab",
        "karpenter.sh/nodepool": NAME,
        "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "g6e.12xlarge",
    }
    for name, more in (("mine", {}), ("theirs", {"ironburst.io/cluster": "other"})):
        spec = {
            "nodeClassRef": reference,
            "requirements": [],
            "expireAfter": "1h30m",
            "terminationGracePeriod": "7200s",
        }
        meta = {"name": name, "labels": labels | more, "finalizers": ["karpenter.sh/termination"]}
        api.call(
            "POST",
            f"{API}/nodeclaims",
            {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": spec},
        )
    (claim,) = karpenter.look("lab", {}).claims
    assert (claim.name, claim.node_pool, claim.instance_type, claim.market) == (
        "mine",
        NAME,
        "g6e.12xlarge",
        "on-demand",
    )
    assert claim.expires_s - claim.created_s == 5400 and claim.ends_s - claim.created_s == 5400 + 7200
    assert not claim.launched and claim.deleting_s is None
    api.call("PATCH", f"{API}/nodeclaims/mine/status", {"status": {"providerID": "aws:///us-east-1a/i-1"}})
    api.call("DELETE", f"{API}/nodeclaims/mine")
    (claim,) = karpenter.look("lab", {}).claims
    assert claim.launched and claim.deleting_s is not None and claim.ends_s <= claim.deleting_s + 7200
    for name in ("mine", "theirs"):
        api.call("PATCH", f"{API}/nodeclaims/{name}", {"metadata": {"finalizers": None}})
        if name == "theirs":
            api.call("DELETE", f"{API}/nodeclaims/{name}")
    wait_for(lambda: not karpenter.look("lab", {}).claims, LIMIT_S, "it is gone")


def test_the_controller_may_change_limits_and_nothing_else_of_a_node_pool(plane, api, pool):
    controller = plane.api(impersonate=(CONTROLLER, "system:serviceaccounts"))
    path = f"{API}/nodepools/{NAME}"
    other = copy.deepcopy(pool["spec"]["template"])
    other["spec"]["expireAfter"] = "Never"

    def said(body):
        try:
            controller.call("PATCH", f"{path}?dryRun=All", body)
        except access.Refused as refusal:
            return str(refusal)
        return ""

    wait_for(
        lambda: "nothing of a NodePool but its limits" in said({"spec": {"template": other}}), LIMIT_S, "the policy"
    )
    assert said({"spec": {"limits": {"nodes": "1"}}}) == ""
    assert "but its limits" in said({"spec": {"disruption": {"consolidateAfter": "Never"}}})
    assert "but its limits" in said({"metadata": {"labels": {"ironburst.io/cluster": "other"}}})
    made = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "x"}, "spec": pool["spec"]}
    assert "cannot create" in refused(lambda: controller.call("POST", f"{API}/nodepools", made))
    assert "cannot patch" in refused(lambda: controller.call("PATCH", f"{API}/nodepools/other", {"spec": {}}))
    assert "cannot delete" in refused(lambda: controller.call("DELETE", path))
    policy = api.call("GET", f"{ADMISSION}/validatingadmissionpolicies/ironburst-lab-node-pools")
    assert not ((policy.get("status") or {}).get("typeChecking") or {}).get("expressionWarnings")


def test_a_node_pool_that_is_gone_is_one_sentence(karpenter, plane):
    admin = Karpenter(Client(Access(plane.layout().kubeconfig("admin"))))
    with pytest.raises(SchedulerError, match=re.escape("the cluster has no NodePool nobodys: run `pulumi up`")):
        admin.limit("nobodys", SIZE, 1)
    with pytest.raises(SchedulerError, match=r"no right to patch nodepools\.karpenter\.sh nobodys"):
        karpenter.limit("nobodys", SIZE, 1)
