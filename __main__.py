"""The Pulumi program: one structured key of the stack becomes a cluster, and the cluster's document an export."""

from datetime import UTC, datetime
from pathlib import Path

import pulumi

from components.cluster import Cluster
from ironburst.config import lockfile
from ironburst.config.load import ConfigError, from_value, included
from ironburst.config.stack import valid

stack_file = Path(__file__).parent / "stacks" / f"Pulumi.{pulumi.get_stack()}.yaml"
try:
    declared = from_value(included(pulumi.Config("ironburst").require_object("cluster"), stack_file))
    stack = valid(declared, stack_file, now=datetime.now(UTC))
except ConfigError as error:
    raise pulumi.RunError(str(error)) from None
for warning in stack.warnings:
    pulumi.log.warn(str(warning))

cluster = Cluster(stack.config.name, stack.config, stack.software, drivers=lockfile.drivers(stack_file))
for name, value in cluster.outputs.items():
    pulumi.export(name, value)
