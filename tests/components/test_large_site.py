"""1,000 owned nodes through the pulumi CLI, which hands the configuration to the program in one environment string, of
which Linux takes 131,072 bytes.
"""

import json

import pytest
import yaml

from tests.components.projects import ROOT, done, project

NODES = 1000


@pytest.fixture
def declared():
    """The lab's hall with 1,000 GPU nodes, each with its own MAC address, serial and BMC; no cloud."""
    stack = yaml.safe_load((ROOT / "stacks" / "Pulumi.lab.yaml").read_text())
    cluster = stack["config"]["ironburst:cluster"]
    del cluster["cloud"], cluster["budget"], cluster["burst"]
    cluster["scheduler"]["munge_key"] = "env:TEST_MUNGE_KEY"
    (hall,) = cluster["halls"]
    head, one = hall["nodes"]
    for each in (head, one):
        for of_place in ("rack", "units", "height"):
            del each[of_place]
    del hall["racks"]
    hall["cidr"], hall["bmc_cidr"] = "10.78.0.0/21", "10.78.8.0/21"
    head["bmc"]["addresses"] = "https://10.78.8.10"
    nodes = []
    for number in range(256, 256 + NODES):
        where = f"{number >> 8}.{number & 255}"
        nodes.append(
            one
            | {
                "names": f"dgx{number:04}",
                "addresses": f"10.78.{where}",
                "macs": [f"52:54:00:4e:{number >> 8:02x}:{number & 255:02x}"],
                "serials": [f"LAB-DGX-SERIAL-{number:04}"],
                "bmc": one["bmc"] | {"addresses": f"https://10.78.{8 + (number >> 8)}.{number & 255}"},
            }
        )
    hall["nodes"] = [head, *nodes]
    return cluster


@pytest.mark.slow  # the CLI's own work grows with the square of the resources: minutes of processor
def test_a_preview_of_1000_owned_nodes(tmp_path, declared):
    run = project(tmp_path, "large", TEST_BMC_PASSWORD="x", TEST_MUNGE_KEY="a2V5")
    stacks = tmp_path / "project" / "stacks"
    stack = stacks / "Pulumi.large.yaml"
    stack.write_text(yaml.safe_dump({"config": {"ironburst:cluster": declared}}))
    done(run("stack", "init"))
    too_long = run("preview")
    assert too_long.returncode and "argument list too long" in too_long.stdout + too_long.stderr

    (stacks / "large.cluster.yaml").write_text(yaml.safe_dump(declared))
    stack.write_text(yaml.safe_dump({"config": {"ironburst:cluster": {"file": "large.cluster.yaml"}}}))
    plan = json.loads(done(run("preview", "--json")))
    created = [step["urn"] for step in plan["steps"] if "baremetal:index:Node" in step["urn"]]
    assert len(created) == NODES + 1
