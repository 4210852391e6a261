"""The engine, its providers and the BMCs fail in the middle of an `up` of a second, smaller cluster in the same account
and hall.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from lab.bmc import faults as bmc
from lab.pulumi import binary
from lab.system import CHECKOUT
from tests.faults.live.live import until

pytestmark = [pytest.mark.lab, pytest.mark.slow]
NAME = "second"
DO = ("--yes", "--skip-preview")


def declared():
    """The lab's own under another name: three nodes behind BMCs, a network, a fixed node, a pool."""
    stack = yaml.safe_load((CHECKOUT / "stacks" / "Pulumi.lab.yaml").read_text())
    cluster = stack["config"]["ironburst:cluster"]
    cluster["name"] = NAME
    cluster["cloud"]["network"]["hall_link"]["peer_address"] = "203.0.113.20"  # an account has a hall's device once
    return stack


class Second:
    """Its stack, and what of it is in the account."""

    def __init__(self, live, folder):
        self.live, self.folder = live, folder
        for path in CHECKOUT.iterdir():
            if path.name not in ("stacks", ".lab", ".git"):
                (folder / path.name).symlink_to(path)
        shutil.copytree(CHECKOUT / "stacks", folder / "stacks")
        (folder / "stacks" / f"Pulumi.{NAME}.yaml").write_text(yaml.safe_dump(declared()))
        lock = folder / "stacks" / "lab.lock.yaml"
        if lock.exists():
            shutil.copy(lock, lock.with_name(f"{NAME}.lock.yaml"))
        self.run("stack", "init")

    def argv(self, *words):
        argv = self.live.inside.argv(str(binary.path()), *words, "--stack", NAME, "--non-interactive")
        return [f"--chdir={self.folder}" if word.startswith("--chdir=") else word for word in argv]

    def run(self, *words, code=0):
        done = subprocess.run(self.argv(*words), text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
        assert code is None or done.returncode == code, (done.stdout + done.stderr)[-3000:]
        return done.stdout + done.stderr

    def start(self, *words):
        return subprocess.Popen(
            self.argv(*words), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )

    def in_the_middle(self, run, there=None, what="a subnet in the state"):
        """Until `up` has made some of it (`there`), and not all."""
        there = there or (lambda: self.stored().get("aws:ec2/subnet:Subnet"))
        until(lambda: there() or run.poll() is not None, 180, what)
        assert run.poll() is None, run.communicate()[0][-3000:]

    def instances(self):
        views = self.live.cloud("GET", "/lab/instances")
        mine = [view for view in views if view["tags"].get("ironburst:cluster") == NAME]
        return [view["instance_id"] for view in mine if view["state"] != "terminated"]

    def described(self, method, key):
        """Its own that are there, or are being made."""
        wanted = [
            {"Name": "tag:ironburst:cluster", "Values": [NAME]},
            {"Name": "state", "Values": ["pending", "available"]},
        ]
        ask = f"boto3.client('ec2').{method}(Filters={wanted})['{key}']"
        ask = f"import boto3, json; print(json.dumps({ask}, default=str))"
        return json.loads(self.live.inside.run([sys.executable, "-c", ask]))

    def gateways(self):
        return {each["NatGatewayId"] for each in self.described("describe_nat_gateways", "NatGateways")}

    def orphans(self):
        """What the doctor finds in AWS that no state knows -> what it says to do."""
        stack = self.folder / "stacks" / f"Pulumi.{NAME}.yaml"
        own = ("env", "-u", "IRONBURST_DOCUMENT")  # the lab's is of another cluster, and this one's isn't published
        argv = self.live.inside.argv(
            *own, sys.executable, "-m", "ironburst.cli", "doctor", str(stack), "--aws", "--json"
        )
        found = json.loads(subprocess.run(argv, text=True, stdout=subprocess.PIPE, timeout=300).stdout)["findings"]
        return {
            each["looked_at"]: each["todo"] for each in found if (each["check"], each["state"]) == ("orphans", "fail")
        }

    def end_orphans(self):
        """As the doctor says; instances by the state, for nothing of this cluster is published."""
        for orphan in self.orphans():
            if orphan.startswith("nat-"):
                self.live.boto(f"ec2.delete_nat_gateway(NatGatewayId='{orphan}')")
                until(lambda gone=orphan: gone not in self.gateways(), 60, "its end")
            elif orphan.startswith("eipalloc-"):
                self.live.boto(f"ec2.release_address(AllocationId='{orphan}')")
            elif orphan == "VPN gateways":
                self.end_vpn_gateways()
        for orphan in set(self.instances()) - set(self.stored().get("aws:ec2/instance:Instance", ())):
            self.live.boto(f"ec2.terminate_instances(InstanceIds=['{orphan}'])")

    def vpn_gateways(self):
        """-> the VPC that it is attached to, or None."""
        found = self.described("describe_vpn_gateways", "VpnGateways")
        at = {each["VpnGatewayId"]: each.get("VpcAttachments", ()) for each in found}
        return {id: next((it["VpcId"] for it in its if it["State"] != "detached"), None) for id, its in at.items()}

    def end_vpn_gateways(self):
        for orphan, vpc in self.vpn_gateways().items():
            if orphan not in self.stored().get("aws:ec2/vpnGateway:VpnGateway", ()):
                if vpc:
                    self.live.boto(f"ec2.detach_vpn_gateway(VpnGatewayId='{orphan}', VpcId='{vpc}')")
                    until(lambda gone=orphan: not self.vpn_gateways()[gone], 60, "its detachment")
                self.live.boto(f"ec2.delete_vpn_gateway(VpnGatewayId='{orphan}')")

    def stored(self):
        """Physical ids in the state, by type."""
        state = json.loads(subprocess.check_output(self.argv("stack", "export"), text=True, stderr=subprocess.DEVNULL))
        found = {}
        for each in state["deployment"].get("resources") or []:
            if each.get("id"):
                found.setdefault(each["type"], []).append(each["id"])
        return found

    def checked(self):
        """All that is in the account is in the state, once, and another `up` changes nothing."""
        assert not self.orphans()
        assert self.instances() == self.stored()["aws:ec2/instance:Instance"]
        assert len(self.stored()["baremetal:index:Node"]) == 3
        self.run("up", *DO, "--expect-no-changes")


def children(pid):
    """Of a process, and theirs, by what they run."""
    found = {}
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has just ended
            for child in thread.read_text().split():
                found[int(child)] = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                found |= children(int(child))
    return found


def process_of(run, *words):
    """The process below `run` with one of these words in its command."""

    def look():
        below = {pid: command for pid, command in children(run.pid).items() if "nsenter" not in command}
        return next((pid for pid, command in below.items() if any(word in command for word in words)), 0)

    return until(look, 60, f"a process of {words}")


@pytest.fixture
def second(live, tmp_path):
    second = Second(live, tmp_path)
    yield second
    live.cloud("DELETE", "/lab/faults")
    for node in ("head", "dgx01", "dgx02"):
        bmc.write_fault(live.site.dir / "bmc" / "faults.json", node, None)
    second.run("cancel", "--yes", code=None)
    second.end_orphans()  # of a test that failed: the next one would find them
    second.end_vpn_gateways()  # one alone is no orphan to the doctor
    second.run("destroy", *DO, code=None)
    second.run("stack", "rm", "--yes", "--force", "--preserve-config")
    for instance in second.instances():
        live.boto(f"ec2.terminate_instances(InstanceIds=['{instance}'])")


def test_the_engine_is_killed_between_two_resources(second):
    run = second.start("up", *DO)
    second.in_the_middle(run)
    os.kill(process_of(run, "pulumi up"), signal.SIGKILL)
    run.communicate(timeout=60)
    assert "locked" in second.run("up", *DO, code=None)
    second.run("cancel", "--yes")
    second.run("up", *DO, code=None)  # what AWS was making may be in its way
    second.end_orphans()
    second.run("refresh", *DO)
    second.run("up", *DO)
    second.checked()


def test_a_provider_is_killed(second):
    """The engine ends with its words. No state knows the NAT gateway that AWS was making: it keeps its address from the
    next `up`, the doctor names it, and when it is gone `up` takes up.
    """
    second.live.calls_fail("CreateNatGateway", after=True, delay_s=20)
    run = second.start("up", *DO)
    second.in_the_middle(run, second.gateways, "a NAT gateway")
    os.kill(process_of(run, "pulumi-resource-aws", "lab.aws_plugin"), signal.SIGKILL)
    said, _ = run.communicate(timeout=300)
    assert run.returncode == 1 and "Traceback" not in said, said[-3000:]
    second.run("cancel", "--yes", code=None)
    assert "AlreadyAssociated" in second.run("up", *DO, code=1)
    (orphan,) = second.gateways() - set(second.stored()["aws:ec2/natGateway:NatGateway"])
    assert f"aws ec2 delete-nat-gateway --nat-gateway-id {orphan}" in second.orphans()[orphan]
    second.end_orphans()
    second.run("up", *DO)
    second.checked()


def test_a_provider_is_killed_while_a_vpn_gateway_is_attached(second):
    """A VPC takes one: the next `up` can't attach its own, the doctor names both; a refresh sees what is missing."""
    second.live.calls_fail("AttachVpnGateway", after=True, delay_s=20)
    run = second.start("up", *DO)
    second.in_the_middle(run, lambda: any(second.vpn_gateways().values()), "an attached VPN gateway")
    os.kill(process_of(run, "pulumi-resource-aws", "lab.aws_plugin"), signal.SIGKILL)
    run.communicate(timeout=300)
    second.live.cloud("DELETE", "/lab/faults")
    second.run("cancel", "--yes", code=None)
    assert "InvalidVpcState" in second.run("up", *DO, code=1)
    assert "aws ec2 detach-vpn-gateway" in second.orphans()["VPN gateways"]
    second.end_orphans()
    second.run("refresh", *DO)
    second.run("up", *DO)
    second.checked()


def test_one_of_the_bmcs_hangs(second):
    """Its node is not accepted, with a sentence; the others are, and nothing waits for ever."""
    bmc.write_fault(second.live.site.dir / "bmc" / "faults.json", "dgx02", bmc.Fault(answer="silent"))
    began = time.monotonic()
    said = second.run("up", *DO, code=1)
    assert "dgx02" in said and "Traceback" not in said, said[-3000:]
    assert time.monotonic() - began < 300
    assert len(second.stored()["baremetal:index:Node"]) == 2
    bmc.write_fault(second.live.site.dir / "bmc" / "faults.json", "dgx02", None)
    second.run("up", *DO)
    second.checked()


def test_the_engine_is_killed_while_ec2_launches_a_fixed_node(second):
    """Pulumi doesn't know what came of it: the next `up` makes another one, and the first is found by its tags."""
    second.live.calls_fail("RunInstances", after=True, delay_s=20)
    run = second.start("up", *DO)
    second.in_the_middle(run, second.instances, "the instance")
    os.kill(process_of(run, "pulumi up"), signal.SIGKILL)
    run.communicate(timeout=60)
    second.run("cancel", "--yes")
    said = second.run("up", *DO)
    assert "interrupted while creating" in said
    unknown = set(second.instances()) - set(second.stored()["aws:ec2/instance:Instance"])
    assert len(unknown) == 1
