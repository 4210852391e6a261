"""What a plan says of Google Cloud's kinds of resources (pulumi-gcp)."""

import pytest

from ironburst.plan.policy import _harm, _networks, _secret_resources
from ironburst.plan.preview import UNKNOWN, read_preview
from tests.unit.plan.steps import preview, step

FIREWALL, INSTANCE = "gcp:compute/firewall:Firewall", "gcp:compute/instance:Instance"
ALLOWS = {"direction": "INGRESS", "allows": [{"protocol": "all"}]}


def changes(*steps):
    return read_preview(preview(*steps)).changes


@pytest.mark.parametrize(
    "rule",
    [
        ALLOWS | {"sourceRanges": ["0.0.0.0/0"]},
        ALLOWS | {"sourceRanges": ["10.0.0.0/8", UNKNOWN]},
        ALLOWS,  # without a source it lets in everybody
        {"allows": [{"protocol": "tcp"}]},  # without a direction it is of what comes in
    ],
)
def test_a_firewall_rule_for_everybody_is_refused(rule):
    (refusal,) = _networks(changes(step("create", FIREWALL, "lab-in", after=rule)))
    assert refusal.rule == "open-network" and "firewall rule lab-in would let in" in refusal.why


@pytest.mark.parametrize(
    "rule",
    [
        ALLOWS | {"sourceRanges": ["10.0.0.0/8"]},
        ALLOWS | {"sourceTags": ["ironburst-lab"]},
        ALLOWS | {"direction": "EGRESS"},
        {"direction": "INGRESS", "denies": [{"protocol": "all"}], "sourceRanges": ["0.0.0.0/0"]},
        ALLOWS | {"sourceRanges": ["0.0.0.0/0"], "disabled": True},
    ],
)
def test_what_lets_in_nobody_from_outside_is_not(rule):
    assert list(_networks(changes(step("create", FIREWALL, "lab-in", after=rule)))) == []
    assert list(_networks(changes(step("delete", FIREWALL, "lab-in", before=rule)))) == []


@pytest.mark.parametrize(
    ("op", "before", "after", "harm"),
    [
        ("delete", {}, None, "taken away"),
        ("replace", {"zone": "a"}, {"zone": "b"}, "replaced for zone"),
        ("update", {"machineType": "a"}, {"machineType": "b"}, "stopped for its new machineType"),
        ("update", {"labels": {}}, {"labels": {"a": "b"}}, ""),
        ("create", None, {}, ""),
    ],
)
def test_what_becomes_of_a_fixed_nodes_jobs(op, before, after, harm):
    more = {"replaceReasons": ["zone"]} if op == "replace" else {"diffReasons": list(after or {})}
    (change,) = changes(step(op, INSTANCE, "fixed-1", before, after, **more))
    assert _harm(change) == harm


def test_a_secret_that_goes_is_refused():
    kind = "gcp:secretmanager/secretVersion:SecretVersion"
    (refusal,) = _secret_resources(changes(step("delete", kind, "munge", {"secret": "x"})))
    assert refusal.rule == "join-secret"
