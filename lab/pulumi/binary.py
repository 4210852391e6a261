"""The pulumi CLI: the one on PATH, or one that is built once from Pulumi's own Go modules, beside a language host,
which no registry has. And Pulumi's kubernetes plugin, built likewise.
"""

import json
import os
import shutil
import sys
from pathlib import Path

from lab.go import STRIPPED, Program, build, source
from lab.hosts import cache
from lab.system import LAB_ROOT, LabError

HERE = Path(__file__).parent
VERSION = "3.274.1"
SAYS = f"-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version={VERSION}"
CLI = Program("pulumi", "pulumi", "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi", f"{STRIPPED} {SAYS}")
HOST = HERE / "pulumi-language-python"
PROVIDER = "github.com/pulumi/pulumi-kubernetes/provider/v4"
PROVIDER_VERSION = "4.25.0-alpha.20260115033456+f47bc2d6f199"  # the commit after 4.24 that go.mod requires
PLUGIN = Program(
    "pulumi-resource-kubernetes", "kubernetes", ".", f"{STRIPPED} -X {PROVIDER}/pkg/version.Version={PROVIDER_VERSION}"
)
MODULE = HERE / "kubernetes"
PLUGINS = [HERE.parent / name / "bin" for name in ("aws_plugin", "azure_plugin", "google_plugin", "kubernetes_plugin")]


def path() -> Path:
    """The CLI by ENGINE of the environment: auto (the default): the one on PATH, or else the lab's own; built: the
    lab's own. LabError for another word, or if it can't be built.
    """
    wanted = os.environ.get("ENGINE") or "auto"
    if wanted not in ("auto", "built"):
        raise LabError(f"ENGINE={wanted!r} is not known: auto (pulumi on PATH, else the lab's) or built (the lab's)")
    on_path = shutil.which("pulumi")
    return Path(on_path) if on_path and wanted == "auto" else built()


def environment(folder: Path, *programs: Path) -> dict[str, str]:
    """The CLI's variables for stacks of their own: state and home are in `folder` (made here), the lab's plugins are
    found before others and nothing is fetched. `programs`: folders that PATH names first.
    """
    (folder / "state").mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.pathsep.join([*map(str, (*programs, *PLUGINS)), os.environ["PATH"]]),
        "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
        "PULUMI_CONFIG_PASSPHRASE": "lab",
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }


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

    def make(aside: Path) -> None:
        print("building the pulumi CLI from its Go modules, once (minutes)", file=sys.stderr, flush=True)
        build(CLI, aside / CLI.name, HERE)

    target = cache.made(root, folder(root), make)
    host = target / HOST.name
    if host.resolve() != HOST:  # a new one, or the checkout was moved
        host.unlink(missing_ok=True)
        host.symlink_to(HOST)
    return target / CLI.name


def kubernetes_plugin(root: Path = LAB_ROOT) -> Path:
    """The folder of Pulumi's own kubernetes plugin; built now if it isn't there. LabError if it can't be."""
    module = [(MODULE / name).read_text() for name in ("go.mod", "go.sum", "main.go")]

    def make(aside: Path) -> None:
        print("building Pulumi's kubernetes plugin from its modules, once (minutes)", file=sys.stderr, flush=True)
        shutil.copytree(MODULE, aside, dirs_exist_ok=True)
        _embedded(source(PROVIDER, aside) / "cmd" / PLUGIN.name, aside)
        build(PLUGIN, aside / PLUGIN.name, aside)

    return cache.made(root, cache.path_of("plugin", Path(root).resolve(), module, PLUGIN), make)


def _embedded(theirs: Path, ours: Path) -> None:
    """The schema with the version in it, and the mapping, as generate.go of the plugin writes them."""
    schema = json.loads((theirs / "schema.json").read_text()) | {"version": PROVIDER_VERSION}
    mapping = json.loads((theirs / "terraform-mapping.json").read_text())
    for name, value in (("schema", schema), ("terraform-mapping", mapping)):
        (ours / f"{name}-embed.json").write_text(json.dumps(value, separators=(",", ":")))


if __name__ == "__main__":
    print(path())
