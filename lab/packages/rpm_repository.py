"""An EL's signed dnf repositories: stub packages of NVIDIA's with its module streams (`nv`), of EPEL's and of the
system's, with Debian's own RDMA tools.

Cached as .lab/cache/<system>nv-<hash of the recipe>/ and served beside the apt repositories, as
http://10.78.0.1/<system>/nv/, .../epel/, .../system/ and .../lab.asc (the key of packages and metadata).
"""

from __future__ import annotations

import shutil
from dataclasses import astuple
from pathlib import Path

from lab import names
from lab.hosts import cache, dressing, rpm, systems
from lab.hosts.box import Box
from lab.packages.repository import SERVED, repo_path, repositories
from lab.packages.rpm_packages import modules, repository_of, rpm_packages
from lab.system import LAB_ROOT, run

OWNER = "lab repository <lab@example.invalid>"
PARTS = ("nv", "epel", "system")


def path(root: Path, name: str) -> Path:
    """Where the repository of an EL lies (or will lie)."""
    packages = [astuple(package) for package in rpm_packages(_major(name))]
    code = [cache.code_of(function) for function in (_build, make_key, sign, index, rpm.build)]
    return cache.path_of(f"{name}nv", root, dressing.path(root, name).name, repo_path(root).name, packages, code)


def repository(name: str, root: Path = LAB_ROOT) -> Path:
    """Folder of an EL's repository; built now if it isn't there. Several callers at once build it once."""
    dressing.layer(systems.of(name), root)
    repositories(root)  # Debian's programs
    return cache.built("lab.packages.rpm_repository", root, path(root, name), name)


def serve(box: Box, name: str) -> list[dict[str, object]]:
    """Put the repositories of an EL beside those that the lab serves: them, as base_dnf_repositories has them."""
    link = box.dir / SERVED / name
    if not link.exists():
        link.symlink_to(repository(name, box.root))
    url = f"{names.REPOSITORY_URL}/{name}"
    key = {"key_url": f"{url}/lab.asc", "key_sha256": cache.sha256(link / "lab.asc"), "repo_gpgcheck": True}
    return [{"name": part, "url": f"{url}/{part}", "module_hotfixes": part == "nv"} | key for part in PARTS]


def client_files(name: str) -> dict[str, str]:
    """{path: text} of the .repo file that a host needs, by which module streams count."""
    url = f"{names.REPOSITORY_URL}/{name}"
    signed = f"gpgkey={url}/lab.asc\ngpgcheck=1\nrepo_gpgcheck=1\n"
    text = "".join(f"[lab-{part}]\nname=lab-{part}\nbaseurl={url}/{part}\n{signed}" for part in PARTS)
    return {"/etc/yum.repos.d/lab.repo": text}


def _major(name: str) -> int:
    return int(name.removeprefix("rhel"))


# --- building: runs in its own mount namespace ------------------------------------------------------------------------


def _build(root: Path, target: Path, name: str) -> None:
    new = target.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    up, work, mount = (new / part for part in ("up", "work", "mnt"))
    for folder in (up, work, mount):
        folder.mkdir(parents=True)
    below = ":".join(map(str, dressing.layers(systems.of(name), root)))
    run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={below},upperdir={up},workdir={work}", str(mount)])
    packages = rpm_packages(_major(name))
    built = rpm.build(mount, packages, repositories(root) / "debian/pool")
    make_key(mount)
    sign(mount, built)
    where = {package.name: repository_of(package) for package in packages}
    for part in PARTS:
        (mount / "srv" / part).mkdir(parents=True)
    for each in built:
        shutil.move(f"{mount}{each}", mount / "srv" / where[Path(each).name.rsplit("-", 2)[0]])
    for part in PARTS:
        index(mount, part, modules(packages, _major(name)) if part == "nv" else "")
    run(["chroot", str(mount), "env", "HOME=/root", "gpgconf", "--kill", "all"])
    shutil.copytree(mount / "srv", new / "served")
    run(["umount", str(mount)])
    for folder in (up, work, mount):
        shutil.rmtree(folder)
    for part in (new / "served").iterdir():
        part.rename(new / part.name)
    (new / "served").rmdir()
    new.rename(target)


def make_key(mount: Path) -> None:
    """A new key in the root `mount`, and its public half as /srv/lab.asc there."""
    gpg = ["chroot", str(mount), "env", "HOME=/root", "gpg", "--quiet", "--batch", "--yes"]
    run([*gpg, "--passphrase", "", "--quick-gen-key", OWNER, "rsa2048", "sign", "never"])
    (mount / "srv").mkdir(exist_ok=True)
    run([*gpg, "--armor", "--output", "/srv/lab.asc", "--export"])


def sign(mount: Path, built: list[str]) -> None:
    """Sign packages (paths in `mount`) with that key."""
    inside = ["chroot", str(mount), "env", "HOME=/root"]
    run([*inside, "rpmsign", "--define", f"_gpg_name {OWNER}", "--addsign", *built])


def index(mount: Path, part: str, modules_yaml: str = "") -> None:
    """The metadata of /srv/<part>, with module streams if it has some, signed with the same key."""
    inside = ["chroot", str(mount), "env", "HOME=/root"]
    run([*inside, "createrepo_c", "--quiet", f"/srv/{part}"])
    if modules_yaml:
        (mount / "tmp/modules.yaml").write_text(modules_yaml)
        run([*inside, "modifyrepo_c", "--mdtype=modules", "/tmp/modules.yaml", f"/srv/{part}/repodata"])
    signature = ["--armor", "--detach-sign", f"/srv/{part}/repodata/repomd.xml"]
    run([*inside, "gpg", "--quiet", "--batch", "--yes", *signature])


if __name__ == "__main__":
    cache.main(path, _build)
