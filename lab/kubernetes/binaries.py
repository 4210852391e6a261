"""The control plane's programs, built once from Go modules; modules/*/go.mod and go.sum fix versions and hashes.

They lie in .lab/cache/kubernetes-<hash of modules and flags>/. A build that is interrupted goes on where it was. A real
kubelet is built apart, and only when it is asked for.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lab.go import STRIPPED, Program
from lab.go import build as go_build
from lab.hosts.cache import forget_older, made, path_of
from lab.system import LAB_ROOT, locked

KUBERNETES = "1.36.3"
MODULES = Path(__file__).parent / "modules"
OPTIONAL = Path(__file__).parent / "optional"
NEWER = "1.37.2"  # what a kubeadm of the same source says, where an upgrade is tried


def _says(version: str) -> str:
    """The linker's flags. Without them the programs say v0.0.0 and clients take them for something ancient."""
    says, (major, minor, _) = "-X k8s.io/component-base/version.", version.split(".")
    return f"{STRIPPED} {says}gitVersion=v{version} {says}gitMajor={major} {says}gitMinor={minor}"


def _kubernetes(name: str) -> Program:
    return Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", _says(KUBERNETES))


PROGRAMS = (
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    _kubernetes("kubectl"),  # for people
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
)

KUBELET = Program("kubelet", "kubelet", "k8s.io/kubernetes/cmd/kubelet", _says(KUBERNETES))
KUBEADM = Program(f"kubeadm-{KUBERNETES}", "kubeadm", "k8s.io/kubernetes/cmd/kubeadm", _says(KUBERNETES))
NEWER_KUBEADM = Program(f"kubeadm-{NEWER}", "kubeadm", "k8s.io/kubernetes/cmd/kubeadm", _says(NEWER))
ETCDCTL = Program("etcdctl", "etcdctl", "go.etcd.io/etcd/etcdctl/v3")
ETCDUTL = Program("etcdutl", "etcdctl", "go.etcd.io/etcd/etcdutl/v3")
OF_KUBEADM = (KUBEADM, NEWER_KUBEADM, ETCDCTL, ETCDUTL)
"""what a control plane of kubeadm's is tried with, beside the others"""
KARPENTER = Program("karpenter", "karpenter", "sigs.k8s.io/karpenter/kwok")  # its own stand-in for a cloud


def folder(root: Path = LAB_ROOT) -> Path:
    """Where the programs lie, or will."""
    texts = [path.read_text() for path in sorted(MODULES.glob("*/go.*"))]
    return path_of("kubernetes", Path(root).resolve(), texts, PROGRAMS)


def built(root: Path = LAB_ROOT) -> bool:
    """True if `build` has nothing to do."""
    return folder(root).is_dir()


def build(root: Path = LAB_ROOT, compiling: Callable[[str, int], object] = lambda *_: None) -> Iterator[str]:
    """Build what isn't there, and yield each program's name before its turn (minutes, on a busy machine an hour;
    nothing if all is there). `compiling`: as lab.go's.

    LabError without a module's source, or if a program doesn't compile.
    """
    target, root = folder(root), Path(root).resolve()
    with locked(root / "locks" / "kubernetes.lock"):
        if target.is_dir():
            return
        aside = target.with_suffix(".new")
        aside.mkdir(parents=True, exist_ok=True)
        for program in PROGRAMS:
            yield program.name
            go_build(program, aside / program.name, MODULES / program.module, compiling)
        aside.rename(target)
        if not any(root.glob("*/kubernetes/settings.json")):  # else a control plane is up that uses them
            forget_older(root, target)


def kubelet(root: Path = LAB_ROOT) -> Path:
    """A real kubelet; built now (minutes) if it isn't there. LabError as `build`."""
    return _optional("kubelet", (KUBELET,), root) / KUBELET.name


def kubeadm(root: Path = LAB_ROOT) -> Path:
    """The folder with OF_KUBEADM; built now (two minutes) if it isn't there. LabError as `build`."""
    return _optional("kubeadm", OF_KUBEADM, root)


def karpenter(root: Path = LAB_ROOT) -> Path:
    """A real Karpenter, whose nodes are kwok's; built now (minutes) if it isn't there. LabError as `build`."""
    return _optional("karpenter", (KARPENTER,), root) / KARPENTER.name


def karpenter_built(root: Path = LAB_ROOT) -> bool:
    """True if `karpenter` has nothing to do."""
    return _optional_path("karpenter", (KARPENTER,), root).is_dir()


def kubeadm_built(root: Path = LAB_ROOT) -> bool:
    """True if `kubeadm` has nothing to do."""
    return _optional_path("kubeadm", OF_KUBEADM, root).is_dir()


def _optional_path(name: str, programs: Sequence[Program], root: Path) -> Path:
    modules = dict.fromkeys(program.module for program in programs)
    texts = [path.read_text() for module in modules for path in sorted((OPTIONAL / module).glob("go.*"))]
    return path_of(name, Path(root).resolve(), texts, programs)


def _optional(name: str, programs: Sequence[Program], root: Path) -> Path:
    """The folder with programs of modules in optional/."""

    def make(aside: Path) -> None:
        for program in programs:
            go_build(program, aside / program.name, OPTIONAL / program.module)

    return made(Path(root).resolve(), _optional_path(name, programs, root), make)
