"""What a person writes of the cluster's users: who they are, where their homes lie, which accounts their jobs count to.
Part of models.py's declaration.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from ironburst.config.software_models import Strict
from ironburst.config.types import Account, Certificates, Duration, Folder, SecretRef

USER_PATTERN = r"^[a-z_][a-z0-9_-]{0,30}$"
"""What useradd of Debian and of EL takes; Slurm's accounting knows lower case alone"""
FIRST_ID, LAST_ID = 1000, 60_000
"""of people in /etc/login.defs of both families; below are the system's own"""
KEY_TYPES = ("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-", "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-")


def _public_key(value: str) -> str:
    if "PRIVATE KEY" in value:
        raise ValueError("is a private key; write the line of the .pub file beside it, and make a new pair")
    words = value.split()
    if len(words) < 2 or not words[0].startswith(KEY_TYPES) or "\n" in value.strip():
        raise ValueError("is no public ssh key; write one line such as `ssh-ed25519 AAAA... anna`")
    return value.strip()


def _name(value: str) -> str:
    if not re.fullmatch(USER_PATTERN, value):
        raise ValueError(
            "is no name that useradd and Slurm take: a lower case letter or _ first, then lower case letters, digits, "
            "_ and -, 31 at most"
        )
    return value


def _id(value: int) -> int:
    if not FIRST_ID <= value <= LAST_ID:
        raise ValueError(f"is no id of a person: take one from {FIRST_ID} to {LAST_ID}, the others are the system's")
    return value


UserName = Annotated[str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": USER_PATTERN})]
Id = Annotated[int, AfterValidator(_id), WithJsonSchema({"type": "integer", "minimum": FIRST_ID, "maximum": LAST_ID})]
PublicKey = Annotated[str, AfterValidator(_public_key)]


class User(Strict):
    """One person. No passwords: they log in by their keys."""

    name: UserName
    uid: Id = Field(description="the same on every host, for good: files belong to the number")
    group: UserName | None = Field(
        default=None, description="one of users.groups; none: a group of the user's own, with the uid as gid"
    )
    groups: list[UserName] = Field(default=[], description="more of users.groups")
    keys: list[PublicKey] = Field(default=[], description="public ssh keys that open the login", max_length=50)
    shell: Folder = "/bin/bash"


class Directory(Strict):
    """An LDAP directory, which sssd asks over TLS."""

    uri: str = Field(
        pattern=r"^ldaps?://[^\s/,]+$",
        description="ldap: is asked with STARTTLS",
        examples=["ldaps://ldap.example.org"],
    )
    base: str = Field(min_length=3, pattern=r"^[^\n]+=[^\n]+$", examples=["dc=example,dc=org"])
    ca: Certificates | None = Field(
        default=None, description="that signed its certificate, PEM; none: the system's own authorities"
    )
    bind_dn: str | None = Field(
        default=None,
        min_length=3,
        pattern=r"^[^\n]+=[^\n]+$",
        examples=["cn=reader,dc=example,dc=org"],
        description="that sssd signs in as; none: as nobody",
    )
    bind_password: SecretRef | None = Field(default=None, description="of bind_dn")

    @model_validator(mode="after")
    def _both(self) -> Directory:
        if bool(self.bind_dn) != bool(self.bind_password):
            raise ValueError("has one of bind_dn and bind_password without the other: write both, or none")
        return self


class SlurmQos(Strict):
    """One QOS of Slurm's accounting."""

    name: Account
    priority: int = Field(default=0, ge=0, le=1_000_000)
    max_run: Duration | None = Field(default=None, description="the longest time of a job; none: the partition's")
    max_gpus_per_user: int | None = Field(default=None, ge=1, description="at once; none: no limit")


class SlurmAccount(Strict):
    """One account of Slurm's accounting, and whose jobs count to it."""

    name: Account
    users: list[UserName] = Field(default=[])
    parent: Account | None = Field(default=None, description="the account above; none: root")
    qos: list[Account] = Field(default=[], description="QOS that its jobs may have, the first one by default")


class NodeLogin(Strict):
    """Who may log in at GPU nodes by ssh: users with a job there, by pam_slurm_adopt."""

    admins: list[UserName] = Field(
        default=[], description="groups whose members may log in without a job; root and Ansible's user always may"
    )


class Users(Strict):
    """Who uses the cluster: a list, or a directory; none of both: the hosts know their users already."""

    people: list[User] = Field(default=[], description="made on every host with these ids")
    groups: dict[Annotated[str, AfterValidator(_name)], Id] = Field(default={}, description="group: gid")
    directory: Directory | None = None
    homes: Folder = Field(default="/home", description="folder of the home directories, on every host")
    make_homes: bool = Field(default=True, description="with a directory: at a user's first login, by pam_mkhomedir")
    rented: Literal["same", "nss_slurm"] = Field(
        default="same",
        description="how rented nodes know users: as owned nodes do, as of the image; or by Slurm itself, which sends "
        "a job's user with it (libnss_slurm: in SchedMD's packages, not in Debian's)",
    )
    accounts: list[SlurmAccount] = Field(default=[], description="of Slurm's accounting")
    default_account: Account = Field(default="users", description="of the people whom no account names")
    qos: list[SlurmQos] = Field(default=[])
    node_login: NodeLogin | None = Field(default=None, description="none: whoever has a key logs in at GPU nodes")

    @model_validator(mode="after")
    def _one_source(self) -> Users:
        if self.directory and (self.people or self.groups):
            raise ValueError("has a directory beside people or groups: declare one of the two, or ids would differ")
        return self
