"""SchedMD's rpms of Slurm for an EL of the lab, built by `ironburst packages slurm`: its slurm.spec, the real rpmbuild.

Real, but built on the EL's userland, which is Debian's: what slurm.spec wants of EL's packages (munge-devel ...) is one
empty package there, for Debian's headers. Cached as .lab/cache/schedmd<system>-<hash of the recipe>/ and served as
http://10.78.0.1/schedmd<system>/slurm/, with its key.asc, and .../beside/: munge, MariaDB and libraries, Debian's, as
EL's packages have them.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from ironburst.adapters.slurm import build as slurm_build
from lab import names
from lab.hosts import cache, dressing, rootfs, rpm, systems
from lab.hosts.box import Box
from lab.hosts.rpm import Rpm
from lab.packages import rpm_repository, schedmd
from lab.packages.repository import SERVED, repo_path, repositories
from lab.packages.rpm_packages import UNITS
from lab.packages.stub import unit
from lab.system import CHECKOUT, LAB_ROOT, run

PARTS = {"slurm": f"slurm/{slurm_build.KEY}", "beside": "lab.asc"}
"""{repository: its key}"""
# Debian's programs that go into packages of EL's names; here for the libraries that they need
PROGRAMS = ["munge", "mariadb-server", "mariadb-client"]
# STAND-IN: what slurm.spec, and we, want at the build
WANTED = (
    "autoconf, automake, gcc, make, pkgconf, munge-devel, munge-libs, readline-devel, mariadb-devel = 10.5, "
    "perl(ExtUtils::MakeMaker), perl-devel, pam-devel, pkgconfig(lua), pkgconfig(dbus-1), pkgconfig(hwloc), systemd"
)
# As EL's redhat-rpm-config and systemd-rpm-macros have them
MACROS = """%_libdir %{_prefix}/lib64
%_unitdir %{_prefix}/lib/systemd/system
%systemd_post() [ $1 -ne 1 ] || systemctl --no-reload preset %* || : \\
%{nil}
%systemd_preun() [ $1 -ne 0 ] || systemctl --no-reload disable --now %* || : \\
%{nil}
%systemd_postun_with_restart() [ $1 -lt 1 ] || systemctl try-restart %* || : \\
%{nil}
"""
MY_CNF = "[client-server]\n!includedir /etc/my.cnf.d\n"
PREPARE = """#!/bin/sh
# As EL's: a database where there is none, root let in by who is asking
[ -d /var/lib/mysql/mysql ] ||
  mariadb-install-db --user=mysql --datadir=/var/lib/mysql --auth-root-authentication-method=socket --skip-test-db
"""


def path(root: Path, name: str) -> Path:
    """Where the repositories of an EL lie (or will lie)."""
    functions = (_build, _root_that_builds, _libraries, _beside, rpm.build, schedmd.source, rpm_repository.index)
    parts = (schedmd.VERSION, schedmd.SHA256, schedmd.PROGRAM, PROGRAMS, WANTED, MACROS, MY_CNF, PREPARE)
    made_by = Path(slurm_build.__file__).read_text()
    code = [cache.code_of(function) for function in functions]
    below = (dressing.path(root, name).name, repo_path(root).name)
    return cache.path_of(f"schedmd{name}", root, *below, *parts, made_by, code)


def folder(name: str, root: Path = LAB_ROOT) -> Path:
    """The repositories; built now (ten minutes) if they aren't there. Several callers at once build them once."""
    dressing.layer(systems.of(name), root)
    repositories(root)
    return cache.built("lab.packages.schedmd_rpms", root, path(root, name), name)


def serve(box: Box, name: str) -> list[dict[str, object]]:
    """Put them beside the repositories that the lab serves; their entries of base_dnf_repositories."""
    link = box.dir / SERVED / f"schedmd{name}"
    if not link.exists():
        link.symlink_to(folder(name, box.root))
    url = f"{names.REPOSITORY_URL}/{link.name}"
    return [
        {
            "name": f"schedmd-{part}",
            "url": f"{url}/{part}",
            "key_url": f"{url}/{key}",
            "key_sha256": cache.sha256(link / key),
            "repo_gpgcheck": True,
        }
        for part, key in PARTS.items()
    ]


# --- building: runs in its own mount namespace ------------------------------------------------------------------------


def _build(root: Path, target: Path, name: str) -> None:
    new, system = target.with_suffix(".new"), systems.of(name)
    shutil.rmtree(new, ignore_errors=True)
    up, work, mount = (new / part for part in ("up", "work", "mnt"))
    for part in (up, work, mount):
        part.mkdir(parents=True)
    below = rootfs.base_image(root, system.suite)
    run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={below},upperdir={up},workdir={work}", str(mount)])
    run(["mount", "-t", "proc", "proc", str(mount / "proc")])
    tarball = _root_that_builds(system, mount)
    rpm_repository.make_key(mount)
    inside = ["nice", "chroot", str(mount), "env", "HOME=/root", "PYTHONPATH=/code"]
    run([*inside, "python3", "/code/build.py", f"/{tarball.relative_to(mount)}", cache.sha256(tarball)])
    rpms = [f"/{file.relative_to(mount)}" for file in sorted((mount / "repository/Packages").glob("*.rpm"))]
    run([*inside, "rpm", "--install", "--nodeps", "--noscripts", *rpms])
    built = rpm.build(mount, _beside(root, mount, system, rpms), repositories(root) / "debian/pool")
    rpm_repository.sign(mount, built)
    (mount / "srv/beside").mkdir()
    for each in built:
        shutil.move(f"{mount}{each}", mount / "srv/beside")
    rpm_repository.index(mount, "beside")
    shutil.copytree(mount / "srv", new / "served")
    shutil.copytree(mount / "repository", new / "served/slurm")
    # lazily: what gpg's helpers left may end a moment later
    run(["umount", "--recursive", "--lazy", str(mount)])
    for part in (up, work, mount):
        shutil.rmtree(part)
    for part in (new / "served").iterdir():
        part.rename(new / part.name)
    (new / "served").rmdir()
    new.rename(target)


def _root_that_builds(system: systems.System, mount: Path) -> Path:
    """The EL with compilers, and SchedMD's tarball there."""
    (mount / "etc/apt/sources.list").write_text(rootfs.apt_sources(system.suite))
    shutil.copy("/etc/resolv.conf", mount / "etc/resolv.conf")
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    apt = ["chroot", str(mount), "apt-get", "-y", "-qq", "--no-install-recommends"]
    run([*apt, "update"], env=env)
    run([*apt, "install", "build-essential", *PROGRAMS], env=env)
    source = schedmd.source(mount / "source").with_suffix("").with_suffix("")
    run([*apt, "build-dep", f"/source/{source.name}"], env=env)
    for config in mount.glob(
        "usr/lib/*/perl*/Config_heavy.pl"
    ):  # where EL's perl puts manual pages: slurm.spec asks it
        config.write_text(config.read_text().replace("/usr/local/man/man3", "/usr/local/share/man/man3"))
    dressing.dress(system, mount)
    with (mount / "etc/rpm/macros").open("a") as macros:
        macros.write(MACROS)
    built = rpm.build(mount, [Rpm("lab-build", "1", provides=WANTED)])
    run(["chroot", str(mount), "rpm", "--install", "--nosignature", *built])
    shutil.copytree(CHECKOUT / "ironburst", mount / "code/ironburst", ignore=shutil.ignore_patterns("__pycache__"))
    (mount / "code/build.py").write_text(schedmd.PROGRAM)
    tarball = mount / f"source/{source.name}.tar.bz2"  # slurm.spec's Source
    run(["tar", "-cjf", str(tarball), "-C", str(source.parent), source.name])
    return tarball


def _beside(root: Path, mount: Path, system: systems.System, rpms: list[str]) -> list[Rpm]:
    """Packages that Slurm's need beside each other: EL's names, Debian's programs."""
    asked = ["chroot", str(mount), "rpm", "-q", "--package", "--requires", *rpms]
    libraries = {line for line in run(asked).splitlines() if re.match(r"(lib|ld-)\S+\.so|rtld\(", line)}
    own = {line.split(" = ")[0] for line in run([*asked[:5], "--provides", *rpms]).splitlines()}
    server = unit(
        "MariaDB database server",
        "Type=notify\nUser=mysql\nGroup=mysql\nRuntimeDirectory=mysqld\nExecStartPre=+/usr/libexec/mariadb-prepare-db-dir\n"
        "ExecStart=/usr/sbin/mariadbd\n",
    )
    user = "getent passwd {0} >/dev/null || useradd --system --home-dir /var/lib/{0} --shell /sbin/nologin {0}"
    folders = "install -d -o munge -g munge -m 0700 /etc/munge /var/lib/munge /var/log/munge"
    return [
        Rpm("bash-completion", "2.11"),
        Rpm("slurm-libraries", "1", provides=", ".join(sorted(libraries - own)), taken=_libraries(root, mount, system)),
        Rpm(
            "munge",
            "0.5.16",
            requires="slurm-libraries",
            debs=("munge", "libmunge2"),
            scripts={"pre": user.format("munge"), "post": f"{folders}\nldconfig"},
        ),
        Rpm(
            "mariadb-server",
            "11.8",
            requires="slurm-libraries",
            debs=("mariadb-server", "mariadb-server-core", "mariadb-client", "mariadb-client-core"),
            files={
                "etc/my.cnf": MY_CNF,
                "usr/libexec/mariadb-prepare-db-dir": PREPARE,
                f"{UNITS}/mariadb.service": server,
            },
            scripts={
                "pre": user.format("mysql"),
                "post": "install -d -m 0755 /etc/my.cnf.d; install -d -o mysql -g mysql -m 0755 /var/lib/mysql",
            },
        ),
    ]


def _libraries(root: Path, mount: Path, system: systems.System) -> tuple[str, ...]:
    """Paths of what the programs load and the EL's userland doesn't have."""
    programs = [f"/usr/sbin/{name}" for name in ("munged", "mariadbd", "slurmctld", "slurmdbd", "slurmd", "sackd")]
    programs += [f"/usr/bin/{name}" for name in ("mariadb", "munge", "my_print_defaults", "srun", "sacctmgr")]
    folders = (mount / "usr/lib64/slurm", mount / "usr/lib64/security")
    programs += [f"/{file.relative_to(mount)}" for folder in folders for file in sorted(folder.glob("*.so"))]
    told = run(["chroot", str(mount), "ldd", *programs])
    there = dressing.layers(system, root)
    found = set()
    for loaded in set(re.findall(r"=> (/\S+)", told)):
        name = re.sub("^/(usr/)?lib", "usr/lib", loaded)
        if name.startswith("usr/lib64/slurm") or any((layer / name).exists() for layer in there):
            continue
        found |= {name, str((mount / name).resolve().relative_to(mount.resolve()))}
    return tuple(sorted(found))


if __name__ == "__main__":
    cache.main(path, _build)
