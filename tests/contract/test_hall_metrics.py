"""`ironburst hall metrics` against BMCs on the loopback: each is read once, a hung one holds nobody up."""

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ironburst.cli import main
from tests.contract.emulator import MACHINE, PASSWORD, serving

LAB = Path(__file__).parents[2] / "stacks/Pulumi.lab.yaml"
NODES = ("head", "dgx01", "dgx02")


@pytest.fixture
def hall(tmp_path):
    """(stack file, folder of each BMC)"""
    declared = yaml.safe_load(LAB.read_text())
    its = declared["config"]["ironburst:cluster"]["halls"][0]
    its["racks"][0]["power_kw"] = 30
    (tmp_path / "password").write_text(PASSWORD)
    folders = {name: tmp_path / name for name in NODES}
    with ExitStack() as stack:
        addresses = {}
        for name, folder in folders.items():
            folder.mkdir()
            bmc, _ = stack.enter_context(serving(folder, replace(MACHINE, name=name, serial=name)))
            addresses[name] = bmc.url
        for nodes in its["nodes"]:
            mine = [name for name in NODES if name.startswith(nodes["names"][:3])]
            nodes["bmc"] = {
                "addresses": [addresses[name] for name in mine],
                "username": "admin",
                "password": f"file:{tmp_path / 'password'}",
            }
        (tmp_path / "Pulumi.x.yaml").write_text(yaml.safe_dump(declared))
        yield tmp_path / "Pulumi.x.yaml", folders


def samples(text):
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def requests(folder):
    return [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]


def test_one_look_at_all(hall, tmp_path):
    stack, folders = hall
    assert main(["hall", "metrics", str(stack), "--textfile", str(tmp_path / "hall.prom")]) == 0
    said = samples((tmp_path / "hall.prom").read_text())
    assert said['ironburst_rack_power_watts{hall="hall-a",rack="r01"}'] == "9450"
    assert said['ironburst_rack_power_limit_watts{hall="hall-a",rack="r01"}'] == "30000"
    assert said['ironburst_node_inlet_celsius{hall="hall-a",rack="r01",node="dgx02"}'] == "24.5"
    assert (tmp_path / "hall.prom").stat().st_mode & 0o777 == 0o644
    for folder in folders.values():
        asked = requests(folder)
        paths = [each["path"] for each in asked if each["method"] == "GET" and each["path"] != "/redfish/v1"]
        assert len(paths) == len(set(paths)) and not any("/Systems" in path for path in paths)
        assert [each["method"] for each in asked].count("DELETE") == 1  # the session is closed


def test_a_hung_bmc_is_down_and_the_others_are_told(hall, capsys):
    stack, folders = hall
    (folders["dgx01"] / "faults.json").write_text(json.dumps({"dgx01": {"answer": "silent"}}))
    assert main(["hall", "metrics", str(stack), "--seconds", "2"]) == 0
    shown = capsys.readouterr()
    said = samples(shown.out)
    assert said['ironburst_bmc_up{hall="hall-a",rack="r01",node="dgx01"}'] == "0"
    assert said['ironburst_bmc_up{hall="hall-a",rack="r01",node="dgx02"}'] == "1"
    assert said['ironburst_rack_power_watts{hall="hall-a",rack="r01"}'] == "6300"
    assert said['ironburst_rack_power_unknown_nodes{hall="hall-a",rack="r01"}'] == "1"
    assert "dgx01: BMC" in shown.err


def test_alert_rules_are_printed(capsys):
    assert main(["hall", "metrics", "--alerts"]) == 0
    shown = capsys.readouterr()
    assert "ironburst-hall" in [group["name"] for group in yaml.safe_load(shown.out)["groups"]]
    assert "ironburst monitoring STACK_FILE --to FOLDER" in shown.err


def test_bad_input(hall, tmp_path, capsys):
    stack, _ = hall
    assert main(["hall", "metrics"]) == 2
    assert main(["hall", "metrics", str(stack), "--at-once", "0"]) == 2
    assert main(["hall", "metrics", str(stack), "--textfile", str(tmp_path / "no/hall.prom")]) == 2
    assert "no/hall.prom can't be written" in capsys.readouterr().err
