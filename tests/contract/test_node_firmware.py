"""`ironburst node firmware` on a stack file, against the lab's BMC emulators: two nodes, and one BMC that hangs."""

import copy
import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ironburst import cli
from ironburst.adapters.redfish import client as redfish
from ironburst.baremetal.node import NodeInputs
from ironburst.wiring import owned_nodes
from lab.bmc import Fault, write_fault
from tests.contract.emulator import MACHINE, PASSWORD, serving

LAB = yaml.safe_load((Path(__file__).parents[2] / "stacks/Pulumi.lab.yaml").read_text())
LEAST = {"component": "BIOS", "at_least": "1.2", "source": "advisory 7", "as_of": "2026-10-01"}


class Site:
    def __init__(self, folder, bmcs, capsys):
        self.folder, self.bmcs, self.capsys = folder, bmcs, capsys
        self.stack = folder / "Pulumi.x.yaml"

    def declare(self, *minimums):
        value = copy.deepcopy(LAB)
        hall = value["config"]["ironburst:cluster"]["halls"][0]
        hall["bmc_cidr"] = "127.0.0.0/24"
        head, dgx = hall["nodes"]
        head.pop("bmc")
        dgx["bmc"] = {"addresses": [each.url for each in self.bmcs], "username": "admin"}
        dgx["bmc"]["password"] = "env:LAB_BMC_PASSWORD"
        dgx["firmware"] = list(minimums)
        self.stack.write_text(yaml.safe_dump(value))

    def run(self, *words):
        code = cli.main(["node", "firmware", str(self.stack), *words])
        out, err = self.capsys.readouterr()
        return code, out.strip(), err.strip()


@pytest.fixture
def site(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LAB_BMC_PASSWORD", PASSWORD)
    with ExitStack() as running:
        bmcs = []
        for name, version in (("dgx01", "1.0"), ("dgx02", "1.10")):
            folder = tmp_path / name
            folder.mkdir()
            machine = replace(MACHINE, name=name, bios_version=version)
            bmcs.append(running.enter_context(serving(folder, machine))[0])
        yield Site(tmp_path, bmcs, capsys)


def test_each_node_beside_its_minimum(site):
    site.declare(LEAST)
    code, out, _ = site.run()
    least = "at least 1.2 is declared (advisory 7, 2026-10-01)"
    assert code == 4 and out.splitlines() == [
        "dgx01:",
        f"  below          firmware of BIOS is 1.0: {least}",
        "dgx02:",
        f"  reached        firmware of BIOS is 1.10: {least}",
    ]
    assert site.run("dgx02")[0] == 0


def test_json_has_what_else_is_installed(site):
    site.declare(LEAST | {"component": "BMC"})
    code, out, _ = site.run("dgx02", "--json")
    (told,) = json.loads(out)
    assert code == 4 and told["minimums"][0]["verdict"] == "not comparable"
    assert told["installed"]["BIOS"] == "1.10" and told["installed"]["GPU8"] == "96.00.5E.00.01"


def test_a_bmc_that_hangs_stops_nobody_else(site, monkeypatch):
    site.declare(LEAST)
    write_fault(site.folder / "dgx01/faults.json", "dgx01", Fault(answer="silent"))
    access = owned_nodes.access

    def impatient(node):  # with the one that hangs alone: the other may be slow on a busy machine
        its = access(node)
        return replace(its, timeout_s=0.5) if its.node == "dgx01" else its

    monkeypatch.setattr(owned_nodes, "access", impatient)
    code, out, err = site.run()
    assert code == 3 and "dgx01: not read" in out and "reached        firmware of BIOS is 1.10" in out
    assert "does not answer within" in err


def test_a_node_that_nobody_declared(site):
    site.declare()
    code, _, err = site.run("dgx09")
    assert code == 2 and "'dgx09' is no managed node with a bmc" in err and "dgx01, dgx02" in err
    code, out, _ = site.run("dgx01")
    assert code == 0 and "dgx01: no minimum is declared" in out and "BIOS: 1.0" in out


def test_the_same_list_as_everything_else_that_is_verified(site):
    """`pulumi up` and `node show` refuse by it; `allow` names it."""
    site.declare(LEAST)
    assert cli.main(["node", "show", "dgx01", str(site.stack)]) == 4
    assert "firmware of BIOS is 1.0" in site.capsys.readouterr().out
    given = owned_nodes.one(site.stack, "dgx01")
    assert isinstance(given, NodeInputs) and given.firmware[0].at_least == "1.2"
    assert redfish.access_of(given, "x").node == "dgx01"


def test_the_driver_of_the_lock_is_held_against_the_gpus_that_are_there(site):
    site.declare()
    lock = site.stack.with_name("x.lock.yaml")
    text = (Path(__file__).parents[2] / "stacks/lab.lock.yaml").read_text()
    lock.write_text(text)
    assert owned_nodes.one(site.stack, "dgx01").driver == "580.95.05"
    assert cli.main(["node", "show", "dgx01", str(site.stack)]) == 0
    site.capsys.readouterr()
    lock.write_text(text.replace("driver: 580.95.05", "driver: 470.256.02"))
    assert cli.main(["node", "show", "dgx01", str(site.stack)]) == 4
    said = "the lock has driver 470.256.02 for it, NVIDIA H100 80GB HBM3 needs branch 525 at least (gpu_driver)"
    assert said in site.capsys.readouterr().out
    lock.write_text("version: 1")
    assert cli.main(["node", "show", "dgx01", str(site.stack)]) == 2
    assert "names no groups; restore it" in site.capsys.readouterr().err
