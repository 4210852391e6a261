"""What the account and region must have before anything is made in them, asked of AWS at every preview and up: a first
`up` ends in one sentence, not half way.
"""

import functools
from collections.abc import Callable, Iterator
from typing import TypeVar

import pulumi
import pulumi_aws as aws

from ironburst.config.aws.models import AwsCloud, AwsGroup, AwsPool
from ironburst.config.finding import Finding, path_of

SPOT_ROLE = "AWSServiceRoleForEC2Spot"
_Answer = TypeVar("_Answer")


def check(cloud: AwsCloud) -> None:
    """Raises pulumi.RunError with everything that is missing. A question that AWS refuses (no such right, an image that
    is gone and that fixed nodes still run from) is a warning.
    """
    if pulumi.Config("aws").get("region") not in (None, cloud.region):
        raise pulumi.RunError(f"aws:region and cloud.region ({cloud.region}) differ; write the same region in both")
    _transit_gateways(cloud)
    _issuer(cloud)
    missing = [str(finding) for finding in (*_zones(cloud), *_root_disks(cloud), *_spot_role(cloud), *_data(cloud))]
    if missing:
        raise pulumi.RunError("\n".join(missing))


def _asked(what: str, question: Callable[[], _Answer]) -> _Answer | None:
    try:
        return question()
    except Exception as error:  # pulumi raises nothing narrower for a refused question
        pulumi.log.warn(f"AWS could not be asked for {what}, so that isn't checked: {error}")
        return None


def _zones(cloud: AwsCloud) -> Iterator[Finding]:
    """The catalogue warned before; which zone has which letter is the account's own. A zone that lacks some of a pool's
    types is a warning: the others are rented there.
    """
    used: list[tuple[str, str, AwsGroup | AwsPool]] = []
    used += [(path_of("cloud", "groups", g, "zone"), group.zone, group) for g, group in enumerate(cloud.groups)]
    for p, pool in enumerate(cloud.pools):
        used += [(path_of("cloud", "pools", p, "zones", z), zone, pool) for z, zone in enumerate(pool.zones)]
    types = sorted({name for _, _, nodes in used for name in nodes.types})
    if not types:
        return
    answer = _asked(
        "the zones of instance types",
        lambda: aws.ec2.get_instance_type_offerings(
            location_type="availability-zone", filters=[{"name": "instance-type", "values": types}]
        ),
    )
    if answer is None:
        return
    offered = set(zip(answer.instance_types, answer.locations, strict=True))
    for path, zone, nodes in used:
        there = [name for name in nodes.types if (name, zone) in offered]
        for name in (name for name in nodes.types if name not in there):
            others = sorted(place for kind, place in offered if kind == name)
            has = f"zones of this account that have it: {', '.join(others)}" if others else f"{cloud.region} has none"
            missing = Finding(path, zone, "not-offered", f"EC2 offers no {name} in {zone}; {has}")
            if there:
                pulumi.log.warn(f"{missing}; only {' and '.join(there)} can be rented there")
            else:
                yield missing


def _root_disks(cloud: AwsCloud) -> Iterator[Finding]:
    """Of fixed nodes: a rented one's image is baked with its disk, and EC2 refuses a build on one that is too small."""
    for g, group in enumerate(cloud.groups):
        least = _root_gb(group.image)
        if least and group.root_disk_gb < least:
            message = f"{group.root_disk_gb} GiB is less than the root volume of {group.image}: write {least} or more"
            yield Finding(path_of("cloud", "groups", g, "root_disk_gb"), group.root_disk_gb, "root-disk", message)


def _root_gb(image_id: str) -> int | None:
    """Size of an image's root volume, GiB; None: not known."""
    image = _asked(
        f"image {image_id}",
        lambda: aws.ec2.get_ami(filters=[{"name": "image-id", "values": [image_id]}], include_deprecated=True),
    )
    disks = {disk.device_name: disk.ebs for disk in image.block_device_mappings} if image else {}
    size = disks.get(image.root_device_name, {}).get("volume_size") if image else None
    return int(size) if size else None


def _transit_gateways(cloud: AwsCloud) -> None:
    """One of another account waits for its owner, unless that takes every attachment. Said before: EC2 will only say
    that there is no such gateway, when the routes to it are made.
    """
    links = [link for link in cloud.network.links if link.kind == "transit-gateway"]
    for gateway_id in sorted({link.gateway_id for link in links if link.gateway_id}):
        found = _asked(gateway_id, functools.partial(aws.ec2transitgateway.get_transit_gateway, id=gateway_id))
        here = _asked("the account", aws.get_caller_identity) if found else None
        if found and here and found.owner_id != here.account_id and found.auto_accept_shared_attachments != "enable":
            pulumi.log.warn(
                f"{gateway_id} is account {found.owner_id}'s, which has to accept the attachment: until then the "
                "routes to it fail with InvalidTransitGatewayID.NotFound; run `pulumi up` again when it has"
            )


def _issuer(cloud: AwsCloud) -> None:
    """Whether the account knows CI's issuer. IAM takes a role that trusts one that it doesn't know."""
    if cloud.ci:
        url = f"https://{cloud.ci.issuer}"
        made = f"aws iam create-open-id-connect-provider --url {url} --client-id-list {cloud.ci.audience}"
        _asked(f"the OIDC provider {url} (an administrator makes it, once in an account: {made})", lambda: _known(url))


def _known(url: str) -> str:
    return aws.iam.get_open_id_connect_provider(url=url).arn


def _spot_role(cloud: AwsCloud) -> Iterator[Finding]:
    """EC2's own role for spot. It is the account's: a stack that made it would take it from others when destroyed."""
    pools = [p for p, pool in enumerate(cloud.pools) if "spot" in pool.markets]
    if not pools:
        return
    answer = _asked(f"the role {SPOT_ROLE}", lambda: aws.iam.get_roles(name_regex=f"^{SPOT_ROLE}$"))
    if answer and not answer.names:
        message = (
            f"spot needs the role {SPOT_ROLE}, which this account lacks; an administrator makes it once: "
            "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
        )
        yield Finding(path_of("cloud", "pools", pools[0], "markets"), "spot", "spot-role", message)


def _data(cloud: AwsCloud) -> Iterator[Finding]:
    """Data sets in S3: there is something, where it can be reached, and what the way costs. Of a file system of FSx
    Pulumi's provider can't ask.
    """
    given = [group.data for group in cloud.groups] + [pool.data for pool in cloud.pools]
    used = {name for names in given for name in names}
    for name, declared in cloud.data.items():
        if name in used and declared.s3:
            yield from _in_s3(cloud, path_of("cloud", "data", name, "s3"), declared.s3)


def _in_s3(cloud: AwsCloud, path: str, place: str) -> Iterator[Finding]:
    bucket, _, prefix = place.partition("/")
    known = _asked(f"bucket {bucket}", lambda: aws.s3.get_bucket(bucket=bucket))
    if known is None:
        return
    objects = _asked(
        f"the objects of {place}",
        lambda: aws.s3.get_objects(
            bucket=bucket, prefix=f"{prefix}/" if prefix else None, max_keys=1, region=known.bucket_region
        ),
    )
    if objects and not objects.keys:
        yield Finding(path, place, "no-data", f"there is no object below {place}/, and nodes without data don't join")
    if known.bucket_region == cloud.region:
        return
    away = f"bucket {bucket} lies in {known.bucket_region}"
    if cloud.network.egress == "endpoints" and not cloud.network.existing:
        message = f"{away}, and with egress: endpoints nodes reach buckets of {cloud.region} only; copy it there"
        yield Finding(path, place, "data-away", message)
    else:
        pulumi.log.warn(f"{path}: {away}: AWS takes money for each GB that goes to {cloud.region}, at each node's boot")
