"""The installation's inputs of a node's resource, in Pulumi's spelling."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints
from pydantic.alias_generators import to_camel

from ironburst.baremetal.cycle import WantedInstall

Text = Annotated[str, StringConstraints(min_length=1, strict=True)]


class InstallInputs(BaseModel):
    """One node's installation. Without `allow` nothing is ever begun."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)

    mark: Text = Field(description="names the installation; another mark is another installation")
    medium: Annotated[Text, StringConstraints(pattern=r"^https?://")] = Field(
        description="URL of this node's install medium, as its BMC reaches it"
    )
    boot: Literal["virtual_media", "http"] = "virtual_media"
    allow: StrictBool = Field(default=False, description="the disk may be written for a mark that it lacks")
    host_address: Text = Field(description="where the installed host is asked by ssh what it is")
    ssh_user: Text = "root"
    known_hosts: Text = Field(description="file with the host's key; no other key is taken")
    timeout_seconds: int = Field(default=7200, gt=0, description="an installation that takes longer has failed")

    def wanted(self) -> WantedInstall:
        """As the life cycle takes it."""
        return WantedInstall(self.mark, self.medium, self.allow)
