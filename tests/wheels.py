"""Wheels of ironburst, built from this checkout."""

import shutil
import subprocess
import sys
from pathlib import Path

import ironburst

ROOT = Path(__file__).parents[1]


def build(scratch: Path, folder: Path, version: str = "") -> Path:
    """The wheel, in `folder`; of another version than this one's if one is given. Built from a copy in `scratch`: a
    build leaves files beside the sources.
    """
    source = scratch / (version or "source")
    shutil.copytree(ROOT / "ironburst", source / "ironburst", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    if version:
        file = source / "ironburst/__init__.py"
        file.write_text(file.read_text().replace(ironburst.__version__, version))
    argv = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, source]
    subprocess.run(argv, check=True, timeout=120)
    (path,) = folder.glob(f"ironburst-{version or ironburst.__version__}-*.whl")
    return path
