"""Baking the image of a pool's rented nodes: one build instance, its image, and the parameter that names it.

The build instance is ended in every case: after success, an error, Ctrl-C or SIGTERM. The parameter changes last: a
failed bake leaves the pool with the image that it had.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from ironburst import catalog
from ironburst.document import ClusterDocument, PoolDocument
from ironburst.ports import CapacityError, CloudError, Instance, OutcomeUnknown
from ironburst.signals import handled

IMAGE_S = 3600.0  # EC2 copies a big root disk for tens of minutes
REPEAT_S = 60.0  # how long a call without an answer is repeated
APPEAR_S = 15.0  # how long EC2 may not show an instance that it has started
Say = Callable[[str], None]
T = TypeVar("T")


class BakeError(Exception):
    """The bake failed; the text is one sentence."""


@dataclass
class Baked:
    pool: str
    image: str
    previous: str | None
    parameter: str
    instance: str
    zone: str
    usd_per_hour: float | None
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Build:
    """What the build instance is launched from. `token` <= 64 ASCII characters: a repeat with it starts nothing new."""

    cluster: str
    pool: str
    launch_template_id: str
    base_image: str
    token: str


@dataclass(frozen=True)
class Image:
    id: str
    state: str  # pending, available, failed, ...
    reason: str = ""


class Images(Protocol):
    """What a bake needs of the cloud. All methods raise CloudError."""

    def launch(self, build: Build) -> str:
        """Start the build instance on demand; its id. CapacityError: nothing was started. OutcomeUnknown: repeat
        unchanged.
        """

    def instance(self, token: str) -> Instance | None:
        """The instance of a launch; None while the cloud doesn't show it."""

    def end(self, ids: list[str]) -> None:
        """Terminate; ids that are gone already are fine."""

    def create(self, build: Build, instance_id: str, name: str, tags: dict[str, str]) -> str:
        """Begin an image of the instance, which is rebooted so that its disk is at rest; the image's id."""

    def named(self, name: str) -> str | None:
        """The id of our image of that name: names are unique in an account and region."""

    def image(self, image_id: str) -> Image | None:
        """None while (or if) the cloud doesn't know the id."""

    def forget(self, image_id: str) -> None:
        """Deregister an image and delete its snapshots."""

    def published(self, parameter: str) -> str | None:
        """The image that the pool's parameter names."""

    def publish(self, parameter: str, image_id: str) -> None:
        """Let the parameter name the image."""


def bake(
    images: Images,
    document: ClusterDocument,
    pool: PoolDocument,
    base_image: str,
    playbook: Callable[[str], None],
    say: Say,
    *,
    answers: Callable[[str], bool] | None = None,
    pause_s: float = 5.0,
) -> Baked:
    """Bake and publish. `playbook(address)` converges the build instance, `answers(address)` says whether its sshd does
    (both may raise).

    Raises BakeError or CloudError; whatever is raised, the build instance is ended, and an image that wasn't finished
    is deregistered.
    """
    price = hourly(document, pool)
    said = f"{price:.2f} USD an hour (estimate)" if price else "price unknown"
    say(f"one {pool.instance_type} on demand for the time of the bake: {said}")
    run_id, seconds = uuid.uuid4().hex, {}
    tried: dict[Build, str | None] = {}
    name = f"ironburst-{document.cluster}-{pool.name}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{run_id[:4]}"
    image, begun, available, ended = None, False, False, False
    try:
        with _timed(seconds, "instance"):
            build = _launch(images, document, pool, base_image, run_id, tried, say, pause_s)
            machine = _until(
                lambda: _running(images.instance(build.token)), pool.boot_s, "the build instance is running", pause_s
            )
            say(f"{machine.id} runs in {machine.zone} at {machine.address}")
            _until(
                lambda: (answers or ssh_answers)(machine.address),
                pool.boot_s,
                f"sshd answers at {machine.address}",
                pause_s,
            )
            say("it answers by ssh")
        with _timed(seconds, "playbook"):
            playbook(machine.address)
        with _timed(seconds, "image"):
            software = pool.software or document.software
            tags = {"base-image": base_image, "serial": str(document.serial), "driver": str(software.driver)}
            tags = {f"ironburst:{key}": value for key, value in tags.items()}
            begun = True
            image = _create(images, build, machine.id, name, tags)
            say(f"image {image} begun; {machine.id} reboots")
            _until(lambda: _available(images, image), IMAGE_S, f"image {image} is available", pause_s)
            available = True
        try:
            previous = _answered(lambda: images.published(pool.image_parameter), pause_s)
            _answered(lambda: images.publish(pool.image_parameter, image), pause_s)
        except CloudError as error:
            where = pool.image_parameter
            raise BakeError(
                f"image {image} is made and kept, but {where} doesn't name it ({error}): write it there"
            ) from None
        say(f"{pool.image_parameter} = {image} (was: {previous or 'none'})")
    finally:
        with handled(signal.SIG_IGN):
            if begun and not available:
                _forget(images, image, name, say)
            ended = _end(images, tried, say, pause_s)
    if not ended:
        raise BakeError(
            f"image {image} is made and {pool.image_parameter} names it, but the build instance may still run: see above"
        )
    seconds = {step: round(value, 1) for step, value in seconds.items()}
    if price:
        say(f"about {price * sum(seconds.values()) / 3600:.2f} USD (estimate)")
    return Baked(pool.name, image, previous, pool.image_parameter, machine.id, machine.zone, price, seconds)


def _launch(
    images: Images,
    document: ClusterDocument,
    pool: PoolDocument,
    base_image: str,
    run_id: str,
    tried: dict[Build, str | None],
    say: Say,
    pause_s: float,
) -> Build:
    """Zone after zone. `tried` holds each request before it is sent, and the instance that it gave: what must be
    ended.
    """
    for place in pool.zones:
        build = Build(document.cluster, pool.name, place.launch_template_id, base_image, f"image-{run_id}-{place.zone}")
        tried[build] = None
        try:
            tried[build] = _answered(lambda build=build: images.launch(build), pause_s)
            return build
        except OutcomeUnknown:
            raise
        except CloudError as error:
            del tried[build]  # nothing was started
            if not isinstance(error, CapacityError):
                raise
            say(f"none in {place.zone}: {error}")
    raise BakeError(f"no zone of pool {pool.name} has a {pool.instance_type} on demand now: try again later")


def _create(images: Images, build: Build, instance_id: str, name: str, tags: dict[str, str]) -> str:
    """CreateImage takes no token, but names are unique: after a lost answer the name finds the image."""
    try:
        return images.create(build, instance_id, name, tags)
    except OutcomeUnknown:
        if found := images.named(name):
            return found
        raise


def _running(instance: Instance | None) -> Instance | None:
    if instance and instance.state not in ("pending", "running"):
        raise BakeError(
            f"the build instance {instance.id} is {instance.state} ({instance.reason or 'no reason given'})"
        )
    return instance if instance and instance.state == "running" and instance.address else None


def _available(images: Images, image_id: str) -> bool:
    image = images.image(image_id)
    if image and image.state not in ("pending", "available"):
        raise BakeError(f"image {image_id} is {image.state} ({image.reason or 'no reason given'})")
    return bool(image) and image.state == "available"


def _forget(images: Images, image: str | None, name: str, say: Say) -> None:
    """Deregister an unfinished image; one whose id never came back is looked for by its name."""
    try:
        if found := image or images.named(name):
            images.forget(found)
            say(f"image {found} wasn't finished: deregistered")
    except CloudError as error:
        say(f"image {name} wasn't finished and could not be deregistered ({error}): do it, and delete its snapshot")


def _end(images: Images, tried: dict[Build, str | None], say: Say, pause_s: float) -> bool:
    """End whatever the requests started; False (and a line) if that can't be made sure."""
    for build, known in tried.items():
        try:
            # a request whose answer we don't have: EC2 shows what it started within seconds, if it started anything
            found = known or _seen(lambda build=build: images.instance(build.token), pause_s)
            if found:
                _answered(lambda found=found: images.end([found]), pause_s)
                say(f"{found} ended")
        except CloudError as error:
            say(
                f"could not make sure that the build instance has ended ({error}): it has the client token {build.token}; terminate it"
            )
            return False
    return True


def _seen(look: Callable[[], Instance | None], pause_s: float) -> str | None:
    """The id of an instance that may come into sight."""
    deadline = time.monotonic() + APPEAR_S
    while (found := _answered(look, pause_s)) is None and time.monotonic() < deadline:
        time.sleep(pause_s)
    return found.id if found else None


def hourly(document: ClusterDocument, pool: PoolDocument) -> float | None:
    """USD an hour on demand: the document's price, else the catalogue's; None if neither knows."""
    known = pool.usd_per_hour.get("on-demand")
    listed = catalog.price(pool.instance_type, "on-demand", document.region or "") if known is None else None
    return listed.usd_per_hour if listed else known


def ssh_answers(address: str) -> bool:
    """Does an sshd say its banner at port 22?"""
    try:
        with socket.create_connection((address, 22), timeout=5) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


# ---- waiting and signals


def _until(condition: Callable[[], T], seconds: float, what: str, pause_s: float) -> T:
    """The condition's first true result, looked for ever less often; BakeError after `seconds`. No answer is no
    result.
    """
    deadline, pause, said = time.monotonic() + seconds, min(0.1, pause_s), ""
    while True:
        try:
            if result := condition():
                return result
        except OutcomeUnknown as error:
            said = f" (last: {error})"
        if time.monotonic() >= deadline:
            raise BakeError(f"waited {seconds:.0f} s in vain until {what}{said}")
        time.sleep(pause)
        pause = min(pause * 1.5, pause_s)


def _answered(call: Callable[[], T], pause_s: float) -> T:
    """Repeat a call that may be repeated unchanged until it is answered; OutcomeUnknown after REPEAT_S."""
    deadline = time.monotonic() + REPEAT_S
    while True:
        try:
            return call()
        except OutcomeUnknown:
            if time.monotonic() >= deadline:
                raise
        time.sleep(pause_s)


def stop(*_: object) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds[step] = time.monotonic() - began
