"""GPUs that NVIDIA's DRA driver hands out, in the shapes of its v26 chart and plugin: a DeviceClass that stands for
`nvidia.com/gpu`, one device a GPU with the attribute type, and claims that the scheduler makes of what pods ask
for.
"""

import pytest

from ironburst.adapters.kubernetes import Kubernetes
from lab.system import wait_for
from tests.fakes.kube_api import RESOURCES, KubeApi
from tests.fakes.kube_objects import SITE, may, node, pod

API = "resource.k8s.io/v1"
CLASSES, SLICES, CLAIMS = (f"{API} {plural}" for plural in ("deviceclasses", "resourceslices", "resourceclaims"))
DRIVER = "gpu.nvidia.com"


class OlderApi(KubeApi):
    """Without the API: Kubernetes before 1.34."""

    resources = {key: kind for key, kind in RESOURCES.items() if not key.startswith(API)}  # noqa: RUF012


@pytest.fixture
def api(request):
    server = getattr(request, "param", KubeApi)()
    server.allowed = may
    yield server
    server.close()


@pytest.fixture
def kube(client):
    it = Kubernetes(client, SITE, first_s=10.0)
    yield it
    it.close()


def until(true):
    return wait_for(true, 10.0, "what was waited for", pause=0.01)


def device_class(api, name=DRIVER, stands_for="nvidia.com/gpu"):
    spec = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
    more = {"extendedResourceName": stands_for} if stands_for else {}
    api.put(CLASSES, {"metadata": {"name": name}, "spec": {**spec, **more}})


def device(number, kind="gpu", **more):
    return {"name": f"{kind}-{number}", "attributes": {"type": {"string": kind}}, **more}


def resource_slice(api, name, on, devices, generation=1, driver=DRIVER):
    pool = {"name": on, "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": on, "pool": pool, "devices": devices}
    api.put(SLICES, {"metadata": {"name": name}, "spec": spec})


def claim(api, name, gpus, users, driver=DRIVER, **annotations):
    results = [{"request": "r", "driver": driver, "pool": "dgx", "device": f"gpu-{n}"} for n in range(gpus)]
    reserved = [{"resource": "pods", "name": uid, "uid": uid} for uid in users]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    meta = {"name": name, "namespace": "team-a", "annotations": annotations}
    api.put(CLAIMS, {"metadata": meta, "spec": {"devices": {}}, "status": status})


def home(kube):
    return kube.observe().node("dgx")


def test_nodes_of_the_dra_driver_have_the_gpus_that_pods_get_by_asking_as_ever(api, kube):
    api.put("v1 nodes", node("dgx", gpus=0))
    api.put("v1 nodes", node("plugin", gpus=4))
    device_class(api)
    bad = device(7, taints=[{"key": "ironburst.io/bad-gpu", "effect": "NoSchedule"}])
    resource_slice(api, "old", "dgx", [device(n) for n in range(8)])
    resource_slice(api, "one", "dgx", [*(device(n) for n in range(7)), bad, device(0, "mig")], generation=2)
    resource_slice(api, "nics", "dgx", [device(n) for n in range(4)], driver="dra.net")
    resource_slice(api, "both", "plugin", [device(n) for n in range(8)])
    until(lambda: home(kube) and home(kube).total.gpus)
    assert home(kube).total.gpus == 7
    assert kube.observe().node("plugin").total.gpus == 4, "what a device plugin announces goes first"
    api.put("v1 pods", pod("runs", gpus=7, node="dgx"))
    claim(api, "made", 7, ["uid-of-runs"], **{"resource.kubernetes.io/extended-resource-claim": "true"})
    until(lambda: home(kube).has("ALLOCATED"))


@pytest.mark.parametrize("stands_for", ["", "example.com/gpu"])
def test_a_class_that_stands_for_something_else_gives_pods_that_ask_for_gpus_nothing(api, kube, stands_for):
    api.put("v1 nodes", node("dgx", gpus=0))
    device_class(api, stands_for=stands_for)
    resource_slice(api, "one", "dgx", [device(n) for n in range(8)])
    until(lambda: home(kube))
    assert home(kube).total.gpus == 0


def test_a_running_pod_has_the_gpus_of_its_claims(api, kube):
    api.put("v1 nodes", node("dgx", gpus=0))
    device_class(api)
    resource_slice(api, "one", "dgx", [device(n) for n in range(8)])
    uids = []
    for name in ("a", "nic", "b"):
        raw = pod(name, gpus=0, node="dgx")
        raw["spec"]["resourceClaims"] = [{"name": "it", "resourceClaimName": name}]
        uids.append(api.put("v1 pods", raw)["metadata"]["uid"])
    claim(api, "a", 4, [uids[0], uids[2]])  # the first of the two has them
    claim(api, "nic", 1, [uids[1]], driver="dra.net")
    until(lambda: sum(job.each.gpus for job in kube.observe().jobs) == 4)
    assert home(kube).has("MIXED")


@pytest.mark.parametrize("api", [OlderApi], indirect=True, ids=["older"])
def test_a_cluster_without_the_api_has_none(api, kube):
    assert kube.observe().jobs == ()
