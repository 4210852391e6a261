"""A whole program with a bare-metal node through the engine: preview, up, drift, refresh, destroy; and what the state
holds.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from lab.bmc import Fault, write_fault
from lab.pulumi import binary
from tests.contract.emulator import PASSWORD, serving

ROOT = Path(__file__).parents[2]
PROJECT = f"""name: metal
runtime: python
plugins:
  providers:
    - name: baremetal
      path: {ROOT}/providers/baremetal
"""
PROGRAM = """import os, pulumi
from components.bare_metal import Node

node = Node("dgx01", {
    "name": "dgx01", "bmcAddress": os.environ["BMC"], "bmcUsername": "admin", "passwordRef": "env:LAB_BMC_PASSWORD",
    "serial": "LAB-DGX01", "gpuModel": "H100 SXM5 80GB", "gpuCount": 8, "timeoutSeconds": 2,
})
pulumi.export("reachable", node.reachable)
pulumi.export("observed", node.observed)
"""


class Project:
    def __init__(self, folder, bmc, power):
        self.folder, self.bmc, self.power = folder, bmc, power
        self.said = ""

    def engine(self, *verb, code=0):
        environment = os.environ | {
            "PULUMI_BACKEND_URL": f"file://{self.folder}/state",
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PYTHONPATH": str(ROOT),
            "LAB_BMC_PASSWORD": PASSWORD,
            "BMC": self.bmc.url,
        }
        argv = [str(binary.path()), *verb, "--stack", "dev", "--non-interactive"]
        done = subprocess.run(argv, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60)
        self.said += done.stdout + done.stderr
        assert done.returncode == code, f"{verb}: exit {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def fault(self, **fault):
        write_fault(self.folder / "faults.json", "dgx01", Fault(**fault))

    def state(self):
        """The node's entry in the stack's state; empty without one."""
        stack = json.loads((self.folder / "state/.pulumi/stacks/metal/dev.json").read_text())
        resources = stack["checkpoint"]["latest"].get("resources") or []
        return next((each for each in resources if each["type"] == "baremetal:index:Node"), {})

    def requests(self):
        log = self.folder / "requests.jsonl"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def project(tmp_path):
    (tmp_path / "Pulumi.yaml").write_text(PROJECT)
    (tmp_path / "__main__.py").write_text(PROGRAM)
    (tmp_path / "state").mkdir()
    with serving(tmp_path) as (bmc, power):
        made = Project(tmp_path, bmc, power)
        made.engine("stack", "init")
        yield made
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert files and not [path for path in files if PASSWORD.encode() in path.read_bytes()]
    assert PASSWORD not in made.said


def test_a_node_from_refusal_to_destroy(project):
    project.engine("preview")
    assert project.requests() == []
    project.fault(hardware={"gpus": 7, "serial": "LAB-DGX02"})
    project.engine("up", "--yes", "--skip-preview", code=1)
    assert "2 things not as declared" in project.said and "'LAB-DGX02'" in project.said
    assert "Traceback" not in project.said
    assert project.state() == {}

    project.fault()
    project.engine("up", "--yes", "--skip-preview")
    assert project.state()["outputs"]["observed"]["gpus"] == [{"model": "NVIDIA H100 80GB HBM3", "count": 8}]

    project.fault(answer="reset")
    project.engine("refresh", "--yes", "--skip-preview")
    assert "what was known of the node is kept" in project.said and project.state()["outputs"]["reachable"] is False
    project.engine("preview", "--expect-no-changes")

    project.fault(hardware={"gpus": 7})
    looked = json.loads(project.engine("refresh", "--preview-only", "--json", "--expect-no-changes", code=7))
    (changed,) = [step for step in looked["steps"] if step["op"] == "update"]
    assert changed["detailedDiff"]["drift"]["kind"] == "add"  # that the next `up` would delete it is the CLI's inside
    project.engine("destroy", "--yes", "--skip-preview")
    assert project.power.on and project.state() == {}
