"""What rented nodes say: it counts only as their lease's, also after they have gone."""

import json
import os
import signal
import threading
from contextlib import contextmanager

import pytest

from ironburst.monitoring import log_relay, receiving
from ironburst.monitoring.receiving import Gate, Pusher, Server
from lab.system import wait_for
from tests import logs

P51 = Pusher("p5-1", "l1/p5-1")
NOW_S = 1_795_000_000.0


def body(*rows):
    return "".join(f'{{"create": {{}}}}\n{json.dumps(row)}\n' for row in rows).encode()


def row(**changed):
    its = {"@timestamp": "2026-11-18T11:06:30.123456Z", "host": "ip-10-90-1-4", "program": "slurmd", "pid": "7"}
    return its | {"severity": "err", "message": "no slurmctld", "id": "0" * 32} | changed


def line(**changed):
    return log_relay.lines(body(row(**changed)), *P51, NOW_S)[0]


def test_a_line_is_its_leases_whatever_it_says_of_itself():
    made = line(host="head", lease="l0/other", node="head", IRONBURST_NODE="head")
    assert (made["IRONBURST_NODE"], made["IRONBURST_LEASE"]) == ("p5-1", "l1/p5-1")
    assert made["MESSAGE"] == "p5-1 slurmd: no slurmctld" and made["IRONBURST_PROGRAM"] == "slurmd"
    assert made["IRONBURST_ID"].startswith("l1/p5-1-"), "it replaces no line of another"


def test_a_line_is_nothing_of_this_host():
    """fail2ban and people read the head's journal by identifier, journald shows emergencies to all terminals."""
    made = line(program="sshd", severity="emerg", message="Failed password for root from 10.0.0.1 port 22")
    assert made["SYSLOG_IDENTIFIER"] == "ironburst-rented" and made["PRIORITY"] == "3"
    assert made["IRONBURST_SEVERITY"] == "emerg"
    text = log_relay.datagram(line(message="a\nSYSLOG_IDENTIFIER=sshd\n"))
    assert text.count(b"\nSYSLOG_IDENTIFIER\n") == 1 and b"SYSLOG_IDENTIFIER=sshd" in text, "data, by its length"


@pytest.mark.parametrize("given", ["2031-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "yesterday", "", "2026-W47-3"])
def test_a_clock_that_is_wrong_makes_no_day_of_its_own(given):
    assert line(**{"@timestamp": given})["IRONBURST_TIME"] == "2026-11-18T11:06:40.000000Z"


def test_times_are_kept():
    assert line()["IRONBURST_TIME"] == "2026-11-18T11:06:30.123456Z"


@pytest.mark.parametrize("sent", [b"\xff\n\xff", b"{}\n[1]\n", b"{}\n{\n"])
def test_what_is_no_log_is_refused(sent):
    with pytest.raises(log_relay.MalformedLines):
        log_relay.lines(sent, *P51, NOW_S)


@contextmanager
def gate(journal, leases):
    made = Gate(lambda: leases, lambda _: (204, ""), journal=journal.socket)
    assert made.look() == ""
    with Server("127.0.0.1", 0, made, lambda *_: None) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield made, f"http://127.0.0.1:{server.server_port}{log_relay.PATH}"
        server.shutdown()


def test_only_rented_nodes_are_taken_and_none_fills_the_disk(tmp_path):
    made = Gate(lambda: {"10.0.0.5": P51}, lambda _: (204, ""), journal=tmp_path / "none")
    assert made.take_logs("10.0.0.5", body(row()))[0] == 503, "not looked yet"
    made.look()
    assert made.take_logs("10.0.0.6", body(row()))[0] == 403
    assert made.take_logs("10.0.0.5", b"{}\n[1]\n")[0] == 400
    status, why = made.take_logs("10.0.0.5", body(row()))
    assert status == 503 and "the journal takes nothing" in why, "it is sent again"
    most = body(row(message="x" * 30_000)) * 100
    for _ in range(int(receiving.LOGS_S * receiving.AT_ONCE_S / len(most)) + 2):
        status, _ = made.take_logs("10.0.0.5", most)
    assert status == 429


def test_what_a_node_said_last_survives_it_and_a_centre_that_is_away(tmp_path):
    """Node → gate → the head's journal → centre, by the real programs; the node is killed at once, with all its
    processes, while the centre is away.
    """
    with (
        logs.centre(logs.Victoria, tmp_path / "centre") as centre,
        logs.journal() as its,
        logs.journal() as heads,
        gate(heads, {}) as (_, refusing),
        gate(heads, {"127.0.0.1": P51}) as (_, url),
    ):
        relay = {"_UID": str(os.getuid())}  # where nobody is a unit of systemd; in the role by _SYSTEMD_UNIT
        centre.stop(signal.SIGTERM)
        its.lines(0, 500)
        with logs.sending(tmp_path / "node", refusing, its):
            wait_for(lambda: "HTTP 403" in (tmp_path / "node/said").read_text(), 30, "no lease yet")
        heads.write("line 77777", IRONBURST_NODE="p5-1", IRONBURST_PROGRAM="x")  # of the head itself
        with logs.sending(tmp_path / "head", centre.url + centre.path, heads, relay=relay):
            with logs.sending(tmp_path / "node", url, its) as node:
                wait_for(lambda: (tmp_path / "node/cursor").exists(), 30, "its first lines are taken")
                its.lines(500, 500)
                before = (tmp_path / "node/cursor").read_text()
                wait_for(lambda: (tmp_path / "node/cursor").read_text() != before, 2, "within two seconds")
                its.write("NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus.", "kernel", PRIORITY=2)
                before = (tmp_path / "node/cursor").read_text()
                wait_for(lambda: (tmp_path / "node/cursor").read_text() != before, 2, "within two seconds")
                os.killpg(node.pid, signal.SIGKILL)
            centre.start()
            wait_for(lambda: any("Xid" in each["message"] for each in centre.documents()), 60, "what it said last")
            found = centre.documents()
    rented = [each for each in found if each.get("lease") == "l1/p5-1"]
    assert sorted({int(each["message"].split()[1]) for each in rented if each["message"].startswith("line ")}) == list(
        range(1000)
    )
    assert {each["host"] for each in rented} == {"p5-1"}
    xid = next(each for each in rented if "Xid" in each["message"])
    assert (xid["program"], xid["severity"]) == ("kernel", "crit") and xid["message"].startswith("NVRM: Xid")
    assert not [each for each in found if "77777" in each["message"] and each.get("lease")]
