"""The cloud of a site that declares none: nothing is there, and nothing is launched. The controller has other work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ironburst.ports import CloudError, Instance, InstanceTrouble, Interruption, LaunchRequest, Refused


class NoCloud:
    """A Cloud (ironburst.ports)."""

    def image_id(self, parameter: str) -> str | None:
        """There is none."""
        del parameter
        return None

    def launch_all(self, requests: Sequence[LaunchRequest]) -> list[list[Instance] | CloudError]:
        """Each is refused."""
        return [Refused("no cloud was declared when the controller was started: start it again") for _ in requests]

    def instances(self, cluster: str) -> list[Instance]:
        """None."""
        del cluster
        return []

    def described(self, ids: Sequence[str]) -> list[Instance]:
        """None is known."""
        del ids
        return []

    def by_token(self, token: str) -> list[Instance]:
        """None."""
        del token
        return []

    def console(self, instance_id: str) -> str:
        """Nothing."""
        del instance_id
        return ""

    def terminate(self, ids: Sequence[str]) -> set[str]:
        """None was there."""
        return set(ids)

    def interruptions(self, queues: Iterable[str]) -> list[Interruption]:
        """None."""
        del queues
        return []

    def acknowledge(self, *interruptions: Interruption) -> None:
        """There are none."""

    def troubles(self, ids: Sequence[str]) -> list[InstanceTrouble]:
        """None."""
        del ids
        return []
