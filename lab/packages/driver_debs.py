"""Stub packages of NVIDIA's driver for each Debian and Ubuntu: NVIDIA's own repository, with the relations that its
packages really have, and beside it the distribution's packages of the same names. Pure data.

Metapackages ask for at least their version, what is below them for exactly one: so apt, which prefers the newest, needs
each name at the locked version. Sources: NVIDIA's ubuntu-packaging-nvidia-driver, its driver installation guide (names
since 590, nvidia-driver-pinning), and what apt said of 550, 565 and 580 in public issues.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from lab.packages import stub_packages as debs
from lab.packages.stub import StubPackage, says, tool, unit
from lab.packages.stub_runtimes import runtimes

# As NVIDIA's repository has them: the revision changed within 580
UBUNTU = {
    "570.211.01": "0ubuntu1",
    "580.95.05": "0ubuntu1",
    "580.105.08": "0ubuntu1",
    "580.126.09": "1ubuntu1",
    "595.58.03": "1ubuntu1",
}
DEBIAN = dict.fromkeys(UBUNTU, "1")
NAMED_BY_BRANCH = 590  # Ubuntu's packages lost the branch in their names with this one
FABRIC_NAMED_BY_BRANCH = 580  # fabric manager, NSCQ and IMEX lost it with this one
# The distribution's: newer than the locked driver on Ubuntu (another revision of one that NVIDIA has, too), older on
# Debian
UBUNTU_OWN = {"580.105.08": "0ubuntu0.{release}.2", "580.173.02": "0ubuntu0.{release}.1"}
DEBIAN_OWN = {"debian12": ("535.309.01", "0+deb12u1"), "debian13": ("550.163.01", "2")}
KERNELS = {"ubuntu2204": "5.15.0-161", "ubuntu2404": "6.8.0-87"}
# dkms is the distribution's; 2.8 shows its modules in another form
DKMS = {"ubuntu2204": "2.8.7-2ubuntu2.2", "ubuntu2404": "3.0.11-1ubuntu13", "debian12": "3.0.10-8+deb12u1"}
OPEN = ("driver", "dkms", "kernel-source")  # what there is twice: with NVIDIA's closed module and with the open one


def vendor(system: str) -> list[StubPackage]:
    """NVIDIA's repository for a system of lab/hosts/systems.py, with the container toolkit, DCGM, CUDA and, as in the
    lab's usual one, runtimes of containers.
    """
    if system.startswith("ubuntu"):
        driver = [each for version, revision in UBUNTU.items() for each in _ubuntu(version, revision)]
    else:
        driver = [each for version, revision in DEBIAN.items() for each in _debian(version, revision)]
    fabric = [each for version in UBUNTU for each in _fabric(version, _last(system, version))]
    return [*driver, *fabric, *debs.shared(), *runtimes()]


def distribution(system: str) -> list[StubPackage]:
    """What the distribution's own archive has of these names, and dkms."""
    there = [StubPackage("dkms", DKMS.get(system, debs.DKMS_VERSION), files={"usr/sbin/dkms": _dkms(system)})]
    if not system.startswith("ubuntu"):
        return there + list(_debian(*DEBIAN_OWN[system]))
    release = f"{system[6:8]}.{system[8:]}"
    for version, revision in UBUNTU_OWN.items():
        own = list(_ubuntu(version, revision.format(release=release)))
        # Canonical builds them twice: nvidia-driver-580 is for desktops, nvidia-driver-580-server for servers
        there += [*own, *(_for_servers(package, version.split(".")[0]) for package in own)]
        there += _precompiled(KERNELS[system], version)
    return there


def _last(system: str, version: str) -> str:
    return UBUNTU[version] if system.startswith("ubuntu") else DEBIAN[version]


def _dkms(system: str) -> str:
    """dkms of Ubuntu 22.04 writes "nvidia, 580.95.05, ..." where later ones have a slash."""
    text = tool("dkms")
    return text.replace('echo "$1/$2, $3', 'echo "$1, $2, $3') if system == "ubuntu2204" else text


def _exactly(version: str, *names: str) -> str:
    return ", ".join(f"{name} (= {version})" for name in names)


def _at_least(version: str, *names: str) -> str:
    return ", ".join(f"{name} (>= {version})" for name in names)


# What a driver's package does in the lab, whatever it is called there
def _smi() -> dict[str, str]:
    return {
        "usr/bin/nvidia-smi": tool("nvidia-smi"),
        "usr/share/lab-nvidia/mig.py": tool("nvidia-smi-mig.py"),
        "usr/share/lab-nvidia/power.py": tool("nvidia-smi-power.py"),
    }


def _loader(version: str) -> dict[str, str]:
    """The lab's: udev loads the real modules."""
    service = "Type=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/nvidia-modprobe\n"
    return {
        "usr/bin/nvidia-modprobe": tool("nvidia-modprobe"),
        "usr/share/lab-nvidia/driver-version": f"{version}\n",
        f"{debs.UNITS}/lab-nvidia-load.service": unit(
            "Load the NVIDIA driver", service, head=debs.LOAD_EARLY, wanted_by="sysinit.target"
        ),
    }


def _daemon() -> dict[str, str]:
    return {
        "usr/bin/nvidia-persistenced": tool("nvidia-persistenced"),
        f"{debs.UNITS}/nvidia-persistenced.service": unit(
            "NVIDIA Persistence Daemon", "ExecStart=/usr/bin/nvidia-persistenced --verbose\n"
        ),
    }


def _module(name: str, version: str, full: str, **fields: str) -> StubPackage:
    settings = f'# STUB of the lab\nPACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\n'
    return StubPackage(
        name,
        full,
        files={f"usr/src/nvidia-{version}/dkms.conf": settings},
        after_install=f"dkms install nvidia/{version}",
        before_removal=f"dkms remove nvidia/{version} || true",
        **fields,
    )


def _ubuntu(version: str, revision: str) -> Iterator[StubPackage]:
    """nvidia-driver-580-open and what is below it; nvidia-driver-open since 590."""
    full, branch = f"{version}-{revision}", int(version.split(".")[0])
    suffix = "" if branch >= NAMED_BY_BRANCH else f"-{branch}"

    def plain(name: str) -> str:
        return f"{name}{suffix}"

    shared = [
        *("libnvidia-gl", "libnvidia-compute", "libnvidia-extra", "libnvidia-decode", "libnvidia-encode"),
        *("nvidia-compute-utils", "nvidia-utils", "xserver-xorg-video-nvidia", "libnvidia-cfg1", "libnvidia-fbc1"),
    ]
    files = {"nvidia-compute-utils": _daemon(), "nvidia-utils": _smi()}
    enabled = {"nvidia-compute-utils": ("nvidia-persistenced.service",)}
    depends = {"libnvidia-decode": "libnvidia-compute", "xserver-xorg-video-nvidia": "libnvidia-cfg1"}
    for name in shared:
        below = _exactly(full, plain(depends[name])) if name in depends else ""
        # one driver at a time: each provides the name without a branch, and conflicts with it
        apart = {} if name == plain(name) or "-server" in name else {"provides": name, "conflicts": name}
        python = "python3" if name == "nvidia-utils" else below
        yield StubPackage(
            plain(name), full, depends=python, files=files.get(name, {}), enable=enabled.get(name, ()), **apart
        )
    firmware = "nvidia-firmware" if not suffix else f"nvidia-firmware-{branch}-{version}"
    yield StubPackage(firmware, full)
    yield StubPackage(
        plain("nvidia-kernel-common"),
        full,
        depends=_exactly(full, firmware),
        files=_loader(version),
        enable=("lab-nvidia-load.service",),
    )
    for kind in ("-open", ""):
        driver, dkms, source = (f"{plain(f'nvidia-{name}')}{kind}" for name in OPEN)
        yield StubPackage(source, full, provides="nvidia-kernel-source", conflicts="nvidia-kernel-source")
        yield _module(
            dkms,
            version,
            full,
            depends=f"dkms, {_exactly(full, source)}, {plain('nvidia-kernel-common')}",
            provides="nvidia-dkms-kernel",
            conflicts="nvidia-dkms-kernel",
        )
        of_any_build = f"{dkms} (>= {version}), {_at_least(version, plain('nvidia-kernel-common'))}"
        exact = _exactly(full, source, *(plain(name) for name in shared))
        yield StubPackage(driver, full, depends=f"{of_any_build}, {exact}")
    if "ubuntu0" in revision:
        return  # what follows only NVIDIA has
    for metapackage, kind in (("nvidia-open", "-open"), ("cuda-drivers", "")):
        driver = f"{plain('nvidia-driver')}{kind}"
        if suffix:
            yield StubPackage(f"{metapackage}-{branch}", full, depends=_at_least(version, driver))
            driver = f"{metapackage}-{branch}"
        yield StubPackage(metapackage, full, depends=_at_least(version, driver))
    yield _pinning(branch, version)


def _pinning(branch: int, version: str) -> StubPackage:
    """NVIDIA's own way to stay in a branch."""
    text = f"# STUB of the lab\nPackage: src:*nvidia*:any src:cuda-drivers:any\nPin: version {branch}.*\n"
    files = {f"etc/apt/preferences.d/nvidia-driver-pinning-{branch}": f"{text}Pin-Priority: 1000\n"}
    return StubPackage(f"nvidia-driver-pinning-{branch}", f"{version}-1", files=files)


def _for_servers(package: StubPackage, branch: str) -> StubPackage:
    """Canonical's build of a package for servers: -server behind the branch, in all its relations, too."""

    def renamed(text: str) -> str:
        return re.sub(rf"-{branch}(?![.\d])", f"-{branch}-server", text)

    return replace(
        package,
        name=renamed(package.name),
        depends=renamed(package.depends),
        provides=package.provides or package.name.replace(f"-{branch}", ""),
        conflicts=package.conflicts or package.name.replace(f"-{branch}", ""),
    )


def _precompiled(kernel: str, version: str) -> Iterator[StubPackage]:
    """Canonical's signed modules of one kernel: their version is the kernel's."""
    branch = version.split(".")[0]
    for kind in ("-open", "", "-server-open", "-server"):
        name = f"linux-modules-nvidia-{branch}{kind}-{kernel}-generic"
        yield StubPackage(name, f"{kernel}.{int(kernel.split('-')[1]) + 1}+{UBUNTU_BUILD[version]}")


UBUNTU_BUILD = {version: number for number, version in enumerate(UBUNTU_OWN, 1)}


def _debian(version: str, revision: str) -> Iterator[StubPackage]:
    """nvidia-open, cuda-drivers and what is below them, by Debian's names."""
    full = f"{version}-{revision}"

    def same(*names: str) -> str:
        return _exactly(full, *names)

    libraries = ["libcuda1", "libnvidia-ml1", "libnvcuvid1", "libnvidia-ptxjitcompiler1", "libnvidia-cfg1"]
    graphics = ["nvidia-driver-libs", "xserver-xorg-video-nvidia", "nvidia-vdpau-driver", "libgl1-nvidia-glvnd-glx"]
    for name in [*libraries, *graphics, "firmware-nvidia-gsp", "nvidia-settings", "nvidia-xconfig"]:
        yield StubPackage(name, full)
    yield StubPackage("nvidia-modprobe", full, files=_loader(version), enable=("lab-nvidia-load.service",))
    yield StubPackage("nvidia-kernel-support", full, depends=same("nvidia-modprobe"))
    kernels = []
    for name in ("nvidia-kernel-open-dkms", "nvidia-kernel-dkms"):
        kernels.append(f"{name} (= {full})")
        yield _module(
            name,
            version,
            full,
            depends=f"dkms, {same('firmware-nvidia-gsp', 'nvidia-kernel-support')}",
            provides="nvidia-kernel",
            conflicts="nvidia-kernel",
        )
    persistenced = ("nvidia-persistenced.service",)
    yield StubPackage("nvidia-persistenced", full, depends=same("libnvidia-cfg1"), files=_daemon(), enable=persistenced)
    yield StubPackage("nvidia-driver", full, depends=f"{same(*graphics)}, {' | '.join(kernels)}")
    if "deb" in revision or revision == "2":
        yield StubPackage("nvidia-smi", full, depends=f"python3, {same('libnvidia-ml1')}", files=_smi())
        return  # what follows only NVIDIA has
    cuda = f"python3, {same(*libraries, 'nvidia-modprobe', 'nvidia-persistenced')}"
    yield StubPackage("nvidia-driver-cuda", full, depends=cuda, files=_smi(), conflicts="nvidia-smi")
    parts = ["nvidia-driver", "nvidia-driver-cuda", "nvidia-settings", "nvidia-xconfig"]
    branch = version.split(".")[0]
    for name, kernel in (("nvidia-open", "nvidia-kernel-open-dkms"), ("cuda-drivers", "nvidia-kernel-dkms")):
        below = _at_least(version, *parts, kernel)
        yield StubPackage(name, full, depends=below)
        yield StubPackage(f"{name}-{branch}", full, depends=below)
    yield _pinning(int(branch), version)


def _fabric(version: str, revision: str) -> Iterator[StubPackage]:
    """Fabric manager, NSCQ and IMEX: each by itself, at the driver's version."""
    full, branch = f"{version}-{revision}", int(version.split(".")[0])
    suffix = f"-{branch}" if branch < FABRIC_NAMED_BY_BRANCH else ""
    manager = unit("NVIDIA Fabric Manager", "ExecStart=/usr/bin/nv-fabricmanager\n")
    yield StubPackage(
        f"nvidia-fabricmanager{suffix}",
        full,
        files={
            "usr/bin/nv-fabricmanager": tool("nv-fabricmanager", version=version),
            f"{debs.UNITS}/nvidia-fabricmanager.service": manager,
        },
    )
    imex = {
        "usr/bin/nvidia-imex": says("nvidia-imex", "--version", f"IMEX version is: {version}"),
        f"{debs.UNITS}/nvidia-imex.service": unit("NVIDIA IMEX service", "ExecStart=/bin/sleep infinity\n"),
    }
    yield StubPackage(f"nvidia-imex{suffix}", full, files=imex)
    yield StubPackage(f"libnvidia-nscq{suffix}", full)
    if not suffix:
        yield StubPackage("libnvsdm", full)
