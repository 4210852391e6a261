"""The gate as a NodeReadinessRule in a real API server: what `up` says where the kind isn't there, and that the server
takes the rule. The kind is our own (readiness_crd.py); the controller that taints nodes isn't there. By hand it was:
node-readiness-controller 0.5.0 takes this rule, taints a node that says False, Unknown or nothing yet, and takes the
taint back with True, with another selector, and with the rule.
"""

import pytest

from lab.kubernetes.access import Refused
from lab.system import LabError, wait_for
from tests import planes
from tests.components.projects import done
from tests.components.readiness_crd import GROUP, VERSION, crd
from tests.components.test_kubernetes_lab import made_engine

pytestmark = [pytest.mark.slow, planes.BUILT]
CRDS, RULES = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", f"/apis/{GROUP}/{VERSION}/nodereadinessrules"


@pytest.fixture(scope="module")
def plane():
    with planes.running("gate") as plane:
        yield plane


@pytest.fixture(scope="module")
def engine(plane, tmp_path_factory):
    return made_engine(plane, tmp_path_factory.mktemp("stack"), gate_rule={}, gpu_support={})


def install(api, version):
    api.call("POST", CRDS, crd(version))

    def served():
        try:
            return api.call("GET", f"/apis/{GROUP}/{version}")["resources"]
        except LabError:  # refused, or a page that is no JSON
            return None

    wait_for(served, 60, "the kind")


def said(finished):
    assert finished.returncode != 0
    return " ".join((finished.stdout + finished.stderr).split())


def test_without_the_kind_up_ends_in_a_sentence_before_anything_is_made(engine, plane):
    """Comes first."""
    api = plane.api()
    missing = f"scheduler.gate_rule: the cluster has no {GROUP}: install the node-readiness-controller first"
    assert missing in said(engine("up", "--yes", "--skip-preview"))
    install(api, "v2")
    other = (
        f"the cluster has {GROUP} as v2, needed is {VERSION}: install the node-readiness-controller in a version with"
    )
    assert other in said(engine("up", "--yes", "--skip-preview"))
    with pytest.raises(Refused) as refused:
        api.call("GET", "/api/v1/namespaces/ironburst-system")
    assert refused.value.status == 404
    api.call("DELETE", f"{CRDS}/nodereadinessrules.{GROUP}")
    wait_for(lambda: not _there(api), 60, "the end of the kind")


def _there(api):
    try:
        return api.call("GET", f"{CRDS}/nodereadinessrules.{GROUP}")
    except Refused:
        return None


def test_up_makes_the_rule_and_another_selector_is_another_rule(engine, plane, tmp_path):
    api = plane.api()
    install(api, VERSION)
    done(engine("up", "--yes", "--skip-preview"))
    rule = api.call("GET", f"{RULES}/ironburst-lab-gate")
    assert rule["spec"] == {
        "conditions": [{"type": "ironburst.io/GatePassed", "requiredStatus": "True"}],
        "enforcementMode": "continuous",
        "nodeSelector": {"matchLabels": {"ironburst.io/site": "home"}},
        "taint": {"key": "readiness.k8s.io/ironburst-gate", "value": "not-passed", "effect": "NoSchedule"},
        "dryRun": False,
    }
    with pytest.raises(Refused, match="immutable"):  # so `up` can't change it in its place
        other = {"spec": {"nodeSelector": {"matchLabels": {"ironburst.io/site": None, "gpu": "yes"}}}}
        api.call("PATCH", f"{RULES}/ironburst-lab-gate", other)
    assert again(engine, {"dry_run": True}, api)["metadata"]["uid"] == rule["metadata"]["uid"]
    new = again(engine, {"node_labels": {"gpu": "yes"}}, api)
    assert new["metadata"]["uid"] != rule["metadata"]["uid"] and new["spec"]["dryRun"] is False
    assert new["spec"]["nodeSelector"] == {"matchLabels": {"gpu": "yes"}}


def again(engine, gate_rule, api):
    """The rule after an `up` with other words."""
    done(engine("up", "--yes", "--skip-preview", gate_rule=gate_rule))
    return api.call("GET", f"{RULES}/ironburst-lab-gate")
