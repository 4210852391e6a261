"""A stack in AWS and Google Cloud under Pulumi's mocks: each room makes what it makes alone, for one document."""

import re

import pulumi
import pytest

from components.cluster import Cluster
from ironburst import document
from tests.components.conftest import valid
from tests.components.google_stack import MUNGE_KEY, cloud


@pytest.fixture(autouse=True)
def _secret(monkeypatch):
    monkeypatch.setenv("HALL_KEY", "k3y-of-the-hall")


@pytest.fixture
def both(value):
    other = cloud()
    other["network"]["cidr"], other["groups"][0]["name"] = "10.91.0.0/16", "g-fixed"
    other["secrets"] = {value["scheduler"]["munge_key"]: MUNGE_KEY}
    other["groups"][0]["count"], value["budget"]["total_usd_per_month"] = 1, 60000.0
    value["other_clouds"] = [other]
    return value


def test_each_cloud_has_what_it_has_alone(cluster, both):
    first, second = both["cloud"], both["other_clouds"]
    recording = cluster(both)
    key = both["scheduler"]["munge_key"]
    alone = []
    for its, munge_key in ((first, key), (second[0], MUNGE_KEY)):
        own = {name: each for name, each in both.items() if name != "other_clouds"}
        own |= {"cloud": {k: v for k, v in its.items() if k != "secrets"}}
        own["scheduler"] = own["scheduler"] | {"munge_key": munge_key}
        alone.append({(each.token, each.name): each.inputs for each in cluster(own, True).resources})
    made = {(each.token, each.name): each.inputs for each in recording.resources}
    rented = {key for key in made if key[0].startswith(("aws:", "gcp:"))}
    assert rented == {key for each in alone for key in each if key[0].startswith(("aws:", "gcp:"))}
    assert all(made[key] == {**alone[0], **alone[1]}[key] for key in rented)


def test_one_document_has_the_pools_of_both_and_each_pool_its_clouds_secret(cluster, both):
    published = document.parse(cluster(both).result)
    assert [each.provider for each in published.clouds] == ["aws", "google"]
    assert {pool.provider for pool in published.pools} == {"aws", "google"}
    key = both["scheduler"]["munge_key"]
    for pool in published.pools:
        there = published.in_cloud(pool)
        assert there.scheduler.munge_key == (MUNGE_KEY if pool.provider == "google" else key)
        assert there.region == ("us-central1" if pool.provider == "google" else "us-east-1")
    whose = {host.name: host.provider for host in published.hosts if host.kind == "cloud"}
    assert whose["g-fixed-1"] == "google" and set(whose.values()) == {"", "google"}


def test_what_both_give_out_is_one_output(run, both):
    stack = valid(both)
    made = run(lambda: pulumi.Output.all(**Cluster("lab", stack.config, stack.software).outputs))
    outputs = made.result
    assert len(outputs["hall_tunnels"]) == 4 and outputs["controller_account"] and outputs["controller_role_arn"]
    assert any(told.startswith("google: burst pool l4") for told in outputs["estimates"])
    assert any(told.startswith("aws: burst pool p5") for told in outputs["estimates"])


def test_what_the_account_of_a_second_cloud_lacks_has_its_place(run, both, monkeypatch):
    """Of a key in a sentence, and of a finding."""
    stack, path = valid(both), "config.ironburst:cluster.cloud.pools[0].zones"

    def lacking(cloud):
        raise pulumi.RunError(f"gcp:project and cloud.project ({cloud.project}) differ; {path}: no such zone")

    monkeypatch.setattr("components.google.cloud.check", lacking)
    there = path.replace("cloud", "other_clouds[0]")
    with pytest.raises(
        pulumi.RunError, match=re.escape(f"and other_clouds[0].project (gpu-prod-4711) differ; {there}:")
    ):
        run(lambda: Cluster("lab", stack.config, stack.software))
