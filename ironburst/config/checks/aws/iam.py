"""What IAM takes: the sizes of policies."""

from __future__ import annotations

from ironburst.config.aws import iam_sizes
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


def sizes(config: ClusterConfig) -> Findings:
    """Every policy that `up` would write fits, with the longest ARNs that AWS gives."""
    for each in iam_sizes.of(config, config.cloud) if config.cloud else ():
        if each.size > each.most:
            todo = SHORTER.get(each.role, "name fewer data sets, or data sets that lie below one prefix")
            message = (
                f"the role {config.name}-{each.role} would have {each.size:,} characters there, and IAM takes "
                f"{each.most:,} for {KINDS[each.kind]}: {todo}"
            )
            yield Finding(path_of("cloud", *each.key), each.size, "iam-size", message)
