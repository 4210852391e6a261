"""Faults of the cloud, with real hosts behind its instances. What a fault of EC2's API looks like is the stand-in's
(lab/aws): its errors have EC2's codes and HTTP statuses.

Time is compressed by 10 where Slurm's SlurmdTimeout counts: 300 s are 30 here, so a loss of a minute is one that
slurmctld notices and that ends before those are over; one of 20 minutes lasts until it has given the node up.
"""

import json
import re
import sys
import time
from pathlib import Path

import pytest

from ironburst.controller import records
from tests.faults.live.live import TYPE, until

pytestmark = [pytest.mark.lab, pytest.mark.slow]
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
COMPRESSED = {"SlurmdTimeout": 30}


def not_responding(live, node):
    until(lambda: any(state.endswith("*") or state == "NOT_RESPONDING" for state in live.slurm_node(node)), 60, node)


def on_spot(live):
    """A job on a rented spot node: (job, lease)."""
    live.running(job := live.submit())
    lease = live.leases()[0]
    assert lease.market == "spot"
    return job, lease


def notice(live, lease, seconds=20):
    live.cloud("POST", "/lab/interrupt", instance_id=lease.instance_id, notice_s=seconds)


def launching_into(live, block, ends_s):
    """What the pool has where `up` publishes it with a block: this market alone, one zone, a template without a
    placement group, and the rights to both.
    """
    zone = live.declared["pools"][0]["zones"][0]
    make = """import boto3, sys
ec2, iam = boto3.client("ec2"), boto3.client("iam")
shown = ec2.describe_launch_template_versions(LaunchTemplateId=sys.argv[1], Versions=[sys.argv[2]])
data = shown["LaunchTemplateVersions"][0]["LaunchTemplateData"]
del data["Placement"]
made = ec2.create_launch_template(LaunchTemplateName=f"of-{sys.argv[3]}", LaunchTemplateData=data)
print(made["LaunchTemplate"]["LaunchTemplateId"])
"""
    words = [zone["place"]["launch_template_id"], zone["place"]["launch_template_version"], block]
    template = live.inside.run([sys.executable, "-c", make, *words]).strip()
    role = re.search(r"role_arn = \S+/(\S+)", live.inside.aws_config.read_text())[1]
    from_it = f"arn:aws:ec2:*:*:launch-template/{template}"
    may = {"Effect": "Allow", "Action": "ec2:RunInstances"}
    statements = [
        may | {"Resource": [f"arn:aws:ec2:*:*:capacity-reservation/{block}", from_it]},
        may | {"Resource": "arn:aws:ec2:*:*:instance/*", "Condition": {"ArnLike": {"ec2:LaunchTemplate": from_it}}},
    ]
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    more = f"RoleName={role!r}, PolicyName='block', PolicyDocument={policy!r}"
    live.inside.run([sys.executable, "-c", f"import boto3; boto3.client('iam').put_role_policy({more})"])
    place = {"launch_template_id": template, "launch_template_version": "1", "capacity_reservation_id": block}
    return {
        "markets": ["capacity-block"],
        "usd_per_hour": {"capacity-block": 0.0},
        "zones": [zone | {"place": zone["place"] | place}],
        "bought": True,
        "capacity_ends_s": time.time() + ends_s,
        "boot_s": 30,
    }


# ---- launching


def test_launches_are_throttled(live):
    live.calls_fail("RunInstances", "RequestLimitExceeded", times=3, status=503, message="Request limit exceeded.")
    live.running(live.submit())
    live.assert_settled()
    live.assert_told("RequestLimitExceeded|Request limit exceeded")


def test_every_call_is_throttled_for_a_while(live):
    live.running(live.submit())
    for action in ("DescribeInstances", "DescribeInstanceStatus", "TerminateInstances", "RunInstances"):
        live.calls_fail(action, "RequestLimitExceeded", times=-1, status=503, message="Request limit exceeded.")
    live.assert_told("Request limit exceeded")
    live.go()
    until(lambda: live.job_state(next(iter(live.jobs))) == "COMPLETED", 60, "the job's end")
    live.cloud("DELETE", "/lab/faults")
    live.assert_settled()


def test_an_answer_is_lost_after_the_launch(live):
    """The token makes the second call find what the first one launched."""
    live.calls_fail("RunInstances", drop=True, after=True)
    live.running(live.submit())
    live.assert_told("unknown")
    launched = [(each["instance_id"], each["state"], each["client_token"]) for each in live.instances(ended=True)]
    assert len(launched) == 1, f"{launched}\n{live.told()}"
    live.assert_settled()


def test_an_answer_is_lost_and_nothing_was_launched(live):
    live.calls_fail("RunInstances", drop=True, times=2)
    live.running(live.submit())
    live.assert_told("unknown")
    live.assert_settled()


def test_the_answer_is_lost_and_the_controller_with_it(live):
    live.plans(dies="Ledger.answer_intent, before")
    live.calls_fail("RunInstances", drop=True, after=True)
    live.running(live.submit())
    live.assert_settled()


def test_a_token_was_used_with_other_parameters(live):
    live.calls_fail("RunInstances", "IdempotentParameterMismatch", message="used with other parameters")
    live.running(live.submit())
    live.assert_settled()
    live.assert_told("other parameters")


def test_a_gang_gets_all_of_its_nodes_or_none(live):
    """One zone has room for one of two."""
    live.cloud_sells(1, zones=("us-east-1a",))
    job = live.submit(nodes=2)
    live.assert_told("InsufficientInstanceCapacity")
    live.running(job)
    assert {lease.zone for lease in live.leases()} == {"us-east-1b"}
    live.assert_settled()


def test_no_zone_has_capacity_for_a_while(live):
    live.cloud_sells(0)
    job = live.submit()
    live.assert_told("given_up: .*us-east-1a: InsufficientInstanceCapacity; us-east-1b: InsufficientInstanceCapacity")
    assert live.job_state(job) == "PENDING"
    live.cloud_sells(None)
    live.assert_settled()


def test_the_account_has_reached_its_quota_of_spot(live):
    live.calls_fail("RunInstances", "VcpuLimitExceeded", message="You have requested more vCPU capacity than allowed.")
    live.running(live.submit())
    live.assert_told("VcpuLimitExceeded|more vCPU capacity")
    assert [lease.market for lease in live.leases()] == ["on-demand"]
    live.assert_settled()


def test_the_credentials_have_expired_for_a_while(live):
    live.running(live.submit())
    live.calls_fail("*", "ExpiredToken", times=-1, message="The security token included in the request is expired")
    live.assert_told("expired")
    live.go()
    until(lambda: live.job_state(next(iter(live.jobs))) == "COMPLETED", 60, "the job's end")
    live.cloud("DELETE", "/lab/faults")
    live.assert_settled()


def test_aws_gives_no_answer_while_a_node_boots(live):
    live.submit()
    live.rented(records.LAUNCHED)
    live.calls_fail("*", drop=True, times=-1)
    live.assert_told("Connection was closed|Could not connect|no answer|[Rr]emote end closed|connection")
    live.cloud("DELETE", "/lab/faults")
    live.assert_settled()


# ---- instances


def test_an_instance_never_joins(live):
    """A bad image: slurmd never starts, and nothing fails."""
    live.publish_pool(boot_s=20)
    with live.image({"etc/systemd/system/slurmd.service": "-> /dev/null"}):
        job = live.submit()
        live.assert_told("did not join within|was launched and didn't join|nobody|it never booted")
    live.publish(live.declared)
    live.running(job)
    live.assert_settled()


def test_an_instance_has_no_network_from_its_boot_on(live):
    live.publish_pool(boot_s=30)
    live.submit()
    lease = live.rented(records.LAUNCHED)[0]
    until(lambda: lease.instance_id in {host.name for host in live.site.hosts()}, 30, "the host")
    until(lambda: live.host(lease).state() == "on", 30, "its power")
    live.cable(live.host(lease), False)
    live.assert_told("did not join|InstanceInitiatedShutdown|Not responding|gave its node up")
    live.publish(live.declared)
    live.assert_settled()


def test_an_instance_joins_with_a_gpu_too_few(live):
    """Its gate keeps it out, so it ends itself at once: the next one is rented."""
    removes = "[Unit]\nBefore=ironburst-gate.service\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart={}\n"
    script = "/bin/sh -c 'd=$(ls -d /lab-hw/pci/* | head -1); rm -r $d'"
    files = {
        "etc/systemd/system/lose-gpu.service": removes.format(script),
        "etc/systemd/system/sysinit.target.wants/lose-gpu.service": "-> /etc/systemd/system/lose-gpu.service",
    }
    with live.image(files):
        job = live.submit()
        live.assert_told("gate|gpus|InstanceInitiatedShutdown|7 of 8")
    live.running(job)
    live.assert_settled()


@pytest.mark.skipif(not FAKETIME.exists(), reason="needs Debian's package libfaketime on this machine")
def test_an_instances_clock_is_an_hour_off(live):
    """Its munged sees another time (libfaketime): the hosts share one kernel, whose clock can't be set for one of
    them. Nobody believes such a node, so it never joins.
    """
    preload = f"[Service]\nEnvironment=LD_PRELOAD=/{FAKETIME.name} FAKETIME=+1h\n"
    files = {"etc/systemd/system/munge.service.d/clock.conf": preload, FAKETIME.name: FAKETIME}
    live.publish_pool(boot_s=30)
    with live.image(files):
        job = live.submit()
        live.assert_told("did not join|InstanceInitiatedShutdown")
    live.publish(live.declared)
    live.running(job)
    live.assert_settled()


def test_an_instance_is_terminated_from_outside_while_it_boots(live):
    live.submit()
    lease = live.rented(records.LAUNCHED)[0]
    live.boto(f"ec2.terminate_instances(InstanceIds=['{lease.instance_id}'])")
    live.assert_told("its instance ended: Client.UserInitiatedShutdown|its instance ended")
    live.assert_settled()


def test_an_instance_is_terminated_from_outside_while_its_job_runs(live):
    live.running(job := live.submit())
    lease = live.leases()[0]
    live.boto(f"ec2.terminate_instances(InstanceIds=['{lease.instance_id}'])")
    live.assert_told("its instance ended")
    live.running(job)
    live.assert_settled(again=(job,))


def test_an_instance_loses_its_network_for_a_minute(live):
    with live.slurm_says(**COMPRESSED):
        live.running(live.submit())
        lease = live.leases()[0]
        live.cable(live.host(lease), False)
        not_responding(live, lease.node)
        live.cable(live.host(lease), True)
        until(lambda: not any(state.endswith("*") for state in live.slurm_node(lease.node)), 60, "it answers again")
        live.assert_settled()


def test_an_instance_loses_its_network_for_twenty_minutes(live):
    """Slurm gives it up after SlurmdTimeout: the job starts again elsewhere, and the instance is ended."""
    with live.slurm_says(**COMPRESSED):
        live.running(job := live.submit())
        lease = live.leases()[0]
        live.cable(live.host(lease), False)
        live.assert_told("the scheduler lost its node|Not responding")
        until(lambda: len(live.lines("starts", job)) == 2, 90, "the job's second start")
        live.assert_settled(again=(job,))


def test_an_instance_reboots_under_its_job(live):
    """Slurm sees a node that came back as another boot: what ran there is lost, and starts again."""
    live.running(job := live.submit())
    # Slurm tells a boot by its second, that has to be after the node's last answer: the lab's hosts boot within one
    until(lambda: live.ran_s(job) >= 3, 60, "three seconds of the job")
    live.host(live.leases()[0]).ssh("systemctl reboot --force --force", check=False)
    until(lambda: len(live.lines("starts", job)) == 2, 120, "the job's second start")
    live.assert_settled(again=(job,))


# ---- what AWS takes back


def test_a_spot_notice_comes_while_the_node_boots(live):
    live.submit()
    lease = live.rented(records.LAUNCHED)[0]
    assert lease.market == "spot"
    notice(live, lease)
    live.assert_told("spot interruption")
    live.assert_settled()


def test_a_spot_notice_comes_while_a_job_runs(live):
    job, lease = on_spot(live)
    notice(live, lease)
    live.assert_told("spot interruption")
    until(lambda: len(live.lines("starts", job)) == 2, 120, "the job's second start")
    live.assert_settled(again=(job,))


def test_a_spot_notice_comes_while_the_node_drains(live):
    """It is to power down when its job has ended; that job is put back in time."""
    job, lease = on_spot(live)
    live.head.root(f"scontrol update nodename={lease.node} state=power_down_asap reason=retires")
    live.rented(records.RELEASING)
    notice(live, lease)
    live.assert_told("spot interruption")
    until(lambda: len(live.lines("starts", job)) == 2, 120, "the job's second start")
    live.assert_settled(again=(job,))


def test_a_spot_notice_comes_while_the_controller_is_away(live):
    job, lease = on_spot(live)
    live.controller("stop")
    notice(live, lease, 5)
    until(lambda: lease.instance_id not in {view["instance_id"] for view in live.instances()}, 60, "the instance's end")
    live.controller("start")
    live.assert_told("spot interruption|its instance ended")
    until(lambda: len(live.lines("starts", job)) == 2, 120, "the job's second start")
    live.assert_settled(again=(job,))


def test_a_capacity_block_ends_under_a_job(live):
    """Jobs that can't end before it aren't started in it; one that an administrator gives more time loses its node."""
    ends_s = 120  # room for the pool's boot_s and a job of a minute
    block = live.cloud("POST", "/lab/capacity-block", instance_type=TYPE, zone="us-east-1a", count=1, ends_in_s=ends_s)[
        "reservation_id"
    ]
    live.publish_pool(**launching_into(live, block, ends_s))
    live.running(job := live.submit(minutes=1))
    assert live.leases()[0].market == "capacity-block"
    live.head.root(f"scontrol update jobid={job} timelimit=30")
    until(lambda: not live.instances(), 120, "the instance's end")
    live.publish(live.declared)
    until(lambda: len(live.lines("starts", job)) == 2, 120, "the job's second start")
    live.assert_told("p5-[0-9]: .*(instance ended|taken back|capacity)")
    live.assert_settled(again=(job,))
