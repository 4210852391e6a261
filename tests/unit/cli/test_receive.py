"""What `ironburst receive` refuses. What it does with samples: tests/playbooks/test_agent.py."""

import socket

import pytest

from ironburst.cli import main
from ironburst.controller.ledger import Ledger


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "ledger.sqlite"
    Ledger(path).close()
    return str(path)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--listen", "0.0.0.0:8644"], "give the address of the head that rented nodes reach"),
        (["--listen", "8.8.8.8:8644"], "give the address of the head that rented nodes reach"),
        (["--listen", "head"], "write an IP address and a port"),
        (["--to", "127.0.0.1:9090"], "is no http or https URL"),
        (["--document", "/nonexistent/lab.json", "--to", "http://127.0.0.1:9090/"], "/nonexistent/lab.json"),
    ],
)
def test_bad_input_is_one_sentence(ledger, capsys, given, words):
    listens = [] if given[0] in ("--listen", "--document") else ["--listen", "127.0.0.1:0"]
    to = [] if "--to" in given else ["--to", "http://127.0.0.1:9090/api/v1/write"]
    assert main(["receive", "--ledger", ledger, *listens, *to, *given]) == 2
    said = capsys.readouterr().err
    assert words in said and len(said.splitlines()) == 1


def test_a_ledger_that_is_not_there_and_a_port_that_is_taken(ledger, tmp_path, capsys):
    to = ["--to", "http://127.0.0.1:9090/api/v1/write"]
    assert main(["receive", "--ledger", str(tmp_path / "none"), "--listen", "127.0.0.1:0", *to]) == 2
    assert "there is no ledger at" in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["receive", "--ledger", ledger, "--listen", at, *to]) == 2
    assert "can't be used: Address already in use" in capsys.readouterr().err
