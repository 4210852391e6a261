"""A node's BMC over Redfish, as its BIOS is set: the settings and their registry, the next start, and power.

What real BMCs do differently is in docs/adr/0070. sushy's Bios is not used: it sends another document's entity tag, and
none at all after a 412. Nothing in here waits for an effect: ironburst.baremetal.bios_cycle looks until it is shown.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sushy import exceptions

from ironburst.adapters.redfish import boot as redfish_boot
from ironburst.adapters.redfish import client as redfish
from ironburst.adapters.redfish import power as redfish_power
from ironburst.adapters.redfish.boot import SETUP, RedfishConsole
from ironburst.adapters.redfish.client import BmcAccess, BmcError, BmcIncompleteAnswer, BmcUnavailable, BmcUnreachable
from ironburst.baremetal import bios, documents, makers
from ironburst.baremetal.bios import Attribute
from ironburst.baremetal.bios_cycle import BiosView, SaidNo
from ironburst.baremetal.makers import RedfishLink
from ironburst.baremetal.panel import POWER
from ironburst.baremetal.said import dicts, dig, text

PASSING = (BmcUnreachable, BmcIncompleteAnswer, BmcUnavailable)
"""a BMC that starts, or is busy"""
_FINAL = (400, 405, 422)


class BmcSaidNo(BmcError, SaidNo):
    """The BMC refuses a setting, and would do so again."""


class RedfishBios:
    """ironburst.baremetal.bios_cycle.Console of one node. It logs in for each call: no session is held through a
    machine's start, for BMCs have few.
    """

    def __init__(self, access: BmcAccess, force: bool = False) -> None:
        """`force`: a system that does not end in its time is cut off."""
        self._access, self._force = access, force
        self._host: str | None = None

    @contextlib.contextmanager
    def _console(self) -> Iterator[RedfishConsole]:
        with redfish_boot.console(self._access, host=self._host) as console:
            self._host = console.system.path
            yield console

    def look(self) -> BiosView:
        """What it shows now."""
        with self._console() as console:
            system, link = console.system.json, console.system._conn
            document, settings = self._documents(system, link)
            boot = system.get("Boot") or {}
            enabled = boot.get("BootSourceOverrideEnabled") in ("Once", "Continuous")
            return BiosView(
                POWER.get(str(system.get("PowerState") or ""), "moving"),
                enabled and boot.get("BootSourceOverrideTarget") == SETUP,
                bios.read(document, settings[1] if settings else None),
            )

    def known(self) -> dict[str, Attribute] | None:
        """What the maker's registry allows; None: it can't be had."""
        with self._console() as console:
            link = console.system._conn
            document, _ = self._documents(console.system.json, link)
            name = text(document, "AttributeRegistry")
            if name is None:
                return None
            try:
                files = documents.read(lambda path: redfish._document(link, path), links=_REGISTRIES).of("registry")
                for place in bios.registry_places(name, [each.body for each in files]):
                    if known := bios.registry(redfish._document(link, place)):
                        return known
            except (documents.RequestRefused, documents.Incomplete):
                pass
            return None

    def set(self, settings: Mapping[str, bool | int | str]) -> None:
        """All in one PATCH (a Dell takes no second one); then the job, where one has to be made."""
        with self._console() as console:
            system, link = console.system.json, console.system._conn
            document, found = self._documents(system, link)
            if found is None:
                raise BmcIncompleteAnswer(
                    f"{self._bmc} says no place for settings of its BIOS: use its setup, or its maker's tool"
                )
            place, _, tags = found
            times = dig(document, "@Redfish.Settings/SupportedApplyTimes")
            timed = isinstance(times, list) and "OnReset" in times
            body: dict[str, Any] = {"Attributes": dict(settings)}
            if timed:  # who doesn't say it refuses it as unknown
                body["@Redfish.SettingsApplyTime"] = {"ApplyTime": "OnReset"}
            self._patch(link, place, body, tags)
            if not timed and makers.TAKEN_BY_A_JOB.match(text(system, "Manufacturer") or ""):
                self._make_job(system, link, place)

    def _patch(self, link: Any, place: str, body: dict[str, Any], tags: list[str]) -> None:
        for tag in tags or [""]:
            try:  # not by sushy's `etag`, which tries without one after a 412
                link.patch(place, data=body, headers={"If-Match": tag} if tag else None)
                return
            except exceptions.HTTPError as error:
                if error.status_code == 412 and tag != (tags or [""])[-1]:
                    continue
                if error.status_code in _FINAL:
                    raise BmcSaidNo(f"{self._bmc} refuses {self._named(error, body)}") from None
                raise

    def _named(self, error: Any, body: dict[str, Any]) -> str:
        """Of the BMC's own words those that are ours: names of settings."""
        said = f"{error.body} {error.extended_info}"
        names = [name for name in body["Attributes"] if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said)]
        which = ", ".join(names) or "the settings of its BIOS"
        return (
            f"{which} (HTTP {error.status_code}): another setting may rule it out, or a job for its BIOS is "
            "waiting: start the machine, or delete the job"
        )

    def _make_job(self, system: dict[str, Any], link: Any, place: str) -> None:
        for manager in dicts(system, "Links/ManagedBy"):
            with contextlib.suppress(exceptions.BadRequestError):  # there is one already
                link.post(f"{manager.get('@odata.id')}/Jobs", data={"TargetSettingsURI": place})
            return

    def to_setup(self) -> bool:
        """The next starts are into the setup; False: it offers none."""
        with self._console() as console:
            return console.to_setup()

    def usual(self) -> None:
        """The next start is the usual one again."""
        with self._console() as console:
            console.usual()

    def power_on(self) -> None:
        """Power on."""
        with self._console() as console:
            console.power_on()

    def power_off(self, clean: bool) -> None:
        """Off; `clean`: a system may run, and gets its time to end."""
        if clean:
            redfish_power.power_off(self._access, force=self._force, host=self._host)
        else:
            redfish_power.power_off(self._access, force=True, clean_s=0.0, host=self._host)

    @property
    def _bmc(self) -> str:
        return f"{self._access.node}: BMC {self._access.address}"

    def _documents(
        self, system: dict[str, Any], link: Any
    ) -> tuple[dict[str, Any], tuple[str, dict[str, Any], list[str]] | None]:
        """The BIOS in force; and of what waits the place, the document and its entity tags. None: it isn't said."""
        path = text(system, "Bios/@odata.id")
        document = link.get(path).json() if path else None
        if path is None or not isinstance(document, dict):
            raise BmcIncompleteAnswer(
                f"{self._bmc} says nothing of its BIOS' settings: it may be starting, or lacks a licence"
            )
        linked = text(document, makers.BIOS_SETTINGS.at + "/@odata.id")
        places = [linked] if linked else [f"{path.rstrip('/')}/{each}" for each in makers.BIOS_SETTINGS.places]
        for place in places:
            with contextlib.suppress(exceptions.ResourceNotFoundError):
                answer = link.get(place)
                settings = answer.json()
                if isinstance(settings, dict):
                    return document, (place, settings, _tags(answer.headers.get("ETag"), settings))
        return document, None


_REGISTRIES = {"root": (RedfishLink("Registries", "registry", many=True),)}


def _tags(header: str | None, document: dict[str, Any]) -> list[str]:
    """What may have to be sent as If-Match: the header's (some write it twice quoted), the document's, and the strong
    form of a weak one.
    """
    given = [each for each in (header, text(document, "@odata.etag")) if each]
    strong = [each.removeprefix("W/") for each in given if each.startswith("W/")]
    return list(dict.fromkeys([*given, *strong]))
