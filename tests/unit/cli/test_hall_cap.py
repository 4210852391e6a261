"""`ironburst hall cap`, over a stand-in for ssh, on nodes with the lab's nvidia-smi: real programs, run here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ironburst.cli import hall_cap, main
from ironburst.convergence.ports import Connection
from ironburst.hall import cap
from tests.fakes import document
from tests.fakes.clock import FakeClock
from tests.fakes.gates import Gates
from tests.fakes.slurm import FakeSlurm

REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAM = "usr/local/sbin/ironburst-power-limit"
NODES = ["dgx01", "dgx02", "dgx03"]
SMI = """#!{python}
import sys
from pathlib import Path
sys.path.insert(0, {stubs!r})
import power

folder = Path({folder!r})
power.STATE = folder / "power.json"
changes = eval((folder / "changes").read_text())
chosen = sys.argv[sys.argv.index("-i") + 1] if "-i" in sys.argv else None
own = {{"pci.bus_id": "00000000:01:00.0", "persistence_mode": "Enabled"}} | changes
rows = [
    power.shown(n) | {{"index": str(n)}} | own
    for n in range(2)
    if chosen in (None, str(n))
]
if "-pl" in sys.argv:
    code, text = power.answer(sys.argv[1:], rows, root=True)
    print(text)
    sys.exit(code)
fields = next(a for a in sys.argv if a.startswith("--query-gpu=")).partition("=")[2].split(",")
print("\\n".join(", ".join(row[field] for field in fields) for row in rows))
"""
SSH = """#!{python}
import os, subprocess, sys
name = next(word for word in sys.argv if word in {nodes!r})
folder = {folder!r} + "/" + name
if os.path.exists(folder + "/dark"):
    sys.exit("ssh: connect to host " + name + ": No route to host")
begin, ask = "gather(json.loads('{{", '"root": "' + folder + '", '
text = sys.stdin.read()
assert text.count(begin) == 1
os.environ["PATH"] = folder + ":" + os.environ["PATH"]
sys.exit(subprocess.run(["sh", "-c", sys.argv[-1]], input=text.replace(begin, begin + ask).encode()).returncode)
"""


class Ansible:
    """Knows how to reach them, without a run."""

    def __init__(self, *_):
        pass

    def connections(self, hosts):
        return {name: Connection(name) for name in hosts}


class Hall:
    """Three machines with two H100: 6,000 W each, of that 2 x 700 W of GPUs; 1,000 W of switches."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        (folder / "power.py").write_text((REPOSITORY / "lab/packages/stubs/nvidia-smi-power.py").read_text())
        for name in NODES:
            place = folder / name
            place.mkdir()
            self.script(place / "nvidia-smi", SMI.format(python=sys.executable, folder=str(place), stubs=str(folder)))
            self.script(place / "systemctl", f'#!/bin/sh\necho "$@" >> {place}/systemctl.calls\n')
            (place / "changes").write_text("{}")
        (folder / "bin").mkdir()
        self.script(folder / "bin/ssh", SSH.format(python=sys.executable, folder=str(folder), nodes=NODES))
        monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
        monkeypatch.setenv("IRONBURST_DOCUMENT", str(folder / "document.json"))
        monkeypatch.setattr(hall_cap, "Ansible", Ansible)
        self.declare()

    def declare(self, halls=None, other_w=1000.0, **host):
        gates = Gates(FakeSlurm(FakeClock()), halls or {"hall-a": NODES})
        given = gates.document(document(), other_w=other_w).model_dump(mode="json")
        for each in given["hosts"]:
            each.update({"power_w": 6000.0, "gpu_w": 700.0, "gpu": {"model": "H100 SXM5 80GB", "count": 2}} | host)
        (self.folder / "document.json").write_text(json.dumps(given))

    @staticmethod
    def script(path, text):
        path.write_text(text)
        path.chmod(0o755)

    def limits(self, name):
        state = self.folder / name / "power.json"
        return sorted(set(json.loads(state.read_text()).values())) if state.exists() else []

    def file(self, name, path):
        return self.folder / name / path

    def declared(self, name, watts):
        """As role gpu_power_limit leaves a node."""
        for path, text in (
            ("etc/ironburst/power-limit", f"{watts}\n"),
            (
                "usr/local/sbin/ironburst-power-limit",
                hall_cap.ROLE.joinpath("files/ironburst-power-limit.py").read_text(),
            ),
        ):
            self.file(name, path).parent.mkdir(parents=True, exist_ok=True)
            self.file(name, path).write_text(text)


@pytest.fixture
def hall(tmp_path, monkeypatch):
    return Hall(tmp_path, monkeypatch)


def run(*words):
    return main(["hall", "cap", *words, "--inventory", str(REPOSITORY / "inventory/lab")])


REST = 6000 - 2 * 700
LEAST = 1000 + 3 * (REST + 2 * 200)


@pytest.mark.parametrize("watts", ["18000", "18kW", "18 kw", "18000W", "18.0kW"])
def test_how_watts_are_written(watts):
    assert hall_cap._watts(watts) == 18000


def test_a_cap_is_the_halls_the_same_for_each_gpu_and_back(hall, capsys):
    each = (18000 - 1000 - 3 * REST) // 6
    assert run("18kW") == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == f"hall-a: {1000 + 3 * (REST + 2 * each)} of 18000 W at most; 3 of its 3 nodes"
    assert f"dgx01: 2 GPUs, 700 W each, to {each} W" in said.out and said.err == ""
    assert [hall.limits(name) for name in NODES] == [[each]] * 3
    assert run("off") == 0 and [hall.limits(name) for name in NODES] == [[700]] * 3
    assert run("off") == 0  # of what isn't capped


@pytest.mark.parametrize("watts", ["0", "much", "", "28MW", "on"])
def test_what_is_no_number_of_watts_is_refused(hall, capsys, watts):
    assert run(watts) == 2
    assert f"WATTS {watts}: write what the hall may draw, as in 62000 or 62kW, or off" in capsys.readouterr().err


def test_less_than_the_least_is_refused_with_the_least_and_nothing_is_changed(hall, capsys):
    assert run(str(LEAST - 1)) == 2
    said = capsys.readouterr().err
    assert f"hall-a can't stay within {LEAST - 1} W" in said and f"give {LEAST} W or more" in said
    assert [hall.limits(name) for name in NODES] == [[]] * 3
    assert run(str(LEAST)) == 0 and hall.limits("dgx01") == [200]


def test_check_says_what_would_be_and_changes_nothing(hall, capsys):
    assert run("18kW", "--check") == 3 and "dgx03: 2 GPUs, 700 W each, to " in capsys.readouterr().out
    assert [hall.limits(name) for name in NODES] == [[]] * 3
    assert not hall.file("dgx01", "etc").exists() and not hall.file("dgx01", "systemctl.calls").exists()
    assert run("18kW") == 0 and run("18kW", "--check") == 0
    assert run("off", "--check") == 3 and hall.limits("dgx01") != [700]


def test_a_node_that_gives_no_answer_counts_with_its_most_is_named_and_the_rest_is_capped(hall, capsys):
    hall.file("dgx02", "dark").touch()
    assert run("18kW") == 4
    said = capsys.readouterr()
    each = (18000 - 1000 - 6000 - 2 * REST) // 4
    assert hall.limits("dgx01") == hall.limits("dgx03") == [each]
    assert "2 of its 3 nodes, 1 count with their most" in said.out
    assert "dgx02: not capped: ssh: connect to host dgx02: No route to host" in said.err
    assert run("off") == 4 and hall.limits("dgx01") == [700]
    hall.file("dgx02", "dark").unlink()
    hall.file("dgx01", "dark").touch()
    hall.file("dgx03", "dark").touch()
    assert run("17kW") == 4 and hall.limits("dgx02") == [200], "more than that it can't do"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"power.min_limit": "[N/A]", "power.max_limit": "[N/A]"}, "its GPUs have no power limit that can be set"),
        ({"persistence_mode": "Disabled"}, "persistence mode is off on GPU 0, 1"),
    ],
)
def test_a_node_whose_gpus_take_no_limit_is_named(hall, capsys, changes, words):
    hall.file("dgx02", "changes").write_text(repr(changes))
    assert run("18kW") == 4
    said = capsys.readouterr().err
    assert f"dgx02: not capped: {words}" in said and hall.limits("dgx01") != [] and hall.limits("dgx02") == []
    assert ("W more than that, for not all took it" in said) == ("persistence" in words)


def test_gpus_of_another_range_give_what_they_can_and_the_others_more(hall):
    hall.file("dgx03", "changes").write_text(repr({"power.min_limit": "500.00 W"}))
    assert run(str(1000 + 3 * REST + 2 * (500 + 300 + 300))) == 0
    assert [hall.limits(name) for name in NODES] == [[300], [300], [500]]


def test_the_declared_limit_is_never_exceeded_and_comes_back(hall):
    hall.declared("dgx01", 500)
    assert run("19kW") == 0 and hall.limits("dgx01") == [500] and hall.limits("dgx02") == []  # its own
    assert run("17kW") == 0 and max(hall.limits("dgx01")) < 500
    assert run("off") == 0 and hall.limits("dgx01") == [500] and hall.limits("dgx02") == [700]
    assert hall.file("dgx01", PROGRAM).exists(), "it is the role's"
    assert not hall.file("dgx02", PROGRAM).exists()


def test_the_role_keeps_a_cap_and_so_does_a_boot(hall):
    """A converge asks --check, and its unit runs the program at a boot: the GPUs begin with their own limit then."""
    hall.declared("dgx01", 650)
    assert run("17kW") == 0
    (each,) = map(int, hall.limits("dgx01"))
    hall.file("dgx01", "power.json").unlink()
    environment = os.environ | {"PATH": f"{hall.folder}/dgx01:{os.environ['PATH']}"}

    def as_the_unit(*more):
        limit = str(hall.file("dgx01", "etc/ironburst/power-limit"))
        words = [sys.executable, str(hall.file("dgx01", PROGRAM)), "--limit", limit, *more]
        return subprocess.run(words, env=environment, capture_output=True, text=True)

    assert as_the_unit("--check").returncode == 3 and as_the_unit().returncode == 0
    assert hall.limits("dgx01") == [each]
    kept = as_the_unit("--check")
    assert (kept.returncode, kept.stdout) == (0, f"the hall's cap, {each} W\n")
    calls = hall.file("dgx02", "systemctl.calls").read_text().splitlines()
    assert calls == ["daemon-reload", "enable ironburst-power-limit.service"]  # dgx02 has no such role
    assert "[Install]" in hall.file("dgx02", "etc/systemd/system/ironburst-power-limit.service").read_text()


def test_a_cap_that_could_not_be_taken_off_is_not_forgotten(hall, capsys):
    assert run("17kW") == 0
    hall.file("dgx02", "changes").write_text(repr({"persistence_mode": "Disabled"}))
    assert run("off") == 4 and "dgx02: not given back: persistence mode is off" in capsys.readouterr().err
    hall.file("dgx02", "changes").write_text("{}")
    assert run("off") == 0 and hall.limits("dgx02") == [700]


def test_which_hall(hall, capsys):
    hall.declare({"hall-a": NODES[:2], "hall-b": NODES[2:]})
    assert run("17kW") == 2 and "--hall: name one of hall-a, hall-b" in capsys.readouterr().err
    assert run("17kW", "--hall", "hall-c") == 2
    assert run("6500", "--hall", "hall-b") == 0 and hall.limits("dgx03") and not hall.limits("dgx01")


def test_what_nobody_declares_is_said(hall, capsys):
    hall.declare(other_w=None, power_w=None, gpu_w=None)
    assert run(str(6 * 400)) == 0 and hall.limits("dgx01") == [400]
    said = capsys.readouterr().err
    assert "nobody declares the nodes' power: dgx01, dgx02, dgx03" in said and "switches, heads and others" in said


@pytest.mark.parametrize("watts", range(LEAST, 32000, 977))
def test_no_sum_is_above_what_was_asked_and_one_watt_more_of_each_would_be(watts):
    machines = {f"n{n}": cap.CappedNode(8, 200 + 50 * n, 700, REST) for n in range(3)}
    try:
        limits = cap.limits(watts, machines, 1000)
    except cap.Unreachable as error:
        assert watts < error.least_w == 1000 + 3 * REST + 8 * (200 + 250 + 300)
        return
    total = 1000 + sum(machines[name].draws(each) for name, each in limits.items())
    assert total <= watts
    assert all(each == 700 for each in limits.values()) or total + 8 * 3 > watts
