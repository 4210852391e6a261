"""What the demo's story asks of the cloud that it plays in. A room each: lab/demo/aws.py, google.py, azure.py; together
they are lab/demo/all.py.
"""

from __future__ import annotations

import base64
import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from lab.hosts.box import Box
from lab.system import wait_for

MUNGE_KEY = base64.b64encode(secrets.token_bytes(96)).decode()
"""the same in every cloud's store: a secret has a copy in each"""
CONTROL_PORT = 5001


class Commands(Protocol):
    """What a cloud's room needs of the box that the demo runs in (lab.demo.inside.Boxed)."""

    box: Box
    env: dict[str, str]
    document: Path
    aws_config: Path

    def run(
        self, command: Sequence[str], *, ok: Sequence[int] = (0,), log: str | None = None, stdin: str | None = None
    ) -> str:
        """Run to the end and return standard output; LabError unless the exit code is in `ok`."""
        ...

    def spawn(self, command: Sequence[str], log: str) -> int:
        """Start a daemon in the box; its pid there."""
        ...


def control(inside: Commands, verb: str, path: str, port: int = CONTROL_PORT, **body: object) -> object:
    """One call of a lab cloud's switchboard (capacity, faults, interruptions, images, leftovers)."""
    arguments = [verb, f"http://127.0.0.1:{port}{path}", *([json.dumps(body)] if verb == "POST" else [])]
    return json.loads(inside.run([sys.executable, "-m", "lab.aws.client", *arguments]))


class DemoCloud(Protocol):
    """Where the story plays: one cloud of the lab, or several in one stack. Everything runs in the lab's box."""

    name: str
    """as the story calls it"""
    stack: str
    """of stacks/"""
    stand_in: str
    """for the report: what isn't real"""

    @property
    def rooms(self) -> Sequence[Room]:
        """The clouds, in the order in which their offers are taken."""
        ...

    def environment(self, run: Path, /) -> dict[str, str]:
        """For every program in the box; `run`: a folder for files."""
        ...

    def start(self, inside: Commands) -> str:
        """Start its daemon, and do what an operator does once in an account; what was made, for people."""
        ...

    def sign_in(self, inside: Commands, outputs: Mapping[str, str]) -> None:
        """Let the head, and nobody else, be the controller of the stack's outputs; the lab's cloud enforces it."""
        ...

    def on_head(self, inside: Commands) -> dict[str, tuple[str, int]]:
        """{path: (text, mode)} of the controller's credentials."""
        ...

    def settings(self, inside: Commands, /) -> dict[str, str]:
        """The controller's environment."""
        ...

    def libraries(self, folder: Path, root: Path, /) -> str:
        """Put what the controller needs of the cloud's client below `folder`, the head's root; what PYTHONPATH has it
        as, or empty. `root`: of all labs.
        """
        ...

    def take_away(self, inside: Commands) -> None:
        """What `start` and `sign_in` made in the account."""
        ...


class Room(DemoCloud, Protocol):
    """One cloud."""

    instance_type: str
    """that the pool rents"""
    capacity: ClassVar[Mapping[tuple[str, str], int]]
    """what the world sells, by zone and market: no spot in the first zone, so that the first request is refused"""
    no_capacity: str
    """the code of a refusal, as events have it"""
    notice_s: float
    """from the notice to the end of a spot instance; time is compressed here"""
    base_image: str
    """that images are baked of"""
    login: str
    """who logs in at a machine of that image"""
    control_port: int = CONTROL_PORT
    metadata_port: int = 80

    @property
    def rooms(self) -> Sequence[Room]:
        return (self,)

    def serve(self, inside: Commands, program: str) -> None:
        """Start its daemon, lab.PROGRAM, and wait until it answers."""
        ports = ["--control-port", str(self.control_port), "--metadata-port", str(self.metadata_port)]
        inside.spawn([sys.executable, "-m", f"lab.{program}", "--prefix", inside.box.prefix, *ports], program)
        url = f"http://127.0.0.1:{self.control_port}"
        inside.run([sys.executable, "-c", f"from lab.aws.client import wait_ready; wait_ready(60, '{url}')"])

    def control(self, inside: Commands, verb: str, path: str, **body: object) -> object:
        """One call of its switchboard."""
        return control(inside, verb, path, self.control_port, **body)

    def wait_for_end(self, inside: Commands) -> None:
        """Of its last instance."""
        gone = "the end of the last instance"
        wait_for(lambda: not self.control(inside, "GET", "/lab/instances"), 60, gone, pause=0.2)


def room_of(cloud: DemoCloud, instance_type: str) -> Room:
    """The room that sells it."""
    return next(room for room in cloud.rooms if room.instance_type == instance_type)
