"""The envelope of one burst pool: where its nodes are launched, and the definition of its image. It holds no node: the
controller rents those.
"""

import pulumi
import pulumi_azure_native as azure

from components.azure.network import Network
from ironburst import catalog
from ironburst.catalog.azure.sizes import size
from ironburst.config.azure.models import AzureCloud, AzurePool
from ironburst.document import PoolZone
from ironburst.document.azure import AzurePlace
from ironburst.nodes.naming import logical

_ARCHITECTURES = {"x86_64": "x64", "aarch64": "Arm64"}


class BurstPool(pulumi.ComponentResource):
    """Output: `zones` (PoolZone each)."""

    zones: list[pulumi.Output[PoolZone]]

    def __init__(
        self,
        name: str,
        *,
        cluster: str,
        cloud: AzureCloud,
        pool: AzurePool,
        network: Network,
        identity: pulumi.Output[str],
        gallery: azure.compute.Gallery,
        admin_user: str,
        spans: bool = True,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`spans`: a job may have several of its nodes."""
        super().__init__("ironburst:components:AzureBurstPool", name, None, opts)
        self._cloud, self._pool, self._network, self._user = cloud, pool, network, admin_user
        self._spans, self._identity = spans, identity
        self._image(cluster, gallery)
        self.zones = [self._zone(kind, zone) for kind in pool.types for zone in pool.zones]
        self.register_outputs({})

    def _image(self, cluster: str, gallery: azure.compute.Gallery) -> None:
        """Versions are baked into it (`ironburst image`). They go with the stack's group, and not before: with one in
        it, a definition can't be deleted.
        """
        of = size(self._pool.types[0])
        features = [
            azure.compute.GalleryImageFeatureArgs(name=name, value=value)
            for name, value in (("SecurityType", "TrustedLaunchSupported"), ("DiskControllerTypes", "SCSI,NVMe"))
        ]
        azure.compute.GalleryImage(
            logical(cluster, self._pool.name, "image"),
            gallery_image_name=self._pool.name,
            gallery_name=gallery.name,
            resource_group_name=gallery.id.apply(lambda id: id.split("/")[4]),
            location=self._cloud.region,
            identifier=azure.compute.GalleryImageIdentifierArgs(
                publisher="ironburst", offer=cluster, sku=self._pool.name
            ),
            architecture=_ARCHITECTURES[of.architecture],
            hyper_v_generation=azure.compute.HyperVGeneration.V2,
            os_state=azure.compute.OperatingSystemStateTypes.GENERALIZED,
            os_type=azure.compute.OperatingSystemTypes.LINUX,
            features=features,
            tags=self._cloud.tags,
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
        )

    def _zone(self, kind: str, zone: str) -> pulumi.Output[PoolZone]:
        pool = self._pool
        return pulumi.Output.all(self._network.subnet, self._identity).apply(
            lambda known: PoolZone(
                zone=zone,
                instance_type=kind,
                place=AzurePlace(
                    vm_size=kind,
                    subnet_id=known[0],
                    security_group_id=self._network.security_group,
                    identity_id=known[1],
                    os_disk_type=pool.root_disk_type,
                    os_disk_gb=pool.root_disk_gb,
                    ssh_public_key=self._cloud.ssh_public_key,
                    admin_user=self._user,
                    infiniband=_fabric(pool, self._spans),
                    accelerated_networking=size(kind).accelerated_networking,
                    security_type=pool.security_type or "",
                    tags=self._cloud.tags,
                    capacity_reservation_group=pool.reservation_group,
                ),
            )
        )


def _fabric(pool: AzurePool, spans: bool) -> bool:
    """Nodes that no job has together are had more surely apart, and a reservation on demand has no fabric."""
    if pool.infiniband is not None:
        return pool.infiniband
    return spans and not pool.capacity_reservation_group and catalog.fabric(*pool.types)[1] > 0
