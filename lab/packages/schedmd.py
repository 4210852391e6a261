"""SchedMD's own packages of Slurm, built from SchedMD's source by `ironburst packages slurm` for a suite of Debian that
is a system's userland. Real, but an Ubuntu's are built on Debian.

The source is what Debian's archive has as slurm-wlm's: SchedMD's tarball under another name, with SchedMD's debian/ in
it. Another release is built from a tarball that somebody has. Cached as .lab/cache/schedmd<suite>-<hash of the recipe>/
(a quarter of an hour, once) and served as http://10.78.0.1/schedmd<suite>/slurm/, with its key.asc, and .../libraries/:
Debian's, which they need.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from ironburst.adapters.slurm import build as slurm_build
from lab import names
from lab.hosts import cache, rootfs, systems
from lab.hosts.box import Box
from lab.packages import apt
from lab.packages.repository import SERVED, mirror
from lab.system import CHECKOUT, LAB_ROOT, LabError, run

VERSION, SOURCE = "24.11.5", "trixie"  # the suite whose source it is
SHA256 = "e1a5547edd212c38b5e3230a284133f777b32746551f094aaa81cc4af375e332"  # of the tarball as Debian has it
TOOLS = ["dpkg-dev", "apt-utils", "gnupg", "fakeroot", "build-essential"]
KEY = "lab@example.invalid"
# In the chroot: its arguments are the tarball and its SHA-256
PROGRAM = f"""import os, sys
from pathlib import Path
from ironburst.adapters.slurm.build import build
print(build(Path(sys.argv[1]), sys.argv[2], Path("/repository"), "{KEY}", jobs=os.cpu_count() or 1))
"""


def path(root: Path, suite: str, tarball: str = "") -> Path:
    """Where the repository for a suite lies (or will lie), of the known release or of a tarball's."""
    code = [cache.code_of(function) for function in (_build, _within, source, _needs, mirror, *apt.STEPS)]
    made_by = Path(slurm_build.__file__).read_text()
    base = rootfs.base_path(root, suite).name
    of = (cache.sha256(Path(tarball)),) if tarball else (VERSION, SOURCE, SHA256)
    kind = f"schedmd{'given' if tarball else ''}{suite}"
    return cache.path_of(kind, root, base, *of, TOOLS, made_by, code)


def folder(suite: str, tarball: str = "", root: Path = LAB_ROOT) -> Path:
    """The repository; built now if it isn't there. Several callers at once build it once."""
    rootfs.base_image(root, suite)
    which = (suite, tarball) if tarball else (suite,)
    return cache.built("lab.packages.schedmd", root, path(root, *which), *which)


def serve(box: Box, system: str, tarball: str = "") -> list[dict[str, object]]:
    """Put them beside the repositories that the lab serves; their entries of base_apt_repositories."""
    found = folder(systems.of(system).suite, tarball, box.root)
    link = box.dir / SERVED / found.name.split("-")[0]
    if not link.exists():
        link.symlink_to(found)
    url = f"{names.REPOSITORY_URL}/{link.name}"
    keys = {"slurm": f"slurm/{slurm_build.KEY}", "libraries": "lab.asc"}
    return [
        {
            "name": f"{link.name}-{part}",
            "url": f"{url}/{part}",
            "suite": slurm_build.SUITE,
            "components": ["main"],
            "key_url": f"{url}/{key}",
            "key_sha256": cache.sha256(link / key),
        }
        for part, key in keys.items()
    ]


# --- building: runs in its own mount namespace ------------------------------------------------------------------------


def _build(root: Path, target: Path, suite: str, tarball: str = "") -> None:
    new = target.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    up, work, mount = (new / part for part in ("up", "work", "mnt"))
    for part in (up, work, mount):
        part.mkdir(parents=True)
    below = rootfs.base_image(root, suite)
    run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={below},upperdir={up},workdir={work}", str(mount)])
    run(["mount", "-t", "proc", "proc", str(mount / "proc")])
    _within(mount, suite, tarball)
    shutil.copytree(mount / "repository", new / "slurm")
    # lazily: what apt's and gpg's helpers left may end a moment later
    run(["umount", "--recursive", "--lazy", str(mount)])
    for part in (up, work, mount):
        shutil.rmtree(part)
    (new / "libraries/pool").mkdir(parents=True)
    mirror(root, new / "libraries/pool", suite, [*_needs(new / "slurm/pool"), "libpmix-dev"])
    apt.index(new / "libraries", {"Origin": "Debian", "Label": "Debian"})
    apt.sign(new, ["libraries"])
    new.rename(target)


def _within(mount: Path, suite: str, given: str) -> None:
    """Build it in the chroot `mount`, into /repository there."""
    (mount / "etc/apt/sources.list").write_text(rootfs.apt_sources(suite))
    shutil.copy("/etc/resolv.conf", mount / "etc/resolv.conf")
    shutil.copytree(CHECKOUT / "ironburst", mount / "code/ironburst", ignore=shutil.ignore_patterns("__pycache__"))
    (mount / "code/build.py").write_text(PROGRAM)
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "HOME": "/root", "PYTHONPATH": "/code"}
    inside = ["nice", "chroot", str(mount)]
    install = [*inside, "apt-get", "-y", "-qq", "--no-install-recommends"]
    run([*inside, "apt-get", "update", "-qq"], env=env)
    run([*install, "install", *TOOLS], env=env)
    key = [
        "gpg",
        "--batch",
        "--quiet",
        "--passphrase",
        "",
        "--quick-gen-key",
        f"lab <{KEY}>",
        "rsa2048",
        "sign",
        "never",
    ]
    run([*inside, *key], env=env)
    if given:
        (mount / "source").mkdir()
        tarball = Path(shutil.copy(given, mount / "source"))
        run(["tar", "-xf", str(tarball), "-C", str(mount / "source")])
    else:
        tarball = source(mount / "source")
    # what the build needs, by SchedMD's own list
    run([*install, "build-dep", f"/source/{re.sub('[.]tar[.].*', '', tarball.name)}"], env=env)
    run([*inside, "python3", "/code/build.py", f"/source/{tarball.name}", cache.sha256(tarball)], env=env)
    run([*inside, "gpgconf", "--kill", "all"], env=env)


def source(place: Path) -> Path:
    """SchedMD's tarball in `place`, as SchedMD names it, and unpacked beside it. LabError where it isn't the known
    one.
    """
    unpacked = place / f"slurm-{VERSION}"
    unpacked.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="lab-slurm-") as scratch:
        lists = Path(scratch, "sources.list")
        first = next(line for line in rootfs.apt_sources(SOURCE).splitlines() if line.split()[2] == SOURCE)
        lists.write_text(f"deb-src{first.removeprefix('deb')}\n")
        state = Path(scratch, "lists")  # apt empties it
        state.mkdir()
        settings = {"Dir::Etc::sourcelist": lists, "Dir::Etc::sourceparts": "/dev/null", "Dir::State::lists": state}
        options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        run(["apt-get", *options, "update", "-qq"])
        listing = run(["apt-get", *options, "source", "--print-uris", "slurm-wlm"])
        uris = [line.split()[0].strip("'") for line in listing.splitlines() if ".orig.tar." in line]
        if not uris or f"_{VERSION}.orig" not in uris[0]:
            raise LabError(f"Debian's {SOURCE} has another source of Slurm than {VERSION}: name it in {__file__}")
        original = f"{scratch}/orig.tar.gz"
        run(["/usr/lib/apt/apt-helper", "download-file", uris[0], original, f"SHA256:{SHA256}"])
        run(["tar", "-xzf", original, "--strip-components=1", "-C", str(unpacked)])
    tarball = place / f"slurm-{VERSION}.tar.gz"
    run(["tar", "-czf", str(tarball), "-C", str(place), unpacked.name])
    return tarball


def _needs(pool: Path) -> list[str]:
    """What the packages in `pool` depend on beside each other; of alternatives the first."""
    texts = [run(["dpkg-deb", "--field", str(deb), "Depends"]) for deb in sorted(pool.glob("*.deb"))]
    first = {re.split(r"[ :|(]", word.strip())[0] for text in texts for word in text.split(",")}
    return sorted(name for name in first if name and not name.startswith("slurm-smd"))


if __name__ == "__main__":
    cache.main(path, _build)
