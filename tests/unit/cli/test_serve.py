"""`ironburst serve`: its options, and the program itself."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from ironburst import cli
from tests.fakes import document

TOKEN = "correct-horse-battery-staple"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A document; no controller has run."""
    (tmp_path / "lab.json").write_text(document().model_dump_json())
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    monkeypatch.setenv("IRONBURST_DOCUMENT", str(tmp_path / "lab.json"))
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.setenv("SHORT", "secret")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--listen 0.0.0.0:8642", "give --token-file FILE"),
        ("--listen [::]:8642", "give --token-file FILE"),
        ("--listen 10.1.2.3:8642", "give --token-file FILE"),
        ("--listen head:8642", "write an IP address and a port"),
        ("--listen 8642", "write an IP address and a port"),
        ("--listen 127.0.0.1:99999", "write an IP address and a port"),
        ("--listen 192.0.2.1:0 --token-file token", "can't be used"),
        ("--token-file nowhere", "does not resolve"),
        ("--token-file env:NOBODY_SET_IT", "does not resolve"),
        ("--token-file env:SHORT", "openssl rand -hex 32"),
        ("--out nowhere/page.html", "can't be written"),
        ("--document nowhere.json", "nowhere.json"),
    ],
)
def test_bad_input_is_one_sentence(site, capsys, options, words):
    assert cli.main(["serve", *options.split()]) == 2
    said = capsys.readouterr().err
    assert words in said and len(said.strip().splitlines()) == 1 and "secret" not in said.replace("secret ref", "")


def test_a_port_in_use_is_one_sentence(site, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert cli.main(["serve", "--listen", f"127.0.0.1:{taken.getsockname()[1]}"]) == 2
    assert "Address already in use" in capsys.readouterr().err


def test_the_file_before_any_controller_has_run(site):
    assert cli.main(["serve", "--out", "page.html"]) == 0
    text = (site / "page.html").read_text()
    assert "none has run with this ledger yet" in text and (site / "page.html").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in site.iterdir()) == ["lab.json", "page.html", "token"]


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_until_it_is_stopped(site, stop):
    argv = [sys.executable, "-m", "ironburst.cli", "serve", "--listen", "127.0.0.1:0", "--token-file", "token"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=environment) as program:
        try:
            url = re.fullmatch(r"ironburst: (http://127\.0\.0\.1:\d+/)\n", program.stderr.readline())[1]
            request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert "What is broken" in answer.read().decode()
            program.send_signal(stop)
            said = program.communicate(timeout=60)[1]
            assert program.returncode in (0, -stop) and "Traceback" not in said and TOKEN not in said
        finally:
            program.kill()
