"""The Pulumi program: one structured key of the stack becomes a cluster, and the cluster's document an export."""

from datetime import UTC, datetime
from pathlib import Path

import pulumi

from components.cluster import Cluster
from ironburst.config import lockfile
from ironburst.config.checks import require_valid
from ironburst.config.load import ConfigError, from_value

try:
    config = from_value(pulumi.Config("ironburst").require_object("cluster"))
    warnings = require_valid(config, now=datetime.now(UTC))
    software, unlocked = lockfile.use(config, Path(__file__).parent / "stacks" / f"Pulumi.{pulumi.get_stack()}.yaml")
except ConfigError as error:
    raise pulumi.RunError(str(error)) from None
if config.cloud and pulumi.Config("aws").get("region") not in (None, config.cloud.region):
    raise pulumi.RunError(f"aws:region and cloud.region ({config.cloud.region}) differ; write the same region in both")
for warning in warnings + unlocked:
    pulumi.log.warn(str(warning))

cluster = Cluster(config.name, config, software)
pulumi.export("cluster", cluster.document)
pulumi.export("estimates", cluster.estimates)
pulumi.export("controller_role_arn", cluster.controller_role_arn)
