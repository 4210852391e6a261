"""Stub packages as rpms, and Debian's real programs as rpms, built by the real rpmbuild in a root that has it. Pure but
for `build`.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.system import LabError, run

TOP = "tmp/lab-rpms"
# No dependency of its own making, no debug package, nothing stripped: the package is what is written here
OPTIONS = [
    *("--define", f"_topdir /{TOP}", "--define", "debug_package %{nil}", "--define", "__os_install_post %{nil}"),
    *("--define", "_build_id_links none", "--target", "x86_64"),
]
SCRIPTS = ("pre", "post", "preun", "postun")
# Of a Debian package: what an EL's has elsewhere or not at all
SHARED = ("doc", "man", "lintian", "bug", "doc-base")
NOT_ELS = (*(f"usr/share/{name}" for name in SHARED), "etc/init.d", "etc/mysql")


@dataclass(frozen=True)
class Rpm:
    """One package. `files` is {path without leading /: text}; a text that begins with #! is executable. `debs` are
    Debian's packages whose files it has, too; `taken` are paths of the root that builds. `scripts` are shell lines by
    scriptlet (pre, post, preun, postun).
    """

    name: str
    version: str
    release: str = "1"  # the distribution (.el9) is put behind it
    epoch: int = 0
    requires: str = ""
    provides: str = ""
    conflicts: str = ""
    obsoletes: str = ""
    files: dict[str, str] = field(default_factory=dict)
    debs: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    scripts: dict[str, str] = field(default_factory=dict)
    dist: bool = True  # whether the distribution is behind the release

    def spec(self) -> str:
        """The spec file; the files lie in a folder of the package's name beside it."""
        head = {
            "Name": self.name,
            "Epoch": str(self.epoch) if self.epoch else "",
            "Version": self.version,
            "Release": f"{self.release}%{{?dist}}" if self.dist else self.release,
            "Summary": f"Debian's {', '.join(self.debs)}, in the lab" if self.debs else "STUB of the lab",
            "License": "none",
            "AutoReqProv": "no",
            "Requires": self.requires,
            "Provides": self.provides,
            "Conflicts": self.conflicts,
            "Obsoletes": self.obsoletes,
        }
        lines = [f"{key}: {value}" for key, value in head.items() if value]
        lines += ["%description", f"{head['Summary']}: {self.name}"]
        lines += ["%install", f"cp -a /{TOP}/{self.name}-{self.version}/. %{{buildroot}}/"]
        for name in SCRIPTS:
            if name in self.scripts:
                lines += [f"%{name}", self.scripts[name].replace("%", "%%")]
        listed = f" -f /{TOP}/{self.name}-{self.version}.files" if self.files or self.debs or self.taken else ""
        return "\n".join([*lines, f"%files{listed}"]) + "\n"


def build(root: Path, packages: Sequence[Rpm], pool: Path | None = None) -> list[str]:
    """Build packages in `root`, which has rpmbuild; the paths of the rpms there. `pool` has the Debian packages that
    `debs` name.
    """
    top = root / TOP
    shutil.rmtree(top, ignore_errors=True)
    for package in packages:
        folder = top / f"{package.name}-{package.version}"
        folder.mkdir(parents=True)
        if package.debs and pool:
            _unpack(package.debs, pool, folder)
        for name in package.taken:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name, follow_symlinks=False)
        for name, text in package.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755 if text.startswith("#!") else 0o644)
        (top / f"{folder.name}.spec").write_text(package.spec())
        held = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_symlink() or path.is_file())
        (top / f"{folder.name}.files").write_text("".join(f'"/{path}"\n' for path in held))
    specs = [f"/{TOP}/{package.name}-{package.version}.spec" for package in packages]
    run(["chroot", str(root), "rpmbuild", "--quiet", "-bb", *OPTIONS, *specs])
    return sorted(f"/{file.relative_to(root)}" for file in (top / "RPMS").glob("*/*.rpm"))


def _unpack(debs: Sequence[str], pool: Path, folder: Path) -> None:
    """The files of Debian packages, without what an EL doesn't have. LabError for one that isn't in the pool."""
    for name in debs:
        found = next(iter(sorted(pool.glob(f"{name}_*.deb"))), None)
        if not found:
            raise LabError(f"{pool} has no package {name}: name it in lab/packages/repository.py")
        run(["dpkg-deb", "--extract", str(found), str(folder)])
    for gone in NOT_ELS:
        shutil.rmtree(folder / gone, ignore_errors=True)
