"""Teams' shares in a real API server and scheduler: what is refused, what ends, and that a broken guarantee is seen."""

import pytest

from benchmarks import shares_kubernetes
from benchmarks.shares_kubernetes import apply
from ironburst.adapters.kubernetes import Access, Client, Kubernetes, KubernetesSite
from ironburst.shares import Quota, TeamShare, kubernetes, quotas
from ironburst.shares.observed import quotas_now
from lab.kubernetes.access import Refused
from lab.kubernetes.nodes import NodeSpec
from lab.system import wait_for
from tests import planes

pytestmark = [pytest.mark.slow, planes.BUILT]
LIMIT_S = 60
VISION, NLP = TeamShare("vision", 8, nodes=("own-1",)), TeamShare("nlp", 8)
PROMISED = {"vision": Quota(8, 16), "nlp": Quota(8, 16)}
SHARES, OWN = [VISION, NLP], {"vision": 8, "nlp": 0}


@pytest.fixture(scope="module")
def plane():
    with planes.running("shares") as plane:
        yield plane


@pytest.fixture(scope="module")
def api(plane):
    """Two shared nodes of eight GPUs, and one of vision's alone."""
    api = plane.api()
    for thing in kubernetes.objects(SHARES, OWN, quotas(SHARES, 16, [])):
        apply(api, thing)
    for name in ("n1", "n2", "own-1"):
        taints = [f"{kubernetes.TEAM}=vision:NoSchedule"] if name == "own-1" else []
        plane.add_node(NodeSpec(name, {}, {"nvidia.com/gpu": "8"}, taints, devices_after_s=0.1))
    api.call("PATCH", "/api/v1/nodes/own-1", {"metadata": {"labels": {kubernetes.TEAM: "vision"}}})
    for team in ("vision", "nlp"):
        path = f"/api/v1/namespaces/{team}/serviceaccounts/default"
        wait_for(lambda path=path: shares_kubernetes._there(api, path), LIMIT_S, path)

    def judged():
        """The API server's admission has read the policy."""
        try:
            submit(api, "default", "probe", 1, kubernetes.GUARANTEED, dry=True)
        except Refused as refusal:
            return "no share" in str(refusal)
        return False

    wait_for(judged, LIMIT_S, "the policy")
    return api


@pytest.fixture
def kube(plane, api):
    """As the controller has it."""
    it = Kubernetes(Client(Access(plane.layout().kubeconfig("admin"))), KubernetesSite("shares"))
    yield it
    it.close()


def hold(kube):
    """What a tick does; what it wrote."""
    seen = kube.observe()
    now, gpus = quotas_now(SHARES, "home", seen.nodes, seen.jobs, seen.shares)
    kube.limit(SHARES, now, gpus)
    return now


@pytest.fixture(autouse=True)
def empty(api):
    yield
    for team in ("vision", "nlp"):
        jobs = f"/apis/batch/v1/namespaces/{team}/jobs"
        for job in api.call("GET", jobs)["items"]:
            api.call("DELETE", f"{jobs}/{job['metadata']['name']}", {"propagationPolicy": "Background"})
        for pod in api.call("GET", f"/api/v1/namespaces/{team}/pods")["items"]:
            api.call("DELETE", f"/api/v1/namespaces/{team}/pods/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
    wait_for(lambda: not used(api), LIMIT_S, "quotas that nothing is used of")


def used(api):
    """{(namespace, quota): GPUs} of quotas that something is used of."""
    found = {}
    for each in api.call("GET", "/api/v1/resourcequotas")["items"]:
        gpus = each["status"].get("used", {}).get("requests.nvidia.com/gpu", "0")
        if gpus != "0":
            found[each["metadata"]["namespace"], each["metadata"]["name"]] = gpus
    return found


def submit(api, team, name, gpus, cls=None, dry=False, **spec):
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    body = {
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "work", "image": "work", "resources": resources}],
            **({"priorityClassName": cls} if cls else {}),
            **spec,
        },
    }
    api.call("POST", f"/api/v1/namespaces/{team}/pods{'?dryRun=All' if dry else ''}", body)


def on(api, team, name):
    """The node of a pod; empty: it waits; None: it is gone."""
    pods = {each["metadata"]["name"]: each for each in api.call("GET", f"/api/v1/namespaces/{team}/pods")["items"]}
    return pods[name]["spec"].get("nodeName", "") if name in pods else None


def own(team, **spec):
    toleration = {"key": kubernetes.TEAM, "operator": "Equal", "value": team, "effect": "NoSchedule"}
    return {"nodeSelector": {kubernetes.TEAM: team}, "tolerations": [toleration], **spec}


def test_a_pod_with_gpus_is_a_teams_and_says_which(api):
    for team, cls, spec, words in (
        ("default", kubernetes.GUARANTEED, {}, "namespace default has no share of the GPUs"),
        ("vision", None, {}, "set priorityClassName to ironburst-guaranteed"),
        ("vision", "system-node-critical", {}, "is not permitted|set priorityClassName|forbidden"),
        ("vision", kubernetes.OWN, {}, "nodeSelector ironburst.io/team"),
        ("vision", kubernetes.GUARANTEED, own("vision"), "is for the own nodes"),
        ("nlp", kubernetes.GUARANTEED, {"tolerations": own("vision")["tolerations"]}, "tolerated for the own team"),
        ("nlp", kubernetes.OWN, own("nlp"), "exceeded quota: ironburst-own"),
    ):
        with pytest.raises(Refused, match=words):
            submit(api, team, "refused", 1, cls, **spec)
    submit(api, "vision", "service", 0)  # without GPUs nothing is asked
    submit(api, "default", "service", 0, dry=True)


def test_the_api_server_holds_the_guarantee(api):
    for number in range(2):
        submit(api, "vision", f"j{number}", 4, kubernetes.GUARANTEED)
    with pytest.raises(Refused, match="exceeded quota: ironburst-guaranteed"):
        submit(api, "vision", "more", 1, kubernetes.GUARANTEED)
    submit(api, "vision", "over", 4, kubernetes.OVER_QUOTA)  # the two above lie on a node each: the scheduler spreads
    submit(api, "vision", "own", 8, kubernetes.OWN, **own("vision"))
    wait_for(lambda: on(api, "vision", "own") == "own-1", LIMIT_S, "the pod on its team's node")
    wait_for(lambda: on(api, "vision", "over") in ("n1", "n2"), LIMIT_S, "the pod over quota")


def test_work_over_quota_ends_for_a_guarantee_and_nothing_else_does(api):
    submit(api, "vision", "sure", 8, kubernetes.GUARANTEED)
    submit(api, "vision", "over", 8, kubernetes.OVER_QUOTA)
    wait_for(lambda: on(api, "vision", "sure") and on(api, "vision", "over"), LIMIT_S, "both nodes in use")
    submit(api, "nlp", "over", 8, kubernetes.OVER_QUOTA)
    submit(api, "nlp", "sure", 8, kubernetes.GUARANTEED)
    wait_for(lambda: on(api, "nlp", "sure"), LIMIT_S, "what is guaranteed")
    assert on(api, "vision", "sure") and on(api, "vision", "over") is None
    assert on(api, "nlp", "over") == ""


def test_the_guarantees_follow_the_nodes(api, kube):
    """A node is cordoned, and comes back; a team's own node counts for nobody else."""
    wait_for(lambda: hold(kube) == PROMISED, LIMIT_S, "what was promised")
    api.call("PATCH", "/api/v1/nodes/n2", {"spec": {"unschedulable": True}})
    try:
        wait_for(lambda: hold(kube) == {"vision": Quota(4, 8, 4), "nlp": Quota(4, 8, 4)}, LIMIT_S, "half of it")
        with pytest.raises(Refused, match="exceeded quota: ironburst-guaranteed"):
            submit(api, "nlp", "whole", 8, kubernetes.GUARANTEED)
        submit(api, "nlp", "half", 4, kubernetes.GUARANTEED)
        submit(api, "vision", "own", 8, kubernetes.OWN, **own("vision"))
        wait_for(lambda: on(api, "nlp", "half") and on(api, "vision", "own"), LIMIT_S, "both pods on nodes")
        wait_for(lambda: hold(kube) == {"vision": Quota(4, 4, 4), "nlp": Quota(4, 4, 4)}, LIMIT_S, "what is idle")
    finally:
        api.call("PATCH", "/api/v1/nodes/n2", {"spec": {"unschedulable": False}})


def test_a_job_whose_pods_the_api_server_refuses_asks_for_its_part(api, kube):
    """It has no pod; its Job says what it would be. vision keeps what runs, and gets no more until nlp has half."""
    wait_for(lambda: hold(kube) == PROMISED, LIMIT_S, "what was promised")
    for number in range(4):
        submit(api, "vision", f"over{number}", 4, kubernetes.OVER_QUOTA)
    wait_for(lambda: all(on(api, "vision", f"over{n}") for n in range(4)), LIMIT_S, "all GPUs in use")
    wait_for(lambda: hold(kube)["nlp"].over == 0, LIMIT_S, "no more for nlp")
    made = submitted("whole", 8, kubernetes.OVER_QUOTA)
    api.call("POST", "/apis/batch/v1/namespaces/nlp/jobs", made)
    wait_for(lambda: hold(kube) == {"vision": Quota(8, 8), "nlp": Quota(8, 8)}, LIMIT_S, "nlp's part")
    assert all(on(api, "vision", f"over{n}") for n in range(4)), "what runs is kept"


def submitted(name, gpus, cls):
    container = {"name": "work", "image": "work", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    pod = {"restartPolicy": "Never", "priorityClassName": cls, "containers": [container]}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": pod}}}


def test_a_broken_guarantee_is_seen(monkeypatch):
    """With one priority for all nothing ends: the trap that the classes are for. The same sequences hold with them."""
    classes = kubernetes.classes()
    monkeypatch.setattr(shares_kubernetes, "SETTLE_S", 20.0)
    monkeypatch.setattr(shares_kubernetes, "STEPS", 15)
    assert shares_kubernetes.figures_of([1, 2])["guarantees_broken"] == 0
    monkeypatch.setattr(kubernetes, "classes", lambda: [each | {"value": 0} for each in classes])
    monkeypatch.setattr(shares_kubernetes, "SETTLE_S", 3.0)
    assert shares_kubernetes.figures_of([1, 2])["guarantees_broken"] > 0
