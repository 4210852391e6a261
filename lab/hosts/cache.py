"""What all labs share and is built once: .lab/cache/<kind>-<hash of the recipe>/.

A module that builds such a folder names it with `path_of`, asks for it with `built`, and ends with `main`.
"""

import ast
import hashlib
import inspect
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from lab.hosts.box import Box
from lab.system import CHECKOUT, LabError, locked, run

NEW_NAMESPACES = ["--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--propagation", "private"]


def path_of(kind: str, root: Path, *recipe: object) -> Path:
    """Folder of what this recipe gives: the same parts give the same folder."""
    return root / "cache" / f"{kind}-{hashlib.sha256(repr(recipe).encode()).hexdigest()[:12]}"


def code_of(function: Callable[..., object]) -> str:
    """A function's code without its comments and layout, to be part of a recipe."""
    return ast.dump(ast.parse(inspect.getsource(function)))


def sha256(file: Path) -> str:
    """SHA-256 of a file's content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def built(module: str, root: Path, target: Path, *which: str) -> Path:
    """`target`, built now by `python -m module` if it isn't there. Several callers at once build it once. `which`: the
    one of several that the module builds.
    """
    if target.is_dir():
        return target
    with locked(root / "locks" / f"{_kind(target)}.lock"):
        if not target.is_dir():
            _build_apart(module, root, target, *which)
            forget_older(root, target)
    return target


def made(root: Path, target: Path, make: Callable[[Path], None]) -> Path:
    """`target`, which `make` fills in an empty folder beside it if it isn't there. Several callers at once make it
    once.
    """
    with locked(root / "locks" / f"{_kind(target)}.lock"):
        if not target.is_dir():
            aside = target.with_suffix(".new")
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            make(aside)
            aside.rename(target)
            forget_older(root, target)
    return target


def forget_older(root: Path, target: Path) -> None:
    """Remove what older recipes left beside `target`, unless a lab is up that may still use it."""
    if any(Box(folder.parent.name, root).is_up() for folder in root.glob("*/box.pid")):
        return
    for folder in target.parent.glob(f"{_kind(target)}-*"):
        if folder != target:
            shutil.rmtree(folder)


def _kind(target: Path) -> str:
    return target.name.split("-")[0]


def _build_apart(module: str, root: Path, target: Path, *which: str) -> None:
    """Run a build module in its own mount and process namespace; killed with its caller, it leaves no mount and no
    process.
    """
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", *NEW_NAMESPACES, sys.executable, "-m", module, str(root)]
    command += which
    run(command, cwd=CHECKOUT, env=os.environ | {"PYTHONPATH": str(CHECKOUT)})
    if not target.is_dir():
        raise LabError(f"the recipe in {module} was edited while it was built: run the same again")


def main(target_of: Callable[..., Path], build: Callable[..., None]) -> None:
    """A build module as a program: `python -m module ROOT [WHICH]` builds what isn't there."""
    root, which = Path(sys.argv[1]), sys.argv[2:]
    target = target_of(root, *which)
    try:
        if not target.is_dir():
            build(root, target, *which)
    except LabError as error:
        sys.exit(str(error))
