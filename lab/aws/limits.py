"""What EC2 refuses of a request by its form, or by the account's quotas, and moto takes: tags, client tokens, how many
networks and addresses, where a cluster placement group may lie, and what a primary network interface may be.

Codes and messages are EC2's own. Where it documents none the rule is still its, and the code a near one (said there).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from moto.ec2.models.elastic_ip_addresses import ElasticAddressBackend
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.vpcs import VPCBackend

from lab.aws.capacity import stash
from lab.aws.faults import Ec2Error
from lab.aws.launch_spec import Params

KEY, VALUE = 128, 256
"""characters of a tag"""
IN_METADATA = re.compile(r"(?!(?:\.|\.\.|_index)$)[0-9a-zA-Z\-_+=,.@:]{1,255}")
"""a tag's key where instances see their tags"""
TOKEN = 64
"""characters of a client token"""
VPCS, ADDRESSES = "L-F678F1CE", "L-0263D0A3"
"""quotas, both of 5 in a new account"""


# ---- of any request
def checked(p: Params) -> None:
    """Raises Ec2Error for what no call of EC2 takes."""
    for tag in _tags(p):
        key, value = str(tag.get("Key", "")), str(tag.get("Value") or "")
        if key.lower().startswith("aws:"):
            raise _wrong("Tag keys starting with 'aws:' are reserved for internal use")
        if not key:
            raise _wrong("Tag key cannot be empty")
        if len(key) > KEY:
            raise _wrong(f"Tag key exceeds the maximum length of {KEY} characters")
        if len(value) > VALUE:
            raise _wrong(f"Tag value exceeds the maximum length of {VALUE} characters")
    token = str(p.get("ClientToken") or "")
    if len(token) > TOKEN or not token.isascii():
        raise Ec2Error("InvalidClientToken", f"The client token '{token}' is longer than {TOKEN} ASCII characters")


def _tags(p: Params) -> Iterator[Params]:
    """Those that a request would set; DeleteTags names, and sets none."""
    specifications = [
        *p.get("TagSpecifications", []),
        *(p.get("LaunchTemplateData") or {}).get("TagSpecifications", []),
    ]
    for each in specifications:
        yield from each.get("Tags", [])
    if "Resources" in p and all("Value" in tag for tag in p.get("Tags", [])):
        yield from p.get("Tags", [])


def _wrong(message: str) -> Ec2Error:
    return Ec2Error("InvalidParameterValue", message)


# ---- of a launch
def launch(backend: Any, spec: Params, zone: str) -> None:
    """Raises Ec2Error for a merged launch request that EC2 doesn't take."""
    nics = spec.get("NetworkInterfaces", [])
    if nics and nics[0].get("InterfaceType") == "efa-only":  # the rule is documented, the code isn't
        text = "An EFA-only network interface can't be the primary network interface (card 0, device 0)"
        raise Ec2Error("InvalidParameterCombination", text)
    if (spec.get("MetadataOptions") or {}).get("InstanceMetadataTags") == "enabled":
        kinds = [each for each in spec.get("TagSpecifications", []) if each["ResourceType"] == "instance"]
        for key in (tag["Key"] for each in kinds for tag in each["Tags"]):
            if not IN_METADATA.fullmatch(key):
                form = "Tag keys must match pattern ([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not be a reserved name"
                raise _wrong(f"'{key}' is not a valid tag key. {form} ('.', '..', '_index')")
    if name := (spec.get("Placement") or {}).get("GroupName"):
        _placed(backend, stash(backend, "groups")[name], spec["InstanceType"], zone)


def _placed(backend: Any, group: Params, instance_type: str, zone: str) -> None:
    """A cluster placement group lies in the zone of its first instance, and is for types that can be close."""
    if group["Strategy"] != "cluster":
        return
    if "cluster" not in INSTANCE_TYPES[instance_type].get("PlacementGroupInfo", {}).get("SupportedStrategies", []):
        text = (
            f"Cluster placement groups are not supported by the '{instance_type}' instance type. Specify a supported "
            "instance type or change the placement group strategy, and try again."
        )
        raise Ec2Error("InvalidParameterCombination", text)
    for instance in backend.all_instances():
        there = instance.placement.group_name == group["GroupName"] and instance.state != "terminated"
        if there and instance.availability_zone != zone:
            text = f"The placement group '{group['GroupName']}' is in use in another availability zone: "
            raise Ec2Error("InvalidPlacementGroup.InUse", text + instance.availability_zone)


# ---- how many
def patch(replace: Callable[[Any, str, Any], None]) -> None:
    replace(
        VPCBackend, "create_vpc", _limited(VPCBackend.create_vpc, VPCS, lambda backend: backend.vpcs, "Vpc", "VPCs")
    )
    taken = _limited(
        ElasticAddressBackend.allocate_address, ADDRESSES, lambda backend: backend.addresses, "Address", "addresses"
    )
    replace(ElasticAddressBackend, "allocate_address", taken)


def _limited(
    make: Callable[..., Any], quota: str, there: Callable[[Any], Any], kind: str, many: str
) -> Callable[..., Any]:
    """With the account's quota before it. moto makes a region's default VPC while it makes the region."""

    def call(backend: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("is_default") and len(there(backend)) >= _quota(backend, quota):
            raise Ec2Error(f"{kind}LimitExceeded", f"The maximum number of {many} has been reached.")
        return make(backend, *args, **kwargs)

    return call


def _quota(backend: Any, code: str) -> float:
    return float(stash(backend, "quotas").get(code, 5))
