"""Renting and baking in a company's account: its organization refuses launches without a cost centre, and controller
and bakers have our policies alone. Through the adapters, against the lab's AWS, which enforces both.
"""

import json

import pytest

from ironburst.adapters.aws.cloud import Aws
from ironburst.adapters.aws.images import AwsImages
from ironburst.config.aws import policies
from ironburst.ports import Refused
from ironburst.ports.images import Build
from lab.aws.organization import no_launch_without
from lab.aws.testing import REGION
from tests.components.rights_account import FOREIGN, P5, WHERE, Site
from tests.lab_cloud import assumed, clients, server

__all__ = ["clients", "server"]
TAGS = {"CostCenter": "4711", "owner": "platform"}


@pytest.fixture(scope="module")
def site(server, clients):
    return Site(server, clients)


@pytest.fixture
def company(site, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", site.cloud.url)
    site.cloud.organization[:] = [no_launch_without("CostCenter")]
    site.give("launching")
    site.give("baking")
    yield site
    site.cloud.organization.clear()


def request(site, market, tags):
    place = {"launch_template_id": site.template, "launch_template_version": "1", "subnet_id": site.subnet}
    return site.request(market=market, place=place | ({"tags": tags} if tags else {}))


@pytest.mark.parametrize("market", ["on-demand", "spot"])
def test_a_rent_has_the_organizations_tags_on_all_that_it_makes(company, market):
    aws = Aws(REGION, assumed(company.clients, company.roles["launching"]), read_timeout_s=5)
    (made,) = aws.launch(request(company, market, TAGS))
    ec2 = company.clients("ec2")
    (raw,) = ec2.describe_instances(InstanceIds=[made.id])["Reservations"][0]["Instances"]
    volume = raw["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]
    card = raw["NetworkInterfaces"][0]["NetworkInterfaceId"]
    for resource in (made.id, volume, card):
        found = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [resource]}])["Tags"]
        assert TAGS.items() <= {tag["Key"]: tag["Value"] for tag in found}.items(), resource


def test_a_rent_without_them_is_refused_in_one_sentence_that_says_what_to_do(company):
    aws = Aws(REGION, assumed(company.clients, company.roles["launching"]), read_timeout_s=5)
    with pytest.raises(Refused) as refused:
        aws.launch(request(company, "on-demand", {}))
    said = str(refused.value)
    assert "with an explicit deny in a service control policy: if that policy asks for tags, declare them" in said
    assert "Encoded" not in said and "\n" not in said and len(said) < 400


def build(site, tags):
    return Build(
        cluster="lab",
        pool="p5",
        instance_type=P5,
        place={"subnet_id": site.subnet, "launch_template_id": site.template} | ({"tags": tags} if tags else {}),
        security_groups=(site.group,),
        base_image=FOREIGN,
        root_device="/dev/sda1",
        root_gb=30,
        token=f"image-{next(site.numbers)}",
    )


def test_a_bake_has_them_on_build_image_and_snapshot(company):
    images = AwsImages(REGION, assumed(company.clients, company.roles["baking"]))
    asked = build(company, TAGS)
    instance = images.launch(asked)
    company.cloud.settle()
    images.stop(instance)
    company.cloud.settle()
    image = images.create(asked, instance, f"baked-{next(company.numbers)}", {"ironburst:driver": "580"})
    company.cloud.settle()
    ec2 = company.clients("ec2")
    (raw,) = ec2.describe_images(ImageIds=[image])["Images"]
    snapshot = raw["BlockDeviceMappings"][0]["Ebs"]["SnapshotId"]
    for resource in (instance, image, snapshot):
        found = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [resource]}])["Tags"]
        assert TAGS.items() <= {tag["Key"]: tag["Value"] for tag in found}.items(), resource
    images.end([instance])
    with pytest.raises(Refused, match="declare them under cloud"):
        images.launch(build(company, {}))


def test_within_a_boundary_the_controller_may_what_both_allow(company):
    """A boundary with room for our policies changes nothing; a narrower one counts."""
    written = [policies.ending(WHERE, "lab"), company.documents["launching"]]
    actions = sorted({action for each in written for statement in each["Statement"] for action in statement["Action"]})
    iam = company.iam
    boundaries = {}
    for name, allowed in (("wide", actions), ("narrow", [each for each in actions if "RunInstances" not in each])):
        document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": allowed, "Resource": "*"}]}
        boundaries[name] = iam.create_policy(PolicyName=name, PolicyDocument=json.dumps(document))["Policy"]["Arn"]
    aws = Aws(REGION, assumed(company.clients, company.roles["launching"]), read_timeout_s=5)
    iam.put_role_permissions_boundary(RoleName="own-launching", PermissionsBoundary=boundaries["wide"])
    assert aws.launch(request(company, "on-demand", TAGS))
    iam.put_role_permissions_boundary(RoleName="own-launching", PermissionsBoundary=boundaries["narrow"])
    with pytest.raises(Refused, match="no permissions boundary allows the ec2:RunInstances action"):
        aws.launch(request(company, "on-demand", TAGS))
    iam.delete_role_permissions_boundary(RoleName="own-launching")
