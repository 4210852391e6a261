"""What a BMC shows of an installation, out of its documents. Pure."""

from __future__ import annotations

from ironburst.baremetal.cycle import Panel, Power
from ironburst.baremetal.documents import Documents, Found, same
from ironburst.baremetal.said import dicts, dig, text

DISCS = frozenset({"CD", "DVD"})
"""`MediaTypes` of drives that an install medium goes into"""
MEDIUM_STARTS = frozenset({"Cd", "UsbCd", "UefiHttp"})
POWER: dict[str, Power] = {"On": "on", "Off": "off"}


def panel(documents: Documents, host: Found, *, by_http: bool) -> Panel | None:
    """Of the machine `host`. `by_http`: its firmware loads the medium itself. None: its drives can't be read."""
    boot = dig(host.body, "Boot") or {}
    medium = dig(boot, "HttpBootUri")
    if not by_http:
        drives = _drives(documents, host)
        if drives is None:
            return None
        held = (each for each in drives if dig(each.body, "Inserted") or dig(each.body, "Image"))
        medium = next((text(each.body, "Image", "ImageName") or "unnamed" for each in held), None)
    armed = dig(boot, "BootSourceOverrideTarget") in MEDIUM_STARTS and (
        dig(boot, "BootSourceOverrideEnabled") in ("Once", "Continuous")
    )
    return Panel(POWER.get(text(host.body, "PowerState") or "", "moving"), medium or None, armed)


def _drives(documents: Documents, host: Found) -> list[Found] | None:
    """The disc drives of the system, else of its managers; None: not all could be read."""
    managers = [text(each, "@odata.id") or "" for each in dicts(host.body, "Links/ManagedBy")]
    found: list[Found] = []
    for path in [host.path] if dig(host.body, "VirtualMedia") else managers:
        owner = next((each for each in documents.found if same(each.path, path)), None)
        if owner is None or (dig(owner.body, "VirtualMedia") and (owner.path, "VirtualMedia") in documents.unsaid):
            return None
        found += documents.of("virtual_media", owner.path)
    return [each for each in found if DISCS & {*map(str, dig(each.body, "MediaTypes") or ())}]
