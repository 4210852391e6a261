"""What a plan says of Azure's kinds of resources (pulumi-azure-native)."""

import pytest

from ironburst.plan.policy import _harm, _networks, _secret_resources
from ironburst.plan.preview import UNKNOWN, read_preview
from tests.unit.plan.steps import preview, step

GROUP, RULE = "azure-native:network:NetworkSecurityGroup", "azure-native:network:SecurityRule"
MACHINE = "azure-native:compute:VirtualMachine"
ALLOWS = {"direction": "Inbound", "access": "Allow", "protocol": "*", "priority": 100}


def changes(*steps):
    return read_preview(preview(*steps)).changes


WIDE = [
    ALLOWS | {"sourceAddressPrefix": "*"},
    ALLOWS | {"sourceAddressPrefix": "Internet"},
    ALLOWS | {"sourceAddressPrefixes": ["10.0.0.0/8", "0.0.0.0/0"]},
    ALLOWS | {"sourceAddressPrefix": UNKNOWN},
]
NARROW = [
    ALLOWS | {"sourceAddressPrefix": "10.0.0.0/8"},
    ALLOWS | {"sourceAddressPrefix": "VirtualNetwork"},
    ALLOWS | {"direction": "Outbound", "sourceAddressPrefix": "*"},
    ALLOWS | {"access": "Deny", "sourceAddressPrefix": "*"},
]


@pytest.mark.parametrize("rule", WIDE)
def test_a_rule_for_everybody_is_refused_alone_and_in_a_group(rule):
    (refusal,) = _networks(changes(step("create", RULE, "lab-in", after=rule)))
    assert refusal.rule == "open-network" and "rule of a security group lab-in would let in" in refusal.why
    (refusal,) = _networks(changes(step("create", GROUP, "lab", after={"securityRules": [*NARROW, rule]})))
    assert "security group lab would let in" in refusal.why


def test_a_rule_without_a_source_is_one_for_everybody():
    (refusal,) = _networks(changes(step("create", RULE, "lab-in", after=ALLOWS)))
    assert "0.0.0.0/0" in refusal.why


@pytest.mark.parametrize("rule", NARROW)
def test_what_lets_in_nobody_from_outside_is_not(rule):
    assert list(_networks(changes(step("create", RULE, "lab-in", after=rule)))) == []
    assert list(_networks(changes(step("create", GROUP, "lab", after={"securityRules": [rule]})))) == []


@pytest.mark.parametrize(
    ("op", "before", "after", "harm"),
    [
        ("delete", {}, None, "taken away"),
        ("replace", {"zones": ["1"]}, {"zones": ["2"]}, "replaced for zones"),
        ("update", {"hardwareProfile": {}}, {"hardwareProfile": {"a": 1}}, "stopped for its new hardwareProfile"),
        ("update", {"tags": {}}, {"tags": {"a": "b"}}, ""),
        ("create", None, {}, ""),
    ],
)
def test_what_becomes_of_a_fixed_nodes_jobs(op, before, after, harm):
    more = {"replaceReasons": ["zones"]} if op == "replace" else {"diffReasons": list(after or {})}
    (change,) = changes(step(op, MACHINE, "fixed-1", before, after, **more))
    assert _harm(change) == harm


def test_a_secret_that_goes_is_refused():
    (refusal,) = _secret_resources(changes(step("delete", "azure-native:keyvault:Secret", "munge", {"a": "x"})))
    assert refusal.rule == "join-secret"
