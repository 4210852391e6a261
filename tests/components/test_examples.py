"""The example stacks on the lab's AWS: as they stand in stacks/ they preview in an account that has what they name, and
they come up and go.
"""

import json
from contextlib import ExitStack

import pytest
import yaml

from ironburst import document
from ironburst.nodes.ranges import expand
from lab.aws import leftovers
from lab.aws.cloud import Cloud
from lab.aws.testing import client
from lab.bmc import Bmc, Machine
from tests.components.projects import ROOT, done, project
from tests.contract.emulator import MemoryPower
from tests.lab_cloud import allow_spot

BMC_PASSWORD = "secret-of-the-test"
SERVICES = ("budgets", "directconnect", "ec2", "events", "iam", "sqs", "ssm", "sts")


@pytest.fixture
def cloud():
    """An account with what the examples name and ironburst doesn't make."""
    cloud = Cloud()
    cloud.register_image("base", "ami-0123456789abcdef0", root_gb=30)
    allow_spot(client(cloud.url, "iam"))
    for name in ("prod", "staging"):
        secrets = client(cloud.url, "secretsmanager")
        secrets.create_secret(Name=f"{name}/bmc", SecretString=BMC_PASSWORD)
        secrets.create_secret(Name=f"{name}/munge-key", SecretString="made-up")
    yield cloud
    cloud.close()


@pytest.fixture
def example(tmp_path, cloud):
    """`example(name, change)`: its engine, with the lab's endpoints, and `change(declaration)`."""

    def start(name, change=lambda declared: None):
        variables = {"AWS_ACCESS_KEY_ID": "lab", "AWS_SECRET_ACCESS_KEY": "lab"}
        run = project(tmp_path, name, AWS_ENDPOINT_URL=cloud.url, **variables)
        stacks = tmp_path / "project/stacks"
        (stacks / f"{name}.lock.yaml").symlink_to(ROOT / f"stacks/{name}.lock.yaml")
        stack = yaml.safe_load((ROOT / f"stacks/Pulumi.{name}.yaml").read_text())
        stack["config"]["aws:endpoints"] = [dict.fromkeys(SERVICES, cloud.url)]
        change(stack["config"]["ironburst:cluster"])
        (stacks / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump(stack))
        done(run("stack", "init"))
        return run

    return start


@pytest.mark.parametrize("name", ["prod", "staging"])
def test_an_example_previews_as_it_stands(example, cloud, name):
    run, before = example(name), leftovers.leftovers(cloud.url)
    planned = run("preview")
    assert "at worst" in done(planned)
    said = (planned.stdout + planned.stderr).splitlines()
    plugin = "using pulumi-resource-aws from $PATH"  # the lab's stand-in
    warned = [line for line in said if "warning:" in line and plugin not in line]
    assert warned == []
    assert leftovers.leftovers(cloud.url) == before


@pytest.mark.parametrize("name", [pytest.param("prod", marks=pytest.mark.slow), "staging"])
def test_an_example_comes_up_and_goes(example, cloud, name, tmp_path):
    made = client(cloud.url, "directconnect").create_direct_connect_gateway(directConnectGatewayName="hall-a")
    with ExitStack() as running:

        def adapt(declared):
            """BMCs on loopback, and the gateway that this account has."""
            (hall,) = declared["halls"]
            hall["bmc_cidr"] = "127.0.0.0/24"
            for nodes in hall["nodes"]:
                names = expand(nodes["names"])
                gpus = 0 if nodes.get("role") == "head" else 8
                macs = ("52:54:00:00:00:01",)
                machines = [
                    Machine(each, f"SN-{each}", f"uuid-{each}", macs, gpus=gpus, height_u=nodes.get("height", 8))
                    for each in names
                ]
                bmcs = [running.enter_context(Bmc(each, MemoryPower(), BMC_PASSWORD, port=0)) for each in machines]
                nodes["bmc"] |= {"addresses": [bmc.url for bmc in bmcs], "username": "admin"}
            link = declared["cloud"]["network"]["hall_link"]
            if link["kind"] == "direct-connect":
                link["gateway_id"] = made["directConnectGateway"]["directConnectGatewayId"]

        run = example(name, adapt)
        before = leftovers.leftovers(cloud.url)
        done(run("up", "--yes", "--skip-preview"))
        parsed = document.parse(json.loads(done(run("stack", "output", "--json")))["cluster"])
        assert {host.role for host in parsed.hosts} >= {"head", "gpu"} and parsed.pools
        state = "".join(path.read_text() for path in (tmp_path / "state").rglob("*") if path.is_file())
        assert parsed.pools[0].zones[0].place.launch_template_id in state and BMC_PASSWORD not in state
        done(run("preview", "--expect-no-changes"))
        done(run("destroy", "--yes", "--skip-preview"))
        assert leftovers.leftovers(cloud.url) == before
