"""What the demo's story asks of the cloud that it plays in. A room each: lab/demo/aws.py, lab/demo/google.py."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from lab.demo.inside import Boxed


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

    def start(self, inside: Boxed) -> str:
        """Start its daemon, and do what an operator does once in an account; what was made, for people."""
        ...

    def sign_in(self, inside: Boxed, outputs: Mapping[str, str]) -> None:
        """Let the head, and nobody else, be the controller of the stack's outputs; the lab's cloud enforces it."""
        ...

    def on_head(self, inside: Boxed) -> dict[str, tuple[str, int]]:
        """{path: (text, mode)} of the controller's credentials."""
        ...

    def settings(self, inside: Boxed, /) -> dict[str, str]:
        """The controller's environment."""
        ...

    def libraries(self, folder: Path, root: Path, /) -> str:
        """Put what the controller needs of the cloud's client below `folder`, the head's root; what PYTHONPATH has it
        as, or empty. `root`: of all labs.
        """
        ...

    def take_away(self, inside: Boxed) -> None:
        """What `start` and `sign_in` made in the account."""
        ...
