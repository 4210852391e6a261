"""What the doctor asks of a subscription. All of it reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from fnmatch import translate
from typing import Any, TypeVar

from ironburst.adapters.azure import errors, image_ids, launching, spot
from ironburst.adapters.azure.api import Api, Json
from ironburst.adapters.azure.images import newest, parts
from ironburst.adapters.azure.instances import group_in, statuses
from ironburst.adapters.azure.launches import tags_of
from ironburst.doctor.azure import providers
from ironburst.doctor.azure.subscription import CoreQuota, ImageVersion, Reaper, Remnant, ReservationGroup, SizeFacts
from ironburst.doctor.checks import Unasked
from ironburst.nodes import azure as names
from ironburst.nodes import naming
from ironburst.ports import CloudError, OutcomeUnknown, Refused

_ARCHITECTURES = {"x64": "x86_64", "Arm64": "aarch64"}
_AUTHORIZATION, _LOGIC = "2022-04-01", "2019-05-01"  # api-versions
T = TypeVar("T")


class AzureSubscription:
    """A Subscription (ironburst.doctor.azure.subscription)."""

    def __init__(
        self,
        subscription: str,
        region: str,
        *,
        credential: Any = None,
        endpoint: str | None = None,
        prices_url: str = spot.URL,
    ):
        """`credential`, `endpoint`, `prices_url`: for tests."""
        self._api = Api(subscription, credential=credential, endpoint=endpoint)
        self._subscription, self._region, self._prices_url = subscription, region, prices_url
        self._sizes: Mapping[str, SizeFacts] | None = None

    def providers(self) -> Mapping[str, str]:
        """One question each: a list is of hundreds."""
        found = {name: self._asked(lambda name=name: self._api.get("providers.get", name)) for name in providers.NEEDED}
        return {name: str(said.get("registrationState", "")) for name, said in found.items()}

    def allowed(self, group: str, actions: Sequence[str]) -> Set[str]:
        """By Microsoft.Authorization/permissions: patterns of what is allowed, less what isn't."""
        path = (
            f"/subscriptions/{self._subscription}/resourceGroups/{group}/providers/Microsoft.Authorization/permissions"
        )
        said = self._asked(lambda: self._api.at("operations.permissions", path, _AUTHORIZATION))
        given = [
            (_patterns(each.get("actions")), _patterns(each.get("notActions"))) for each in said.get("value") or []
        ]
        return {action for action in actions if any(yes(action) and not no(action) for yes, no in given)}

    def quotas(self) -> Mapping[str, CoreQuota]:
        """The region's, of machines."""
        found = self._asked(lambda: self._api.all("usage.list", self._region))
        return {_plain(each["name"]["value"]): CoreQuota(each["limit"], each["currentValue"]) for each in found}

    def sizes(self) -> Mapping[str, SizeFacts]:
        """Resource SKUs; asked for once."""
        if self._sizes is None:
            query = f"location eq '{self._region}'"
            found = self._asked(lambda: self._api.all("resource_skus.list", filter=query))
            machines = [each for each in found if each.get("resourceType") == "virtualMachines"]
            self._sizes = {str(each["name"]).lower(): self._size(each) for each in machines}
        return self._sizes

    def _size(self, sku: Json) -> SizeFacts:
        able = {each["name"]: each["value"] for each in sku.get("capabilities") or []}
        places = [each for each in sku.get("locationInfo") or [] if each["location"].lower() == self._region]
        closed: dict[str, str] = {}
        for each in sku.get("restrictions") or []:
            why = str(each.get("reasonCode") or "no reason is given")
            zones = (each.get("restrictionInfo") or {}).get("zones") or []
            closed |= {"": why} if each.get("type") == "Location" else dict.fromkeys(map(str, zones), why)
        return SizeFacts(
            family=_plain(sku.get("family", "")),
            vcpus=int(able.get("vCPUs", 0)),
            zones={str(zone) for each in places for zone in each.get("zones") or []},
            closed=closed,
            spot={"True": True, "False": False}.get(able.get("LowPriorityCapable", "")),
        )

    def reservation(self, group: str) -> ReservationGroup | None:
        """A group of them, and those in it."""
        path = (group.split("/")[4], group.rpartition("/")[2])
        raw = self._there(
            path[1], lambda: self._api.get("capacity_reservation_groups.get", *path, expand="instanceView")
        )
        if raw is None:
            return None
        of_group = "capacity_reservations.list_by_capacity_reservation_group"
        places: dict[tuple[str, str], int] = {}
        for each in self._asked(lambda: self._api.all(of_group, *path)):
            for zone in each.get("zones") or [""]:
                at = (str(each["sku"]["name"]).lower(), str(zone))
                places[at] = places.get(at, 0) + int(each["sku"].get("capacity", 0))
        properties = raw.get("properties") or {}
        views = (properties.get("instanceView") or {}).get("capacityReservations") or []
        taken = sum(len((each.get("utilizationInfo") or {}).get("virtualMachinesAllocated") or []) for each in views)
        return ReservationGroup(str(properties.get("reservationType") or "Targeted"), places, taken)

    def image(self, reference: str) -> ImageVersion | None:
        """Of a gallery's image the newest version that counts; of the marketplace whether it is there."""
        if image_ids.of_market(reference):
            return self._of_market(reference)
        subscription, *path, version = self._asked(lambda: parts(reference))
        if not version:
            found = self._asked(lambda: newest(self._api, reference)) if subscription == self._subscription else None
            if found is None:
                return None
            version = found.rpartition("/")[2]
        raw = self._there(version, lambda: self._api.get("gallery_image_versions.get", *path, version))
        definition = self._there(path[-1], lambda: self._api.get("gallery_images.get", *path))
        if raw is None or definition is None:
            return None
        of, stored = definition.get("properties") or {}, raw["properties"].get("storageProfile") or {}
        return ImageVersion(
            name=f"{path[-1]} {version}",
            state=str(raw["properties"].get("provisioningState", "")),
            disk_gb=int((stored.get("osDiskImage") or {}).get("sizeInGB") or 0),
            architecture=_ARCHITECTURES.get(str(of.get("architecture", "")), ""),
            generation=str(of.get("hyperVGeneration", "")),
        )

    def _of_market(self, reference: str) -> ImageVersion | None:
        *path, version = reference.split(":")
        try:
            listed = self._api.several("virtual_machine_images.list", self._region, *path)
        except CloudError as error:
            if any(errors.is_missing(error, name) for name in path):
                return None
            raise _unasked(error) from None
        known = [str(each["name"]) for each in listed]
        return ImageVersion(reference, "Succeeded") if known and version in ("latest", *known) else None

    def spot_usd(self, size: str) -> float | None:
        """Azure's list price."""
        return self._asked(lambda: spot.prices(self._region, [size], url=self._prices_url)).get(size)

    def left(self, cluster: str) -> Sequence[Remnant]:
        """In groups of launches, by their tags. A machine is of no use once it is stopped."""
        query = f"tagName eq '{naming.CLUSTER_TAG}' and tagValue eq '{cluster}'"
        listed = self._asked(lambda: self._api.all("resource_groups.list", filter=query))
        ours = {str(each["name"]).lower() for each in listed if launching.COUNT in tags_of(each)}
        found: list[Remnant] = []
        lived_in = set[str]()
        for raw in self._asked(lambda: self._api.all("virtual_machines.list_all", status_only="true")):
            if (group := group_in(raw["id"])) in ours:
                lived_in.add(group)
                power = statuses((raw.get("properties") or {}).get("instanceView"), "PowerState/")
                ended = bool(power) and power[0] in ("stopped", "deallocated")
                found.append(Remnant("machine", str(raw["name"]), group, "" if ended else "runs"))
        for kind, call, by in (("disk", "disks.list", "managedBy"), ("interface", "network_interfaces.list_all", "")):
            for raw in self._asked(lambda call=call: self._api.all(call)):
                if (group := group_in(raw["id"])) in ours:
                    used = raw.get(by) if by else (raw["properties"].get("virtualMachine") or {}).get("id")
                    found.append(Remnant(kind, str(raw["name"]), group, str(used or "")))
        return [
            *found,
            *(Remnant("group", group, group, "has machines" * (group in lived_in)) for group in sorted(ours)),
        ]

    def reaper(self, cluster: str) -> Reaper | None:
        """The workflow, and its last run."""
        name = names.reaper(cluster)
        path = f"{self._group(names.resource_group(cluster))}/providers/Microsoft.Logic/workflows/{name}"
        raw = self._there(name, lambda: self._api.at("operations.workflow", path, _LOGIC))
        if raw is None:
            return None
        runs = self._asked(lambda: self._api.at("operations.runs", f"{path}/runs", _LOGIC)).get("value") or []
        every: list[Json] = [each["properties"] for each in runs]
        last: Json = max(every, key=lambda each: str(each["startTime"]), default={})
        began = datetime.fromisoformat(last["startTime"]).timestamp() if last else None
        return Reaper(str((raw.get("properties") or {}).get("state", "")), began, str(last.get("status", "")))

    def _group(self, name: str) -> str:
        return f"/subscriptions/{self._subscription}/resourceGroups/{name}"

    def _there(self, name: str, ask: Callable[[], Json]) -> Json | None:
        """None: it, or its group, isn't there."""
        try:
            return ask()
        except CloudError as error:
            if error.code in ("ResourceNotFound", "ResourceGroupNotFound", "NotFound") or errors.is_missing(
                error, name
            ):
                return None
            raise _unasked(error) from None

    def _asked(self, ask: Callable[..., T]) -> T:
        try:
            return ask()
        except CloudError as error:
            raise _unasked(error) from None


def _plain(family: Any) -> str:
    """The two APIs write families with and without blanks (skypilot's pull request 10120)."""
    return str(family).replace(" ", "").lower()


def _patterns(said: Any) -> Callable[[str], bool]:
    """Whether an action is one of these, in which * stands for anything, in any case."""
    every = [re.compile(translate(str(each)), re.IGNORECASE) for each in said or []]
    return lambda action: any(each.match(action) for each in every)


def _unasked(error: CloudError) -> Unasked:
    """No right, no credentials or no answer."""
    if isinstance(error, OutcomeUnknown):
        return Unasked(str(error), "run again when it answers")
    if type(error) is Refused:
        return Unasked(str(error), "give who runs this the right to look: `ironburst rights` prints a role")
    return Unasked(str(error), "sign in: az login, or as docs/how-to/azure.md says")
