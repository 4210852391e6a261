"""What a bake (ironburst.baking.images) needs of the cloud: a Protocol, and the records that pass through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ironburst.ports import Instance, LaunchRequest


class BakeError(Exception):
    """The bake failed; the text is one sentence."""


@dataclass(frozen=True)
class Build:
    """What the build instance is launched from. `token` <= 64 ASCII characters: a repeat with it starts nothing new."""

    cluster: str
    pool: str
    instance_type: str
    place: Mapping[str, Any] = field(hash=False)  # the cloud's own, see LaunchRequest
    security_groups: tuple[str, ...]
    base_image: str
    root_device: str
    root_gb: int
    token: str
    root_mb_s: int | None = None  # MiB/s; None: the cloud's own
    user_data: str = ""
    as_nodes: bool = True  # it is of the pool's own type, and runs in the capacity that the pool's nodes run in
    market: str = "on-demand"  # or capacity-block
    zone: str = ""  # where its place is

    def request(self, launch: str, place: Mapping[str, Any]) -> LaunchRequest:
        """As a launch of one node there, for clouds whose build instances are launched so."""
        return LaunchRequest(
            token=self.token,
            cluster=self.cluster,
            pool=self.pool,
            launch=launch,
            zone=self.zone,
            market=self.market,
            count=1,
            image_id=self.base_image,
            user_data=self.user_data,
            place=place,
        )


@dataclass(frozen=True)
class Image:
    """A machine image, as the cloud shows it. `root_gb`: of its root disk; 0: that isn't a network disk."""

    id: str
    state: str  # pending, available, failed, ...
    reason: str = ""
    root_device: str = ""
    root_gb: int = 0
    made: str = ""  # the time, so that text sorts as time


class Images(Protocol):
    """What a bake needs of the cloud. All methods raise CloudError."""

    def security_groups(self, place: Mapping[str, Any]) -> tuple[str, ...]:
        """Those of the nodes that are launched there."""

    def launch(self, build: Build) -> str:
        """Start the build instance; its id.
        CapacityError: nothing was started. OutcomeUnknown: repeat unchanged.
        """

    def instance(self, token: str) -> Instance | None:
        """The instance of a launch; None while the cloud doesn't show it."""

    def builds(self, cluster: str) -> list[Instance]:
        """Every build instance that the cloud still shows, no matter who started it."""

    def console(self, instance_id: str) -> str:
        """What the instance has written to its console so far."""

    def stop(self, instance_id: str) -> None:
        """Shut the instance down; its disk stays. One that is stopped already is fine."""

    def end(self, ids: list[str]) -> None:
        """Terminate; ids that are gone already are fine."""

    def create(self, build: Build, instance_id: str, name: str, tags: dict[str, str]) -> str:
        """Begin an image of the stopped instance; the image's id."""

    def named(self, name: str) -> str | None:
        """The id of our image of that name: names are unique in an account and region."""

    def image(self, image_id: str) -> Image | None:
        """None while (or if) the cloud doesn't know the id."""

    def baked(self, cluster: str, pool: str) -> list[Image]:
        """Every image that was baked for a pool."""

    def in_use(self, image_ids: Sequence[str]) -> set[str]:
        """Those that an instance which isn't ended was started from."""

    def forget(self, image_id: str) -> list[str]:
        """Deregister an image and delete its snapshots; those that the cloud kept."""

    def published(self, parameter: str) -> str | None:
        """The image that the pool's parameter names."""

    def publish(self, parameter: str, image_id: str) -> None:
        """Let the parameter name the image."""
