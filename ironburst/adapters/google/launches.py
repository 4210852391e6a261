"""Launches in Compute Engine: operations that take minutes, are looked at, and end in all instances or none.

Three nets keep a launch from happening twice. Its operation is looked for by our own id before anything is asked for;
the request has that id, which Compute Engine ignores a second time; and the names are fixed, which a zone has once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from ironburst.adapters.answers import read
from ironburst.adapters.google import errors, launching
from ironburst.adapters.google.api import Api, Json
from ironburst.adapters.google.instances import Id, ended, instance, provisional, tail, time_s
from ironburst.adapters.google.launching import Launch
from ironburst.ports import (
    CloudError,
    Instance,
    OutcomeUnknown,
    TokenMismatch,
    UnderWay,
)

_BULK = "instances.bulkInsert"
_LOOKS_S = (0.5, 1.0, 1.5)  # after which a new launch is looked at: most refusals come so soon


class Launches:
    """Of one project. Safe to use from several threads."""

    def __init__(self, api: Api, wait: Callable[[float], object] = time.sleep):
        self._api, self._wait, self._lock = api, wait, threading.Lock()
        self._operations: dict[str, str] = {}  # request id -> its operation's name, of this process's launches
        self._over: set[str] = set()  # tokens of launches that are over, well

    def asked_for(self, token: str) -> bool:
        """Whether this process has asked for that launch."""
        return launching.request_id(token) in self._operations

    def launch(self, launch: Launch, allowed: Callable[[], None]) -> list[Instance]:
        """All instances. Raises UnderWay as long as it isn't over, and whatever ended it. `allowed` raises if nothing
        may be asked for; it isn't asked where the launch may have begun.
        """
        operation = self.operation(launch.zone, launch.token)
        if operation is None:
            there = self._with_token(launch)
            _same(launch, there)
            if len(there) == launch_count(launch):  # its operation is forgotten
                return self._these(launch, there)
            if not there:
                allowed()
            operation = self._begin(launch)
        if _done(operation):
            return self._outcome(launch, operation)
        raise UnderWay(f"{_BULK}: {_progress(operation)} in {launch.zone}")

    def _begin(self, launch: Launch) -> Json:
        id = launch.request_id
        asked = {"zone": launch.zone, "requestId": id}
        try:
            operation = self._api.call("instances", "bulkInsert", **asked, body=dict(launch.body))
        except CloudError as error:
            if launching.LEAD not in str(error):
                raise
            operation = self._api.call("instances", "bulkInsert", **asked, body=launching.without_lead(launch.body))
        name = str(read(_BULK, lambda raw: raw["name"], operation))
        with self._lock:
            self._operations[id] = name
        for seconds in _LOOKS_S:
            if _done(operation):
                break
            self._wait(seconds)
            operation = self._api.call("zoneOperations", "get", zone=launch.zone, operation=name)
        return operation

    def operation(self, zone: str, token: str) -> Json | None:
        """That of the launch with a token; None: none is known."""
        id = launching.request_id(token)
        if name := self._operations.get(id):
            try:
                return self._api.call("zoneOperations", "get", zone=zone, operation=name)
            except CloudError as error:
                if not errors.is_missing(error, "operations"):
                    raise
        found = self._api.listed("zoneOperations", zone, f'clientOperationId = "{id}"')
        mine = [each for each in found if each.get("clientOperationId") == id]
        if not mine:
            return None
        with self._lock:
            self._operations[id] = str(read(_BULK, lambda raw: raw["name"], mine[-1]))
        return mine[-1]

    def begun(self, region: str, token: str) -> Json | None:
        """The same, wherever in the region."""
        id = launching.request_id(token)
        query = f'clientOperationId = "{id}"'
        found = self._api.listed_everywhere("globalOperations", "operations", region, query)
        return next((each for each in found if each.get("clientOperationId") == id), None)

    def over(self, shown: Instance) -> bool:
        """Whether the launch of an instance has ended well: until then all of it may be taken back."""
        if shown.token in self._over:
            return True
        try:
            operation = self.operation(shown.zone, shown.token)
        except CloudError:
            return False
        well = operation is not None and _done(operation) and not operation.get("error")
        if well:
            self._over.add(shown.token)
        return well

    def _outcome(self, launch: Launch, operation: Json) -> list[Instance]:
        planned = _planned(operation, launch.zone)
        if planned is not None and planned != launch_count(launch):
            raise _other(f"{planned} instances")
        if not operation.get("error"):
            return self._these(launch, self._with_token(launch), operation)
        left = self._with_token(launch)
        _same(launch, left)
        failure = self.failure(operation, left, count=launch_count(launch), spot=launch.spot)
        if failure is None:
            return self._these(launch, left)
        raise failure

    def failure(
        self, operation: Json, left: Sequence[Json], *, count: int | None = None, spot: bool = False
    ) -> CloudError | None:
        """What ended a launch whose operation has an error. Raises UnderWay as long as some of it is left. None: what
        is there is all of a launch before this one, which both nets had forgotten. `count`, `spot`: where they are
        known; it says its count itself, as a rule.
        """
        zone = tail(operation["zone"])
        group = self._group(zone, operation)
        codes = {errors.canonical(str(code)) for each in (operation, *group) for code in _codes(each)}
        if left and "RESOURCE_ALREADY_EXISTS" in codes and len(left) == (count or _planned(operation, zone)):
            return None
        if left:
            self._take_back(left)
            what = f"{_BULK}: it failed in {zone}, and {len(left)} of its instances are still there"
            raise UnderWay(f"{what}: they are deleted")
        return errors.of_operation((operation, *group), _BULK, spot=spot)

    def _take_back(self, left: Sequence[Json]) -> None:
        """What a launch that failed left behind. What can't be deleted now is tried again at the next look."""
        for raw in left:
            if provisional(read(_BULK, instance, raw)):
                try:
                    self._api.call("instances", "delete", zone=tail(raw["zone"]), instance=str(raw["id"]))
                except CloudError:
                    continue

    def _group(self, zone: str, operation: Json) -> list[Json]:
        """The operations on its single instances."""
        id = operation.get("operationGroupId")
        if not id:
            return []
        found = self._api.listed("zoneOperations", zone, f'operationGroupId = "{id}"')
        return [each for each in found if each.get("operationGroupId") == id and each["name"] != operation["name"]]

    def _with_token(self, launch: Launch) -> list[Json]:
        """Its instances, as a list shows them; what that lacks is asked for by its name."""
        value = launching.label_value(launch.token)
        found = self._api.listed("instances", launch.zone, f'labels.{launching.TOKEN} = "{value}"')
        there = {str(raw["name"]): raw for raw in found if (raw.get("labels") or {}).get(launching.TOKEN) == value}
        if there:
            for name in launch.names:
                if name not in there and (raw := self._named(launch.zone, name, value)):
                    there[name] = raw
        return list(there.values())

    def _named(self, zone: str, name: str, token: str) -> Json | None:
        try:
            raw = self._api.call("instances", "get", zone=zone, instance=name)
        except CloudError as error:
            if errors.is_missing(error, "instances"):
                return None
            raise
        return raw if (raw.get("labels") or {}).get(launching.TOKEN) == token else None

    def _these(self, launch: Launch, there: Sequence[Json], operation: Json | None = None) -> list[Instance]:
        """All instances of a launch that ended well. One that is gone by now is there as an ended one."""
        of = {str(raw["name"]): raw for raw in there}
        _same(launch, there)
        for name in launch.names if operation else ():
            if name not in of and (raw := self._named(launch.zone, name, launching.label_value(launch.token))):
                of[name] = raw
        found = [read(_BULK, instance, raw) for raw in of.values()]
        if missing := [name for name in launch.names if name not in of]:
            found += self._gone(launch, operation, missing)
        if len(found) != launch_count(launch):
            what = f"{_BULK}: {len(found)} of {launch_count(launch)} instances of this launch are there"
            raise TokenMismatch(f"{what}, and nothing says what became of the others", "Ended")
        self._over.add(launch.token)
        return sorted(found, key=lambda each: each.index)

    def _gone(self, launch: Launch, operation: Json | None, names: Sequence[str]) -> list[Instance]:
        """By the operations that made them, which know their numbers."""
        made = {
            tail(str(each.get("targetLink", ""))): each
            for each in (self._group(launch.zone, operation) if operation else [])
            if each.get("operationType") == "insert" and not each.get("error") and each.get("targetId")
        }
        return [
            replace(
                ended(Id(launch.zone, name, str(made[name]["targetId"])), "gone", time_s(made[name]["insertTime"])),
                token=launch.token,
            )
            for name in names
            if name in made
        ]


def launch_count(launch: Launch) -> int:
    """How many instances it has."""
    return len(launch.names)


def under_way(operation: Json | None) -> UnderWay | None:
    """What to answer while an operation isn't over."""
    if operation is None or _done(operation):
        return None
    return UnderWay(f"{_BULK}: {_progress(operation)}")


def _done(operation: Json) -> bool:
    status = operation.get("status")
    if status not in ("PENDING", "RUNNING", "DONE"):
        raise OutcomeUnknown(f"{_BULK}: an operation with status {status!r}")
    return bool(status == "DONE")


def _codes(operation: Json) -> list[str]:
    return [str(each.get("code", "")) for each in (operation.get("error") or {}).get("errors", [])]


def _locations(operation: Json) -> dict[str, Json]:
    of = (operation.get("instancesBulkInsertOperationMetadata") or {}).get("perLocationStatus") or {}
    return {tail(where): status for where, status in of.items()}


def _planned(operation: Json, zone: str) -> int | None:
    """How many instances it is about; None: it doesn't say."""
    count = _locations(operation).get(zone, {}).get("targetVmCount")
    return None if count is None else int(count)


def _progress(operation: Json) -> str:
    said = "; ".join(
        f"{status.get('status', '?').lower().replace('_', ' ')}, "
        f"{status.get('createdVmCount', 0)} of {status.get('targetVmCount', '?')} made"
        for status in _locations(operation).values()
    )
    return said or str(operation.get("status", "")).lower()


def _same(launch: Launch, there: Sequence[Json]) -> None:
    """Raises TokenMismatch where instances with its token are of another request."""
    foreign = {str(raw["name"]) for raw in there} - set(launch.names)
    if foreign or any(raw["labels"].get(launching.ASKED) != launch.asked for raw in there):
        raise _other("something else")


def _other(what: str) -> TokenMismatch:
    return TokenMismatch(f"{_BULK}: the token of this launch was used before, for {what}", "OtherParameters")
