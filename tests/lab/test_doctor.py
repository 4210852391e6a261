"""`ironburst doctor --from hall` on real hosts: all is well when they are converged; then it names what goes wrong.
From CI it goes through the jump that the inventory declares.
"""

import json
import shutil
from contextlib import contextmanager

import pytest

from lab import names
from lab.system import CHECKOUT

pytestmark = pytest.mark.lab


@pytest.fixture
def look(inside, converged):
    """What isn't ok, {check: what was seen}; AWS isn't there in this lab."""

    def look():
        where = ["--document", str(inside.document), "--inventory", "inventory/lab", "--json"]
        said = inside.run(inside.ironburst("doctor", "stacks/Pulumi.lab.yaml", "--from", "hall", *where), ok=(0, 3))
        found = json.loads(said)["findings"]
        assert {"hosts", "names", "clock", "files", "munge", "ssh", "ports", "disk"} <= {
            each["check"] for each in found
        }
        ours = [each for each in found if each["check"] not in ("credentials", "document", "bmc")]
        return {each["check"]: each["seen"] for each in ours if each["state"] not in ("ok", "unknown")}

    return look


@contextmanager
def broken(site, host, breaks, mends):
    site.ssh(host, breaks)
    try:
        yield
    finally:
        site.ssh(host, mends)


def test_converged_hosts_lack_nothing_but_what_the_lab_lacks(look):
    """A backup is made at night, there is no time server, and the hosts are copies of one image with its host key."""
    found = look()
    assert found.keys() <= {"backup", "clock", "ssh"} and "they have one host key" in found["ssh"]


def test_each_thing_that_goes_wrong_is_named(site, look):
    key, hosts = "/etc/munge/munge.key", "/etc/hosts"
    with (
        broken(site, "dgx01", f"cp -p {key} /root/key && head -c 64 /dev/urandom > {key}", f"mv /root/key {key}"),
        broken(site, "dgx02", f"cp {hosts} /root/hosts && sed -i /dgx01/d {hosts}", f"cat /root/hosts > {hosts}"),
        broken(site, "dgx01", "systemctl stop slurmd", "systemctl start slurmd"),
        broken(site, "head", "systemctl stop slurmdbd", "systemctl start slurmdbd"),
    ):
        found = look()
    assert "dgx01: another key" in found["munge"]
    assert found["names"].startswith("dgx02: ")
    assert found["ports"] == "head: slurmd of dgx01 (port 6818): Connection refused"
    assert found["accounting"] == "it gives no answer"
    site.ssh("head", "systemctl start ironburst-slurm-backup")
    assert "backup" not in look()


def test_from_ci_hosts_are_asked_through_the_declared_jump(site, inside, converged):
    """The jump is the head; each GPU node's sshd says who came. (ProxyCommand: the lab has no known host keys.)"""
    inventory = inside.site.dir / "run" / "through-a-jump"
    shutil.copytree(CHECKOUT / "inventory/lab", inventory)
    settings = inventory / "group_vars/all/lab.yml"
    head = names.ADDRESSES["head"]
    jump = f"ssh -i {{{{ lookup('env', 'IRONBURST_SSH_KEY') }}}} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -W %h:%p root@{head}"  # noqa: E501
    text, before = settings.read_text(), "-o ConnectTimeout=5"
    assert before in text
    settings.write_text(text.replace(before, f"""{before} -o ProxyCommand="{jump}\""""))
    where = ["--document", str(inside.document), "--json"]

    def findings(*more):
        said = inside.run(inside.ironburst("doctor", "stacks/Pulumi.lab.yaml", "--from", "ci", *where, *more), ok=(3,))
        return {each["check"]: each["state"] for each in json.loads(said)["findings"]}

    def came():
        of_head = f"journalctl -u ssh -o cat | grep -c 'Accepted publickey for root from {head} '"
        return int(site.ssh("dgx01", of_head, check=False).stdout)

    assert "hosts" not in findings()
    earlier = came()
    found = findings("--inventory", str(inventory))
    assert found["hosts"] == "ok" and found["files"] == "ok" and "bmc" not in found
    assert came() > earlier
