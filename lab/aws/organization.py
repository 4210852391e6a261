"""Service control policies as companies have them, for `cloud.organization`: each is one policy of an organization."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]


def no_launch_without(key: str) -> Document:
    """No instance and no volume of a launch without a tag."""
    kinds = ("instance", "volume")
    return _denied(
        "ec2:RunInstances", [f"arn:*:ec2:*:*:{kind}/*" for kind in kinds], {"Null": {f"aws:RequestTag/{key}": "true"}}
    )


def no_role_without(boundary: str) -> Document:
    """No role without this permissions boundary, nor without it later."""
    actions = ["iam:CreateRole", "iam:PutRolePermissionsBoundary"]
    document = _denied(actions, ["*"], {"StringNotEquals": {"iam:PermissionsBoundary": boundary}})
    document["Statement"] += _denied("iam:DeleteRolePermissionsBoundary", ["*"], {})["Statement"]
    return document


def _denied(action: str | list[str], resources: list[str], condition: Document) -> Document:
    statement = {"Effect": "Deny", "Action": action, "Resource": resources}
    return {"Version": "2012-10-17", "Statement": [statement | ({"Condition": condition} if condition else {})]}
