"""The aws stand-in under the pulumi CLI, found on PATH, with an ordinary program of pulumi-aws."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.aws.cloud import Cloud
from lab.aws_plugin.harness import SERVICES
from lab.pulumi import binary

ROOT = Path(__file__).parents[3]
PROGRAM = """
import pulumi, pulumi_aws as aws
vpc = aws.ec2.Vpc("net", cidr_block="10.90.0.0/16")
subnet = aws.ec2.Subnet("a", vpc_id=vpc.id, cidr_block="10.90.1.0/24")
everything = {"protocol": "-1", "from_port": 0, "to_port": 0, "self": True}
group = aws.ec2.SecurityGroup("efa", vpc_id=vpc.id, description="nodes", ingress=[everything])
nics = [{"deviceIndex": min(i, 1), "networkCardIndex": i, "%s": "efa" if i == 0 else "efa-only",
         "subnetId": subnet.id, "securityGroups": [group.id], "deleteOnTermination": "true"} for i in range(2)]
template = aws.ec2.LaunchTemplate("node", instance_type="p5.48xlarge", network_interfaces=nics)
launch = {"id": template.id, "version": template.latest_version.apply(str)}
node = aws.ec2.Instance("fixed-1", ami=aws.ssm.get_parameter(name="/image").value, launch_template=launch,
                        opts=pulumi.ResourceOptions(additional_secret_outputs=["privateDns"]))
pulumi.export("subnet", node.subnet_id)
pulumi.export("address", node.private_ip)
pulumi.export("dns", node.private_dns)
"""


@dataclass
class Stack:
    folder: Path
    cloud: Cloud

    def write(self, interface_type: str) -> None:
        (self.folder / "__main__.py").write_text(PROGRAM % interface_type)

    def run(self, *verb: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **binary.environment(self.folder), "PYTHONPATH": str(ROOT)}
        command = [str(binary.path()), *verb, "--stack", "test", "--cwd", str(self.folder)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    cloud = Cloud(seed=1)
    image = cloud.register_image("/images/one")
    from lab.aws.testing import client

    client(cloud.url, "ssm").put_parameter(Name="/image", Type="String", Value=image)
    (tmp_path / "Pulumi.yaml").write_text("name: plugin\nruntime: {name: python}\n")
    endpoints = json.dumps([dict.fromkeys(SERVICES, cloud.url)])
    (tmp_path / "Pulumi.test.yaml").write_text(f"config:\n  aws:region: us-east-1\n  aws:endpoints: {endpoints}\n")
    made = Stack(tmp_path, cloud)
    assert made.run("stack", "init").returncode == 0
    try:
        yield made
    finally:
        cloud.close()


def test_a_program_lives_and_dies(stack: Stack) -> None:
    stack.write("interfaceTyp")
    refused = stack.run("preview")
    assert refused.returncode == 1
    assert "networkInterfaces[0].interfaceTyp" in refused.stdout + refused.stderr
    assert {action for action, _ in stack.cloud.calls} <= {"PutParameter", "GetParameter"}

    stack.write("interfaceType")
    up = stack.run("up", "--yes", "--skip-preview")
    assert up.returncode == 0, up.stdout + up.stderr
    assert "stand-in of the ironburst lab for the aws plugin" in up.stdout + up.stderr
    outputs = json.loads(stack.run("stack", "output", "--json").stdout)
    (instance,) = stack.cloud.backend.all_instances()
    expected = (instance.subnet_id, instance.private_ip, "[secret]")
    assert (outputs["subnet"], outputs["address"], outputs["dns"]) == expected

    again = stack.run("refresh", "--yes", "--skip-preview", "--expect-no-changes")
    assert again.returncode == 0, again.stdout + again.stderr
    again = stack.run("preview", "--expect-no-changes")
    assert again.returncode == 0, again.stdout + again.stderr

    assert stack.run("destroy", "--yes", "--skip-preview").returncode == 0
    assert instance.state == "terminated"
    assert "10.90.0.0/16" not in [v.cidr_block for v in stack.cloud.backend.vpcs.values()]
