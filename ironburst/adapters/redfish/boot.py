"""A node's BMC over Redfish, as an installation uses it: virtual media or HTTP boot, the next start, power, the lamp.

What real BMCs do differently is in docs/adr/0068; sushy knows some of it (its insert_media and eject_media), and the
rest is here. Nothing in here waits for an effect: ironburst.baremetal.cycle looks until it is shown.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import requests
import sushy
from sushy import exceptions

from ironburst.adapters.redfish.client import (
    BmcAccess,
    BmcError,
    BmcUnavailable,
    _host_system,
    _login,
    _translated,
    reset_type,
)
from ironburst.baremetal.cycle import Panel
from ironburst.baremetal.panel import MEDIUM_STARTS, POWER

T = TypeVar("T")
_DISCS = (sushy.VIRTUAL_MEDIA_CD, sushy.VIRTUAL_MEDIA_DVD)
SETUP = "BiosSetup"
_USUAL = {"Boot": {"BootSourceOverrideTarget": "None", "BootSourceOverrideEnabled": "Disabled"}}
_LIBRARY = (exceptions.SushyError, requests.RequestException, ValueError, TypeError, AttributeError, KeyError)


@contextlib.contextmanager
def console(access: BmcAccess, *, by_http: bool = False, host: str | None = None) -> Iterator[RedfishConsole]:
    """The BMC, logged in. `by_http`: the firmware loads the medium itself (UEFI HTTP boot); `host`: the path of the
    machine, where it is known already. Raises BmcError.
    """
    with _login(access, limited=False) as root:
        system = root.get_system(host) if host else _host_system(access, root)
        yield RedfishConsole(access, system, by_http)


class RedfishConsole:
    """ironburst.baremetal.cycle.Console of one node, and its lamp."""

    def __init__(self, access: BmcAccess, system: Any, by_http: bool) -> None:
        self._access, self.system, self._by_http = access, system, by_http
        self._drives: list[Any] | None = None

    def look(self) -> Panel:
        """What the BMC shows now."""
        return self._told(self._look)

    def _look(self) -> Panel:
        self.system.refresh(force=True)
        boot = self.system.json.get("Boot") or {}
        state = str(self.system.json.get("PowerState") or "")
        medium = boot.get("HttpBootUri") if self._by_http else None
        for disc in [] if self._by_http else self._discs():
            if disc.inserted or disc.image:
                medium = disc.image or disc.image_name or "unnamed"
                break
        armed = boot.get("BootSourceOverrideTarget") in MEDIUM_STARTS and (
            boot.get("BootSourceOverrideEnabled") in ("Once", "Continuous")
        )
        return Panel(POWER.get(state, "moving"), medium or None, armed)

    def insert(self, url: str) -> None:
        """Into the first disc drive that takes it. HTTP boot has no drive: the URL is set with the next start."""
        if self._by_http:
            return self.arm(url)
        return self._told(lambda: self._insert(url))

    def _insert(self, url: str) -> None:
        refused: Exception | None = None
        for disc in self._discs():
            try:
                disc.insert_media(url)
            except (exceptions.MissingActionError, exceptions.BadRequestError) as error:  # a drive of the remote screen
                refused = error
            else:
                return
        if refused:
            raise refused
        bmc = f"{self._access.node}: BMC {self._access.address}"
        raise BmcUnavailable(f"{bmc} has no virtual disc drive: install by `boot: http`, or license its virtual media")

    def eject(self) -> None:
        """Whatever is in its disc drives goes out."""
        self._told(self._eject)

    def _eject(self) -> None:
        if self._by_http:
            self._patch({"Boot": {"HttpBootUri": None}})
        for disc in [] if self._by_http else self._discs():
            if disc.inserted or disc.image:
                disc.eject_media()

    def arm(self, url: str) -> None:
        """The next start, once, is from the medium, by UEFI."""
        self._told(lambda: self._arm(url))

    def _arm(self, url: str) -> None:
        target = sushy.BOOT_SOURCE_TARGET_UEFI_HTTP if self._by_http else sushy.BOOT_SOURCE_TARGET_CD
        more = {"http_boot_uri": url} if self._by_http else {}
        self.system.refresh(force=True)  # for the entity tag: a PATCH with an old one is refused (HTTP 412)
        once = sushy.BOOT_SOURCE_ENABLED_ONCE
        try:
            self.system.set_system_boot_options(target, once, sushy.BOOT_SOURCE_MODE_UEFI, **more)
        except exceptions.BadRequestError:  # some take no mode beside a target, and have one mode only
            self.system.set_system_boot_options(target, once, **more)

    def disarm(self) -> None:
        """The usual start first, then the medium: as long as it is in, this is known not to be done."""
        self._told(self._disarm)

    def _disarm(self) -> None:
        self._patch(_USUAL)
        self._eject()

    def usual(self) -> None:
        """The start is the usual one again."""
        self._told(lambda: self._patch(_USUAL))

    def to_setup(self) -> bool:
        """Every start is into the firmware's setup, or the next one where the BMC can't do more; False: it can't."""
        return self._told(self._to_setup)

    def _to_setup(self) -> bool:
        self.system.refresh(force=True)
        boot = self.system.json.get("Boot") or {}
        offered = boot.get("BootSourceOverrideTarget@Redfish.AllowableValues")
        if isinstance(offered, list) and SETUP not in offered:
            return False
        modes: tuple[dict[str, str], ...] = ({}, {"BootSourceOverrideMode": "UEFI"})
        for enabled, mode in itertools.product(("Continuous", "Once"), modes):
            with contextlib.suppress(exceptions.BadRequestError):
                override = {"BootSourceOverrideTarget": SETUP, "BootSourceOverrideEnabled": enabled}
                self._patch({"Boot": override | mode})
                return True
        return False

    def power_on(self) -> None:
        """Power on; a machine that is on stays on."""
        self._told(lambda: self._reset(sushy.RESET_ON, sushy.RESET_FORCE_ON))

    def _reset(self, *wanted: Any) -> None:
        self.system.reset_system(reset_type(self.system, *wanted))

    def lamp(self, lit: bool) -> None:
        """The lamp by which people find the machine."""
        self._told(lambda: self._lamp(lit))

    def _lamp(self, lit: bool) -> None:
        self.system.refresh(force=True)
        if "LocationIndicatorActive" in self.system.json:  # IndicatorLED's successor
            self._patch({"LocationIndicatorActive": lit})
        else:
            self._patch({"IndicatorLED": "Blinking" if lit else "Off"})

    def _patch(self, changes: dict[str, Any]) -> None:
        self.system.refresh(force=True)
        self.system._conn.patch(self.system.path, data=changes, etag=self.system._get_etag())

    def _discs(self) -> list[Any]:
        """The virtual disc drives, read again: of the system (since 2021), else of its managers."""
        if self._drives is not None:
            for drive in self._drives:
                drive.refresh(force=True)
            return self._drives
        owners = [self.system] if "VirtualMedia" in self.system.json else self.system.managers
        found = [each for owner in owners if "VirtualMedia" in owner.json for each in owner.virtual_media.get_members()]
        self._drives = [drive for drive in found if any(kind in drive.media_types for kind in _DISCS)]
        return self._drives

    def _told(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except BmcError:
            raise
        except _LIBRARY as error:
            raise _translated(error, self._access) from error
