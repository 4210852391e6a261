"""What the demo's story asks of the cloud that it plays in. A room each: lab/demo/aws.py, lab/demo/google.py."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from lab.hosts.box import Box


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


def control(inside: Commands, verb: str, path: str, **body: object) -> object:
    """One call of the lab cloud's switchboard (capacity, faults, interruptions, images, leftovers)."""
    arguments = [verb, path, *([json.dumps(body)] if verb == "POST" else [])]
    return json.loads(inside.run([sys.executable, "-m", "lab.aws.client", *arguments]))


class DemoCloud(Protocol):
    """One cloud of the lab. Everything runs in the lab's box."""

    name: str
    """as the story calls it"""
    stack: str
    """of stacks/"""
    instance_type: str
    """that the pool rents"""
    capacity: Mapping[tuple[str, str], int]
    """what the world sells, by zone and market: no spot in the first zone, so that the first request is refused"""
    no_capacity: str
    """the code of a refusal, as events have it"""
    notice_s: float
    """from the notice to the end of a spot instance; time is compressed here"""
    base_image: str
    """that images are baked of"""
    stand_in: str
    """for the report: what isn't real"""

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
