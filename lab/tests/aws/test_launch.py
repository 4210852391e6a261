"""The lab's cloud: what a launch gives, and what it refuses, seen through boto3."""

import base64
import time

import pytest

from lab.aws.cloud import Cloud
from lab.aws.testing import live, network, refused

P5, ZONE, IMAGE = "p5.48xlarge", "us-east-1a", "ami-0123456789abcdef0"


@pytest.fixture
def cloud(cloud):
    cloud.register_image("baked", IMAGE)
    return cloud


@pytest.fixture
def iam(cloud, clients):
    return clients("iam")


@pytest.fixture
def subnet(ec2):
    return network(ec2, subnet="10.90.1.0/24")[1]


def run(ec2, least=1, most=None, **more):
    answer = ec2.run_instances(MinCount=least, MaxCount=most or least, **{"InstanceType": P5, "ImageId": IMAGE, **more})
    return answer["Instances"]


# ---- capacity
def test_a_gang_is_all_or_nothing(cloud, ec2, subnet):
    cloud.capacity[P5, ZONE, "on-demand"] = 3
    assert refused(run, ec2, 4, SubnetId=subnet) == ("InsufficientInstanceCapacity", 500)
    assert live(ec2) == []
    assert len(run(ec2, 2, 8, SubnetId=subnet)) == 3  # between MinCount and MaxCount: what there is
    assert refused(run, ec2, 1, SubnetId=subnet) == ("InsufficientInstanceCapacity", 500)
    ec2.terminate_instances(InstanceIds=[live(ec2)[0]["InstanceId"]])
    assert len(run(ec2, 1, SubnetId=subnet)) == 1  # a terminated host is free again


def test_markets_types_and_zones_are_separate(cloud, ec2, subnet):
    cloud.capacity.update({(P5, ZONE, "on-demand"): 0, (P5, ZONE, "spot"): 1, (P5, "us-east-1b", "on-demand"): 1})
    assert refused(run, ec2, 1, SubnetId=subnet)[1] == 500
    spot = run(ec2, 1, SubnetId=subnet, InstanceMarketOptions={"MarketType": "spot"})[0]
    assert spot["InstanceLifecycle"] == "spot" and spot["SpotInstanceRequestId"].startswith("sir-")
    assert run(ec2, 1, Placement={"AvailabilityZone": "us-east-1b"})[0]["Placement"]["AvailabilityZone"] == "us-east-1b"
    reservations = ec2.describe_instances(Filters=[{"Name": "instance-lifecycle", "Values": ["spot"]}])["Reservations"]
    assert [i["InstanceId"] for r in reservations for i in r["Instances"]] == [spot["InstanceId"]]


# ---- client tokens
def test_a_repeated_token_gives_the_same_instances(cloud, ec2, subnet):
    first = run(ec2, 2, SubnetId=subnet, ClientToken="lease-1-a1")
    assert [i["InstanceId"] for i in run(ec2, 2, SubnetId=subnet, ClientToken="lease-1-a1")] == [
        i["InstanceId"] for i in first
    ]
    assert len(live(ec2)) == 2
    assert refused(run, ec2, 3, SubnetId=subnet, ClientToken="lease-1-a1") == ("IdempotentParameterMismatch", 400)
    reservations = ec2.describe_instances(Filters=[{"Name": "client-token", "Values": ["lease-1-a1"]}])["Reservations"]
    assert len([i for r in reservations for i in r["Instances"]]) == 2


def test_a_refused_token_may_be_tried_again(cloud, ec2, subnet):
    cloud.capacity[P5, ZONE, "on-demand"] = 0
    assert refused(run, ec2, 1, SubnetId=subnet, ClientToken="t")[1] == 500
    cloud.capacity[P5, ZONE, "on-demand"] = 1
    assert len(run(ec2, 1, SubnetId=subnet, ClientToken="t")) == 1


# ---- templates
def template(ec2, iam, subnet=None, **more):
    answer = ec2.create_security_group(GroupName="gpu", Description="d", VpcId=ec2.describe_vpcs()["Vpcs"][-1]["VpcId"])
    group = answer["GroupId"]
    nics = [
        {
            "DeviceIndex": min(n, 1),
            "NetworkCardIndex": n,
            "InterfaceType": "efa" if n == 0 else "efa-only",
            "Groups": [group],
            **({"SubnetId": subnet} if subnet else {}),
        }
        for n in range(4)
    ]
    data = {
        "InstanceType": P5,
        "NetworkInterfaces": nics,
        "Placement": {"GroupName": "gang", "Tenancy": "default"},
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2, "InstanceMetadataTags": "enabled"},
        "IamInstanceProfile": {"Name": "gpu"},
        "Monitoring": {"Enabled": True},
        "EbsOptimized": True,
        "UserData": base64.b64encode(b"#!/bin/sh\n").decode(),
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 200, "VolumeType": "gp3", "Encrypted": True}}
        ],
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": [{"Key": "pool", "Value": "p5"}, {"Key": "Name", "Value": "template"}]}
            for kind in ("instance", "volume")
        ],
        **more,
    }
    ec2.create_placement_group(GroupName="gang", Strategy="cluster")
    iam.create_instance_profile(InstanceProfileName="gpu")
    answer = ec2.create_launch_template(LaunchTemplateName="p5", LaunchTemplateData=data)
    return answer["LaunchTemplate"]["LaunchTemplateId"], group


def test_a_template_is_applied_whole(cloud, ec2, iam, subnet):
    lt, group = template(
        ec2, iam, subnet, InstanceMarketOptions={"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "one-time"}}
    )
    ids = [
        i["InstanceId"]
        for i in ec2.run_instances(
            LaunchTemplate={"LaunchTemplateId": lt, "Version": "$Latest"},
            ImageId=IMAGE,
            MinCount=2,
            MaxCount=2,
            TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "request"}]}],
        )["Instances"]
    ]
    cloud.settle()
    first, second = [i for r in ec2.describe_instances(InstanceIds=ids)["Reservations"] for i in r["Instances"]]
    expected = (IMAGE, P5, subnet, "running")
    assert (first["ImageId"], first["InstanceType"], first["SubnetId"], first["State"]["Name"]) == expected
    assert [i["AmiLaunchIndex"] for i in (first, second)] == [0, 1]
    assert first["InstanceLifecycle"] == "spot" and first["Placement"]["GroupName"] == "gang" and first["EbsOptimized"]
    assert first["MetadataOptions"]["HttpTokens"] == "required"
    assert first["MetadataOptions"]["HttpPutResponseHopLimit"] == 2
    for instance in (first, second):
        assert instance["IamInstanceProfile"]["Arn"].endswith("instance-profile/gpu")
        cards = sorted(
            (n["Attachment"]["NetworkCardIndex"], n["Attachment"]["DeviceIndex"], n["InterfaceType"])
            for n in instance["NetworkInterfaces"]
        )
        assert cards == [(0, 0, "efa"), (1, 1, "efa-only"), (2, 1, "efa-only"), (3, 1, "efa-only")]
        assert [g["GroupId"] for g in instance["SecurityGroups"]] == [group]
        tags = {t["Key"]: t["Value"] for t in instance["Tags"]}
        assert (tags["pool"], tags["Name"], tags["aws:ec2launchtemplate:id"]) == ("p5", "request", lt)
    volumes = ec2.describe_volumes(Filters=[{"Name": "attachment.instance-id", "Values": ids}])["Volumes"]
    # no second root volume
    assert [(v["Size"], v["Encrypted"], v["Tags"][0]["Value"]) for v in volumes] == [(200, True, "p5")] * 2
    data = ec2.describe_instance_attribute(InstanceId=ids[0], Attribute="userData")["UserData"]["Value"]
    assert base64.b64decode(data) == b"#!/bin/sh\n"


def test_the_default_version_of_a_template_counts(cloud, ec2, iam, subnet):
    lt, _ = template(ec2, iam, subnet)
    ec2.create_launch_template_version(LaunchTemplateId=lt, LaunchTemplateData={"InstanceType": "g6.xlarge"})
    assert run(ec2, LaunchTemplate={"LaunchTemplateId": lt}, InstanceType=P5)[0]["EbsOptimized"]  # still version 1
    ec2.modify_launch_template(LaunchTemplateId=lt, DefaultVersion="2")
    answer = ec2.run_instances(LaunchTemplate={"LaunchTemplateName": "p5"}, ImageId=IMAGE, MinCount=1, MaxCount=1)
    two = answer["Instances"][0]
    assert two["InstanceType"] == "g6.xlarge" and not two["EbsOptimized"]


def test_an_instance_level_subnet_is_refused_beside_interfaces(cloud, ec2, iam, subnet):
    lt, _ = template(ec2, iam)
    ask = {"LaunchTemplate": {"LaunchTemplateId": lt}, "ImageId": IMAGE, "MinCount": 1, "MaxCount": 1}
    assert refused(ec2.run_instances, **ask, SubnetId=subnet) == ("InvalidParameterCombination", 400)
    answer = ec2.run_instances(
        **ask, NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": subnet, "InterfaceType": "efa"}]
    )
    got = answer["Instances"][0]
    assert got["SubnetId"] == subnet and len(got["NetworkInterfaces"]) == 1


def test_32_network_cards(cloud, ec2, subnet):
    nics = [
        {"DeviceIndex": min(n, 1), "NetworkCardIndex": n, "InterfaceType": "efa", "SubnetId": subnet} for n in range(32)
    ]
    begin = time.process_time()  # the server is in this process; wall time is at the mercy of other work
    instance = run(ec2, NetworkInterfaces=nics)[0]
    assert time.process_time() - begin < 2.0  # about 0.1 s
    answer = ec2.describe_instances(InstanceIds=[instance["InstanceId"]])
    shown = answer["Reservations"][0]["Instances"][0]["NetworkInterfaces"]
    assert sorted(n["Attachment"]["NetworkCardIndex"] for n in shown) == list(range(32))
    assert len({n["PrivateIpAddress"] for n in shown}) == 32
    # 251 addresses in a /24: seven such nodes fit, and a gang is refused before its first node exists
    assert refused(run, ec2, 7, NetworkInterfaces=nics) == ("InsufficientFreeAddressesInSubnet", 400)
    assert len(live(ec2)) == 1
    assert len(run(ec2, 6, NetworkInterfaces=nics)) == 6
    ec2.terminate_instances(InstanceIds=[i["InstanceId"] for i in live(ec2)])
    assert len(run(ec2, 7, NetworkInterfaces=nics)) == 7  # every address came back


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"ImageId": "ami-0aaaaaaaaaaaaaaaa"}, "InvalidAMIID.NotFound"),
        ({"ImageId": "image"}, "InvalidAMIID.Malformed"),
        ({"InstanceType": "p5.49xlarge"}, "InvalidParameterValue"),
        ({"KeyName": "none"}, "InvalidKeyPair.NotFound"),
        ({"IamInstanceProfile": {"Name": "none"}}, "InvalidParameterValue"),
        ({"SubnetId": "subnet-1"}, "InvalidSubnetID.NotFound"),
        ({"SecurityGroupIds": ["sg-1"]}, "InvalidGroup.NotFound"),
        ({"Placement": {"GroupName": "none"}}, "InvalidPlacementGroup.Unknown"),
        ({"LaunchTemplate": {"LaunchTemplateName": "none"}}, "InvalidLaunchTemplateName.NotFoundException"),
        ({"NetworkInterfaces": [{"DeviceIndex": 1, "NetworkCardIndex": 1}]}, "InvalidParameterValue"),
        ({"NetworkInterfaces": [{"DeviceIndex": 0}, {"DeviceIndex": 0}]}, "InvalidParameterValue"),
        (
            {"NetworkInterfaces": [{"DeviceIndex": 0, "AssociatePublicIpAddress": True}, {"DeviceIndex": 1}]},
            "InvalidParameterCombination",
        ),
        ({"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-1"]}]}, "InvalidGroup.NotFound"),
        ({"UserData": "x" * 16385}, "InvalidParameterValue"),
    ],
)
def test_what_does_not_exist_is_refused_before_anything_starts(cloud, ec2, subnet, wrong, code):
    place = {} if "NetworkInterfaces" in wrong else {"SubnetId": subnet}
    assert refused(run, ec2, 2, **{**place, **wrong}) == (code, 400)
    assert live(ec2) == [] and ec2.describe_volumes()["Volumes"] == [] and cloud.backend.reservations == {}


def test_a_launch_without_an_image_is_refused(cloud, ec2, iam, subnet):
    lt, _ = template(ec2, iam, subnet)
    expected = ("MissingParameter", 400)
    assert refused(ec2.run_instances, LaunchTemplate={"LaunchTemplateId": lt}, MinCount=1, MaxCount=1) == expected


# ---- placement groups
def test_placement_groups(cloud, ec2, subnet):
    made = ec2.create_placement_group(
        GroupName="gang",
        Strategy="cluster",
        TagSpecifications=[{"ResourceType": "placement-group", "Tags": [{"Key": "a", "Value": "b"}]}],
    )["PlacementGroup"]
    assert made["State"] == "available" and made["Tags"] == [{"Key": "a", "Value": "b"}]
    assert (
        refused(ec2.create_placement_group, GroupName="gang", Strategy="cluster")[0]
        == "InvalidPlacementGroup.Duplicate"
    )
    assert ec2.describe_placement_groups(GroupNames=["gang"])["PlacementGroups"][0]["GroupId"] == made["GroupId"]
    instance = run(ec2, 1, SubnetId=subnet, Placement={"GroupName": "gang"})[0]
    assert refused(ec2.delete_placement_group, GroupName="gang")[0] == "InvalidPlacementGroup.InUse"
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    ec2.delete_placement_group(GroupName="gang")
    assert refused(ec2.describe_placement_groups, GroupNames=["gang"])[0] == "InvalidPlacementGroup.Unknown"


# ---- fleets
@pytest.fixture
def pools(ec2, iam, subnet):
    vpc = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["VpcId"]
    answer = ec2.create_subnet(VpcId=vpc, CidrBlock="10.90.2.0/24", AvailabilityZone="us-east-1b")
    second_subnet = answer["Subnet"]["SubnetId"]
    lt, _ = template(ec2, iam)
    return [
        {
            "LaunchTemplateSpecification": {"LaunchTemplateId": lt, "Version": "$Latest"},
            "Overrides": [
                {"InstanceType": P5, "SubnetId": subnet, "Priority": 2.0, "ImageId": IMAGE},
                {"InstanceType": "g6.xlarge", "SubnetId": second_subnet, "Priority": 1.0, "ImageId": IMAGE},
            ],
        }
    ]


def fleet(ec2, pools, count, market="spot", **more):
    return ec2.create_fleet(
        Type="instant",
        LaunchTemplateConfigs=pools,
        TargetCapacitySpecification={"TotalTargetCapacity": count, "DefaultTargetCapacityType": market},
        **more,
    )


def test_a_fleet_is_filled_in_part_and_says_why(cloud, ec2, pools):
    cloud.capacity.update({(P5, ZONE, "spot"): 2, ("g6.xlarge", "us-east-1b", "spot"): 0})
    got = fleet(ec2, pools, 3, SpotOptions={"AllocationStrategy": "capacity-optimized-prioritized"})
    assert [(i["InstanceType"], i["Lifecycle"], len(i["InstanceIds"])) for i in got["Instances"]] == [(P5, "spot", 2)]
    assert [(e["LaunchTemplateAndOverrides"]["Overrides"]["InstanceType"], e["ErrorCode"]) for e in got["Errors"]] == [
        ("g6.xlarge", "InsufficientInstanceCapacity"),
        (P5, "InsufficientInstanceCapacity"),
    ]
    instance = live(ec2)[0]
    assert instance["InstanceLifecycle"] == "spot" and instance["Placement"]["AvailabilityZone"] == ZONE
    assert len(instance["NetworkInterfaces"]) == 4


def test_a_fleet_picks_the_pool_with_most_capacity(cloud, ec2, pools):
    cloud.capacity.update({(P5, ZONE, "spot"): 1, ("g6.xlarge", "us-east-1b", "spot"): 9})
    got = fleet(ec2, pools, 1, SpotOptions={"AllocationStrategy": "price-capacity-optimized"})
    assert [i["InstanceType"] for i in got["Instances"]] == ["g6.xlarge"] and not got["Errors"]


def test_a_fleet_below_its_minimum_starts_nothing(cloud, ec2, pools):
    cloud.capacity.update({(P5, ZONE, "spot"): 2, ("g6.xlarge", "us-east-1b", "spot"): 0})
    got = fleet(ec2, pools, 4, SpotOptions={"MinTargetCapacity": 4, "SingleInstanceType": True})
    assert not got["Instances"] and len(got["Errors"]) == 2 and live(ec2) == []


def test_a_fleet_token(cloud, ec2, pools):
    first = fleet(ec2, pools, 1, ClientToken="f")
    assert fleet(ec2, pools, 1, ClientToken="f")["FleetId"] == first["FleetId"] and len(live(ec2)) == 1
    assert refused(fleet, ec2, pools, 2, ClientToken="f") == ("IdempotentParameterMismatch", 400)


# ---- addresses
def test_addresses_are_random_free_and_come_back(cloud, ec2):
    small = network(ec2, subnet="10.90.9.0/28")[1]
    first = [run(ec2, 1, SubnetId=small)[0] for _ in range(11)]  # 16 less the 5 that AWS keeps
    addresses = [int(i["PrivateIpAddress"].rsplit(".", 1)[1]) for i in first]
    assert sorted(addresses) == list(range(4, 15)) and addresses != sorted(addresses)
    assert refused(run, ec2, 1, SubnetId=small) == ("InsufficientFreeAddressesInSubnet", 400)
    ec2.terminate_instances(InstanceIds=[first[3]["InstanceId"]])
    assert run(ec2, 1, SubnetId=small)[0]["PrivateIpAddress"] == first[3]["PrivateIpAddress"]


def test_a_second_cloud_in_one_process_is_refused(cloud):
    with pytest.raises(RuntimeError, match="close it first"):
        Cloud()
