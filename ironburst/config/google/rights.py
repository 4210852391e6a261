"""Permissions in Google Cloud, and the conditions that bind them to names: labels can't be asked for in a condition.
Pure. What each is for: docs/adr/0128.
"""

from __future__ import annotations

from ironburst.config.google.models import GoogleCloud, GoogleGroup, GooglePool
from ironburst.nodes import naming

INSTANCE = "compute.googleapis.com/Instance"
ENDING = ("compute.instances.delete",)
"""of a rented node, and of the controller; on the cluster's rented instances alone"""
LOOKING = (
    "compute.advice.capacityHistory",
    "compute.globalOperations.list",
    "compute.images.get",
    "compute.images.getFromFamily",
    "compute.instances.get",
    "compute.instances.getSerialPortOutput",
    "compute.instances.list",
    "compute.machineTypes.get",
    "compute.projects.get",
    "compute.regions.get",
    "compute.reservations.get",
    "compute.reservations.list",
    "compute.zoneOperations.get",
    "compute.zoneOperations.list",
    "compute.zones.list",
)
"""of the controller and its doctor: they change nothing"""
LAUNCHING = (
    "compute.disks.create",
    "compute.disks.setLabels",
    "compute.images.useReadOnly",
    "compute.instances.create",
    "compute.instances.setLabels",
    "compute.instances.setMetadata",
    "compute.instances.setServiceAccount",
    "compute.instances.setTags",
    "compute.resourcePolicies.use",
    "compute.subnetworks.use",
)
"""of the controller of a stack with pools"""
PREVIEWING = (
    *("compute.firewalls.get", "compute.instances.get", "compute.networks.get", "compute.resourcePolicies.get"),
    *("compute.routers.get", "compute.subnetworks.get", "compute.vpnGateways.get", "compute.vpnTunnels.get"),
    *("compute.externalVpnGateways.get", "compute.interconnectAttachments.get", "compute.projects.get"),
    *("iam.roles.get", "iam.serviceAccounts.get", "iam.serviceAccounts.getIamPolicy"),
    *("iam.workloadIdentityPools.get", "iam.workloadIdentityPoolProviders.get"),
    *("resourcemanager.projects.get", "resourcemanager.projects.getIamPolicy"),
    *("secretmanager.secrets.get", "secretmanager.secrets.getIamPolicy"),
)
"""of CI: what a refresh of the stack's resources reads"""
BINDING_DATA = ("storage.buckets.getIamPolicy", "storage.buckets.setIamPolicy")
"""of whoever does `up` of a stack with data, at each of its buckets; CI has the first"""


def of_names(cluster: str) -> str:
    """A condition (CEL): only on instances of this cluster that are rented, by how their names begin."""
    named = 'resource.name.extract("/instances/{name}")'
    return f'resource.type == "{INSTANCE}" && {named}.startsWith("{naming.rented_prefix(cluster)}")'


READS_DATA = "roles/storage.objectViewer"
"""of nodes, at each bucket with their data, under of_data's condition"""


def data_of(cloud: GoogleCloud, nodes: GoogleGroup | GooglePool) -> dict[str, str]:
    """Name -> bucket/prefix of what these nodes read; a place once."""
    named = {cloud.data[name].gs: name for name in reversed(nodes.data) if name in cloud.data}
    return {name: place for place, name in reversed(named.items())}


def previewing(cloud: GoogleCloud) -> list[str]:
    """What CI may."""
    return [*PREVIEWING, *(BINDING_DATA[:1] if cloud.data else ())]


def of_data(place: str) -> tuple[str, str]:
    """Bucket, and the condition (CEL) under which READS_DATA reads what lies below a prefix; empty: all of the bucket.
    A list is asked of the bucket, and only a token's own boundary can see its prefix (objectListPrefix), no policy: so
    the names of all of a bucket's objects can be listed.
    """
    bucket, _, prefix = place.partition("/")
    named = f"projects/_/buckets/{bucket}"
    if not prefix:
        return bucket, ""
    return bucket, f'resource.name == "{named}" || resource.name.startsWith("{named}/objects/{prefix}/")'
