"""Launch templates: the inputs are EC2's own structure, so botocore's model translates them."""

from __future__ import annotations

from lab.aws_plugin.spec import Aws, Resource, ec2_tag, first, from_boto, input_shape, tag_list, tag_map, to_boto
from lab.provider.wire import Props

DISK = "volumeSize volumeType iops throughput encrypted kmsKeyId deleteOnTermination"
EBS = f"{DISK} snapshotId"
RESERVATION = (
    "capacityReservationSpecification{capacityReservationPreference "
    "capacityReservationTarget{capacityReservationId capacityReservationResourceGroupArn}}"
)
MARKET = "instanceMarketOptions{marketType spotOptions{instanceInterruptionBehavior spotInstanceType maxPrice}}"
METADATA = "metadataOptions{httpEndpoint httpTokens httpPutResponseHopLimit instanceMetadataTags}"
DATA = (
    f"imageId instanceType keyName ebsOptimized userData disableApiTermination instanceInitiatedShutdownBehavior "
    f"vpcSecurityGroupIds networkInterfaces{{deviceIndex networkCardIndex interfaceType subnetId securityGroups "
    f"deleteOnTermination associatePublicIpAddress description privateIpAddress}} {METADATA} "
    f"blockDeviceMappings{{deviceName ebs{{{EBS}}}}} {MARKET} {RESERVATION} "
    f"placement{{groupName groupId availabilityZone tenancy partitionNumber}} iamInstanceProfile{{arn name}} "
    f"monitoring{{enabled}} cpuOptions{{coreCount threadsPerCore}} "
    f"privateDnsNameOptions{{hostnameType enableResourceNameDnsARecord}} tagSpecifications{{resourceType tags}}"
)
OWN = ("name", "description", "updateDefaultVersion", "defaultVersion", "tags", "tagsAll", "region")


def data_of(aws: Aws, new: Props) -> Props:
    """LaunchTemplateData; the update sends all of it again (no SourceVersion)."""
    shape = input_shape(aws.ec2, "CreateLaunchTemplate", "LaunchTemplateData")
    return to_boto(shape, {k: v for k, v in new.items() if k not in OWN and not k.startswith("__")})


def described(new: Props) -> Props:
    return {"VersionDescription": new["description"]} if new.get("description") else {}


def create(aws: Aws, new: Props) -> str:
    tags = tag_list(new.get("tagsAll"))
    spec = {"TagSpecifications": [{"ResourceType": "launch-template", "Tags": tags}]} if tags else {}
    made = aws.ec2.create_launch_template(
        LaunchTemplateName=new["name"], LaunchTemplateData=data_of(aws, new), **described(new), **spec
    )
    return made["LaunchTemplate"]["LaunchTemplateId"]


def apply(aws: Aws, rid: str, old: Props, new: Props) -> None:
    """Any change of the data or the description is a new version; the default follows only where it was asked to."""
    latest = None
    body = {
        k
        for k in {*old, *new} - {"updateDefaultVersion", "defaultVersion"} - {"tags", "tagsAll"}
        if old.get(k) != new.get(k)
    }
    if body:
        made = aws.ec2.create_launch_template_version(
            LaunchTemplateId=rid, LaunchTemplateData=data_of(aws, new), **described(new)
        )
        latest = made["LaunchTemplateVersion"]["VersionNumber"]
    default = latest if new.get("updateDefaultVersion") else new.get("defaultVersion")
    if default:
        aws.ec2.modify_launch_template(LaunchTemplateId=rid, DefaultVersion=str(default))


def read(aws: Aws, rid: str, state: Props) -> Props | None:
    described = first(aws.ec2.describe_launch_templates(LaunchTemplateIds=[rid])["LaunchTemplates"])
    version = first(
        aws.ec2.describe_launch_template_versions(LaunchTemplateId=rid, Versions=["$Latest"])["LaunchTemplateVersions"]
    )
    data = from_boto(version["LaunchTemplateData"])
    if "tagSpecifications" in data:  # moto puts the template's own tags into version 1
        data["tagSpecifications"] = [t for t in data["tagSpecifications"] if t["resourceType"] != "launch-template"]
    seen = {
        k: data.get(k) for k in state if k in SPECS[0].tree and k not in OWN
    }  # what was taken out of the data shows as a drift
    return {
        **seen,
        **data,
        "name": described["LaunchTemplateName"],
        "arn": aws.arn("ec2", f"launch-template/{rid}"),
        "description": version.get("VersionDescription"),
        "latestVersion": described["LatestVersionNumber"],
        "defaultVersion": described["DefaultVersionNumber"],
        "tags": tag_map(described.get("Tags")),
    }


def check(_olds: Props, news: Props) -> list[tuple[str, str]]:
    if news.get("networkInterfaces") and news.get("vpcSecurityGroupIds"):
        return [
            (
                "vpcSecurityGroupIds",
                "does not go beside networkInterfaces: name the groups in each interface's securityGroups",
            )
        ]
    return []


SPECS = [
    Resource(
        "aws:ec2/launchTemplate:LaunchTemplate",
        f"name description updateDefaultVersion defaultVersion {DATA}",
        create=create,
        read=read,
        delete=lambda aws, rid, _state: aws.ec2.delete_launch_template(LaunchTemplateId=rid),
        apply=apply,
        tag=ec2_tag,
        name="name",
        check=check,
        volatile="latestVersion defaultVersion",
    ),
]
