"""A whole program with a bare-metal node through the pulumi CLI: preview, up, drift, refresh, destroy; what the state
holds; and what ironburst/adapters/pulumi.py makes of it.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from ironburst.adapters.pulumi import Pulumi, PulumiError
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

    @property
    def environment(self):
        return {
            **binary.environment(self.folder),
            "PYTHONPATH": str(ROOT),
            "LAB_BMC_PASSWORD": PASSWORD,
            "BMC": self.bmc.url,
        }

    def pulumi(self, **more):
        return Pulumi(self.folder, "dev", [str(binary.path())], self.environment, **more)

    def engine(self, *verb, code=0):
        environment = os.environ | self.environment
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


def test_a_stack_by_the_adapter(project):
    events = []
    pulumi = project.pulumi(progress=events.append)
    pulumi.stack_init()  # it is there
    (project.folder / "__main__.py").write_text(PROGRAM + 'pulumi.export("s", pulumi.Output.secret("x"))\n')
    plan = pulumi.preview()
    assert plan.changes == {"create": 2} and plan.changed and {step["op"] for step in plan.steps} == {"create"}
    assert pulumi.up().changes == {"create": 2}
    assert any(e.get("resOutputsEvent", {}).get("metadata", {}).get("urn", "").endswith("::dgx01") for e in events)
    assert (pulumi.outputs()["reachable"], pulumi.outputs()["s"]) == (True, "[secret]")
    assert pulumi.outputs(show_secrets=True)["s"] == "x"
    project.fault(hardware={"gpus": 7})
    assert pulumi.refresh(preview_only=True).changed
    assert pulumi.export()["deployment"]["resources"]
    assert pulumi.destroy().changes == {"delete": 2} and project.state() == {}
    assert pulumi.stack_exists()


def test_an_error_by_the_adapter_names_the_resource_and_its_reason(project):
    project.fault(hardware={"gpus": 7})
    with pytest.raises(PulumiError, match=r"`up` of stack dev failed .*: baremetal:index:Node dgx01: ") as failure:
        project.pulumi().up()
    assert failure.value.code and failure.value.diagnostics[0]["urn"].endswith("::dgx01")
    assert str(failure.value).endswith("the BMC reports 7 x NVIDIA H100 80GB HBM3")
    (project.folder / "__main__.py").write_text('import pulumi\nraise pulumi.RunError("hall-a has no rack r9")\n')
    with pytest.raises(PulumiError, match="hall-a has no rack r9"):
        project.pulumi().preview()
    (project.folder / "__main__.py").write_text("import nowhere_at_all\n")
    with pytest.raises(PulumiError, match="No module named 'nowhere_at_all'"):
        project.pulumi().preview()
    with pytest.raises(PulumiError, match="no stack named"):
        Pulumi(project.folder, "none", [str(binary.path())], project.environment).up()
    with pytest.raises(PulumiError, match="'no-such-command' is not there"):
        Pulumi(project.folder, "dev", ["no-such-command"]).preview()


def test_an_interrupted_caller_takes_the_command_with_it(project):
    def stop(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        project.pulumi(progress=stop).up()
    assert not list((project.folder / "state").rglob("locks/**/*.json"))


SECOND = """
Node("dgx02", {
    "name": "dgx02", "bmcAddress": os.environ["BMC"], "bmcUsername": "admin", "passwordRef": "env:LAB_BMC_PASSWORD",
    "serial": "LAB-DGX01",
}, pulumi.ResourceOptions(depends_on=[node]))
"""


@pytest.mark.parametrize("checkpoints", [True, False])
def test_an_up_that_is_killed_in_the_middle_loses_only_what_the_next_one_reads_again(project, checkpoints):
    """The first node is there, the second is being read. Without checkpoints (docs/adr/0125) the first is forgotten,
    too; nothing was done to either, and the next `up` ends as one that nobody killed.
    """
    (project.folder / "__main__.py").write_text(PROGRAM + SECOND)
    without = {} if checkpoints else {"PULUMI_SKIP_CHECKPOINTS": "true"}
    command = [str(binary.path()), "up", "--yes", "--skip-preview", "--stack", "dev", "--non-interactive", "--json"]
    environment = os.environ | project.environment | without
    with subprocess.Popen(command, cwd=project.folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            made = json.loads(line).get("resOutputsEvent", {}).get("metadata", {})
            if made.get("urn", "").endswith("::dgx01"):
                project.fault(answer="drip", path="Systems")
            if json.loads(line).get("resourcePreEvent", {}).get("metadata", {}).get("urn", "").endswith("::dgx02"):
                process.kill()
    assert bool(project.state()) == checkpoints
    project.fault()
    project.engine("cancel", "--yes")
    project.engine("up", "--yes", "--skip-preview")
    assert project.state()["outputs"]["accepted"]
    project.engine("preview", "--expect-no-changes")
    asked = [json.loads(line) for line in project.requests()]
    assert {each["method"] for each in asked if "Sessions" not in each["path"]} == {"GET"}
    assert project.power.on and project.power.calls == []
