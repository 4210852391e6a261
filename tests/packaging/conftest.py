"""The wheel, and environments that have it and what it declares."""

import pytest

from tests import wheels


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """Of this checkout."""
    return wheels.build(tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def alone(wheel, tmp_path_factory):
    """The Python of an environment with the wheel and its dependencies, without extras."""
    return wheels.environment(wheel, tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="session")
def with_kubernetes(wheel, tmp_path_factory):
    """The same with the extra of that name."""
    return wheels.environment(wheel, tmp_path_factory.mktemp("with-kubernetes"), ["kubernetes"])
