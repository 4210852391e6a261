"""What the account's owners ask of all that is made in it: in one place, so that nothing added later lacks it."""

from typing import Any

import pulumi

from ironburst.config.aws.models import AwsCloud

_PATHS = {"aws:iam/role:Role", "aws:iam/instanceProfile:InstanceProfile", "aws:iam/policy:Policy"}
_ROLE = "aws:iam/role:Role"


def as_asked(cloud: AwsCloud) -> pulumi.ResourceTransformation:
    """For the options of whatever has AWS's resources below it: the organization's tags on all that can have some,
    every role with the boundary, and roles, profiles and policies below the path. What isn't declared changes nothing.
    """
    of_iam = {"path": (_PATHS, cloud.iam.path), "permissions_boundary": ({_ROLE}, cloud.iam.permissions_boundary)}

    def transform(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        asked: dict[str, Any] = {key: value for key, (kinds, value) in of_iam.items() if value and args.type_ in kinds}
        if cloud.tags and args.type_.startswith("aws:") and "tags" in args.props:
            own = args.props["tags"] or {}
            assert isinstance(own, dict)  # ours are known before anything is made
            asked["tags"] = {**cloud.tags, **own}
        return pulumi.ResourceTransformationResult({**args.props, **asked}, args.opts) if asked else None

    return transform
