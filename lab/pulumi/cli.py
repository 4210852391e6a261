"""The pulumi CLI, built once from Pulumi's own Go modules, beside the language host that no registry has."""

import shutil
from pathlib import Path

from lab.go import STRIPPED, Program, build
from lab.hosts import cache
from lab.system import LAB_ROOT, locked

HERE = Path(__file__).parent
VERSION = "3.274.1"
SAYS = f"-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version={VERSION}"
CLI = Program("pulumi", "pulumi", "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi", f"{STRIPPED} {SAYS}")
HOST = HERE / "pulumi-language-python"


def folder(root: Path = LAB_ROOT) -> Path:
    """Where it lies, or will."""
    module = [(HERE / name).read_text() for name in ("go.mod", "go.sum")]
    return cache.path_of("pulumi", Path(root).resolve(), module, CLI)


def path(root: Path = LAB_ROOT) -> Path:
    """The CLI, which finds the language host beside it; built now (six minutes of processor) if it isn't there.
    LabError if it can't be.
    """
    target = folder(root)
    with locked(Path(root) / "locks" / "pulumi.lock"):
        if not target.is_dir():
            aside = target.with_suffix(".new")
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            build(CLI, aside / CLI.name, HERE)
            (aside / HOST.name).symlink_to(HOST)
            aside.rename(target)
            cache.forget_older(root, target)
    return target / CLI.name


if __name__ == "__main__":
    print(path())
