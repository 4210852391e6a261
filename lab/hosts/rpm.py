"""Stub packages as rpms, built by the real rpmbuild in a root that has it. Pure but for `build`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.system import run

TOP = "tmp/lab-rpms"
# No dependency of its own making, no debug package, nothing stripped: the package is what is written here
OPTIONS = [
    *("--define", f"_topdir /{TOP}", "--define", "debug_package %{nil}", "--define", "__os_install_post %{nil}"),
    *("--define", "_build_id_links none", "--target", "x86_64"),
]
SCRIPTS = ("pre", "post", "preun", "postun")


@dataclass(frozen=True)
class Rpm:
    """One package. `files` is {path without leading /: text}; a text that begins with #! is executable. `scripts` are
    shell lines by scriptlet (pre, post, preun, postun).
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
    scripts: dict[str, str] = field(default_factory=dict)
    dist: bool = True  # whether the distribution is behind the release

    def spec(self) -> str:
        """The spec file; the files lie in a folder of the package's name beside it."""
        head = {
            "Name": self.name,
            "Epoch": str(self.epoch) if self.epoch else "",
            "Version": self.version,
            "Release": f"{self.release}%{{?dist}}" if self.dist else self.release,
            "Summary": "STUB of the lab",
            "License": "none",
            "AutoReqProv": "no",
            "Requires": self.requires,
            "Provides": self.provides,
            "Conflicts": self.conflicts,
            "Obsoletes": self.obsoletes,
        }
        lines = [f"{key}: {value}" for key, value in head.items() if value]
        lines += ["%description", f"STUB of {self.name} for the lab"]
        lines += ["%install", f"cp -a /{TOP}/{self.name}-{self.version}/. %{{buildroot}}/"]
        for name in SCRIPTS:
            if name in self.scripts:
                lines += [f"%{name}", self.scripts[name].replace("%", "%%")]
        return "\n".join([*lines, "%files", *(f'"/{path}"' for path in sorted(self.files))]) + "\n"


def build(root: Path, packages: Sequence[Rpm]) -> list[str]:
    """Build packages in `root`, which has rpmbuild; the paths of the rpms there."""
    top = root / TOP
    shutil.rmtree(top, ignore_errors=True)
    for package in packages:
        folder = top / f"{package.name}-{package.version}"
        folder.mkdir(parents=True)
        for name, text in package.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755 if text.startswith("#!") else 0o644)
        (top / f"{folder.name}.spec").write_text(package.spec())
    specs = [f"/{TOP}/{package.name}-{package.version}.spec" for package in packages]
    run(["chroot", str(root), "rpmbuild", "--quiet", "-bb", *OPTIONS, *specs])
    return sorted(f"/{file.relative_to(root)}" for file in (top / "RPMS").glob("*/*.rpm"))
