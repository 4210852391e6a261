"""IAM: roles, policies, instance profiles. IAM is global: no region input."""

from __future__ import annotations

import json
from typing import Any

from lab.aws_plugin.spec import Aws, Resource, Tagger, changed, given, pick, tag_list, tag_map, tagger
from lab.provider.wire import Props

VERSIONS_KEPT = 5  # IAM's limit of versions a policy


def iam(aws: Aws) -> Any:
    return aws.client("iam")


def text(document: Any) -> str:
    """boto3 gives policy documents as dicts."""
    return document if isinstance(document, str) else json.dumps(document)


def tags(new: Props) -> Props:
    return {"Tags": described} if (described := tag_list(new.get("tagsAll"))) else {}


def iam_tagger(kind: str, parameter: str) -> Tagger:
    """The `tag` of a kind that IAM names by this parameter."""
    return tagger("iam", lambda rid, _state: {parameter: rid}, f"tag_{kind}", f"untag_{kind}")


# ---- Role
def create_role(aws: Aws, new: Props) -> str:
    asked = given(new, "path description maxSessionDuration permissionsBoundary")
    return iam(aws).create_role(
        RoleName=new["name"], AssumeRolePolicyDocument=new["assumeRolePolicy"], **asked, **tags(new)
    )["Role"]["RoleName"]


def apply_role(aws: Aws, rid: str, old: Props, new: Props) -> None:
    if old:
        if changed(old, new, "description maxSessionDuration"):
            iam(aws).update_role(
                RoleName=rid,
                Description=new.get("description") or "",
                MaxSessionDuration=new.get("maxSessionDuration") or 3600,
            )
        if changed(old, new, "assumeRolePolicy"):
            iam(aws).update_assume_role_policy(RoleName=rid, PolicyDocument=new["assumeRolePolicy"])
        if changed(old, new, "permissionsBoundary"):
            if new.get("permissionsBoundary"):
                iam(aws).put_role_permissions_boundary(RoleName=rid, PermissionsBoundary=new["permissionsBoundary"])
            else:
                iam(aws).delete_role_permissions_boundary(RoleName=rid)
    before, after = set(old.get("managedPolicyArns") or []), set(new.get("managedPolicyArns") or [])
    for arn in sorted(before - after):
        iam(aws).detach_role_policy(RoleName=rid, PolicyArn=arn)
    for arn in sorted(after - before):
        iam(aws).attach_role_policy(RoleName=rid, PolicyArn=arn)


def read_role(aws: Aws, rid: str, _state: Props) -> Props | None:
    role = iam(aws).get_role(RoleName=rid)["Role"]
    policies = iam(aws).list_attached_role_policies(RoleName=rid)["AttachedPolicies"]
    boundary = role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn")
    return {
        **pick(role, "arn path description maxSessionDuration"),
        "name": role["RoleName"],
        "uniqueId": role["RoleId"],
        "createDate": role["CreateDate"].isoformat(),
        "assumeRolePolicy": text(role["AssumeRolePolicyDocument"]),
        "permissionsBoundary": boundary,
        "managedPolicyArns": [p["PolicyArn"] for p in policies],
        "tags": tag_map(role.get("Tags")),
    }


def delete_role(aws: Aws, rid: str, state: Props) -> None:
    there = [p["PolicyArn"] for p in iam(aws).list_attached_role_policies(RoleName=rid)["AttachedPolicies"]]
    for arn in there if state.get("forceDetachPolicies") else set(there) & set(state.get("managedPolicyArns") or []):
        iam(aws).detach_role_policy(RoleName=rid, PolicyArn=arn)
    iam(aws).delete_role(RoleName=rid)


# ---- RolePolicy, RolePolicyAttachment
def put_role_policy(aws: Aws, new: Props) -> str:
    iam(aws).put_role_policy(RoleName=new["role"], PolicyName=new["name"], PolicyDocument=new["policy"])
    return f"{new['role']}:{new['name']}"


def read_role_policy(aws: Aws, rid: str, _state: Props) -> Props | None:
    role, name = rid.split(":", 1)
    described = iam(aws).get_role_policy(RoleName=role, PolicyName=name)
    return {"role": role, "name": name, "policy": text(described["PolicyDocument"])}


def delete_role_policy(aws: Aws, rid: str, _state: Props) -> None:
    role, name = rid.split(":", 1)
    iam(aws).delete_role_policy(RoleName=role, PolicyName=name)


def attach(aws: Aws, new: Props) -> str:
    iam(aws).attach_role_policy(RoleName=new["role"], PolicyArn=new["policyArn"])
    return f"{new['role']}/{new['policyArn']}"


def read_attachment(aws: Aws, rid: str, _state: Props) -> Props | None:
    role, arn = rid.split("/", 1)
    there = iam(aws).list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    return {"role": role, "policyArn": arn} if any(p["PolicyArn"] == arn for p in there) else None


def detach(aws: Aws, rid: str, _state: Props) -> None:
    role, arn = rid.split("/", 1)
    iam(aws).detach_role_policy(RoleName=role, PolicyArn=arn)


# ---- InstanceProfile
def create_profile(aws: Aws, new: Props) -> str:
    asked = given(new, "path")
    made = iam(aws).create_instance_profile(InstanceProfileName=new["name"], **asked, **tags(new))
    return made["InstanceProfile"]["InstanceProfileName"]


def apply_profile(aws: Aws, rid: str, old: Props, new: Props) -> None:
    if changed(old, new, "role"):
        if old.get("role"):
            iam(aws).remove_role_from_instance_profile(InstanceProfileName=rid, RoleName=old["role"])
        if new.get("role"):
            iam(aws).add_role_to_instance_profile(InstanceProfileName=rid, RoleName=new["role"])


def read_profile(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = iam(aws).get_instance_profile(InstanceProfileName=rid)["InstanceProfile"]
    return {
        **pick(described, "arn path"),
        "name": described["InstanceProfileName"],
        "uniqueId": described["InstanceProfileId"],
        "createDate": described["CreateDate"].isoformat(),
        "role": next((r["RoleName"] for r in described["Roles"]), None),
        "tags": tag_map(described.get("Tags")),
    }


def delete_profile(aws: Aws, rid: str, _state: Props) -> None:
    for role in iam(aws).get_instance_profile(InstanceProfileName=rid)["InstanceProfile"]["Roles"]:
        iam(aws).remove_role_from_instance_profile(InstanceProfileName=rid, RoleName=role["RoleName"])
    iam(aws).delete_instance_profile(InstanceProfileName=rid)


# ---- Policy
def create_policy(aws: Aws, new: Props) -> str:
    asked = given(new, "path description")
    made = iam(aws).create_policy(PolicyName=new["name"], PolicyDocument=new["policy"], **asked, **tags(new))
    return made["Policy"]["Arn"]


def other_versions(aws: Aws, rid: str) -> list[str]:
    described = [v for v in iam(aws).list_policy_versions(PolicyArn=rid)["Versions"] if not v["IsDefaultVersion"]]
    return [v["VersionId"] for v in sorted(described, key=lambda v: v["CreateDate"])]


def apply_policy(aws: Aws, rid: str, _old: Props, new: Props) -> None:
    if len(others := other_versions(aws, rid)) >= VERSIONS_KEPT - 1:
        iam(aws).delete_policy_version(PolicyArn=rid, VersionId=others[0])
    iam(aws).create_policy_version(PolicyArn=rid, PolicyDocument=new["policy"], SetAsDefault=True)


def read_policy(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = iam(aws).get_policy(PolicyArn=rid)["Policy"]
    version = iam(aws).get_policy_version(PolicyArn=rid, VersionId=described["DefaultVersionId"])
    document = version["PolicyVersion"]["Document"]
    return {
        **pick(described, "arn path description attachmentCount policyId"),
        "name": described["PolicyName"],
        "policy": text(document),
        "tags": tag_map(described.get("Tags")),
    }


def delete_policy(aws: Aws, rid: str, _state: Props) -> None:
    for version in other_versions(aws, rid):
        iam(aws).delete_policy_version(PolicyArn=rid, VersionId=version)
    iam(aws).delete_policy(PolicyArn=rid)


SPECS = [
    Resource(
        "aws:iam/role:Role",
        "name path description assumeRolePolicy maxSessionDuration permissionsBoundary managedPolicyArns "
        "forceDetachPolicies",
        create=create_role,
        read=read_role,
        delete=delete_role,
        apply=apply_role,
        finish=True,
        tag=iam_tagger("role", "RoleName"),
        name="name",
        replace="path",
        regional=False,
    ),
    Resource(
        "aws:iam/rolePolicy:RolePolicy",
        "name role policy",
        create=put_role_policy,
        read=read_role_policy,
        delete=delete_role_policy,
        apply=lambda aws, _rid, _old, new: put_role_policy(aws, new),
        name="name",
        replace="role",
        regional=False,
    ),
    Resource(
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        "role policyArn",
        create=attach,
        read=read_attachment,
        delete=detach,
        replace="role policyArn",
        regional=False,
    ),
    Resource(
        "aws:iam/instanceProfile:InstanceProfile",
        "name role path",
        create=create_profile,
        read=read_profile,
        delete=delete_profile,
        apply=apply_profile,
        finish=True,
        tag=iam_tagger("instance_profile", "InstanceProfileName"),
        name="name",
        replace="path",
        regional=False,
    ),
    Resource(
        "aws:iam/policy:Policy",
        "name path description policy",
        create=create_policy,
        read=read_policy,
        delete=delete_policy,
        apply=apply_policy,
        tag=iam_tagger("policy", "PolicyArn"),
        name="name",
        replace="path description",
        regional=False,
    ),
]
