"""One bad GPU of a node whose GPUs are handed out by claims: what a real API server, scheduler and controller manager
do with a DeviceTaintRule for it (which ironburst-kubelet writes: tests/playbooks/test_device_taints_live.py). NVIDIA's
driver isn't there: the slice is written by hand, with the names and attributes that it gives its devices.
"""

import pytest

from ironburst.adapters.kubernetes import Access, Client, Kubernetes, KubernetesSite
from lab.kubernetes.access import Refused
from lab.kubernetes.commands import Options
from lab.kubernetes.nodes import NodeSpec
from lab.system import wait_for
from tests import planes

pytestmark = [pytest.mark.slow, planes.BUILT]
GROUP, VERSION, PODS = "/apis/resource.k8s.io", "v1beta2", "/api/v1/namespaces/default/pods"
RULES, CLAIMS = f"{GROUP}/{VERSION}/devicetaintrules", f"{GROUP}/v1/namespaces/default/resourceclaims"
DRIVER, LIMIT_S = "gpu.nvidia.com", 60
SELECTS = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
STANDS_FOR = {"extendedResourceName": "nvidia.com/gpu"}
TAINT = {"key": "ironburst.io/bad-gpu", "value": "Xid-79", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def plane():
    served = {f"resource.k8s.io/{VERSION}": "true"}
    options = Options(feature_gates={"DRADeviceTaintRules": True}, runtime_config=served)
    with planes.running("taints", options) as plane:
        yield plane


@pytest.fixture(scope="module")
def api(plane):
    api = plane.api()
    plane.add_node(NodeSpec("gpu-1"))
    api.call("POST", f"{GROUP}/v1/deviceclasses", {"metadata": {"name": DRIVER}, "spec": SELECTS})
    pool = {"name": "gpu-1", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{n}", "attributes": {"uuid": {"string": f"GPU-{n}"}}} for n in range(2)]
    spec = {"driver": DRIVER, "nodeName": "gpu-1", "pool": pool, "devices": devices}
    api.call("POST", f"{GROUP}/v1/resourceslices", {"metadata": {"name": "gpu-1"}, "spec": spec})
    return api


def one(device):
    return {"driver": DRIVER, "pool": "gpu-1", "device": device}


def rule(api, name, selector, **taint):
    body = {"metadata": {"name": name}, "spec": {"deviceSelector": selector, "taint": {**TAINT, **taint}}}
    return api.call("POST", RULES, body)["spec"]


def start(api, name):
    wish = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]}}
    api.call("POST", CLAIMS, {"metadata": {"name": name}, "spec": wish})
    container = {"name": "c", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
    claim = {"name": "gpu", "resourceClaimName": name}
    spec = {"restartPolicy": "Never", "resourceClaims": [claim], "containers": [container]}
    api.call("POST", PODS, {"metadata": {"name": name}, "spec": spec})


def given(api, name):
    allocation = (api.call("GET", f"{CLAIMS}/{name}").get("status") or {}).get("allocation")
    return [each["device"] for each in allocation["devices"]["results"]] if allocation else None


def until_given(api, name):
    return wait_for(lambda: given(api, name), LIMIT_S, f"a device for {name}")


def look(api, name):
    return api.call("GET", f"{PODS}/{name}")


def unschedulable(api, name):
    conditions = look(api, name)["status"].get("conditions") or []
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)


def test_a_bad_gpu_is_given_to_nobody_and_its_node_stays_in_use(api):
    rule(api, "first", one("gpu-0"))
    start(api, "one")
    assert until_given(api, "one") == ["gpu-1"]
    wait_for(lambda: look(api, "one")["status"]["phase"] == "Running", LIMIT_S, "the pod on the good GPU")
    start(api, "two")
    wait_for(lambda: unschedulable(api, "two"), LIMIT_S, "a pod that waits")
    assert given(api, "two") is None
    rule(api, "used", one("gpu-1"))  # NoSchedule: whoever has it keeps it
    api.call("DELETE", f"{RULES}/first")  # repaired
    assert until_given(api, "two") == ["gpu-0"]
    assert look(api, "one")["status"]["phase"] == "Running" and "deletionTimestamp" not in look(api, "one")["metadata"]
    api.call("PATCH", f"{RULES}/used", {"spec": {"taint": {"effect": "NoExecute"}}})
    wait_for(lambda: "deletionTimestamp" in look(api, "one")["metadata"], LIMIT_S, "the eviction")
    assert "deletionTimestamp" not in look(api, "two")["metadata"]
    api.call("DELETE", f"{RULES}/used")


@pytest.mark.parametrize(
    ("selector", "taint", "words"),
    [
        (one("gpu-0"), {"effect": None}, "spec.taint.effect: Required value"),
        (one("gpu-0"), {"effect": "PreferNoSchedule"}, 'supported values: "NoExecute", "NoSchedule", "None"'),
        (one("gpu-0"), {"value": "Xid 79: off the bus"}, "a valid label must be"),
        (one("gpu-0"), {"value": "x" * 64}, "must be no more than 63 bytes"),
        (one("GPU-0"), {}, "spec.deviceSelector.device: Invalid value"),  # a UUID is no name of a device
    ],
)
def test_what_it_refuses(api, selector, taint, words):
    with pytest.raises(Refused, match=words):
        rule(api, "refused", selector, **taint)


def test_a_gpu_is_not_found_by_its_uuid_and_such_a_rule_is_for_all_of_them(api):
    """So whoever writes one names driver, pool and device, which the ResourceSlice has beside the UUID."""
    uuid = {"cel": {"expression": f"device.attributes['{DRIVER}'].uuid == 'GPU-0'"}}
    kept = rule(api, "wide", {"driver": DRIVER, "selectors": [uuid]}, effect="None")
    assert kept["deviceSelector"] == {"driver": DRIVER}  # it takes the field, and forgets it
    api.call("DELETE", f"{RULES}/wide")


def test_a_pod_that_asks_as_ever_gets_devices_and_the_adapter_counts_them(plane, api):
    """NVIDIA's DeviceClass stands for nvidia.com/gpu: no device plugin, no claim in the pod. And a node that announces
    GPUs takes such a pod, too, as a rented one does.
    """
    api.call("POST", f"{GROUP}/v1/deviceclasses", {"metadata": {"name": "as-ever"}, "spec": {**SELECTS, **STANDS_FOR}})
    plane.add_node(NodeSpec("gpu-2"))
    pool = {"name": "gpu-2", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{n}", "attributes": {"type": {"string": "gpu"}}} for n in range(2)]
    spec = {"driver": DRIVER, "nodeName": "gpu-2", "pool": pool, "devices": devices}
    api.call("POST", f"{GROUP}/v1/resourceslices", {"metadata": {"name": "gpu-2"}, "spec": spec})
    kube = Kubernetes(Client(Access(plane.layout().kubeconfig("admin"))), KubernetesSite("lab"), deliver=str)
    try:
        asks_as_ever(api, "first")
        wait_for(lambda: look(api, "first")["status"]["phase"] == "Running", LIMIT_S, "the pod on devices")
        asks_as_ever(api, "waits")
        wait_for(lambda: unschedulable(api, "waits"), LIMIT_S, "a pod that waits")

        def seen():
            found = kube.observe()
            jobs = {job.name.rpartition("/")[2]: job for job in found.jobs}
            first, waits = jobs.get("first"), jobs.get("waits")
            return first and waits and waits.reason_word == "Unschedulable" and (found.node("gpu-2"), first, waits)

        node, first, waits = wait_for(seen, LIMIT_S, "both pods as jobs")
        assert (node.total.gpus, node.has("ALLOCATED"), first.on, first.each.gpus) == (2, True, ("gpu-2",), 2)
        assert (waits.each.gpus, waits.held, waits.demands) == (2, False, "")
        plane.add_node(NodeSpec("rented", {}, {"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "2"}))
        wait_for(lambda: look(api, "waits")["spec"].get("nodeName") == "rented", LIMIT_S, "the pod on announced GPUs")
    finally:
        kube.close()


def asks_as_ever(api, name):
    asked = {"nvidia.com/gpu": "2"}
    container = {"name": "c", "image": "x", "resources": {"requests": asked, "limits": asked}}
    spec = {"restartPolicy": "Never", "activeDeadlineSeconds": 3600, "containers": [container]}
    api.call("POST", PODS, {"metadata": {"name": name}, "spec": spec})
