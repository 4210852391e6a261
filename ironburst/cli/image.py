"""`ironburst image POOL`: bake the image of a pool's rented nodes and write its id to the pool's parameter.

One on-demand instance, converged by playbooks/image.yml and stopped, becomes the image. The instance is ended in every
case: after success, an error, Ctrl-C or SIGTERM. The parameter changes last: a failed bake leaves the pool with the
image that it had.

Ansible logs in with a key that is made for this build and gone after it, as the base image's own user, and only where
the host keys are those of the instance's console.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ironburst.adapters.ansible import Ansible
from ironburst.baking.first_contact import Login
from ironburst.baking.images import Say, bake, stop
from ironburst.cli import Subparsers
from ironburst.cli.playbook_options import add_declaration, declaration, progress
from ironburst.convergence.ports import PlaybookRun, TaskEvent
from ironburst.document import ClusterDocument, DocumentError, PoolDocument
from ironburst.ports import CloudError
from ironburst.ports.images import BakeError
from ironburst.system.signals import handled
from ironburst.wiring import clouds

EXIT_CODES = f"""exit codes:
  0    the image is made, and the pool's parameter names it
  1    a crash, which is a bug
  2    bad input: no document, no such pool, inventory, key or base image; nothing was started
  3    the bake failed; the pool keeps the image that it had, and the build instance is ended \
(if not, the last line says so)
  130  Ctrl-C or SIGTERM; as 3

example: ironburst image p5 --document .lab/lab/document.json --base-image {clouds.EXAMPLE.EXAMPLE} \
--inventory inventory/lab"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `image` to the command line."""
    parser = subparsers.add_parser(
        "image",
        description="Start one on-demand instance (of cloud.images.build_type, else of the pool's type), converge it "
        "with playbooks/image.yml, stop it, make an image of it and write the image's id to the pool's parameter, "
        "from where the controller takes it at every launch. Then the pool's older images are deleted but for "
        "cloud.images.keep of them and those in use. The instance is ended in every case; one that a "
        "killed bake left is ended by the next bake after 6 hours.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("pool", help="name of a pool of the document")
    add_declaration(parser)
    parser.add_argument(
        "--base-image", required=True, metavar="ID", help="image to start from: the distribution's, or an earlier bake"
    )
    parser.add_argument(
        "--ssh-key", type=Path, help="private key for the build instance (default: one that is made for this build)"
    )
    parser.add_argument("--user", help="who logs in there (default: ssh.cloud_user, else that of the system's images)")
    parser.add_argument("--json", action="store_true", help="the result as JSON on stdout; progress goes to stderr")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Bake; the exit code is of EXIT_CODES."""
    say = progress(arguments)
    try:
        path, document = declaration(arguments)
        pool = _pool(document, arguments)
        document = document.in_cloud(pool)
        images = clouds.images(document)
        if (base := images.image(arguments.base_image)) is None or base.state != "available":
            what = f"is {base.state} there" if base else f"is not in {document.region}, or not shared with this account"
            return _refuse(f"--base-image {arguments.base_image} {what}: give an available image")
    except (DocumentError, ValueError) as error:
        return _refuse(str(error))
    except CloudError as error:
        return _failed(str(error))
    ansible = Ansible(arguments.inventory, path)
    user = arguments.user or document.ssh.user_at("cloud", pool.os)
    try:
        with tempfile.TemporaryDirectory(prefix="ironburst-") as folder, handled(stop):
            key = arguments.ssh_key.resolve() if arguments.ssh_key else _new_key(Path(folder))
            login = Login(_public(key), Path(folder) / "known_hosts")
            variables = {
                "image_user": user,
                "image_known_hosts": str(login.known_hosts),
                "ansible_ssh_private_key_file": str(key),
            }
            playbook = _playbook(ansible, pool, variables, say)
            baked = bake(images, document, pool, arguments.base_image, playbook, say, login=login)
    except (BakeError, CloudError) as error:
        return _failed(str(error))
    except KeyboardInterrupt:
        print("image: stopped; the pool keeps the image that it had", file=sys.stderr)
        return 130
    print(json.dumps(asdict(baked), indent=1) if arguments.json else baked.image)
    return 0


def _new_key(folder: Path) -> Path:
    """A key pair that nobody else has, for one build."""
    key = folder / "key"
    _ssh_keygen("-q", "-t", "ed25519", "-N", "", "-C", "ironburst-image-build", "-f", str(key))
    return key


def _public(key: Path) -> str:
    """The public half of a private key."""
    return _ssh_keygen("-y", "-P", "", "-f", str(key))


def _ssh_keygen(*words: str) -> str:
    try:
        return subprocess.run(["ssh-keygen", *words], check=True, text=True, capture_output=True).stdout.strip()
    except FileNotFoundError:
        raise BakeError("there is no ssh-keygen here: install OpenSSH's client") from None
    except subprocess.CalledProcessError as error:
        raise BakeError(f"ssh-keygen {words[-1]}: {error.stderr.strip() or 'failed'}") from None


def _playbook(ansible: Ansible, pool: PoolDocument, variables: dict[str, str], say: Say) -> Callable[[str], None]:
    host = f"image-{pool.name}"

    def play(address: str) -> None:
        begun: set[str] = set()

        def follow(event: TaskEvent) -> None:
            if event.host == host and event.role in pool.roles and event.role not in begun:
                begun.add(event.role)
                say(f"role {event.role}")

        place = {"image_pool": pool.name, "image_address": address}
        playbook = ansible.play("image.yml", variables=place | variables, on_event=follow)
        result = playbook.hosts.get(host)
        if playbook.returncode or not result:
            raise BakeError(f"playbooks/image.yml ended with {playbook.returncode}: {_first_error(playbook)}")
        say(f"{host} is converged: {result.changed} tasks changed it")

    return play


def _first_error(playbook: PlaybookRun) -> str:
    errors = [result.error for result in playbook.hosts.values()] + [playbook.error]
    return next((error for error in errors if error), "no message")


# ---- what was given


def _pool(document: ClusterDocument, arguments: argparse.Namespace) -> PoolDocument:
    """The pool; ValueError for this or another argument that can't be."""
    pool = document.pool(arguments.pool)
    ids = clouds.image_ids(document.in_cloud(pool) if pool else document)
    if ids and not re.fullmatch(ids.FORM, arguments.base_image):
        raise ValueError(f"--base-image {arguments.base_image!r}: must be an image id, {ids.WORDS}")
    if arguments.ssh_key and not arguments.ssh_key.is_file():
        raise ValueError(f"--ssh-key {arguments.ssh_key}: there is no such file")
    if pool is None:
        known = ", ".join(pool.name for pool in document.pools) or "none"
        raise ValueError(f"cluster {document.cluster} has no pool {arguments.pool!r}; its pools are: {known}")
    return pool


def _refuse(sentence: str) -> int:
    print(f"image: {sentence}", file=sys.stderr)
    return 2


def _failed(sentence: str) -> int:
    print(f"image: {sentence}", file=sys.stderr)
    return 3
