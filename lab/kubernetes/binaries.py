"""The control plane's programs, built once from Go modules; modules/*/go.mod and go.sum fix versions and hashes.

They lie in .lab/cache/kubernetes-<hash of modules and flags>/. A build that is interrupted goes on where it was. A real
kubelet is built apart, and only when it is asked for.
"""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.hosts.cache import forget_older, path_of
from lab.system import LAB_ROOT, LabError, locked

KUBERNETES = "1.36.3"
MODULES = Path(__file__).parent / "modules"
OPTIONAL = Path(__file__).parent / "optional"
STRIPPED = "-s -w"
# Without them the programs say v0.0.0 and clients take them for something ancient
_SAYS = "-X k8s.io/component-base/version."
SAYS_VERSION = f"{STRIPPED} {_SAYS}gitVersion=v{KUBERNETES} {_SAYS}gitMajor=1 {_SAYS}gitMinor=36"


@dataclass(frozen=True)
class Program:
    """A program, and the package of a module in modules/ that it is built from."""

    name: str
    module: str
    package: str
    link: str = STRIPPED


def _kubernetes(name: str) -> Program:
    return Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", SAYS_VERSION)


PROGRAMS = (
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    _kubernetes("kubectl"),  # for people
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
)

KUBELET = _kubernetes("kubelet")
KARPENTER = Program("karpenter", "karpenter", "sigs.k8s.io/karpenter/kwok")  # its own stand-in for a cloud


def folder(root: Path = LAB_ROOT) -> Path:
    """Where the programs lie, or will."""
    texts = [path.read_text() for path in sorted(MODULES.glob("*/go.*"))]
    return path_of("kubernetes", Path(root).resolve(), texts, PROGRAMS)


def built(root: Path = LAB_ROOT) -> bool:
    """True if `build` has nothing to do."""
    return folder(root).is_dir()


def build(root: Path = LAB_ROOT) -> Iterator[str]:
    """Build what isn't there, and yield each program's name before its turn (minutes; nothing if all is there).

    LabError without Go, without a module, or if a program doesn't compile.
    """
    target, root = folder(root), Path(root).resolve()
    with locked(root / "locks" / "kubernetes.lock"):
        if target.is_dir():
            return
        aside = target.with_suffix(".new")
        aside.mkdir(parents=True, exist_ok=True)
        for program in PROGRAMS:
            yield program.name
            _build(program, aside / program.name, MODULES / program.module)
        aside.rename(target)
        if not any(root.glob("*/kubernetes/settings.json")):  # else a control plane is up that uses them
            forget_older(root, target)


def kubelet(root: Path = LAB_ROOT) -> Path:
    """A real kubelet; built now (minutes) if it isn't there. LabError as `build`."""
    return _apart(KUBELET, root)


def karpenter(root: Path = LAB_ROOT) -> Path:
    """A real Karpenter, whose nodes are kwok's; built now (minutes) if it isn't there. LabError as `build`."""
    return _apart(KARPENTER, root)


def has(program: Program, root: Path = LAB_ROOT) -> bool:
    """True if a program that is built apart is there."""
    return _place(program, root).is_dir()


def _place(program: Program, root: Path) -> Path:
    texts = [path.read_text() for path in sorted((OPTIONAL / program.name).glob("go.*"))]
    return path_of(program.name, Path(root).resolve(), texts, program)


def _apart(program: Program, root: Path) -> Path:
    target, root = _place(program, root), Path(root).resolve()
    with locked(root / "locks" / f"{program.name}.lock"):
        if not target.is_dir():
            aside = target.with_suffix(".new")
            aside.mkdir(parents=True, exist_ok=True)
            _build(program, aside / program.name, OPTIONAL / program.name)
            aside.rename(target)
            forget_older(root, target)
    return target / program.name


def command(program: Program, target: Path) -> list[str]:
    """The command that builds a program, to be run in its module's folder."""
    flags = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", program.link]
    return ["go", "build", *flags, "-o", str(target), program.package]


def _build(program: Program, target: Path, module: Path) -> None:
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    try:
        done = subprocess.run(command(program, target), cwd=module, env=environment, text=True, capture_output=True)
    except FileNotFoundError:
        raise LabError(
            "the lab's Kubernetes is built from source, and there is no 'go' on PATH: install Go 1.26 or newer "
            "(from 1.21 on Go fetches that itself), then run the same again"
        ) from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("go: downloading")]
        raise LabError(
            f"building {program.name} failed: {lines[-1].strip() if lines else 'no message'} (it needs Go 1.26 and the "
            f"modules' sources; see it whole: cd {module} && go build {program.package})"
        )
