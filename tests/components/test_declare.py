"""The unmodified program on the lab's cloud and BMCs, through the lab's engine, on loopback: declare, again,
destroy.
"""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ironburst import document
from lab.aws import leftovers
from lab.aws.cloud import Cloud
from lab.aws.testing import client
from lab.bmc import Bmc
from lab.hosts.bmcs import machine_of

ROOT = Path(__file__).parents[2]
IMAGE = "ami-0ba5e0000000000a1"


class On:
    """A machine that is on, whatever one does."""

    def is_on(self):
        return True

    def start(self): ...

    def stop(self): ...

    def off(self): ...


@pytest.fixture
def cloud():
    cloud = Cloud()
    cloud.register_image("base", IMAGE)
    fields = (b"ssh-ed25519", bytes(32))
    encoded = base64.b64encode(b"".join(len(field).to_bytes(4) + field for field in fields))
    public = b"ssh-ed25519 " + encoded + b" lab"
    client(cloud.url).import_key_pair(KeyName="lab", PublicKeyMaterial=public)  # ssh.key_name of the stack
    yield cloud
    cloud.close()


@pytest.fixture
def bmcs():
    """node name -> its BMC's URL"""
    names = ("head", "dgx01", "dgx02")
    running = {name: Bmc(machine_of(name), On(), "secret-of-the-test", port=0) for name in names}
    for bmc in running.values():
        bmc.__enter__()
    yield {name: bmc.url for name, bmc in running.items()}
    for bmc in running.values():
        bmc.__exit__()


@pytest.fixture
def engine(tmp_path, cloud, bmcs):
    """`engine("up", ...)` -> its finished process: the lab's stack, moved to loopback."""
    project = tmp_path / "project"
    (project / "stacks").mkdir(parents=True)
    for name in ("Pulumi.yaml", "__main__.py", "components", "ironburst", "providers", ".venv"):
        (project / name).symlink_to(ROOT / name)
    stack = yaml.safe_load((ROOT / "stacks" / "Pulumi.lab.yaml").read_text())
    settings = stack["config"]
    settings["aws:endpoints"] = [dict.fromkeys(settings["aws:endpoints"][0], cloud.url)]
    hall = settings["ironburst:cluster"]["halls"][0]
    hall["bmc_cidr"] = "127.0.0.0/24"
    for nodes, names in zip(hall["nodes"], (["head"], ["dgx01", "dgx02"]), strict=True):
        nodes["bmc"] |= {"addresses": [bmcs[name] for name in names], "password": "env:TEST_BMC_PASSWORD"}
    (project / "stacks" / "Pulumi.lab.yaml").write_text(yaml.safe_dump(stack))
    (tmp_path / "state").mkdir()
    environment = {
        **os.environ,
        "PATH": f"{ROOT / 'lab/aws_plugin/bin'}:{os.environ['PATH']}",
        "PULUMI_BACKEND_URL": f"file://{tmp_path / 'state'}",
        "PULUMI_CONFIG_PASSPHRASE": "lab",
        "PYTHONPATH": str(ROOT),
        "TEST_BMC_PASSWORD": "secret-of-the-test",
    }

    def run(*arguments):
        command = [sys.executable, "-m", "lab.engine", *arguments, "--stack", "lab", "--non-interactive"]
        return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=300)

    return run


def done(process):
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_the_lab_is_declared_and_given_back(engine, cloud, tmp_path):
    done(engine("stack", "init"))
    before = leftovers.leftovers(cloud.url)
    planned = done(engine("preview"))
    assert "at worst 165.12 USD an hour" in planned
    assert leftovers.leftovers(cloud.url) == before  # a preview makes nothing

    done(engine("up", "--yes", "--skip-preview"))
    exported = json.loads(done(engine("stack", "output", "--json")))
    parsed = document.parse(exported["cluster"])
    assert [host.name for host in parsed.hosts] == ["head", "dgx01", "dgx02", "fixed-1"]
    assert parsed.host("fixed-1").address.startswith("10.90.")
    assert {zone.zone for zone in parsed.pool("p5").zones} == {"us-east-1a", "us-east-1b"}
    state = "".join(path.read_text() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert "fixed-1" in state and "secret-of-the-test" not in state

    done(engine("preview", "--expect-no-changes"))
    done(engine("destroy", "--yes", "--skip-preview"))
    assert leftovers.leftovers(cloud.url) == before
