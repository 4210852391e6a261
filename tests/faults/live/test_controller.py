"""The controller's process is killed at a step of a lease's way, and what it stands on is taken away, on a live site.

Every step between any two of which it may die is tried in memory (tests/faults/test_crashes.py); here are those where
something outside has just been changed, with the unit that brings the process back.
"""

import json
import shutil
import sqlite3

import pytest

from ironburst.controller import records
from tests.faults.live.live import PLAN, PUBLISHED, until

pytestmark = [pytest.mark.lab, pytest.mark.slow]
POINTS = [
    "Ledger.add_launch, after",
    "Slurm.put_permit, after",
    "Slurm.power_up, after",
    "Ledger.add_intent, after",
    "Aws.launch, after",
    "Ledger.answer_intent, after",
    "Slurm.resume, after",
    "Slurm.place, after",
    "Slurm.release, after",
    "Aws.terminate, before",
    "Aws.terminate, after",
    "Slurm.remove_permit, before",
]
KILLED = "systemctl show --property=NRestarts --value ironburst"
TMPFS = "/shared/ironburst"


def restarts(live):
    return int(live.head.root(KILLED))


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_step(live, point):
    before = restarts(live)
    live.plans(dies=point)
    live.submit(nodes=2)
    if point.split(".")[1].split(",")[0] in ("release", "terminate", "remove_permit"):
        live.running(next(iter(live.jobs)))
        live.go()
    until(lambda: live.head.root(f"test -e {PLAN} || echo gone").strip() == "gone", 90, f"a death at {point}")
    live.assert_settled()
    assert restarts(live) == before + 1
    assert "orphan:" not in live.told()


def test_killed_again_and_again(live):
    """Whenever it happens to be: six times in a lease's life."""
    job = live.submit(nodes=2)
    for _ in range(6):
        live.ticked()
        live.head.root("systemctl kill --signal=KILL ironburst || true")
    live.running(job)
    live.assert_settled()


def test_the_ledger_is_lost_while_a_job_runs(live):
    live.running(live.submit())
    live.controller("stop")
    for path in live.inside.ledger.parent.glob("ledger.sqlite*"):
        path.unlink()
    live.controller("start")
    live.assert_told("had no lease: it has one again")
    live.assert_settled()


def test_the_ledger_is_cut_off(live):
    """As after a power cut on a bad disk: nobody rents until a person puts a copy back (docs/how-to/ledger.md)."""
    live.running(live.submit())
    live.controller("stop")
    path = live.inside.ledger
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size // 2)
    live.controller("start")
    live.assert_told("malformed|can't be used as a ledger")
    live.controller("stop")
    shutil.copy(copy, path)  # its owner stays
    live.head.root("rm -f /shared/ironburst/ledger.sqlite-*")
    live.controller("start")
    live.ticked()
    live.assert_settled()


def test_the_ledger_is_locked_by_another_process(live):
    job = live.submit()
    live.rented(records.LAUNCHED)
    other = sqlite3.connect(live.inside.ledger, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        until(
            lambda: "locked" in live.head.root(f"journalctl -o cat -u ironburst --since @{int(live.began)}"), 60, "so"
        )
    finally:
        other.close()
    live.running(job)
    live.assert_settled()


def test_the_disk_of_the_ledger_is_full(live):
    """A disk of 8 MB. The brake ends what is idle meanwhile; a job that runs goes on."""
    live.running(live.submit())
    live.controller("stop")
    live.head.root(
        f"cp -a {TMPFS} /root/ledger && mount -t tmpfs -o size=8m,mode=750 tmpfs {TMPFS} && "
        f"chown ironburst: {TMPFS} && cp -a /root/ledger/ledger.sqlite* {TMPFS}/"
    )
    try:
        live.controller("start")
        until(lambda: live.head.root(f"test -s {TMPFS}/ledger.sqlite-wal || echo no") != "no\n", 60, "its first tick")
        live.head.root(f"dd if=/dev/zero of={TMPFS}/fills bs=64k status=none || true")
        live.assert_told("disk is full")
        before = live.told().count(" full")
        live.controller("restart")
        until(lambda: live.told().count(" full") > before, 60, "what the next process says")
        assert "a bug of ours" not in live.told()
        live.head.root(f"rm {TMPFS}/fills")
        live.controller("stop")
    finally:
        live.head.root(
            f"systemctl stop ironburst; cp -a {TMPFS}/ledger.sqlite* /root/ledger/; umount {TMPFS}; "
            f"cp -a /root/ledger/ledger.sqlite* {TMPFS}/; rm -r /root/ledger; systemctl start ironburst"
        )
    live.assert_settled()


def test_the_document_is_gone_while_a_node_boots(live):
    live.submit()
    live.rented(records.LAUNCHED)
    live.head.root(f"rm {PUBLISHED}")
    live.assert_told("there is no ClusterDocument")
    live.assert_settled()


def test_the_document_is_damaged(live):
    live.put(PUBLISHED, "{")
    live.assert_told("can't be read as JSON")
    live.running(live.submit())
    live.assert_settled()


def test_the_document_is_an_older_one(live):
    live.put(PUBLISHED, json.dumps(live.declared | {"serial": 1}))
    live.assert_told("has serial 1, older than")
    live.running(live.submit())
    live.assert_settled()


def test_the_document_is_of_a_newer_version(live):
    live.running(live.submit())
    live.put(PUBLISHED, json.dumps(live.declared | {"version": 99}))
    live.assert_told("has version 99")
    live.publish(live.declared)
    live.assert_settled()


@pytest.mark.parametrize("clock_s", [-3600, 3600], ids=["back", "forward"])
def test_the_clock_is_put_an_hour(live, clock_s):
    """The process' own clock (tests/faults/live/controller.py says which). EC2 refuses the calls of such a host, which
    the lab's stand-in doesn't by itself.
    """
    live.running(job := live.submit())
    live.calls_fail("*", "RequestExpired", times=-1, message="Request has expired. Timestamp date is wrong.")
    live.plans(clock_s=clock_s)
    live.assert_told("Request has expired")
    live.go()
    until(lambda: live.job_state(job) == "COMPLETED", 60, "the job's end")
    live.head.root(f"rm -f {PLAN}")
    live.cloud("DELETE", "/lab/faults")
    live.assert_settled()
    paid = [lease for lease in live.leases(open_only=False) if lease.made_s > live.began]
    assert paid and all(lease.to_s - lease.from_s < 3000 for lease in paid), "the hour is not paid"


def test_two_controllers_want_the_site(live):
    """A second one with a ledger of its own, by hand on the head."""
    live.running(live.submit())
    second = (
        "install -d -o ironburst /var/lib/ironburst/second && cd /tmp && set -a && . /etc/ironburst/controller.env && "
        "export AWS_CONFIG_FILE=/etc/ironburst/aws/config && "
        f"runuser -u ironburst -- /opt/ironburst/.venv/bin/ironburst tick --document {PUBLISHED} "
        "--ledger /var/lib/ironburst/second/ledger.sqlite 2>&1; echo exit $?"
    )
    said = live.head.root(second)
    assert "another controller holds this site" in said and "exit 4" in said, said
    live.assert_settled()
