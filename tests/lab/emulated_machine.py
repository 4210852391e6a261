"""A machine that is emulated whole: UEFI firmware, network card, disk, in a network namespace of its own (qemu without
KVM: about 40 minutes of a processor, to the first login). Firmware, installer and system are the real ones, unlike
the lab's hosts. It has no BMC: the firmware boots over the network by itself.
"""

import gzip
import os
import shutil
import socket
import subprocess
import threading
import urllib.error
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lab.hosts import rootfs
from lab.hosts.box import enter_network
from lab.system import run
from tests.lab.cpio import cpio
from tests.lab.debian_archive import SUITE, Archive

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
# The archive's Release is changed here (debian_archive.py); apt's own InRelease is verified in the end
COMMAND_LINE = (
    "auto=true priority=critical interface=auto console=ttyS0 DEBIAN_FRONTEND=text mitigations=off "
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
        sources = [line.split() for line in rootfs.apt_sources(SUITE).splitlines()]
        mirror = next(uri.rstrip("/") for _, uri, suite, _ in sources if suite == SUITE)
        self.archive = Archive(mirror, folder / "archive")
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
            found = self.hall.archive.served(self.path.removeprefix("/debian/"))
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
    own = hall.archive.installer
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


def start(hall: Hall, *, serial: str, mac: str, disk_serial: str) -> subprocess.Popen[bytes]:
    """Power on: the firmware tries the disk, then the network (UEFI HTTP boot alone)."""
    # on less than 9.3 GB Debian's partitioner fails in the midst: it picks its recipe before it counts the ESP
    disk, variables = hall.folder / "disk.qcow2", hall.folder / "variables.fd"
    if not disk.exists():
        run(["qemu-img", "create", "-q", "-f", "qcow2", str(disk), "16G"])
        shutil.copy(FIRMWARE.with_name("OVMF_VARS_4M.fd"), variables)
    argv = (
        "qemu-system-x86_64 -accel tcg,thread=multi,tb-size=512 -cpu max,la57=off -machine q35 -m 1536 -smp 1 "
        f"-display none -drive if=pflash,format=raw,readonly=on,file={FIRMWARE} "
        f"-drive if=pflash,format=raw,file={variables} "
        f"-drive if=none,id=disk,file={disk},format=qcow2,cache=unsafe "
        f"-device virtio-blk-pci,drive=disk,serial={disk_serial},bootindex=1 "
        "-netdev tap,id=net,ifname=tap0,script=no,downscript=no "
        f"-device virtio-net-pci,netdev=net,mac={mac},bootindex=2,romfile= -device virtio-rng-pci "
        "-fw_cfg name=opt/org.tianocore/IPv4PXESupport,string=n -fw_cfg name=opt/org.tianocore/IPv6PXESupport,string=n "
        f"-smbios type=1,serial={serial} -serial file:{hall.folder}/console.log"
    )
    return hall.spawn(argv.split(), "qemu.log")
