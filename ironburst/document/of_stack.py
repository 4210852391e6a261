"""The ClusterDocument of a stack file, without a cloud."""

from __future__ import annotations

from pathlib import Path

from ironburst.config.valid import valid
from ironburst.document import ClusterDocument, DocumentError, PoolZone
from ironburst.document.build import CloudInstance, Observed, build
from ironburst.document.build_scheduler import HostedCluster
from ironburst.document.places import UNKNOWN
from ironburst.nodes import naming
from ironburst.system.bad_input import BadInput


def document(path: Path) -> ClusterDocument:
    """The ClusterDocument of a stack file, with empty ids where only the cloud knows them.
    Raises BadInput with the first thing wrong.
    """
    config = valid(path)
    fixed = [name for group in config.groups for name in naming.numbered(group.name, group.count)]
    instances = {name: CloudInstance(id="", address="") for name in fixed}
    zones = {
        pool.name: [
            PoolZone(zone=zone, instance_type=name, place=UNKNOWN[cloud.provider])
            for name in pool.types
            for zone in pool.zones
        ]
        for cloud in config.clouds
        for pool in cloud.pools
    }
    try:
        hosted = HostedCluster(api_server="", ca="")
        return build(config, Observed(instances=instances, pool_zones=zones, hosted=hosted))
    except DocumentError as error:
        raise BadInput(f"{path}: {error}") from None
