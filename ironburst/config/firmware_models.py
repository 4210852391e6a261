"""What a person writes of the firmware of bare-metal nodes. Part of models.py's declaration."""

from __future__ import annotations

from datetime import date

from pydantic import Field, model_validator

from ironburst.config.firmware_versions import compare
from ironburst.config.software_models import Strict


class FirmwareImage(Strict):
    """What a component is updated with, where allow_update names the node."""

    uri: str = Field(
        pattern=r"^https?://[^\s/@]+/\S+$",
        description="http or https, as the BMCs and this machine reach it, without a login",
        examples=["http://10.0.9.5/bios-2.10.2.bin"],
    )
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="of the file; it is fetched and held against this first")
    version: str | None = Field(
        default=None, min_length=1, description="as the BMC writes it once it is installed; none: at_least"
    )


class FirmwareMinimum(Strict):
    """The least version of a component; a node below it is not as declared."""

    component: str = Field(
        min_length=1,
        description="name or Id in the BMC's firmware inventory, or a pattern of them; large and small letters are one",
        examples=["BIOS", "HGX_FW_GPU_SXM_*"],
    )
    at_least: str = Field(
        min_length=1, description="as the BMC writes versions of this component", examples=["2.10.2", "U54 v2.10"]
    )
    source: str = Field(min_length=1, description="where the figure is from", examples=["DSA-2026-012"])
    as_of: date = Field(description="day of the source", examples=["2026-10-01"])
    image: FirmwareImage | None = Field(default=None, description="none: it is reported, and never updated")

    @model_validator(mode="after")
    def _image_reaches_it(self) -> FirmwareMinimum:
        version = self.image and self.image.version
        if version and (order := compare(version, self.at_least)) != "reached":
            why = "is below" if order == "below" else "can't be compared with"
            raise ValueError(
                f"has an image of version {version!r}, which {why} at_least {self.at_least!r}: the node would be "
                "updated and still be reported; declare an image that reaches it"
            )
        return self
