"""A real host from an empty disk to a ready node: its BMC starts it from the medium, and it answers by its own key."""

import copy
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from lab.hosts import rootfs
from lab.hosts.bmcs import disk_of
from lab.system import wait_for
from tests.sites import running

LAB = yaml.safe_load((Path(__file__).parents[2] / "stacks/Pulumi.lab.yaml").read_text())
PASSWORD = "a-lab-password"
PORT = 8099


@pytest.fixture(scope="module")
def site():
    with running(f"n{os.getpid()}") as site:
        (site.dir / "media").mkdir()
        serve = ["-m", "http.server", str(PORT), "--bind", "10.78.0.1", "--directory", str(site.dir / "media")]
        site.box.spawn([sys.executable, *serve], site.dir / "media.log")
        argv = [sys.executable, "-m", "lab.bmc", "--prefix", site.prefix]
        site.box.spawn(argv, site.dir / "bmc.log", {"LAB_BMC_PASSWORD": PASSWORD})
        wait_for(lambda: "ready" in (site.dir / "bmc.log").read_text(), 20, "the BMCs")
        yield site


@pytest.fixture(scope="module")
def agent(site):
    """ssh's agent with the lab's key: how a person's key is at hand."""
    key = rootfs.ssh_key(site.box.root)
    socket = site.dir / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        env = os.environ | {"SSH_AUTH_SOCK": str(socket)}
        # its socket is there before it listens
        wait_for(lambda: not subprocess.run(["ssh-add", "-q", str(key)], env=env).returncode, 10, "the agent")
        yield env | {"LAB_BMC_PASSWORD": PASSWORD}, key.with_suffix(".pub").read_text().strip()
    finally:
        agent.terminate()
        agent.wait(10)


def declared(site, public, **install):
    value = copy.deepcopy(LAB)
    _, dgx = value["config"]["ironburst:cluster"]["halls"][0]["nodes"]
    given = {
        "mark": "CHG-1",
        "medium": f"http://10.78.0.1:{PORT}/{{node}}-{{mark}}.iso",
        "allow_install": ["dgx01"],
        "disks": [disk_of("dgx01"), disk_of("dgx02")],
        "authorized_keys": [public],
        "known_hosts": str(site.dir / "known_hosts"),
        "mirror": "http://10.78.0.1/debian",
    }
    dgx["install"] = given | install
    dgx["bmc"]["password"] = "env:LAB_BMC_PASSWORD"
    stack = site.dir / "Pulumi.x.yaml"
    stack.write_text(yaml.safe_dump(value))
    return stack


def node(site, env, verb, stack, *words):
    argv = [*site.box.net_prefix(), sys.executable, "-m", "ironburst.cli", "node", verb, "dgx01", str(stack), *words]
    done = subprocess.run([*argv, "--json"], env=env, text=True, capture_output=True, timeout=180)
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def medium(site, env, stack):
    code, said, errors = node(site, env, "medium", stack, "--out", str(site.dir / "written"))
    assert code == 0, errors
    with tarfile.open(site.dir / "media" / said["medium"].rsplit("/", 1)[-1], "w") as tar:
        tar.add(said["folder"], ".")


@pytest.mark.lab
def test_from_declared_to_ready(site, agent):
    env, public = agent
    stack, host = declared(site, public), site.host("dgx01")
    medium(site, env, stack)
    assert host.state() == "off"
    code, said, errors = node(site, env, "wait", stack, "--timeout", "2m")
    assert (code, said.get("state"), said.get("installed")) == (0, "ready", "CHG-1"), (said, errors, host.console())
    note = json.loads(site.ssh("dgx01", "cat /etc/ironburst/install.json").stdout)
    assert note == {"node": "dgx01", "mark": "CHG-1", "serial": "LAB-DGX01", "disk": "LABDISK-DGX01"}
    site.ssh("dgx01", "touch /root/work")

    # off, and no record: the medium is started again, and its guard leaves the disk as it is
    host.stop()
    code, said, errors = node(site, env, "wait", stack, "--timeout", "2m")
    assert (code, said.get("state")) == (0, "ready"), (said, errors, host.console())
    assert ": already: " in host.console()
    site.ssh("dgx01", "test -e /root/work")

    # another mark, whose medium is for another disk: refused at the machine, and put away
    host.stop()
    stack = declared(site, public, mark="CHG-2", disks=["SOMEBODYS", disk_of("dgx02")])
    medium(site, env, stack)
    code, said, errors = node(site, env, "wait", stack, "--timeout", "5s")
    assert (code, said.get("state")) == (5, "failed"), (said, errors)
    assert "it has no disk 'SOMEBODYS'" in host.console()
