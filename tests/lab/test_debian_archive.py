"""The archive that the emulated machine's installer gets: newest installer that can work, an index that holds."""

import gzip
import hashlib
import io
import lzma
import subprocess
import urllib.error

import pytest

from tests.lab import debian_archive
from tests.lab.cpio import cpio
from tests.lab.debian_archive import INDEX, Archive, before, stanzas

NETBOOT = "pool/main/d/images/debian-installer-13-netboot-amd64_2025+deb13u{}_all.deb"
PART = "pool/main/{}_amd64.udeb"
INSIDE = {"busybox-udeb": "1:1.37-6+b8", "libblkid1-udeb": "2.41-5"}


def deb(folder, fields, files=()):
    tree = folder / "tree"
    for name, text in [("DEBIAN/control", fields), *files]:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(text.encode() if isinstance(text, str) else text)
    subprocess.run(
        ["dpkg-deb", "-b", "-Znone", "--root-owner-group", tree, folder / "made"], check=True, capture_output=True
    )
    subprocess.run(["rm", "-r", tree], check=True)
    return (folder / "made").read_bytes()


def control(name, version, more=""):
    return f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: x\nDescription: x\n{more}"


def netboot(folder, kernel):
    parts = INSIDE | {f"crypto-modules-{kernel}-di": "6"}
    status = "\n".join(control(*part) for part in parts.items())
    initrd = gzip.compress(cpio({"var/lib/dpkg/status": status.encode()}))
    place = "usr/lib/images/13/amd64/text/debian-installer/amd64/initrd.gz"
    return deb(folder, control("images", "13"), [(place, initrd)])


def listed(name, version, **more):
    """A stanza of the index; the file of a part has no epoch in its name."""
    path = PART.format(f"{name}_{version.rpartition(':')[2]}")
    fields = {"Package": name, "Version": version, "Priority": "optional", "Filename": path, "Size": "1", **more}
    return "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in fields.items())


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Its lists are of release 8, its pool is of release 6."""
    files = {
        f"dists/{debian_archive.SUITE}/main/binary-amd64/Packages.xz": lzma.compress(
            f"Package: debian-installer-13-netboot-amd64\nFilename: {NETBOOT.format(8)}\n".encode()
        ),
        INDEX: lzma.compress(
            "\n".join(
                (
                    listed("ext4-modules-6.117-di", "6", Kernel_Version="6.117", Priority="standard"),
                    listed("ext4-modules-6.94-di", "6", Kernel_Version="6.94", Priority="standard"),
                    listed("busybox-udeb", "1:1.37-6+b9", Priority="standard"),
                    listed("libblkid1-udeb", "2.41.5-0+deb13u1", Source="util-linux"),
                    listed("fdisk-udeb", "2.41.5-0+deb13u1", Source="util-linux"),
                    listed("e2fsprogs-udeb", "1.47-3+b12", Depends="libblkid1-udeb, libc (>= 2)"),
                    listed("xfsprogs-udeb", "6.13-2+deb13u1"),
                    listed("partman-xfs", "70", Depends="xfsprogs-udeb", Priority="standard"),
                    listed("rarely-udeb", "1"),
                )
            ).encode()
        ),
        NETBOOT.format(8): netboot(tmp_path, "6.117"),
        NETBOOT.format(7): netboot(tmp_path, "6.107"),
        NETBOOT.format(6): netboot(tmp_path, "6.94"),
        PART.format("ext4-modules-6.94-di_6"): b"there",
        PART.format("partman-xfs_70"): b"there",
        PART.format("fdisk-udeb_2.41-5"): deb(tmp_path, control("fdisk-udeb", "2.41-5")),
        PART.format("e2fsprogs-udeb_1.47-3+b11"): deb(tmp_path, control("e2fsprogs-udeb", "1.47-3+b11")),
    }
    files[f"dists/{debian_archive.SUITE}/Release"] = (
        f"SHA256:\n {'0' * 64} 7 main/debian-installer/binary-amd64/Packages.xz\n {'1' * 64} 7 main/other\n".encode()
    )

    def answer(url, timeout):
        path = url.removeprefix("http://archive/")
        if path not in files:
            raise urllib.error.HTTPError(url, 404, "Not Found", None, None)  # type: ignore[arg-type]
        return io.BytesIO(files[path])

    monkeypatch.setattr(debian_archive.urllib.request, "urlopen", answer)
    made = Archive("http://archive", tmp_path / "archive")
    made.files = files
    return made


def test_the_newest_installer_whose_modules_are_there_is_taken(archive):
    assert "deb13u6" in str(archive.installer)


def test_without_any_such_installer_the_reason_is_told(archive):
    del archive.files[PART.format("ext4-modules-6.94-di_6")]
    with pytest.raises(pytest.skip.Exception, match=r"6\.117, 6\.107, 6\.94"):
        archive.installer  # noqa: B018


def test_the_index_names_what_is_there(archive):
    versions = {each["Package"]: each["Version"] for each in stanzas(lzma.decompress(archive.served(INDEX)).decode())}
    assert versions == {
        "ext4-modules-6.94-di": "6",
        **INSIDE,
        "fdisk-udeb": "2.41-5",
        "e2fsprogs-udeb": "1.47-3+b11",
        "partman-xfs": "70",
        "rarely-udeb": "1",
    }


def test_an_older_part_has_its_own_checksums_and_release_has_the_indexs(archive):
    index = archive.served(INDEX)
    (part,) = [each for each in stanzas(lzma.decompress(index).decode()) if each["Package"] == "fdisk-udeb"]
    udeb = archive.served(part["Filename"])
    assert (part["SHA256"], part["Size"]) == (hashlib.sha256(udeb).hexdigest(), str(len(udeb)))
    lines = archive.served(f"dists/{debian_archive.SUITE}/Release").decode().splitlines()
    place = "main/debian-installer/binary-amd64/Packages.xz"
    assert lines[1] == f" {hashlib.sha256(index).hexdigest()} {len(index)} {place}" and lines[2].startswith(" 111")


@pytest.mark.parametrize(
    ("version", "older"),
    [
        ("1.47.2-3+b12", "1.47.2-3+b11"),
        ("6.13.0-2+deb13u1", "6.13.0-2"),
        ("2.4.7-21+deb13u1+b4", "2.4.7-21+deb13u1+b3"),
        ("10.46-1~deb13u2", "10.46-1~deb13u1"),
        ("70", ""),
    ],
)
def test_a_version_before(version, older):
    assert before(version) == older
