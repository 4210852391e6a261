"""What the account lacks is said before anything is made."""

import pulumi
import pytest

from tests.components.conftest import ACCOUNT

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
