"""Data sets of cloud nodes: what a copy from S3 asks of the nodes' declaration."""

from __future__ import annotations

from ironburst.config.aws.models import AwsCloud
from ironburst.config.checks.common import Findings
from ironburst.config.checks.data import of_nodes
from ironburst.config.cloud_models import Pool
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.nodes import naming

ROLE_NAME = 64 - 8  # characters of an IAM role's name, without those that make it unique


def data(config: ClusterConfig) -> Findings:
    """The role of nodes with data of their own has a name that IAM takes."""
    cloud = config.cloud_by_class(AwsCloud)
    for where, nodes in of_nodes(cloud) if cloud else ():
        kind = "node" if isinstance(nodes, Pool) else "fixed"
        role = naming.logical(config.name, kind, nodes.name)
        if cloud and len(role) > ROLE_NAME and any(name in cloud.data and cloud.data[name].s3 for name in nodes.data):
            message = f"its nodes read data by a role of their own, {role}: IAM's names are shorter; shorten this one"
            yield Finding(path_of("cloud", *where, "name"), nodes.name, "role-name", message)
