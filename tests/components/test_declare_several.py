"""The program on the example of several clouds, with Azure as a third, through the pulumi CLI and the stand-ins of
three plugins, on loopback: what a preview says it costs, up, a preview without a change, a launch into each cloud, a
destroy that leaves nothing. The owned nodes are left out.
"""

import csv
import json
import re

import pytest
import yaml

from ironburst import cli, document
from ironburst.config.load import read_value
from lab.aws import leftovers
from lab.aws.cloud import Cloud as Aws
from lab.aws.testing import client
from tests import azure_stack
from tests.components import test_declare_azure as azures
from tests.components import test_declare_google as googles
from tests.components.projects import ROOT, cloud_project, done
from tests.components.test_declare import IMAGE, launched
from tests.lab_cloud import allow_spot

LAB = ROOT / "stacks/Pulumi.lab.yaml"
EXAMPLE = ROOT / "stacks/Pulumi.clouds.yaml"
MUNGE_KEY = "azure-keyvault:lab-vault/munge-key"
PRICES = {
    "p5": ("aws_instance_types", "od_usd_h_us_east_1"),
    "a3": ("google_machine_types", "usd_on_demand"),
    "t4": ("azure_sizes", "usd_on_demand"),
}
"""pool: the table of its type, and the column of the dearest of its markets"""

google, azure = googles.world, azures.world


@pytest.fixture
def aws():
    world = Aws()
    world.register_image("base", IMAGE, root_gb=30)
    allow_spot(client(world.url, "iam"))
    yield world
    world.close()


@pytest.fixture
def engine(tmp_path, aws, google, azure):
    """`engine(first)` -> the CLI on a stack whose first cloud is that one."""

    def of(first):
        value = read_value(EXAMPLE)
        key, others = value["scheduler"]["munge_key"], value.pop("other_clouds")
        third = azure_stack.cloud() | {"secrets": {key: MUNGE_KEY}}
        third["network"]["cidr"], third["pools"] = "10.54.0.0/16", third["pools"][1:]
        del third["groups"], third["price"]
        clouds = {"aws": value["cloud"], "google": others[0], "azure": third}
        for link in (clouds[name]["network"]["hall_link"] for name in ("google", "azure")):
            link["shared_secret"] = "env:HALL_KEY"
        value |= {"name": "lab", "cloud": clouds.pop(first), "other_clouds": [*clouds.values()]}
        value["ssh"] = {"cloud_user": "ironburst"}
        settings = {
            key: its for key, its in yaml.safe_load(LAB.read_text())["config"].items() if key.startswith("aws:")
        }
        settings["aws:endpoints"] = [dict.fromkeys(settings["aws:endpoints"][0], aws.url)]
        settings |= {"gcp:project": google.project, "gcp:region": "us-central1"}
        settings |= {"gcp:computeCustomEndpoint": google.url_of_api}
        settings |= {"azure-native:subscriptionId": azures.SUBSCRIPTION}
        settings |= {"azure-native:metadataHost": azure.url.removeprefix("http://")}
        return cloud_project(tmp_path, settings, value, HALL_KEY="k3y-of-the-hall")

    return of


def by_the_catalogue(clouds):
    """Pool: dollars an hour at worst, nodes times the dearest price of their markets, which is that on demand."""
    found = {}
    for pool in (pool for cloud in clouds for pool in cloud["pools"]):
        table, column = PRICES[pool["name"]]
        lines = (ROOT / f"ironburst/catalog/data/{table}.csv").read_text().splitlines()
        rows = csv.reader(line for line in lines if not line.startswith("#"))
        where = next(rows).index(column)
        usd = next(float(row[where]) for row in rows if row[0] == pool["instance_type"])
        found[pool["name"]] = round(pool["max_nodes"] * usd, 2)
    return found


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("aws", "azure")]


@pytest.mark.parametrize("first", ["google", *SLOW])
def test_a_stack_in_three_clouds_is_declared_launched_into_and_taken_away(engine, aws, google, azure, first, capsys):
    run = engine(first)
    done(run("stack", "init"))
    before = leftovers.leftovers(aws.url)
    preview = run.folder / "preview.json"
    preview.write_text(done(run("preview", "--json")))
    said = done(run("preview"))
    declared = read_value(run.folder / "project/stacks/Pulumi.lab.yaml")
    worst = by_the_catalogue([declared["cloud"], *declared["other_clouds"]])
    assert googles.worst_cases(said) == worst and set(worst) == set(PRICES)
    assert cli.main(["plan", str(run.folder / "project/stacks/Pulumi.lab.yaml"), "--preview", str(preview)]) == 0
    rows = capsys.readouterr().out
    assert all(f"| {name} network |" in rows for name in ("aws", "google", "azure"))
    (month,) = re.findall(r"would cost ([\d,]+) if all ran all the time", rows)
    assert float(month.replace(",", "")) == pytest.approx(730 * sum(worst.values()), abs=5)  # of cents
    assert leftovers.leftovers(aws.url) == before and google.declared.ids() == set() == azure.declared.ids()

    done(run("up", "--yes", "--skip-preview"))
    done(run("preview", "--expect-no-changes"))
    done(run("refresh", "--yes", "--expect-no-changes"))
    made = document.parse(json.loads(done(run("stack", "output", "cluster", "--json"))))
    assert {pool.name: pool.provider for pool in made.pools} == {"p5": "aws", "a3": "google", "t4": "azure"}

    rented = launched(aws, made.pool("p5").zones[0].place.launch_template_id)
    in_google = googles.launch(google, run, pool="a3")
    in_azure = azures.launch(azure, run)
    stopped = run("destroy", "--yes", "--skip-preview")
    assert stopped.returncode, "rented nodes hold their networks"
    client(aws.url).terminate_instances(InstanceIds=[rented])
    googles.port(google).terminate([node.id for node in in_google])
    azures.port(azure).terminate([node.id for node in in_azure])
    google.passes(1)
    azure.passes(1)
    done(run("destroy", "--yes", "--skip-preview"))
    assert leftovers.leftovers(aws.url) == before and google.declared.ids() == set() == azure.declared.ids()
    assert google.vms == {} == google.disks and azure.left_over() == {}
