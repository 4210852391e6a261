"""What a person writes of the installation of bare-metal nodes. Part of models.py's declaration."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from ironburst.config.software_models import Strict
from ironburst.config.types import Address, Duration, Range, checked

Disk = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]+$")]
NodeNames = Annotated[
    list[str],
    BeforeValidator(lambda given: given if given == [] else checked(Range, given)),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
PublicKey = Annotated[str, Field(pattern=r"^(ssh|ecdsa|sk)-\S+ [A-Za-z0-9+/=]+( [^\"'\n]*)?$")]


class Install(Strict):
    """How the system of these nodes is installed, unattended. Nothing is ever written to a disk but on the nodes of
    allow_install, and there only for a mark that the disk lacks.
    """

    mark: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$",
        description="names the installation, as a change's number does; another mark is another installation",
        examples=["CHG-4711"],
    )
    medium: str = Field(
        description="URL of each node's install medium, as the BMCs reach it; the last part has {node} and {mark}",
        examples=["https://10.0.9.5/{node}-{mark}.iso"],
    )
    boot: Literal["virtual_media", "http"] = Field(
        default="virtual_media", description="http: the firmware loads the medium itself (UEFI HTTP boot)"
    )
    allow_install: NodeNames = Field(default=[], description="nodes whose disk may be written", examples=["dgx03"])
    disks: list[Disk] = Field(
        min_length=1, description="serial number or WWN of the disk that the system goes to, one a node"
    )
    authorized_keys: list[PublicKey] = Field(min_length=1, description="public keys that may log in as ssh.user")
    known_hosts: str = Field(
        default="known_hosts",
        min_length=1,
        description="file with the nodes' host keys, where Pulumi runs; `ironburst node medium` writes it",
    )
    gateway: Address | None = Field(default=None, description="none: DHCP gives each node its declared address")
    dns: list[Address] = Field(default=[], description="with a gateway")
    mirror: str | None = Field(
        default=None, pattern=r"^https?://[^\s\"']+$", description="URL of packages; none: the medium has them"
    )
    timeout: Duration = Field(default=7200, description="an installation that takes longer has failed")

    @field_validator("medium")
    @classmethod
    def _is_each_nodes_own(cls, url: str) -> str:
        """Some BMCs show the last part of the URL alone."""
        if not re.fullmatch(r"https?://[^\s/]+/\S+", url):
            raise ValueError("is no URL of a file; write for example https://10.0.9.5/{node}-{mark}.iso")
        last = url.rsplit("/", 1)[-1]
        if not all(f"{{{word}}}" in last for word in ("node", "mark")):
            raise ValueError(f"has {last!r} as its last part, which needs {{node}} and {{mark}}: {{node}}-{{mark}}.iso")
        if re.search(r"[{}]", re.sub(r"\{(node|mark)\}", "", url)):
            raise ValueError("knows {node} and {mark}, and no other word in braces")
        return url

    @model_validator(mode="after")
    def _dns_of_a_gateway(self) -> Install:
        if self.dns and not self.gateway:
            raise ValueError("has dns without a gateway: with DHCP both come from there; leave dns out")
        return self

    def medium_of(self, node: str) -> str:
        """The URL of this node's medium."""
        return self.medium.replace("{node}", node).replace("{mark}", self.mark)
