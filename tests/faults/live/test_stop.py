"""A person stops the renting on a live site: nodes end within seconds, no job is lost, with a controller or without."""

import time

import pytest

from ironburst.controller import order_book
from tests.faults.live.live import NODES, until

pytestmark = [pytest.mark.lab, pytest.mark.slow]
ALIVE = ("pending", "running", "stopping", "stopped")
SECONDS = 15.0  # asked for: from the command to nothing that is paid for


@pytest.fixture
def rented(live):
    """Three rented nodes with jobs: one of two nodes, and one whose processes ignore SIGTERM."""
    live.publish(live.declared | {"burst": live.declared["burst"] | {"tick_s": 10}})
    jobs = [live.submit(nodes=2), stubborn(live)]
    for job in jobs:
        live.running(job)
    assert paid(live) == 3
    yield jobs
    live.head.root("systemctl start ironburst; ironburst resume || true")


def stubborn(live):
    """As `live.submit`, but it doesn't leave for SIGTERM: slurmd kills it after KillWait."""
    job = live.submit()
    name = live.jobs[job]
    live.head.root(f"scancel {job}")
    script = (
        f"#!/bin/bash\n#SBATCH --job-name={name} --ntasks=1 --gres=gpu:8 --time=15 --requeue --output={name}.out\n"
        f"trap '' TERM\necho $SLURM_JOB_NODELIST >> starts-{name}\n"
        f"while [ ! -e go-{name} ]; do sleep 0.2; done\necho $SLURM_JOB_NODELIST >> ends-{name}\n"
    )
    del live.jobs[job]
    job = int(live.head.alice("sbatch --parsable", stdin=script))
    live.jobs[job] = name
    return job


def paid(live):
    return sum(view["state"] in ALIVE for view in live.instances(ended=True))


def stop(live, command="ironburst stop --now --why drill"):
    began = time.monotonic()
    said = live.head.root(command)
    took = time.monotonic() - began
    print(f"{command}: {took:.1f} s\n{said}")
    assert paid(live) == 0
    return took, said


def assert_again(live, jobs):
    """Nothing was lost: after `resume` each of them runs to its end, from its second start."""
    assert [live.job_state(job) for job in jobs] == ["PENDING"] * len(jobs)
    live.head.root("ironburst resume")
    live.assert_settled(again=jobs, limit_s=240)


def test_stop_now(live, rented):
    took, said = stop(live)
    assert took <= SECONDS
    assert f"job {rented[0]} of alice" in said and "nothing is rented any more" in said
    assert set(NODES) <= set(said.replace(",", " ").split())
    shown = live.head.root("ironburst status")
    assert "renting is stopped by root" in shown and "drill" in shown
    live.head.root("systemctl restart ironburst")
    live.ticked()
    assert "renting is stopped by root" in live.head.root("ironburst status")
    assert paid(live) == 0
    assert_again(live, rented)


def test_stop_now_without_a_controller(live, rented):
    live.head.root("systemctl stop ironburst")
    live.assert_told("stays rented at .* with nobody to give it back")
    before = live.head.root("stat -c %U /shared/ironburst /shared/ironburst/*")
    took, said = stop(live)
    assert took <= SECONDS
    assert "nothing is rented any more" in said
    assert set(live.head.root("stat -c %U /shared/ironburst /shared/ironburst/*").split()) == set(before.split())
    live.head.root("systemctl start ironburst")
    live.ticked()
    assert paid(live) == 0
    assert_again(live, rented)


def test_who_may(live):
    as_alice = "runuser -u alice -- ironburst"
    refused = live.head.root(f"{as_alice} pause 2>&1; echo code $?")
    assert "code 2" in refused and "group" in refused
    live.head.root("usermod --append --groups ironburst alice")
    try:
        said = live.head.root(f"{as_alice} pause --why night --until 8h")
        assert "renting is paused by alice since" in said and ": night" in said
        job = live.submit()
        until(
            lambda: "renting is paused by alice" in live.head.root(f"ironburst explain {job} || true"), 60, "a reason"
        )
        assert paid(live) == 0
        with live.ledger() as ledger:
            assert [order.who for order in order_book.in_force(ledger, time.time())] == ["alice"]
    finally:
        live.head.root("gpasswd --delete alice ironburst; ironburst resume")
    live.assert_settled()
