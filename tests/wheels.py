"""Wheels of ironburst, built from this checkout, and environments that have one and what it declares, nothing else."""

import importlib.metadata
import json
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


def needs(requirements: Iterable[str], extras: Iterable[str] = ()) -> dict[str, importlib.metadata.Distribution]:
    """The distributions of this environment that pip would install for them, by name: with all that each requires."""
    found: dict[str, importlib.metadata.Distribution] = {}
    left = [(Requirement(each), frozenset(extras)) for each in requirements]
    while left:
        wanted, given = left.pop()
        name = canonicalize_name(wanted.name)
        if name in found or not _holds(wanted, given):
            continue
        found[name] = importlib.metadata.distribution(name)
        left += [(Requirement(each), frozenset(wanted.extras)) for each in found[name].requires or ()]
    return found


def _holds(wanted: Requirement, extras: Iterable[str]) -> bool:
    return not wanted.marker or any(wanted.marker.evaluate({"extra": each}) for each in ("", *extras))


def environment(wheel: Path, folder: Path, extras: Sequence[str] = ()) -> Path:
    """The Python of a virtual environment with the wheel and what its metadata requires, of which this one's files are
    shown there: no network, a second.
    """
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (metadata,) = importlib.metadata.distributions(name="ironburst", path=[str(site)])
    for name, distribution in needs(metadata.requires or (), extras).items():
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            assert not (site / top).exists(), f"{top} is {name}'s and another distribution's: copy its files"
            (site / top).symlink_to(str(distribution.locate_file(top)))
    return folder / "bin" / "python"


@dataclass(frozen=True)
class Done:
    """What a command said."""

    code: int
    stdout: str
    stderr: str


# One process that loads the package once; each command is a child of it
_PROGRAM = """
import json, os, signal, sys
import ironburst.cli
ironburst.cli.parser()
for number, argv in enumerate(json.load(sys.stdin)):
    sys.stdout.flush()
    if not (child := os.fork()):
        signal.alarm(90)  # one that hangs ends with -14
        for fd, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(f"{sys.argv[1]}/{number}.{name}", os.O_CREAT | os.O_WRONLY), fd)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        try:
            code = ironburst.cli.main(argv)
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
        os._exit(code)  # without the interpreter's own end, which takes longer than most of them
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def commands(python: Path, folder: Path, argvs: Sequence[Sequence[str]], environment: dict[str, str]) -> Iterator[Done]:
    """What each of them says in `folder`, one after the other, by the package of that Python."""
    said = folder / ".said"
    said.mkdir()
    done = subprocess.run(
        [python, "-P", "-c", _PROGRAM, said],
        cwd=folder,
        env=environment,
        input=json.dumps(argvs),
        capture_output=True,
        text=True,
        timeout=550,
    )
    assert done.returncode == 0, done.stderr
    for number, code in enumerate(done.stdout.split()):
        yield Done(int(code), *((said / f"{number}.{name}").read_text() for name in ("stdout", "stderr")))
