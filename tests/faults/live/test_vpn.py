"""The VPN between the hall and the cloud is down, with jobs on both sides: the lab's router forwards nothing between
them. AWS's API is reached without it, as on a site with a way out.

Time is compressed by 10 (SlurmdTimeout: 30 s for 300): see test_cloud.py. Here /shared is a bind mount, which no VPN
carries: a real job whose files are behind it would hang until they are back.
"""

import pytest

from tests.faults.live.live import until
from tests.faults.live.test_cloud import COMPRESSED, not_responding

pytestmark = [pytest.mark.lab, pytest.mark.slow]


def at_home(live):
    """What fills the hall, and how often each of it has started."""
    return live.head.root("squeue -h -u alice -n fill -O JobID,State,NodeList,RestartCnt | sort").split("\n")


def test_the_vpn_is_down_for_a_minute(live):
    with live.slurm_says(**COMPRESSED):
        live.running(live.submit(nodes=2))
        home, leases = at_home(live), live.leases()
        live.forward(False)
        for lease in leases:
            not_responding(live, lease.node)
        live.forward(True)
        for lease in leases:
            until(lambda node=lease.node: not any(s.endswith("*") for s in live.slurm_node(node)), 60, "an answer")
        assert at_home(live) == home
        live.assert_settled()


def test_a_job_ends_while_the_vpn_is_down(live):
    """Slurm hears of it when the way is there again."""
    live.running(job := live.submit())
    home = at_home(live)
    live.forward(False)
    live.go(job)
    until(lambda: live.lines("ends", job), 30, "the job's end on its node")
    assert live.job_state(job) in ("RUNNING", "COMPLETING")
    live.forward(True)
    assert at_home(live) == home
    live.assert_settled(limit_s=180)


def test_the_vpn_is_down_for_twenty_minutes(live):
    """Slurm gives the rented nodes up: their instances are ended, their jobs wait, and start again when it is back."""
    with live.slurm_says(**COMPRESSED):
        live.running(job := live.submit())
        home, lease = at_home(live), live.leases()[0]
        live.forward(False)
        live.assert_told("the scheduler lost its node|Not responding")
        until(lambda: lease.instance_id not in {view["instance_id"] for view in live.instances()}, 90, "its end")
        assert at_home(live) == home
        live.forward(True)
        live.running(job)
        live.assert_settled(again=(job,))


def test_the_vpn_is_down_while_a_node_boots(live):
    """It can't join: it is given up, and another one is rented when the way is there again."""
    live.publish_pool(boot_s=20)
    live.forward(False)
    job = live.submit()
    live.assert_told("did not join|didn't join|InstanceInitiatedShutdown|gave its node up")
    live.publish(live.declared)
    live.forward(True)
    live.running(job)
    live.assert_settled()
