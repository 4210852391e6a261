"""What AWS refuses and a kinder stand-in would take: each as AWS says it."""

import pytest
from botocore.exceptions import ClientError

from lab.aws.testing import live, network

P5, ZONE, IMAGE = "p5.48xlarge", "us-east-1a", "ami-0123456789abcdef0"


@pytest.fixture
def ec2(cloud, clients):
    cloud.register_image("", IMAGE)
    return clients("ec2")


def says(code, words, call, *args, **kwargs):
    with pytest.raises(ClientError) as error:
        call(*args, **kwargs)
    said = error.value.response
    assert (said["Error"]["Code"], said["ResponseMetadata"]["HTTPStatusCode"]) == (code, 400)
    assert words in said["Error"]["Message"]


def run(ec2, **more):
    return ec2.run_instances(MinCount=1, MaxCount=1, **{"InstanceType": P5, "ImageId": IMAGE, **more})["Instances"]


def tagged(key, value="x", kind="instance"):
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value}]}]}


def test_a_region_has_five_vpcs(cloud, ec2):
    there = len(ec2.describe_vpcs()["Vpcs"])  # the default one, as in a new account
    for n in range(5 - there):
        ec2.create_vpc(CidrBlock=f"10.{n}.0.0/16")
    says("VpcLimitExceeded", "The maximum number of VPCs has been reached.", ec2.create_vpc, CidrBlock="10.9.0.0/16")
    assert len(ec2.describe_vpcs()["Vpcs"]) == 5


def test_a_region_has_five_addresses(ec2):
    held = [ec2.allocate_address(Domain="vpc")["AllocationId"] for _ in range(5)]
    says(
        "AddressLimitExceeded", "The maximum number of addresses has been reached.", ec2.allocate_address, Domain="vpc"
    )
    ec2.release_address(AllocationId=held[0])
    assert ec2.allocate_address(Domain="vpc")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("aws:x", "x", "Tag keys starting with 'aws:' are reserved for internal use"),
        ("AWS:x", "x", "Tag keys starting with 'aws:' are reserved for internal use"),
        ("k" * 129, "x", "Tag key exceeds the maximum length of 128 characters"),
        ("k", "v" * 257, "Tag value exceeds the maximum length of 256 characters"),
    ],
)
def test_tags_that_nobody_may_have(ec2, key, value, words):
    says("InvalidParameterValue", words, run, ec2, **tagged(key, value))
    says("InvalidParameterValue", words, ec2.create_vpc, CidrBlock="10.1.0.0/16", **tagged(key, value, "vpc"))
    data = {"InstanceType": P5, **tagged(key, value)}
    says("InvalidParameterValue", words, ec2.create_launch_template, LaunchTemplateName="t", LaunchTemplateData=data)
    vpc = network(ec2)[0]
    says("InvalidParameterValue", words, ec2.create_tags, Resources=[vpc], Tags=[{"Key": key, "Value": value}])
    assert live(ec2) == []


def test_tags_as_long_as_they_may_be(ec2):
    (made,) = run(ec2, **tagged("k" * 128, "v" * 256))
    assert {"Key": "k" * 128, "Value": "v" * 256} in made["Tags"]
    ec2.delete_tags(Resources=[made["InstanceId"]], Tags=[{"Key": "k" * 128}])
    (left,) = ec2.describe_instances()["Reservations"][0]["Instances"]
    assert "k" * 128 not in {each["Key"] for each in left.get("Tags", [])}


def test_a_tag_that_the_metadata_service_can_not_show(ec2):
    shown = {"MetadataOptions": {"InstanceMetadataTags": "enabled"}}
    says("InvalidParameterValue", "'a/b' is not a valid tag key", run, ec2, **tagged("a/b"), **shown)
    says("InvalidParameterValue", "'cost centre' is not a valid tag key", run, ec2, **tagged("cost centre"), **shown)
    assert run(ec2, **tagged("a/b")) and run(ec2, **tagged("ironburst:pool"), **shown)


def test_a_token_has_64_characters(ec2):
    says("InvalidClientToken", "longer than 64 ASCII characters", run, ec2, ClientToken="t" * 65)
    assert run(ec2, ClientToken="t" * 64)


def test_a_used_up_token(ec2):
    (first,) = run(ec2, ClientToken="t")
    says("IdempotentParameterMismatch", "inconsistent", run, ec2, ClientToken="t", KeyName="other")
    assert run(ec2, ClientToken="t")[0]["InstanceId"] == first["InstanceId"]
    ec2.terminate_instances(InstanceIds=[first["InstanceId"]])
    says("IdempotentInstanceTerminated", "use a different client token", run, ec2, ClientToken="t")


def test_an_efa_only_interface_is_no_primary_one(ec2):
    subnet = network(ec2)[1]
    card = {"DeviceIndex": 0, "NetworkCardIndex": 0, "SubnetId": subnet}
    only = card | {"InterfaceType": "efa-only"}
    says("InvalidParameterCombination", "can't be the primary network interface", run, ec2, NetworkInterfaces=[only])
    assert run(ec2, NetworkInterfaces=[card, only | {"DeviceIndex": 1}])


def test_a_cluster_group_lies_in_one_zone(ec2):
    ec2.create_placement_group(GroupName="g", Strategy="cluster")
    (first,) = run(ec2, Placement={"GroupName": "g", "AvailabilityZone": ZONE})
    elsewhere = {"GroupName": "g", "AvailabilityZone": "us-east-1b"}
    words = "The placement group 'g' is in use in another availability zone: us-east-1a"
    says("InvalidPlacementGroup.InUse", words, run, ec2, Placement=elsewhere)
    ec2.terminate_instances(InstanceIds=[first["InstanceId"]])
    assert run(ec2, Placement=elsewhere)  # an empty one may go anywhere


def test_a_cluster_group_is_for_types_that_can_be_close(ec2):
    ec2.create_placement_group(GroupName="g", Strategy="cluster")
    ec2.create_placement_group(GroupName="s", Strategy="spread")
    words = "Cluster placement groups are not supported by the 't3.large' instance type."
    says("InvalidParameterCombination", words, run, ec2, InstanceType="t3.large", Placement={"GroupName": "g"})
    assert run(ec2, InstanceType="t3.large", Placement={"GroupName": "s"})


def test_spot_under_the_markets_price(cloud, ec2):
    cloud.capacity.spot_usd[P5, ZONE] = 30.0

    def asked(usd):
        options = {"SpotInstanceType": "one-time", "MaxPrice": usd}
        return {"InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": options}}

    words = "Your Spot request price of 29.99 is lower than the minimum required Spot request fulfillment price of 30."
    says("SpotMaxPriceTooLow", words, run, ec2, **asked("29.99"))
    assert run(ec2, **asked("30.0"))
