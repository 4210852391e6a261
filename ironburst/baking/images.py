"""Baking the image of a pool's rented nodes: one build instance, its image, and the parameter that names it.

The build instance is stopped before its disk is copied, and ended in every case: after success, an error, Ctrl-C or
SIGTERM. The parameter changes last: a failed bake leaves the pool with the image that it had. Then images that are
older than the declared number go, but for those that are still in use.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from ironburst.baking import first_contact
from ironburst.baking.choice import end_abandoned, hourly, root_of, superfluous
from ironburst.baking.first_contact import Login
from ironburst.document import ClusterDocument, PoolDocument, PoolZone
from ironburst.ports import CapacityError, CloudError, Instance, OutcomeUnknown
from ironburst.ports.images import BakeError, Build, Image, Images
from ironburst.system.signals import handled

IMAGE_S = 3600.0  # EC2 copies a big root disk for tens of minutes
CONSOLE_S = 600.0  # old hypervisors show a console some minutes late
STOP_S = 900.0  # a shutdown takes seconds; EC2 may take minutes over it
REPEAT_S = 60.0  # how long a call without an answer is repeated
APPEAR_S = 15.0  # how long EC2 may not show an instance that it has started
Say = Callable[[str], None]
Answers = Callable[[str], bool]
T = TypeVar("T")


@dataclass(frozen=True)
class Baked:
    """A bake that succeeded: the image is made, and `parameter` names it."""

    pool: str
    image: str
    previous: str | None  # image that the parameter named before
    parameter: str
    instance: str
    zone: str
    usd_per_hour: float | None  # None: unknown
    seconds: dict[str, float]  # that each step took
    retired: list[str]  # older images of the pool that were deleted


@dataclass(frozen=True)
class BuildInstance:
    """The build instance, once it runs. `build`: what it was launched from."""

    build: Build
    id: str
    zone: str
    address: str


def bake(
    images: Images,
    document: ClusterDocument,
    pool: PoolDocument,
    base_image: str,
    playbook: Callable[[str], None],
    say: Say,
    *,
    answers: Answers | None = None,
    login: Login | None = None,
    pause_s: float = 5.0,
) -> Baked:
    """End what a killed bake left, bake, publish, retire. `playbook(address)` converges the build instance,
    `answers(address)` says whether its sshd does (both may raise). With a `login` its key is let in, and its
    known_hosts file has the host keys of the console before the playbook is called.

    Raises BakeError or CloudError; then the build instance is ended, and an unfinished image is deregistered.
    """
    kind = document.images.build_type or pool.instance_type
    price = hourly(document, pool, kind)
    estimate = f"{price:.2f} USD an hour (estimate)" if price else "price unknown"
    end_abandoned(images, document.cluster, time.time(), say)
    say(f"one {kind} on demand for the time of the bake: {estimate}")
    work = _Bake(images, document, pool, root_of(images, base_image, pool), login, say, pause_s)
    seconds: dict[str, float] = {}
    try:
        with _timed(seconds, "instance"):
            machine = work.start_instance(answers or ssh_answers)
        with _timed(seconds, "playbook"):
            playbook(machine.address)
        with _timed(seconds, "image"):
            work.stop(machine)
            image = work.make_image(machine)
        previous = work.publish(image)
    finally:
        with handled(signal.SIG_IGN):
            ended = work.clean_up()
    if not ended:
        raise BakeError(
            f"image {image} is made and {pool.image} names it, but the build instance may still run: see above"
        )
    seconds = {step: round(value, 1) for step, value in seconds.items()}
    if price:
        say(f"about {price * sum(seconds.values()) / 3600:.2f} USD (estimate)")
    return Baked(
        pool=pool.name,
        image=image,
        previous=previous,
        parameter=pool.image,
        instance=machine.id,
        zone=machine.zone,
        usd_per_hour=price,
        seconds=seconds,
        retired=work.retire(image),
    )


class _Bake:
    """The steps of one bake, and what must be cleaned up whatever happens."""

    def __init__(
        self,
        images: Images,
        document: ClusterDocument,
        pool: PoolDocument,
        base: Image,
        login: Login | None,
        say: Say,
        pause_s: float,
    ):
        self._images, self._document, self._pool = images, document, pool
        self._base, self._login, self._say, self._pause_s = base, login, say, pause_s
        self._run_id = uuid.uuid4().hex
        moment = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
        self._name = f"ironburst-{document.cluster}-{pool.name}-{moment}-{self._run_id[:4]}"
        self._launches: dict[str, str | None] = {}  # token, before it is sent: the instance that it gave
        self._before: str | None = None  # what the pool's parameter named at the start
        self._image: str | None = None
        self._image_begun = self._image_available = False

    def start_instance(self, answers: Answers) -> BuildInstance:
        """The build instance, once its sshd answers and its host keys are known."""
        self._before = _answered(partial(self._images.published, self._pool.image), self._pause_s)
        build, boot_s = self._launch(), self._pool.boot_s
        machine = _until(
            lambda: _running(build, self._images.instance(build.token)),
            boot_s,
            "the build instance is running",
            self._pause_s,
        )
        self._say(f"{machine.id} runs in {machine.zone} at {machine.address}")
        _until(lambda: answers(machine.address), boot_s, f"sshd answers at {machine.address}", self._pause_s)
        self._say("it answers by ssh")
        if self._login:
            keys = _until(
                lambda: first_contact.host_keys(self._images.console(machine.id)),
                max(boot_s, CONSOLE_S),
                f"the console of {machine.id} shows its host keys (cloud-init prints them)",
                self._pause_s,
            )
            self._login.known_hosts.write_text(first_contact.known_hosts(machine.address, keys))
            self._say(f"its console shows {len(keys)} host keys")
        return machine

    def _launch(self) -> Build:
        """Zone after zone; the request that was granted."""
        pool = self._pool
        for place in pool.zones:
            if place.instance_type not in ("", pool.instance_type):
                continue  # the same zone again, for another type
            build = self._build(place)
            self._launches[build.token] = None
            try:
                self._launches[build.token] = _answered(partial(self._images.launch, build), self._pause_s)
                return build
            except OutcomeUnknown:
                raise
            except CloudError as error:
                del self._launches[build.token]  # nothing was started
                if not isinstance(error, CapacityError):
                    raise
                self._say(f"none in {place.zone}: {error}")
        raise BakeError(f"no zone of pool {pool.name} has a {build.instance_type} on demand now: try again later")

    def _build(self, place: PoolZone) -> Build:
        """The request of one zone. The pool's own reservation is for the pool's own type."""
        pool = self._pool
        kind = self._document.images.build_type or pool.instance_type
        own, its = kind == pool.instance_type, place.place.model_dump()
        return Build(
            cluster=self._document.cluster,
            pool=pool.name,
            instance_type=kind,
            place=its,
            security_groups=_answered(partial(self._images.security_groups, its), self._pause_s),
            base_image=self._base.id,
            root_device=self._base.root_device,
            root_gb=self._base.root_gb,
            root_mb_s=pool.root_disk_mb_s,
            token=f"image-{self._run_id}-{place.zone}",
            user_data=first_contact.user_data(self._login.public_key) if self._login else "",
            as_nodes=own,
            market="capacity-block" if own and "capacity-block" in pool.markets else "on-demand",
            zone=place.zone,
        )

    def stop(self, machine: BuildInstance) -> None:
        """Shut the build instance down: only a disk that nobody writes is whole in its copy."""
        _answered(partial(self._images.stop, machine.id), self._pause_s)
        _until(
            lambda: _stopped(self._images.instance(machine.build.token)),
            STOP_S,
            f"the build instance {machine.id} is stopped",
            self._pause_s,
        )
        self._say(f"{machine.id} is stopped")

    def make_image(self, machine: BuildInstance) -> str:
        """The id of the instance's image, once it is available."""
        software = self._pool.software or self._document.software
        tags = {
            "ironburst:base-image": self._base.id,
            "ironburst:serial": str(self._document.serial),
            "ironburst:driver": str(software.driver),
        }
        self._image_begun = True
        self._image = image = self._create(machine, tags)
        self._say(f"image {image} begun")
        _until(lambda: _available(self._images, image), IMAGE_S, f"image {image} is available", self._pause_s)
        self._image_available = True
        return image

    def _create(self, machine: BuildInstance, tags: dict[str, str]) -> str:
        """CreateImage takes no token, but names are unique: after a lost answer the name finds the image."""
        try:
            return self._images.create(machine.build, machine.id, self._name, tags)
        except OutcomeUnknown:
            if image := self._images.named(self._name):
                return image
            raise

    def publish(self, image: str) -> str | None:
        """Let the pool's parameter name the image; returns the one that it named before."""
        parameter = self._pool.image
        try:
            previous = _answered(partial(self._images.published, parameter), self._pause_s)
            if previous != self._before:  # by a bake that began later, it may be, from a newer declaration
                raise BakeError(f"image {image} is made and kept, but {parameter} was set to {previous} meanwhile")
            _answered(lambda: self._images.publish(parameter, image), self._pause_s)
        except CloudError as error:
            raise BakeError(
                f"image {image} is made and kept, but {parameter} doesn't name it ({error}): write it there"
            ) from None
        self._say(f"{parameter} = {image} (was: {previous or 'none'})")
        return previous

    def retire(self, image: str) -> list[str]:
        """Delete the pool's older images; those that are gone now. A failure is reported, and left to the next bake."""
        retired: list[str] = []
        try:
            baked = self._images.baked(self._document.cluster, self._pool.name)
            kept = {image, self._images.published(self._pool.image) or image}
            kept |= self._images.in_use([each.id for each in baked])
            for old in superfluous(baked, self._document.images.keep, kept):
                snapshots = self._images.forget(old)
                retired.append(old)
                left = f", but its snapshots {', '.join(snapshots)} stay: delete them" if snapshots else ""
                self._say(f"image {old} retired{left}")
        except CloudError as error:
            self._say(f"older images could not be retired ({error})")
        return retired

    def clean_up(self) -> bool:
        """Deregister an unfinished image and end the instance; False (and a line) if its end can't be made sure."""
        if self._image_begun and not self._image_available:
            self._forget_image()
        return self._end_instances()

    def _forget_image(self) -> None:
        """One whose id never came back is looked for by its name."""
        try:
            if image := self._image or self._images.named(self._name):
                left = self._images.forget(image)
                self._say(f"image {image} wasn't finished: deregistered{(left and f'; {left} stay') or ''}")
        except CloudError as error:
            self._say(
                f"image {self._name} wasn't finished and could not be deregistered ({error}): "
                "do it, and delete its snapshot"
            )

    def _end_instances(self) -> bool:
        """End whatever the requests started."""
        for token, known in self._launches.items():
            try:
                # a request whose answer we don't have: EC2 shows what it started within seconds, if it started anything
                instance = known or _appeared(partial(self._images.instance, token), self._pause_s)
                if instance:
                    _answered(partial(self._images.end, [instance]), self._pause_s)
                    self._say(f"{instance} ended")
            except CloudError as error:
                self._say(
                    f"could not make sure that the build instance has ended ({error}): "
                    f"it has the client token {token}; terminate it"
                )
                return False
        return True


def _running(build: Build, instance: Instance | None) -> BuildInstance | None:
    if instance is None:
        return None
    if instance.state not in ("pending", "running"):
        raise BakeError(
            f"the build instance {instance.id} is {instance.state} ({instance.reason or 'no reason given'})"
        )
    if instance.state == "pending" or not instance.address:
        return None
    return BuildInstance(build, instance.id, instance.zone, instance.address)


def _stopped(instance: Instance | None) -> bool:
    if instance and instance.state not in ("running", "stopping", "stopped"):
        raise BakeError(
            f"the build instance {instance.id} is {instance.state} ({instance.reason or 'no reason given'})"
        )
    return instance is not None and instance.state == "stopped"


def _available(images: Images, image_id: str) -> bool:
    image = images.image(image_id)
    if image is None:
        return False
    if image.state not in ("pending", "available"):
        raise BakeError(f"image {image_id} is {image.state} ({image.reason or 'no reason given'})")
    return image.state == "available"


def _appeared(look: Callable[[], Instance | None], pause_s: float) -> str | None:
    """The id of an instance that may come into sight."""
    deadline = time.monotonic() + APPEAR_S
    while (instance := _answered(look, pause_s)) is None and time.monotonic() < deadline:
        time.sleep(pause_s)
    return instance.id if instance else None


def ssh_answers(address: str) -> bool:
    """Does an sshd say its banner at port 22?"""
    try:
        with socket.create_connection((address, 22), timeout=5) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


# ---- waiting and signals


def _until(condition: Callable[[], T | None], seconds: float, what: str, pause_s: float) -> T:
    """The condition's first true result, looked for ever less often;
    BakeError after `seconds`. No answer is no result.
    """
    deadline, pause, last = time.monotonic() + seconds, min(0.1, pause_s), ""
    while True:
        try:
            if result := condition():
                return result
        except OutcomeUnknown as error:
            last = f" (last: {error})"
        if time.monotonic() >= deadline:
            raise BakeError(f"waited {seconds:.0f} s in vain until {what}{last}")
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
    """The signal handler that ends a bake."""
    raise KeyboardInterrupt


@contextlib.contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds[step] = time.monotonic() - began
