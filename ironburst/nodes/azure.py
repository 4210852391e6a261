"""What Azure's resources of a stack are called that more than one part of ironburst has to find. Each of a stack is in
one resource group; a launch's are in a group of its own (adapters/azure/launching.py).
"""

from __future__ import annotations


def resource_group(cluster: str) -> str:
    """Of all that `up` makes. Launches' groups never begin so."""
    return f"ironburst-{cluster}"


def gallery(cluster: str) -> str:
    """Of the stack's images; a gallery's name takes no hyphen."""
    return f"ironburst_{cluster.replace('-', '_')}"


def image(subscription: str, cluster: str, pool: str) -> str:
    """The id of a pool's image definition in that gallery."""
    group = f"/subscriptions/{subscription}/resourceGroups/{resource_group(cluster)}"
    return f"{group}/providers/Microsoft.Compute/galleries/{gallery(cluster)}/images/{pool}"


def reaper(cluster: str) -> str:
    """The workflow in that group that ends leases which nobody prolongs (docs/adr/0129)."""
    return f"ib-{cluster}-reaper"
