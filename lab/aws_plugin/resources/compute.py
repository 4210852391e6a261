"""Instances, placement groups, key pairs."""

from __future__ import annotations

import time

from botocore.exceptions import ClientError

from lab.aws_plugin.resources.launch_template import DISK, EBS, MARKET, METADATA, RESERVATION
from lab.aws_plugin.spec import (
    Aws,
    Resource,
    changed,
    ec2_tag,
    first,
    from_boto,
    given,
    input_shape,
    is_gone,
    one,
    pick,
    tag_list,
    tag_map,
    tag_spec,
    to_boto,
)
from lab.provider.service import PluginError
from lab.provider.wire import UNKNOWN, Props

RUN = (
    "instanceType subnetId keyName privateIpAddress userData ebsOptimized disableApiTermination "
    "instanceInitiatedShutdownBehavior metadataOptions capacityReservationSpecification instanceMarketOptions "
    "cpuOptions monitoring placement iamInstanceProfile launchTemplate blockDeviceMappings imageId securityGroupIds"
)
PROPAGATION_S, AGAIN_S = 120.0, 0.2  # that the official plugin tries a new profile for, and our pause
# Not a replacement, but EC2 stops and starts the machine for it, under its jobs: the stand-in refuses it at preview.
RESTARTS = "instanceType userData"
RESTART_REFUSED = (
    "a change stops and starts the machine under its jobs: not done; ignore the change, or replace the drained node"
)


# ---- Instance
def instance(aws: Aws, rid: str) -> Props | None:
    try:
        described = one(aws.ec2.describe_instances(InstanceIds=[rid])["Reservations"])
    except ClientError as error:
        if not is_gone(error):
            raise
        return None
    return described["Instances"][0] if described else None


def run_parameters(aws: Aws, new: Props) -> Props:
    """An Instance's inputs as RunInstances wants them."""
    props = {
        **new,
        "imageId": new.get("ami"),
        "privateIpAddress": new.get("privateIp"),
        "securityGroupIds": new.get("vpcSecurityGroupIds"),
    }
    placement = {
        "availabilityZone": new.get("availabilityZone"),
        "groupName": new.get("placementGroup"),
        "tenancy": new.get("tenancy"),
    }
    props["placement"] = {k: v for k, v in placement.items() if v} or None
    props["monitoring"] = {"enabled": new["monitoring"]} if "monitoring" in new else None
    props["iamInstanceProfile"] = {"name": new["iamInstanceProfile"]} if new.get("iamInstanceProfile") else None
    if template := new.get("launchTemplate"):
        renamed = {
            "launchTemplateId": template.get("id"),
            "launchTemplateName": template.get("name"),
            "version": template.get("version"),
        }
        props["launchTemplate"] = {k: v for k, v in renamed.items() if v}
    disks = [
        {"deviceName": d["deviceName"], "ebs": {k: v for k, v in d.items() if k != "deviceName"}}
        for d in new.get("ebsBlockDevices") or []
    ]
    if root := new.get("rootBlockDevice"):
        image = one(aws.ec2.describe_images(ImageIds=[new["ami"]])["Images"]) if new.get("ami") else None
        disks.append({"deviceName": (image or {}).get("RootDeviceName", "/dev/sda1"), "ebs": root})
    props["blockDeviceMappings"] = disks or None
    return to_boto(input_shape(aws.ec2, "RunInstances"), {k: props[k] for k in RUN.split() if props.get(k) is not None})


def create_instance(aws: Aws, new: Props) -> str:
    specs = tag_spec("instance", new).get("TagSpecifications", [])
    if volume_tags := tag_list(new.get("volumeTags")):
        specs.append({"ResourceType": "volume", "Tags": volume_tags})
    asked = run_parameters(aws, new)
    more = {"TagSpecifications": specs} if specs else {}
    until_s = time.monotonic() + PROPAGATION_S
    while True:
        try:
            made = aws.ec2.run_instances(MinCount=1, MaxCount=1, **asked, **more)
            return made["Instances"][0]["InstanceId"]
        except ClientError as error:  # a new profile is known to EC2 only after a while
            if "Invalid IAM Instance Profile" not in str(error) or time.monotonic() > until_s:
                raise
            time.sleep(AGAIN_S)


def running(aws: Aws, rid: str) -> bool:
    described = instance(aws, rid)
    if described and described["State"]["Name"] in ("shutting-down", "terminated"):
        reason = described.get("StateReason", {}).get("Message", "no reason given")
        raise PluginError(f"{rid} ended while it was expected to run: {reason}")
    return bool(described) and described["State"]["Name"] == "running"


def finish_instance(aws: Aws, rid: str, old: Props, new: Props) -> None:
    """Changes in place. After the launch (old = {}) only what RunInstances can't say."""
    for name, boto in (("sourceDestCheck", "SourceDestCheck"), ("disableApiTermination", "DisableApiTermination")):
        if changed(old, new, name) and (old or name == "sourceDestCheck") and name in new:
            aws.ec2.modify_instance_attribute(InstanceId=rid, **{boto: {"Value": new[name]}})
    if not old:
        return
    if changed(old, new, "vpcSecurityGroupIds") and new.get("vpcSecurityGroupIds"):
        aws.ec2.modify_instance_attribute(InstanceId=rid, Groups=new["vpcSecurityGroupIds"])
    if changed(old, new, "instanceInitiatedShutdownBehavior") and new.get("instanceInitiatedShutdownBehavior"):
        aws.ec2.modify_instance_attribute(
            InstanceId=rid, InstanceInitiatedShutdownBehavior={"Value": new["instanceInitiatedShutdownBehavior"]}
        )
    if changed(old, new, "metadataOptions") and new.get("metadataOptions"):
        shape = input_shape(aws.ec2, "ModifyInstanceMetadataOptions")
        aws.ec2.modify_instance_metadata_options(InstanceId=rid, **to_boto(shape, new["metadataOptions"]))
    if changed(old, new, "monitoring"):
        (aws.ec2.monitor_instances if new.get("monitoring") else aws.ec2.unmonitor_instances)(InstanceIds=[rid])
    if changed(old, new, "iamInstanceProfile"):
        move_profile(aws, rid, new.get("iamInstanceProfile"))


def move_profile(aws: Aws, rid: str, name: str | None) -> None:
    filters = [{"Name": "instance-id", "Values": [rid]}]
    there = one(aws.ec2.describe_iam_instance_profile_associations(Filters=filters)["IamInstanceProfileAssociations"])
    if there and name:
        aws.ec2.replace_iam_instance_profile_association(
            AssociationId=there["AssociationId"], IamInstanceProfile={"Name": name}
        )
    elif there:
        aws.ec2.disassociate_iam_instance_profile(AssociationId=there["AssociationId"])
    elif name:
        aws.ec2.associate_iam_instance_profile(InstanceId=rid, IamInstanceProfile={"Name": name})


def read_instance(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = instance(aws, rid)
    if not described or described["State"]["Name"] in ("shutting-down", "terminated"):
        return None
    profile = (described.get("IamInstanceProfile") or {}).get("Arn", "").rsplit("/", 1)[-1]
    primary = next(
        (
            n
            for n in described.get("NetworkInterfaces", [])
            if n.get("Attachment", {}).get("DeviceIndex") == 0 and n["Attachment"].get("NetworkCardIndex", 0) == 0
        ),
        None,
    )
    place, out = (
        described.get("Placement", {}),
        pick(described, "instanceType subnetId keyName ebsOptimized instanceLifecycle spotInstanceRequestId"),
    )
    out |= {
        "ami": described["ImageId"],
        "availabilityZone": place.get("AvailabilityZone"),
        "placementGroup": place.get("GroupName") or "",
        "tenancy": place.get("Tenancy") or "default",
        "privateIp": described.get("PrivateIpAddress"),
        "privateDns": described.get("PrivateDnsName"),
        "publicIp": described.get("PublicIpAddress") or "",
        "publicDns": described.get("PublicDnsName") or "",
        "instanceState": described["State"]["Name"],
        "iamInstanceProfile": profile,
        "monitoring": described.get("Monitoring", {}).get("State") in ("enabled", "pending"),
        "vpcSecurityGroupIds": [g["GroupId"] for g in described.get("SecurityGroups", [])],
        "sourceDestCheck": described.get("SourceDestCheck"),
        "primaryNetworkInterfaceId": primary["NetworkInterfaceId"] if primary else None,
        "arn": aws.arn("ec2", f"instance/{rid}"),
        "tags": tag_map(described.get("Tags")),
    }
    if described.get("MetadataOptions"):
        shown = from_boto(described["MetadataOptions"])
        out["metadataOptions"] = {
            k: shown[k]
            for k in ("httpEndpoint", "httpTokens", "httpPutResponseHopLimit", "instanceMetadataTags")
            if k in shown
        }
    return {k: v for k, v in out.items() if v is not None}


def lost_options(inputs: Props) -> list[str]:
    """The real provider reads the market from the spot request alone: any other market it forgets."""
    market = (inputs.get("instanceMarketOptions") or {}).get("marketType", "spot")
    return [] if market == "spot" else ["instanceMarketOptions"]


def delete_instance(aws: Aws, rid: str, _state: Props) -> None:
    aws.ec2.terminate_instances(InstanceIds=[rid])
    aws.wait(
        f"{rid} terminated",
        lambda: (instance(aws, rid) or {"State": {"Name": "terminated"}})["State"]["Name"] == "terminated",
    )


def check_instance(olds: Props, news: Props) -> list[tuple[str, str]]:
    out = []
    if not news.get("launchTemplate"):
        out = [(k, "is required where no launchTemplate is given") for k in ("ami", "instanceType") if not news.get(k)]
    if olds and not news.get("userDataReplaceOnChange"):
        out += [
            (k, RESTART_REFUSED) for k in changed(olds, news, RESTARTS) if UNKNOWN not in (olds.get(k), news.get(k))
        ]
    return out


# ---- PlacementGroup: its id is its name
def create_group(aws: Aws, new: Props) -> str:
    aws.ec2.create_placement_group(
        **given({**new, "groupName": new["name"]}, "groupName strategy partitionCount spreadLevel"),
        **tag_spec("placement-group", new),
    )
    return new["name"]


def group(aws: Aws, rid: str) -> Props | None:
    described = one(aws.ec2.describe_placement_groups(GroupNames=[rid])["PlacementGroups"])
    return described if described and described.get("State") not in ("deleted", "deleting") else None


def read_group(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = group(aws, rid)
    return described and {
        **pick(described, "strategy partitionCount spreadLevel"),
        "name": described["GroupName"],
        "placementGroupId": described.get("GroupId"),
        "arn": aws.arn("ec2", f"placement-group/{rid}"),
        "tags": tag_map(described.get("Tags")),
    }


def tag_group(aws: Aws, rid: str, state: Props, put: dict[str, str], drop: list[str]) -> None:
    ec2_tag(aws, (group(aws, rid) or {})["GroupId"], state, put, drop)


# ---- KeyPair: its id is its name
def create_key(aws: Aws, new: Props) -> str:
    return aws.ec2.import_key_pair(
        KeyName=new["keyName"], PublicKeyMaterial=new["publicKey"].encode(), **tag_spec("key-pair", new)
    )["KeyName"]


def key(aws: Aws, rid: str) -> Props:
    return first(aws.ec2.describe_key_pairs(KeyNames=[rid])["KeyPairs"])


def read_key(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = key(aws, rid)
    return {
        **pick(described, "keyName keyPairId keyType"),
        "fingerprint": described.get("KeyFingerprint"),
        "arn": aws.arn("ec2", f"key-pair/{rid}"),
        "tags": tag_map(described.get("Tags")),
    }


INSTANCE = (
    "ami instanceType subnetId availabilityZone vpcSecurityGroupIds keyName iamInstanceProfile userData "
    "userDataReplaceOnChange placementGroup tenancy ebsOptimized monitoring sourceDestCheck privateIp "
    f"disableApiTermination instanceInitiatedShutdownBehavior volumeTags launchTemplate{{id name version}} "
    f"rootBlockDevice{{{DISK}}} ebsBlockDevices{{deviceName {EBS}}} cpuOptions{{coreCount threadsPerCore}} "
    f"{METADATA} {RESERVATION} {MARKET}"
)
INSTANCE_REPLACED = (
    "ami availabilityZone cpuOptions ebsBlockDevices ebsOptimized instanceMarketOptions keyName launchTemplate "
    "placementGroup privateIp subnetId tenancy rootBlockDevice.encrypted rootBlockDevice.kmsKeyId "
    "userData?userDataReplaceOnChange"
)
SPECS = [
    Resource(
        "aws:ec2/instance:Instance",
        INSTANCE,
        create=create_instance,
        read=read_instance,
        delete=delete_instance,
        apply=finish_instance,
        finish=True,
        tag=ec2_tag,
        ready=running,
        check=check_instance,
        lost=lost_options,
        replace=INSTANCE_REPLACED,
    ),
    Resource(
        "aws:ec2/placementGroup:PlacementGroup",
        "name strategy partitionCount spreadLevel",
        create=create_group,
        read=read_group,
        delete=lambda aws, rid, _state: aws.ec2.delete_placement_group(GroupName=rid),
        tag=tag_group,
        name="name",
        ready=lambda aws, rid: (group(aws, rid) or {}).get("State") == "available",
        replace="strategy partitionCount spreadLevel",
    ),
    Resource(
        "aws:ec2/keyPair:KeyPair",
        "keyName publicKey",
        create=create_key,
        read=read_key,
        delete=lambda aws, rid, _state: aws.ec2.delete_key_pair(KeyName=rid),
        tag=lambda aws, rid, state, put, drop: ec2_tag(aws, key(aws, rid)["KeyPairId"], state, put, drop),
        name="keyName",
        replace="publicKey",
    ),
]
