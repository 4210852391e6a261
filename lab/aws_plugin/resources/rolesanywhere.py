"""IAM Roles Anywhere: trust anchor, profile. The real provider asks for a disabled one where `enabled` isn't given."""

from __future__ import annotations

from typing import Any

from lab.aws_plugin.spec import Aws, Resource, changed, tagger
from lab.provider.wire import Props

PROFILE = "name roleArns durationSeconds sessionPolicy managedPolicyArns"


def anywhere(aws: Aws) -> Any:
    return aws.client("rolesanywhere")


def tags(new: Props) -> list[Props]:
    return [{"key": key, "value": value} for key, value in (new.get("tagsAll") or {}).items()]


def tags_of(aws: Aws, arn: str) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in anywhere(aws).list_tags_for_resource(resourceArn=arn)["tags"]}


tag = tagger(
    "rolesanywhere",
    lambda _rid, state: {"resourceArn": state["arn"]},
    tags="tags",
    keys="tagKeys",
    shape=lambda put: tags({"tagsAll": put}),
)


# ---- TrustAnchor
def create_anchor(aws: Aws, new: Props) -> str:
    made = anywhere(aws).create_trust_anchor(
        name=new["name"], source=new["source"], enabled=bool(new.get("enabled")), tags=tags(new)
    )
    return made["trustAnchor"]["trustAnchorId"]


def apply_anchor(aws: Aws, rid: str, old: Props, new: Props) -> None:
    if changed(old, new, "name source"):
        anywhere(aws).update_trust_anchor(trustAnchorId=rid, name=new["name"], source=new["source"])
    if changed(old, new, "enabled"):
        switch = anywhere(aws).enable_trust_anchor if new.get("enabled") else anywhere(aws).disable_trust_anchor
        switch(trustAnchorId=rid)


def read_anchor(aws: Aws, rid: str, _state: Props) -> Props | None:
    seen = anywhere(aws).get_trust_anchor(trustAnchorId=rid)["trustAnchor"]
    arn = seen["trustAnchorArn"]
    return {key: seen[key] for key in ("name", "source", "enabled")} | {"arn": arn, "tags": tags_of(aws, arn)}


# ---- Profile
def create_profile(aws: Aws, new: Props) -> str:
    asked = {key: new[key] for key in PROFILE.split() if new.get(key) is not None}
    made = anywhere(aws).create_profile(**{"roleArns": [], **asked}, enabled=bool(new.get("enabled")), tags=tags(new))
    return made["profile"]["profileId"]


def apply_profile(aws: Aws, rid: str, old: Props, new: Props) -> None:
    if moved := changed(old, new, PROFILE):
        anywhere(aws).update_profile(profileId=rid, **{key: new[key] for key in moved if key in new})
    if changed(old, new, "enabled"):
        switch = anywhere(aws).enable_profile if new.get("enabled") else anywhere(aws).disable_profile
        switch(profileId=rid)


def read_profile(aws: Aws, rid: str, _state: Props) -> Props | None:
    seen = anywhere(aws).get_profile(profileId=rid)["profile"]
    shown = {key: seen[key] for key in (*PROFILE.split(), "enabled") if key in seen}
    return shown | {"arn": seen["profileArn"], "tags": tags_of(aws, seen["profileArn"])}


SPECS = [
    Resource(
        "aws:rolesanywhere/trustAnchor:TrustAnchor",
        "name enabled source{sourceType sourceData{x509CertificateData}}",
        create=create_anchor,
        read=read_anchor,
        delete=lambda aws, rid, _state: anywhere(aws).delete_trust_anchor(trustAnchorId=rid),
        apply=apply_anchor,
        tag=tag,
        name="name",
        regional=False,
    ),
    Resource(
        "aws:rolesanywhere/profile:Profile",
        PROFILE + " enabled",
        create=create_profile,
        read=read_profile,
        delete=lambda aws, rid, _state: anywhere(aws).delete_profile(profileId=rid),
        apply=apply_profile,
        tag=tag,
        name="name",
        regional=False,
    ),
]
