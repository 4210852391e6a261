"""The pulumi CLI: the one on PATH, or one that is built once from Pulumi's own Go modules, beside a language host,
which no registry has.
"""

import os
import shutil
import sys
from pathlib import Path

from lab.go import STRIPPED, Program, build
from lab.hosts import cache
from lab.system import LAB_ROOT, LabError, locked

HERE = Path(__file__).parent
VERSION = "3.274.1"
SAYS = f"-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version={VERSION}"
CLI = Program("pulumi", "pulumi", "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi", f"{STRIPPED} {SAYS}")
HOST = HERE / "pulumi-language-python"


def path() -> Path:
    """The CLI by ENGINE of the environment: auto (the default): the one on PATH, or else the lab's own; built: the
    lab's own. LabError for another word, or if it can't be built.
    """
    wanted = os.environ.get("ENGINE") or "auto"
    if wanted not in ("auto", "built"):
        raise LabError(f"ENGINE={wanted!r} is not known: auto (pulumi on PATH, else the lab's) or built (the lab's)")
    on_path = shutil.which("pulumi")
    return Path(on_path) if on_path and wanted == "auto" else built()


def name(cli: Path) -> str:
    """What it is, for people."""
    return f"the pulumi CLI {VERSION}, built by the lab" if cli.parent == folder() else "the pulumi CLI on PATH"


def folder(root: Path = LAB_ROOT) -> Path:
    """Where the lab's own lies, or will."""
    module = [(HERE / name).read_text() for name in ("go.mod", "go.sum")]
    return cache.path_of("pulumi", Path(root).resolve(), module, CLI)


def built(root: Path = LAB_ROOT) -> Path:
    """The lab's own CLI, which finds the language host beside it; built now (six minutes of processor) if it isn't
    there. LabError if it can't be.
    """
    target = folder(root)
    with locked(Path(root) / "locks" / "pulumi.lock"):
        if not target.is_dir():
            print("building the pulumi CLI from its Go modules, once (minutes)", file=sys.stderr, flush=True)
            aside = target.with_suffix(".new")
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            build(CLI, aside / CLI.name, HERE)
            aside.rename(target)
            cache.forget_older(root, target)
        host = target / HOST.name
        if host.resolve() != HOST:  # a new one, or the checkout was moved
            host.unlink(missing_ok=True)
            host.symlink_to(HOST)
    return target / CLI.name


if __name__ == "__main__":
    print(path())
