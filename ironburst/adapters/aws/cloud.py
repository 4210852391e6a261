"""The AWS side of the controller: launching, finding and ending rented instances.

Endpoint, credentials and region come as boto3 finds them (AWS_ENDPOINT_URL, instance role, ...). Capacity calls are
tried once: botocore would repeat InsufficientInstanceCapacity, a server error, by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import boto3
from botocore.config import Config

from ironburst.adapters import at_once
from ironburst.adapters.aws import errors as aws_errors
from ironburst.adapters.aws import waiting
from ironburst.adapters.aws.errors import call
from ironburst.nodes import naming
from ironburst.ports import (
    ALIVE,
    CloudError,
    Instance,
    InstanceTrouble,
    Interruption,
    LaunchRequest,
    OutcomeUnknown,
    Refused,
)

CLUSTER, LEASE, POOL = naming.CLUSTER_TAG, naming.LEASE_TAG, naming.POOL_TAG
_WARNING = "EC2 Spot Instance Interruption Warning"
_IDS = 100  # that one call asks for; DescribeInstanceStatus takes no more
_SQS = 10  # messages that one call receives or deletes, at most
_BATCHES = 200  # received of one queue in one call of ours: 2,000 messages
# what DescribeInstanceStatus puts before the description of an event that is over
_OVER = ("[Completed]", "[Canceled]")


class Aws:
    """A Cloud (ironburst.ports)."""

    def __init__(self, region: str, session: Any = None, *, read_timeout_s: float = 30.0, waits: bool = False):
        """`session`: a boto3.Session, for tests; its clients are made here, once. `waits`: from the second call on a
        thread waits for notices, between the calls for them.
        """
        session = session or boto3.Session()
        # notices come between two ticks, and a call without an answer is waited for in each: a minute for all attempts
        retries = {"mode": "standard", "total_max_attempts": 3}
        patient = Config(retries=retries, connect_timeout=5, read_timeout=min(read_timeout_s, 20.0))
        once = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=read_timeout_s)
        quick = Config(retries={"total_max_attempts": 1}, connect_timeout=3, read_timeout=min(read_timeout_s, 5.0))
        self._ec2 = session.client("ec2", region_name=region, config=patient)
        self._ec2_quick = session.client("ec2", region_name=region, config=quick)
        self._ec2_once = session.client("ec2", region_name=region, config=once)
        self._devices: dict[str, str] = {}  # image -> its root device, which never changes
        self._ssm = session.client("ssm", region_name=region, config=patient)
        self._sqs = session.client("sqs", region_name=region, config=patient)
        held = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=waiting.LONGEST_S + 10)
        self._sqs_held = session.client("sqs", region_name=region, config=held) if waits else None
        self._waiting: dict[str, waiting.Waiting | None] = {}  # None: it was asked once, by nobody who waits yet

    def image_id(self, reference: str) -> str | None:
        """The value of an SSM parameter; None: there is none."""
        try:
            return str(call(self._ssm.get_parameter, Name=reference)["Parameter"]["Value"])
        except CloudError as error:
            if error.code == "ParameterNotFound":
                return None
            raise

    def launch_all(self, requests: Sequence[LaunchRequest]) -> list[list[Instance] | CloudError]:
        """RunInstances for each, in threads of their own: a call takes seconds."""
        return at_once.launches(requests, self.launch, "RunInstances")

    def launch(self, request: LaunchRequest) -> list[Instance]:
        """RunInstances, once: all or nothing."""
        device = self._root_device(request.image_id) if request.place.get("volume_init_mb_s") else ""
        answer = call(self._ec2_once.run_instances, **parameters(request, device))
        instances = [_instance(raw) for raw in answer["Instances"]]
        if len(instances) != request.count:  # can't be with MinCount = MaxCount; never go on with a part of a gang
            raise OutcomeUnknown(f"RunInstances answered with {len(instances)} instances instead of {request.count}")
        return instances

    def _root_device(self, image_id: str) -> str:
        """Raises Refused for an image that isn't there."""
        if image_id not in self._devices:
            images = call(self._ec2.describe_images, ImageIds=[image_id])["Images"]
            if not images:
                raise Refused(f"DescribeImages: there is no image {image_id}", "InvalidAMIID.NotFound")
            self._devices[image_id] = images[0]["RootDeviceName"]
        return self._devices[image_id]

    def instances(self, cluster: str) -> list[Instance]:
        """By the tags that every launch sets."""
        return self._listed({f"tag:{CLUSTER}": cluster, "tag-key": LEASE})

    def builds(self, cluster: str) -> list[Instance]:
        """Those that images are baked on, by the tags of their launch."""
        return self._listed({f"tag:{CLUSTER}": cluster, f"tag:{naming.ROLE_TAG}": "image-build"})

    def described(self, ids: Sequence[str]) -> list[Instance]:
        """By their ids, which EC2 answers more surely than a filter: it says of an id that it doesn't know it."""
        return _instances(_of_known(self._ec2.describe_instances, ids))

    def by_token(self, token: str) -> list[Instance]:
        """By the client token of their launch."""
        return self._listed({"client-token": token})

    def console(self, instance_id: str) -> str:
        """The console's last 64 KiB. Those of now, which only types on Nitro have; else what was kept of its boot."""
        try:
            return self._console(instance_id, Latest=True) or self._console(instance_id)
        except CloudError as error:
            if error.code != "UnsupportedOperation":
                raise
            return self._console(instance_id)

    def _console(self, instance_id: str, **which: bool) -> str:
        """botocore has decoded it; a young instance has none."""
        return str(call(self._ec2.get_console_output, InstanceId=instance_id, **which).get("Output") or "")

    def terminate(self, ids: Sequence[str]) -> set[str]:
        """One that is gone already keeps no other alive."""
        if not ids:
            return set()
        try:
            ending = call(self._ec2.terminate_instances, InstanceIds=list(ids))["TerminatingInstances"]
            return {raw["InstanceId"] for raw in ending if raw["CurrentState"]["Name"] not in ALIVE}
        except Refused as error:
            if len(ids) > 1:  # one that is gone, or protected, must not keep the others alive
                return self._terminated_by_halves(ids)
            if error.code == "InvalidInstanceID.NotFound":  # it may also be so new that it isn't known everywhere
                return set()
            if error.code == "UnauthorizedOperation" and not self.described(ids):
                return set()  # of one that is gone the tags are gone too, and with them the right
            raise

    def _terminated_by_halves(self, ids: Sequence[str]) -> set[str]:
        ended, refused, half = set[str](), list[CloudError](), len(ids) // 2
        for part in (ids[:half], ids[half:]):
            try:
                ended |= self.terminate(part)
            except CloudError as error:
                refused.append(error)
        if refused:
            raise refused[0]
        return ended

    def prolong(self, until: Mapping[str, float]) -> None:
        """Nothing: nodes end themselves, and nothing else ends them."""

    def spot_prices(self, types: Sequence[str]) -> dict[tuple[str, str], float]:
        """DescribeSpotPriceHistory from now on: the price in force of each type and zone, of Linux."""
        asked = {"InstanceTypes": sorted(types), "ProductDescriptions": ["Linux/UNIX"], "StartTime": datetime.now(UTC)}
        found: dict[tuple[str, str], tuple[datetime, float]] = {}
        try:
            for page in self._ec2_quick.get_paginator("describe_spot_price_history").paginate(**asked) if types else ():
                for row in page["SpotPriceHistory"]:
                    place, usd = (row["InstanceType"], row["AvailabilityZone"]), naming.price(row["SpotPrice"])
                    if usd and (place not in found or found[place][0] < row["Timestamp"]):
                        found[place] = row["Timestamp"], usd
        except aws_errors.raised as error:
            raise aws_errors.of(error, "DescribeSpotPriceHistory") from None
        return {place: usd for place, (_, usd) in found.items()}

    def interruptions(self, queues: Iterable[str]) -> list[Interruption]:
        """Spot warnings from the queues; other messages are deleted."""
        notices, others = list[Interruption](), list[Interruption]()
        for queue in dict.fromkeys(queues):
            for message in self._came(queue):
                instance = _interrupted(message["Body"])
                # others: rebalance hints, state changes: nothing to do
                (notices if instance else others).append(Interruption(instance or "", message["ReceiptHandle"], queue))
        try:
            self.acknowledge(*others)
        except CloudError:
            if not notices:
                raise
        return notices

    def _came(self, queue: str) -> Iterable[dict[str, Any]]:
        if self._sqs_held is None:
            return self._received(queue)
        if queue not in self._waiting:
            self._waiting[queue] = None
            return self._received(queue)
        wanted = {"QueueUrl": queue, "MaxNumberOfMessages": _SQS}

        def held(seconds: int) -> list[dict[str, Any]]:
            assert self._sqs_held is not None
            found = call(self._sqs_held.receive_message, **wanted, WaitTimeSeconds=seconds).get("Messages", [])
            return list(found)

        waits = self._waiting[queue] = self._waiting[queue] or waiting.Waiting(held)
        return waits.taken()

    def _received(self, queue: str) -> Iterator[dict[str, Any]]:
        """What waits in a queue. What came before an error counts: it is shown again only half a minute later."""
        batch = {"QueueUrl": queue, "MaxNumberOfMessages": _SQS, "WaitTimeSeconds": 0}
        for n in range(_BATCHES):
            try:
                messages = call(self._sqs.receive_message, **batch).get("Messages", [])
            except CloudError:
                if n == 0:
                    raise
                return
            yield from messages
            if not messages:
                return

    def acknowledge(self, *interruptions: Interruption) -> None:
        """Delete the messages, by tens; one that isn't deleted keeps no other."""
        of: dict[str, list[str]] = {}
        for each in interruptions:
            of.setdefault(each.queue, []).append(each.receipt)
        failed: list[str] = []
        for queue, receipts in of.items():
            for n in range(0, len(receipts), _SQS):
                entries = [{"Id": str(i), "ReceiptHandle": each} for i, each in enumerate(receipts[n : n + _SQS])]
                answer = call(self._sqs.delete_message_batch, QueueUrl=queue, Entries=entries)
                failed += [each["Code"] for each in answer.get("Failed", [])]
        if failed:
            raise OutcomeUnknown(f"DeleteMessageBatch: {len(failed)} messages weren't deleted", failed[0])

    def troubles(self, ids: Sequence[str]) -> list[InstanceTrouble]:
        """Of DescribeInstanceStatus: failed checks, and scheduled events that aren't over."""
        answers = _of_known(self._ec2.describe_instance_status, ids)
        return [
            found for answer in answers for status in answer.get("InstanceStatuses", []) for found in _troubles(status)
        ]

    def _listed(self, filters: dict[str, str]) -> list[Instance]:
        wanted = [{"Name": name, "Values": [value]} for name, value in filters.items()]
        try:
            return _instances(self._ec2.get_paginator("describe_instances").paginate(Filters=wanted))
        except aws_errors.raised as error:
            raise aws_errors.of(error, "DescribeInstances") from None


def _of_known(describe: Callable[..., Any], ids: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The answers to a Describe call for these instances, as far as they are known. One that isn't fails a whole call,
    so the halves are asked for.
    """
    if not ids:
        return
    if len(ids) <= _IDS:
        try:
            yield call(describe, InstanceIds=list(ids))
            return
        except CloudError as error:
            if error.code != "InvalidInstanceID.NotFound":
                raise
            if len(ids) == 1:
                return
    half = len(ids) // 2
    yield from _of_known(describe, ids[:half])
    yield from _of_known(describe, ids[half:])


def parameters(request: LaunchRequest, root_device: str = "") -> dict[str, Any]:
    """RunInstances' own parameters of a launch: a function of the request, so that a repeat is the same call.
    `root_device`: of its image, where its volume is filled at a rate.
    """
    tags = {
        CLUSTER: request.cluster,
        LEASE: request.launch,
        POOL: request.pool,
        "Name": f"{request.cluster}-{request.pool}-{request.launch}",
    }
    if request.owner:  # a request that was written down without is repeated without
        price = "" if request.usd_per_hour is None else repr(request.usd_per_hour)
        known = {naming.MARKET_TAG: request.market, naming.PRICE_TAG: price, naming.ACCOUNT_TAG: request.account}
        tags |= {naming.OWNER_TAG: request.owner} | {key: naming.tag_value(text) for key, text in known.items()}
    asked = dict(request.place.get("tags") or {})  # the organization's; a request of before has none
    spelled = [{"Key": key, "Value": value} for key, value in (asked | tags).items() if value or key in asked]
    kinds = ["instance", "volume", "network-interface"]
    if asked and request.market == "spot":  # EC2 refuses it in any other
        kinds.append("spot-instances-request")
    out: dict[str, Any] = {
        "MinCount": request.count,
        "MaxCount": request.count,
        "ClientToken": request.token,
        "ImageId": request.image_id,
        "LaunchTemplate": {
            "LaunchTemplateId": request.place["launch_template_id"],
            "Version": request.place.get("launch_template_version", "$Latest"),  # an intent of before 0.2 has none
        },
        "UserData": request.user_data,  # botocore encodes it as base64
        "TagSpecifications": [{"ResourceType": kind, "Tags": spelled} for kind in kinds],
    }
    if request.market == "spot":
        options = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
        if request.max_usd_per_hour is not None:  # an intent of before had none, and is repeated as it was
            options["MaxPrice"] = f"{Decimal(repr(request.max_usd_per_hour)):f}"
        out["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": options}
    elif request.market == "capacity-block":
        out["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
    if root_device and (rate := request.place.get("volume_init_mb_s")):
        out["BlockDeviceMappings"] = [{"DeviceName": root_device, "Ebs": {"VolumeInitializationRate": rate}}]
    if request.market != "spot":
        out |= reserved(request.place)
    return out


def reserved(place: Mapping[str, Any]) -> dict[str, Any]:
    """RunInstances' parameters of a launch into a reservation, or into a group of them; empty: into neither. A group
    that is full is no limit by itself: EC2 would go on with instances on demand.
    """
    reservation_id, group_arn = place.get("capacity_reservation_id"), place.get("capacity_reservation_group_arn")
    asked: dict[str, Any] = {}
    if reservation_id:
        asked = {"CapacityReservationTarget": {"CapacityReservationId": reservation_id}}
    elif group_arn:
        asked = {
            "CapacityReservationPreference": "capacity-reservations-only",
            "CapacityReservationTarget": {"CapacityReservationResourceGroupArn": group_arn},
        }
    return {"CapacityReservationSpecification": asked} if asked else {}


def _instances(pages: Iterable[dict[str, Any]]) -> list[Instance]:
    return [
        _instance(raw) for page in pages for reservation in page["Reservations"] for raw in reservation["Instances"]
    ]


def _instance(raw: dict[str, Any]) -> Instance:
    tags = {tag["Key"]: tag["Value"] for tag in raw.get("Tags", [])}
    reason = (raw.get("StateReason") or {}).get("Code", "")
    return Instance(
        id=raw["InstanceId"],
        index=int(raw.get("AmiLaunchIndex", 0)),
        state=raw["State"]["Name"],
        address=raw.get("PrivateIpAddress"),
        zone=raw["Placement"]["AvailabilityZone"],
        launch=tags.get(LEASE, ""),
        token=raw.get("ClientToken") or "",
        launched_s=raw["LaunchTime"].timestamp(),
        reason=aws_errors.meant(reason),
        taken=reason.startswith("Server."),
        pool=tags.get(POOL, ""),
        market=tags.get(naming.MARKET_TAG, ""),
        owner=tags.get(naming.OWNER_TAG, ""),
        account=naming.untagged(tags.get(naming.ACCOUNT_TAG, "")),
        usd_per_hour=naming.price(tags.get(naming.PRICE_TAG, "")),
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


def _troubles(status: dict[str, Any]) -> list[InstanceTrouble]:
    id, found = status["InstanceId"], []
    for check, what in (("SystemStatus", "system"), ("InstanceStatus", "instance"), ("AttachedEbsStatus", "EBS")):
        if status.get(check, {}).get("Status") == "impaired":
            found.append(InstanceTrouble(id, f"EC2's {what} status check fails"))
    for event in status.get("Events", []):
        if not event.get("Description", "").startswith(_OVER):
            begins = event.get("NotBefore")
            when = f" from {begins:%Y-%m-%d %H:%M} UTC on" if begins else ""
            text = f"EC2 has scheduled {event['Code']}{when}"
            found.append(InstanceTrouble(id, text, begins.timestamp() if begins else 0.0))
    return found
