"""A `destroy` with rented nodes up, on the aws stand-in with the real components: it stops at what the nodes hold, and
the controller can still end them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ironburst import document
from ironburst.adapters.aws.cloud import Aws
from ironburst.ports import Instance, LaunchRequest, Refused
from lab.aws.cloud import Cloud
from lab.aws.leftovers import leftovers
from lab.aws.testing import REGION, Clients
from lab.aws_plugin.harness import SERVICES
from lab.pulumi import binary
from tests.lab_cloud import allow_spot, assumed, user

ROOT = Path(__file__).parents[3]
# whichever EC2 is asked to delete first: what nodes lie in
HELD = re.compile(r"DependencyViolation|InvalidPlacementGroup\.InUse")
IMAGE = "ami-0ba5e0000000000a1"  # of the fixed node in stacks/Pulumi.lab.yaml
# the lab's declaration; its halls need BMCs, which are others' tests
PROGRAM = f"""
import pulumi
from datetime import UTC, datetime
from pathlib import Path
from components import cluster
from ironburst.config import stack
from ironburst.config.load import from_value, read_value
cluster.BareMetalNodes = lambda *_, **__: None
value = read_value(Path("{ROOT}/stacks/Pulumi.lab.yaml"))
if pulumi.Config().get_bool("removed"):
    value["cloud"]["pools"] = []
declared = stack.valid(from_value(value), Path("Pulumi.nobodys.yaml"), now=datetime(2026, 11, 21, tzinfo=UTC))
made = cluster.Cluster(declared.config.name, declared.config, declared.software)
pulumi.export("cluster", made.document)
pulumi.export("controller_role_arn", made.outputs["controller_role_arn"])
"""


@dataclass
class Stack:
    folder: Path
    cloud: Cloud

    def run(self, *verb: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **binary.environment(self.folder), "PYTHONPATH": str(ROOT)}
        command = [str(binary.path()), *verb, "--stack", "test", "--cwd", str(self.folder)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)

    def up(self) -> None:
        done = self.run("up", "--yes", "--skip-preview")
        assert done.returncode == 0, done.stdout + done.stderr

    def configure(self, **more: str) -> None:
        endpoints = json.dumps([dict.fromkeys(SERVICES, self.cloud.url)])
        settings = {"aws:region": REGION, "aws:endpoints": endpoints, **{f"plugin:{k}": v for k, v in more.items()}}
        lines = [f"  {key}: {value}\n" for key, value in settings.items()]
        (self.folder / "Pulumi.test.yaml").write_text("config:\n" + "".join(lines))

    def rights(self) -> list[str]:
        """Which of its policies the controller's role has."""
        iam = Clients(self.cloud.url)("iam")
        (role,) = [role["RoleName"] for role in iam.list_roles()["Roles"] if "controller" in role["RoleName"]]
        names = iam.list_role_policies(RoleName=role)["PolicyNames"]
        documents = [iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names]
        return sorted("ending" if "EndRented" in json.dumps(each) else "launching" for each in documents)

    def controller(self) -> tuple[Aws, LaunchRequest]:
        """The controller under its own role, and a launch that its document asks for."""
        outputs = json.loads(self.run("stack", "output", "--json").stdout)
        published, role = document.parse(outputs["cluster"]), outputs["controller_role_arn"]
        admin = Clients(self.cloud.url)
        statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": role}
        head = user(admin, "head", {"Version": "2012-10-17", "Statement": statement})
        pool = published.pools[0]
        zone = pool.zones[0]
        assert zone.place.launch_template_version == "1"
        request = LaunchRequest(
            token="ib-1",
            launch="l1",
            cluster=published.cluster,
            pool=pool.name,
            zone=zone.zone,
            market="on-demand",
            count=2,
            place=zone.place.model_dump(),
            image_id=IMAGE,
            user_data="{}",
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL", self.cloud.url)
            return Aws(REGION, assumed(Clients(self.cloud.url, head), role), read_timeout_s=5), request


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    cloud = Cloud(seed=1)
    allow_spot(Clients(cloud.url)("iam"))
    Clients(cloud.url)("ec2").create_key_pair(KeyName="lab")  # ssh.key_name of the stack
    cloud.register_image("", IMAGE)
    (tmp_path / "Pulumi.yaml").write_text("name: plugin\nruntime: {name: python}\n")
    (tmp_path / "__main__.py").write_text(PROGRAM)
    made = Stack(tmp_path, cloud)
    made.configure()
    assert made.run("stack", "init").returncode == 0
    try:
        yield made
    finally:
        cloud.close()


def living(aws: Aws) -> list[Instance]:
    return [instance for instance in aws.instances("lab") if instance.alive]


def test_a_destroy_with_nodes_up_stops_and_the_controller_can_still_end_them(stack: Stack) -> None:
    stack.up()
    assert stack.rights() == ["ending", "launching"]
    aws, request = stack.controller()
    nodes = aws.launch(request)
    stopped = stack.run("destroy", "--yes", "--skip-preview")
    assert stopped.returncode != 0 and HELD.search(stopped.stdout + stopped.stderr)
    assert stack.rights() == ["ending"]  # nothing new is rented while it goes
    assert {node.id for node in living(aws)} == {node.id for node in nodes}
    assert aws.terminate([node.id for node in nodes]) == {node.id for node in nodes}
    assert living(aws) == []
    again = stack.run("destroy", "--yes", "--skip-preview")
    assert again.returncode == 0, again.stdout + again.stderr
    assert leftovers(stack.cloud.url) == {"key pairs": ["lab"], "users": ["head"]}  # what was there before


@pytest.mark.slow
def test_a_pool_that_is_removed_with_nodes_up_can_still_be_given_back(stack: Stack) -> None:
    stack.up()
    aws, request = stack.controller()
    nodes = aws.launch(request)
    stack.configure(removed="true")
    stopped = stack.run("up", "--yes", "--skip-preview")  # its placement group holds the nodes
    assert stopped.returncode != 0 and "InvalidPlacementGroup.InUse" in stopped.stdout + stopped.stderr
    with pytest.raises(Refused):
        aws.launch(LaunchRequest(**{**vars(request), "token": "ib-2"}))
    assert {node.id for node in living(aws)} == {node.id for node in nodes}
    assert aws.terminate([node.id for node in nodes]) == {node.id for node in nodes}
    stack.up()
