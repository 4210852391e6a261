"""The wheel, and its files where no checkout is."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """Built from a copy: a build leaves files beside the sources."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "ironburst", source / "ironburst", ignore=shutil.ignore_patterns("__pycache__"))
    argv = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", built, source]
    subprocess.run(argv, check=True, timeout=120)
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """A folder with the wheel's files, for PYTHONPATH; what it needs is this environment's."""
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site
