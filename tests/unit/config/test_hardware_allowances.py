"""`allow` of rule hardware: of a node that a BMC is asked about, and of a mismatch that there is."""

import pytest

from ironburst.config import load
from tests.unit.config.test_checks import findings


def allowed(declared, of):
    reasons = {"reason": "PSU ordered", "by": "ops", "until": "2026-12-01"}
    declared["allow"] = [{"rule": "hardware", "of": of, **reasons}]
    return [finding.message for finding in findings(declared)]


def test_a_mismatch_of_an_owned_node_can_be_allowed(declared):
    assert allowed(declared, "dgx01/psu_redundancy") == []


@pytest.mark.parametrize(
    ("of", "words"),
    [
        ("dgx01", "is not NODE/MISMATCH, as in dgx07/psu_redundancy; mismatches are serial, uuid"),
        ("dgx01/psu", "is not NODE/MISMATCH"),
        ("dgx99/psu_input", "is of 'dgx99', which is no owned node with a bmc"),
        (None, "says not of what"),
    ],
)
def test_anything_else_is_refused(declared, of, words):
    (message,) = allowed(declared, of)
    assert words in message


def test_a_date_is_needed(declared):
    declared["allow"] = [{"rule": "hardware", "of": "dgx01/psu_input", "reason": "r", "by": "b"}]
    with pytest.raises(load.ConfigError):
        load.from_value(declared)
