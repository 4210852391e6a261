"""Faults of Slurm, and what users and administrators do to jobs and nodes meanwhile, on the real one."""

import threading
from contextlib import contextmanager

import pytest

from ironburst.controller import records
from tests.faults.live.live import until

pytestmark = [pytest.mark.lab, pytest.mark.slow]
COMING = (records.REQUESTED, records.LAUNCHED)


@contextmanager
def hung(live, daemon):
    """SIGSTOP: its port takes connections and answers none."""
    live.head.root(f"pkill -STOP -x {daemon}")
    try:
        yield
    finally:
        live.head.root(f"pkill -CONT -x {daemon}")


@contextmanager
def slow(live, daemon):
    """It runs for a fifth of the time."""
    end = threading.Event()
    pulse = f"for n in 1 2 3 4 5; do pkill -STOP -x {daemon}; sleep 0.8; pkill -CONT -x {daemon}; sleep 0.2; done"

    def pulses():
        while not end.is_set():
            live.head.root(pulse)

    thread = threading.Thread(target=pulses)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
        live.head.root(f"pkill -CONT -x {daemon}")


def answers(live):
    """Until slurmctld does."""
    until(lambda: live.head.root("scontrol ping || true").count("UP"), 30, "slurmctld")


def test_slurmctld_is_restarted_while_a_node_boots(live):
    live.submit()
    live.rented(records.LAUNCHED)
    live.head.root("systemctl restart slurmctld")
    live.assert_settled()
    live.assert_told("joined")


def test_slurmctld_is_killed_while_a_job_runs_on_a_rented_node(live):
    """Killed before it has saved its state, which takes some seconds, Slurm itself starts a job a second time that has
    just begun, beside the first: that was seen here, and nobody outside can help it.
    """
    live.running(job := live.submit())
    now = float(live.head.root("date +%s.%N"))
    live.head.alice(f"scontrol update jobid={job} comment=something-to-save")
    state = "/var/lib/slurm/slurmctld/job_state"
    until(lambda: float(live.head.root(f"stat -c %.Y {state}")) > now, 30, "the saved state")
    live.head.root("systemctl kill --kill-whom=main --signal=KILL slurmctld; systemctl start slurmctld")
    answers(live)
    live.assert_settled()


def test_slurmctld_is_away_while_a_job_ends(live):
    live.running(job := live.submit())
    live.head.root("systemctl stop slurmctld")
    live.assert_told("Unable to contact slurm controller")
    live.go(job)
    until(lambda: live.lines("ends", job), 30, "the job's end on its node")
    live.head.root("systemctl start slurmctld")
    live.assert_settled()


def test_slurmctld_hangs_while_a_node_boots(live):
    live.submit()
    live.rented(records.LAUNCHED)
    with hung(live, "slurmctld"):
        live.assert_told("Socket timed out|Unable to contact|gave no answer")
    live.assert_settled()


def test_slurmctld_hangs_while_a_job_ends(live):
    live.running(job := live.submit())
    with hung(live, "slurmctld"):
        live.go(job)
        until(lambda: live.lines("ends", job), 30, "the job's end on its node")
        live.assert_told("Socket timed out|Unable to contact|gave no answer")
    live.assert_settled()


def test_slurmctld_is_slow_for_a_jobs_whole_life(live):
    with slow(live, "slurmctld"):
        live.running(live.submit())
        live.assert_settled(limit_s=240)
    live.assert_told("terminated")


def test_slurmdbd_is_restarted_while_a_job_runs(live):
    live.running(live.submit())
    live.head.root("systemctl restart slurmdbd")
    live.assert_settled()


def test_slurmdbd_hangs_while_a_job_is_rented_for(live):
    with hung(live, "slurmdbd"):
        job = live.submit()
        live.running(job)
        live.go(job)
        until(lambda: live.lines("ends", job), 30, "the job's end")
    live.assert_settled()


def test_slurmdbd_is_down_for_a_jobs_whole_life(live):
    live.head.root("systemctl stop slurmdbd")
    job = live.submit()
    live.running(job)
    live.go(job)
    until(lambda: live.lines("ends", job), 30, "the job's end")
    until(lambda: not live.leases(), 90, "the lease's end")
    live.head.root("systemctl start slurmdbd")
    live.assert_settled()


def test_slurm_is_reconfigured_while_a_node_is_resumed(live):
    live.submit()
    for state in (records.POWERING, *COMING):
        if any(lease.state == state for lease in live.rented(records.POWERING, *COMING, records.JOINED, records.READY)):
            live.head.root("scontrol reconfigure")
    live.assert_settled()
    live.assert_told("joined")


def test_a_job_is_cancelled_while_its_node_boots(live):
    job = live.submit()
    live.rented(records.LAUNCHED)
    live.head.root(f"scancel {job}")
    live.assert_settled(job)
    live.assert_told("idle|need it no more|given_up|release")


def test_a_job_is_requeued_by_its_user_while_it_runs_on_a_rented_node(live):
    live.running(job := live.submit())
    live.head.alice(f"scontrol requeue {job}")
    live.assert_settled(again=(job,))


def test_a_job_is_shortened_while_its_node_boots(live):
    job = live.submit(minutes=30)
    live.rented(records.LAUNCHED)
    live.head.alice(f"scontrol update jobid={job} timelimit=5")
    live.assert_settled()


def test_a_job_is_made_bigger_while_its_node_boots(live):
    """It needs a second node then: the first one is kept or given back, and no job starts on half of what it wants."""
    job = live.submit()
    live.rented(records.LAUNCHED)
    live.head.alice(f"scontrol update jobid={job} numnodes=2")
    live.running(job)
    assert live.lines("starts", job)[0].count("-") == 2 or "," in live.lines("starts", job)[0]
    live.assert_settled()


def test_a_job_is_held_while_its_node_boots_and_released_later(live):
    job = live.submit()
    live.rented(records.LAUNCHED)
    live.head.alice(f"scontrol hold {job}")
    until(lambda: not live.leases(), 120, "the node that nobody wants is given back")
    assert live.job_state(job) == "PENDING"
    live.head.alice(f"scontrol release {job}")
    live.assert_settled()


def test_an_administrator_drains_a_rented_node_while_a_job_runs_on_it(live):
    live.running(job := live.submit())
    node = live.lines("starts", job)[0]
    live.head.root(f"scontrol update nodename={node} state=drain reason='fan 3 rattles'")
    live.assert_settled()


def test_an_administrator_drains_a_rented_node_while_it_boots(live):
    live.submit()
    lease = live.rented(records.LAUNCHED)[0]
    live.head.root(f"scontrol update nodename={lease.node} state=drain reason='fan 3 rattles'")
    live.assert_told("a person drained it|fan 3 rattles")
    live.head.root(f"scontrol update nodename={lease.node} state=resume 2>/dev/null || true")
    live.assert_settled()


def test_slurmd_of_a_rented_node_is_killed_under_a_job(live):
    """The job goes on: its step is another process."""
    live.running(live.submit())
    host = live.host(live.leases()[0])
    host.ssh("systemctl kill --kill-whom=main --signal=KILL slurmd; systemctl start slurmd")
    live.assert_settled()
