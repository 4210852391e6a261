"""What EC2 asks of IAM before it rents on the spot market, and moto doesn't; the policies that AWS keeps, which moto
leaves out unless it is told otherwise, for they take long to read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.exceptions import InvalidInput
from moto.iam.models import SERVICE_NAME_CONVERSION, AWSManagedPolicy, IAMBackend, iam_backends

from lab.aws.faults import Ec2Error

SPOT_SERVICE, SPOT_ROLE = "spot.amazonaws.com", "AWSServiceRoleForEC2Spot"


def need_spot_role(backend: Any) -> None:
    """EC2 makes the service-linked role itself only for callers who may, and asks API callers to have it made."""
    roles = iam_backends[backend.account_id]["aws"].roles.values()
    if SPOT_ROLE not in [role.name for role in roles]:
        raise Ec2Error(
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
            "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.",
            403,
        )


def patch(replace: Callable[[Any, str, Any], None]) -> None:
    """A service-linked role has its name from AWS, and is there once."""
    SERVICE_NAME_CONVERSION["spot"] = SPOT_ROLE.removeprefix("AWSServiceRoleFor")
    create = IAMBackend.create_service_linked_role

    def call(backend: Any, service_name: str, *args: Any, **kwargs: Any) -> Any:
        if service_name == SPOT_SERVICE and SPOT_ROLE in [role.name for role in backend.roles.values()]:
            raise InvalidInput(f"Service role name {SPOT_ROLE} has been taken in this account.")
        return create(backend, service_name, *args, **kwargs)

    replace(IAMBackend, "create_service_linked_role", call)
    attach = IAMBackend.attach_role_policy

    def with_managed(backend: Any, policy_arn: str, role_name: str) -> Any:
        if ":iam::aws:policy/" in policy_arn and policy_arn not in backend.managed_policies:
            name, known = policy_arn.rpartition("/")[2], json.loads(aws_managed_policies_data)
            if name in known:
                made = AWSManagedPolicy.from_data(name, backend.account_id, backend.region_name, known[name])
                backend.managed_policies[policy_arn] = made
        return attach(backend, policy_arn, role_name)

    replace(IAMBackend, "attach_role_policy", with_managed)
