"""A stack file as the policy sees it: what the controller would make of it, without a cloud."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ironburst.cli.site_options import BadInput
from ironburst.config.checks import check
from ironburst.config.load import ConfigError, Finding, load
from ironburst.config.models import group_nodes
from ironburst.document import ClusterDocument, DocumentError, PoolZone
from ironburst.document.build import CloudInstance, Observed, build


def document(path: Path) -> ClusterDocument:
    """The ClusterDocument of a stack file, with empty ids where only the cloud knows them. Raises BadInput with the first thing wrong."""
    try:
        config = load(path)
        errors = [finding for finding in check(config, datetime.now(UTC), versions=False) if finding.severity == "error"]
    except ConfigError as error:
        errors = error.findings
    if errors:
        raise BadInput(_first(path, errors))
    groups, pools = (config.cloud.groups, config.cloud.pools) if config.cloud else ([], [])
    instances = {name: CloudInstance(id="", address="") for group in groups for name in group_nodes(group)}
    zones = {pool.name: [PoolZone(zone=zone, subnet_id="", launch_template_id="") for zone in pool.zones] for pool in pools}
    try:
        return build(config, Observed(instances=instances, pool_zones=zones))
    except DocumentError as error:
        raise BadInput(f"{path}: {error}") from None


def _first(path: Path, errors: list[Finding]) -> str:
    more = f"; and {len(errors) - 1} more: `ironburst validate {path}` lists them" if len(errors) > 1 else ""
    where = "" if errors[0].path == str(path) else f"{path}: "
    return f"{where}{errors[0]}{more}"
