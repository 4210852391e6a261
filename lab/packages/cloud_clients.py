"""What `pip install 'ironburst[google]'` or `[azure]` adds on a head: a cloud's clients for the base image's Python,
from the pinned, hashed requirements. Cached as .lab/cache/google-<hash of the recipe>/.
"""

import re
import shutil
import sys
from functools import partial
from importlib.metadata import requires
from pathlib import Path

from lab.hosts import cache
from lab.system import CHECKOUT, LAB_ROOT, run

WANTED = {
    "google": ("google-api-python-client", "google-auth", "google-auth-httplib2", "requests"),
    "azure": ("azure-identity", "azure-mgmt-compute", "azure-mgmt-network", "azure-mgmt-resource", "requests"),
}
PYTHON = "3.13"  # Debian 13's
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
APIS = ("compute.v1.json", "secretmanager.v1.json")  # of hundreds, 100 MB
PINNED = CHECKOUT / "requirements" / "runtime.txt"


def _closure(names: tuple[str, ...]) -> set[str]:
    """These distributions and what they need, as those that are installed here say it."""
    found, todo = set[str](), list(names)
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name not in found:
            found.add(name)
            said = [each for each in requires(name) or [] if "extra ==" not in each and "python_version <" not in each]
            todo += [match[0] for each in said if (match := re.match(r"[\w.-]+", each))]
    return found


def pinned(cloud: str) -> str:
    """The lines of the requirements that are about them."""
    wanted = _closure(WANTED[cloud])
    parts = re.split(r"(?m)^(?=\S+==)", PINNED.read_text())
    return "".join(each for each in parts if each.partition("==")[0] in wanted)


def path(cloud: str, root: Path = LAB_ROOT) -> Path:
    """Where it lies (or will lie)."""
    return cache.path_of(cloud, root, pinned(cloud), PYTHON, PLATFORMS, APIS, cache.code_of(_make))


def put(cloud: str, folder: Path, root: Path = LAB_ROOT) -> None:
    """Make it `folder`; installed now (40 MB from PyPI) if it isn't in the cache."""
    shutil.copytree(cache.made(root, path(cloud, root), partial(_make, cloud)), folder)


def _make(cloud: str, aside: Path) -> None:
    needed = aside.with_suffix(".txt")
    needed.write_text(pinned(cloud))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    where = ["--target", str(aside), "--python-version", PYTHON, "--only-binary=:all:", "--implementation", "cp"]
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    run([*pip, "--require-hashes", *where, *platforms, "--requirement", str(needed)])
    needed.unlink()
    documents = aside / "googleapiclient" / "discovery_cache" / "documents"
    for document in documents.glob("*.json"):
        if document.name not in APIS:
            document.unlink()
