"""The cluster's users in the document: who they are, and which accounts their jobs count to."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ironburst.document.part import Part


class User(Part):
    """One person, as every host has them."""

    name: str
    uid: int
    group: str
    groups: list[str] = Field(default=[], description="beside `group`")
    keys: list[str] = Field(default=[], description="public ssh keys")
    shell: str


class Directory(Part):
    """An LDAP directory, as sssd asks it. `bind_password` is a reference, never the secret."""

    uri: str
    base: str
    ca: str = Field(default="", description="PEM; empty: the system's own authorities")
    bind_dn: str = ""
    bind_password: str = ""


class SlurmQos(Part):
    """One QOS of Slurm's accounting; null: no limit."""

    name: str
    priority: int
    max_run_s: int | None = None
    max_gpus_per_user: int | None = None


class SlurmAccount(Part):
    """One account of Slurm's accounting."""

    name: str
    parent: str
    users: list[str]
    qos: list[str] = Field(default=[], description="the first is the default; empty: as the account above")


class Users(Part):
    """What `users` of the declaration became. Which hosts get them is their roles' matter: users."""

    people: list[User] = Field(default=[])
    groups: dict[str, int] = Field(default={}, description="gid by name, with the groups of one user's own")
    directory: Directory | None = None
    homes: str = "/home"
    make_homes: bool = True
    rented: Literal["same", "nss_slurm"] = "same"
    accounts: list[SlurmAccount] = Field(default=[], description="each after the one above it")
    qos: list[SlurmQos] = Field(default=[])
    node_login: list[str] | None = Field(
        default=None, description="groups who log in at GPU nodes without a job there; null: everyone does"
    )
