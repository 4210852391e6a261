"""The AWS adapter against the lab's cloud (moto in process, on loopback), and EC2's errors by what to do next."""

import base64
import json

import boto3
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from ironburst import ports
from ironburst.adapters import aws_errors
from ironburst.adapters.aws import Aws, parameters
from ironburst.ports import Interruption, LaunchRequest
from lab.aws.testing import REGION, live, network

P5, ZONE, IMAGE = "p5.48xlarge", "us-east-1a", "ami-0123456789abcdef0"


@pytest.fixture(scope="module")
def aws(server):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", server.url)
        return Aws(REGION, boto3.Session("lab", "lab", region_name=REGION), read_timeout_s=5)


@pytest.fixture
def cloud(cloud):
    cloud.register_image("baked", IMAGE)
    return cloud


@pytest.fixture
def request_of(cloud, clients):
    """LaunchRequests for a launch template like a burst pool's: subnet and type, no image."""
    subnet = network(clients("ec2"))[1]
    data = {
        "InstanceType": P5,
        "NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": subnet}],
        "MetadataOptions": {"HttpTokens": "required"},
    }
    answer = clients("ec2").create_launch_template(LaunchTemplateName="p5-a", LaunchTemplateData=data)
    template = answer["LaunchTemplate"]["LaunchTemplateId"]

    def make(**more):
        values = {
            "token": "ib-1",
            "launch": "abc123",
            "cluster": "lab",
            "pool": "p5",
            "zone": ZONE,
            "market": "on-demand",
            "count": 1,
        }
        return LaunchRequest(
            **(values | {"launch_template_id": template, "image_id": IMAGE, "user_data": '{"ironburst": 1}'} | more)
        )

    return make


def test_a_gang_is_launched_with_all_that_belongs_to_it(aws, clients, request_of):
    launched = aws.launch(request_of(count=2))
    assert sorted(instance.index for instance in launched) == [0, 1] and {i.launch for i in launched} == {"abc123"}
    (first, second) = live(clients("ec2"))
    tags = {tag["Key"]: tag["Value"] for tag in first["Tags"]}
    wanted = {"ironburst:cluster": "lab", "ironburst:lease": "abc123", "ironburst:pool": "p5", "Name": "lab-p5-abc123"}
    assert wanted.items() <= tags.items()
    assert first["ImageId"] == IMAGE and first["InstanceType"] == P5 and first["Placement"]["AvailabilityZone"] == ZONE
    assert "InstanceLifecycle" not in first
    answer = clients("ec2").describe_instance_attribute(InstanceId=second["InstanceId"], Attribute="userData")
    told = answer["UserData"]["Value"]
    assert json.loads(base64.b64decode(told)) == {"ironburst": 1}


def test_the_same_request_again_starts_nothing_more(aws, clients, request_of):
    first = {i.id for i in aws.launch(request_of(count=2))}
    assert {i.id for i in aws.launch(request_of(count=2))} == first == {i.id for i in aws.by_token("ib-1")}
    with pytest.raises(ports.TokenMismatch):
        aws.launch(request_of(count=3))


def test_a_timeout_after_success_is_unknown_and_the_repeat_finds_the_instances(aws, cloud, clients, request_of):
    cloud.fault("RunInstances", drop=True, after=True)
    with pytest.raises(ports.OutcomeUnknown):
        aws.launch(request_of())
    assert [i.id for i in aws.launch(request_of())] == [i["InstanceId"] for i in live(clients("ec2"))]


def test_spot_is_one_time_and_ends_with_the_interruption(aws, clients, request_of):
    aws.launch(request_of(market="spot"))
    assert live(clients("ec2"))[0]["InstanceLifecycle"] == "spot"
    asked = parameters(request_of(market="spot", capacity_reservation_id="cr-1"))
    assert asked["InstanceMarketOptions"]["SpotOptions"] == {
        "SpotInstanceType": "one-time",
        "InstanceInterruptionBehavior": "terminate",
    }
    assert "CapacityReservationSpecification" not in asked


@pytest.mark.parametrize(("usd", "said"), [(24.0, "24.0"), (0.0435, "0.0435"), (1e-05, "0.00001"), (98.32, "98.32")])
def test_spot_is_never_paid_more_than_what_is_counted(aws, clients, request_of, usd, said):
    request = request_of(market="spot", max_usd_per_hour=usd)
    assert parameters(request)["InstanceMarketOptions"]["SpotOptions"]["MaxPrice"] == said
    aws.launch(request)
    assert live(clients("ec2"))[0]["InstanceLifecycle"] == "spot"


def test_the_console_is_asked_for_by_instance(aws, cloud, request_of):
    (instance,) = aws.launch(request_of())
    assert isinstance(aws.console(instance.id), str)
    asked = [parameters for action, parameters in cloud.calls if action == "GetConsoleOutput"]
    assert asked and {each["InstanceId"] for each in asked} == {instance.id}
    with pytest.raises(ports.Refused):
        aws.console("i-00000000000000000")


def test_the_console_is_that_of_now_where_the_type_has_one(aws, monkeypatch):
    asked, says = [], {"Latest": "now", "": "at boot"}

    def get_console_output(InstanceId, Latest=None):
        asked.append(Latest)
        said = says["Latest" if Latest else ""]
        if isinstance(said, Exception):
            raise said
        return {"InstanceId": InstanceId} | ({"Output": said} if said else {})

    get_console_output.__name__ = "get_console_output"
    monkeypatch.setattr(aws._ec2, "get_console_output", get_console_output)
    assert aws.console("i-1") == "now" and asked == [True]
    says["Latest"] = ""
    assert aws.console("i-1") == "at boot"
    refused = {"Error": {"Code": "UnsupportedOperation", "Message": "Only supported on Nitro"}}
    says["Latest"] = ClientError(refused, "GetConsoleOutput")
    assert aws.console("i-1") == "at boot"
    says[""] = ""  # a young one: no field at all
    assert aws.console("i-1") == ""
    says["Latest"] = ClientError({"Error": {"Code": "UnauthorizedOperation"}}, "GetConsoleOutput")
    with pytest.raises(ports.Refused):
        aws.console("i-1")


def test_a_reservation_is_targeted(request_of):
    target = {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}
    assert parameters(request_of(capacity_reservation_id="cr-1"))["CapacityReservationSpecification"] == target
    assert parameters(request_of(market="capacity-block"))["InstanceMarketOptions"] == {"MarketType": "capacity-block"}


def test_no_capacity_is_asked_for_once_only(aws, cloud, clients, request_of):
    cloud.capacity[P5, ZONE, "on-demand"] = 1
    with pytest.raises(ports.InsufficientCapacity) as error:
        aws.launch(request_of(count=2))
    assert error.value.code == "InsufficientInstanceCapacity" and live(clients("ec2")) == []
    assert sum(action == "RunInstances" for action, _ in cloud.calls) == 1


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("InsufficientInstanceCapacity", 500, ports.InsufficientCapacity),
        ("ReservationCapacityExceeded", 400, ports.InsufficientCapacity),
        ("Unsupported", 400, ports.InsufficientCapacity),
        ("SpotMaxPriceTooLow", 400, ports.TooExpensive),
        ("VcpuLimitExceeded", 400, ports.QuotaReached),
        ("MaxSpotInstanceCountExceeded", 400, ports.QuotaReached),
        ("RequestLimitExceeded", 503, ports.Throttled),
        ("InternalError", 500, ports.OutcomeUnknown),
        ("SomethingNew", 500, ports.OutcomeUnknown),
        ("SomethingNew", 400, ports.Refused),
        ("UnauthorizedOperation", 403, ports.Refused),
        ("InvalidLaunchTemplateId.NotFound", 400, ports.Refused),
    ],
)
def test_errors_by_what_to_do_next(aws, cloud, request_of, code, status, kind):
    cloud.fault("RunInstances", code, status=status)
    with pytest.raises(ports.CloudError) as error:
        aws.launch(request_of())
    assert type(error.value) is kind and error.value.code == code and "RunInstances" in str(error.value)


def test_every_code_has_one_meaning():
    groups = (aws_errors.ELSEWHERE, aws_errors.QUOTA, aws_errors.SLOWED, aws_errors.SAME, aws_errors.MISMATCH)
    assert sum(map(len, groups)) == len(set().union(*groups))


def test_a_read_timeout_is_unknown_and_missing_credentials_are_refused():
    assert type(aws_errors.of(ReadTimeoutError(endpoint_url="x"), "RunInstances")) is ports.OutcomeUnknown
    no_code = ClientError({"Error": {}, "ResponseMetadata": {"HTTPStatusCode": 502}}, "RunInstances")
    assert type(aws_errors.of(no_code, "RunInstances")) is ports.OutcomeUnknown


def test_only_what_a_controller_launched_is_found_on_all_pages(aws, clients, request_of):
    clients("ec2").run_instances(
        MinCount=1,
        MaxCount=1,
        ImageId=IMAGE,
        InstanceType=P5,
        TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "ironburst:cluster", "Value": "lab"}]}],
    )
    mine = [aws.launch(request_of(token=f"ib-{n}", launch=f"l{n}"))[0].id for n in range(3)]
    aws.launch(request_of(token="ib-other", cluster="other"))
    assert sorted(i.id for i in aws.instances("lab")) == sorted(mine)


def test_ending_is_repeatable_and_one_that_is_gone_keeps_nobody_alive(aws, clients, request_of):
    instance = aws.launch(request_of())[0]
    assert aws.terminate([instance.id, "i-0123456789abcdef0"]) == {instance.id}
    assert aws.terminate([instance.id]) == {instance.id}
    assert aws.terminate([]) == set()
    assert live(clients("ec2")) == [] and [i.alive for i in aws.instances("lab")] == [False]


def test_the_image_is_what_the_parameter_says(aws, cloud, clients):
    assert aws.image_id("/ironburst/lab/p5/image") is None
    clients("ssm").put_parameter(Name="/ironburst/lab/p5/image", Value=IMAGE, Type="String")
    assert aws.image_id("/ironburst/lab/p5/image") == IMAGE
    cloud.fault("GetParameter", "AccessDeniedException")
    with pytest.raises(ports.Refused):
        aws.image_id("/ironburst/lab/p5/image")


def test_interruptions_come_from_the_queue_until_acknowledged(aws, cloud, clients):
    url = clients("sqs").create_queue(QueueName="lab-p5", Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
    warning = {
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "detail": {"instance-id": "i-7", "instance-action": "terminate"},
    }
    unrelated = {"detail-type": "EC2 Instance Rebalance Recommendation", "detail": {"instance-id": "i-7"}}
    for body in (json.dumps(unrelated), "no json", json.dumps(warning)):
        clients("sqs").send_message(QueueUrl=url, MessageBody=body)
    interruptions = aws.interruptions([url, url])
    assert {each.instance_id for each in interruptions} == {"i-7"}
    aws.acknowledge(interruptions[-1])
    assert aws.interruptions([url]) == []
    answer = clients("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    left = answer["Attributes"]
    assert left["ApproximateNumberOfMessages"] == "0"


def test_a_queue_that_is_gone_is_an_error(aws, cloud):
    with pytest.raises(ports.CloudError):
        aws.interruptions([f"{cloud.url}/123456789012/nothing"])
    assert Interruption("i-1", "r").queue == ""
