"""Kueue as the queue in a real API server: what `up` makes there, what the controller may answer, and that the server
takes our answers. The kinds are our own (kueue_crds.py); Kueue itself isn't there.
"""

import copy

import pytest
import yaml

from ironburst.adapters.kubernetes import Access, Kueue
from ironburst.adapters.kubernetes.client import Client
from ironburst.adapters.kubernetes.quotas import write_queues
from ironburst.nodes import naming
from ironburst.shares import TeamShare, kueue, quotas
from lab.kubernetes import access
from lab.system import wait_for
from tests import planes
from tests.components.kueue_crds import GROUP, VERSION, crds
from tests.components.projects import done
from tests.components.test_kubernetes_lab import ADMISSION, CONTROLLER, made_engine, refused
from tests.fakes.kueue_api import CHECK, RECORDED

pytestmark = [pytest.mark.slow, planes.BUILT]
API = f"/apis/{GROUP}/{VERSION}"
WORKLOADS = f"{API}/namespaces/team-a/workloads"
LIMIT_S = 60
SHARES = [TeamShare("vision", 8)]


@pytest.fixture(scope="module")
def plane():
    with planes.running("kueue") as plane:
        yield plane


@pytest.fixture(scope="module")
def api(plane, tmp_path_factory):
    api = plane.api()
    for each in crds():
        api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", each)

    def served():
        found = api.call("GET", f"/apis/{GROUP}")["versions"] and api.call("GET", API)["resources"]
        return len([each for each in found if "/" not in each["name"]]) == len(crds())

    def tried():
        try:
            return served()
        except access.Refused:
            return False

    wait_for(tried, LIMIT_S, "Kueue's kinds")
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "team-a"}})
    engine = made_engine(plane, tmp_path_factory.mktemp("stack"), queue="kueue", teams=["vision"])
    done(engine("up", "--yes", "--skip-preview"))
    return api


@pytest.fixture
def controller(plane, api):
    return plane.api(impersonate=(CONTROLLER, "system:serviceaccounts"))


@pytest.fixture
def held(api):
    """A workload that Kueue holds, with the check of somebody else beside ours."""
    raw = copy.deepcopy(RECORDED["workloads"]["held"])
    raw["metadata"] = {"name": "held", "namespace": "team-a"}
    made = api.call("POST", WORKLOADS, raw)
    other = {"name": "other", "state": "Pending", "message": "", "lastTransitionTime": "2026-11-23T07:00:00Z"}
    status = {**raw["status"], "admissionChecks": [*raw["status"]["admissionChecks"], other]}
    yield api.call("PATCH", f"{WORKLOADS}/held/status", {"status": status})
    api.call("DELETE", f"{WORKLOADS}/{made['metadata']['name']}")


def answered(held, name, **answer):
    checks = [{**each, **answer} if each["name"] == name else each for each in held["status"]["admissionChecks"]]
    return {"status": {"admissionChecks": checks}}


def test_up_makes_the_check_and_its_bounds(api):
    check = api.call("GET", f"{API}/admissionchecks/{CHECK}")
    assert check["spec"] == {"controllerName": naming.check_controller("lab")}
    policy = api.call("GET", f"{ADMISSION}/validatingadmissionpolicies/{CHECK}-workloads")

    def judged():
        found = api.call("GET", f"{ADMISSION}/validatingadmissionpolicies/{CHECK}-workloads").get("status") or {}
        return found if found.get("observedGeneration") else None

    assert policy["spec"]["failurePolicy"] == "Fail"
    assert not (wait_for(judged, 30, "its types").get("typeChecking") or {}).get("expressionWarnings")


def test_the_controller_answers_its_own_check_and_no_other(api, controller, held):
    path = f"{WORKLOADS}/held/status"
    wait_for(lambda: "answer no check but" in _said(controller, path, answered(held, "other")), LIMIT_S, "the policy")
    controller.call("PATCH", path, answered(held, CHECK, state="Ready", message="x"))
    said = refused(lambda: controller.call("PATCH", path, answered(held, "other", state="Ready")))
    assert f"may answer no check but {CHECK}" in said
    assert "may answer no check" in refused(
        lambda: controller.call("PATCH", path, {"status": {"admissionChecks": held["status"]["admissionChecks"][:1]}})
    )


def test_the_controller_admits_nothing_and_changes_no_workload(api, controller, held):
    path = f"{WORKLOADS}/held/status"
    at = {"lastTransitionTime": "2026-11-23T07:00:00Z"}
    admitted = {"type": "Admitted", "status": "True", "reason": "x", "message": "", **at}
    for status in ({"conditions": [admitted]}, {"admission": None}, {"requeueState": {"count": 1}}):
        said = refused(lambda status=status: controller.call("PATCH", path, {"status": status}))
        assert "nothing of a workload's status but" in said
    made = {"metadata": {"name": "x"}, "spec": {}}
    assert "cannot create" in refused(lambda: controller.call("POST", WORKLOADS, made))
    for other in (f"{WORKLOADS}/held", f"{API}/clusterqueues/team-a", f"{API}/admissionchecks/other/status"):
        assert "cannot patch" in refused(lambda other=other: controller.call("PATCH", other, {"spec": {}}))
    assert "cannot patch" in refused(
        lambda: controller.call("PATCH", "/api/v1/namespaces/default/pods/x", {"metadata": {"labels": {"a": "b"}}})
    )


@pytest.fixture
def shared(api):
    """The queue and the cohort of a team with shares, and a queue that isn't its."""
    objects = kueue.objects(SHARES, 16, {}, quotas(SHARES, 16, []))
    (queue,) = (each for each in objects if each["kind"] == "ClusterQueue")
    (cohort,) = (each for each in objects if each["kind"] == "Cohort")
    api.call("POST", f"{API}/cohorts", cohort)
    for name in ("vision", "research"):
        api.call("POST", f"{API}/clusterqueues", {**queue, "metadata": {"name": name}})
    yield
    for path in ("clusterqueues/vision", "clusterqueues/research", "cohorts/ironburst"):
        api.call("DELETE", f"{API}/{path}")


def test_the_controller_changes_quotas_of_teams_with_shares_and_nothing_else(api, controller, shared, plane, tmp_path):
    client = Client(Access(kubeconfig_of_the_controller(plane, api, tmp_path)))
    write_queues(client, SHARES, 6)
    found = api.call("GET", f"{API}/clusterqueues/vision")["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    assert found == [{"name": "nvidia.com/gpu", "nominalQuota": "6"}]
    of_vision = f"{API}/clusterqueues/vision"
    for change in ({"spec": {"preemption": {"withinClusterQueue": "Any"}}}, {"spec": {"cohortName": "other"}}):
        said = refused(lambda change=change: controller.call("PATCH", of_vision, change))
        assert "nothing of a queue but its quotas" in said
    labelled = {"metadata": {"labels": {"a": "b"}}}
    assert "no label" in refused(lambda: controller.call("PATCH", f"{API}/cohorts/ironburst", labelled))
    assert "cannot patch" in refused(lambda: controller.call("PATCH", f"{API}/clusterqueues/research", labelled))
    assert "cannot delete" in refused(lambda: controller.call("DELETE", of_vision))


def kubeconfig_of_the_controller(plane, api, folder):
    token = api.call(
        "POST",
        "/api/v1/namespaces/ironburst-system/serviceaccounts/ironburst-controller/token",
        {"spec": {"expirationSeconds": 3600}},
    )["status"]["token"]
    config = yaml.safe_load(plane.layout().kubeconfig("admin").read_text())
    config["users"][0]["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def test_the_server_takes_the_adapters_answers(plane, api, held, tmp_path):
    from tests.adapters.kubernetes.test_kueue import SITE

    for kind, objects in (("clusterqueues", [RECORDED["queue"]]), ("resourceflavors", RECORDED["flavors"])):
        for each in objects:
            meta = {"name": each["metadata"]["name"]}
            api.call("POST", f"{API}/{kind}", {**each, "metadata": meta})
    kube = Kueue(Client(Access(kubeconfig_of_the_controller(plane, api, tmp_path))), SITE)
    try:
        kube.claim("me", "words", 600.0)
        wait_for(lambda: kube.objects().checks[CHECK].active, LIMIT_S, "the check is active")
        (job,) = wait_for(lambda: [each for each in kube.observe().jobs if not each.held], LIMIT_S, "the held job")
        kube.requeue(job.id)
        (mine,) = [
            each for each in api.call("GET", f"{WORKLOADS}/held")["status"]["admissionChecks"] if each["name"] == CHECK
        ]
        assert (mine["state"], mine["message"]) == ("Retry", "its rented nodes go")
        assert kube.observe().unreadable == ()
    finally:
        kube.close()


def _said(controller, path, body):
    """What a call is told that isn't allowed once the policy is in force, and changes nothing before."""
    found = body["status"]["admissionChecks"]
    checks = [{**each, "message": "x"} if each["name"] == "other" else each for each in found]
    try:
        controller.call("PATCH", f"{path}?dryRun=All", {"status": {"admissionChecks": checks}})
    except access.Refused as refusal:
        return str(refusal)
    return ""
