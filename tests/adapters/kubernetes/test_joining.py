"""Who gets a certificate of a node, and what is handed out for it."""

import base64

import pytest

from ironburst.adapters.kubernetes import joining
from ironburst.adapters.kubernetes.joining import Joining
from ironburst.adapters.kubernetes.nodes import NodesRecord
from ironburst.adapters.kubernetes.quantities import moment
from ironburst.kubernetes_rights import BOOTSTRAPPERS
from ironburst.ports import SchedulerError
from tests.fakes.kube_api import Refusal
from tests.fakes.kube_objects import csr, may, pem

REQUESTS = "certificates.k8s.io/v1 certificatesigningrequests"


def ask(api, name="node-csr-Ab1_x", request=None, **spec):
    api.put(REQUESTS, csr(name, request or pem(), **spec))


def answers(api, name):
    conditions = (api.get(REQUESTS, "", name).get("status") or {}).get("conditions") or []
    return [each["type"] for each in conditions]


def approved(api, name="node-csr-Ab1_x"):
    return answers(api, name) == ["Approved"]


def denied(api, name="node-csr-Ab1_x"):
    return answers(api, name) == ["Denied"]


@pytest.fixture
def delivered():
    return []


class Door(Joining):
    """With a record in memory."""

    kept = NodesRecord()

    def approve(self, awaited):
        self.kept = joining.permitted(self.kept, frozenset(awaited))
        return super().approve(awaited, ("p5-1", "p5-2", "p5-3"), self.kept.given, self.give)

    def give(self, new):
        self.kept = joining.given(self.kept, new)


@pytest.fixture
def door(api, client, delivered):
    api.allowed = may
    return Door(client, boot_s=900.0, deliver=delivered.append)


def tokens(api):
    return {key[2]: raw for key, raw in api.objects.items() if key[0] == "v1 secrets"}


def field(secret, name):
    return base64.b64decode(secret["data"][name]).decode()


def test_a_token_is_for_joining_alone_and_ends(api, client, door, delivered):
    door.token()
    ((name, secret),) = tokens(api).items()
    (text,) = delivered
    assert text == f"{name.removeprefix('bootstrap-token-')}.{field(secret, 'token-secret')}" and len(text) == 23
    assert secret["type"] == "bootstrap.kubernetes.io/token"
    uses = {key for key in secret["data"] if key.startswith("usage-")}
    assert (uses, field(secret, "auth-extra-groups")) == ({"usage-bootstrap-authentication"}, BOOTSTRAPPERS)
    assert moment(field(secret, "expiration")) - client.now() == pytest.approx(3600.0, abs=2.0)


def test_a_token_is_renewed_while_half_of_its_time_is_left(api, door, delivered, monkeypatch):
    for _ in range(3):
        door.token()
    assert len(delivered) == 1
    api.skew_s += 1790.0
    api.put("v1 nodes", {"metadata": {"name": "n"}, "kind": "Node"})
    door._client.get("/api/v1/nodes/n")  # heard the server's clock
    door.token()
    assert len(delivered) == 1
    api.skew_s += 20.0
    door._client.get("/api/v1/nodes/n")
    door.token()
    assert len(delivered) == 2 and len(tokens(api)) == 2


def test_a_token_lasts_for_two_boots(api, client):
    Joining(client, 7200.0, lambda _: None).token()
    (secret,) = tokens(api).values()
    assert moment(field(secret, "expiration")) - client.now() == pytest.approx(14400.0, abs=2.0)


def test_what_could_not_be_delivered_is_delivered_later_and_not_made_anew(api, client, delivered):
    def deliver(text):
        delivered.append(text)
        if len(delivered) < 3:
            raise SchedulerError("Secrets Manager says AccessDeniedException")

    door = Joining(client, 900.0, deliver)
    for _ in range(2):
        with pytest.raises(SchedulerError, match="AccessDenied"):
            door.token()
    door.token()
    door.token()
    assert len(tokens(api)) == 1 and len(set(delivered)) == 1 and len(delivered) == 3


def test_who_only_looks_hands_out_nothing(client):
    with pytest.raises(SchedulerError, match="none can be delivered from here"):
        Joining(client, 900.0, joining.refuse).token()


def test_the_request_of_an_awaited_node_is_approved_once(api, door):
    ask(api)
    assert door.approve({"p5-1"}) == []
    assert approved(api)
    writes = len(api.verbs("update"))
    assert door.approve({"p5-1"}) == [] and len(api.verbs("update")) == writes


def test_a_second_machine_that_calls_itself_the_same_gets_nothing(api, door):
    ask(api)
    door.approve({"p5-1"})
    ask(api, "csr-2")
    (said,) = door.approve({"p5-1"})
    assert "another one is for node p5-1" in said and denied(api, "csr-2")
    door.approve(set())  # the lease is over: the next one of this name asks anew
    ask(api, "csr-3")
    api.remove(REQUESTS, "", "csr-2")
    assert door.approve({"p5-1"}) == [] and approved(api, "csr-3")


def test_a_request_that_can_not_be_answered_keeps_no_other(api, door):
    ask(api)
    ask(api, "csr-2")
    api.allowed = lambda verb, group, resource, namespace, name: name != "node-csr-Ab1_x"
    with pytest.raises(SchedulerError):
        door.approve(set())
    assert denied(api, "csr-2")


def test_a_request_is_written_down_before_it_is_approved(api, door):
    """A controller that dies in between approves the same one, and no other."""
    ask(api)
    ask(api, "csr-2")
    (first,) = (raw["metadata"]["uid"] for key, raw in api.objects.items() if key[2] == "csr-2")
    door.kept = NodesRecord(permits=frozenset({"p5-1"}), given={"p5-1": first})
    (said,) = door.approve({"p5-1"})
    assert "node-csr-Ab1_x of system:bootstrap:abcdef is denied: another one" in said
    assert approved(api, "csr-2") and not approved(api)

    def lost(_):
        raise SchedulerError("the API server is away")

    door.give = lost
    ask(api, "csr-3", request=pem("system:node:p5-2"))
    with pytest.raises(SchedulerError):
        door.approve({"p5-1", "p5-2"})
    assert not approved(api, "csr-3")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"request": pem("system:node:p5-2")}, "node p5-2 was not asked for, or no more, or is there already"),
        ({"request": pem("system:node:dgx01")}, "node dgx01 was not asked for, or no more, or is there already"),
        ({"request": pem("system:admin")}, "not a node's"),
        ({"request": pem("system:node:")}, "not a node's"),
        ({"request": pem(group="system:masters")}, "not a node's"),
        ({"request": pem(names=["p5-1"])}, "asks for other names"),
        ({"request": b"no PEM"}, "PEM"),
        ({"usages": ["client auth", "server auth", "digital signature"]}, "server auth"),
    ],
    ids=lambda given: given if isinstance(given, str) else next(iter(given)),
)
def test_what_no_awaited_kubelet_would_ask_for_is_told_and_never_approved(api, door, given, why):
    ask(api, **given)
    (said,) = door.approve({"p5-1"})
    assert why in said and "system:bootstrap:abcdef" in said
    assert answers(api, "node-csr-Ab1_x") == (["Denied"] if "p5-2" in why else [])
    assert door.approve({"p5-1"}) == ([] if "p5-2" in why else [said])


def test_requests_of_others_are_not_touched(api, door):
    ask(api, "by-kubeadm", groups=["system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token"])
    ask(api, "renewal", username="system:node:dgx01", groups=["system:nodes"])
    ask(api, "serving", signerName="kubernetes.io/kubelet-serving")
    ask(api, "denied", status=None)
    api.edit(
        REQUESTS, "", "denied", lambda raw: raw.update(status={"conditions": [{"type": "Denied", "status": "True"}]})
    )
    before = {key[2]: raw["metadata"]["resourceVersion"] for key, raw in api.objects.items() if key[0] == REQUESTS}
    assert door.approve({"p5-1"}) == []
    assert before == {
        key[2]: raw["metadata"]["resourceVersion"] for key, raw in api.objects.items() if key[0] == REQUESTS
    }


def test_an_answer_of_somebody_else_at_the_same_time_stops_nothing(api, door):
    ask(api)
    ask(api, "csr-2", request=pem("system:node:p5-2"))
    api.conflicts = 1
    assert door.approve({"p5-1", "p5-2"}) == []
    assert door.approve({"p5-1", "p5-2"}) == []
    assert approved(api) and approved(api, "csr-2")


def test_a_right_that_is_missing_is_said(api, door):
    ask(api)
    api.fail(Refusal(403, "Forbidden", "user not permitted to approve requests with signerName"))
    with pytest.raises(SchedulerError, match="has no right to"):
        door.approve({"p5-1"})
