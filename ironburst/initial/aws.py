"""AWS in a new stack file: what is asked of it, and what the answers become."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ironburst import catalog
from ironburst.initial.answers import (
    Given,
    Question,
    Wrong,
    free_networks,
    hall,
    matching,
    money,
    pool_lines,
    price_lines,
)
from ironburst.system.bad_input import BadInput

SECRETS = "aws-secretsmanager:ironburst"
HOSTED = "      eks: {} # public_access and admins: who reaches its API, and who may everything"
OF_ACCOUNT = {"aws:allowedAccountIds": "an account per environment", "s3": "data of this account"}
"""of a copied stack file: last key of what nobody but a person can know: why"""


def region_line(name: str) -> str:
    """The line of the stack file."""
    return f"  aws:region: {name}"


def settings(given: Given) -> list[str]:
    """What Pulumi's provider is told, beside the cluster."""
    return [region_line(given["region"])]


def secrets(_: Given) -> str:
    """What references to its store begin with."""
    return f"{SECRETS}/"


def zones(text: str, given: Given) -> list[str]:
    """As they were answered. Raises Wrong."""
    named = text.replace(",", " ").split()
    for zone in named:
        if not re.fullmatch(f"{given['region']}[a-z]", zone):
            raise Wrong(f"{zone!r} is not a zone of {given['region']}; write for example {given['region']}a")
    if given["hosted"] and len(named) < 2:
        raise Wrong("EKS takes two zones at least; write for example us-east-1a,us-east-1b")
    return named


def like_home(given: Given) -> str | None:
    """The cheapest instance with the GPUs of the owned nodes; without such, none."""
    home = catalog.platform(given["platform"]) if given["nodes"] else None
    like = [kind for kind in _like(home) if kind.zones(given["region"])] if home else []
    return min(like, key=lambda kind: kind.od_usd_per_hour or 1e9).name + "=2" if like else None


def _like(home: catalog.Platform) -> list[catalog.InstanceType]:
    """The instance types with as many of the platform's GPUs."""
    wanted = (home.gpu.model, home.gpu_count)
    known = catalog.instance_types("aws").values()
    return [kind for kind in known if kind.gpu and (kind.gpu.model, kind.gpu_count) == wanted]


def where(given: Given) -> str:
    """Zones that have the type, two where EKS wants two."""
    zones = catalog.instance_type(given["rent"][0]).zones(given["region"]) or catalog.zones(given["region"])
    more = [zone for zone in catalog.zones(given["region"]) if zone not in zones]
    return ",".join([*zones, *more][:2]) or f"{given['region']}a"


_image = matching(r"ami-[0-9a-f]{8,17}", "is no image; write for example ami-0123456789abcdef0")
IMAGE = Question("image", "Plain image of EKS's fixed node, ami-...", _image, when=lambda given: given["hosted"])


def cloud(given: Given) -> Iterator[str]:
    """The lines of what is rented, and of its budget."""
    kind, _ = given["rent"]
    yield "    cloud:"
    yield f"      region: {given['region']}"
    yield "      network:"
    yield f"        cidr: {next(free_networks(given))} # no network of yours"
    yield f"        zones: [{', '.join(given['zones'])}]"
    if hall(given):
        yield "        # rented nodes reach the head through it: vpn, direct-connect or transit-gateway"
        yield "        # hall_link: {kind: vpn, hall: hall-a, peer_address: YOUR.PUBLIC.ADDRESS, peer_asn: 65010}"
    if given["hosted"]:
        yield "      groups: # EKS's own pods run there"
        where = f"zone: {given['zones'][0]}, image: {given['image']}"
        yield f"        - {{name: base, instance_type: {kind}, count: 1, {where}}}"
    yield from pool_lines(given, kind.split(".")[0])
    yield from price_lines(given)
    yield money(given)


def rented(rent: str | None, platform: str) -> tuple[str, int]:
    """Type and most nodes: as given, or the cheapest with the platform's GPUs. Raises BadInput."""
    if rent:
        kind, _, nodes = rent.partition("=")
        if not nodes.isdecimal():
            raise BadInput(f"--rent {rent}: write TYPE=NODES, as in p5.48xlarge=2")
        return kind, int(nodes)
    try:
        home = catalog.platform(platform)
    except catalog.Unknown as error:
        raise BadInput(f"--platform: {error}") from None
    like = [kind for kind in _like(home) if kind.od_usd_per_hour]
    if not like:
        raise BadInput(
            f"--rent TYPE=NODES is needed: EC2 sells nothing on demand with {home.gpu_count} x {home.gpu.model}"
        )
    return min(like, key=lambda kind: kind.od_usd_per_hour or 0.0).name, 2


def munge_key_hint(given: Given) -> tuple[str, ...]:
    """How a site's munge key is stored, of a Slurm that ironburst makes."""
    name = given["name"]
    return (
        "      # made before the first `pulumi up`: aws secretsmanager create-secret",
        f"      #   --name ironburst/{name}/munge-key --secret-binary fileb:///etc/munge/munge.key",
    )


def own_munge_key_hint(name: str) -> tuple[str, str]:
    """The same of a Slurm that is there."""
    return (
        "      # the site's own munge key, which rented nodes join with. On a host that has it: aws secretsmanager",
        f"      # create-secret --name ironburst/{name}/munge-key --secret-binary fileb:///etc/munge/munge.key",
    )
