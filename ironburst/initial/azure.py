"""Azure in a new stack file: what is asked of it, and what the answers become."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from ironburst.catalog.azure.sizes import size
from ironburst.config.azure import forms
from ironburst.initial.answers import (
    Given,
    Question,
    Wrong,
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

OF_ACCOUNT = dict.fromkeys(("subscription", "azure-native:subscriptionId"), "a subscription per environment")
OF_ACCOUNT |= {"key_vault": "of this subscription", "principal": "this environment's controller"}
"""of a copied stack file: last key of what nobody but a person can know: why"""
SMALL = {"x86_64": "Standard_D16s_v5", "aarch64": "Standard_D16ps_v5"}
"""what images are baked on, by the pool's architecture"""
USER = "ironburst"


def settings(given: Given) -> list[str]:
    """What Pulumi's provider is told, beside the cluster."""
    return [f"  azure-native:subscriptionId: {given['subscription']}", f"  azure-native:location: {given['region']}"]


def _vault(given: Given) -> str:
    return str(given["key_vault"]).rpartition("/")[2]


def secrets(given: Given) -> str:
    """What references to its store begin with."""
    return f"azure-keyvault:{_vault(given)}/ironburst-"


zones = zones_of("(-[1-9])?", "-1")
"""reads what was answered"""
like_home = functools.partial(alike, provider="azure")


def where(given: Given) -> str:
    """Which zones have the size isn't in the catalogue: the doctor asks."""
    return f"{given['region']}-1"


def _public_key(text: str, _: Given) -> str:
    try:
        line = text if text.startswith("ssh-") else Path(text).expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError):
        raise Wrong(f"{text} can't be read; write the .pub file of a key, or its line") from None
    if not re.fullmatch(forms.PUBLIC_KEY, line):
        raise Wrong(f"{text} is no public key that Azure takes: ssh-ed25519 or ssh-rsa")
    return line


_asked = rents_in("azure")
_subscription = matching(
    forms.UUID, "is no id of a subscription; write for example 0b1f6471-1bf0-4dda-aec3-cb9272f09590"
)
_key_vault = matching(forms.VAULT, "is no id of a vault; `az keyvault show --name NAME --query id` prints it")


QUESTIONS = (
    Question("subscription", "Subscription to rent in, its id", _subscription, when=_asked),
    Question("key_vault", "Key Vault with what nodes join with, its id", _key_vault, when=_asked),
    Question("ssh_public_key", "Public key of whoever logs in at nodes, a .pub file", _public_key, when=_asked),
)


def cloud(given: Given) -> Iterator[str]:
    """The lines of what is rented, and of its budget."""
    name, _ = given["rent"]
    yield f"    ssh: {{cloud_user: {USER}}} # Azure makes it on every node, with that key"
    yield "    cloud:"
    yield "      provider: azure"
    yield f"      subscription: {given['subscription']}"
    yield f"      region: {given['region']}"
    yield f"      key_vault: {given['key_vault']}"
    yield f"      ssh_public_key: {given['ssh_public_key']}"
    yield "      network:"
    yield f"        cidr: {next(free_networks(given))} # no network of yours, and not 172.16.0.0/16"
    yield f"        zones: [{', '.join(given['zones'])}]"
    if hall(given):
        yield "        # rented nodes reach the head through it: vpn or expressroute"
        secret = f"{secrets(given)}{given['name']}-vpn"
        link = f'peer_address: YOUR.PUBLIC.ADDRESS, shared_secret: "{secret}"'
        yield f"        # hall_link: {{kind: vpn, hall: hall-a, {link}}}"
    yield f"      images: {{build_type: {SMALL[size(name).architecture]}}}"
    yield from pool_lines(given, name.removeprefix("Standard_"))
    yield from price_lines(given)
    yield money(given)


def munge_key_hint(given: Given) -> tuple[str, ...]:
    """How a site's munge key is stored, of a Slurm that ironburst makes."""
    named = f"--vault-name {_vault(given)} --name ironburst-{given['name']}-munge-key"
    return (
        "      # made before the first `pulumi up`: base64 -w0 /etc/munge/munge.key > key; az keyvault secret set",
        f"      #   {named} --file key --encoding base64",
    )
