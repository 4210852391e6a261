"""The cloud of a hall of one's own: none. It has no instances and starts none.

What it is asked of an instance it refuses to answer: if a ledger knows one, it was rented in a cloud that the document
names no more, and "unknown" would be treated as "gone".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ironburst.ports import CloudError, Instance, InstanceTrouble, Interruption, LaunchRequest, Refused


class NoCloud:
    """A Cloud (ironburst.ports)."""

    def image_id(self, reference: str) -> str | None:
        """None: there are no images."""
        del reference
        return None

    def launch_all(self, requests: Sequence[LaunchRequest]) -> list[list[Instance] | CloudError]:
        """Each is refused."""
        return [_refused(f"nodes of pool {request.pool}") for request in requests]

    def instances(self, cluster: str) -> list[Instance]:
        """None are."""
        del cluster
        return []

    def described(self, ids: Sequence[str]) -> list[Instance]:
        """Raises Refused for any id."""
        _none(ids)
        return []

    def by_token(self, token: str) -> list[Instance]:
        """None are."""
        del token
        return []

    def console(self, instance_id: str) -> str:
        """Raises Refused."""
        raise _refused(instance_id)

    def terminate(self, ids: Sequence[str]) -> set[str]:
        """Raises Refused for any id."""
        _none(ids)
        return set()

    def prolong(self, until: Mapping[str, float]) -> None:
        """There is nothing to prolong."""
        del until

    def spot_prices(self, types: Sequence[str]) -> dict[tuple[str, str], float]:
        """Nothing is sold."""
        del types
        return {}

    def interruptions(self, queues: Iterable[str]) -> list[Interruption]:
        """None come."""
        del queues
        return []

    def acknowledge(self, *interruptions: Interruption) -> None:
        """There is nothing to acknowledge."""

    def troubles(self, ids: Sequence[str]) -> list[InstanceTrouble]:
        """Raises Refused for any id."""
        _none(ids)
        return []


def _none(ids: Sequence[str]) -> None:
    if ids:
        raise _refused(", ".join(ids))


def _refused(what: str) -> Refused:
    return Refused(f"{what}: the document declares no cloud; publish one that names the cloud of what is rented")
