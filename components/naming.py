"""Names and tags of the resources, as pure functions. The controller finds its instances by these tags."""

CLUSTER = "ironburst:cluster"
POOL = "ironburst:pool"
GROUP = "ironburst:group"


def logical(*parts: str) -> str:
    """The Pulumi name of a resource: its parts joined, `p5-us-east-1a-template`. Stable as long as the declaration's
    names are.
    """
    return "-".join(parts)


def tags(cluster: str, name: str, *, pool: str | None = None, group: str | None = None) -> dict[str, str]:
    """Tags of a resource. `name` is what people see in the console; a pool's or a group's resources carry its name
    too.
    """
    found = {"Name": logical(cluster, name), CLUSTER: cluster}
    if pool is not None:
        found[POOL] = pool
    if group is not None:
        found[GROUP] = group
    return found
