"""A whole stress test: the real program on each node, a stand-in for ib_write_bw (tests/fakes/perftest.py says what the
real one refuses), and a scheduler that knows what runs where. Nodes are addresses of the loopback.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from ironburst.convergence.drains import reason
from ironburst.convergence.model import Options
from ironburst.convergence.ports import Answer, Connection
from ironburst.convergence.rolling import MaxUnavailable
from ironburst.document.hall_model import FabricCable, HallDocument
from ironburst.fabric import judge, measure_host, stress
from ironburst.fabric.stress import Plan, Stress, cables, lines
from ironburst.ports.service import Occupancy, SchedulerError
from ironburst.system import sent_program
from lab.system import wait_for
from tests.playbooks import sample

FAKE = Path(__file__).parents[2] / "fakes" / "perftest.py"
NODES = ("n1", "n2", "n3", "n4")
ALL = MaxUnavailable(None, 1.0)


def address(name):
    return f"127.8.0.{name[1:]}"


def document():
    built = sample.lab_document()
    head = next(host for host in built.hosts if host.role == "head")
    node = next(host for host in built.hosts if host.partition == "home")
    nodes = [node.model_copy(update={"name": name, "address": address(name)}) for name in NODES]
    ends = [[f"leaf{rail}/{name[1:]}", f"{name}/ib{rail}"] for name in NODES for rail in (1, 2)]
    hall = HallDocument(cables=[FabricCable(ends=each, gbps=400.0, what="NDR dac 3 m") for each in ends])
    return built.model_copy(update={"hosts": [head, *nodes], "halls": {node.hall: hall}})


@dataclass
class Site:
    """Nodes with two cards each, and a Slurm."""

    folder: Path
    world: dict = field(default_factory=dict)
    states: dict = field(default_factory=lambda: {name: {"IDLE"} for name in NODES})
    reasons: dict = field(default_factory=dict)
    jobs: dict = field(default_factory=dict)
    dark: set = field(default_factory=set)
    deaf: bool = False
    calls: list = field(default_factory=list)
    said: list = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self):
        (self.folder / "bin").mkdir()
        script = f'#!/bin/sh\nexec {sys.executable} -I -S {FAKE} "$@"\n'
        (self.folder / "bin/ib_write_bw").write_text(script)
        (self.folder / "bin/ib_write_bw").chmod(0o755)
        devices = {address(name): ["mlx5_0", "mlx5_1"] for name in NODES}
        self.world = {"devices": devices, "gbps": {}, "else": 390.0} | self.world
        for name in NODES:
            self.cards(name, mlx5_0="400 Gb/sec (4X NDR)", mlx5_1="400 Gb/sec (4X NDR)")

    def cards(self, name, **rates):
        for device, rate in rates.items():
            port = self.folder / name / "sys/class/infiniband" / device / "ports/1"
            port.mkdir(parents=True, exist_ok=True)
            for file, text in (("rate", rate), ("state", "4: ACTIVE"), ("link_layer", "InfiniBand")):
                (port / file).write_text(text + "\n")

    # Slurm
    def occupancy(self):
        if self.deaf:
            raise SchedulerError("Unable to contact slurm controller")
        return {
            name: Occupancy(
                name, ("home",), frozenset(states), self.reasons.get(name, ""), jobs=self.jobs.get(name, ())
            )
            for name, states in self.states.items()
        }

    def drain(self, nodes, why):
        self.calls.append(("drain", tuple(nodes)))
        for name in nodes:
            self.states[name] = self.states[name] | {"DRAIN"}
            self.reasons[name] = why

    def resume(self, nodes):
        self.calls.append(("resume", tuple(nodes)))
        for name in nodes:
            self.states[name] = self.states[name] - {"DRAIN"}
            self.reasons[name] = ""

    # the nodes
    def ask(self, programs):
        (self.folder / "world.json").write_text(json.dumps(self.world))
        started = {}
        try:
            for name, program in programs.items():
                if name not in self.dark:
                    started[name] = self.start(name, program.text)
            for name, process in started.items():
                self.during(name, process)
            answers = {name: process.communicate(timeout=60) for name, process in started.items()}
        finally:
            for process in started.values():  # as ssh ends, the program there goes on
                process.stdin.close()
        return {
            name: Answer(answers[name][0], None if not started[name].returncode else answers[name][1][-200:])
            if name in answers
            else Answer(error="no route to host")
            for name in programs
        }

    def start(self, name, text):
        question = json.loads(json.loads(json.dumps(text.rsplit("json.loads('", 1)[1].split("'))) + ")[0])))
        text = sent_program.text(measure_host, question | {"root": str(self.folder / name)})
        environment = {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "PERFTEST": str(self.folder / "world.json"),
            "ADDRESS": address(name),
        }
        pipe = subprocess.PIPE
        argv = [sys.executable, "-I", "-S", "-"]
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)
        process.stdin.write(text)
        process.stdin.flush()
        process.stdin.close()
        process.stdin = Path(os.devnull).open()  # noqa: SIM115 - communicate() flushes it
        return process

    def during(self, name, process):
        """What happens while a program runs."""

    def connections(self, hosts):
        return {name: Connection(name) for name in hosts}

    def stress(self, plan=None, accepted=None, share=ALL, wait_s=0.0, hosts=NODES):
        def pause(seconds):
            self.now += seconds
            for name in list(self.jobs):
                del self.jobs[name]
                self.states[name] -= {"ALLOCATED"}

        tools = SimpleNamespace(
            playbooks=self,
            ask=self.ask,
            service=lambda connection: self,
            say=self.said.append,
            clock=lambda: self.now,
            pause=pause,
        )
        options = Options(share=share, drain_timeout=wait_s)
        return Stress(document(), hosts, tools, options, plan or Plan(seconds=1), accepted or {})


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def free(site):
    """Nobody is drained any more, and nothing measures."""
    return all("DRAIN" not in states for states in site.states.values()) and not tools()


def tools():
    """Processes of ib_write_bw."""
    return subprocess.run(["pgrep", "-f", str(FAKE)], capture_output=True, text=True).stdout.split()


def test_all_pairs_and_a_ring_rail_by_rail(site):
    site.world["late_s"] = 0.3
    outcome = site.stress().run()
    assert len(outcome.measured) == 2 * (6 + 4) and {each.gbps for each in outcome.measured} == {390.0}
    assert {(each.sender.device, each.receiver.device) for each in outcome.measured} == {
        ("mlx5_0", "mlx5_0"),
        ("mlx5_1", "mlx5_1"),
    }
    assert site.calls == [("drain", NODES), ("resume", NODES)] and free(site)
    assert lines(outcome, [], {}) == ["pairs: 12 measured, 390 to 390 Gb/s", "ring: 8 measured, 390 to 390 Gb/s"]


def test_the_slow_port_is_named_with_its_cable(site):
    for other in NODES:
        ends = f"{address('n3')} mlx5_1", f"{address(other)} mlx5_1"
        site.world["gbps"] |= {" to ".join(ends): 190.0, " to ".join(reversed(ends)): 190.0}
    outcome = site.stress(Plan(tests=("pairs",), seconds=1)).run()
    below = judge.slow(outcome.measured, {})
    said = lines(outcome, below, cables(document()))
    assert said[1] == "suspect: n3 mlx5_1 (leaf2/3 - n3/ib2, NDR dac 3 m): 3 of its 3 measurements are too slow"
    assert len(below) == 3 and all("n3 mlx5_1" in line for line in said[2:])


def test_what_is_slow_is_measured_again_alone(site):
    """Two routes shared a cable for a moment: alone the pair is as fast as the others."""
    slow = f"{address('n1')} mlx5_0 to {address('n2')} mlx5_0"
    site.world["gbps"][slow] = 150.0
    rounds = []

    def ask(programs, real=site.ask):
        rounds.append(len(programs))
        if len(programs) == 2 and len(rounds) > 4:
            site.world["gbps"] = {}
        return real(programs)

    site.ask = ask
    outcome = site.stress(Plan(tests=("pairs",), rails=(1,), seconds=1)).run()
    assert judge.slow(outcome.measured, {}) == [] and {each.gbps for each in outcome.measured} == {390.0}
    assert rounds == [4, 4, 4, 4, 2, 4]  # look, three rounds, once more, the end


def test_only_nodes_that_are_surely_idle_are_taken(site):
    site.jobs["n1"] = (4711,)
    site.states["n1"] = {"ALLOCATED"}
    site.states["n2"] = {"IDLE", "NOT_RESPONDING", "DOWN"}
    outcome = site.stress().run()
    assert outcome.left_out["n1"] == "runs 4711" and outcome.left_out["n2"].startswith("the scheduler says")
    assert outcome.nodes == ["n3", "n4"] and {each.test for each in outcome.measured} == {"pairs"}
    assert ("drain", ("n3", "n4")) in site.calls and free(site)
    test = site.stress()
    test._hosts[3] = test._hosts[3].model_copy(update={"roles": ["base"]})
    assert test.run().left_out["n4"].startswith("it is no node of a scheduler")
    del site.states["n3"]
    assert "no scheduler lists it" in site.stress().run().left_out["n3"]


def test_one_idle_node_is_not_drained_for_nothing(site):
    for name in NODES[1:]:
        site.jobs[name], site.states[name] = (1,), {"ALLOCATED"}
    assert site.stress().run().measured == [] and site.calls == []


def test_busy_nodes_are_waited_for_where_that_is_wanted(site):
    site.jobs["n1"], site.states["n1"] = (4711,), {"ALLOCATED"}
    outcome = site.stress(Plan(tests=("ring",), rails=(2,), seconds=1, wait=True), wait_s=100).run()
    assert outcome.nodes == list(NODES) and len(outcome.measured) == 4 and free(site)


def test_a_share_stays_in_service(site):
    outcome = site.stress(share=MaxUnavailable(None, 0.5)).run()
    assert outcome.nodes == ["n1", "n2"] and set(outcome.left_out) == {"n3", "n4"}


def test_somebody_elses_drain_stays(site):
    site.states["n2"], site.reasons["n2"] = {"IDLE", "DRAIN"}, "bad fan"
    assert site.stress(Plan(tests=("ring",), seconds=1)).run().nodes == list(NODES)
    assert site.states["n2"] == {"IDLE", "DRAIN"} and site.reasons["n2"] == "bad fan"


def test_what_a_killed_test_left_drained_is_given_back_by_the_next(site):
    site.states["n2"], site.reasons["n2"] = {"IDLE", "DRAIN"}, reason("fabric stress")
    site.stress(Plan(tests=("ring",), rails=(1,), seconds=1)).run()
    assert free(site)


def test_a_node_without_cards_or_program_is_left_out_and_given_back(site):
    port = site.folder / "n2/sys/class/infiniband"
    for device in ("mlx5_0", "mlx5_1"):
        (port / device / "ports/1/state").write_text("1: DOWN\n")
    outcome = site.stress(Plan(tests=("pairs",), seconds=1)).run()
    assert outcome.left_out == {"n2": "it has no active InfiniBand port"} and len(outcome.measured) == 6 and free(site)
    (site.folder / "bin/ib_write_bw").unlink()
    outcome = site.stress().run()
    assert "ib_write_bw is not installed (package perftest)" in outcome.left_out["n1"] and free(site)


def test_faults_of_a_pair_are_told_in_the_tools_words(site, monkeypatch):
    monkeypatch.setattr(stress, "SPARE_S", 15.0)
    monkeypatch.setattr(stress, "AGAIN", 0)
    one = {f"{address(a)} mlx5_0 to {address(b)} mlx5_0" for a, b in (("n1", "n2"), ("n2", "n1"))}
    two = {f"{address(a)} mlx5_0 to {address(b)} mlx5_0" for a, b in (("n3", "n4"), ("n4", "n3"))}
    site.world["gbps"] = dict.fromkeys(one, "broken") | dict.fromkeys(two, "hangs")
    outcome = site.stress(Plan(tests=("pairs",), rails=(1,), seconds=1)).run()
    errors = {frozenset((each.sender.node, each.receiver.node)): each.error for each in outcome.measured if each.error}
    assert "Failed status 12" in errors.pop(frozenset(("n1", "n2")))
    assert "did not end in time" in errors.pop(frozenset(("n3", "n4"))) and errors == {} and free(site)


def test_a_node_that_is_lost_costs_only_its_pairs_and_stays_drained(site, monkeypatch):
    monkeypatch.setattr(stress, "SPARE_S", 15.0)
    asked = []

    def ask(programs, real=site.ask):
        asked.append(programs)
        if len(asked) == 3:
            site.dark.add("n4")
        return real(programs)

    site.ask = ask
    outcome = site.stress(Plan(tests=("pairs",), rails=(1,), seconds=1)).run()
    assert set(outcome.lost) == {"n4"} and set(outcome.kept) == {"n4"}
    assert site.states["n4"] == {"IDLE", "DRAIN"} and "did not answer after the fabric stress" in site.reasons["n4"]
    assert all("DRAIN" not in site.states[name] for name in NODES[:3])
    good = [each for each in outcome.measured if each.gbps]
    assert len(good) >= 4 and all(each.error for each in outcome.measured if not each.gbps)


def test_ctrl_c_ends_what_measures_and_gives_all_back(site):
    """ssh ends, and the program on the node doesn't: the end that is asked for afterwards must find it."""
    everybody = [f"{address(a)} mlx5_0 to {address(b)} mlx5_0" for a in NODES for b in NODES if a != b]
    site.world["gbps"] = dict.fromkeys(everybody, "hangs")
    asked, measuring = [], []

    def ask(programs, real=site.ask):
        asked.append(programs)
        return real(programs)

    def during(name, process):
        if len(asked) == 2 and not measuring:  # behind the look
            wait_for(tools, 20, "tools")
            measuring.append(name)
            raise KeyboardInterrupt

    site.ask, site.during = ask, during
    test = site.stress(Plan(tests=("pairs",), rails=(1,), seconds=1))
    with pytest.raises(KeyboardInterrupt):
        test.run()
    assert measuring and test.outcome.kept == {}
    wait_for(lambda: free(site), 20, "the end of all that measures")


def test_a_scheduler_that_is_silent_at_the_end_is_told(site):
    def during(name, process):
        site.deaf = True

    site.during = during
    outcome = site.stress(Plan(tests=("pairs",), rails=(1,), seconds=1)).run()
    assert set(outcome.kept) == set(NODES) and "does not answer any more" in outcome.kept["n1"]


def test_a_scheduler_that_is_silent_at_first_refuses(site):
    site.deaf = True
    with pytest.raises(SchedulerError):
        site.stress().run()
    assert site.calls == []


# ---- the program on a node


def test_only_the_cards_of_the_compute_fabric_are_measured(tmp_path):
    site = Site(tmp_path)
    site.cards("n1", mlx5_10="400 Gb/sec (4X NDR)", mlx5_2="100 Gb/sec (2X HDR)")
    (tmp_path / "n1/sys/class/infiniband/mlx5_1/ports/1/link_layer").write_text("Ethernet\n")
    root = {"do": "look", "root": str(tmp_path / "n1")}
    names = [device for device, _ in measure_host.gather(root)["ports"]]
    assert names == ["mlx5_0", "mlx5_2", "mlx5_10"]
    (tmp_path / "n1/etc").mkdir()
    (tmp_path / "n1/etc/nccl.conf").write_text("NCCL_NET=IB\nNCCL_IB_HCA==mlx5_0,mlx5_10\n")
    assert measure_host.gather(root)["ports"] == [("mlx5_0", 400.0), ("mlx5_10", 400.0)]


def test_whoever_comes_ends_the_one_before(tmp_path):
    program = Path(measure_host.__file__).read_text()
    path = str(tmp_path / "l")
    held = subprocess.Popen([sys.executable, "-c", f"{program}\nheld = take({path!r}); time.sleep(99)"])
    wait_for(lambda: (tmp_path / "l").exists() and (tmp_path / "l").read_text().strip(), 20, "the lock")
    lock, ended = measure_host.take(path)
    lock.close()
    assert ended and held.wait(10) == -signal.SIGKILL
    lock, ended = measure_host.take(path)
    lock.close()
    assert not ended
