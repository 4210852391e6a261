"""How a verb ends that doesn't return, and what a person sees while it works."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ironburst import cli
from ironburst.cli import mirror, replay, validate, waiting
from ironburst.config import lockfile

ROOT = Path(__file__).parents[3]
STACK = str(ROOT / "stacks/Pulumi.staging.yaml")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
SECRET_LIKE = "first line\nsecond line " + "x" * 500


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bug_is_one_sentence_and_its_traceback_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(validate, "load_valid", lambda *a, **k: 1 / 0)
    assert cli.main(["validate", STACK]) == 1
    (written,) = tmp_path.iterdir()
    said = capsys.readouterr().err
    assert said == (
        f"ironburst validate: a bug of ours, ZeroDivisionError: division by zero; the traceback is in {written}: "
        "report it with that file\n"
    )
    assert "ZeroDivisionError" in written.read_text() and oct(written.stat().st_mode)[-3:] == "600"


def test_a_bug_that_says_much_is_cut(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))

    def crash(*_, **__):
        raise RuntimeError(SECRET_LIKE)

    monkeypatch.setattr(validate, "load_valid", crash)
    assert cli.main(["validate", STACK]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and len(said) < 500


def test_a_traceback_that_cannot_be_written_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "none"))
    monkeypatch.setattr(validate, "load_valid", lambda *a, **k: 1 / 0)
    assert cli.main(["validate", STACK]) == 1
    assert "can't be written" in (said := capsys.readouterr().err) and "Traceback" in said


def test_ctrl_c_ends_with_130(monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(validate, "load_valid", stop)
    assert cli.main(["validate", STACK]) == 130
    assert capsys.readouterr().err == "\nironburst validate: stopped\n"


def test_a_broken_pipe_to_somebody_else_is_no_silence(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))

    def broken(*_, **__):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(validate, "load_valid", broken)
    assert cli.main(["validate", STACK]) == 1 and "BrokenPipeError" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["catalog", "instances"], ["catalog", "gpus"], ["help"]], ids=" ".join)
def test_a_reader_that_goes_ends_it_in_silence(argv):
    verb = subprocess.Popen(
        [sys.executable, "-m", "ironburst.cli", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    verb.stdout.close()  # before it has written: as `| head -0` does
    assert verb.stderr.read() == b"" and verb.wait(60) == 0


# verbs that may take longer than a person waits without a word: what works in them, and what is said meanwhile.
# converge and image say each step, doctor each finding, simulate, fit, size and report have a bar
SLOW = {
    "validate": (validate, "load_valid", [STACK], "checking the stack file"),
    "lock": (lockfile, "plan", [STACK, "--check"], "solving the versions"),
    "mirror": (mirror, "_fill", [STACK, "--repositories", "FILE"], "reading the repositories' lists"),
    "replay": (replay.ticks, "compare", ["TICKS"], "deciding the ticks again"),
}


def slow(verb, tmp_path, monkeypatch, stream):
    """Run a verb whose work lasts until something was said (or, in a pipe, a moment), and then fails."""
    module, name, argv, words = SLOW[verb]
    (tmp_path / "repositories.yml").write_text("base_apt_repositories: []\n")
    (tmp_path / "ticks").mkdir()
    places = {"FILE": tmp_path / "repositories.yml", "TICKS": tmp_path / "ticks"}
    argv = [str(places.get(each, each)) for each in argv]

    def work(*_, **__):
        for _ in range(2000):
            if words in stream.getvalue():
                break
            if not stream.isatty():
                break
            waiting.time.sleep(0.005)
        raise KeyboardInterrupt

    monkeypatch.setattr(waiting, "AFTER_S", 0.0)
    monkeypatch.setattr(waiting, "EVERY_S", 0.01)
    monkeypatch.setattr(module, name, work)
    monkeypatch.setattr(sys, "stderr", stream)
    assert cli.main([verb, *argv]) == 130
    return stream.getvalue(), words


@pytest.mark.parametrize("verb", SLOW)
def test_a_terminal_sees_what_is_done_and_for_how_long(verb, tmp_path, monkeypatch):
    said, words = slow(verb, tmp_path, monkeypatch, Terminal())
    assert f"\r\033[K{words}" in said and " s" in said
    assert said.endswith(f"\r\033[K\nironburst {verb}: stopped\n"), "the line is gone before anything else is said"


@pytest.mark.parametrize("verb", SLOW)
def test_a_pipe_sees_nothing_of_it(verb, tmp_path, monkeypatch):
    said, _ = slow(verb, tmp_path, monkeypatch, io.StringIO())
    assert said == f"\nironburst {verb}: stopped\n"


def test_what_is_quick_says_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with waiting.told("a blink"):
        pass
    assert sys.stderr.getvalue() == ""
