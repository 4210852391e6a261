"""What the account's owners ask of all that is made in it: in one place, so that nothing added later lacks it."""

import pulumi

from ironburst.config.aws.models import AwsCloud

_PATHS = {"aws:iam/role:Role", "aws:iam/instanceProfile:InstanceProfile", "aws:iam/policy:Policy"}
_ROLE = "aws:iam/role:Role"


def as_asked(cloud: AwsCloud) -> pulumi.ResourceTransformation:
    """For the options of whatever has AWS's resources below it: every role with the boundary, and roles, profiles and
    policies below the path. What isn't declared changes nothing.
    """
    asked = {"path": (_PATHS, cloud.iam.path), "permissions_boundary": ({_ROLE}, cloud.iam.permissions_boundary)}

    def transform(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        of_iam = {key: value for key, (kinds, value) in asked.items() if value and args.type_ in kinds}
        return pulumi.ResourceTransformationResult({**args.props, **of_iam}, args.opts) if of_iam else None

    return transform
