"""What may be written of a BIOS, and what is said of the rest."""

import copy
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from ironburst.baremetal import declared
from ironburst.config import load
from ironburst.config.checks import check
from ironburst.config.finding import ConfigError

LAB = yaml.safe_load((Path(__file__).parents[3] / "stacks/Pulumi.lab.yaml").read_text())["config"]["ironburst:cluster"]
GOOD = {"ProcVirtualization": "Enabled", "NumaNodes": 4, "QuietBoot": False, "AssetName": ""}


def site(**nodes):
    value = copy.deepcopy(LAB)
    dgx = value["halls"][0]["nodes"][1] | nodes
    value["halls"][0]["nodes"][1] = {key: given for key, given in dgx.items() if given is not None}
    return value


def said(**nodes):
    """Every finding of a BIOS."""
    try:
        config = load.from_value(site(**nodes))
    except ConfigError as error:
        return error.findings
    return [each for each in check(config, datetime(2026, 11, 25, tzinfo=UTC)) if each.rule == "bios"]


def test_good_ones_reach_the_provider_as_they_are():
    assert said(bios=GOOD) == [] == said(bios=GOOD, allow_bios="dgx[01-02]") == said()
    nodes = load.from_value(site(bios=GOOD)).halls[0].nodes[1]
    assert [each["bios"] for each in declared.node_inputs(nodes)] == [GOOD, GOOD]
    assert "bios" not in declared.node_inputs(load.from_value(site()).halls[0].nodes[1])[0]


@pytest.mark.parametrize(
    ("nodes", "path", "words"),
    [
        ({"bios": {"NumaNodes": 4.5}}, "bios", "NumaNodes with a value that no setting has"),
        ({"bios": {"NumaNodes": None}}, "bios", "NumaNodes with a value that no setting has"),
        ({"bios": {"NumaNodes": [1]}}, "bios", "NumaNodes with a value that no setting has"),
        ({"bios": {"": 1}}, "bios", "can't be a setting"),
        ({"bios": {7: 1}}, "bios", "can't be a setting"),
        ({"bios": {"AssetName": "a\nb"}}, "bios", "AssetName with a text that no setting has"),
        ({"bios": ["NumaNodes"]}, "bios", "is no section"),
        ({"bios": GOOD, "allow_bios": ["dgx09"]}, "allow_bios", "'dgx09' is none of these nodes: dgx01, dgx02"),
        ({"allow_bios": ["dgx01"]}, "allow_bios", "without a setting"),
        ({"bios": GOOD, "bmc": None}, "bmc", "is needed for the settings in bios"),
    ],
)
def test_what_is_refused(nodes, path, words):
    (finding,) = said(**nodes)
    assert finding.path.split("nodes[1].")[-1] == path and words in finding.message


@pytest.mark.parametrize("name", ["SetupPassword", "SysPwd", "AdminPasswd", "SHA256SetupPasswordSalt"])
def test_a_password_is_refused_and_not_repeated(name):
    (finding,) = said(bios={name: "hunter2", "NumaNodes": 4})
    assert f"has {name}: passwords" in finding.message and "hunter2" not in json.dumps(finding.as_json())
    assert not said(bios={"PasswordStatus": "Locked"})
