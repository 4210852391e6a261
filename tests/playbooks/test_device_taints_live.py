"""A GPU that alone fails the gate, on nodes whose GPUs are handed out by claims: the stack's rights and policy, and the
node's own program with its own certificate, on a real API server, scheduler and controller manager. NVIDIA's driver
isn't there: the slice is written by hand, with the names and attributes that it gives its devices; nor is kubelet.
"""

import pytest
from test_kubelet_program_live import Node, join_token

from lab.kubernetes.commands import Options
from lab.kubernetes.nodes import NodeSpec
from lab.system import wait_for
from tests import planes
from tests.components.projects import done
from tests.components.test_kubernetes_lab import made_engine

pytestmark = [pytest.mark.slow, planes.BUILT]
RESOURCE, DRIVER = "/apis/resource.k8s.io", "gpu.nvidia.com"
RULES, CLAIMS = f"{RESOURCE}/v1beta2/devicetaintrules", f"{RESOURCE}/v1/namespaces/default/resourceclaims"
SLICES, PODS = f"{RESOURCE}/v1/resourceslices", "/api/v1/namespaces/default/pods"
GPUS = ("GPU-00000000-0000-0000-0000-00000000000a", "GPU-00000000-0000-0000-0000-00000000000b")
HOT = {"check": "gpu_health", "passed": False, "text": "GPU 0: remapped_rows.failure is Yes", "gpus": [GPUS[0]]}
WHOLE = {"check": "fabric", "passed": False, "text": "7 of 8 infiniband links are active"}
LIMIT_S = 60


@pytest.fixture(scope="module")
def plane():
    served = {"resource.k8s.io/v1beta2": "true"}
    options = Options(feature_gates={"DRADeviceTaintRules": True}, runtime_config=served)
    with planes.running("devices", options) as plane:
        yield plane


@pytest.fixture(scope="module")
def api(plane, tmp_path_factory):
    """With the stack's rights, a token to join with, NVIDIA's DeviceClass, and a node's devices."""
    engine = made_engine(plane, tmp_path_factory.mktemp("stack"), gpu_support={"device_taints": True})
    done(engine("up", "--yes", "--skip-preview"))
    api = plane.api()
    join_token(api)
    selects = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
    api.call("POST", f"{RESOURCE}/v1/deviceclasses", {"metadata": {"name": DRIVER}, "spec": selects})
    pool = {"name": "gpu-1", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{n}", "attributes": {"uuid": {"string": uuid}}} for n, uuid in enumerate(GPUS)]
    spec = {"driver": DRIVER, "nodeName": "gpu-1", "pool": pool, "devices": devices}
    api.call("POST", SLICES, {"metadata": {"name": "gpu-1"}, "spec": spec})
    return api


@pytest.fixture
def node(plane, api, tmp_path, monkeypatch):
    node = Node(plane, "gpu-1", tmp_path, monkeypatch)
    node.kubelet.register(NodeSpec("gpu-1", {}, {"cpu": "8", "pods": "110"}), {})
    node.cluster("gpu-1", plane.layout().server, device_taints=True)
    yield node
    for path in (f"{PODS}/{name}" for name in named(api, PODS)):
        api.call("DELETE", path, {"gracePeriodSeconds": 0})
    for path in (*(f"{CLAIMS}/{name}" for name in named(api, CLAIMS)), *(f"{RULES}/{name}" for name in rules(api))):
        api.call("DELETE", path)
    api.call("DELETE", node.path)


def named(api, path):
    return [each["metadata"]["name"] for each in api.call("GET", path)["items"]]


def rules(api):
    """{name: device} of all."""
    items = api.call("GET", RULES)["items"]
    return {each["metadata"]["name"]: each["spec"]["deviceSelector"].get("device") for each in items}


def said(node, api, *findings):
    """The condition after a look of the gate that found these."""
    good = {"check": "time", "passed": True, "text": "the clock is synchronised"}
    node.gate({"passed": not findings, "findings": [good, *findings]})
    assert node.program.main(["gate"]) == 0
    condition = node.condition(api)
    return condition["status"], condition["message"]


def start(api, name):
    """A pod that claims a GPU."""
    wish = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]}}
    api.call("POST", CLAIMS, {"metadata": {"name": name}, "spec": wish})
    container = {"name": "c", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimName": name}]
    spec = {"restartPolicy": "Never", "resourceClaims": claims, "containers": [container]}
    spec["tolerations"] = [{"operator": "Exists"}]
    api.call("POST", PODS, {"metadata": {"name": name}, "spec": spec})


def given(api, name):
    allocation = (api.call("GET", f"{CLAIMS}/{name}").get("status") or {}).get("allocation")
    return [each["device"] for each in allocation["devices"]["results"]] if allocation else None


def test_a_bad_gpu_is_given_to_nobody_and_the_others_stay_in_use(node, api):
    status, message = said(node, api, HOT)
    assert (status, message) == ("True", f"1 of its 2 devices are kept from claims: {HOT['text']}")
    assert rules(api) == {"ironburst-gpu-1-gpu-0": "gpu-0"}
    assert said(node, api, HOT)[0] == "True" and len(rules(api)) == 1  # told again, written once
    start(api, "one")
    assert wait_for(lambda: given(api, "one"), LIMIT_S, "a device") == ["gpu-1"]
    start(api, "two")

    def unschedulable():
        conditions = api.call("GET", f"{PODS}/two")["status"].get("conditions") or []
        return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)

    wait_for(unschedulable, LIMIT_S, "a pod that waits")
    assert given(api, "two") is None
    assert said(node, api) == ("True", "the health gate has passed") and rules(api) == {}  # repaired
    assert wait_for(lambda: given(api, "two"), LIMIT_S, "the repaired one") == ["gpu-0"]


@pytest.mark.parametrize(
    ("findings", "kept"),
    [
        ([HOT, WHOLE], ["gpu-0"]),  # something of the node is bad, too
        ([HOT | {"gpus": list(GPUS)}], ["gpu-0", "gpu-1"]),  # nothing is left
        ([HOT | {"gpus": [GPUS[0], "GPU-unknown"]}], ["gpu-0"]),  # one can't be tainted: the driver doesn't offer it
        ([WHOLE], []),
    ],
)
def test_the_node_fails_where_more_than_some_gpus_is_bad(node, api, findings, kept):
    assert said(node, api, *findings)[0] == "False"
    assert sorted(rules(api).values()) == kept


def test_rules_that_cannot_be_written_fail_the_node(node, api):
    """The rule's name is somebody else's."""
    other = node.program.rule_of("gpu-1", "gpu-0") | {"spec": {"deviceSelector": {"driver": "other.example.org"}}}
    other["spec"]["taint"] = {"key": "example.org/x", "effect": "NoSchedule"}
    api.call("POST", RULES, other)
    status, message = said(node, api, HOT)
    assert status == "False" and "the taints of its GPUs could not be written: the API server answers 409" in message


def test_a_silent_gate_leaves_the_taints(node, api):
    said(node, api, HOT)
    (node.root / "gate").unlink()
    assert node.program.main(["gate"]) == 0
    assert node.condition(api)["status"] == "Unknown" and rules(api) == {"ironburst-gpu-1-gpu-0": "gpu-0"}


@pytest.mark.parametrize(
    ("pool", "changed", "sentence"),
    [
        ("gpu-2", {}, "a node taints the devices of its own pool"),
        (None, {}, "a node taints the devices of its own pool"),
        ("gpu-1", {"effect": "NoExecute"}, "a node taints devices with ironburst.io/bad-gpu:NoSchedule alone"),
        ("gpu-1", {"key": "example.org/x"}, "a node taints devices with ironburst.io/bad-gpu:NoSchedule alone"),
    ],
)
def test_a_node_may_taint_nothing_else(node, api, pool, changed, sentence):
    body = node.program.rule_of("gpu-1", "gpu-0")
    body["spec"]["deviceSelector"]["pool"] = pool
    body["spec"]["taint"].update(changed)
    with pytest.raises(node.program.Failed, match=sentence):
        node.program.Api().call(RULES, body, "application/json", "POST")


def test_a_node_takes_away_no_rule_of_another(node, api):
    api.call("POST", RULES, node.program.rule_of("gpu-2", "gpu-0"))
    path = f"{RULES}/ironburst-gpu-2-gpu-0"
    with pytest.raises(node.program.Failed, match="a node taints the devices of its own pool"):
        node.program.Api().call(path, method="DELETE")
    with pytest.raises(node.program.Failed, match="cannot patch resource"):
        node.program.Api().call(path, {"spec": {"taint": {"value": "x"}}})
    assert said(node, api) == ("True", "the health gate has passed")
    assert list(rules(api)) == ["ironburst-gpu-2-gpu-0"]
