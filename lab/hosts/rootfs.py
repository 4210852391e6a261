"""The base image of a host: a bare Debian with sshd and python3, built once from the machine's own apt sources.

Cached as .lab/cache/<suite>-<hash of the recipe>/, with an ssh key pair of the lab. Hosts overlay it and never write to
it.
"""

import re
import shutil
from pathlib import Path

from lab.hosts import cache
from lab.system import LAB_ROOT, LabError, run

SUITE = "trixie"  # unless a host asks for another one (systems.py)
PACKAGES = [
    "systemd",
    "systemd-sysv",
    "dbus",
    "openssh-server",
    "python3",
    "python3-apt",
    "iproute2",
    "iputils-ping",
    "procps",
    "kmod",
    "pciutils",
    "ca-certificates",
    "netbase",
    "dmidecode",
    "perl",  # with udev, on every Debian server: here once, not once in each host
    "udev",
    "sudo",  # how the login user of a stock image becomes root
    "ibsim-utils",  # the fabric simulator belongs to the lab, not to what the product installs
]
# The subnet manager of the lab's simulated switches: unpacked beside the system, since opensm as a package would bring
# the RDMA tools that a bare host must not have yet
SUBNET_MANAGER = ["opensm", "libopensm9", "libosmcomp5", "libosmvendor5"]
SUBNET_MANAGER_HOME = "/opt/lab-opensm"
AUTHORIZED = "root/.ssh/authorized_keys"
LEFT_OUT = ["/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*"]
# Not wanted in a host: consoles, timers that go to the network, and what makes a clean stop slow
MASKED = [
    "console-getty.service",
    "getty@tty1.service",
    "systemd-logind.service",
    "user@.service",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "systemd-firstboot.service",
    "systemd-update-utmp.service",
    "systemd-update-utmp-runlevel.service",
    "systemd-networkd-wait-online.service",
]
FILES = {
    "etc/systemd/system.conf.d/lab.conf": "[Manager]\nDefaultTimeoutStopSec=5s\n",
    # no power cut to survive, no manuals to read: packages install in half the time
    "etc/dpkg/dpkg.cfg.d/lab": "".join(["force-unsafe-io\n", *(f"path-exclude={path}\n" for path in LEFT_OUT)]),
    "etc/apt/apt.conf.d/lab": 'APT::Keep-Downloaded-Packages "false";\n',
    "etc/ssh/sshd_config.d/lab.conf": "HostKey /etc/ssh/ssh_host_ed25519_key\nUseDNS no\n",
    # nspawn mounts /sys itself, so the host's hardware is laid over it from inside (hardware.py writes /lab-hw)
    "etc/systemd/system/lab-hw.service": """[Unit]
Description=the lab's hardware of this host (simulated)
DefaultDependencies=no
Before=sysinit.target
ConditionPathExists=/lab-hw/mount.sh
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /lab-hw/mount.sh
[Install]
WantedBy=sysinit.target
""",
}


def apt_sources(suite: str = SUITE) -> str:
    """One-line sources for a suite, from the machine's own Debian sources, whatever mirror they name."""
    release = Path("/etc/os-release").read_text()
    codename = re.search(r"^VERSION_CODENAME=(\w+)", release, re.MULTILINE)
    if not codename or "ID=debian" not in release.splitlines():
        raise LabError(
            "the lab builds its hosts from the machine's own apt sources: this machine isn't Debian; "
            "use a Debian 12 or 13"
        )
    wanted = re.compile(rf"{codename[1]}(-updates|-security)?")
    columns = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
    targets = run(["apt-get", "indextargets", "--format", columns, "Created-By: Packages"])
    sources = set()
    for line in targets.splitlines():
        uri, own, component = line.split()
        if wanted.fullmatch(own) and component == "main":
            sources.add(f"deb {uri} {own.replace(codename[1], suite)} {component}")
    if not sources:
        raise LabError(
            f"no Debian package source found: apt-get indextargets names none for {codename[1]}; "
            "run 'apt-get update' first"
        )
    return "\n".join(sorted(sources)) + "\n"


def base_path(root: Path = LAB_ROOT, suite: str = SUITE) -> Path:
    """Where the base image of today's recipe lies (or will lie)."""
    apart = (SUBNET_MANAGER, SUBNET_MANAGER_HOME)
    code = [cache.code_of(function) for function in (_build, _bootstrap, _strip, _furnish)]
    return cache.path_of(suite, root, PACKAGES, apart, LEFT_OUT, MASKED, FILES, code)


def ssh_key(root: Path = LAB_ROOT) -> Path:
    """The private key that root of every host of the hall accepts."""
    return root / "cache" / "id_ed25519"


def base_image(root: Path = LAB_ROOT, suite: str = SUITE) -> Path:
    """Folder of a suite's base image; built now (half a minute) if it isn't there. Several callers at once build it
    once. LabError for one that was built with another key than `ssh_key`: its hosts would let nobody in.
    """
    base = cache.built("lab.hosts.rootfs", root, base_path(root, suite), suite)
    public = ssh_key(root).with_suffix(".pub")
    if not public.exists() or public.read_bytes() != (base / AUTHORIZED).read_bytes():
        raise LabError(
            f"{base} was built with another ssh key than {ssh_key(root)}: its hosts would let nobody in; remove that "
            "folder, and the next start of a lab builds it anew with this key"
        )
    return base


def _build(root: Path, target: Path, suite: str) -> None:
    """Build into target.new and rename at the end: a folder with the right name is complete."""
    new = target.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    key = ssh_key(root)
    if not key.exists():
        _make_key(key, "lab")
    sources = root / "cache" / f"{suite}.list"
    sources.write_text(apt_sources(suite))
    _bootstrap(new, suite, sources)
    _strip(new)
    _furnish(new, key)
    new.rename(target)


def _make_key(path: Path, comment: str) -> None:
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)])


def _bootstrap(new: Path, suite: str, sources: Path) -> None:
    """Debian and PACKAGES into `new`, and the subnet manager beside the system."""
    unpack = (
        f"cd /tmp && apt-get -qq -o APT::Sandbox::User=root download {' '.join(SUBNET_MANAGER)}"
        f" && for deb in *.deb; do dpkg -x $deb {SUBNET_MANAGER_HOME}; done && rm *.deb"
    )
    options = [
        *("--quiet", "--variant=apt", "--mode=root"),
        f"--include={','.join(PACKAGES)}",
        *(f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT),
        f"--customize-hook=chroot $1 sh -c '{unpack}'",
    ]
    run(["mmdebstrap", *options, suite, str(new), str(sources)])


def _strip(new: Path) -> None:
    """Take away the sources of packages, host keys and identity that came with the packages."""
    sources_folder = new / "etc/apt/sources.list.d"
    for path in [*sources_folder.iterdir(), *(new / "etc/ssh").glob("ssh_host_*"), new / "etc/apt/sources.list"]:
        path.unlink(missing_ok=True)
    for name in ("etc/machine-id", "etc/resolv.conf"):  # empty machine-id; "uninitialized" would mean a first boot
        (new / name).unlink(missing_ok=True)
        (new / name).touch()


def _furnish(new: Path, key: Path) -> None:
    """What makes it a host of the lab: FILES, keys, alice, /shared, and no unit of MASKED."""
    for name, text in FILES.items():
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        (new / name).write_text(text)
    ssh = new / "root/.ssh"
    ssh.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(f"{key}.pub", ssh / "authorized_keys")
    # one host key for all hosts of the hall: nothing to generate at boot (an instance makes its own, see stock.py)
    _make_key(new / "etc/ssh/ssh_host_ed25519_key", "lab host")
    run(["chroot", str(new), "useradd", "-u", "1500", "-m", "-s", "/bin/bash", "alice"])
    (new / "shared").mkdir(mode=0o755)
    for unit in MASKED:
        link = new / "etc/systemd/system" / unit
        link.unlink(missing_ok=True)
        link.symlink_to("/dev/null")
    run(["chroot", str(new), "systemctl", "enable", "-q", "lab-hw.service"])


if __name__ == "__main__":
    cache.main(base_path, _build)
