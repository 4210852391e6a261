"""What a person writes of the firmware of bare-metal nodes. Part of models.py's declaration."""

from __future__ import annotations

from datetime import date

from pydantic import Field

from ironburst.config.software_models import Strict


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
