"""The kubernetes stand-in against a real API server: what it plans, applies, refuses and sees."""

import base64

import grpc
import pytest
import yaml

from lab.kubernetes.access import Refused as ApiRefused
from lab.kubernetes_plugin.harness import Engine
from lab.provider.harness import Refused
from lab.provider.wire import plain, secret
from tests import planes

pytestmark = [pytest.mark.slow, planes.BUILT]
NAMESPACE, CONFIG, ROLE, BINDING, SECRET = (
    "kubernetes:core/v1:Namespace",
    "kubernetes:core/v1:ConfigMap",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding",
    "kubernetes:core/v1:Secret",
)
RELEASE = "kubernetes:helm.sh/v3:Release"


plane, api = planes.fixtures("plugin")


@pytest.fixture(scope="module")
def engine(plane):
    engine = Engine({"kubeconfig": plane.layout().kubeconfig("admin").read_text()})
    yield engine
    engine.close()


def named(name, **more):
    return {"metadata": {"name": name, **more.pop("meta", {})}, **more}


def role(name, *verbs):
    return named(name, rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}])


def refusal(call):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.details()


def gone(api, path):
    with pytest.raises(ApiRefused) as caught:
        api.call("GET", path)
    return caught.value.status == 404


def test_a_role_lives(engine, api):
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/reader"
    planned = engine.preview(ROLE, "reader", role("reader", "get"))
    assert planned["kind"] == "ClusterRole" and gone(api, path)  # the server says what it would be

    held = engine.create(ROLE, "reader", role("reader", "get"))
    assert held.id == "reader" and api.call("GET", path)["metadata"]["managedFields"][0]["operation"] == "Update"
    assert not engine.diff(held, role("reader", "get")).detailedDiff

    diff = engine.diff(held, role("reader", "get", "list"))
    assert dict(diff.detailedDiff).keys() == {"rules[0].verbs[1]"} and not diff.replaces
    held = engine.update(held, role("reader", "get", "list"))
    (owner,) = api.call("GET", path)["metadata"]["managedFields"]
    assert owner["operation"] == "Apply" and owner["manager"].startswith("pulumi-kubernetes-")

    api.call("PATCH", path, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]})
    held = engine.read(held)
    assert plain(held.inputs)["rules"][0]["verbs"] == ["*"]

    engine.delete(held)
    assert gone(api, path) and engine.read(held) is None
    engine.delete(held)  # gone already: no error


def test_a_field_of_somebody_else_is_a_conflict_and_told(engine, api):
    path = "/api/v1/namespaces/default/configmaps/shared"
    held = engine.create(CONFIG, "shared", named("shared", meta={"labels": {"owner": "us"}}))
    held = engine.update(held, named("shared", meta={"labels": {"owner": "us", "more": "x"}}))
    api.call("PATCH", f"{path}?fieldManager=them", {"metadata": {"labels": {"owner": "them"}}})
    said = refusal(lambda: engine.update(held, named("shared", meta={"labels": {"owner": "us", "more": "y"}})))
    assert "field conflict" in said and '"them"' in said
    assert api.call("GET", path)["metadata"]["labels"] == {"owner": "them", "more": "x"}
    forced = {"labels": {"owner": "us"}, "annotations": {"pulumi.com/patchForce": "true"}}
    engine.update(held, named("shared", meta=forced))
    assert api.call("GET", path)["metadata"]["labels"] == {"owner": "us"}
    engine.delete(held)


def test_what_is_there_already_is_not_taken(engine, api):
    api.call("POST", "/api/v1/namespaces", named("theirs"))
    assert engine.preview(NAMESPACE, "theirs", named("theirs"))["metadata"]["name"] == "theirs"
    assert "already exists" in refusal(lambda: engine.create(NAMESPACE, "theirs", named("theirs")))
    api.call("DELETE", "/api/v1/namespaces/theirs")


def test_what_cannot_change_in_place_is_replaced(engine):
    subject = {"subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]}
    to = lambda role: {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}}  # noqa: E731
    held = engine.create(BINDING, "b", named("b", **subject, **to("view")))
    diff = engine.diff(held, named("b", **subject, **to("edit")))
    assert list(diff.replaces) == ["roleRef.name"] and diff.deleteBeforeReplace
    assert list(engine.diff(held, named("c", **subject, **to("view"))).replaces) == ["metadata.name"]
    engine.delete(held)


def test_a_secret_stays_one(engine, api):
    held = engine.create(SECRET, "s", named("s", stringData={"token": secret("abc")}))
    assert plain(held.outputs)["data"]["token"] == base64.b64encode(b"abc").decode()
    assert "YWJj" not in str({k: v for k, v in held.outputs.items() if k != "data"})
    assert held.outputs["data"].keys() == secret("").keys()
    engine.delete(held)


def test_names_are_made_where_none_is_given(engine):
    held = engine.create(CONFIG, "made", {"data": {"a": "b"}})
    assert held.id.startswith("default/made-")
    assert not engine.diff(held, {"data": {"a": "b"}}).detailedDiff  # the name is kept
    diff = engine.diff(held, {"data": {"a": "c"}})
    assert list(diff.replaces) == ["data.a"] and not diff.deleteBeforeReplace
    engine.delete(held)


@pytest.mark.parametrize(
    "token, inputs, said",
    [
        (ROLE, {"rules": [{"verb": ["get"]}]}, "rules[0].verb"),
        (NAMESPACE, {"metadata": {"label": {}}}, "metadata.label"),
    ],
)
def test_inputs_that_the_sdk_lacks_are_refused_at_preview(engine, token, inputs, said):
    with pytest.raises(Refused) as caught:
        engine.preview(token, "x", inputs)
    assert said in caught.value.failures


def test_what_the_server_refuses_is_refused_at_preview(engine):
    bad = named("bad", roleRef={"apiGroup": "", "kind": "Nothing", "name": "x"})
    assert "Unsupported value" in refusal(lambda: engine.preview(BINDING, "bad", bad))


def test_a_namespaces_things_wait_for_it_and_go_with_it(engine, api):
    inside = {"metadata": {"name": "in", "namespace": "room"}, "data": {"a": "b"}}
    assert engine.preview(CONFIG, "in", inside)["data"] == {"a": "b"}  # no namespace yet: the inputs as they are
    room = engine.create(NAMESPACE, "room", named("room"))
    held = engine.create(CONFIG, "in", inside)
    engine.delete(room)
    assert gone(api, "/api/v1/namespaces/room") and engine.read(held) is None


def test_one_that_is_held_by_a_finalizer_is_told(plane, api):
    engine = Engine({"kubeconfig": plane.layout().kubeconfig("admin").read_text()})
    path = "/api/v1/namespaces/default/configmaps/held"
    held = engine.create(CONFIG, "held", named("held"))
    api.call("PATCH", path, {"metadata": {"finalizers": ["example.com/hold"]}})
    request_limit, engine_delete = 1, engine.stub.Delete
    said = refusal(lambda: engine_delete(_delete_request(held, request_limit)))
    assert "finalizers might prevent it" in said and "example.com/hold" in said
    api.call("PATCH", path, {"metadata": {"finalizers": None}})
    engine.close()


def _delete_request(held, limit_s):
    from pulumi.runtime.proto import provider_pb2 as pb

    from lab.provider.wire import encode

    return pb.DeleteRequest(id=held.id, urn=held.urn, properties=encode(held.outputs), timeout=limit_s)


def test_a_quota_is_made_when_its_controller_has_seen_it(plane, engine):
    quota = "kubernetes:core/v1:ResourceQuota"
    held = engine.create(quota, "q", named("q", spec={"hard": {"requests.nvidia.com/gpu": "8"}}))
    assert plain(held.outputs)["status"]["hard"] == {"requests.nvidia.com/gpu": "8"}
    engine.delete(held)


def test_what_is_read_by_its_id_alone(engine):
    found = engine.get(NAMESPACE, "system", "kube-system")
    assert found.inputs["metadata"]["name"] == "kube-system" and "uid" not in found.inputs["metadata"]
    assert engine.get(NAMESPACE, "none", "no-such") is None


def test_a_user_without_the_right_hears_which(plane):
    plane.add_user("nobody")
    engine = Engine({"kubeconfig": plane.layout().kubeconfig("nobody").read_text()})
    assert engine.preview(NAMESPACE, "x", named("x"))["metadata"]["name"] == "x"  # a preview goes without it
    said = refusal(lambda: engine.create(NAMESPACE, "x", named("x")))
    assert 'cannot create resource "namespaces"' in said
    engine.close()


def test_another_token_is_the_same_cluster(plane):
    from pulumi.runtime.proto import provider_pb2 as pb

    from lab.provider.wire import encode

    content = yaml.safe_load(plane.layout().kubeconfig("admin").read_text())
    engine = Engine({"kubeconfig": yaml.safe_dump(content)})

    def diff(change):
        other = yaml.safe_load(yaml.safe_dump(content))
        change(other)
        old, new = ({"kubeconfig": yaml.safe_dump(each)} for each in (content, other))
        return engine.stub.DiffConfig(pb.DiffRequest(old_inputs=encode(old), olds=encode(old), news=encode(new)))

    token = diff(lambda each: each["users"][0]["user"].update(token="new"))
    assert list(token.diffs) == ["kubeconfig"] and not token.replaces
    assert diff(lambda each: each["clusters"][0]["cluster"].update(server="https://127.0.0.1:1")).replaces
    engine.close()


def test_a_release_is_recorded_and_not_rendered(engine, api):
    chart = {"chart": "gpu-operator", "version": "v26.7.0", "repositoryOpts": {"repo": "https://charts.example.com"}}
    inputs = {**chart, "name": "gpu", "namespace": "default", "values": {"driver": {"enabled": False}}}
    held = engine.create(RELEASE, "gpu", inputs)
    assert held.id == "default/gpu" and plain(held.outputs)["status"]["status"] == "stand-in: chart not rendered"
    record = "/api/v1/namespaces/default/configmaps/lab-helm-release-gpu"
    assert api.call("GET", record)["data"]["version"] == "v26.7.0"
    assert not engine.diff(held, inputs).detailedDiff
    newer = {**inputs, "version": "v26.7.1"}
    assert dict(engine.diff(held, newer).detailedDiff).keys() == {"version"}
    held = engine.update(held, newer)
    assert plain(held.outputs)["status"]["revision"] == 2 and api.call("GET", record)["data"]["revision"] == "2"
    assert engine.read(held).id == held.id
    assert list(engine.diff(held, {**newer, "namespace": "other"}).replaces) == ["namespace"]
    engine.delete(held)
    assert engine.read(held) is None
    assert "release: not found" in refusal(lambda: engine.delete(held))


def test_an_unreachable_cluster_is_said_by_every_call_but_previews(plane):
    content = yaml.safe_load(plane.layout().kubeconfig("admin").read_text())
    content["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    engine = Engine({"kubeconfig": yaml.safe_dump(content)})
    assert engine.preview(NAMESPACE, "x", named("x"))["metadata"]["name"] == "x"
    assert "is unreachable" in refusal(lambda: engine.create(NAMESPACE, "x", named("x")))
    engine.close()
