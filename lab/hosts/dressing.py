"""What makes a host of Debian's userland one of another system (systems.py), as a layer over the base image.

An Ubuntu is a few files. An EL gets the real dnf and rpm, an rpm database in which one empty package stands for the
userland, EL's settings of dnf, and no apt or dpkg any more. Cached as .lab/cache/<system>-<hash of the recipe>/.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from lab.hosts import cache, rootfs, systems
from lab.hosts.rpm import TOP, Rpm, build
from lab.hosts.systems import System
from lab.system import LAB_ROOT, run

# createrepo-c, gnupg: the system's repository is made in this layer, too
DNF = [
    *("dnf", "dnf-plugins-core", "python3-systemd", "rpm", "createrepo-c", "gnupg"),
    *("firewalld", "policycoreutils", "selinux-utils", "chrony"),
]
HIDDEN = "opt/lab-debian"  # what Debian's own package tools become
TOOLS = ["apt", "apt-*", "dpkg", "dpkg-*", "update-alternatives"]
DNF_CONF = """[main]
gpgcheck=1
installonly_limit=3
clean_requirements_on_remove=True
best=True
skip_if_unavailable=False
reposdir=/etc/yum.repos.d
"""
# What the userland stands for. Each is a dependency, or a role's package, that the lab doesn't test: keep it short
USERLAND = (
    "/bin/sh, /usr/bin/sh, /bin/bash, /usr/bin/bash, /usr/bin/python3, /usr/sbin/useradd, /usr/sbin/groupadd, "
    "/usr/bin/getent, bash = 5.1.8, coreutils = 8.32, systemd = 252-55.el9, python3 = 3.9.21, kmod = 28, "
    "shadow-utils = 4.9, glibc = 2.34, dnf = 4.14.0, python3-dnf = 4.14.0, rpm = 4.16.1.3, openssh-server = 8.7"
)


def layers(system: System, root: Path = LAB_ROOT) -> list[Path]:
    """Lower layers of a disk, uppermost first. What isn't in the cache is built now (EL: two minutes)."""
    base = rootfs.base_image(root, system.suite)
    return [layer(system, root), base] if system.dressed else [base]


def layer(system: System, root: Path = LAB_ROOT) -> Path:
    """Of a dressed system; several callers at once build it once."""
    rootfs.base_image(root, system.suite)
    return cache.built("lab.hosts.dressing", root, path(root, system.name), system.name) / "layer"


def path(root: Path, name: str) -> Path:
    """Where the dressing of a system lies (or will lie)."""
    system = systems.of(name)
    code = [cache.code_of(function) for function in (_build, dress, _furnish, _as_el)]
    parts = (DNF, HIDDEN, TOOLS, DNF_CONF, USERLAND) if system.family == "rhel" else ()
    return cache.path_of(
        name, root, rootfs.base_path(root, system.suite).name, sorted(system.files.items()), parts, code
    )


# --- building: runs in its own mount namespace ------------------------------------------------------------------------


def _build(root: Path, target: Path, name: str) -> None:
    system, new = systems.of(name), target.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    up, work, mount = (new / part for part in ("layer", "work", "mnt"))
    for folder in (up, work, mount):
        folder.mkdir(parents=True)
    below = rootfs.base_image(root, system.suite)
    run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={below},upperdir={up},workdir={work}", str(mount)])
    dress(system, mount)
    run(["umount", str(mount)])
    for folder in (work, mount):
        shutil.rmtree(folder)
    new.rename(target)


def dress(system: System, mount: Path) -> None:
    """Make the Debian in `mount` that system."""
    if system.family == "rhel":
        _as_el(system, mount)
    _furnish(mount, system.files)


def _furnish(mount: Path, files: dict[str, str]) -> None:
    """Write files ("-> target": a symbolic link). os-release may lie at /etc itself."""
    (mount / "etc/os-release").unlink(missing_ok=True)
    (mount / "etc/os-release").symlink_to("../usr/lib/os-release")
    for name, text in files.items():
        file = mount / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        if text.startswith("-> "):
            file.symlink_to(text[3:])
        else:
            file.write_text(text)


def _as_el(system: System, mount: Path) -> None:
    """Install dnf and rpm, take Debian's tools away."""
    (mount / "etc/apt/sources.list").write_text(rootfs.apt_sources(system.suite))
    shutil.copy("/etc/resolv.conf", mount / "etc/resolv.conf")
    inside, env = ["chroot", str(mount)], os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    run([*inside, "apt-get", "update", "-qq"], env=env)
    run([*inside, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *DNF], env=env)
    run([*inside, "systemctl", "disable", "-q", "firewalld", "chrony"])
    major = system.name.removeprefix("rhel")
    (mount / "usr/bin/sh").unlink()
    (mount / "usr/bin/sh").symlink_to("bash")
    # Debian's rpm would keep another database for each user (~/.rpmdb)
    macros = f"%_dbpath /var/lib/rpm\n%dist .el{major}\n%rhel {major}\n"
    _furnish(mount, {"etc/rpm/macros": macros, "etc/dnf/dnf.conf": DNF_CONF})
    (mount / "etc/dnf/plugins/local.conf").write_text("[main]\nenabled = false\n")  # Debian's own
    (mount / "etc/yum.repos.d").mkdir(exist_ok=True)
    version = system.files["etc/rocky-release"].split()[3]
    release = f"redhat-release = {version}, system-release = {version}, system-release(releasever) = {major}"
    run([*inside, "rpm", "--initdb"])
    built = build(mount, [Rpm("lab-userland", "1", provides=USERLAND), Rpm("rocky-release", version, provides=release)])
    run([*inside, "rpm", "--install", "--nosignature", *built])
    hidden = mount / HIDDEN
    hidden.mkdir(parents=True)
    for pattern in TOOLS:
        for tool in (mount / "usr/bin").glob(pattern):
            shutil.move(tool, hidden / tool.name)
    shutil.move(mount / "var/lib/dpkg", hidden / "var-lib-dpkg")
    for gone in ("etc/apt", "usr/lib/python3/dist-packages/apt", "var/lib/apt", "var/cache/apt", TOP):
        shutil.rmtree(mount / gone, ignore_errors=True)
    for gone in ("etc/debian_version", "etc/resolv.conf"):
        (mount / gone).unlink(missing_ok=True)
    (mount / "etc/resolv.conf").touch()


if __name__ == "__main__":
    cache.main(path, _build)
