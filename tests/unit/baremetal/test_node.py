"""The inputs of baremetal:index:Node: what is refused, in which words, and what drift looks like."""

from pathlib import Path

import pytest

from ironburst.baremetal import node
from ironburst.baremetal.verify import Mismatch

GOOD = {
    "name": "dgx01",
    "bmcAddress": "http://10.78.8.11",
    "bmcUsername": "admin",
    "passwordRef": "env:BMC_PASSWORD",
    "serial": "LAB-DGX01",
    "macs": ["52:54:00:4e:00:0b"],
    "gpuModel": "H100 SXM5 80GB",
    "gpuCount": 8,
}


def test_good_inputs_pass():
    assert node.check(GOOD, set()) == []


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"gpuCuont": 8}, "gpuCuont", "gpuCuont is not an input of baremetal:index:Node: did you mean gpuCount?"),
        ({"zzz": 8}, "zzz", "zzz is not an input of baremetal:index:Node: it has name, bmcAddress"),
        ({"name": ""}, "name", "name should have at least 1 character"),
        ({"bmcAddress": "10.78.8.11"}, "bmcAddress", "bmcAddress must be the URL of a BMC"),
        (
            {"bmcAddress": "http://10.78.8.11/redfish/v1"},
            "bmcAddress",
            "bmcAddress must be the URL of a BMC without a path",
        ),
        (
            {"macs": ["52:54:00:4e:00"]},
            "macs[0]",
            'macs[0] must be a MAC address such as 52:54:00:4e:00:0b (given: "52:54:00:4e:00")',
        ),
        ({"gpuModel": "H100 SXM5 80 GB"}, "gpuModel", "did you mean 'H100 SXM5 80GB'?"),
        ({"gpuCount": -1}, "gpuCount", "gpuCount should be greater than or equal to 0 (given: -1)"),
        ({"gpuCount": 7.5}, "gpuCount", "(given: 7.5)"),
        ({"gpuCount": 0}, "", "gpuModel needs a gpuCount of 1 or more"),
        ({"verifyTls": "no"}, "verifyTls", 'verifyTls should be a valid boolean (given: "no")'),
        ({"certificateSha256": "AB:CD"}, "certificateSha256", "must be the SHA-256 of a certificate"),
        ({"timeoutSeconds": 0}, "timeoutSeconds", "timeoutSeconds should be greater than 0 (given: 0)"),
    ],
)
def test_bad_inputs_are_named(change, path, words):
    ((where, sentence),) = node.check(GOOD | change, set())
    assert where == path and words in sentence


def test_all_faults_are_listed():
    without_name = {key: value for key, value in GOOD.items() if key != "name"}
    faults = node.check(without_name | {"macs": ["x", "52:54:00:4e:00:0b", "y"], "rack": "r01"}, set())
    assert sorted(path for path, _ in faults) == ["macs[0]", "macs[2]", "name", "rack"]


def test_what_may_be_a_password_is_not_repeated():
    faults = node.check(GOOD | {"passwordRef": "hunter2", "bmcAddress": "http://admin:hunter2@10.78.8.11"}, set())
    assert sorted(path for path, _ in faults) == ["bmcAddress", "passwordRef"]
    assert "hunter2" not in str(faults)


def test_unknown_values_of_a_preview_are_not_faults():
    inputs = {key: value for key, value in GOOD.items() if key not in ("name", "gpuCount")}
    assert node.check(inputs, {"name", "gpuCount"}) == []


def test_drift_changes_only_what_differs():
    mismatches = [Mismatch("gpu_count", 7, ""), Mismatch("macs", ("52:54:00:4e:00:0c",), "")]
    changed = node.observed_inputs(GOOD, mismatches)
    assert changed == GOOD | {"gpuCount": 7, "macs": ["52:54:00:4e:00:0c"]}


def test_the_schema_lists_every_input():
    resource = node.schema()["resources"][node.TOKEN]
    assert set(resource["inputProperties"]) == set(node.INPUTS)
    assert resource["requiredInputs"] == ["name", "bmcAddress", "bmcUsername", "passwordRef"]
    assert resource["inputProperties"]["macs"]["type"] == "array"
    assert resource["inputProperties"]["gpuCount"]["type"] == "integer"
    assert set(node.OBSERVED_OUTPUTS) <= set(resource["properties"])


def test_the_readme_names_every_input_and_output():
    text = (Path(__file__).parents[3] / "providers/baremetal/README.md").read_text()
    missing = [name for name in (*node.INPUTS, *node.OBSERVED_OUTPUTS) if f"| `{name}`" not in text]
    assert missing == []
