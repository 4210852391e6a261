"""Values kept in AWS: SSM parameters, the shells of secrets (never their values)."""

from __future__ import annotations

from lab.aws_plugin.spec import Aws, Resource, changed, given, one, pick, tag_list, tag_map, tagger
from lab.provider.wire import Props

PARAMETER = "type value dataType description tier keyId allowedPattern"


# ---- Parameter: its id is its name
tag_parameter = tagger(
    "ssm",
    lambda rid, _state: {"ResourceType": "Parameter", "ResourceId": rid},
    tag="add_tags_to_resource",
    untag="remove_tags_from_resource",
)


def create_parameter(aws: Aws, new: Props) -> str:
    tags = {"Tags": tag_list(new["tagsAll"])} if new.get("tagsAll") and not new.get("overwrite") else {}
    aws.client("ssm").put_parameter(
        Name=new["name"], Overwrite=bool(new.get("overwrite")), **given(new, PARAMETER), **tags
    )
    return new["name"]


def finish_parameter(aws: Aws, rid: str, old: Props, new: Props) -> None:
    if old:
        if changed(old, new, PARAMETER):
            aws.client("ssm").put_parameter(Name=rid, Overwrite=True, **given(new, PARAMETER))
    elif new.get("overwrite") and new.get("tagsAll"):  # PutParameter refuses tags beside Overwrite
        tag_parameter(aws, rid, {}, new["tagsAll"], [])


def read_parameter(aws: Aws, rid: str, _state: Props) -> Props | None:
    ssm = aws.client("ssm")
    described = ssm.get_parameter(Name=rid, WithDecryption=True)["Parameter"]
    named = [{"Key": "Name", "Option": "Equals", "Values": [rid]}]
    about = one(ssm.describe_parameters(ParameterFilters=named)["Parameters"]) or {}
    tags = ssm.list_tags_for_resource(ResourceType="Parameter", ResourceId=rid)["TagList"]
    return {
        **pick(described, "name type value version dataType"),
        **pick(about, "description tier keyId allowedPattern"),
        "arn": described.get("ARN"),
        "tags": tag_map(tags),
    }


# ---- Secret: its id is its ARN
def secrets(aws: Aws):
    return aws.client("secretsmanager")


def create_secret(aws: Aws, new: Props) -> str:
    tags = {"Tags": tag_list(new["tagsAll"])} if new.get("tagsAll") else {}
    return secrets(aws).create_secret(Name=new["name"], **given(new, "description kmsKeyId"), **tags)["ARN"]


def apply_secret(aws: Aws, rid: str, old: Props, new: Props) -> None:
    if changed(old, new, "description kmsKeyId"):
        secrets(aws).update_secret(SecretId=rid, Description=new.get("description") or "", **given(new, "kmsKeyId"))


def read_secret(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = secrets(aws).describe_secret(SecretId=rid)
    if described.get("DeletedDate"):
        return None
    return {
        **pick(described, "name description kmsKeyId"),
        "arn": described["ARN"],
        "tags": tag_map(described.get("Tags")),
    }


def delete_secret(aws: Aws, rid: str, state: Props) -> None:
    days = state.get("recoveryWindowInDays", 30)
    how = {"RecoveryWindowInDays": days} if days else {"ForceDeleteWithoutRecovery": True}
    secrets(aws).delete_secret(SecretId=rid, **how)


SPECS = [
    Resource(
        "aws:ssm/parameter:Parameter",
        f"name {PARAMETER} overwrite",
        create=create_parameter,
        read=read_parameter,
        delete=lambda aws, rid, _state: aws.client("ssm").delete_parameter(Name=rid),
        apply=finish_parameter,
        finish=True,
        tag=tag_parameter,
        name="name",
        secret="value",
        volatile="version",
        replace="dataType",
        check=lambda _olds, news: [] if "value" in news else [("value", "is required by the stand-in")],
    ),
    Resource(
        "aws:secretsmanager/secret:Secret",
        "name description kmsKeyId recoveryWindowInDays",
        create=create_secret,
        read=read_secret,
        delete=delete_secret,
        apply=apply_secret,
        tag=tagger("secretsmanager", lambda rid, _state: {"SecretId": rid}),
        name="name",
    ),
]
