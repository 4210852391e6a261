"""The AWS adapter against the lab's cloud (moto in process, on loopback), and EC2's errors by what to do next."""

import base64
import json
import re
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import boto3
import botocore.session
import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ParamValidationError, ReadTimeoutError
from botocore.parsers import ResponseParserError
from botocore.retries.standard import ThrottledRetryableChecker

from ironburst import ports
from ironburst.adapters.aws import errors as aws_errors
from ironburst.adapters.aws.cloud import Aws, parameters
from ironburst.ports import Interruption, LaunchRequest
from lab.aws.testing import REGION, live, network
from tests.adapters import ec2_errors

P5, ZONE, IMAGE = "p5.48xlarge", "us-east-1a", "ami-0123456789abcdef0"


def refusal(code):
    said = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    return ClientError(said, "Action")


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
        rest = {"launch_template_id": template, "image_id": IMAGE, "user_data": '{"ironburst": 1}'}
        return LaunchRequest.recorded(values | rest | more)

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
def test_spot_is_never_paid_more_than_the_declared_ceiling(aws, cloud, clients, request_of, usd, said):
    cloud.capacity.spot_usd[P5, ZONE] = 1e-05
    request = request_of(market="spot", max_usd_per_hour=usd)
    assert parameters(request)["InstanceMarketOptions"]["SpotOptions"]["MaxPrice"] == said
    aws.launch(request)
    assert live(clients("ec2"))[0]["InstanceLifecycle"] == "spot"


def test_spot_that_costs_more_than_the_ceiling_is_too_expensive(aws, cloud, request_of):
    cloud.capacity.spot_usd[P5, ZONE] = 30.0
    with pytest.raises(ports.TooExpensive, match="price of 24 is lower than the minimum required"):
        aws.launch(request_of(market="spot", max_usd_per_hour=24.0))
    assert aws.launch(request_of(market="spot", token="ib-2"))  # without one it is EC2's own: the on-demand price


def test_the_root_volume_is_filled_at_the_declared_rate_under_its_images_own_name(aws, cloud, clients, request_of):
    cloud.register_image("baked", "ami-0aaaaaaaaaaaaaaaa", root_device="/dev/xvda", root_gb=200)
    request = request_of(image_id="ami-0aaaaaaaaaaaaaaaa", volume_init_mb_s=300)
    first, again = aws.launch(request), aws.launch(request)
    assert [each.id for each in first] == [each.id for each in again]
    (volume,) = clients("ec2").describe_volumes()["Volumes"]
    assert volume["Size"] == 200 and cloud.backend.volumes[volume["VolumeId"]].volume_initialization_rate == 300
    assert sum(action == "DescribeImages" for action, _ in cloud.calls) == 1
    assert "BlockDeviceMappings" not in parameters(request_of())


def test_a_rate_that_aws_does_not_have_is_refused(aws, request_of):
    with pytest.raises(ports.Refused, match="between 100 and 300"):
        aws.launch(request_of(volume_init_mb_s=50))


def test_a_node_that_could_not_use_its_key_says_where_to_look(aws, cloud, request_of):
    (launched,) = aws.launch(request_of())
    cloud._end(cloud.backend.get_instance(launched.id), "Client.InternalError", "Client error on launch")
    (ended,) = aws.described([launched.id])
    assert ended.reason.startswith("Client.InternalError: look at the KMS key of its volumes")


def test_spot_prices_are_those_in_force_by_type_and_zone(aws, cloud):
    cloud.capacity.spot_usd |= {(P5, ZONE): 30.0, (P5, "us-east-1b"): 31.5}
    found = aws.spot_prices([P5, "g5.xlarge"])
    assert {place: usd for place, usd in found.items() if place in cloud.capacity.spot_usd} == cloud.capacity.spot_usd
    assert found["g5.xlarge", ZONE] == pytest.approx(0.4) and aws.spot_prices([]) == {}
    cloud.fault("DescribeSpotPriceHistory", drop=True, times=-1)
    with pytest.raises(ports.OutcomeUnknown):
        aws.spot_prices([P5])
    assert sum(action == "DescribeSpotPriceHistory" for action, _ in cloud.calls) == 2  # it isn't asked again at once


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


def block(cloud, **dates):
    """The id of a capacity block of two that somebody bought."""
    asked = {"InstanceType": P5, "AvailabilityZone": ZONE, "InstanceCount": 2}
    bought = cloud.capacity.reserve(cloud.backend, asked, ReservationType="capacity-block", **dates)
    return bought["CapacityReservation"]["CapacityReservationId"]


def test_a_launch_into_a_capacity_block_names_it_and_its_market(aws, cloud, request_of):
    cloud.capacity[P5, ZONE, "on-demand"] = 0
    asked = {"market": "capacity-block", "capacity_reservation_id": block(cloud)}
    assert len(aws.launch(request_of(count=2, **asked))) == 2
    assert [view.market for view in cloud.instances()] == ["capacity-block"] * 2


def test_a_block_that_has_not_begun_is_no_capacity_and_nothing_that_a_person_must_cure(aws, cloud, request_of):
    later = datetime(2099, 1, 1, tzinfo=UTC)
    asked = {"market": "capacity-block", "capacity_reservation_id": block(cloud, State="scheduled", StartDate=later)}
    with pytest.raises(ports.InsufficientCapacity) as error:
        aws.launch(request_of(**asked))
    assert error.value.code == "InvalidCapacityReservationState.PendingActivation"


def test_nothing_is_launched_on_demand_beside_a_group_of_reservations(aws, cloud, clients, request_of):
    group = "arn:aws:resource-groups:us-east-1:123456789012:group/training"
    held = clients("ec2").create_capacity_reservation(
        InstanceType=P5, InstancePlatform="Linux/UNIX", AvailabilityZone=ZONE, InstanceCount=1
    )["CapacityReservation"]["CapacityReservationId"]
    cloud.capacity.groups[group] = [held]
    (first,) = aws.launch(request_of(token="ib-1", capacity_reservation_group_arn=group))
    with pytest.raises(ports.InsufficientCapacity):
        aws.launch(request_of(token="ib-2", capacity_reservation_group_arn=group))
    assert [each["InstanceId"] for each in live(clients("ec2"))] == [first.id]
    assert live(clients("ec2"))[0]["CapacityReservationId"] == held


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


def test_each_type_of_a_pool_has_a_template_and_a_capacity_of_its_own(aws, cloud, clients, request_of):
    ec2, first = clients("ec2"), request_of()
    versions = ec2.describe_launch_template_versions(LaunchTemplateId=first.place["launch_template_id"])
    data = versions["LaunchTemplateVersions"][0]["LaunchTemplateData"] | {"InstanceType": "p5en.48xlarge"}
    made = ec2.create_launch_template(LaunchTemplateName="p5-a-p5en", LaunchTemplateData=data)
    second = request_of(token="ib-2", launch_template_id=made["LaunchTemplate"]["LaunchTemplateId"])
    cloud.capacity[P5, ZONE, "on-demand"] = 0
    refused, (launched,) = aws.launch_all([first, second])
    assert isinstance(refused, ports.InsufficientCapacity)
    assert (launched.instance_type, launched.zone) == ("p5en.48xlarge", ZONE)
    assert [each["InstanceType"] for each in live(ec2)] == ["p5en.48xlarge"]


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("InsufficientInstanceCapacity", 500, ports.InsufficientCapacity),
        ("ReservationCapacityExceeded", 400, ports.InsufficientCapacity),
        ("InvalidCapacityReservationState.PendingActivation", 400, ports.InsufficientCapacity),
        ("Unsupported", 400, ports.InsufficientCapacity),
        ("SpotMaxPriceTooLow", 400, ports.TooExpensive),
        ("VcpuLimitExceeded", 400, ports.QuotaReached),
        ("MaxSpotInstanceCountExceeded", 400, ports.QuotaReached),
        ("RequestLimitExceeded", 503, ports.Throttled),
        ("InternalError", 500, ports.OutcomeUnknown),
        ("SomethingNew", 500, ports.OutcomeUnknown),
        ("SomethingNew", 400, ports.Refused),
        ("SomethingLimitExceeded", 400, ports.QuotaReached),
        ("SomethingSlow", 429, ports.Throttled),
        ("ExpiredToken", 400, ports.Refused),
        ("InvalidParameterValue", 400, ports.Refused),  # EC2's answer to an instance profile that is new
        ("IdempotentInstanceTerminated", 400, ports.TokenMismatch),
        ("InvalidParameterCombination", 400, ports.Malformed),
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
    groups = [value for name, value in vars(aws_errors).items() if name.isupper() and name != "MEANT"]
    assert len(groups) == 7 and sum(map(len, groups)) == len(set().union(*groups))


def kinds(codes, status=400):
    return {code: type(aws_errors.by_code(code, status, code)) for code in codes}


def test_of_the_codes_that_ec2_documents_only_the_named_ones_close_a_pool():
    found = kinds(ec2_errors.CLIENT) | kinds(ec2_errors.SERVER, 500)
    closing = {code for code, kind in found.items() if kind is ports.Malformed}
    assert closing == aws_errors.MALFORMED - {"ParamValidationError"}, "EC2 knows each, or botocore"
    cured_by_time = ("NotFound", "Unavailable", "Expired", "InUse", "Exceeded", "Insufficient", "State", "Unauthorized")
    assert not any(word in code for code in closing for word in cured_by_time)
    assert found["InvalidParameterValue"] is ports.Refused


def test_the_codes_that_ec2_documents_by_what_they_are():
    client, server = kinds(ec2_errors.CLIENT), kinds(ec2_errors.SERVER, 500)
    assert not any(issubclass(kind, ports.Refused) for kind in server.values()), "a server's fault is no refusal"
    all = client | server
    assert {kind for code, kind in all.items() if code.startswith("Insufficient")} == {ports.InsufficientCapacity}
    limits = {code for code in client if code.endswith("LimitExceeded")}
    assert {client[code] for code in limits} == {ports.QuotaReached} and len(limits) > 50
    assert {code for code, kind in all.items() if kind is ports.Throttled} == {
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
    }
    named = set().union(*(value for name, value in vars(aws_errors).items() if name.isupper()))
    assert {client[code] for code in client.keys() - named - limits} == {ports.Refused}, "asked again later"


@pytest.mark.parametrize("code", ["Client.RequestLimitExceeded", "Server.RequestLimitExceeded"])
def test_a_code_as_ec2_writes_it_in_other_places(code):
    error = aws_errors.by_code(code, 503, code)
    assert type(error) is ports.Throttled and error.code == "RequestLimitExceeded"


ASKED = {  # beside EC2's actions, whose codes botocore's model doesn't have
    "sqs": ("ReceiveMessage", "DeleteMessageBatch"),
    "ssm": ("GetParameter", "PutParameter"),
    "sts": ("GetCallerIdentity", "AssumeRole", "AssumeRoleWithWebIdentity"),
    "iam": ("SimulatePrincipalPolicy", "GetInstanceProfile"),
}
SLOW = {"RequestThrottled", "KmsThrottled", "OverLimit", "TooManyUpdates"}
OWN_FAULT = {"InternalServerError", "ServiceFailure", "IDPCommunicationError", "PolicyEvaluation"}
LIMITS = {"ParameterLimitExceeded", "ParameterMaxVersionLimitExceeded"}


def test_no_code_of_the_other_services_ends_anything_for_good():
    session, found = botocore.session.get_session(), {}
    for service, actions in ASKED.items():
        for action in actions:
            for shape in session.get_service_model(service).operation_model(action).error_shapes:
                said = shape.metadata.get("error", {})
                code, status = said.get("code", shape.name), said.get("httpStatusCode", 400)
                found[code] = type(aws_errors.by_code(code, status, code))
    expected = dict.fromkeys(found, ports.Refused)
    expected |= dict.fromkeys(SLOW, ports.Throttled) | dict.fromkeys(OWN_FAULT, ports.OutcomeUnknown)
    assert found == expected | dict.fromkeys(LIMITS, ports.QuotaReached) and len(found) > 35


def test_what_botocore_takes_for_throttling_is_throttling():
    codes = ThrottledRetryableChecker._THROTTLED_ERROR_CODES
    mistaken = {code for code, kind in kinds(codes).items() if not issubclass(kind, ports.OutcomeUnknown)}
    assert mistaken <= {"ProvisionedThroughputExceededException", "TransactionInProgressException"}, "DynamoDB's"


def test_a_read_timeout_is_unknown_and_missing_credentials_are_refused():
    assert type(aws_errors.of(ReadTimeoutError(endpoint_url="x"), "RunInstances")) is ports.OutcomeUnknown
    no_code = ClientError({"Error": {}, "ResponseMetadata": {"HTTPStatusCode": 502}}, "RunInstances")
    assert type(aws_errors.of(no_code, "RunInstances")) is ports.OutcomeUnknown
    garbled = ResponseParserError("Unable to parse response (syntax error), invalid XML received")
    assert type(aws_errors.of(garbled, "RunInstances")) is ports.OutcomeUnknown
    assert type(aws_errors.of(NoCredentialsError(), "RunInstances")) is ports.Refused
    assert type(aws_errors.of(ParamValidationError(report="x"), "RunInstances")) is ports.Malformed


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


def test_instances_are_described_by_their_ids_and_unknown_ones_hide_no_other(aws, cloud, request_of):
    known = [instance.id for instance in aws.launch(request_of(count=3))]
    unknown = ["i-0123456789abcdef0", "i-0123456789abcdef1"]
    assert aws.described([]) == aws.described(unknown) == []
    assert sorted(i.id for i in aws.described([unknown[0], *known, unknown[1]])) == sorted(known)
    aws.terminate(known[:1])
    assert [i.alive for i in aws.described(known[:1])] == [False]
    cloud.fault("DescribeInstances", "UnauthorizedOperation", status=403)
    with pytest.raises(ports.Refused):
        aws.described(known[:1])


def test_what_a_ledger_is_rebuilt_from_is_on_the_instances(aws, clients, request_of):
    account = "aws:vision ~50% täglich"
    aws.launch(request_of(owner="0a1b", account=account, usd_per_hour=55.04))
    (instance,) = aws.instances("lab")
    assert (instance.owner, instance.pool, instance.market) == ("0a1b", "p5", "on-demand")
    assert (instance.account, instance.usd_per_hour) == (account, 55.04)
    (raw,) = live(clients("ec2"))
    values = [tag["Value"] for tag in raw["Tags"]]
    assert all(re.fullmatch(r"(?!aws:)[\w+\-=. :/@]{1,256}", value, re.ASCII) for value in values)


RECORDED = json.loads((Path(__file__).parent / "recorded_launches.json").read_text())


@pytest.mark.parametrize("case", sorted(RECORDED))
def test_a_launch_that_an_older_ironburst_wrote_down_is_repeated_byte_for_byte(case):
    """What 0.2 had in its ledger, and the call that it made of it: anything else under the same token is refused."""
    recorded, asked = RECORDED[case]["recorded"], RECORDED[case]["asked"]
    request = LaunchRequest.recorded(recorded)
    assert json.dumps(parameters(request), sort_keys=True) == json.dumps(asked, sort_keys=True)
    again = LaunchRequest.recorded(json.loads(json.dumps(asdict(request))))  # as this one writes it down
    assert again == request and parameters(again) == asked


def test_a_request_of_before_these_tags_is_repeated_without_them(request_of):
    tags = parameters(request_of())["TagSpecifications"][0]["Tags"]
    assert {tag["Key"] for tag in tags} == {"Name", "ironburst:cluster", "ironburst:lease", "ironburst:pool"}
    tags = parameters(request_of(owner="0a1b", account="x" * 300))["TagSpecifications"][0]["Tags"]
    assert "ironburst:account" not in {tag["Key"] for tag in tags}


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


def warning(instance):
    """A notice as EventBridge sends it."""
    detail = {"instance-id": instance, "instance-action": "terminate"}
    return json.dumps({"detail-type": "EC2 Spot Instance Interruption Warning", "detail": detail})


def test_interruptions_come_from_the_queue_until_acknowledged(aws, cloud, clients):
    url = clients("sqs").create_queue(QueueName="lab-p5", Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
    unrelated = {"detail-type": "EC2 Instance Rebalance Recommendation", "detail": {"instance-id": "i-7"}}
    for body in (json.dumps(unrelated), "no json", warning("i-7")):
        clients("sqs").send_message(QueueUrl=url, MessageBody=body)
    interruptions = aws.interruptions([url, url])
    assert {each.instance_id for each in interruptions} == {"i-7"}
    aws.acknowledge(interruptions[-1])
    assert aws.interruptions([url]) == []
    answer = clients("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    left = answer["Attributes"]
    assert left["ApproximateNumberOfMessages"] == "0"


def test_50_notices_at_once_are_read_by_one_look_and_deleted_by_tens(aws, cloud, clients):
    url = clients("sqs").create_queue(QueueName="lab-storm")["QueueUrl"]
    for n in range(0, 50, 10):
        entries = [{"Id": str(i), "MessageBody": warning(f"i-{n + i}")} for i in range(10)]
        clients("sqs").send_message_batch(QueueUrl=url, Entries=entries)
    notices = aws.interruptions([url])
    assert {notice.instance_id for notice in notices} == {f"i-{n}" for n in range(50)}
    before = sum(action == "DeleteMessageBatch" for action, _ in cloud.calls)
    aws.acknowledge(*notices)
    assert sum(action == "DeleteMessageBatch" for action, _ in cloud.calls) - before == 5
    assert not any(action == "DeleteMessage" for action, _ in cloud.calls)
    answer = clients("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert (answer["ApproximateNumberOfMessages"], answer["ApproximateNumberOfMessagesNotVisible"]) == ("0", "0")


def test_a_notice_that_is_not_deleted_keeps_no_other_and_is_said(aws, cloud, clients):
    url = clients("sqs").create_queue(QueueName="lab-part")["QueueUrl"]
    for n in range(3):
        clients("sqs").send_message(QueueUrl=url, MessageBody=warning(f"i-{n}"))
    notices = aws.interruptions([url])
    with pytest.raises(ports.OutcomeUnknown, match="1 messages weren't deleted"):
        aws.acknowledge(Interruption("i-9", "no receipt", url), *notices)
    answer = clients("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert answer["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_launches_side_by_side_answer_each_for_itself(aws, cloud, clients, request_of):
    cloud.capacity[P5, ZONE, "spot"] = 0
    requests = [
        request_of(token="ib-a", launch="a"),
        request_of(token="ib-b", launch="b", market="spot"),
        request_of(token="ib-c", launch="c", launch_template_id="lt-0123456789abcdef0"),
        request_of(token="ib-d", launch="d", count=2),
    ]
    a, b, c, d = aws.launch_all(requests)
    assert [i.launch for i in a] == ["a"] and [i.launch for i in d] == ["d", "d"]
    assert isinstance(b, ports.InsufficientCapacity) and isinstance(c, ports.Refused)
    assert aws.launch_all([]) == []


def test_a_fault_of_ours_in_one_launch_costs_no_other_its_answer(aws, request_of, monkeypatch):
    launch = aws.launch

    def broken(request):
        if request.token == "ib-a":
            raise RuntimeError("nobody thought of this")
        return launch(request)

    monkeypatch.setattr(aws, "launch", broken)
    a, b = aws.launch_all([request_of(token="ib-a"), request_of(token="ib-b")])
    assert type(a) is ports.OutcomeUnknown and len(b) == 1


class Ec2:
    """DescribeInstanceStatus as EC2 answers: only for 100 ids, all of them known."""

    def __init__(self, statuses, unknown=()):
        self.statuses, self.asked, self.unknown = statuses, [], set(unknown)

    def describe_instance_status(self, InstanceIds):
        assert len(InstanceIds) <= 100
        if self.unknown & set(InstanceIds):
            raise refusal("InvalidInstanceID.NotFound")
        self.asked += InstanceIds
        return {"InstanceStatuses": [each for each in self.statuses if each["InstanceId"] in InstanceIds]}


def test_failed_checks_and_scheduled_events_that_are_not_over(aws, monkeypatch):
    at = datetime(2026, 12, 1, 6, tzinfo=UTC)
    ok = {"SystemStatus": {"Status": "ok"}, "InstanceStatus": {"Status": "initializing"}}
    event = {"Code": "instance-retirement", "Description": "The instance is running on degraded hardware"}
    over = [{"Code": "system-reboot", "Description": f"[{how}] scheduled reboot"} for how in ("Completed", "Canceled")]
    statuses = [
        {"InstanceId": "i-0", **ok},
        {"InstanceId": "i-1", **ok, "SystemStatus": {"Status": "impaired"}},
        {"InstanceId": "i-2", **ok, "Events": [*over, event | {"NotBefore": at}]},
        {"InstanceId": "i-3", **ok, "Events": over, "AttachedEbsStatus": {"Status": "impaired"}},
        {"InstanceId": "i-4", **ok, "SystemStatus": {"Status": "insufficient-data"}},
    ]
    ec2 = Ec2(statuses)
    monkeypatch.setattr(aws, "_ec2", ec2)
    ids = [f"i-{n}" for n in range(250)]
    assert aws.troubles(ids) == [
        ports.InstanceTrouble("i-1", "EC2's system status check fails"),
        ports.InstanceTrouble(
            "i-2", "EC2 has scheduled instance-retirement from 2026-12-01 06:00 UTC on", at.timestamp()
        ),
        ports.InstanceTrouble("i-3", "EC2's EBS status check fails"),
    ]
    assert ec2.asked == ids
    model = botocore.session.get_session().get_service_model("ec2").operation_model("DescribeInstanceStatus")
    member = model.output_shape.members["InstanceStatuses"].member.members
    assert {"InstanceId", "SystemStatus", "InstanceStatus", "AttachedEbsStatus", "Events"} <= member.keys()
    assert "impaired" in member["SystemStatus"].members["Status"].enum
    assert event["Code"] in member["Events"].member.members["Code"].enum


def test_an_id_that_is_not_known_hides_no_other_ones_trouble(aws, monkeypatch):
    ill = [{"InstanceId": f"i-{n}", "SystemStatus": {"Status": "impaired"}} for n in (3, 120)]
    monkeypatch.setattr(aws, "_ec2", Ec2(ill, unknown=["i-4", "i-119"]))
    assert [each.instance_id for each in aws.troubles([f"i-{n}" for n in range(130)])] == ["i-3", "i-120"]


class Protected:
    """TerminateInstances where some are protected: one of them fails the whole call."""

    def __init__(self, protected):
        self.protected, self.ended = protected, set()

    def terminate_instances(self, InstanceIds):
        if self.protected & set(InstanceIds):
            raise refusal("OperationNotPermitted")
        self.ended |= set(InstanceIds)
        return {"TerminatingInstances": [{"InstanceId": id, "CurrentState": {"Name": "x"}} for id in InstanceIds]}


def test_a_protected_instance_keeps_no_other_and_is_no_success(aws, monkeypatch):
    ec2 = Protected({"i-3"})
    monkeypatch.setattr(aws, "_ec2", ec2)
    with pytest.raises(ports.Refused, match="OperationNotPermitted"):
        aws.terminate([f"i-{n}" for n in range(7)])
    assert ec2.ended == {f"i-{n}" for n in range(7)} - {"i-3"}


def test_status_checks_reach_the_labs_cloud(aws, request_of):
    (instance,) = aws.launch(request_of())
    assert aws.troubles([instance.id]) == [] and aws.troubles([]) == []


def test_a_queue_that_is_gone_is_an_error(aws, cloud):
    with pytest.raises(ports.CloudError):
        aws.interruptions([f"{cloud.url}/123456789012/nothing"])
    assert Interruption("i-1", "r").queue == ""
