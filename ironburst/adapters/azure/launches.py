"""Launches in Azure, which has none: machines that are asked for one by one, and all taken back if one fails.

What is so far is in Azure, never here alone: the launch's resource group and its tags, and the machines by their names.
So a process that died is followed by any other. Machines are made only where none of their name is (If-None-Match), and
a group that failed says why until it is gone.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from azure.core import MatchConditions

from ironburst.adapters import at_once
from ironburst.adapters.answers import read
from ironburst.adapters.azure import errors, launching, reservations
from ironburst.adapters.azure.api import Api, Json
from ironburst.adapters.azure.instances import statuses
from ironburst.adapters.azure.launching import BEGUN, COUNT, FAILED, LAUNCHED, UNTIL, GroupLaunch
from ironburst.adapters.azure.sizes import Sizes
from ironburst.ports import (
    CloudError,
    InsufficientCapacity,
    LaunchFailed,
    OutcomeUnknown,
    TokenMismatch,
    UnderWay,
)

_PUT = "virtual_machines.begin_create_or_update"
_LOOKS_S = (0.5, 1.0, 1.5)  # after which a new launch is looked at: most refusals come so soon
_NEW_S = 10.0
_LEFT_S = 300.0  # a launch that isn't whole, and at which nobody has worked for so long, is nobody's
_BARE = ("Failed", "Canceled")  # of an operation that doesn't say why
FORCED = "Microsoft.Compute/virtualMachines,Microsoft.Compute/virtualMachineScaleSets"
YOUNG_S = 3600.0
"""a launch has ended by then, well or not"""


class _Failed(Exception):
    """A machine that will not be."""

    def __init__(self, cause: CloudError):
        super().__init__(str(cause))
        self.cause = cause


class GroupLaunches:
    """Of one region. Safe to use from several threads."""

    def __init__(self, api: Api, sizes: Sizes, wait: Callable[[float], object], now: Callable[[], float] = time.time):
        self._api, self._sizes, self._wait, self._now = api, sizes, wait, now
        self._operations: dict[str, str] = {}  # name of a machine -> where Azure tells how far it is
        self._failures: dict[str, CloudError] = {}  # by token
        self._over: set[str] = set()  # groups whose launch is over, well

    def launch(self, launch: GroupLaunch) -> list[Json]:
        """All machines. Raises UnderWay as long as it isn't over, and whatever ended it."""
        group, looks = self.group(launch.group), list(_LOOKS_S)
        if group is None:
            if launch.token in self._failures:
                raise self._failures[launch.token]
            group = self._begin(launch)
        while True:
            try:
                return self._look(launch, group)
            except UnderWay:
                if not looks or group is None or self.age_s(group) > _NEW_S:
                    raise
                self._wait(looks.pop(0))
                group = self.group(launch.group)

    def _begin(self, launch: GroupLaunch) -> Json:
        """Its group: from now on it is there."""
        reservations.before(self._api, launch)
        now = self._now()
        tags = dict(launch.tags) | {BEGUN: str(int(now))}
        if launch.hard_limit_s:
            tags[UNTIL] = launching.moment(now + launch.hard_limit_s)
        group, _ = self._api.put(
            "resource_groups.create_or_update", launch.group, {"location": launch.region, "tags": tags}
        )
        return group

    def group(self, name: str) -> Json | None:
        """None: it isn't there."""
        try:
            found = self._api.get("resource_groups.get", name)
        except CloudError as error:
            if errors.is_missing(error, name):
                return None
            raise
        read("resource_groups.get", lambda raw: raw["name"] + raw["properties"]["provisioningState"], found)
        return found

    def machine(self, group: str, name: str, **more: Any) -> Json | None:
        """None: it isn't there."""
        try:
            return self._api.get("virtual_machines.get", group, name, **more)
        except CloudError as error:
            if errors.is_missing(error, name) or errors.is_missing(error, f"'{group}'"):
                return None
            raise

    def _look(self, launch: GroupLaunch, group: Json | None) -> list[Json]:
        if group is None:
            raise self._failures.get(launch.token) or OutcomeUnknown(f"{_PUT}: the group {launch.group} is gone again")
        _same(launch, group)
        try:
            return self._further(launch, group)
        except (OutcomeUnknown, TokenMismatch):
            raise
        except CloudError as error:  # it has begun: a refusal of one call is no end of it
            raise OutcomeUnknown(str(error), error.code) from None

    def _further(self, launch: GroupLaunch, group: Json) -> list[Json]:
        if LAUNCHED in tags_of(group):
            return self._launched(launch, group)
        if FAILED in tags_of(group) or deleting(group):
            self.take_back(group)
        self._fabric(launch, group)
        listed = self.listed(launch.group)

        def one(index: int) -> Json | Exception:
            try:
                return self._one(launch, index, listed.get(launch.names[index]))
            except (CloudError, _Failed) as error:
                return error

        answers = at_once.each(range(len(launch.names)), one)
        failed = [each.cause for each in answers if isinstance(each, _Failed)]
        if failed:
            self._fail(group, failed, launch)
        unknown = [each for each in answers if isinstance(each, CloudError)]
        if unknown:
            raise next((each for each in unknown if not isinstance(each, UnderWay)), unknown[0])
        machines = [each for each in answers if isinstance(each, Mapping)]
        self.finish(group, machines)
        return machines

    def _launched(self, launch: GroupLaunch, group: Json) -> list[Json]:
        listed = self.listed(launch.group)
        found = [listed.get(name) or self.machine(launch.group, name) for name in launch.names]
        there = [each for each in found if each is not None]
        if deleting(group) or len(there) < len(found):
            what = f"{_PUT}: {len(there)} of {len(found)} machines of this launch are there"
            raise TokenMismatch(f"{what}: the others have ended", "Ended")
        self._over.add(launch.group)
        return there

    def listed(self, group: str) -> dict[str, Json]:
        """The machines of a group, by name, as far as a list shows them."""
        try:
            found = self._api.all("virtual_machines.list", group)
        except CloudError as error:
            if errors.is_missing(error, group):
                return {}
            raise
        return {str(read("virtual_machines.list", lambda raw: raw["name"], each)): each for each in found}

    def _fabric(self, launch: GroupLaunch, group: Json) -> None:
        """The scale set that machines with InfiniBand are to be in."""
        if launch.scale_set is None:
            return
        room, missing = "virtual_machine_scale_sets", MatchConditions.IfMissing
        try:
            there = self._api.get(f"{room}.get", launch.group, launching.SET)
        except CloudError as error:
            if not errors.is_missing(error, launching.SET):
                raise
            put = f"{room}.begin_create_or_update"
            try:
                there, _ = self._api.put(put, launch.group, launching.SET, launch.scale_set, match_condition=missing)
            except CloudError as refusal:
                if isinstance(refusal, OutcomeUnknown) or refusal.code in errors.THERE:
                    raise
                self._fail(group, [refusal])
        state = read(room, lambda raw: raw["properties"]["provisioningState"], there)
        if state == "Failed":
            self._fail(group, [LaunchFailed(f"{room}: the scale set of {launch.group} failed", state)])
        if state != "Succeeded":
            raise UnderWay(f"{room}: the scale set of {launch.group} is {state.lower()}")

    def _one(self, launch: GroupLaunch, index: int, raw: Json | None) -> Json:
        """A machine that is there and up. Raises UnderWay, _Failed."""
        name = launch.names[index]
        if raw is None:
            raw = self._made(launch, index)
        if (raw.get("tags") or {}).get(launching.ASKED) != launch.asked:
            raise TokenMismatch(f"{_PUT}: {name} is somebody else's", "OtherParameters")
        state = read(_PUT, lambda each: each["properties"]["provisioningState"], raw)
        if state == "Failed":
            raise _Failed(self._cause(launch.group, name))
        if state != "Succeeded":
            raise UnderWay(f"{_PUT}: {name} is {state.lower()}")
        self._operations.pop(name, None)
        return raw

    def _made(self, launch: GroupLaunch, index: int) -> Json:
        name, url = launch.names[index], self._operations.get(launch.names[index])
        if url is not None:
            if there := self.machine(launch.group, name):
                return there
            error = self._of_operation(url) if url else None
            if error:
                raise _Failed(error)
            del self._operations[name]  # it was there, and is gone: it is asked for once more
        try:
            raw, url = self._api.put(
                _PUT, launch.group, name, launch.bodies[index], match_condition=MatchConditions.IfMissing
            )
        except OutcomeUnknown:
            raise
        except CloudError as error:
            if error.code not in errors.THERE:
                raise _Failed(error) from None
            there = self.machine(launch.group, name)
            if there is None:
                raise OutcomeUnknown(f"{_PUT}: {name} is there, and isn't") from None
            return there
        self._operations[name] = url
        return raw

    def _of_operation(self, url: str) -> CloudError | None:
        """Why what goes on there failed. Raises UnderWay while it does."""
        operation = self._api.operation(url)
        status = operation.get("status")
        if status in _BARE:
            said = operation.get("error") or {"code": str(status)}
            return errors.gravest(read("operations.get", lambda raw: list(errors.causes(raw)), said), _PUT)
        if status != "Succeeded":
            raise UnderWay(f"{_PUT}: {str(status).lower()}")
        return None

    def _cause(self, group: str, name: str) -> CloudError:
        """Why a machine has failed: by what went on, or its own status."""
        url = self._operations.get(name)
        if url:
            with contextlib.suppress(CloudError):
                error = self._of_operation(url)
                if error and error.code not in _BARE:
                    return error
        view = self._api.get("virtual_machines.instance_view", group, name)
        codes = statuses(view, "ProvisioningState/failed/")
        texts = [str(each.get("message", "")) for each in view.get("statuses") or [] if each.get("message")]
        return errors.gravest([errors.ErrorInfo(codes[0] if codes else "Failed", "; ".join(texts))], _PUT)

    def _fail(self, group: Json, causes: Sequence[CloudError], launch: GroupLaunch | None = None) -> NoReturn:
        """Take all of it back. Raises UnderWay: it is over when its group is gone."""
        error = errors.failed(errors.gravest_of(causes))
        if launch and isinstance(error, InsufficientCapacity) and error.code != reservations.FULL:
            with contextlib.suppress(CloudError):  # then it is what Azure says
                if why := self._sizes.never(launch.size, launch.zone):
                    error = LaunchFailed(f"{why} ({error})", error.code)
        self._failures[_token(group)] = error
        with contextlib.suppress(CloudError):  # who comes after us asks once more, then
            self.tag(group["name"], FAILED, launching.failure(f"{error.code}: {error}"))
        self.take_back(group)

    def finish(self, group: Json, machines: Sequence[Json]) -> None:
        """All machines are up: it is launched, unless one runs beside the reservation that it was to be in."""
        outside = reservations.beside(self._api, machines)
        if outside:
            text = f"{_PUT}: {', '.join(outside)} would run beside the reservation"
            self._failures[_token(group)] = InsufficientCapacity(text, reservations.FULL)
            self.take_back(group)
        self.tag(group["name"], LAUNCHED, "yes")
        self._over.add(group["name"])

    def tag(self, group: str, key: str, text: str) -> None:
        """Set one of a group's tags; what others set meanwhile stays."""
        scope = f"subscriptions/{self._api.subscription}/resourceGroups/{group}"
        merged = {"operation": "Merge", "properties": {"tags": {key: text}}}
        self._api.put("tags.begin_update_at_scope", scope, merged)

    def take_back(self, group: Json) -> NoReturn:
        """Raises UnderWay: it is over when its group is gone. What can't be deleted now is at the next look."""
        name, text = group["name"], "and what it made is deleted"
        if not deleting(group):
            try:
                self.delete(name)
            except CloudError as error:
                text = f"and what it made can't be deleted yet: {error}"
        why = self._failures.setdefault(_token(group), _written(tags_of(group)))
        raise UnderWay(f"{_PUT}: the launch {name} failed ({why}), {text}")

    def delete(self, group: str) -> None:
        """A launch's group, with all that is in it."""
        try:
            self._api.delete("resource_groups.begin_delete", group, force_deletion_types=FORCED)
        except CloudError as error:
            if error.code != "ResourceGroupBeingDeleted" and not errors.is_missing(error, group):
                raise

    def begun(self, token: str) -> CloudError | None:
        """What ended a launch with this token, if it failed. Raises UnderWay while it isn't over. One that nobody works
        at is brought to its end.
        """
        group = self.group(launching.group_of(token))
        if group is None:
            return self._failures.get(token)
        if LAUNCHED in tags_of(group) or self.age_s(group) > YOUNG_S:
            return None
        if FAILED in tags_of(group) or deleting(group):
            self.take_back(group)
        name = group["name"]
        names = launching.names_of(name, read("resource_groups.get", lambda raw: int(raw["tags"][COUNT]), group))
        listed = self.listed(name)
        found = [listed.get(each) or self.machine(name, each) for each in names]
        states = [_state(each) for each in found]
        if set(states) == {"Succeeded"}:
            self.finish(group, [each for each in found if each])
            return None
        if causes := list(filter(None, map(self._why_not, itertools.repeat(name), names, found))):
            self._fail(group, causes)
        if "Creating" not in states and self.age_s(group) > _LEFT_S:
            self.take_back(group)
        raise UnderWay(f"{_PUT}: {', '.join(states).lower()}")

    def _why_not(self, group: str, name: str, raw: Json | None) -> CloudError | None:
        """Why a machine of a launch has failed, if it has. Raises UnderWay."""
        if raw is None:
            url = self._operations.get(name)
            return self._of_operation(url) if url else None
        return self._cause(group, name) if _state(raw) == "Failed" else None

    def over(self, group: str) -> bool:
        """Whether the launch of a group has ended well: until then all of it may be taken back."""
        if group in self._over:
            return True
        try:
            found = self.group(group)
        except CloudError:
            return False
        if found is not None and LAUNCHED in tags_of(found):
            self._over.add(group)
        return group in self._over

    def age_s(self, group: Json) -> float:
        """Since a group was made. One that isn't ours is old."""
        try:
            return self._now() - float(tags_of(group)[BEGUN])
        except (KeyError, ValueError):
            return float("inf")


def tags_of(group: Json) -> Mapping[str, str]:
    """Of a group."""
    return group.get("tags") or {}


def deleting(group: Json) -> bool:
    """Whether a group is on its way out."""
    return bool((group.get("properties") or {}).get("provisioningState") in ("Deleting", "Deprovisioning"))


def _token(group: Json) -> str:
    return tags_of(group).get(launching.TOKEN, "")


def _state(machine: Json | None) -> str:
    return str((machine or {}).get("properties", {}).get("provisioningState", "not there"))


def _same(launch: GroupLaunch, group: Json) -> None:
    if tags_of(group).get(launching.ASKED) != launch.asked:
        raise TokenMismatch(f"{_PUT}: the token of this launch was used before, for something else", "OtherParameters")


def _written(tags: Mapping[str, str]) -> CloudError:
    """The failure that a process before us wrote down."""
    code, _, text = tags.get(FAILED, "").partition(": ")
    return errors.failed(errors.gravest([errors.ErrorInfo(code or "NotWhole", text or "not whole")], _PUT))
