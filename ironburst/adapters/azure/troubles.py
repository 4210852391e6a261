"""What Azure says of a machine's host, and of its own work at it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ironburst.adapters.answers import read
from ironburst.adapters.azure.api import Json
from ironburst.adapters.azure.instances import statuses
from ironburst.ports import InstanceTrouble


def troubles_of(id: str, view: Json) -> Iterator[InstanceTrouble]:
    """Of an instance view."""
    failed = statuses(view, "ProvisioningState/failed")
    if failed:
        yield InstanceTrouble(id, f"Azure failed to provision it ({failed[0].lstrip('/') or 'no reason is given'})")
    health = str(((view.get("vmHealth") or {}).get("status") or {}).get("code", ""))
    if health.lower() == "healthstate/unhealthy":
        yield InstanceTrouble(id, "Azure finds it unhealthy")
    planned = view.get("maintenanceRedeployStatus") or {}
    begins = planned.get("maintenanceWindowStartTime")
    if begins or planned.get("isCustomerInitiatedMaintenanceAllowed"):
        when = f" from {begins} on" if begins else ""
        from_s = read("virtual_machines.list_all", lambda _: _seconds(begins), view)
        yield InstanceTrouble(id, f"Azure has scheduled maintenance of its host, which redeploys it{when}", from_s)


def _seconds(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0
