"""The Google Cloud side of the controller: launching, finding and ending rented instances in one region of a project.

Nothing ends in a list here: an ended instance is one that isn't found, and why is among the zone's operations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ironburst.adapters import at_once
from ironburst.adapters.answers import read
from ironburst.adapters.google import errors, launching
from ironburst.adapters.google.api import Api, Json, refused
from ironburst.adapters.google.instances import Id, ended, instance, provisional, time_s
from ironburst.adapters.google.launches import Launches, under_way
from ironburst.adapters.google.spot import SpotPrices
from ironburst.adapters.google.troubles import troubles_of
from ironburst.ports import (
    LAUNCHING,
    CloudError,
    Instance,
    InstanceTrouble,
    Interruption,
    LaunchRequest,
    OutcomeUnknown,
    Refused,
    TooExpensive,
)

_LIST = "instances.aggregatedList"
_YOUNG_S = 3600.0  # an operation of a launch is over by then, and its state is asked for no more
_MISSED = 20  # of a list: so many are asked for by their ids at once, the others at the next list
_SHOWN_S = 3600.0  # an ended one is shown for so long, as by EC2


@dataclass
class _Seen:
    """What lists have shown of a cluster."""

    alive: dict[str, Instance]
    ended: dict[str, tuple[Instance, float]]


class Google:
    """A Cloud (ironburst.ports)."""

    def __init__(
        self,
        api: Api,
        region: str,
        *,
        wait: Callable[[float], object] = time.sleep,
        now: Callable[[], float] = time.time,
    ):
        """`wait` and `now`: for tests."""
        self._api, self._region, self._now = api, region, now
        self._launches = Launches(api, wait)
        self._spot = SpotPrices(api, region, now)
        self._seen: dict[str, _Seen] = {}

    def image_id(self, reference: str) -> str | None:
        """The newest image of a family: projects/PROJECT/global/images/family/NAME."""
        parts = reference.strip("/").split("/")
        if len(parts) != 6 or (parts[0], *parts[2:5]) != ("projects", "global", "images", "family"):
            raise refused(f"{reference!r} names no family of images (projects/PROJECT/global/images/family/NAME)")
        project, family = parts[1], parts[5]
        if project != self._api.project:
            raise refused(f"{reference!r}: images are baked in the project {self._api.project}")
        try:
            found = self._api.call("images", "getFromFamily", family=family)
        except CloudError as error:
            if errors.is_missing(error, "images"):
                return None
            raise
        name = read("images.getFromFamily", lambda raw: raw["name"], found)
        return f"projects/{project}/global/images/{name}"

    def launch_all(self, requests: Sequence[LaunchRequest]) -> list[list[Instance] | CloudError]:
        """Each in a thread of its own. None is waited for to its end: UnderWay, and it is asked for again."""
        return at_once.launches(requests, self._launch, "instances.bulkInsert")

    def _launch(self, request: LaunchRequest) -> list[Instance]:
        return self._launches.launch(launching.of(request), lambda: self._affordable(request))

    def _affordable(self, request: LaunchRequest) -> None:
        """Google has no ceiling: a price that is above ours, or that isn't known, is never asked for."""
        most = request.max_usd_per_hour
        if request.market != "spot" or most is None or self._launches.asked_for(request.token):
            return
        kind = request.place.get("machine_type", "")
        usd = self._spot.usd(kind)
        if usd is None:
            raise Refused(f"what spot costs for {kind} in {self._region} isn't known: {most} can't be held", "NoPrice")
        if usd > most:
            raise TooExpensive(f"spot costs {usd} an hour for {kind} in {self._region}, above {most}", "AboveCeiling")

    def instances(self, cluster: str) -> list[Instance]:
        """By the labels that every launch sets; then those that a list before had shown, and this one doesn't."""
        query = f'(labels.{launching.CLUSTER} = "{launching.label_value(cluster)}") (labels.{launching.LEASE}:*)'
        listed = self._as_they_are([read(_LIST, instance, raw) for raw in self._raw(query)])
        shown = {each.id: each for each in listed}
        seen = self._seen.setdefault(cluster, _Seen({}, {}))
        missed = [id for id in seen.alive if id not in shown]
        later = missed[_MISSED:]
        for id in missed[:_MISSED]:
            try:
                found = self._one(Id.of(id))
            except CloudError:
                later.append(id)
                continue
            if found is not None and found.alive:
                shown[id] = found  # a list is only in the end right
            elif found is not None and not self._taken_back(seen.alive[id]):
                was = replace(seen.alive[id], state=found.state, reason=found.reason, taken=found.taken)
                seen.ended[id] = was, self._now()
        seen.alive = {id: seen.alive[id] for id in later} | {id: each for id, each in shown.items() if each.alive}
        old_s = self._now() - _SHOWN_S
        seen.ended = {id: each for id, each in seen.ended.items() if each[1] > old_s and id not in shown}
        return [*shown.values(), *(each for each, _ in seen.ended.values())]

    def _taken_back(self, was: Instance) -> bool:
        """Whether its launch failed: then it never was one of ours."""
        return was.state == LAUNCHING and not self._launches.over(was)

    def _raw(self, query: str) -> list[Json]:
        return self._api.listed_everywhere("instances", "instances", self._region, query)

    def _as_they_are(self, shown: Sequence[Instance]) -> list[Instance]:
        """Those whose launch isn't over may be taken back. A launch is looked at once, however many it has."""
        young = [each for each in shown if self._now() - each.launched_s < _YOUNG_S and provisional(each)]
        one_of = {each.token: each for each in young if each.token}
        works = {token for token, each in one_of.items() if not self._launches.over(each)}
        return [replace(each, state=LAUNCHING) if each in young and each.token in works else each for each in shown]

    def described(self, ids: Sequence[str]) -> list[Instance]:
        """By their numbers, which no other instance will ever have."""
        return [each for each in at_once.each([Id.of(id) for id in ids], self._one) if each is not None]

    def _one(self, id: Id) -> Instance | None:
        """None: nothing is known of it."""
        try:
            raw = self._api.call("instances", "get", zone=id.zone, instance=id.number)
        except CloudError as error:
            if not errors.is_missing(error, "instances"):
                raise
            return self._ended(id)
        return self._as_they_are([read("instances.get", instance, raw)])[0]

    def _ended(self, id: Id) -> Instance | None:
        """One that isn't there, by the operations that are remembered of it."""
        found = self._api.listed("zoneOperations", id.zone, f"targetId = {id.number}")
        mine = [each for each in found if str(each.get("targetId")) == id.number and each.get("insertTime")]
        if not mine:
            return None
        mine.sort(key=lambda each: time_s(each["insertTime"]))
        why = [str(each.get("operationType", "")) for each in mine if each.get("operationType") != "insert"]
        last = next((each for each in why if each.startswith("compute.instances.")), why[-1] if why else "gone")
        return ended(id, last, time_s(mine[0]["insertTime"]))

    def by_token(self, token: str) -> list[Instance] | CloudError:
        """By the label of their launch."""
        begun = self._launches.begun(self._region, token)
        if works := under_way(begun):
            raise works
        found = self._raw(f'labels.{launching.TOKEN} = "{launching.label_value(token)}"')
        if begun and begun.get("error") and (failure := self._launches.failure(begun, found)):
            return failure
        return self._as_they_are([read(_LIST, instance, raw) for raw in found])

    def console(self, instance_id: str) -> str:
        """The last MiB of its first serial port."""
        id = Id.of(instance_id)
        answer = self._api.call("instances", "getSerialPortOutput", zone=id.zone, instance=id.number, port=1)
        return str(answer.get("contents") or "")

    def terminate(self, ids: Sequence[str]) -> set[str]:
        """Deletes each. One that is on its way out may cost money until it is gone: it isn't among those returned."""
        return at_once.ended([Id.of(id) for id in ids], lambda id: {str(id)} if self._deleted(id) else set())

    def _deleted(self, id: Id) -> bool:
        """Whether it has ended by Google's word."""
        try:
            self._api.call("instances", "delete", zone=id.zone, instance=id.number)
            return False
        except CloudError as error:
            if errors.is_missing(error, "instances"):
                return self._ended(id) is not None
            going = error.code in ("resourceNotReady", "RESOURCE_NOT_READY")
            if error.code == "forbidden" and self._one(id) is not None:
                # the right is bound to names (docs/adr/0128), and that one has this number still: asked right before
                self._api.call("instances", "delete", zone=id.zone, instance=id.name)
                return False
            if not going:
                raise
        found = self._one(id)
        if found is not None and found.state != "stopping":  # another operation is on it, which isn't its end
            raise OutcomeUnknown(f"instances.delete: {id} isn't ready to be deleted", "RESOURCE_NOT_READY")
        return found is not None and not found.alive

    def prolong(self, until: Mapping[str, float]) -> None:
        """Nothing: nodes end themselves, and nothing else ends them."""

    def spot_prices(self, types: Sequence[str]) -> dict[tuple[str, str], float]:
        """Google's list prices of spot, which are the same in all zones of a region."""
        return self._spot.by_zone(types)

    def interruptions(self, queues: Iterable[str]) -> list[Interruption]:
        """None: Google tells only the instance itself, which tells the controller."""
        for queue in queues:
            raise refused(f"{queue!r}: Google has no queue of notices; a pool's notices stay empty")
        return []

    def acknowledge(self, *interruptions: Interruption) -> None:
        """There is nothing to acknowledge."""

    def troubles(self, ids: Sequence[str]) -> list[InstanceTrouble]:
        """Hosts that are repaired, or will be serviced: of the descriptions of those instances."""
        wanted = {str(Id.of(id)) for id in ids}
        zones = sorted({Id.of(id).zone for id in wanted})
        raw = [each for zone in zones for each in self._api.listed("instances", zone, f"labels.{launching.LEASE}:*")]
        return [found for each in raw for found in troubles_of(each) if found.instance_id in wanted]
