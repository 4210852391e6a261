"""The lab's Kubernetes control plane, for tests."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lab.kubernetes import binaries
from lab.kubernetes.commands import Options
from lab.kubernetes.control_plane import ControlPlane

BUILT = pytest.mark.skipif(not binaries.built(), reason="the lab's Kubernetes isn't built: make kubernetes")


@contextmanager
def running(name: str, options: Options | None = None) -> Iterator[ControlPlane]:
    """A control plane of this process's own, as long as the block."""
    plane = ControlPlane(f"t-{name}-{os.getpid()}")
    try:
        plane.up(options, tied=True)
        yield plane
    finally:
        plane.down()
