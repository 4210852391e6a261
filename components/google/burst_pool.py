"""The envelope of one burst pool: where its nodes are launched. It holds no node: the controller rents those."""

import pulumi
import pulumi_gcp as gcp

from components.google import names
from components.google.network import NODES, Network
from ironburst import catalog
from ironburst.catalog.google.machine_types import machine_type
from ironburst.config.google.models import GoogleCloud, GoogleGroup, GooglePool
from ironburst.document import PoolZone
from ironburst.document.google import GooglePlace
from ironburst.nodes.naming import logical

DISK = "pd-balanced"
HYPERDISK = "hyperdisk-balanced"


class BurstPool(pulumi.ComponentResource):
    """Output: `zones` (PoolZone each)."""

    zones: list[pulumi.Output[PoolZone]]

    def __init__(
        self,
        name: str,
        *,
        cluster: str,
        cloud: GoogleCloud,
        pool: GooglePool,
        network: Network,
        service_account: pulumi.Output[str],
        spans: bool = True,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`spans`: a job may have several of its nodes."""
        super().__init__("ironburst:components:GoogleBurstPool", name, None, opts)
        self._cloud, self._pool, self._network, self._account = cloud, pool, network, service_account
        child = pulumi.ResourceOptions(parent=self)
        placements = {
            zone: compact(cluster, logical(pool.name, zone), cloud, child).id
            for zone in (pool.zones if _placed(pool, spans) else ())
        }
        self.zones = [self._zone(kind, zone, placements.get(zone)) for kind in pool.types for zone in pool.zones]
        self.register_outputs({})

    def _zone(self, kind: str, zone: str, placement: pulumi.Output[str] | None) -> pulumi.Output[PoolZone]:
        pool, asked = self._pool, self._cloud.labels
        reserved = pool.calendar_reservation.name if pool.calendar_reservation else pool.reservation or ""
        return pulumi.Output.all(self._network.interfaces(kind, zone), self._account, placement or "").apply(
            lambda known: PoolZone(
                zone=zone,
                instance_type=kind,
                place=GooglePlace(
                    machine_type=kind,
                    network_interfaces=known[0],
                    boot_disk_type=disk_type(pool, kind),
                    boot_disk_gb=pool.root_disk_gb,
                    boot_disk_mb_s=pool.root_disk_mb_s,
                    local_ssds=pool.local_ssds or 0,
                    service_account=known[1],
                    network_tags=[NODES],
                    labels=asked,
                    placement_policy=known[2],
                    reservation=reserved,
                    reservation_bound=pool.reservation_bound or bool(pool.calendar_reservation),
                ),
            )
        )


def compact(cluster: str, label: str, cloud: GoogleCloud, opts: pulumi.ResourceOptions) -> gcp.compute.ResourcePolicy:
    """A policy that puts machines close to each other; of a region, and used in one zone alone."""
    return gcp.compute.ResourcePolicy(
        logical(cluster, label, "placement"),
        name=names.resource(cluster, label, "placement"),
        project=cloud.project,
        region=cloud.region,
        group_placement_policy=gcp.compute.ResourcePolicyGroupPlacementPolicyArgs(collocation="COLLOCATED"),
        opts=opts,
    )


def disk_type(nodes: GooglePool | GoogleGroup, kind: str) -> str:
    """Of the boot disk."""
    return nodes.root_disk_type or (HYPERDISK if machine_type(kind).hyperdisk_only else DISK)


def _placed(pool: GooglePool, spans: bool) -> bool:
    """Nodes that no job has together are had more surely apart, and a reservation has a placement of its own."""
    if pool.compact_placement is not None:
        return pool.compact_placement
    return spans and not pool.bought and catalog.fabric(*pool.types)[1] > 0
