"""`ironburst publish`: what is rented is never taken away by a document."""

import fcntl
import io
import json
import os
import subprocess
import threading

import pytest

from ironburst import document as documents
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


# ---- the commit


@pytest.fixture
def commits(tmp_path, monkeypatch):
    """A checkout in which `publish` is run, with commits a, then b; `commits(id)` checks one out."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def git(*arguments, at=1_000_000_100):
        who = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "x")
        env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_COMMITTER_DATE": f"{at} +0000", **who}
        done = subprocess.run(["git", *arguments], env=env, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet", "--initial-branch=main")
    ids = []
    for n in range(2):
        git("commit", "--quiet", "--allow-empty", "-m", str(n), at=1_000_000_000 + n)
        ids.append(git("rev-parse", "HEAD"))

    def checkout(id):
        git("checkout", "--quiet", id)
        return id

    checkout.ids, checkout.git = ids, git
    return checkout


def published(tmp_path):
    return json.loads((tmp_path / "document.json").read_text())


def test_an_older_commit_is_refused_and_older_publishes_it(publish, commits, tmp_path):
    old, new = commits.ids
    commits(new)
    assert publish(document()) == (0, "")
    assert (published(tmp_path)["commit"], published(tmp_path)["committed_s"]) == (new, 1_000_000_001.0)
    commits(old)
    code, said = publish(changed(idle_s=7))
    assert code == 3 and said.count("\n") == 1 and new[:12] in said and old[:12] in said and "--older" in said
    assert published(tmp_path)["commit"] == new
    assert publish(changed(idle_s=7), "--older") == (0, "")
    assert published(tmp_path)["commit"] == old
    commits(new)
    assert publish(document()) == (0, "")


def test_the_same_declaration_of_a_newer_commit_has_the_same_serial(publish, commits, tmp_path):
    old, new = commits.ids
    for id in (old, new, new):
        commits(id)
        assert publish(document()) == (0, "") and (published(tmp_path)["commit"], serial(tmp_path)) == (id, 1)


def test_which_commit_came_first_is_gits_word_and_else_the_times(publish, commits, tmp_path):
    commits.git("commit", "--quiet", "--allow-empty", "-m", "by a clock that is behind", at=900_000_000)
    assert publish(document().model_copy()) == (0, "")
    commits(commits.ids[1])
    assert publish(document())[0] == 3, "an ancestor, though its time is later"
    there = published(tmp_path)
    for time, code in ((1_100_000_000.0, 3), (800_000_000.0, 0)):
        (tmp_path / "document.json").write_text(json.dumps(there | {"commit": "0" * 40, "committed_s": time}))
        assert publish(document())[0] == code, "git doesn't know what is published: the clone is shallow"


def test_outside_a_checkout_nobody_knows(publish, commits, tmp_path, monkeypatch):
    assert publish(document())[0] == 0
    monkeypatch.chdir(tmp_path)
    code, said = publish(changed(idle_s=7))
    assert code == 3 and "no checkout" in said and said.count("\n") == 1
    assert publish(changed(idle_s=7), "--older") == (0, "")
    assert publish(document()) == (0, ""), "what is published has no commit, as all of before"


def test_of_two_that_publish_at_once_the_older_waits_and_is_refused(publish, commits, tmp_path, monkeypatch):
    """An old CI run that was started again, while the new one writes."""
    old, new = commits.ids
    commits(new)
    assert publish(document()) == (0, "")
    commits(old)
    waits, codes, lock = threading.Event(), [], fcntl.flock

    def flock(file, how):
        if threading.current_thread() is not threading.main_thread():
            waits.set()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    path = tmp_path / "document.json"
    path.write_text(json.dumps(published(tmp_path) | {"commit": "", "committed_s": None}))
    other = threading.Thread(target=lambda: codes.append(publish(changed(idle_s=7))[0]))
    with documents.one_publishes(path):
        other.start()
        assert waits.wait(30), "it looked at what was there before it was its turn"
        newer = changed(idle_s=9).model_copy(update={"commit": new, "committed_s": 1_000_000_001.0})
        documents.publish(newer, path)
    other.join(30)
    assert codes == [3] and published(tmp_path)["commit"] == new and published(tmp_path)["pools"][0]["idle_s"] == 9
