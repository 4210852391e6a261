"""The Azure side of the controller: launching, finding and ending rented machines in one region of a subscription.

Azure remembers no ended machine: it is one that isn't found, and nothing says why. What this process has seen of it is
remembered for an hour.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import requests

from ironburst.adapters import at_once
from ironburst.adapters.answers import read
from ironburst.adapters.azure import errors, launching, spot
from ironburst.adapters.azure.api import Api, Json, refused
from ironburst.adapters.azure.images import newest
from ironburst.adapters.azure.instances import Id, gone, group_in, instance
from ironburst.adapters.azure.launches import YOUNG_S, GroupLaunches, deleting, tags_of
from ironburst.adapters.azure.sizes import Sizes
from ironburst.adapters.azure.troubles import troubles_of
from ironburst.nodes import naming
from ironburst.ports import (
    LAUNCHING,
    CloudError,
    Instance,
    InstanceTrouble,
    Interruption,
    LaunchRequest,
    OutcomeUnknown,
)

_MISSED = 20  # of a list: so many are asked for by their ids at once, the others at the next list
_SHOWN_S = 3600.0  # an ended one is shown for so long, as by EC2
_EMPTY_S = 600.0  # a group of a launch that failed is looked at for what is left in it from then on
_EMPTY_GROUPS = 5  # at a list
_AHEAD_S = 300.0  # a group's end is put off by so much more at once, for it costs a call
_LIST = "virtual_machines.list_all"


class _Ended(NamedTuple):
    instance: Instance
    at_s: float


class Azure:
    """A Cloud (ironburst.ports)."""

    def __init__(
        self,
        api: Api,
        region: str,
        *,
        prices_url: str = spot.URL,
        wait: Callable[[float], object] = time.sleep,
        now: Callable[[], float] = time.time,
    ):
        """`prices_url`, `wait` and `now`: for tests."""
        self._api, self._region, self._prices_url, self._now = api, region, prices_url, now
        self._sizes = Sizes(api, region, now)
        self._launches = GroupLaunches(api, self._sizes, wait, now)
        self._addresses: dict[str, str] = {}  # by id
        self._seen: dict[str, Instance] = {}  # that were there
        self._shown: set[str] = set()  # of those, by lists
        self._ended: dict[str, _Ended] = {}  # that were, and aren't any more
        self._ours: set[str] = set()  # that we have ended, or will have
        self._until: dict[str, float] = {}  # of groups, as this process has set it

    def image_id(self, reference: str) -> str | None:
        """The newest version of an image in a gallery: the image definition's id."""
        return newest(self._api, reference)

    def launch_all(self, requests: Sequence[LaunchRequest]) -> list[list[Instance] | CloudError]:
        """Each in a thread of its own. None is waited for to its end: UnderWay, and it is asked for again."""
        return at_once.launches(requests, self._launch, "virtual_machines.begin_create_or_update")

    def _launch(self, request: LaunchRequest) -> list[Instance]:
        launch = launching.of(request, self._api.subscription)
        if launch.region != self._region:
            raise refused(f"zone {request.zone} isn't one of {self._region}")
        found = [read(_LIST, instance, raw) for raw in self._launches.launch(launch)]
        self._find_addresses(found)
        if unknown := [each.id for each in found if each.id not in self._addresses]:
            raise OutcomeUnknown(f"network_interfaces.list: no address of {', '.join(unknown)} yet")
        return sorted(self._with_addresses(found), key=lambda each: each.index)

    def instances(self, cluster: str) -> list[Instance]:
        """By the tags that every launch sets; then those that a list before had shown, and this one doesn't."""
        shown = {each.id: each for each in self._listed(naming.CLUSTER_TAG, cluster)}
        missed = [id for id in sorted(self._shown) if id not in shown]
        self._shown = {*shown, *missed}
        for id in missed[:_MISSED]:
            try:
                found = self._one(Id.of(id))
            except CloudError:
                continue  # asked for at the next list
            if found is not None and found.alive:
                shown[id] = found  # a list is only in the end right
            else:
                self._shown.discard(id)
        self._sweep(cluster, {Id.of(id).group for id in shown})
        self._forget()
        return [*shown.values(), *(each.instance for id, each in self._ended.items() if id not in shown)]

    def _forget(self) -> None:
        old_s = self._now() - _SHOWN_S
        self._ended = {id: each for id, each in self._ended.items() if each.at_s > old_s}
        known = self._seen.keys() | self._ended.keys()
        self._ours &= known
        self._addresses = {id: address for id, address in self._addresses.items() if id in known}

    def _listed(self, tag: str, value: str) -> list[Instance]:
        """Two lists: of machines, and of their power. The second may lack some: those run, for all that is known."""
        of = [(each.get("tags") or {}, each) for each in self._api.all(_LIST)]
        found = [each for tags, each in of if tags.get(tag) == value and naming.LEASE_TAG in tags]  # not fixed nodes
        views = self._views()
        shown = [read(_LIST, lambda raw: instance(raw, views.get(raw["id"].lower())), each) for each in found]
        shown = [each for each in shown if launching.region_of(each.zone)[0] == self._region]
        return self._as_they_are([each for each in shown if each.id not in self._ended])

    def _views(self) -> Mapping[str, Json]:
        """Instance views of all machines of the subscription, by their resources' ids."""
        found = self._api.all(_LIST, status_only="true")
        of = lambda raw: (raw["id"].lower(), (raw.get("properties") or {}).get("instanceView") or {})  # noqa: E731
        return dict(read(_LIST, of, each) for each in found)

    def _as_they_are(self, shown: Sequence[Instance]) -> list[Instance]:
        """With their addresses. Those whose launch isn't over may be taken back, or are; a launch is looked at once."""
        young = {Id.of(each.id).group for each in shown if self._now() - each.launched_s < YOUNG_S}
        works = {group for group in young if not self._launches.over(group)}
        with contextlib.suppress(CloudError):  # then at the next look
            self._find_addresses([each for each in shown if each.id not in self._addresses])
        return self._with_addresses(
            replace(each, state=LAUNCHING) if Id.of(each.id).group in works else each for each in shown
        )

    def _with_addresses(self, shown: Iterable[Instance]) -> list[Instance]:
        found = [replace(each, address=self._addresses.get(each.id)) for each in shown]
        self._seen |= {each.id: each for each in found}
        return found

    def _find_addresses(self, shown: Sequence[Instance]) -> None:
        """Of these machines: their network interfaces know them."""
        ids = {(id.group, id.name): str(id) for id in (Id.of(each.id) for each in shown)}
        for group in sorted({group for group, _ in ids}):
            for raw in self._api.all("network_interfaces.list", group):
                machine, address = read("network_interfaces.list", _address, raw)
                if machine in ids and address:
                    self._addresses[ids[machine]] = address

    def _sweep(self, cluster: str, lived_in: set[str]) -> None:
        """Groups whose machines are all gone: a disk or an interface that is left there is paid for."""
        query = f"tagName eq '{naming.CLUSTER_TAG}' and tagValue eq '{cluster}'"
        empty = [each for each in self._api.all("resource_groups.list", filter=query) if self._empty(each, lived_in)]
        for group in empty[:_EMPTY_GROUPS]:
            try:
                count = read("resource_groups.list", lambda raw: int(raw["tags"][launching.COUNT]), group)
                names = launching.names_of(group["name"], count)
                if all(self._launches.machine(group["name"], name) is None for name in names):
                    self._launches.delete(group["name"])
            except CloudError:
                continue  # at the next list

    def _empty(self, group: Json, lived_in: set[str]) -> bool:
        """Whether a group may be. A launch under way may have nothing yet."""
        age_s, tags = self._launches.age_s(group), tags_of(group)
        if launching.COUNT not in tags:
            return False  # the stack's own
        mine = launching.LAUNCHED in tags or age_s > (_EMPTY_S if launching.FAILED in tags else YOUNG_S)
        here = str(group.get("location", "")).lower() == self._region
        name = read("resource_groups.list", lambda raw: str(raw["name"]).lower(), group)
        return mine and here and not deleting(group) and name not in lived_in

    def described(self, ids: Sequence[str]) -> list[Instance]:
        """By their names, if they are still those."""
        return [each for each in at_once.each([Id.of(id) for id in ids], self._one) if each is not None]

    def _one(self, id: Id) -> Instance | None:
        """None: nothing is known of it."""
        raw = self._launches.machine(id.group, id.name, expand="instanceView")
        if raw is not None:
            found: Instance = read("virtual_machines.get", instance, raw)
            if found.id == str(id):
                return self._as_they_are([found])[0]
        return self._gone(id)

    def _gone(self, id: Id) -> Instance | None:
        """One that isn't there, as this process knew it. Of a launch that failed it never was one of ours."""
        was = self._seen.pop(str(id), None)
        if was is not None and (was.state != LAUNCHING or self._launches.over(id.group)):
            self._ended[str(id)] = _Ended(gone(was, ours=str(id) in self._ours), self._now())
        ended = self._ended.get(str(id))
        return ended.instance if ended else None

    def by_token(self, token: str) -> list[Instance] | CloudError:
        """What is in the group of their launch."""
        if failure := self._launches.begun(token):
            return failure
        found = self._launches.listed(launching.group_of(token)).values()
        return self._as_they_are([read(_LIST, instance, raw) for raw in found])

    def console(self, instance_id: str) -> str:
        """What boot diagnostics have kept of its serial console."""
        id = Id.of(instance_id)
        found = self._api.get("virtual_machines.retrieve_boot_diagnostics_data", id.group, id.name)
        link = found.get("serialConsoleLogBlobUri")
        if not link:
            return ""
        try:
            answer = requests.get(str(link), timeout=30)  # the link is its own credential
        except requests.RequestException as error:
            raise OutcomeUnknown(f"console log of {id.name}: no answer ({type(error).__name__})") from None
        if answer.status_code == 404:
            return ""
        if answer.status_code != 200:
            raise OutcomeUnknown(f"console log of {id.name}: HTTP {answer.status_code}")
        return answer.content.decode(errors="replace")

    def terminate(self, ids: Sequence[str]) -> set[str]:
        """Deletes them; a whole launch by its group. One that is on its way out may cost money until it is gone: it
        isn't among those returned.
        """
        wanted = [Id.of(id) for id in ids]
        groups = sorted({id.group for id in wanted})
        return at_once.ended(groups, lambda group: self._end(group, [id for id in wanted if id.group == group]))

    def _end(self, name: str, ids: Sequence[Id]) -> set[str]:
        """Those of a group that have ended."""
        ended, living, left = set[str](), list[Id](), set[str]()
        for id in ids:
            raw = self._launches.machine(id.group, id.name)
            if raw is None or read("virtual_machines.get", instance, raw).id != str(id):
                if self._gone(id) is not None:
                    ended.add(str(id))
                if raw is not None:  # another has its name
                    continue
            elif raw["properties"]["provisioningState"] != "Deleting":
                living.append(id)
            left.add(id.name)
        if not living:
            return ended
        self._ours |= {str(id) for id in living}
        group = self._launches.group(name)
        if group is None or deleting(group):
            return ended
        count = tags_of(group).get(launching.COUNT, "")
        if count.isdigit() and left >= set(launching.names_of(str(group["name"]), int(count))):
            self._launches.delete(name)
            return ended
        for id in living:
            self._delete(id)
        return ended

    def _delete(self, id: Id) -> None:
        try:
            self._api.delete("virtual_machines.begin_delete", id.group, id.name, force_deletion=True)
        except CloudError as error:
            if not errors.is_missing(error, id.name) and not errors.is_missing(error, f"'{id.group}'"):
                raise

    def prolong(self, until: Mapping[str, float]) -> None:
        """Their groups, which a reaper deletes when their time is over. One that can't be reached keeps no other."""
        wanted: dict[str, float] = {}
        for id, at_s in until.items():
            group = Id.of(id).group
            wanted[group] = max(at_s, wanted.get(group, 0.0))
        due = [(group, at_s + _AHEAD_S) for group, at_s in wanted.items() if at_s > self._until.get(group, 0.0)]
        self._until = {group: at_s for group, at_s in self._until.items() if group in wanted}

        def put_off(group: str, at_s: float) -> CloudError | None:
            try:
                self._launches.tag(group, launching.UNTIL, launching.moment(at_s))
                self._until[group] = at_s
            except CloudError as error:
                return None if errors.is_missing(error, group) else error
            return None

        for refusal in filter(None, at_once.each(due, lambda each: put_off(*each))):
            raise refusal

    def spot_prices(self, types: Sequence[str]) -> dict[tuple[str, str], float]:
        """Azure's list prices of spot, which are the same in all zones of a region."""
        found = spot.prices(self._region, types, url=self._prices_url)
        return {(size, zone): usd for size, usd in found.items() for zone in self._sizes.zones(size)}

    def interruptions(self, queues: Iterable[str]) -> list[Interruption]:
        """None: Azure tells only the machine itself, which tells the controller."""
        for queue in queues:
            raise refused(f"{queue!r}: Azure has no queue of notices; a pool's notices stay empty")
        return []

    def acknowledge(self, *interruptions: Interruption) -> None:
        """There is nothing to acknowledge."""

    def troubles(self, ids: Sequence[str]) -> list[InstanceTrouble]:
        """Hosts that will be serviced, and machines that Azure finds ill: one list for all."""
        if not ids:
            return []
        views = {_place(id): view for id, view in self._views().items()}
        wanted = sorted({Id.of(id) for id in ids})
        return [found for id in wanted for found in troubles_of(str(id), views.get((id.group, id.name.lower()), {}))]


def _place(resource_id: str) -> tuple[str, str]:
    return group_in(resource_id), resource_id.rpartition("/")[2].lower()


def _address(nic: Json) -> tuple[tuple[str, str], str]:
    """The machine that an interface is of, as group and name, and its first address."""
    properties = nic["properties"]
    machine = (properties.get("virtualMachine") or {}).get("id")
    addresses = [each["properties"].get("privateIPAddress") for each in properties["ipConfigurations"]]
    return _place(machine) if machine else ("", ""), addresses[0] or ""
