"""What a person lets happen although it would be refused (`allow` of ironburst.config.models)."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field

from ironburst.config.software_models import Strict

Rule = Literal["node", "budget", "open-network", "join-secret", "hardware"]

MISMATCHES = (
    "serial", "uuid", "manufacturer", "model", "macs", "gpu_count", "gpu_model", "cpu_count", "memory_gib",
    "memory_minimum", "network_ports", "gpu_lanes", "psu_count", "psu_input", "psu_redundancy", "local_storage",
    "form_factor", "gpu_driver", "firmware_minimum", "bios", "gpus", "memory_modules", "drives", "power_supplies",
    "system_health", "cpu_health", "gpu_health", "memory_health", "drive_health", "network_health", "power_health",
    "cooling_health", "part_health", "maintenance",
)  # fmt: skip
"""what may be wrong with an owned node's hardware (ironburst.baremetal; a test holds the two together); maintenance:
whatever it is, the node is reported and holds up no other
"""


class Allowance(Strict):
    """One thing that is let through. It is in the pull request, has a name, and ends."""

    rule: Rule = Field(
        description="node: replaces, stops or removes a node whose jobs may run; budget: dearer than "
        "total_usd_per_month; open-network: lets wide networks in; join-secret: drops what rented nodes join with; "
        "hardware: an owned node is accepted although its BMC reports something else, or, with NODE/maintenance, left "
        "aside while a person works on it"
    )
    of: str | None = Field(
        default=None,
        min_length=1,
        description="of the node, security group or scheduler, as the refusal names it; with hardware NODE/MISMATCH; "
        "not with budget",
        examples=["dgx07", "dgx07/psu_redundancy"],
    )
    reason: str = Field(min_length=1)
    by: str = Field(min_length=1, description="who answers for it")
    until: date = Field(description="its last day, UTC; at most 31 days ahead", examples=["2026-12-31"])
