"""What the account lacks is said before anything is made."""

import pulumi
import pytest

from tests.components.conftest import ACCOUNT

BUCKET, OBJECTS = "aws:s3/getBucket:getBucket", "aws:s3/getObjects:getObjects"
OFFERINGS, IMAGE, ROLES = (
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings",
    "aws:ec2/getAmi:getAmi",
    "aws:iam/getRoles:getRoles",
)


@pytest.fixture
def refused(cluster, value, monkeypatch):
    """`refused(token, answer)` -> what the program says of a declaration where the account answers so."""

    def build(*answers):
        for token, answer in answers:
            monkeypatch.setitem(ACCOUNT, token, answer)
        with pytest.raises(pulumi.RunError) as said:
            cluster(value, again=True)
        return str(said.value).replace("config.ironburst:cluster.", "").splitlines()

    return build


OURS = "123456789012"


def offered(*zones):
    return lambda _args: {"instanceTypes": ["p5.48xlarge"] * len(zones), "locations": list(zones)}


def test_a_zone_without_the_type_names_the_zones_that_have_it(refused):
    here = "zones of this account that have it: us-east-1b, us-east-1c"
    assert refused((OFFERINGS, offered("us-east-1c", "us-east-1b"))) == [
        f"cloud.groups[0].zone: EC2 offers no p5.48xlarge in us-east-1a; {here}",
        f"cloud.pools[0].zones[0]: EC2 offers no p5.48xlarge in us-east-1a; {here}",
    ]


def test_a_region_without_the_type(refused):
    assert refused((OFFERINGS, offered()))[0].endswith("EC2 offers no p5.48xlarge in us-east-1a; us-east-1 has none")


def test_a_zone_without_one_of_several_types_is_a_warning(cluster, value, monkeypatch):
    value["cloud"]["pools"][0] |= {"instance_types": ["g6e.12xlarge", "g6e.24xlarge"]}
    del value["cloud"]["pools"][0]["instance_type"]
    rows = [("g6e.12xlarge", "us-east-1a"), ("g6e.24xlarge", "us-east-1a"), ("g6e.24xlarge", "us-east-1b")]
    rows += [("p5.48xlarge", "us-east-1a")]
    monkeypatch.setitem(
        ACCOUNT, OFFERINGS, lambda _: {"instanceTypes": [row[0] for row in rows], "locations": [row[1] for row in rows]}
    )
    warned = []
    monkeypatch.setattr(pulumi.log, "warn", lambda message, *_, **__: warned.append(message))
    cluster(value, again=True)
    (said,) = [each for each in warned if "offers no" in each]
    assert said.endswith(
        "cloud.pools[0].zones[1]: EC2 offers no g6e.12xlarge in us-east-1b; zones of this account that have it: "
        "us-east-1a; only g6e.24xlarge can be rented there"
    )


def test_a_zone_without_any_of_several_types_is_an_error(refused, value):
    value["cloud"]["pools"][0] |= {"instance_types": ["g6e.12xlarge", "g6e.24xlarge"]}
    del value["cloud"]["pools"][0]["instance_type"]
    assert [line.split(";")[0] for line in refused((OFFERINGS, offered("us-east-1a")))] == [
        f"cloud.pools[0].zones[{z}]: EC2 offers no {name} in us-east-1{letter}"
        for z, letter in enumerate("ab")
        for name in ("g6e.12xlarge", "g6e.24xlarge")
    ]


def test_a_root_disk_below_the_images(refused, value):
    value["cloud"]["groups"][0]["root_disk_gb"] = 29
    image = value["cloud"]["groups"][0]["image"]
    assert refused() == [
        f"cloud.groups[0].root_disk_gb: 29 GiB is less than the root volume of {image}: write 30 or more"
    ]


def test_spot_without_the_accounts_spot_role(refused):
    (said,) = refused((ROLES, lambda _args: {"names": [], "arns": []}))
    assert said.startswith("cloud.pools[0].markets: spot needs the role AWSServiceRoleForEC2Spot")
    assert said.endswith("aws iam create-service-linked-role --aws-service-name spot.amazonaws.com")


def test_everything_that_is_missing_is_said_at_once(refused, value):
    value["cloud"]["groups"][0]["root_disk_gb"] = 29
    assert len(refused((OFFERINGS, offered("us-east-1b")), (ROLES, lambda _args: {"names": [], "arns": []}))) == 4


def test_without_spot_nobody_asks_for_the_role(cluster, value, monkeypatch):
    value["cloud"]["pools"][0]["markets"] = ["on-demand"]
    monkeypatch.setitem(ACCOUNT, ROLES, lambda _args: pytest.fail("asked"))
    cluster(value, again=True)


@pytest.mark.parametrize(
    ("owner", "accepts", "told"), [("999999999999", "disable", 1), ("999999999999", "enable", 0), (OURS, "disable", 0)]
)
def test_a_gateway_whose_owner_has_to_accept_is_told(cluster, value, monkeypatch, owner, accepts, told):
    link = {"kind": "transit-gateway", "hall": "hall-a", "gateway_id": "tgw-0123456789abcdef0"}
    value["cloud"]["network"]["hall_link"] = link
    answer = {"ownerId": owner, "autoAcceptSharedAttachments": accepts, "id": link["gateway_id"]}
    token = "aws:ec2transitgateway/getTransitGateway:getTransitGateway"
    monkeypatch.setitem(ACCOUNT, token, lambda _args: answer)
    warned = []
    monkeypatch.setattr(pulumi.log, "warn", lambda message, *_, **__: warned.append(message))
    cluster(value, again=True)
    assert len([each for each in warned if "has to accept the attachment" in each]) == len(warned) == told


def test_what_may_not_be_asked_stops_nothing_and_is_said(cluster, value, monkeypatch):
    def refuse(_args):
        raise ValueError("UnauthorizedOperation")

    warned = []
    monkeypatch.setattr(pulumi.log, "warn", lambda message, *_, **__: warned.append(message))
    for token in (OFFERINGS, IMAGE, ROLES):
        monkeypatch.setitem(ACCOUNT, token, refuse)
    assert cluster(value, again=True).result["cluster"] == "lab"
    assert len(warned) == 3 and all(
        "isn't checked: " in each and each.endswith("failed: UnauthorizedOperation") for each in warned
    )


# ---- data sets in S3
@pytest.fixture
def warned(monkeypatch):
    said = []
    monkeypatch.setattr(pulumi.log, "warn", lambda message, *_, **__: said.append(message))
    return said


def with_data(value, place="training/imagenet"):
    value["cloud"]["data"] = {"imagenet": {"s3": place}, "unused": {"s3": "nobodys/data"}}
    value["cloud"]["pools"][0]["data"] = ["imagenet"]


@pytest.mark.parametrize(("place", "prefix"), [("training/imagenet", "imagenet/"), ("training", None)])
def test_data_that_is_not_there(refused, value, place, prefix):
    asked = []
    with_data(value, place)
    said = refused((OBJECTS, lambda args: asked.append(args) or {"keys": []}))
    assert said == [f"cloud.data.imagenet.s3: there is no object below {place}/, and nodes without data don't join"]
    assert [(each["bucket"], each.get("prefix"), each["region"]) for each in asked] == [
        ("training", prefix, "us-east-1")
    ]


def test_data_of_another_region_is_paid_for_and_that_is_said(cluster, value, monkeypatch, warned):
    with_data(value)
    monkeypatch.setitem(ACCOUNT, BUCKET, lambda _args: {"bucketRegion": "eu-west-1"})
    assert cluster(value, again=True).result["cluster"] == "lab"
    (said,) = warned
    assert "bucket training lies in eu-west-1: AWS takes money for each GB that goes to us-east-1" in said


def test_data_of_another_region_has_no_way_through_endpoints(refused, value):
    with_data(value)
    value["cloud"]["network"]["egress"] = "endpoints"
    (said,) = refused((BUCKET, lambda _args: {"bucketRegion": "eu-west-1"}))
    assert "bucket training lies in eu-west-1, and with egress: endpoints nodes reach buckets of us-east-1" in said


def test_a_bucket_that_may_not_be_asked_stops_nothing(cluster, value, monkeypatch, warned):
    def refuse(_args):
        raise ValueError("Forbidden")

    with_data(value)
    monkeypatch.setitem(ACCOUNT, BUCKET, refuse)
    assert cluster(value, again=True).result["cluster"] == "lab"
    (said,) = warned
    assert said.startswith("AWS could not be asked for bucket training") and "Forbidden" in said
