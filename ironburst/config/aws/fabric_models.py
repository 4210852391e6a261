"""What a person writes of the device plugin for AWS's fabric (EFA). Part of gpu_support_models.py's declaration."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ironburst.config.software_models import Strict

FabricChart = Literal["efa-device-plugin"]


class FabricPlugin(Strict):
    """How pods get the cloud's fabric."""

    efa: bool = Field(
        default=False,
        description="AWS's plugin for EFA: pods ask for vpc.amazonaws.com/efa. Its image is in AWS's registry of EKS, "
        "which nodes of EKS may read; elsewhere copy it, and give registry",
    )

    @property
    def fabric_charts(self) -> list[FabricChart]:
        """By our names."""
        return ["efa-device-plugin"] if self.efa else []
