from dataclasses import replace

import pytest

from ironburst import catalog
from ironburst.software import rules
from ironburst.software.state import NodeState

KEPLER = replace(catalog.gpu("V100 PCIe 16GB"), model="K80", architecture="Kepler")
MAXWELL = replace(catalog.gpu("V100 PCIe 16GB"), model="M60", architecture="Maxwell", cuda_last="12.x")


FACTS = catalog.software_facts()


def state(gpu, driver="580.95.05", cuda="12.8", kernel_module="open"):
    return NodeState(
        group="g", gpu=catalog.gpu(gpu) if isinstance(gpu, str) else gpu, driver=driver, cuda=cuda, kernel_module=kernel_module
    )


def ids(*given, **named):
    return {hit.id for hit in rules.check_node(state(*given, **named), FACTS) if hit.severity == "error"}


V100, T4, H100, B200 = "V100 SXM2 32GB", "T4", "H100 SXM5 80GB", "B200 180GB"


@pytest.mark.parametrize(
    ("rule", "hit", "miss"),
    [
        ("DRV-001", (V100, "595.71.05", "12.8", "proprietary"), (V100, "580.95.05", "12.8", "proprietary")),
        ("DRV-002", (KEPLER, "470.82.01", "11.4", "proprietary"), (V100, "470.82.01", "11.4", "proprietary")),
        ("DRV-003", (V100, "580.95.05", "12.8", "open"), (V100, "580.95.05", "12.8", "proprietary")),
        ("DRV-004", (B200, "580.95.05", "13.0", "proprietary"), (H100, "580.95.05", "13.0", "proprietary")),
        ("DRV-005", (H100, "620.10.01", "13.0", "proprietary"), (H100, "615.78.08", "13.0", "proprietary")),
        ("DRV-006", (T4, "570.211.01", "12.8", "open"), (T4, "575.51.03", "12.8", "open")),
        ("DRV-006", (T4, "570.211.01", "12.8", "open"), (T4, "570.211.01", "12.8", "proprietary")),
        ("DRV-007", (B200, "570.86.15", "12.8", "open"), (B200, "570.133.20", "12.8", "open")),
        ("DRV-007", (H100, "515.48.07", "11.8", "open"), (H100, "525.60.13", "11.8", "open")),  # only the branch is known
        ("CUD-001", (H100, "575.57.08", "13.0", "open"), (H100, "580.65.06", "13.2", "open")),
        ("CUD-001", (H100, "520.61.05", "12.0", "open"), (H100, "525.60.13", "12.9", "open")),
        ("CUD-002", (V100, "580.95.05", "13.0", "proprietary"), (V100, "580.95.05", "12.9", "proprietary")),
        ("CUD-002", (MAXWELL, "580.95.05", "13.0", "proprietary"), (T4, "580.95.05", "13.0", "proprietary")),
        ("CUD-003", (B200, "580.95.05", "12.6", "open"), (B200, "580.95.05", "12.8", "open")),
    ],
)
def test_each_rule_hits_and_misses(rule, hit, miss):
    assert rule in ids(*hit)
    assert rule not in ids(*miss)


def test_a_good_stack_breaks_nothing():
    for gpu in (H100, B200, T4, "RTX PRO 4500 Blackwell Server Edition"):
        assert ids(gpu, "580.142", "13.0", "open") == set()


def test_every_broken_rule_is_listed_with_the_severity_and_text_of_the_data():
    node = state(V100, "620.10.01", "13.0", "open")
    found = rules.check_node(node, FACTS)
    assert [hit.id for hit in found] == ["DRV-001", "DRV-003", "CUD-002"]
    for hit in found:
        rule = catalog.rule(hit.id)
        assert hit.severity == rule.severity and hit.message.endswith(rule.message) and hit.group == "g"
    softer = replace(catalog.rule("DRV-003"), severity="warning")
    again = rules.check_node(node, replace(FACTS, rules={**FACTS.rules, "DRV-003": softer}))
    assert [hit.severity for hit in again] == ["error", "warning", "error"]


def test_an_unknown_fact_breaks_no_rule():
    unknown = replace(catalog.gpu(B200), min_driver=None, min_driver_branch=None, cuda_first=None)
    assert ids(unknown, "450.80.02", "11.0", "open") == set()
    assert "CUD-001" not in ids(H100, "580.95.05", "99.0", "open")  # no such CUDA in the data


@pytest.mark.parametrize(
    ("older", "newer"),
    [("580.95.05", "580.105.08"), ("580.95.05", "580.142"), ("570.9", "570.26"), ("12.8", "12.8u1"), ("9.2", "10.0"), ("12.9u1", "13.0")],
)
def test_versions_are_compared_as_numbers(older, newer):
    assert rules.version(older) < rules.version(newer)


@pytest.mark.parametrize("text", ["", "580.", "580.x", "v580", "580-server", "12.8u"])
def test_what_is_not_a_version_is_refused(text):
    with pytest.raises(ValueError, match="is not a version"):
        rules.version(text)
