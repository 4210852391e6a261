"""The lab's cloud: hooks, spot interruption, faults, images, and the switchboard."""

import json
import threading

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from lab.aws import client as control_client
from lab.aws.cloud import Cloud
from lab.aws.control import Control
from lab.aws.imds import tree
from lab.aws.testing import client, live, network, refused
from lab.system import wait_for
from tests.lab_cloud import allow_spot

P5, IMAGE = "p5.48xlarge", "ami-0123456789abcdef0"


class Hooks:
    """Stands for the site: writes down what it is told, and fails on demand."""

    def __init__(self):
        self.seen = []

    def launch(self, view):
        self.seen.append(("launch", view))
        if view.tags.get("boot") == "fails":
            raise RuntimeError("no disk left")

    def terminate(self, view):
        self.seen.append(("terminate", view))
        if view.tags.get("end") == "fails":
            raise RuntimeError("the host hangs")


@pytest.fixture(scope="module")
def hooks():
    return Hooks()


@pytest.fixture(scope="module")
def server(hooks):
    cloud = Cloud(seed=7, on_launch=hooks.launch, on_terminate=hooks.terminate)
    yield cloud
    cloud.close()


@pytest.fixture
def cloud(server, hooks, clients):
    server.reset()
    allow_spot(clients("iam"))
    server.register_image("baked", IMAGE)
    hooks.seen.clear()
    return server


@pytest.fixture
def subnet(ec2):
    return network(ec2)[1]


def run(ec2, count=1, **more):
    answer = ec2.run_instances(MinCount=count, MaxCount=count, **{"InstanceType": P5, "ImageId": IMAGE, **more})
    return answer["Instances"]


def tags(**values):
    return {
        "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": k, "Value": v} for k, v in values.items()]}]
    }


def described(ec2, instance_id):
    return ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]


# ---- hooks
def test_hooks_see_launch_and_end(cloud, hooks, ec2, subnet):
    ids = [i["InstanceId"] for i in run(ec2, 2, SubnetId=subnet, UserData='{"ironburst": 1}')]
    cloud.settle()
    assert set(cloud.hosts) == set(ids) and {i["State"]["Name"] for i in live(ec2)} == {"running"}
    ec2.terminate_instances(InstanceIds=ids[:1])
    ec2.terminate_instances(InstanceIds=ids[:1])  # a second time is nothing
    cloud.settle()
    expected = [("launch", ids[0], 0), ("launch", ids[1], 1), ("terminate", ids[0], 0)]
    assert [(what, v.instance_id, v.launch_index) for what, v in hooks.seen] == expected
    first, second = hooks.seen[0][1], hooks.seen[1][1]
    assert (first.user_data, first.image_folder, first.instance_type) == ('{"ironburst": 1}', "baked", P5)
    assert first.hostname == "ip-" + first.address.replace(".", "-")
    assert cloud.instance_at(first.address) is None and cloud.instance_at(second.address).instance_id == ids[1]
    assert set(cloud.hosts) == {ids[1]}


def test_an_ended_instance_is_shown_without_address_and_network_cards(cloud, ec2, subnet):
    id = run(ec2, SubnetId=subnet, **tags(a="b"))[0]["InstanceId"]
    assert len(described(ec2, id)["NetworkInterfaces"]) == 1 and described(ec2, id)["PrivateIpAddress"]
    ec2.terminate_instances(InstanceIds=[id])
    shown = described(ec2, id)
    assert shown["Tags"] == [{"Key": "a", "Value": "b"}] and shown["StateReason"]["Code"].startswith("Client.User")
    assert not shown.get("NetworkInterfaces") and "PrivateIpAddress" not in shown


def test_a_failed_boot_ends_the_instance_with_the_reason(cloud, hooks, ec2, subnet):
    instance = run(ec2, SubnetId=subnet, **tags(boot="fails"))[0]
    assert instance["State"]["Name"] == "pending"
    cloud.settle()
    cloud.settle()  # the end was asked for by the first
    gone = described(ec2, instance["InstanceId"])
    assert (gone["State"]["Name"], gone["StateReason"]["Code"]) == ("terminated", "Server.InternalError")
    assert "no disk left" in gone["StateReason"]["Message"]
    assert [what for what, _ in hooks.seen] == ["launch", "terminate"]
    assert not cloud.hosts  # what was half made is tidied


def test_a_failed_end_stays_visible(cloud, ec2, subnet):
    instance = run(ec2, SubnetId=subnet, **tags(end="fails"))[0]["InstanceId"]
    cloud.settle()
    ec2.terminate_instances(InstanceIds=[instance])
    cloud.settle()
    assert described(ec2, instance)["State"]["Name"] == "terminated" and set(cloud.hosts) == {instance}


@pytest.mark.parametrize(
    ("behavior", "state"), [({}, "stopped"), ({"InstanceInitiatedShutdownBehavior": "terminate"}, "terminated")]
)
def test_a_machine_that_powers_itself_off_stops_or_ends_as_its_launch_says(cloud, hooks, ec2, subnet, behavior, state):
    instance = run(ec2, SubnetId=subnet, **behavior)[0]["InstanceId"]
    cloud.settle()
    cloud.powered_off(instance)
    cloud.settle()
    seen = described(ec2, instance)
    assert seen["State"]["Name"] == state
    if state == "terminated":
        assert seen["StateReason"]["Code"] == "Client.InstanceInitiatedShutdown"
        assert [what for what, _ in hooks.seen] == ["launch", "terminate"]


def test_a_reboot_is_refused_rather_than_pretended(cloud, ec2, subnet):
    instance = run(ec2, SubnetId=subnet)[0]["InstanceId"]
    assert refused(ec2.reboot_instances, InstanceIds=[instance]) == ("UnsupportedOperation", 400)


def test_a_stop_takes_its_time_and_keeps_the_disk(cloud, ec2, subnet, monkeypatch):
    done, go_on = [], threading.Event()
    monkeypatch.setattr(cloud, "on_stop", lambda view: (go_on.wait(10), done.append(("stop", view.state))))
    monkeypatch.setattr(cloud, "on_start", lambda view: done.append(("start", view.state)))
    instance = run(ec2, SubnetId=subnet)[0]["InstanceId"]
    assert refused(ec2.stop_instances, InstanceIds=["i-0123456789abcdef0"]) == ("InvalidInstanceID.NotFound", 400)
    cloud.settle()
    (stopping,) = ec2.stop_instances(InstanceIds=[instance])["StoppingInstances"]
    assert (stopping["PreviousState"]["Name"], stopping["CurrentState"]["Name"]) == ("running", "stopping")
    assert described(ec2, instance)["State"]["Name"] == "stopping"
    assert refused(ec2.start_instances, InstanceIds=[instance]) == ("IncorrectInstanceState", 400)
    assert refused(ec2.create_image, InstanceId=instance, Name="too early") == ("IncorrectState", 400)
    go_on.set()
    cloud.settle()
    assert described(ec2, instance)["State"]["Name"] == "stopped" and instance in cloud.hosts
    ec2.start_instances(InstanceIds=[instance])
    cloud.settle()
    assert described(ec2, instance)["State"]["Name"] == "running"
    assert done == [("stop", "stopping"), ("start", "pending")]


def test_a_one_time_spot_instance_is_not_stopped(cloud, ec2, subnet):
    instance = run(ec2, SubnetId=subnet, InstanceMarketOptions={"MarketType": "spot"})[0]["InstanceId"]
    cloud.settle()
    assert refused(ec2.stop_instances, InstanceIds=[instance]) == ("UnsupportedOperation", 400)


def test_a_snapshot_stays_while_an_image_has_it(cloud, ec2):
    image = cloud.register_image("")
    (disk,) = ec2.describe_images(ImageIds=[image])["Images"][0]["BlockDeviceMappings"]
    snapshot = disk["Ebs"]["SnapshotId"]
    assert refused(ec2.delete_snapshot, SnapshotId=snapshot) == ("InvalidSnapshot.InUse", 400)
    ec2.deregister_image(ImageId=image)
    ec2.delete_snapshot(SnapshotId=snapshot)  # it was left
    another = cloud.register_image("")
    results = ec2.deregister_image(ImageId=another, DeleteAssociatedSnapshots=True)["DeleteSnapshotResults"]
    assert [result["ReturnCode"] for result in results] == ["success"]
    assert refused(ec2.deregister_image, ImageId=another) == ("InvalidAMIID.Unavailable", 400)


def test_the_console_of_now_shows_the_host_keys(cloud, ec2, subnet):
    instance = run(ec2, SubnetId=subnet)[0]["InstanceId"]
    assert "BEGIN SSH HOST KEY KEYS" in ec2.get_console_output(InstanceId=instance, Latest=True)["Output"]
    assert ec2.get_console_output(InstanceId=instance).get("Output", "") == ""  # some minutes old: nothing yet


# ---- spot interruption
def queue_with_rule(clients, name, pattern):
    sqs, events = clients("sqs"), clients("events")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sqs.set_queue_attributes(
        QueueUrl=url,
        Attributes={
            "Policy": json.dumps(
                {
                    "Version": "2012-10-17",
                    "Statement": [
                        {
                            "Effect": "Allow",
                            "Principal": {"Service": "events.amazonaws.com"},
                            "Action": "sqs:SendMessage",
                            "Resource": arn,
                        }
                    ],
                }
            )
        },
    )
    events.put_rule(Name=name, EventPattern=json.dumps(pattern))
    events.put_targets(Rule=name, Targets=[{"Id": "q", "Arn": arn}])
    return url


def messages(clients, url):
    told = []
    while batch := clients("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for message in batch:
            told.append(json.loads(message["Body"]))
            clients("sqs").delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return told


def test_an_interruption_reaches_queue_and_metadata_and_ends_the_host(cloud, hooks, clients, ec2, subnet):
    everything = queue_with_rule(clients, "all", {"source": ["aws.ec2"]})
    warning = {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]}
    warnings = [queue_with_rule(clients, name, warning) for name in ("pool1", "pool2")]
    instance = run(ec2, SubnetId=subnet, InstanceMarketOptions={"MarketType": "spot"})[0]
    cloud.settle()
    assert "meta-data/spot/instance-action" not in tree(cloud.instance_at(instance["PrivateIpAddress"]), "us-east-1")
    cloud.interrupt(instance["InstanceId"], notice=4)
    action = json.loads(
        tree(cloud.instance_at(instance["PrivateIpAddress"]), "us-east-1")["meta-data/spot/instance-action"]
    )
    assert action["action"] == "terminate" and action["time"].endswith("Z")
    for url in warnings:  # every rule's queue gets it
        (told,) = messages(clients, url)
        assert (told["detail-type"], told["detail"]) == (
            "EC2 Spot Instance Interruption Warning",
            {"instance-id": instance["InstanceId"], "instance-action": "terminate"},
        )
        assert told["source"] == "aws.ec2" and told["region"] == "us-east-1" and told["time"].endswith("Z")
    assert described(ec2, instance["InstanceId"])["State"]["Name"] == "running"
    wait_for(lambda: described(ec2, instance["InstanceId"])["State"]["Name"] == "terminated", 30, "the end")
    assert described(ec2, instance["InstanceId"])["StateReason"]["Code"] == "Server.SpotInstanceTermination"
    cloud.settle()
    assert [what for what, _ in hooks.seen] == ["launch", "terminate"]
    assert sorted((m["detail-type"], m["detail"].get("state")) for m in messages(clients, everything)) == sorted(
        [
            ("EC2 Instance State-change Notification", "running"),
            ("EC2 Instance Rebalance Recommendation", None),
            ("EC2 Spot Instance Interruption Warning", None),
            ("EC2 Instance State-change Notification", "terminated"),
        ],
        key=str,
    )


def test_without_the_queue_policy_nothing_is_delivered(cloud, clients, ec2, subnet):
    url = queue_with_rule(clients, "closed", {"source": ["aws.ec2"]})
    clients("sqs").set_queue_attributes(QueueUrl=url, Attributes={"Policy": ""})
    run(ec2, SubnetId=subnet)
    cloud.settle()
    assert messages(clients, url) == []


def test_only_live_spot_instances_can_be_interrupted(cloud, ec2, subnet):
    instance = run(ec2, SubnetId=subnet)[0]["InstanceId"]
    with pytest.raises(ValueError, match="only a live spot instance"):
        cloud.interrupt(instance)
    with pytest.raises(LookupError):
        cloud.interrupt("i-0")


# ---- faults
def test_an_error_for_one_action_and_one_type(cloud, ec2, subnet):
    cloud.fault("RunInstances", "VcpuLimitExceeded", when=lambda p: p.get("InstanceType") == P5, times=2)
    assert refused(run, ec2, SubnetId=subnet) == ("VcpuLimitExceeded", 400)
    assert len(run(ec2, SubnetId=subnet, InstanceType="g6.xlarge")) == 1
    assert refused(run, ec2, SubnetId=subnet)[0] == "VcpuLimitExceeded"
    assert len(run(ec2, SubnetId=subnet)) == 1
    cloud.fault("DescribeInstances", "RequestLimitExceeded", status=503)
    assert refused(ec2.describe_instances) == ("RequestLimitExceeded", 503)


@pytest.mark.parametrize(
    ("service", "call", "action", "code"),
    [
        ("sqs", "list_queues", "ListQueues", "ThrottlingException"),
        ("iam", "list_roles", "ListRoles", "Throttling"),
        ("s3", "list_buckets", "GET /", "SlowDown"),
        ("ssm", "describe_parameters", "DescribeParameters", "InternalServerError"),
    ],
)
def test_an_error_in_each_protocol(cloud, clients, service, call, action, code):
    cloud.fault(action, code, status=503)
    assert refused(getattr(clients(service), call)) == (code, 503)


@pytest.mark.parametrize("fault", [{"drop": True}, {"delay": 0.6}, {"code": "InternalError", "status": 500}])
def test_a_launch_that_took_effect_without_a_reply(cloud, subnet, fault):
    ec2 = client(cloud.url, read_timeout=0.3)
    cloud.fault("RunInstances", after=True, **fault)
    with pytest.raises((ConnectionClosedError, ReadTimeoutError, ClientError)):
        run(ec2, 2, SubnetId=subnet, ClientToken="lost")
    wait_for(lambda: len(live(ec2)) == 2, 5, "the launch")
    assert len(run(ec2, 2, SubnetId=subnet, ClientToken="lost")) == 2  # the same request again: no second gang
    assert len(live(ec2)) == 2


def test_a_dropped_call_that_took_no_effect(cloud, ec2, subnet):
    cloud.fault("RunInstances", drop=True)
    with pytest.raises(ConnectionClosedError):
        run(ec2, SubnetId=subnet, ClientToken="lost")
    assert live(ec2) == []


# ---- the switchboard
@pytest.fixture
def control(cloud):
    server = Control(("127.0.0.1", 0), cloud, image_known=lambda folder: folder == "p5-1")
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield lambda verb, path, body=None: control_client.call(verb, path, body, url=server.url)
    server.shutdown()
    server.server_close()


def test_capacity_and_faults_by_the_switchboard(cloud, control, ec2, subnet):
    row = {"instance_type": P5, "zone": "us-east-1a", "market": "on-demand", "count": 0}
    assert control("POST", "/lab/capacity", row) == [row]
    assert refused(run, ec2, SubnetId=subnet) == ("InsufficientInstanceCapacity", 500)
    assert control("POST", "/lab/capacity", row | {"count": None}) == []
    control(
        "POST", "/lab/faults", {"action": "RunInstances", "code": "VcpuLimitExceeded", "match": {"InstanceType": P5}}
    )
    assert len(run(ec2, SubnetId=subnet, InstanceType="g6.xlarge")) == 1
    assert refused(run, ec2, SubnetId=subnet) == ("VcpuLimitExceeded", 400)
    assert [(f["action"], f["hits"]) for f in control("GET", "/lab/faults")] == [("RunInstances", 1)]
    assert control("DELETE", "/lab/faults") == [] and control("GET", "/lab/calls")["RunInstances"] == 3


def test_an_organization_by_the_switchboard(cloud, control):
    boundary = "arn:aws:iam::123456789012:policy/b"
    policies = control("POST", "/lab/organization", {"tag": "CostCenter", "boundary": boundary})
    assert policies == cloud.organization and len(policies) == 2
    assert control("POST", "/lab/organization", {}) == cloud.organization == []


def test_images_by_the_switchboard(cloud, control, ec2, subnet):
    made = control("POST", "/lab/images", {"folder": "images/p5-1", "name": "p5 image"})["image_id"]
    control("POST", "/lab/images", {"image_id": "ami-00000000"})
    assert {i["image_id"]: i["folder"] for i in control("GET", "/lab/images")} == {
        IMAGE: "baked",
        made: "p5-1",
        "ami-00000000": None,
    }
    assert run(ec2, SubnetId=subnet, ImageId=made)[0]["ImageId"] == made
    shown = ec2.describe_images(ImageIds=[made], Owners=["self"])["Images"][0]
    assert (shown["Name"], shown["State"], shown["Architecture"]) == ("p5 image", "available", "x86_64")


def test_interrupt_and_lists_by_the_switchboard(cloud, control, ec2, subnet):
    instance = run(ec2, SubnetId=subnet, InstanceMarketOptions={"MarketType": "spot"})[0]["InstanceId"]
    cloud.settle()
    assert [i["instance_id"] for i in control("GET", "/lab/hosts")] == [instance]
    assert control("GET", "/lab/health") == {"url": cloud.url, "instances": 1, "hosts": 1}
    control("POST", "/lab/interrupt", {"instance_id": instance, "notice_s": 0})
    wait_for(lambda: control("GET", "/lab/instances")[0]["state"] == "terminated", 5, "the end")
    cloud.settle()
    assert control("GET", "/lab/hosts") == []
    stays = run(ec2, SubnetId=subnet)[0]["InstanceId"]
    assert control("DELETE", "/lab/instances") == []
    assert [i["instance_id"] for i in control("GET", "/lab/instances")] == [stays]
    assert refused(ec2.describe_instances, InstanceIds=[instance])[0] == "InvalidInstanceID.NotFound"


def test_a_capacity_block_by_the_switchboard_ends_its_instances(cloud, control, ec2, subnet):
    bought = {"instance_type": P5, "zone": "us-east-1a", "count": 1, "ends_in_s": 3}
    target = {"CapacityReservationId": control("POST", "/lab/capacity-block", bought)["reservation_id"]}
    market = {"InstanceMarketOptions": {"MarketType": "capacity-block"}}
    into = market | {"CapacityReservationSpecification": {"CapacityReservationTarget": target}}
    run(ec2, SubnetId=subnet, **into)
    assert refused(run, ec2, SubnetId=subnet, **into)[0] == "ReservationCapacityExceeded"
    wait_for(lambda: control("GET", "/lab/instances")[0]["state"] == "terminated", 10, "the end")


@pytest.mark.parametrize(
    ("verb", "path", "body", "says"),
    [
        (
            "POST",
            "/lab/capacity",
            {"instance_type": P5, "zone": "us-east-1a", "market": "spots", "count": 1},
            "market: .*'spots'",
        ),
        (
            "POST",
            "/lab/capacity",
            {"instance_type": P5, "zone": "us-east-1a", "market": "spot"},
            "count: Field required",
        ),
        ("POST", "/lab/faults", {"action": "RunInstances", "codee": "X"}, "codee: "),
        ("POST", "/lab/images", {"folder": "none"}, "no baked image 'none'"),
        ("POST", "/lab/images", {"image_id": "ami-x"}, "must be ami-"),
        ("POST", "/lab/interrupt", {"instance_id": "i-0"}, "no instance i-0"),
        ("GET", "/lab/nothing", None, "no such call"),
    ],
)
def test_bad_input_to_the_switchboard(control, verb, path, body, says):
    with pytest.raises(control_client.ControlFailed, match=says) as error:
        control(verb, path, body)
    assert "\n" not in str(error.value)
