"""The wheel, and its files where no checkout is."""

import zipfile

import pytest

from tests import wheels


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """Of this checkout."""
    return wheels.build(tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """A folder with the wheel's files, for PYTHONPATH; what it needs is this environment's."""
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site
