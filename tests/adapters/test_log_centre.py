"""`ironburst logs` asks real log centres, which the role's program has filled; and journals where there is none."""

import json
import subprocess
import time
from types import SimpleNamespace

import pytest

from ironburst.adapters import host_journal, log_centre
from ironburst.cli import main
from ironburst.convergence.ports import Connection
from ironburst.document import of_stack
from ironburst.monitoring import log_relay
from ironburst.ports.logs import LogQuery, LogsError
from lab.system import wait_for
from tests import logs
from tests.playbooks.programs import PLAYBOOKS, load

program = load("roles/logs/files/ironburst-logs.py")
LAB = PLAYBOOKS.parent / "stacks/Pulumi.lab.yaml"
NOW_S = float(int(time.time()))
CENTRES = [
    pytest.param(logs.Victoria, id="victorialogs"),
    pytest.param(logs.OpenSearch, id="opensearch", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=CENTRES)
def centre(request, tmp_path_factory):
    """With ten lines of two hosts, a minute apart, and what a rented node said."""
    with logs.centre(request.param, tmp_path_factory.mktemp("centre")) as made:
        way = program.Centre({"url": made.url + made.path})
        if made.kind == "elasticsearch":
            way.prepare()
        sent = []
        for n in range(10):
            at = program.at(int((NOW_S - 600 + 60 * n) * 1e6))
            its = {"@timestamp": at, "host": f"dgx0{n % 2 + 1}", "program": "slurmd", "severity": "err", "unit": ""}
            sent.append(its | {"message": f"line {n} \x1b[31m", "id": f"a{n}"})
        its = {"host": "p5-1", "lease": 'l1/"p5-1"', "program": "kernel", "severity": "crit", "message": "Xid 79"}
        sent.append(its | {"@timestamp": program.at(int((NOW_S - 86400) * 1e6)), "id": "b"})
        assert way.send(sent) == 0 and way.send(sent[:3]) == 0, "a second time: what wasn't answered is sent again"
        wait_for(lambda: len({each["id"] for each in made.documents()}) == 11, 30, "all are there")
        yield made


def asker(centre):
    return log_centre.KINDS[centre.kind](log_centre.way(centre.url))


def test_lines_of_hosts_within_a_time_each_once(centre):
    found = asker(centre).newest(LogQuery(("dgx01", "dgx02"), NOW_S - 3600, NOW_S), 100)
    assert [line.message.split()[1] for line in found] == [str(n) for n in range(10)]
    assert (found[0].at_s, found[0].host, found[0].program, found[0].severity) == (
        NOW_S - 600,
        "dgx01",
        "slurmd",
        "err",
    )
    assert len(asker(centre).newest(LogQuery(("dgx01",), NOW_S - 3600, NOW_S), 100)) == 5
    assert [line.message.split()[1] for line in asker(centre).newest(LogQuery(("dgx01",), NOW_S - 300, NOW_S), 2)] == [
        "6",
        "8",
    ]
    assert asker(centre).newest(LogQuery(("dgx",), NOW_S - 3600, NOW_S), 100) == [], "no part of a name"


def test_a_node_that_has_gone_is_found_by_its_lease(centre):
    (line,) = asker(centre).newest(LogQuery(("p5-1",), 0, NOW_S, 'l1/"p5-1"'), 100)
    assert (line.host, line.lease, line.message) == ("p5-1", 'l1/"p5-1"', "Xid 79")


@pytest.mark.parametrize("kind", sorted(log_centre.KINDS))
@pytest.mark.parametrize("answer", [b"[]", b"nonsense", b'{"hits": []}'])
def test_another_server_is_one_sentence(kind, answer):
    with pytest.raises(LogsError, match="doesn't answer as"):
        log_centre.KINDS[kind](lambda *_: answer).newest(LogQuery(("a",), 0, 1), 5)


def published(tmp_path, monkeypatch, declared):
    """The environment of the verb; its document has this log centre."""
    text = of_stack.document(LAB).model_dump(mode="json")
    text["monitoring"]["logs"] = declared and declared | {"days": 30}
    (tmp_path / "document.json").write_text(json.dumps(text))
    monkeypatch.setenv("IRONBURST_DOCUMENT", str(tmp_path / "document.json"))
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "none.sqlite"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("IRONBURST_STATE", str(tmp_path))


def test_the_verb(centre, tmp_path, monkeypatch, capsys):
    published(tmp_path, monkeypatch, {"url": centre.url, "kind": centre.kind})
    assert main(["logs", "dgx01", "--since", "1h"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 5 and "dgx01 slurmd: err: line 0 �[31m" in said.out, "no colours of theirs"
    assert main(["logs", "dgx01", "--since", "1h", "--lines", "2", "--json"]) == 0
    said = capsys.readouterr()
    assert [json.loads(row)["id"] for row in said.out.splitlines()] == ["a6", "a8"] and "--lines N" in said.err
    assert main(["logs", "dgx01", "--since", "1s"]) == 0
    assert "no line of dgx01" in capsys.readouterr().err
    assert main(["logs", "nobody"]) == 2
    assert main(["logs", "dgx01", "--since", "2"]) == 2
    assert main(["logs", "dgx01", "--lines", "0"]) == 2


@pytest.mark.parametrize("declared", [None, {"url": "http://127.0.0.1:9"}])
def test_without_a_centre_one_sentence_says_what_to_do(tmp_path, monkeypatch, capsys, declared):
    published(tmp_path, monkeypatch, declared)
    assert main(["logs", "dgx01"]) == 3
    said = capsys.readouterr().err
    assert "how dgx01 is reached isn't known here" in said and "journalctl --since" in said
    assert ("no monitoring.logs" if declared is None else "gives no answer") in said


def entry(**fields):
    return json.dumps({"__REALTIME_TIMESTAMP": "1795000000000000", "PRIORITY": "3", **fields})


def test_journals_of_hosts_by_ssh(tmp_path, monkeypatch):
    """`ssh` on PATH is this host itself, journalctl answers as the real one does."""
    (tmp_path / "ssh").write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    rows = [entry(SYSLOG_IDENTIFIER="slurmd", MESSAGE="a"), entry(_COMM="x", MESSAGE=[*b"\xff"]), "no JSON"]
    (tmp_path / "journalctl").write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncat <<"END"\n{chr(10).join(rows)}\nEND\n'
    )
    for name in ("ssh", "journalctl"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = host_journal.lines({"dgx01": Connection("dgx01")}, LogQuery(("dgx01",), 1.0, 2.0), 7, lambda _: "")
    assert [(line.host, line.program, line.severity, line.message) for line in found] == [
        ("dgx01", "slurmd", "err", "a"),
        ("dgx01", "x", "err", "�"),
    ]
    assert "--since=@1.000 --until=@2.000 --lines=7" in (tmp_path / "asked").read_text()
    (tmp_path / "journalctl").write_text("#!/bin/sh\necho 'No journal' >&2\nexit 1\n")
    with pytest.raises(LogsError, match="dgx01: No journal"):
        host_journal.lines({"dgx01": Connection("dgx01")}, LogQuery(("dgx01",), 1.0, 2.0), 7, lambda _: "")


def test_what_rented_nodes_said_is_in_the_heads_journal():
    row = {"@timestamp": "2026-11-18T11:06:30.123456Z", "program": "slurmd", "severity": "emerg", "message": "gone"}
    body = f"{{}}\n{json.dumps(row)}\n".encode()
    (line,) = log_relay.lines(body, "p5-1", "l1/p5-1", 1_795_000_000.0)
    asked = []

    def run(command, **_):
        asked.append(command)
        return SimpleNamespace(returncode=0, stdout=entry(**line) + "\n", stderr="")

    (found,) = host_journal.relayed(LogQuery(("p5-1",), 1, 2, "l1/p5-1"), 5, run)
    assert (found.host, found.lease, found.severity, found.message) == ("p5-1", "l1/p5-1", "emerg", "gone")
    assert asked[0][-2:] == ["_SYSTEMD_UNIT=ironburst-receive.service", "IRONBURST_LEASE=l1/p5-1"]
    with pytest.raises(LogsError, match="can't be read: no rights"):
        host_journal.relayed(
            LogQuery(("p5-1",), 1, 2), 5, lambda *_, **__: subprocess.CompletedProcess([], 1, "", "no rights\n")
        )
