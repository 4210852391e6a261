"""The clouds of one site as one (ironburst.ports.Cloud): each is asked for its own (docs/adr/0135).

An instance's id tells its cloud by its form, a launch by its place; what else is named is the pools'. One after the
other: a cloud that hangs costs its own time limit, once a call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ironburst.ports import (
    Cloud,
    CloudError,
    Instance,
    InstanceTrouble,
    Interruption,
    LaunchRequest,
    OutcomeUnknown,
    Refused,
    SomeSilent,
    UnderWay,
)

Answer = TypeVar("Answer")
Given = TypeVar("Given")
Item = TypeVar("Item")


@dataclass(frozen=True)
class Part:
    """One of the clouds, or why it isn't connected. `ids`: what the ids of its instances look like."""

    cloud: Cloud | CloudError
    ids: str


class SeveralClouds:
    """A Cloud whose parts are known by their providers."""

    def __init__(self, parts: Mapping[str, Part], whose: Mapping[str, str], oldest: str) -> None:
        """`whose`: images, queues and instance types of pools, with their provider; `oldest`: the provider of launches
        that name none.
        """
        self._oldest = oldest
        self.declare(parts, whose)

    def declare(self, parts: Mapping[str, Part], whose: Mapping[str, str]) -> None:
        """As another document says."""
        self._parts, self._whose = dict(parts), dict(whose)

    def image_id(self, reference: str) -> str | None:
        """Of the cloud that keeps it."""
        return self._of(self._known(reference)).image_id(reference)

    def launch_all(self, requests: Sequence[LaunchRequest]) -> list[list[Instance] | CloudError]:
        """Each in the cloud of its place. One that can't be asked is the answer of its own."""
        its = _grouped(requests, lambda request: str(request.place.get("provider", self._oldest)))
        found, silent = self._asked(its, lambda cloud, launches: cloud.launch_all(launches))
        answers: dict[str, list[Instance] | CloudError] = {}
        for provider, launches in its.items():
            lost = [OutcomeUnknown(str(silent[provider]), silent[provider].code)] if provider in silent else []
            of_its = found.get(provider) or lost * len(launches)  # what it raises says of none whether it happened
            answers |= {request.token: answer for request, answer in zip(launches, of_its, strict=True)}
        return [answers[request.token] for request in requests]

    def instances(self, cluster: str) -> list[Instance]:
        """Of all. Raises SomeSilent: a list that lacks a cloud is none."""
        found, silent = self._asked(dict.fromkeys(self._parts), lambda cloud, _: cloud.instances(cluster))
        return _whole(found, [instance for each in found.values() for instance in each], silent)

    def described(self, ids: Sequence[str]) -> list[Instance]:
        """Each by its own cloud, and none where one gives no answer."""
        found, silent = self._asked(self._by_id(ids), lambda cloud, its: cloud.described(its))
        _raise(silent)
        return [instance for each in found.values() for instance in each]

    def by_token(self, token: str) -> list[Instance] | CloudError:
        """A token tells nothing, so all are asked; what one knows of it is so, whoever else is silent."""
        found, silent = self._asked(dict.fromkeys(self._parts), lambda cloud, _: cloud.by_token(token))
        _raise({whose: error for whose, error in silent.items() if isinstance(error, UnderWay)})
        known: list[Instance] | CloudError = next((each for each in found.values() if each), [])
        if not known:
            _raise(silent)
        return known

    def console(self, instance_id: str) -> str:
        """By its own cloud."""
        return self._of(self._owner(instance_id)).console(instance_id)

    def terminate(self, ids: Sequence[str]) -> set[str]:
        """Each by its own cloud, all that answer; then raises the first failure."""
        ended, silent = self._asked(self._by_id(ids), lambda cloud, its: cloud.terminate(its))
        _raise(silent)
        return set().union(*ended.values())

    def prolong(self, until: Mapping[str, float]) -> None:
        """Each by its own cloud, all that answer; then raises the first failure."""
        its = self._by_id(list(until))
        _, silent = self._asked(its, lambda cloud, ids: cloud.prolong({id: until[id] for id in ids}))
        _raise(silent)

    def spot_prices(self, types: Sequence[str]) -> dict[tuple[str, str], float]:
        """Of each cloud's own types. Raises SomeSilent."""
        its = _grouped([name for name in types if name in self._whose], lambda name: self._whose[name])
        found, silent = self._asked(its, lambda cloud, names: cloud.spot_prices(names))
        return _whole(found, {place: usd for each in found.values() for place, usd in each.items()}, silent)

    def interruptions(self, queues: Iterable[str]) -> list[Interruption]:
        """Of each cloud's own queues, and none where one gives no answer: they are shown again."""
        found, silent = self._asked(_grouped(queues, self._known), lambda cloud, its: cloud.interruptions(its))
        _raise(silent)
        return [notice for each in found.values() for notice in each]

    def acknowledge(self, *interruptions: Interruption) -> None:
        """By the cloud of their queue."""
        its = _grouped(interruptions, lambda notice: self._known(notice.queue))
        _, silent = self._asked(its, lambda cloud, notices: cloud.acknowledge(*notices))
        _raise(silent)

    def troubles(self, ids: Sequence[str]) -> list[InstanceTrouble]:
        """Each by its own cloud. Raises SomeSilent."""
        found, silent = self._asked(self._by_id(ids), lambda cloud, its: cloud.troubles(its))
        return _whole(found, [trouble for each in found.values() for trouble in each], silent)

    # ---- whose is what
    def _asked(
        self, its: Mapping[str, Given], call: Callable[[Cloud, Given], Answer]
    ) -> tuple[dict[str, Answer], dict[str, CloudError]]:
        """What each answers to its own, and why the others didn't. By provider; empty: no cloud's."""
        found, silent = dict[str, Answer](), dict[str, CloudError]()
        for provider, given in its.items():
            try:
                found[provider] = call(self._of(provider), given)
            except CloudError as error:
                silent[provider] = error
        return found, silent

    def _of(self, provider: str) -> Cloud:
        if provider not in self._parts:
            raise Refused(f"the document declares no cloud that has this ({provider or 'nobody knows whose it is'})")
        cloud = self._parts[provider].cloud
        if isinstance(cloud, CloudError):
            raise cloud
        return cloud

    def _known(self, name: str) -> str:
        return self._whose.get(name, "")

    def _owner(self, id: str) -> str:
        return next((provider for provider, part in self._parts.items() if re.fullmatch(part.ids, id)), "")

    def _by_id(self, ids: Sequence[str]) -> dict[str, list[str]]:
        return _grouped(ids, self._owner)


def _grouped(items: Iterable[Item], whose: Callable[[Item], str]) -> dict[str, list[Item]]:
    its: dict[str, list[Item]] = {}
    for item in items:
        its.setdefault(whose(item), []).append(item)
    return its


def _whole(found: Mapping[str, object], answer: Answer, silent: Mapping[str, CloudError]) -> Answer:
    if silent and found:
        raise SomeSilent(answer, silent)
    _raise(silent)
    return answer


def _raise(silent: Mapping[str, CloudError]) -> None:
    for error in silent.values():
        raise error
