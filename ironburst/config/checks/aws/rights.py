"""What IAM takes: the sizes of policies."""

from __future__ import annotations

from ironburst.config.aws import sizes
from ironburst.config.aws.models import AwsCloud
from ironburst.config.checks.common import Findings
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig

SHORTER = {
    "controller": "declare fewer pools in this stack, or shorter names of pools and groups of reservations",
    "preview": "name fewer subjects, or ask AWS to raise that quota",
}
KINDS = {
    "inline": "the inline policies of a role together",
    "managed": "a managed policy",
    "trust": "a role's trust policy",
}


def policy_sizes(config: ClusterConfig) -> Findings:
    """Every policy that `up` would write fits, with the longest ARNs that AWS gives."""
    for each in sizes.of(config, cloud) if (cloud := config.cloud_by_class(AwsCloud)) else ():
        if each.size > each.most:
            todo = SHORTER.get(each.role, "name fewer data sets, or data sets that lie below one prefix")
            message = (
                f"the role {config.name}-{each.role} would have {each.size:,} characters there, and IAM takes "
                f"{each.most:,} for {KINDS[each.kind]}: {todo}"
            )
            yield Finding(path_of("cloud", *each.key), each.size, "iam-size", message)


def boundary(config: ClusterConfig) -> Findings:
    """A boundary that the roles below the path can't change, of the region's own partition."""
    if not (cloud := config.cloud_by_class(AwsCloud)) or not (declared := cloud.iam.permissions_boundary):
        return
    path, scope = path_of("cloud", "iam", "permissions_boundary"), sizes.where(cloud)
    partition, name = declared.split(":")[1], declared.partition(":policy")[2]
    if partition != scope.partition:
        message = f"{declared} is of the partition {partition}, and {cloud.region} is of {scope.partition}"
        yield Finding(path, declared, "boundary", f"{message}: write that of the stack's account")
    ours = f"{cloud.iam.path or '/'}{config.name}-"
    if name.startswith(ours):
        message = (
            f"{declared} is called as this stack's own policies are ({ours}*), so whoever does `up` could change what "
            "bounds him: give it another path or name"
        )
        yield Finding(path, declared, "boundary", message)
