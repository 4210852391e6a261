"""Requests, and what each refusal says."""

import pytest
import yaml

from ironburst.adapters.kubernetes import Access
from ironburst.adapters.kubernetes.client import ApiError, Client, call_of, checked
from ironburst.ports import SchedulerError
from tests.fakes.kube_api import KubeApi, Refusal, kubeconfig_of
from tests.fakes.kube_objects import node

BUSY = Refusal(429, "TooManyRequests", "The apiserver is too busy", retry_after=2)
NODE = "/api/v1/nodes/dgx01"


def said(client, path="/api/v1/nodes"):
    with pytest.raises(SchedulerError) as error:
        client.get(path)
    text = str(error.value)
    assert "\n" not in text
    return text


# ---- how it gets there


def test_a_kubeconfig_that_is_not_there(tmp_path):
    with pytest.raises(
        SchedulerError, match=r"there is no kubeconfig .*/nothing that can be read: give the path of one"
    ):
        Client(Access(tmp_path / "nothing"))


@pytest.mark.parametrize("text", ["", "a: [", "just words", "apiVersion: v1\nkind: Config\n"])
def test_a_file_that_is_no_kubeconfig(tmp_path, text):
    (tmp_path / "config").write_text(text)
    with pytest.raises(SchedulerError, match="config can't be used: "):
        Client(Access(tmp_path / "config"))


def test_a_context_that_it_does_not_have(kubeconfig):
    with pytest.raises(SchedulerError, match=r"context prod can't be used: .*prod"):
        Client(Access(kubeconfig, "prod"))


def test_no_pod_is_no_service_account():
    with pytest.raises(SchedulerError, match="the pod's service account can't be used"):
        Client(Access(None))


def test_a_user_without_credentials_and_a_plugin_that_fails(api, tmp_path):
    with pytest.raises(SchedulerError, match="gives no credentials"):
        Client(Access(kubeconfig_of(api, tmp_path / "config", username="me")))
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false", "interactiveMode": "Never"}
    with pytest.raises(SchedulerError, match="credential plugin failed"):
        Client(Access(kubeconfig_of(api, tmp_path / "config", exec=plugin)))


def test_a_credential_plugin_is_run(api, tmp_path):
    answer = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"secret"}}'
    (tmp_path / "plugin").write_text(f"#!/bin/sh\necho '{answer}'\n")
    (tmp_path / "plugin").chmod(0o755)
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(tmp_path / "plugin"),
        "interactiveMode": "Never",
    }
    client = Client(Access(kubeconfig_of(api, tmp_path / "config", exec=plugin)))
    assert client.get("/api/v1/nodes").body["items"] == []


def test_an_api_server_that_is_away(tmp_path):
    gone = KubeApi()
    path = kubeconfig_of(gone, tmp_path / "config")
    gone.close()
    assert "list nodes: http://127.0.0.1:" in (text := said(Client(Access(path))))
    assert "can't be reached" in text


def test_credentials_that_expired_are_read_anew_once(api, kubeconfig, client):
    api.token = "renewed"
    assert "are refused (401): they have expired or were withdrawn" in said(client)
    content = yaml.safe_load(kubeconfig.read_text())
    content["users"][0]["user"]["token"] = "renewed"
    kubeconfig.write_text(yaml.safe_dump(content))
    assert client.get("/api/v1/nodes").body["items"] == []


# ---- what is refused


def test_a_missing_right_is_named(api, client):
    api.allowed = lambda verb, *_: verb == "list"
    assert client.get("/api/v1/nodes").body["items"] == []
    with pytest.raises(ApiError, match=r"has no right to patch nodes dgx01: give it the rules that ironburst declares"):
        client.patch(NODE, {})
    with pytest.raises(ApiError, match=r"no right to watch jobs\.batch"):
        client.watch("/apis/batch/v1/jobs", {}, 1.0)
    with pytest.raises(ApiError, match="no right to create pods/eviction a in namespace team-a"):
        client.create("/api/v1/namespaces/team-a/pods/a/eviction", {})


def test_an_api_that_is_not_there_and_an_object_that_is_not(client):
    path = "/apis/kueue.x-k8s.io/v1beta2/workloads"
    text = said(client, path)
    assert text.startswith("list workloads.kueue.x-k8s.io: the API server has no workloads of kueue.x-k8s.io/v1beta2")
    assert said(client, NODE) == 'get nodes dgx01 is refused (404): nodes "dgx01" not found'


def test_a_busy_server_is_asked_again_after_what_it_says_but_not_for_ever(api, client, waited):
    api.fail(BUSY, 2)
    assert client.get("/api/v1/nodes").body["items"] == []
    assert waited == [2.0, 2.0]
    api.fail(Refusal(429, "TooManyRequests", "too busy", retry_after=3600), 9)
    assert "slows us down (429), 5 times in a row" in said(client)
    assert waited[2:] == [5.0] * 4


def test_a_budgets_refusal_is_no_slowing_down(api, client, waited):
    api.fail(Refusal(429, "TooManyRequests", "Cannot evict pod", causes=[("DisruptionBudget", "web needs 2")]))
    with pytest.raises(ApiError, match=r"is refused \(429\): Cannot evict pod \(web needs 2\)") as error:
        client.create("/api/v1/namespaces/a/pods/b/eviction", {})
    assert error.value.causes == ("DisruptionBudget",)
    assert waited == []


def test_a_change_is_made_on_what_was_read(api, client):
    api.put("v1 nodes", node("dgx01"))
    api.conflicts = 3
    client.change(NODE, lambda found: {"spec": {"unschedulable": True}})
    assert api.get("v1 nodes", "", "dgx01")["spec"]["unschedulable"]
    assert len(api.verbs("patch")) == 4
    api.conflicts = 9
    with pytest.raises(ApiError, match="changed by somebody else at the same time"):
        client.change(NODE, lambda found: {"spec": {"unschedulable": None}})


def test_an_answer_that_is_no_object(api, client, monkeypatch):
    monkeypatch.setattr(api, "serve", lambda *_: ["a"])
    assert "the answer is no object" in said(client)


def test_names_are_checked_before_they_stand_in_a_path():
    assert checked("p5-1.lab") == "p5-1.lab"
    for name in ("", "../secrets", "a/b", "A", "a b", "x" * 300):
        with pytest.raises(SchedulerError, match="is no name"):
            checked(name)


@pytest.mark.parametrize(
    ("method", "path", "means"),
    [
        ("GET", "/api/v1/nodes", ("list", "", "v1", "nodes", "", "")),
        ("GET", "/api/v1/namespaces/a/pods/b", ("get", "", "v1", "pods", "a", "b")),
        ("POST", "/api/v1/namespaces/a/pods/b/eviction", ("create", "", "v1", "pods/eviction", "a", "b")),
        ("PUT", "/apis/x.io/v1/namespaces/a/leases/b", ("update", "x.io", "v1", "leases", "a", "b")),
        ("DELETE", "/api/v1/namespaces/a", ("delete", "", "v1", "namespaces", "", "a")),
    ],
)
def test_calls_in_the_words_of_rights(method, path, means):
    assert call_of(method, path) == means


def test_the_servers_clock(api, client):
    api.skew_s = 7200
    answer = client.get("/api/v1/nodes")
    assert abs(answer.at_s - api.now()) < 5
    assert abs(client.now() - api.now()) < 5
