"""RunInstances and CreateFleet: a fully merged request becomes instances, all or nothing below MinCount."""

from __future__ import annotations

import json
import random
import re
import threading
import uuid
from collections.abc import Callable
from typing import Any

from moto.core.types import Base64EncodedString
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.instances import InstanceState
from moto.iam.models import iam_backends

from lab.aws import disks, iam_gaps, iam_late, limits, spot
from lab.aws.capacity import Capacity, stash
from lab.aws.faults import Ec2Error
from lab.aws.fleet import create_fleet
from lab.aws.images import need_available
from lab.aws.launch_spec import Params, market_of, primary_first, spec_of, zone_of
from lab.aws.placement import need_group

Action = Callable[[Any, Params], Any]
MOST_TAGS = 50
SHOWN, UNSHOWN = re.compile(r"[0-9a-zA-Z\-_+=,.@:]{1,255}"), (".", "..", "_index")
"""keys of tags in instances' metadata"""


def once(method: Action, lock: threading.RLock) -> Action:
    """ClientToken: the same token and parameters give the same result; other parameters are an error. A refusal uses no
    token up.
    """

    def call(backend: Any, p: Params) -> Any:
        key, said = (method.__name__, p.get("ClientToken")), json.dumps(p, sort_keys=True, default=str)
        with lock:
            done = stash(backend, "tokens").get(key) if key[1] else None
            if done and done[0] != said:
                raise Ec2Error(
                    "IdempotentParameterMismatch",
                    "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).",
                )
            if not done:
                done = stash(backend, "tokens")[key] = (said, method(backend, p))
            elif (made := getattr(done[1], "instances", [])) and all(each.state == "terminated" for each in made):
                raise Ec2Error(
                    "IdempotentInstanceTerminated",
                    "The client token that you have provided is associated with a resource that is already deleted. "
                    "Please use a different client token.",
                )
            return done[1]

    return call


class Launcher:
    """Starts instances; `started` is called with each new moto instance, in state `pending`."""

    def __init__(self, capacity: Capacity, rng: random.Random, started: Callable[[Any], None]):
        self.capacity, self.random, self.started = capacity, rng, started

    def run_instances(self, backend: Any, p: Params) -> Any:
        least, most = int(p["MinCount"]), int(p["MaxCount"])
        if not 1 <= least <= most:
            raise Ec2Error(
                "InvalidParameterValue", f"MinCount {least} and MaxCount {most}: 1 <= MinCount <= MaxCount is required"
            )
        spec = spec_of(backend, p)
        for key, what in (("SubnetId", "subnet ID"), ("SecurityGroupIds", "security groups")):
            if spec.get(key) and spec.get("NetworkInterfaces"):
                raise Ec2Error(
                    "InvalidParameterCombination",
                    f"Network interfaces and an instance-level {what} may not be specified on the same request",
                )
        if str(p.get("DryRun", "")).lower() == "true":  # EC2 looks at what is named, not at capacity or quotas
            check(backend, spec, zone_of(backend, spec)[1])
            check_tags(spec, market_of(spec))
            limits.launch(backend, spec, zone_of(backend, spec)[1])
            instance_profile(backend, spec.get("IamInstanceProfile"))
            raise Ec2Error("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
        return self.launch(backend, spec, least, most)

    def create_fleet(self, backend: Any, p: Params) -> Params:
        return create_fleet(self.launch, self.capacity, backend, p)

    def launch(self, backend: Any, spec: Params, least: int, most: int) -> Any:
        """Start `least` to `most` instances of a fully merged request; returns moto's reservation.

        Whatever can be refused is refused before the first instance exists."""
        nics, (subnet, zone) = spec.get("NetworkInterfaces", []), zone_of(backend, spec)
        market = market_of(spec)
        check(backend, spec, zone)
        check_tags(spec, market)
        limits.launch(backend, spec, zone)
        if market == "spot":
            iam_gaps.need_spot_role(backend)
            spot.need_price(self.capacity, spec, zone)
        profile = instance_profile(backend, spec.get("IamInstanceProfile"))
        volumes = disks.launched(backend, spec["ImageId"], spec.get("BlockDeviceMappings", []))
        most = self.addresses_for(backend, spec, subnet, least, most)
        sources = self.capacity.allocate(backend, spec, zone, market, least, most)
        cards = [
            {"SubnetId": subnet, **n, "DeviceIndex": i} for i, n in enumerate(nics)
        ]  # moto keys interfaces by this index
        tags = {t["ResourceType"]: {x["Key"]: x["Value"] for x in t["Tags"]} for t in spec.get("TagSpecifications", [])}
        reservation = backend.run_instances(
            spec["ImageId"],
            len(sources),
            Base64EncodedString(spec["UserData"]) if spec.get("UserData") else None,
            spec.get("SecurityGroups", []),
            instance_type=spec["InstanceType"],
            is_instance_type_default=False,
            region_name=backend.region_name,
            placement=None if subnet else zone,
            subnet_id=subnet,
            key_name=spec.get("KeyName"),
            tags=tags,
            nics=cards,
            security_group_ids=list(spec.get("SecurityGroupIds", [])),
            private_ip=spec.get("PrivateIpAddress"),
            associate_public_ip=None,
            ebs_optimized=bool(spec.get("EbsOptimized")),
            disable_api_termination=bool(spec.get("DisableApiTermination")),
            metadata_options=spec.get("MetadataOptions") or {},
            client_token=spec.get("ClientToken"),
            instance_initiated_shutdown_behavior=spec.get("InstanceInitiatedShutdownBehavior"),
            monitoring_state="enabled" if (spec.get("Monitoring") or {}).get("Enabled") else "disabled",
            block_device_mappings=volumes,
        )
        for instance, source in zip(reservation.instances, sources, strict=True):
            disks.provisioned(backend, instance, volumes)
            self.complete(backend, instance, source, spec, market, tags, profile)
        for instance in reservation.instances:
            self.started(instance)
        return reservation

    def complete(
        self, backend: Any, instance: Any, source: Any, spec: Params, market: str, tags: dict, profile: Any
    ) -> None:
        """What moto's run_instances leaves out."""
        place = spec.get("Placement") or {}
        instance.source, instance.spot_action, instance.profile = source, None, profile
        instance.lifecycle = None if market == "on-demand" else market
        instance.capacity_reservation_id = source if isinstance(source, str) else None
        instance.capacity_reservation_specification = spec.get("CapacityReservationSpecification")
        instance.spot_instance_request_id = f"sir-{uuid.uuid4().hex[:8]}" if market == "spot" else None
        instance.placement.group_name, instance.placement.tenancy = (
            place.get("GroupName", ""),
            place.get("Tenancy", "default"),
        )
        instance.nics[0].delete_on_termination = True  # unless the request says otherwise
        for eni, asked in zip(
            instance.nics.values(), spec.get("NetworkInterfaces", []), strict=False
        ):  # no request: one interface
            eni.delete_on_termination = asked.get("DeleteOnTermination", True)
            eni.device_index, eni.network_card_index = asked.get("DeviceIndex", 0), asked.get("NetworkCardIndex", 0)
            eni.interface_type = asked.get("InterfaceType", "interface")
            eni.add_tags(tags.get("network-interface", {}))
            if eni is instance.nics[0]:
                instance.security_groups = list(eni._group_set)
            else:  # moto draws these without a look at what is taken; an efa-only interface has no address
                eni.private_ip_address = (
                    None if eni.interface_type == "efa-only" else self.address(eni.subnet, instance)
                )
                eni.private_ip_addresses = (
                    [{"Primary": True, "PrivateIpAddress": eni.private_ip_address}] if eni.private_ip_address else []
                )
        if profile:
            backend.associate_iam_instance_profile(instance.id, profile.name, profile.arn)
        if used := spec.get("LaunchTemplate"):
            instance.add_tags(
                {"aws:ec2launchtemplate:id": used["Id"], "aws:ec2launchtemplate:version": str(used["Version"])}
            )
        instance._state = InstanceState("pending", 0)

    # ---- addresses
    def address(self, subnet: Any, instance: Any) -> str:
        """Take a random free address: EC2 promises no order, so the lab has none. The first four and the last are
        AWS's.
        """
        last = subnet.cidr.num_addresses - 2
        for index in (self.random.randint(4, last) for _ in range(32)):
            if str(subnet.cidr[index]) not in subnet._subnet_ips:
                break
        else:  # a crowded subnet: look at every address
            left = [i for i in range(4, last + 1) if str(subnet.cidr[i]) not in subnet._subnet_ips]
            if not left:
                raise no_addresses(subnet)
            index = self.random.choice(left)
        address = str(subnet.cidr[index])
        subnet._subnet_ips[address] = instance
        return address

    @staticmethod
    def addresses_for(backend: Any, spec: Params, subnet_id: str | None, least: int, most: int) -> int:
        """`most`, cut to what the subnet's free addresses allow; InsufficientFreeAddressesInSubnet below `least`."""
        if not subnet_id:
            return most
        subnet = backend.get_subnet(subnet_id)
        per_node = sum(n.get("InterfaceType") != "efa-only" for n in spec.get("NetworkInterfaces", [])) or 1
        room = (subnet.cidr.num_addresses - 5 - len(subnet._subnet_ips)) // per_node
        if room < least:
            raise no_addresses(subnet)
        return min(most, room)


def no_addresses(subnet: Any) -> Ec2Error:
    return Ec2Error(
        "InsufficientFreeAddressesInSubnet", f"There are not enough free addresses in subnet '{subnet.id}'."
    )


def check(backend: Any, spec: Params, zone: str) -> None:
    """Refuse what EC2 refuses and moto would accept."""
    image, kind = spec.get("ImageId"), spec.get("InstanceType")
    if not image:
        raise Ec2Error("MissingParameter", "The request must contain the parameter ImageId")
    if not str(image).startswith("ami-"):
        raise Ec2Error("InvalidAMIID.Malformed", f'Invalid id: "{image}" (expecting "ami-...")')
    need_available(backend, image)
    if not kind:
        raise Ec2Error("MissingParameter", "The request must contain the parameter InstanceType")
    if kind not in INSTANCE_TYPES:
        raise Ec2Error("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")
    asked = {"instance-type": [kind], "location": [zone]}
    if not backend.describe_instance_type_offerings("availability-zone", asked):
        raise Ec2Error(
            "Unsupported",
            f"Your requested instance type ({kind}) is not supported in your requested Availability Zone ({zone}).",
        )
    if group := (spec.get("Placement") or {}).get("GroupName"):
        need_group(backend, group)
    if spec.get("KeyName") and spec["KeyName"] not in backend.key_pairs:
        raise Ec2Error("InvalidKeyPair.NotFound", f"The key pair '{spec['KeyName']}' does not exist")
    nics = spec.get("NetworkInterfaces", [])
    primary_first(nics)
    for group in [g for n in nics for g in n.get("Groups", [])] + list(spec.get("SecurityGroupIds", [])):
        if not backend.get_security_group_from_id(group):  # moto would make it
            raise Ec2Error("InvalidGroup.NotFound", f"The security group '{group}' does not exist")
    if len(nics) > 1 and any(n.get("AssociatePublicIpAddress") is True for n in nics):
        raise Ec2Error(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching "
            "with multiple network interfaces.",
        )
    if len(Base64EncodedString(spec.get("UserData") or "").decode()) > 16384:
        raise Ec2Error("InvalidParameterValue", "User data is limited to 16384 bytes")


def check_tags(spec: Params, market: str) -> None:
    """Tags that a launch can't give: too many, AWS's own, those that the metadata service can't show, those of a spot
    request that there isn't.
    """
    shown = str((spec.get("MetadataOptions") or {}).get("InstanceMetadataTags")) == "enabled"
    for given in spec.get("TagSpecifications", []):
        kind, keys = given["ResourceType"], [tag["Key"] for tag in given["Tags"]]
        if kind == "spot-instances-request" and market != "spot":  # "... the instance launch fails", says the API
            raise Ec2Error(
                "InvalidParameterValue", f"'{kind}' is not a valid taggable resource type for this operation."
            )
        if len(keys) > MOST_TAGS:
            raise Ec2Error("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
        for key in keys:
            if key.lower().startswith("aws:"):
                raise Ec2Error("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
            if kind == "instance" and shown and (not SHOWN.fullmatch(key) or key in UNSHOWN):
                raise Ec2Error(
                    "InvalidParameterValue",
                    f"'{key}' is not a valid tag key. Tag keys must match pattern ([0-9a-zA-Z\\\\-_+=,.@:]{{1,255}}), "
                    "and must not be a reserved name ('.', '..', '_index')",
                )


def instance_profile(backend: Any, asked: Params | None) -> Any | None:
    """The IAM instance profile that a request names by name or ARN."""
    if not asked:
        return None
    for profile in iam_backends[backend.account_id]["aws"].instance_profiles.values():
        meant = asked.get("Arn") == profile.arn or (asked.get("Name") and asked["Name"] == profile.name)
        if meant and not iam_late.unknown_yet(profile.create_date):
            return profile
    key = "Arn" if asked.get("Arn") else "Name"
    raise Ec2Error(
        "InvalidParameterValue",
        f"Value ({asked.get(key)}) for parameter iamInstanceProfile.{key.lower()} is invalid. "
        f"Invalid IAM Instance Profile {key if key == 'Arn' else 'name'}",
    )
