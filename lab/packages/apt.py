"""How the lab makes a signed apt repository: packages of stubs, lists, signatures."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.packages.stub import StubPackage
from lab.system import run

MAINTAINER = "lab <lab@example.invalid>"


def pack(package: StubPackage, scratch: Path, pool: Path) -> None:
    """Build one package into `pool`; its folder is made in `scratch`."""
    folder = scratch / f"{package.name}_{package.version.replace(':', '_')}"
    for name, text in (package.files | _control_files(package)).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    folder.chmod(0o755)
    run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(folder), str(pool)])


def _control_files(package: StubPackage) -> dict[str, str]:
    """What dpkg wants to know of a package, and does with it."""
    control = {
        "Package": package.name,
        "Version": package.version,
        "Architecture": "amd64",
        "Maintainer": MAINTAINER,
        "Section": "misc",
        "Depends": package.depends,
        "Conflicts": package.conflicts,
        "Provides": package.provides,
        "Description": f"STUB of {package.name} for the lab (no NVIDIA software)",
    }
    files = {"DEBIAN/control": "".join(f"{key}: {value}\n" for key, value in control.items() if value)}
    lines = [package.after_install] if package.after_install else []
    for unit in package.enable:  # in a chroot (an image build) enabling is all there is to do
        start = f"systemctl daemon-reload; systemctl restart {unit};"
        lines += [f"systemctl enable -q {unit}", f"[ ! -d /run/systemd/system ] || {{ {start} }}"]
    if lines:
        files["DEBIAN/postinst"] = '#!/bin/sh\nset -e\n[ "$1" = configure ] || exit 0\n' + "\n".join(lines) + "\n"
    if package.before_removal:
        files["DEBIAN/prerm"] = f"#!/bin/sh\nset -e\n{package.before_removal}\n"
    return files


def index(folder: Path, fields: Mapping[str, str]) -> None:
    """The lists of the packages in `folder`/pool, as suite stable. `fields`: what the Release file says of whose it is
    (Origin, Label and the like).
    """
    dist = folder / "dists/stable"
    binary = dist / "main/binary-amd64"
    binary.mkdir(parents=True)
    (binary / "Packages").write_text(run(["apt-ftparchive", "packages", "pool"], cwd=folder))
    usual = {"Suite": "stable", "Codename": "stable", "Components": "main", "Architectures": "amd64"}
    said = usual | dict(fields)
    options = [word for key, value in said.items() for word in ("-o", f"APT::FTPArchive::Release::{key}={value}")]
    (dist / "Release").write_text(run(["apt-ftparchive", *options, "release", "dists/stable"], cwd=folder))


def sign(folder: Path, names: Sequence[str]) -> None:
    """Sign the repositories `names` in `folder` with a new key and publish its public half; the secret half is thrown
    away.
    """
    with tempfile.TemporaryDirectory(prefix="lab-gpg-") as home:  # short path: gpg-agent's socket lies in it
        gpg = ["gpg", "--homedir", home, "--quiet", "--batch", "--yes"]
        owner = f"lab repository <{MAINTAINER.split('<')[1]}"
        run([*gpg, "--passphrase", "", "--quick-gen-key", owner, "ed25519", "sign", "never"])
        for name in names:
            dist = folder / name / "dists/stable"
            run([*gpg, "--output", str(dist / "InRelease"), "--clearsign", str(dist / "Release")])
            run([*gpg, "--output", str(dist / "Release.gpg"), "--armor", "--detach-sign", str(dist / "Release")])
        run([*gpg, "--output", str(folder / "lab.gpg"), "--export"])
        run([*gpg, "--armor", "--output", str(folder / "lab.asc"), "--export"])
        run(["gpgconf", "--homedir", home, "--kill", "all"])


STEPS = (pack, _control_files, index, sign)
"""What a recipe is made of."""
