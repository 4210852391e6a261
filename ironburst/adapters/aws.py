"""The AWS side of the controller: launching, finding and ending rented instances.

Endpoint, credentials and region come as boto3 finds them (AWS_ENDPOINT_URL, instance role, ...). Capacity calls are
tried once: botocore would repeat InsufficientInstanceCapacity, a server error, by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from ironburst import naming
from ironburst.adapters import aws_errors
from ironburst.adapters.aws_errors import call
from ironburst.ports import ALIVE, CloudError, Instance, Interruption, LaunchRequest, OutcomeUnknown

CLUSTER, LEASE, POOL = naming.CLUSTER_TAG, naming.LEASE_TAG, naming.POOL_TAG
_WARNING = "EC2 Spot Instance Interruption Warning"
_BATCHES = 10  # of 10 messages, a queue and a call


class Aws:
    """A Cloud (ironburst.ports)."""

    def __init__(self, region: str, session: Any = None, *, read_timeout_s: float = 30.0):
        """`session`: a boto3.Session, for tests; its clients are made here, once."""
        session = session or boto3.Session()
        patient = Config(
            retries={"mode": "standard", "total_max_attempts": 4}, connect_timeout=5, read_timeout=read_timeout_s
        )
        once = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=read_timeout_s)
        self._ec2 = session.client("ec2", region_name=region, config=patient)
        self._ec2_once = session.client("ec2", region_name=region, config=once)
        self._ssm = session.client("ssm", region_name=region, config=patient)
        self._sqs = session.client("sqs", region_name=region, config=patient)

    def image_id(self, parameter: str) -> str | None:
        """The value of an SSM parameter; None: there is none."""
        try:
            return str(call(self._ssm.get_parameter, Name=parameter)["Parameter"]["Value"])
        except CloudError as error:
            if error.code == "ParameterNotFound":
                return None
            raise

    def launch(self, request: LaunchRequest) -> list[Instance]:
        """RunInstances, once: all or nothing."""
        answer = call(self._ec2_once.run_instances, **parameters(request))
        instances = [_instance(raw) for raw in answer["Instances"]]
        if len(instances) != request.count:  # can't be with MinCount = MaxCount; never go on with a part of a gang
            raise OutcomeUnknown(f"RunInstances answered with {len(instances)} instances instead of {request.count}")
        return instances

    def instances(self, cluster: str) -> list[Instance]:
        """By the tags that every launch sets."""
        return self._described({f"tag:{CLUSTER}": cluster, "tag-key": LEASE})

    def by_token(self, token: str) -> list[Instance]:
        """By the client token of their launch."""
        return self._described({"client-token": token})

    def terminate(self, ids: Sequence[str]) -> set[str]:
        """One that is gone already keeps no other alive."""
        if not ids:
            return set()
        try:
            ending = call(self._ec2.terminate_instances, InstanceIds=list(ids))["TerminatingInstances"]
            return {raw["InstanceId"] for raw in ending if raw["CurrentState"]["Name"] not in ALIVE}
        except CloudError as error:
            # of one that is gone the tags are gone too, and with them the right
            if error.code not in ("InvalidInstanceID.NotFound", "UnauthorizedOperation"):
                raise
            if len(ids) > 1:  # one that is gone must not keep the others alive
                return set().union(*(self.terminate([id]) for id in ids))
            if error.code == "UnauthorizedOperation" and self._described({"instance-id": ids[0]}):
                raise
            return set()  # it may also be so new that it isn't known everywhere

    def interruptions(self, queues: Iterable[str]) -> list[Interruption]:
        """Spot warnings from the queues; other messages are deleted."""
        notices = []
        for queue in dict.fromkeys(queues):
            for _ in range(_BATCHES):
                batch = {"QueueUrl": queue, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 0}
                messages = call(self._sqs.receive_message, **batch).get("Messages", [])
                for message in messages:
                    instance = _interrupted(message["Body"])
                    if instance:
                        notices.append(Interruption(instance, message["ReceiptHandle"], queue))
                    else:  # rebalance hints, state changes: nothing to do
                        self.acknowledge(Interruption("", message["ReceiptHandle"], queue))
                if not messages:
                    break
        return notices

    def acknowledge(self, interruption: Interruption) -> None:
        """Delete the message."""
        call(self._sqs.delete_message, QueueUrl=interruption.queue, ReceiptHandle=interruption.receipt)

    def _described(self, filters: dict[str, str]) -> list[Instance]:
        wanted = [{"Name": name, "Values": [value]} for name, value in filters.items()]
        try:
            pages = list(self._ec2.get_paginator("describe_instances").paginate(Filters=wanted))
        except (ClientError, BotoCoreError) as error:
            raise aws_errors.of(error, "DescribeInstances") from None
        return [
            _instance(raw) for page in pages for reservation in page["Reservations"] for raw in reservation["Instances"]
        ]


def parameters(request: LaunchRequest) -> dict[str, Any]:
    """RunInstances' own parameters of a launch: a function of the request, so that a repeat is the same call."""
    tags = {
        CLUSTER: request.cluster,
        LEASE: request.launch,
        POOL: request.pool,
        "Name": f"{request.cluster}-{request.pool}-{request.launch}",
    }
    spelled = [{"Key": key, "Value": value} for key, value in tags.items()]
    out: dict[str, Any] = {
        "MinCount": request.count,
        "MaxCount": request.count,
        "ClientToken": request.token,
        "ImageId": request.image_id,
        "LaunchTemplate": {
            "LaunchTemplateId": request.launch_template_id,
            "Version": request.launch_template_version,
        },
        "UserData": request.user_data,  # botocore encodes it as base64
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": spelled} for kind in ("instance", "volume", "network-interface")
        ],
    }
    if request.market == "spot":
        out["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
        }
    elif request.market == "capacity-block":
        out["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
    if request.capacity_reservation_id and request.market != "spot":
        target = {"CapacityReservationId": request.capacity_reservation_id}
        out["CapacityReservationSpecification"] = {"CapacityReservationTarget": target}
    return out


def _instance(raw: dict[str, Any]) -> Instance:
    tags = {tag["Key"]: tag["Value"] for tag in raw.get("Tags", [])}
    return Instance(
        id=raw["InstanceId"],
        index=int(raw.get("AmiLaunchIndex", 0)),
        state=raw["State"]["Name"],
        address=raw.get("PrivateIpAddress"),
        zone=raw["Placement"]["AvailabilityZone"],
        launch=tags.get(LEASE, ""),
        token=raw.get("ClientToken") or "",
        launched_s=raw["LaunchTime"].timestamp(),
        reason=(raw.get("StateReason") or {}).get("Code", ""),
        instance_type=raw.get("InstanceType", ""),
        image_id=raw.get("ImageId", ""),
    )


def _interrupted(body: str) -> str | None:
    """The instance that an EventBridge message warns of; None if it is about something else."""
    try:
        event = json.loads(body)
        return str(event["detail"]["instance-id"]) if event.get("detail-type") == _WARNING else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
