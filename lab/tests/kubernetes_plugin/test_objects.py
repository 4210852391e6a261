"""What the kubernetes stand-in makes of inputs and live objects, without an API server."""

import pytest

from lab.kubernetes_plugin import objects, settings
from lab.kubernetes_plugin.api import Api, Kind, executed
from lab.kubernetes_plugin.releases import Releases
from lab.provider.fence import OutsideLab
from lab.provider.service import PluginError
from lab.provider.wire import is_secret, secret

KUBECONFIG = """
clusters: [{name: lab, cluster: {server: %s}}]
contexts: [{name: lab, context: {cluster: lab, user: me}}]
users: [{name: me, user: {token: t}}]
current-context: lab
"""


@pytest.mark.parametrize(
    "token, kind",
    [
        ("kubernetes:core/v1:Namespace", Kind("v1", "Namespace")),
        ("kubernetes:rbac.authorization.k8s.io/v1:Role", Kind("rbac.authorization.k8s.io/v1", "Role")),
    ],
)
def test_a_token_is_a_kind(token, kind):
    assert objects.kind_of(token) == kind


def test_only_what_was_asked_for_counts():
    live = {"metadata": {"name": "a", "uid": "1"}, "rules": [{"verbs": ["get"], "x": 1}, {"verbs": ["*"]}], "kind": "R"}
    asked = {"metadata": {"name": "b"}, "rules": [{"verbs": ["list"]}]}
    assert objects.pruned(live, asked) == {"metadata": {"name": "a"}, "rules": [{"verbs": ["get"]}]}
    assert objects.pruned({"rules": []}, {"rules": [1]}) == {"rules": []}


def test_a_list_of_another_kind_is_shown_as_it_is():
    assert objects.pruned({"a": ["x"]}, {"a": [{"b": 1}]}) == {"a": ["x"]}


def test_what_stringdata_hides_data_hides_too():
    live = {"kind": "Secret", "data": {"a": "Yg=="}}
    state = objects.checkpoint({"stringData": {"a": "b"}}, live, {"stringData": {"a": secret("b")}}, "m")
    assert is_secret(state["data"]) and is_secret(state["__inputs"]["stringData"]["a"])


def test_fields_of_a_post_become_the_resources_own():
    owned = {"manager": "pulumi-kubernetes", "operation": "Update", "fieldsV1": {"f:a": {".": {}}}}
    others = {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:b": {}}}
    live = {"metadata": {"managedFields": [owned, others]}}
    mine = {"manager": "me", "operation": "Apply", "fieldsV1": {"f:a": {".": {}}}}
    assert objects.taken_over(live, "me") == [mine, others]
    assert objects.taken_over({"metadata": {"managedFields": [others]}}, "me") is None


@pytest.mark.parametrize(
    "live, preview, expected",
    [
        (None, True, True),
        (None, False, False),
        ([{"manager": "someone", "operation": "Apply"}], True, False),
        ([{"manager": "pulumi-kubernetes", "operation": "Update"}], True, True),
        ([{"manager": "pulumi-kubernetes", "operation": "Update"}], False, False),
        ([], False, True),
    ],
)
def test_fields_are_taken_from_others_where_the_plugin_takes_them(live, preview, expected):
    thing = None if live is None else {"metadata": {"name": "a", "managedFields": live}}
    assert objects.forced({}, thing, {}, preview) is expected
    assert objects.forced({"metadata": {"annotations": {objects.PATCH_FORCE: "true"}}}, thing, {}, preview)


@pytest.mark.parametrize(
    "given, said",
    [
        ({}, "never uses the caller's own kubeconfig"),
        ({"kubeconfig": "{}"}, "is no kubeconfig"),
        ({"kubeconfig": KUBECONFIG % "https://10.0.0.5:6443"}, "is outside the lab"),
        ({"kubeconfig": KUBECONFIG % "https://cluster.example.com"}, "is outside the lab"),
        (
            {"kubeconfig": KUBECONFIG % "https://127.0.0.1:1", "context": "b"},
            "names 'b', which isn't among its context",
        ),
        ({"kubeconfig": KUBECONFIG % "https://127.0.0.1:1", "enableServerSideApply": "false"}, "is not implemented"),
        ({"kubeconfig": KUBECONFIG % "https://127.0.0.1:1", "kubeConfig": "x"}, "is no setting"),
    ],
)
def test_a_configuration_that_is_refused(given, said):
    (problem,) = settings.problems(given)
    assert said in problem[1]


def test_the_fence_holds_below_the_configuration_too():
    with pytest.raises(OutsideLab):
        Api({"server": "https://192.0.2.1"}, {"token": "t"})
    with pytest.raises(PluginError, match="neither a token nor a credential plugin"):
        Api({"server": "https://127.0.0.1:1"}, {"client-certificate": "/etc/cert.pem"})


@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        ({"command": "/nobody/has/this"}, "credential plugin /nobody/has/this can't be run"),
        ({"command": "sh", "args": ["-c", "echo no role >&2; exit 1"]}, "credential plugin sh gave no token: no role"),
        ({"command": "echo", "args": ["{}"]}, "credential plugin echo gave no token"),
    ],
)
def test_a_credential_plugin_gives_a_token_or_is_said_to_fail(plugin, words):
    with pytest.raises(PluginError, match=words):
        Api({"server": "https://127.0.0.1:1"}, {"exec": plugin})
    said = {"command": "echo", "args": ['{"status": {"token": "k8s-aws-v1.x"}}']}
    assert executed(said) == "k8s-aws-v1.x"


@pytest.mark.parametrize(
    "inputs, paths",
    [
        ({"chart": "gpu-operator", "version": "1", "repositoryOpts": {"repo": "https://charts.example.com"}}, []),
        ({"chart": "oci://charts.example.com/x", "version": "1"}, []),
        ({"chart": "gpu-operator"}, ["repositoryOpts.repo", "version"]),
    ],
)
def test_a_release_says_its_chart_and_version(inputs, paths):
    checked, wrong = Releases.check(inputs, {}, "gpu", b"seed", "default")
    assert [path for path, _ in wrong] == paths
    assert checked["namespace"] == "default" and checked["name"].startswith("gpu-") and checked["timeout"] == 300
    assert Releases.check(inputs, checked, "gpu", b"other", "default")[0]["name"] == checked["name"]
