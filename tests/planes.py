"""The lab's Kubernetes control plane, for tests."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lab.kubernetes import binaries
from lab.kubernetes.access import Api
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


def fixtures(name: str, options: Options | None = None) -> tuple[Any, Any]:
    """Of a module, `plane, api = planes.fixtures("NAME")`: a control plane of its own, and its API as admin."""

    @pytest.fixture(scope="module")
    def plane() -> Iterator[ControlPlane]:
        with running(name, options) as plane:
            yield plane

    @pytest.fixture(scope="module")
    def api(plane: ControlPlane) -> Api:
        return plane.api()

    return plane, api
