"""Capacity that is bought, in the lab's cloud: reservations, groups of them and capacity blocks, seen through boto3."""

import datetime as dt

import pytest

from lab.aws.capacity import ended_early, stash
from lab.aws.testing import live, network, refused
from lab.system import wait_for

P5, ZONE, IMAGE = "p5.48xlarge", "us-east-1a", "ami-0123456789abcdef0"


@pytest.fixture
def cloud(cloud):
    cloud.register_image("baked", IMAGE)
    return cloud


@pytest.fixture
def subnet(ec2):
    return network(ec2, subnet="10.90.1.0/24")[1]


def run(ec2, least=1, most=None, **more):
    answer = ec2.run_instances(MinCount=least, MaxCount=most or least, **{"InstanceType": P5, "ImageId": IMAGE, **more})
    return answer["Instances"]


def reservation(ec2, **more):
    return ec2.create_capacity_reservation(
        InstanceType=P5, InstancePlatform="Linux/UNIX", AvailabilityZone=ZONE, InstanceCount=2, **more
    )["CapacityReservation"]["CapacityReservationId"]


def target(cr):
    return {"CapacityReservationTarget": {"CapacityReservationId": cr}}


def test_a_targeted_reservation_is_consumed(cloud, ec2, subnet):
    cloud.capacity[P5, ZONE, "on-demand"] = 2
    cr = reservation(ec2, InstanceMatchCriteria="targeted")
    assert refused(run, ec2, 1, SubnetId=subnet) == ("InsufficientInstanceCapacity", 500)  # what is reserved isn't free
    got = run(ec2, 2, SubnetId=subnet, CapacityReservationSpecification=target(cr))
    assert {i["CapacityReservationId"] for i in got} == {cr}
    (consumed,) = ec2.describe_capacity_reservations(CapacityReservationIds=[cr])["CapacityReservations"]
    assert consumed["AvailableInstanceCount"] == 0
    expected = ("ReservationCapacityExceeded", 400)
    assert refused(run, ec2, 1, SubnetId=subnet, CapacityReservationSpecification=target(cr)) == expected
    ec2.terminate_instances(InstanceIds=[i["InstanceId"] for i in got])
    assert ec2.describe_capacity_reservations()["CapacityReservations"][0]["AvailableInstanceCount"] == 2
    ec2.cancel_capacity_reservation(CapacityReservationId=cr)
    assert ec2.describe_capacity_reservations()["CapacityReservations"][0]["State"] == "cancelled"
    assert len(run(ec2, 2, SubnetId=subnet)) == 2
    code, _ = refused(ec2.describe_capacity_reservations, CapacityReservationIds=["cr-1"])
    assert code == "InvalidCapacityReservationId.NotFound"


def test_an_open_reservation_is_used_first_and_can_grow(cloud, ec2, subnet):
    cloud.capacity[P5, ZONE, "on-demand"] = 3
    cr = reservation(ec2)
    assert refused(reservation, ec2) == ("InsufficientInstanceCapacity", 500)
    expected = ("InsufficientInstanceCapacity", 500)
    assert refused(ec2.modify_capacity_reservation, CapacityReservationId=cr, InstanceCount=4) == expected
    ec2.modify_capacity_reservation(CapacityReservationId=cr, InstanceCount=3)
    ec2.modify_capacity_reservation(CapacityReservationId=cr, InstanceCount=2)
    assert [i.get("CapacityReservationId") for i in run(ec2, 3, SubnetId=subnet)] == [cr, cr, None]


def test_capacity_blocks(cloud, ec2, subnet):
    now = dt.datetime.now(dt.UTC)
    cloud.capacity.block_offerings.append(
        {
            "CapacityBlockOfferingId": "cbo-1",
            "InstanceType": P5,
            "AvailabilityZone": ZONE,
            "InstanceCount": 2,
            "StartDate": now + dt.timedelta(hours=1),
            "EndDate": now + dt.timedelta(hours=25),
            "CapacityBlockDurationHours": 24,
            "UpfrontFee": "1510.00",
            "CurrencyCode": "USD",
            "Tenancy": "default",
        }
    )
    cloud.capacity[P5, ZONE, "on-demand"] = 0
    answer = ec2.describe_capacity_block_offerings(InstanceType=P5, InstanceCount=2, CapacityDurationHours=24)
    (offer,) = answer["CapacityBlockOfferings"]
    block = ec2.purchase_capacity_block(
        CapacityBlockOfferingId=offer["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX"
    )["CapacityReservation"]
    assert (block["State"], block["ReservationType"]) == ("scheduled", "capacity-block")
    ask = {"SubnetId": subnet, "CapacityReservationSpecification": target(block["CapacityReservationId"])}
    assert refused(run, ec2, 2, **ask)[0] == "InvalidParameterValue"  # the market type is missing
    ask["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
    expected = ("InvalidCapacityReservationState.PendingActivation", 400)
    assert refused(run, ec2, 2, **ask) == expected  # not begun
    stash(cloud.backend, "reservations")[block["CapacityReservationId"]]["StartDate"] = now  # the hour passes
    assert [i["InstanceLifecycle"] for i in run(ec2, 2, **ask)] == ["capacity-block"] * 2
    assert refused(run, ec2, 1, **ask)[0] == "ReservationCapacityExceeded"
    changes = {"CapacityReservationId": block["CapacityReservationId"]}
    assert refused(ec2.modify_capacity_reservation, InstanceCount=3, **changes)[0] == "UnsupportedOperation"
    assert refused(ec2.cancel_capacity_reservation, **changes)[0] == "UnsupportedOperation"


def bought(cloud, ends_in_s, kind=P5):
    """How a launch asks for a block of two that has begun."""
    row = cloud.capacity.reserve(
        cloud.backend,
        {"InstanceType": kind, "AvailabilityZone": ZONE, "InstanceCount": 2},
        ReservationType="capacity-block",
        InstanceMatchCriteria="targeted",
        EndDate=dt.datetime.now(dt.UTC) + dt.timedelta(seconds=ends_in_s),
    )["CapacityReservation"]
    return {
        "CapacityReservationSpecification": target(row["CapacityReservationId"]),
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
    }


def test_a_blocks_instances_end_half_an_hour_before_it_and_no_more_start(cloud, ec2, subnet):
    ask = bought(cloud, 1800.5)
    (instance,) = run(ec2, 1, SubnetId=subnet, **ask)
    assert len(live(ec2)) == 1
    wait_for(lambda: not live(ec2), 10, "the end of its instances", pause=0.05)
    found = ec2.describe_instances(InstanceIds=[instance["InstanceId"]])["Reservations"][0]["Instances"][0]
    assert found["State"]["Name"] == "terminated" and found["StateReason"]["Code"] == "Server.CapacityBlockEnded"
    assert refused(run, ec2, 1, SubnetId=subnet, **ask)[0] == "ReservationCapacityExceeded"
    assert ended_early("p6e-gb200.36xlarge") == dt.timedelta(hours=1)


def test_a_block_takes_no_other_market_and_no_placement_group(cloud, ec2, subnet):
    ask = bought(cloud, 86400)
    ec2.create_placement_group(GroupName="gang", Strategy="cluster")
    said = refused(run, ec2, 1, SubnetId=subnet, Placement={"GroupName": "gang"}, **ask)
    assert said[0] == "InvalidParameterCombination"
    for market in ({}, {"MarketType": "spot"}):
        wrong = ask | {"InstanceMarketOptions": market}
        assert refused(run, ec2, 1, SubnetId=subnet, **wrong)[0] == "InvalidParameterValue"
    assert live(ec2) == [] and len(run(ec2, 2, SubnetId=subnet, **ask)) == 2


GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/training"
IN_GROUP = {"CapacityReservationTarget": {"CapacityReservationResourceGroupArn": GROUP}}
ONLY = IN_GROUP | {"CapacityReservationPreference": "capacity-reservations-only"}


def test_a_launch_into_a_group_goes_on_demand_where_the_group_is_full_unless_told_not_to(cloud, ec2, subnet):
    held = [reservation(ec2, InstanceMatchCriteria="targeted") for _ in range(2)]
    said = refused(run, ec2, 1, SubnetId=subnet, CapacityReservationSpecification=IN_GROUP)
    assert said == ("InvalidParameterValue", 400)  # no such group
    cloud.capacity.groups[GROUP] = held[:1]
    got = run(ec2, 3, SubnetId=subnet, CapacityReservationSpecification=IN_GROUP)
    assert [i.get("CapacityReservationId") for i in got] == [held[0], held[0], None]
    said = refused(run, ec2, 1, SubnetId=subnet, CapacityReservationSpecification=ONLY)
    assert said == ("ReservationCapacityExceeded", 400)
    cloud.capacity.groups[GROUP] = held
    got = run(ec2, 2, SubnetId=subnet, CapacityReservationSpecification=ONLY)
    assert [i.get("CapacityReservationId") for i in got] == [held[1]] * 2


@pytest.mark.parametrize(
    "wrong",
    [
        IN_GROUP | {"CapacityReservationPreference": "open"},
        {"CapacityReservationTarget": {"CapacityReservationId": "cr-1", "CapacityReservationResourceGroupArn": GROUP}},
    ],
)
def test_one_target_and_no_preference_but_one_beside_it(cloud, ec2, subnet, wrong):
    cloud.capacity.groups[GROUP] = []
    said = refused(run, ec2, 1, SubnetId=subnet, CapacityReservationSpecification=wrong)
    assert said == ("InvalidParameterCombination", 400) and live(ec2) == []


def test_a_reservation_is_in_its_own_placement_group_or_in_none(cloud, ec2, subnet):
    arns = [
        ec2.create_placement_group(GroupName=name, Strategy="cluster")["PlacementGroup"]["GroupArn"]
        for name in ("own", "other")
    ]
    inside, outside = reservation(ec2, PlacementGroupArn=arns[0]), reservation(ec2)
    ask = {"SubnetId": subnet, "CapacityReservationSpecification": target(inside)}
    assert refused(run, ec2, 1, **ask, Placement={"GroupName": "other"})[0] == "ReservationCapacityExceeded"
    run(ec2, 1, **ask, Placement={"GroupName": "own"})
    run(ec2, 1, **ask)  # the reservation says where
    ask["CapacityReservationSpecification"] = target(outside)
    assert refused(run, ec2, 1, **ask, Placement={"GroupName": "own"})[0] == "ReservationCapacityExceeded"
    ec2.terminate_instances(InstanceIds=[i["InstanceId"] for i in live(ec2)])
    assert refused(ec2.delete_placement_group, GroupName="own")[0] == "InvalidPlacementGroup.InUse"
    ec2.cancel_capacity_reservation(CapacityReservationId=inside)
    ec2.delete_placement_group(GroupName="own")
    assert [g["GroupName"] for g in ec2.describe_placement_groups()["PlacementGroups"]] == ["other"]
