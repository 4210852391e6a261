"""Google Cloud in a new stack file: what is asked of it, and what the answers become."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from ironburst.catalog.google.machine_types import machine_type
from ironburst.config.google.forms import PROJECT as FORM
from ironburst.initial.answers import (
    Given,
    Question,
    alike,
    free_networks,
    hall,
    matching,
    money,
    pool_lines,
    price_lines,
    rents_in,
)
from ironburst.initial.answers import zones as zones_of

OF_ACCOUNT = dict.fromkeys(("project", "gcp:project"), "a project per environment")
OF_ACCOUNT |= dict.fromkeys(("reservation", "calendar_reservation"), "bought for the other environment")
OF_ACCOUNT |= {"interconnects": "of this hall's link", "billing_account": "the same one?"}
"""of a copied stack file: last key of what nobody but a person can know: why"""
SMALL = {"x86_64": "n2-standard-16", "aarch64": "c4a-standard-16"}
"""what images are baked on, by the pool's architecture"""


def settings(given: Given) -> list[str]:
    """What Pulumi's provider is told, beside the cluster."""
    return [f"  gcp:project: {given['project']}", f"  gcp:region: {given['region']}"]


def secrets(given: Given) -> str:
    """What references to its store begin with."""
    return f"google-secretmanager:{given['project']}/ironburst-"


zones = zones_of("-[a-z0-9]+", "-a")
"""reads what was answered"""
like_home = functools.partial(alike, provider="google")


def where(given: Given) -> str:
    """Which zones have the type isn't in the catalogue: the doctor asks."""
    return f"{given['region']}-a"


_project = matching(FORM, "is no id of a project; write for example gpu-prod-4711")
PROJECT = Question("project", "Project to rent in, its id", _project, when=rents_in("google"))


def cloud(given: Given) -> Iterator[str]:
    """The lines of what is rented, and of its budget."""
    name, _ = given["rent"]
    kind, free = machine_type(name), free_networks(given)
    yield "    cloud:"
    yield "      provider: google"
    yield f"      project: {given['project']}"
    yield f"      region: {given['region']}"
    yield "      network:"
    yield f"        cidr: {next(free)} # no network of yours"
    if kind.nics > 1:
        yield f"        fabric_cidr: {next(free)} # of the {kind.nics - 1} other NICs of a node"
    yield f"        zones: [{', '.join(given['zones'])}]"
    if hall(given):
        yield "        # rented nodes reach the head through it: vpn or interconnect"
        secret = f"{secrets(given)}{given['name']}-vpn"
        link = f'peer_address: YOUR.PUBLIC.ADDRESS, peer_asn: 65010, shared_secret: "{secret}"'
        yield f"        # hall_link: {{kind: vpn, hall: hall-a, {link}}}"
    yield f"      images: {{build_type: {SMALL[kind.architecture]}}}"
    yield from pool_lines(given, name)
    yield from price_lines(given)
    yield money(given)


def munge_key_hint(given: Given) -> tuple[str, ...]:
    """How a site's munge key is stored, of a Slurm that ironburst makes."""
    return (
        f"      # made before the first `pulumi up`: gcloud secrets create ironburst-{given['name']}-munge-key",
        f"      #   --project {given['project']} --data-file /etc/munge/munge.key",
    )
