"""`ironburst image POOL`: bake the image of a pool's rented nodes and write its id to the pool's parameter.

One on-demand instance of the pool's launch template, converged by playbooks/image.yml, becomes the image. The instance is ended in every
case: after success, an error, Ctrl-C or SIGTERM. The parameter changes last: a failed bake leaves the pool with the image that it had.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from ironburst import catalog
from ironburst.adapters.ansible import Ansible, Event
from ironburst.adapters.aws_images import AwsImages, Build
from ironburst.document import ClusterDocument, DocumentError, PoolDocument, read
from ironburst.ports import CapacityError, CloudError, Instance, OutcomeUnknown

IMAGE_S = 3600.0  # EC2 copies a big root disk for tens of minutes
REPEAT_S = 60.0  # how long a call without an answer is repeated
APPEAR_S = 15.0  # how long EC2 may not show an instance that it has started
AMI = re.compile(r"ami-([0-9a-f]{8}|[0-9a-f]{17})")
EXIT_CODES = """exit codes:
  0    the image is made, and the pool's parameter names it
  1    a crash, which is a bug
  2    bad input: no document, no such pool, inventory, key or base image; nothing was started
  3    the bake failed; the pool keeps the image that it had, and the build instance is ended (if not, the last line says so)
  130  Ctrl-C or SIGTERM; as 3

example: ironburst image p5 --document .lab/lab/document.json --base-image ami-0ba5e0000000000a1 --inventory inventory/lab"""
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


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser(
        "image",
        help="bake the image of a pool's rented nodes",
        description="Start one on-demand instance of the pool, converge it with playbooks/image.yml, make an image of it and write the "
        "image's id to the pool's parameter, from where the controller takes it at every launch. The instance is ended in every case.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("pool", help="name of a pool of the document")
    parser.add_argument("--document", type=Path, help="the published ClusterDocument (default: IRONBURST_DOCUMENT)")
    parser.add_argument("--base-image", required=True, metavar="AMI", help="image to start from: the distribution's, or an earlier bake")
    parser.add_argument("--inventory", type=Path, required=True, help="folder of an environment, as in inventory/lab")
    parser.add_argument("--ssh-key", type=Path, help="private key for the build instance (default: what the inventory says)")
    parser.add_argument("--user", help="who logs in there (default: the document's ssh user)")
    parser.add_argument("--json", action="store_true", help="the result as JSON on stdout; progress goes to stderr")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s  {line}", file=sys.stderr if arguments.json else sys.stdout, flush=True)

    try:
        document, path = _document(arguments)
        pool = _pool(document, arguments)
        images = AwsImages(document.region or "")
        if (base := images.image(arguments.base_image)) is None or base.state != "available":
            what = f"is {base.state} there" if base else f"is not in {document.region}, or not shared with this account"
            return _refuse(f"--base-image {arguments.base_image} {what}: give an available image")
    except (DocumentError, ValueError) as error:
        return _refuse(str(error))
    except CloudError as error:
        return _failed(str(error))
    variables = {"ansible_ssh_private_key_file": str(arguments.ssh_key.resolve())} if arguments.ssh_key else {}
    variables |= {"image_user": arguments.user} if arguments.user else {}
    playbook = _playbook(Ansible(arguments.inventory, path), pool, variables, say)
    try:
        with _signals(_stop):
            baked = bake(images, document, pool, arguments.base_image, playbook, say)
    except (BakeError, CloudError) as error:
        return _failed(str(error))
    except KeyboardInterrupt:
        print("image: stopped; the pool keeps the image that it had", file=sys.stderr)
        return 130
    print(json.dumps(asdict(baked), indent=1) if arguments.json else baked.image)
    return 0


# ---- the bake


def bake(
    images: AwsImages,
    document: ClusterDocument,
    pool: PoolDocument,
    base_image: str,
    playbook: Callable[[str], None],
    say: Say,
    *,
    answers: Callable[[str], bool] | None = None,
    pause_s: float = 5.0,
) -> Baked:
    """Bake and publish. `playbook(address)` converges the build instance, `answers(address)` says whether its sshd does (both may raise).

    Raises BakeError or CloudError; whatever is raised, the build instance is ended, and an image that wasn't finished is deregistered.
    """
    price = hourly(document, pool)
    say(f"one {pool.instance_type} on demand for the time of the bake: " + (f"{price:.2f} USD an hour (estimate)" if price else "price unknown"))
    run_id, seconds = uuid.uuid4().hex, {}
    tried: dict[Build, str | None] = {}
    name = f"ironburst-{document.cluster}-{pool.name}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{run_id[:4]}"
    image, available, ended = None, False, False
    try:
        with _timed(seconds, "instance"):
            build = _launch(images, document, pool, base_image, run_id, tried, say, pause_s)
            machine = _until(lambda: _running(images.instance(build.token)), pool.boot_s, "the build instance is running", pause_s)
            say(f"{machine.id} runs in {machine.zone} at {machine.address}")
            _until(lambda: (answers or ssh_answers)(machine.address), pool.boot_s, f"sshd answers at {machine.address}", pause_s)
            say("it answers by ssh")
        with _timed(seconds, "playbook"):
            playbook(machine.address)
        with _timed(seconds, "image"):
            tags = {"ironburst:base-image": base_image, "ironburst:serial": str(document.serial), "ironburst:driver": document.software.driver}
            image = _create(images, build, machine.id, name, tags)
            say(f"image {image} begun; {machine.id} reboots")
            _until(lambda: _available(images, image), IMAGE_S, f"image {image} is available", pause_s)
            available = True
        try:
            previous = _answered(lambda: images.published(pool.image_parameter), pause_s)
            _answered(lambda: images.publish(pool.image_parameter, image), pause_s)
        except CloudError as error:
            raise BakeError(f"image {image} is made and kept, but {pool.image_parameter} doesn't name it ({error}): write it there") from None
        say(f"{pool.image_parameter} = {image} (was: {previous or 'none'})")
    finally:
        with _signals(signal.SIG_IGN):
            if image and not available:
                _forget(images, image, say)
            ended = _end(images, tried, say, pause_s)
    if not ended:
        raise BakeError(f"image {image} is made and {pool.image_parameter} names it, but the build instance may still run: see above")
    seconds = {step: round(value, 1) for step, value in seconds.items()}
    if price:
        say(f"about {price * sum(seconds.values()) / 3600:.2f} USD (estimate)")
    return Baked(pool.name, image, previous, pool.image_parameter, machine.id, machine.zone, price, seconds)


def _launch(
    images: AwsImages,
    document: ClusterDocument,
    pool: PoolDocument,
    base_image: str,
    run_id: str,
    tried: dict[Build, str | None],
    say: Say,
    pause_s: float,
) -> Build:
    """Zone after zone. `tried` holds each request before it is sent, and the instance that it gave: what must be ended."""
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


def _create(images: AwsImages, build: Build, instance_id: str, name: str, tags: dict[str, str]) -> str:
    """CreateImage takes no token, but names are unique: after a lost answer the name finds the image."""
    try:
        return images.create(build, instance_id, name, tags)
    except OutcomeUnknown:
        if found := images.named(name):
            return found
        raise


def _running(instance: Instance | None) -> Instance | None:
    if instance and instance.state not in ("pending", "running"):
        raise BakeError(f"the build instance {instance.id} is {instance.state} ({instance.reason or 'no reason given'})")
    return instance if instance and instance.state == "running" and instance.address else None


def _available(images: AwsImages, image_id: str) -> bool:
    image = images.image(image_id)
    if image and image.state not in ("pending", "available"):
        raise BakeError(f"image {image_id} is {image.state} ({image.reason or 'no reason given'})")
    return bool(image) and image.state == "available"


def _forget(images: AwsImages, image: str, say: Say) -> None:
    try:
        images.forget(image)
        say(f"image {image} wasn't finished: deregistered")
    except CloudError as error:
        say(f"image {image} wasn't finished and could not be deregistered ({error}): do it, and delete its snapshot")


def _end(images: AwsImages, tried: dict[Build, str | None], say: Say, pause_s: float) -> bool:
    """End whatever the requests started; False (and a line) if that can't be made sure."""
    for build, known in tried.items():
        try:
            # a request whose answer we don't have: EC2 shows what it started within seconds, if it started anything
            found = known or _seen(lambda build=build: images.instance(build.token), pause_s)
            if found:
                _answered(lambda found=found: images.end([found]), pause_s)
                say(f"{found} ended")
        except CloudError as error:
            say(f"could not make sure that the build instance has ended ({error}): it has the client token {build.token}; terminate it")
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


def _playbook(ansible: Ansible, pool: PoolDocument, variables: dict[str, str], say: Say) -> Callable[[str], None]:
    host = f"image-{pool.name}"

    def play(address: str) -> None:
        seen: set[str] = set()

        def told(event: Event) -> None:
            if event.host == host and event.role in pool.roles and event.role not in seen:
                seen.add(event.role)
                say(f"role {event.role}")

        with _signals():
            done = ansible.play(
                "image.yml", variables={"image_pool": pool.name, "image_address": address} | variables, on_event=told
            )
        result = done.hosts.get(host)
        if done.returncode or not result:
            errors = [h.error for h in done.hosts.values() if h.error] + ([done.error] if done.error else [])
            raise BakeError(f"playbooks/image.yml ended with {done.returncode}: {errors[0] if errors else 'it was stopped'}")
        say(f"{host} is converged: {result.changed} tasks changed it")

    return play


# ---- waiting and signals


def _until(condition: Callable[[], T], seconds: float, what: str, pause_s: float) -> T:
    """The condition's first true result, looked for ever less often (up to `pause_s`); BakeError after `seconds`. No answer is no result."""
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


@contextlib.contextmanager
def _signals(handler: Any = None) -> Iterator[None]:
    """Another handler of Ctrl-C and SIGTERM inside; without one, only keep what is inside from changing them (ansible-runner does)."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in kept if handler is not None else ():
            signal.signal(number, handler)
        yield
    finally:
        for number, before in kept.items():
            signal.signal(number, before)


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds[step] = time.monotonic() - began


# ---- what was given


def _document(arguments: argparse.Namespace) -> tuple[ClusterDocument, Path]:
    given = arguments.document or os.environ.get("IRONBURST_DOCUMENT")
    if not given:
        raise ValueError("no ClusterDocument is named: give --document PATH or set IRONBURST_DOCUMENT (`ironburst publish` writes one)")
    return read(given), Path(given)


def _pool(document: ClusterDocument, arguments: argparse.Namespace) -> PoolDocument:
    """The pool; ValueError for this or another argument that can't be."""
    if not (arguments.inventory / "stack.yml").is_file():
        raise ValueError(f"{arguments.inventory} is no inventory of this repository: it has no stack.yml; inventory/lab has one")
    if not AMI.fullmatch(arguments.base_image):
        raise ValueError(f"--base-image {arguments.base_image!r}: must be an image id, ami- and 8 or 17 hexadecimal digits")
    if arguments.ssh_key and not arguments.ssh_key.is_file():
        raise ValueError(f"--ssh-key {arguments.ssh_key}: there is no such file")
    for pool in document.pools:
        if pool.name == arguments.pool:
            return pool
    known = ", ".join(pool.name for pool in document.pools) or "none"
    raise ValueError(f"cluster {document.cluster} has no pool {arguments.pool!r}; its pools are: {known}")


def _refuse(sentence: str) -> int:
    print(f"image: {sentence}", file=sys.stderr)
    return 2


def _failed(sentence: str) -> int:
    print(f"image: {sentence}", file=sys.stderr)
    return 3
