"""Google Cloud in a new stack file: what is asked of it, and what the answers become."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from ironburst import catalog
from ironburst.catalog.google.machine_types import machine_type, machine_types
from ironburst.config.google.forms import PROJECT as FORM
from ironburst.initial.answers import Given, Question, Wrong, hall, made_here, money, price_lines, rents

SMALL = {"x86_64": "n2-standard-16", "aarch64": "c4a-standard-16"}
"""what images are baked on, by the pool's architecture"""


def settings(given: Given) -> list[str]:
    """What Pulumi's provider is told, beside the cluster."""
    return [f"  gcp:project: {given['project']}", f"  gcp:region: {given['region']}"]


def secrets(given: Given) -> str:
    """What references to its store begin with."""
    return f"google-secretmanager:{given['project']}/ironburst-"


def zones(text: str, given: Given) -> list[str]:
    """As they were answered. Raises Wrong."""
    named = text.replace(",", " ").split()
    for zone in named:
        if not re.fullmatch(f"{given['region']}-[a-z0-9]+", zone):
            raise Wrong(f"{zone!r} is not a zone of {given['region']}; write for example {given['region']}-a")
    return named


def where(given: Given) -> str:
    """Which zones have the type isn't in the catalogue: the doctor asks."""
    return f"{given['region']}-a"


def like_home(given: Given) -> str | None:
    """The cheapest type with the GPUs of the owned nodes that is sold on demand; without such, none."""
    home = catalog.platform(given["platform"]) if given["nodes"] else None
    like = [
        kind
        for kind in machine_types().values()
        if home and (kind.gpu_model, kind.gpu_count) == (home.gpu.model, home.gpu_count) and kind.od_usd_per_hour
    ]
    return min(like, key=lambda kind: kind.od_usd_per_hour or 1e9).name + "=2" if like else None


def _project(text: str, _: Given) -> str:
    if not re.fullmatch(FORM, text):
        raise Wrong(f"{text!r} is no id of a project; write for example gpu-prod-4711")
    return text


def _asked(given: Given) -> bool:
    return rents(given) and catalog.region(given["region"]).provider == "google"


PROJECT = Question("project", "Project to rent in, its id", _project, when=_asked)


def cloud(given: Given) -> Iterator[str]:
    """The lines of what is rented, and of its budget."""
    name, nodes = given["rent"]
    kind, named = machine_type(name), f"[{', '.join(given['zones'])}]"
    taken = ipaddress.IPv4Network(given.get("network") or "10.0.0.0/32")
    free = (n for n in range(90, 250) if not ipaddress.IPv4Network(f"10.{n}.0.0/16").overlaps(taken))
    yield "    cloud:"
    yield "      provider: google"
    yield f"      project: {given['project']}"
    yield f"      region: {given['region']}"
    yield "      network:"
    yield f"        cidr: 10.{next(free)}.0.0/16 # no network of yours"
    if kind.nics > 1:
        yield f"        fabric_cidr: 10.{next(free)}.0.0/16 # of the {kind.nics - 1} other NICs of a node"
    yield f"        zones: {named}"
    if hall(given):
        yield "        # rented nodes reach the head through it: vpn or interconnect"
        secret = f"{secrets(given)}{given['name']}-vpn"
        link = f'peer_address: YOUR.PUBLIC.ADDRESS, peer_asn: 65010, shared_secret: "{secret}"'
        yield f"        # hall_link: {{kind: vpn, hall: hall-a, {link}}}"
    yield f"      images: {{build_type: {SMALL[kind.architecture]}}}"
    pool = f"{{name: {re.sub(r'[^a-z0-9]', '', name)}, instance_type: {name}, max_nodes: {nodes}, zones: {named}}}"
    if made_here(given):
        yield "      pools: [] # once the head is converged: write its authority under scheduler.ca, and then"
        yield f"      # pools: [{pool}]"
    else:
        yield "      pools:"
        yield f"        - {pool} # markets: [spot, on-demand] for jobs that may be requeued"
    yield from price_lines(given)
    yield money(given)


def munge_key_hint(given: Given) -> tuple[str, ...]:
    """How a site's munge key is stored, of a Slurm that ironburst makes."""
    return (
        f"      # made before the first `pulumi up`: gcloud secrets create ironburst-{given['name']}-munge-key",
        f"      #   --project {given['project']} --data-file /etc/munge/munge.key",
    )
