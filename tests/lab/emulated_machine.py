"""A machine that is emulated whole: UEFI firmware, network card, disk, in a network namespace of its own (qemu without
KVM; its firmware, and the installer up to the mirror, take three minutes of a quiet processor). Firmware, installer and
system are the real ones, unlike the lab's hosts. It has no BMC: the firmware boots over the network by itself.
"""

import gzip
import hashlib
import io
import lzma
import os
import re
import shutil
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lab.hosts import rootfs
from lab.hosts.box import enter_network
from lab.system import run

SUITE, RELEASE = "trixie", 13
INDEX = f"dists/{SUITE}/main/debian-installer/binary-amd64/Packages.xz"
SERVER, PORT, LENGTH = "10.78.0.1", 8080, 21
STUB = Path("/usr/lib/systemd/boot/efi/linuxx64.efi.stub")
FIRMWARE = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
NEEDS = {
    "qemu-system-x86": shutil.which("qemu-system-x86_64"),
    "qemu-utils": shutil.which("qemu-img"),
    "ovmf": FIRMWARE.exists(),
    "systemd-boot-efi": STUB.exists(),
    "binutils": shutil.which("objcopy"),
    "dnsmasq-base": shutil.which("dnsmasq"),
}
# The archive behind this machine's sources may hold a Release.gpg that is older than its Release; apt's own InRelease
# is verified in the end
COMMAND_LINE = (
    "auto=true priority=critical interface=auto console=ttyS0 DEBIAN_FRONTEND=text "
    "debian-installer/allow_unauthenticated=true ---"
)


def need() -> None:
    """Skip, with the reason, where it can't run."""
    if os.geteuid():
        pytest.skip("an emulated machine's network needs root")
    if missing := [package for package, there in NEEDS.items() if not there]:
        pytest.skip(f"an emulated machine needs Debian's {', '.join(missing)}: `make test-slow` installs them")


class Hall:
    """The machine's network, a web server in it with the media of `folder`/www and Debian's archive below /debian."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.media = folder / "www"
        self.media.mkdir()
        (folder / "archive").mkdir()
        sources = [line.split() for line in rootfs.apt_sources(SUITE).splitlines()]
        self._mirror = next(uri.rstrip("/") for _, uri, suite, _ in sources if suite == SUITE)
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Hall":
        for command in (
            f"ip netns add {self.name}",
            f"ip -n {self.name} link set lo up",
            f"ip netns exec {self.name} ip tuntap add tap0 mode tap",
            f"ip -n {self.name} address add {SERVER}/{LENGTH} dev tap0",
            f"ip -n {self.name} link set tap0 up",
        ):
            run(command.split())
        handler = type("Handler", (_Handler,), {"hall": self})
        self._server = ThreadingHTTPServer((SERVER, PORT), handler, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = _listening_in(self.name)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            process.kill()
            process.wait()
        self._server.shutdown()
        self._server.server_close()
        run(["ip", "netns", "delete", self.name])

    def spawn(self, argv: list[str], log: str) -> subprocess.Popen[bytes]:
        """A program in the machine's network, until the end of the hall."""
        with (self.folder / log).open("wb") as file:
            argv = ["ip", "netns", "exec", self.name, *argv]
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        self._running.append(process)
        return process

    def archive(self, path: str) -> bytes:
        """A file of Debian's archive, fetched once. Raises urllib's errors."""
        kept = self.folder / "archive" / hashlib.sha1(path.encode()).hexdigest()
        if not kept.exists():
            with urllib.request.urlopen(f"{self._mirror}/{path}", timeout=120) as answer:
                part = kept.with_suffix(f".{threading.get_ident()}")
                part.write_bytes(answer.read())
                part.replace(kept)
        return kept.read_bytes()

    def installer(self) -> Path:
        """Folder of the installer's kernel and initrd: the newest whose modules the archive's index has."""
        listed = lzma.decompress(self.archive(f"dists/{SUITE}/main/binary-amd64/Packages.xz")).decode()
        package = f"debian-installer-{RELEASE}-netboot-amd64"
        stanza = next(each for each in listed.split("\n\n") if each.startswith(f"Package: {package}\n"))
        name = next(line.split()[1] for line in stanza.splitlines() if line.startswith("Filename:"))
        listed_udebs = lzma.decompress(self.archive(INDEX)).decode()
        known = re.findall(r"^Package: kernel-image-(\S+)-di$", listed_udebs, re.MULTILINE)
        newest = int(re.search(r"u(\d+)_all", name)[1])  # type: ignore[index]
        for number in range(newest, 0, -1):
            deb, target = self.folder / f"{number}.deb", self.folder / f"installer-{number}"
            try:
                deb.write_bytes(self.archive(name.replace(f"u{newest}_all", f"u{number}_all")))
            except urllib.error.HTTPError:
                continue
            run(["dpkg", "-x", str(deb), str(target)])
            own = next(target.rglob("text/debian-installer/amd64"))
            initrd = gzip.decompress((own / "initrd.gz").read_bytes())
            for kernel in known:
                if f"lib/modules/{kernel}".encode() in initrd:
                    self._need_udebs(listed_udebs, f"ext4-modules-{kernel}-di", "e2fsprogs-udeb")
                    return own
        pytest.skip(f"the archive's index has no kernel modules for an installer that it has: {', '.join(known)}")

    def _need_udebs(self, listed: str, *packages: str) -> None:
        """Skip where the archive lacks what its own index names: behind a cache that isn't rare after a release."""
        for package in packages:
            stanza = next(each for each in listed.split("\n\n") if each.startswith(f"Package: {package}\n"))
            name = next(line.split()[1] for line in stanza.splitlines() if line.startswith("Filename:"))
            try:
                self.archive(name)
            except urllib.error.HTTPError as error:
                pytest.skip(
                    f"the archive lacks {name.rpartition('/')[2]} of the installer, which its index names: {error}"
                )

    def release(self, path: str) -> bytes:
        """A suite's Release, with the checksum of the installer's index as the archive has that: behind a cache it may
        be older than the list, and the installer takes neither.
        """
        index, text = self.archive(INDEX), self.archive(path).decode()
        own = INDEX.partition(f"{SUITE}/")[2]
        for algorithm in (hashlib.md5(index), hashlib.sha256(index)):
            digest = algorithm.hexdigest()
            text = re.sub(
                rf"^ [0-9a-f]{{{len(digest)}}} +\d+ {own}$", f" {digest} {len(index)} {own}", text, flags=re.MULTILINE
            )
        return text.encode()


def _listening_in(namespace: str) -> socket.socket:
    """A socket stays in the namespace that it was made in; a thread that ends changes nobody else's."""
    made: list[socket.socket] = []

    def make() -> None:
        with Path(f"/run/netns/{namespace}").open() as there:
            enter_network(there.fileno())
        made.append(socket.create_server((SERVER, PORT)))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hall: Hall

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments, directory=str(self.hall.media))  # type: ignore[arg-type]

    def log_message(self, text: str, *values: object) -> None:
        with (self.hall.folder / "http.log").open("a") as file:
            file.write(text % values + "\n")

    def do_GET(self) -> None:
        if not self.path.startswith("/debian/"):
            super().do_GET()
            return
        try:
            path = self.path.removeprefix("/debian/")
            ours = re.fullmatch(rf"dists/({SUITE}|stable)/Release", path)
            found = self.hall.release(path) if ours else self.hall.archive(path)
        except urllib.error.HTTPError as error:
            self.send_error(error.code)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        self.wfile.write(found)


def efi_medium(hall: Hall, written: Path, target: Path) -> None:
    """Debian's installer and what `ironburst node medium` has written, as one EFI program that firmware loads over
    HTTP.
    """
    own = hall.installer()
    files = {"preseed.cfg": written / "preseed.cfg"} | {
        f"cdrom/ironburst/{path.name}": path for path in (written / "ironburst").iterdir()
    }
    initrd = hall.folder / "initrd"
    added = gzip.compress(cpio({name: path.read_bytes() for name, path in files.items()}))
    initrd.write_bytes((own / "initrd.gz").read_bytes() + added)
    (hall.folder / "cmdline").write_text(COMMAND_LINE)
    sections = {".osrel": ("/etc/os-release", 0x20000), ".cmdline": (hall.folder / "cmdline", 0x30000)}
    sections |= {".linux": (own / "linux", 0x2000000), ".initrd": (initrd, 0x4000000)}
    placed = [
        word
        for name, (path, place) in sections.items()
        for word in ("--add-section", f"{name}={path}", "--change-section-vma", f"{name}={place:#x}")
    ]
    run(["objcopy", *placed, str(STUB), str(target)])


def cpio(files: dict[str, bytes]) -> bytes:
    """An archive as the kernel unpacks it (newc; Documentation/driver-api/early-userspace/buffer-format.rst)."""
    folders = {str(parent) for name in files for parent in Path(name).parents if str(parent) != "."}
    entries = [(name, 0o040755, b"") for name in sorted(folders)] + [
        (name, 0o100644, text) for name, text in files.items()
    ]
    out = io.BytesIO()
    for number, (name, mode, text) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        fields = (number, mode, 0, 0, 1, 0, len(text), 0, 0, 0, 0, len(name) + 1, 0)
        out.write(b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0")
        out.write(b"\0" * (-out.tell() % 4) + text)
        out.write(b"\0" * (-out.tell() % 4))
    return out.getvalue()


def start(hall: Hall, *, serial: str, mac: str, disk_serial: str) -> subprocess.Popen[bytes]:
    """Power on: the firmware tries the disk, then the network (UEFI HTTP boot alone)."""
    disk, variables = hall.folder / "disk.qcow2", hall.folder / "variables.fd"
    if not disk.exists():
        run(["qemu-img", "create", "-q", "-f", "qcow2", str(disk), "8G"])
        shutil.copy(FIRMWARE.with_name("OVMF_VARS_4M.fd"), variables)
    argv = (
        "qemu-system-x86_64 -accel tcg,thread=multi,tb-size=512 -cpu max -machine q35 -m 1536 -smp 1 -display none "
        f"-drive if=pflash,format=raw,readonly=on,file={FIRMWARE} -drive if=pflash,format=raw,file={variables} "
        f"-drive if=none,id=disk,file={disk},format=qcow2,cache=unsafe "
        f"-device virtio-blk-pci,drive=disk,serial={disk_serial},bootindex=1 "
        "-netdev tap,id=net,ifname=tap0,script=no,downscript=no "
        f"-device virtio-net-pci,netdev=net,mac={mac},bootindex=2,romfile= -device virtio-rng-pci "
        "-fw_cfg name=opt/org.tianocore/IPv4PXESupport,string=n -fw_cfg name=opt/org.tianocore/IPv6PXESupport,string=n "
        f"-smbios type=1,serial={serial} -serial file:{hall.folder}/console.log"
    )
    return hall.spawn(argv.split(), "qemu.log")
