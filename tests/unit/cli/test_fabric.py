"""`ironburst fabric stress`: what it refuses, its exit codes, what it keeps. The test itself is test_stress.py's."""

import json
from pathlib import Path

import pytest

from ironburst.cli import fabric, main
from ironburst.convergence.model import Tools
from ironburst.fabric.judge import Bandwidth, Port
from ironburst.fabric.stress import StressReport
from ironburst.ports.service import SchedulerError
from tests.unit.fabric import test_stress

NODES = test_stress.NODES


def measured(**figures):
    """n1_n2=390: from n1 to n2."""
    ends = {name: name.split("_") for name in figures}
    ports = {node: Port(node, "mlx5_0", 1, 400.0) for names in ends.values() for node in names}
    return [
        Bandwidth("pairs", *(ports[node] for node in ends[name]), gbps, "" if gbps else "no answer")
        for name, gbps in figures.items()
    ]


@pytest.fixture
def stress(monkeypatch, tmp_path):
    """Runs the verb over a test that ends so; what the test was given is in `asked`."""
    asked = []

    class Test:
        ends = StressReport()

        def __init__(self, document, hosts, tools, options, plan, accepted):
            asked.append((hosts, options, plan, accepted))
            self.outcome = Test.ends

        def run(self):
            if isinstance(Test.ends, BaseException):
                self.outcome = StressReport(kept={"n4": "it did not answer"})
                raise Test.ends
            return Test.ends

    tools = Tools(*[None] * 9)
    monkeypatch.setattr(fabric, "Stress", Test)
    monkeypatch.setattr(fabric, "make_tools", lambda *given: tools)
    document = test_stress.document()
    hosts = [
        host.model_copy(update={"fabric": "infiniband", "kind": "bare_metal"} if host.name in NODES else {})
        for host in document.hosts
    ]
    whole = document.model_copy(update={"hosts": hosts})
    monkeypatch.setattr(fabric, "declaration", lambda arguments: (Path("document.json"), whole))

    def run(*words, ends=None):
        Test.ends = ends or StressReport()
        return main(["fabric", "stress", "--inventory", "x", "--state", str(tmp_path), *words])

    run.asked, run.kept, run.document = asked, tmp_path / "fabric-stress.json", whole
    return run


GOOD = StressReport(nodes=list(NODES), measured=measured(n1_n2=390.0, n3_n4=392.0, n1_n3=391.0))
SLOW = StressReport(nodes=list(NODES), measured=measured(n1_n2=390.0, n3_n4=200.0, n1_n3=391.0))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--tests", "nccl"], "--tests 'nccl': write pairs, ring"),
        (["--rails", "0"], "--rails '0': write numbers from 1 on"),
        (["--rails", "a"], "--rails 'a'"),
        (["--seconds", "4"], "--seconds 4: a measurement takes 5 to 30 seconds"),
        (["--wait", "soon"], "--wait 'soon' is no duration"),
        (["--share", "0%"], "--share '0%' is no share"),
        (["--limit", "nobody"], "--limit names 'nobody'"),
        (["--limit", "head"], "--limit names no owned GPU nodes on InfiniBand"),
    ],
)
def test_bad_input_is_one_sentence(stress, capsys, words, says):
    assert stress(*words) == 2
    assert says in capsys.readouterr().err and stress.asked == []


def test_the_first_good_run_is_what_later_ones_are_held_against(stress, capsys):
    assert stress(ends=GOOD) == 0
    assert json.loads(stress.kept.read_text())["gbps"]["pairs n1 n2 rail 1"] == 390.0
    assert stress(ends=SLOW) == 3
    assert "slow: pairs: n3 mlx5_0" in (said := capsys.readouterr().out) and "what was accepted, 392" in said
    assert stress.asked[1][3]["pairs n3 n4 rail 1"] == 392.0  # it stays
    assert stress("--accept", ends=SLOW) == 0
    assert json.loads(stress.kept.read_text())["gbps"]["pairs n3 n4 rail 1"] == 200.0


def test_a_bad_first_run_is_kept_by_nobody(stress):
    assert stress(ends=SLOW) == 3 and not stress.kept.exists()


def test_a_damaged_file_is_refused(stress, capsys):
    stress.kept.write_text('{"gbps": [1]}')
    assert stress() == 2
    assert "is damaged: move it away" in capsys.readouterr().err


def test_endings_have_their_exit_codes(stress, capsys):
    assert stress() == 5
    assert "fewer than two nodes are free" in capsys.readouterr().out
    lost = StressReport(lost={"n4": "no route"}, kept={"n4": "no route"}, measured=measured(n1_n2=390.0))
    assert stress(ends=lost) == 4
    assert "kept: n4 stays drained: no route" in capsys.readouterr().out
    assert stress(ends=ValueError("env:SUDO is not set")) == 2
    assert stress(ends=SchedulerError("Unable to contact slurm controller")) == 4
    assert stress(ends=KeyboardInterrupt()) == 130
    assert "n4 stays drained: it did not answer" in capsys.readouterr().err


def test_at_night_only_declared_halls_and_half_of_their_nodes(stress, capsys):
    assert stress("--nightly") == 0 and stress.asked == []
    assert "no hall declares nightly_stress" in capsys.readouterr().out
    for name, hall in stress.document.halls.items():
        stress.document.halls[name] = hall.model_copy(update={"nightly_stress": True})
    assert stress("--nightly", ends=GOOD) == 0
    hosts, options, *_ = stress.asked[0]
    assert hosts == list(NODES) and options.share.fraction == 0.5 and options.drain_timeout == 0


def test_json_has_every_figure_and_the_cables(stress, capsys):
    assert stress("--json", ends=SLOW) == 3
    said = json.loads(capsys.readouterr().out)
    [slow] = [row for row in said["measured"] if row.get("slow")]
    assert slow["gbps"] == 200.0 and slow["wanted_gbps"] == 351.0 and slow["from"]["node"] == "n3"
    assert slow["from"]["cable"] == "leaf1/3 - n3/ib1, NDR dac 3 m"
