"""An environment of Python packages on shared storage, as researchers have them: Debian's PyTorch (for CPUs), Open MPI
and Jupyter, unpacked, with a bin/activate.

Cached as .lab/cache/environment-<hash of the recipe>/. Two things of it differ from what a site's users have: PyPI has
no PyTorch for CPUs alone, and Debian's is built without libuv, which torchrun's store is made without here.
"""

import re
import shutil
from pathlib import Path

from lab.hosts import cache, rootfs
from lab.packages.repository import mirror
from lab.system import LAB_ROOT, run

PACKAGES = ["python3-torch", "python3-mpi4py", "python3-jupyter-server", "jupyter-core"]
LEFT_OUT = ("libtorch-test", "python3-hypothesis")  # for PyTorch's own tests
# Modules of PyTorch that make a store without saying which
STORES = (
    "rendezvous.py",
    *(
        f"elastic/rendezvous/{name}.py"
        for name in (
            "c10d_rendezvous_backend",
            "dynamic_rendezvous",
            "static_tcp_rendezvous",
        )
    ),
)
STORE = re.compile(r"(?<=[ .]TCPStore\()((?:[^()]|\([^()]*\))*?),?\s*\)")
ACTIVATE = """\
# of bash: `source FOLDER/bin/activate`
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
libraries=$root/usr/lib/x86_64-linux-gnu
export PATH=$root/bin:$root/usr/bin:$PATH PYTHONPATH=$root/usr/lib/python3/dist-packages USE_LIBUV=0
export LD_LIBRARY_PATH=$root/usr/lib:$libraries:$libraries/blas:$libraries/lapack
export OPAL_PREFIX=$root/usr PMIX_PREFIX=$root/usr OMP_NUM_THREADS=1
unset root libraries
"""


def path(root: Path = LAB_ROOT) -> Path:
    """Where the environment of today's recipe lies (or will lie)."""
    code = [cache.code_of(function) for function in (_build, _without_libuv, mirror)]
    recipe = (PACKAGES, LEFT_OUT, STORES, STORE.pattern, ACTIVATE, code)
    return cache.path_of("environment", root, rootfs.base_path(root).name, *recipe)


def put(folder: Path, root: Path = LAB_ROOT) -> None:
    """Make it `folder`, by hard links; built now (half a minute, 200 MB from Debian) if it isn't in the cache."""
    rootfs.base_image(root)
    run(["cp", "--archive", "--link", str(cache.built("lab.packages.environment", root, path(root))), str(folder)])


def _build(root: Path, target: Path) -> None:
    new, debs = target.with_suffix(".new"), target.with_suffix(".debs")
    for folder in (new, debs):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    mirror(root, debs, rootfs.SUITE, PACKAGES)
    for deb in sorted(debs.glob("*.deb")):
        if not deb.name.startswith(LEFT_OUT):
            run(["dpkg-deb", "--extract", str(deb), str(new)])
    shutil.rmtree(debs)
    for unused in ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/include"):
        shutil.rmtree(new / unused, ignore_errors=True)
    for name in STORES:
        _without_libuv(new / "usr/lib/python3/dist-packages/torch/distributed" / name)
    (new / "bin").mkdir()
    (new / "bin/activate").write_text(ACTIVATE)
    (new / "bin/python").symlink_to("/usr/bin/python3")
    new.rename(target)


def _without_libuv(module: Path) -> None:
    """Stores whose caller doesn't say which get the other kind."""

    def said(call: re.Match[str]) -> str:
        return call[0] if "use_libuv" in call[1] else f"{call[1]}, use_libuv=False)"

    module.write_text(STORE.sub(said, module.read_text()))


if __name__ == "__main__":
    cache.main(path, _build)
