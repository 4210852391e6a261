"""`ironburst hall power on` after a black-out: in the planned order, and one dead BMC holds up nobody."""

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ironburst.cli import hall_power, main
from tests.contract.emulator import MACHINE, PASSWORD, MemoryPower, serving

LAB = Path(__file__).parents[2] / "stacks/Pulumi.lab.yaml"
NODES = ("head", "dgx01", "dgx02")


class Hall:
    def __init__(self, folder):
        self.stack, self.order, self.bmcs, self.power = folder / "Pulumi.x.yaml", [], {}, {}
        self.declared = yaml.safe_load(LAB.read_text())

    def write(self, **more):
        self.declared["config"]["ironburst:cluster"] |= more
        self.stack.write_text(yaml.safe_dump(self.declared))

    def on(self):
        code = main(["hall", "power", "on", str(self.stack)])
        for bmc in self.bmcs.values():
            for thread in bmc.resets:
                thread.join(5)
        return code


@pytest.fixture
def hall(tmp_path, monkeypatch):
    made = Hall(tmp_path)
    (tmp_path / "password").write_text(PASSWORD)
    with ExitStack() as stack:
        for name in NODES:
            (tmp_path / name).mkdir()
            made.power[name] = MemoryPower(on=False)
            machine = replace(MACHINE, name=name, serial=name)
            made.bmcs[name] = stack.enter_context(serving(tmp_path / name, machine, made.power[name]))[0]
        for nodes in made.declared["config"]["ironburst:cluster"]["halls"][0]["nodes"]:
            mine = [name for name in NODES if name.startswith(nodes["names"][:3])]
            urls = [made.bmcs[name].url for name in mine]
            nodes["bmc"] = {"addresses": urls, "username": "admin", "password": f"file:{tmp_path / 'password'}"}
        made.write()

        def waited(seconds):
            for bmc in made.bmcs.values():
                for thread in bmc.resets:
                    thread.join(5)
            made.order.append((seconds, sorted(name for name in NODES if made.power[name].on)))

        monkeypatch.setattr(hall_power.time, "sleep", waited)
        yield made


def test_the_head_first_and_one_node_of_a_rack_at_a_time(hall, capsys):
    assert hall.on() == 0 and all(each.on for each in hall.power.values())
    gap = hall.order[0][0]
    assert gap > 0 and [on for _, on in hall.order if _ == gap] == [["head"], ["dgx01", "head"]]
    hall.order.clear()
    assert hall.on() == 0 and not hall.order  # all are on: nobody waits
    assert "dgx02: was on, is on" in capsys.readouterr().out


def test_a_dead_bmc_and_a_node_that_a_person_works_on(hall, tmp_path, capsys):
    allow = {"rule": "hardware", "of": "dgx01/maintenance", "reason": "r", "by": "b", "until": "2999-12-31"}
    hall.write(allow=[allow])
    (tmp_path / "head/faults.json").write_text(json.dumps({"head": {"answer": "unavailable", "path": "Systems"}}))
    assert hall.on() == 3
    out, err = capsys.readouterr()
    assert {name for name in NODES if hall.power[name].on} == {"dgx02"}
    assert "head: not switched on" in out and "dgx01: left as it is: in maintenance" in err
