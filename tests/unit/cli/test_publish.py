"""`ironburst publish`: what is rented is never taken away by a document."""

import io
import json

import pytest

from ironburst.cli import main
from tests.fakes import document
from tests.fakes.world import World


@pytest.fixture
def publish(tmp_path, monkeypatch, capsys):
    """publish(document, *arguments) -> exit code and what was said on stderr."""

    def run(wanted, *arguments):
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(wanted.model_dump(mode="json"))))
        code = main(["publish", "--to", str(tmp_path / "document.json"), *map(str, arguments)])
        return code, capsys.readouterr().err

    return run


@pytest.fixture
def world(tmp_path):
    """Node p5-1 is rented, in us-east-1a."""
    world = World(tmp_path, markets=["on-demand"])
    world.fill_home()
    world.slurm.submit(runs_s=300, limit_s=600)
    world.until(lambda: world.states() == ["ready"], 60)
    return world


def changed(**pool):
    made = document()
    return made.model_copy(update={"pools": [made.pools[0].model_copy(update=pool)]})


def without_pools():
    return document().model_copy(update={"pools": []})


def serial(tmp_path):
    return json.loads((tmp_path / "document.json").read_text())["serial"]


@pytest.mark.parametrize(
    ("wanted", "gone"),
    [
        (without_pools(), "pool p5"),
        (changed(nodes=["p5-2", "p5-3"]), "node p5-1"),
        (changed(zones=document().pools[0].zones[1:]), "zone us-east-1a of pool p5"),
    ],
)
def test_what_is_rented_is_not_taken_away(world, publish, tmp_path, wanted, gone):
    assert publish(document())[0] == 0
    code, said = publish(wanted, "--ledger", world.path)
    assert code == 3 and gone in said and "p5-1 (p5, us-east-1a) is still rented" in said and said.count("\n") == 1
    assert serial(tmp_path) == 1
    world.until(lambda: not world.ledger.leases(), 3600)
    assert publish(wanted, "--ledger", world.path) == (0, "")
    assert serial(tmp_path) == 2


@pytest.mark.parametrize(
    "wanted", [changed(nodes=["p5-1", "p5-2"]), changed(zones=document().pools[0].zones[:1]), changed(idle_s=7)]
)
def test_what_is_not_rented_may_go(world, publish, wanted):
    assert publish(document())[0] == 0
    assert publish(wanted, "--ledger", world.path) == (0, "")


def test_where_no_ledger_is_a_person_says_so(publish, tmp_path):
    assert publish(document())[0] == 0
    code, said = publish(without_pools(), "--ledger", tmp_path / "none.sqlite")
    assert code == 3 and "can't be seen" in said and "--given-back" in said and said.count("\n") == 1
    assert publish(changed(idle_s=7), "--ledger", tmp_path / "none.sqlite") == (0, "")  # nothing goes: nothing to see
    assert publish(without_pools(), "--ledger", tmp_path / "none.sqlite", "--given-back") == (0, "")
