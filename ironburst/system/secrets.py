"""References to secrets, resolved at the moment of use.

A reference is `env:NAME`, `file:PATH`, or a scheme of STORES and a name, with `#JSON_KEY` for a part of the secret.
A relative PATH is in the project's folder, the one with Pulumi.yaml, wherever a command is started.
The value never enters a stack's state, the document, an inventory, an image, a log or the ledger: pass the reference
on and resolve it where the secret is needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ironburst.system.aws import SECRETS_MANAGER
from ironburst.system.azure import KEY_VAULT
from ironburst.system.google import SECRET_MANAGER
from ironburst.system.secret_store import Unanswered

PROJECT = "Pulumi.yaml"
STORES = {store.scheme: store for store in (SECRETS_MANAGER, SECRET_MANAGER, KEY_VAULT)}
"""of clouds: what lies there a rented node can read, by its role"""
SCHEMES = ("env", "file", *STORES)
FORMS = {
    "env": (r"[A-Za-z_][A-Za-z0-9_]*", "write the variable's name alone, as in env:BMC_PASSWORD"),
    "file": (r"\S(.*\S)?", "write the path without blanks around it"),
    **{store.scheme: (store.form, store.hint) for store in STORES.values()},
}
"""scheme: the form of what follows, and what to write"""
*_OTHERS, _LAST = STORES
STORED = f"{', '.join(f'{scheme}:' for scheme in _OTHERS)} or {_LAST}:"
TO_STORES = f"{', '.join(f'{scheme}:NAME' for scheme in _OTHERS)} or {_LAST}:NAME"


def in_store(name: str) -> str:
    """A reference to a store, for examples."""
    return f"{next(iter(STORES))}:{name}"


class SecretError(ValueError):
    """A reference that does not resolve; the text is one sentence and never holds the secret."""


def check(reference: str) -> None:
    """Raise SecretError unless `reference` has the shape of one. Resolves nothing."""
    scheme, colon, name = reference.partition(":")
    if not colon or scheme not in SCHEMES or not name:
        raise SecretError(f"{shown(reference)} is not a secret reference: write env:NAME, file:PATH, {TO_STORES}")
    form, words = FORMS[scheme]
    if not re.fullmatch(form, name):
        raise SecretError(f"{reference!r} is no reference that resolves: {words}")


def in_a_store(reference: str) -> bool:
    """Does it lie where a node in the cloud can read it, by its role?"""
    return reference.partition(":")[0] in STORES


def region_of(reference: str, regions: Mapping[str, str]) -> str | None:
    """The region in which a reference's store is asked, of those of clouds by provider; None: the environment's."""
    store = STORES.get(reference.partition(":")[0])
    return regions.get(store.provider) if store else None


def shown(reference: str) -> str:
    """What may be printed of a reference: all of it if it has a known scheme,
    else nothing (it may be the secret itself).
    """
    return repr(reference) if reference.partition(":")[0] in SCHEMES else "the given value"


def file_of(reference: str, near: Path | None = None) -> Path:
    """The path that a file: reference names. A relative one is in the project: of `near` (a stack file), else of the
    working directory, else the checkout that this package is in. Raises SecretError.
    """
    path = Path(reference.removeprefix("file:")).expanduser()
    if path.is_absolute():
        return path
    above = [*(near.absolute().parents if near else ()), Path.cwd(), *Path.cwd().parents, *Path(__file__).parents]
    for folder in above:
        if (folder / PROJECT).is_file():
            return folder / path
    raise SecretError(
        f"the secret reference {reference!r} does not resolve: it is relative, and there is no {PROJECT} above the "
        f"working directory: write an absolute path, as in file:/etc/ironburst/{path.name}"
    )


def resolve_in(reference: str, regions: Mapping[str, str], near: Path | None = None) -> str:
    """As `resolve`, in the region of its store's cloud (region_of)."""
    return resolve(reference, region=region_of(reference, regions), near=near)


def resolve(reference: str, *, region: str | None = None, near: Path | None = None) -> str:
    """The secret behind `reference`, without a trailing newline; `region`: of its store (region_of); `near`: see
    file_of. Raises SecretError.
    """
    check(reference)
    scheme, _, name = reference.partition(":")
    if scheme == "env":
        value = os.environ.get(name)
        if not value:
            raise SecretError(
                f"the secret reference {reference!r} does not resolve: set the environment variable {name}"
            )
        return value
    if scheme == "file":
        path = file_of(reference, near)
        try:
            value = path.read_text().rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not text"
            raise SecretError(f"the secret reference {reference!r} does not resolve: {path}: {reason}") from None
        if not value:
            raise SecretError(f"the secret reference {reference!r} does not resolve: {path} is empty")
        return value
    try:
        return STORES[scheme].get(name, region)
    except Unanswered as why:
        said = f"{STORES[scheme].called} says {why}"
        raise SecretError(f"the secret reference {reference!r} does not resolve: {said}") from None


def store(reference: str, value: str, *, region: str | None = None) -> None:
    """Put a new value behind a reference to a store; the secret itself is there before. Raises SecretError."""
    check(reference)
    scheme, _, name = reference.partition(":")
    if scheme not in STORES or "#" in name:
        raise SecretError(f"nothing is written to {reference!r}: it has to be {TO_STORES}, a whole secret")
    try:
        STORES[scheme].put(name, value, region)
    except Unanswered as why:
        said = f"{STORES[scheme].called} says {why}"
        raise SecretError(f"nothing can be written to {reference!r}: {said}") from None
