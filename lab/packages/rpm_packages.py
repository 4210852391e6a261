"""Stub packages of an EL: NVIDIA's names, epochs, relations and scriptlets there, from NVIDIA's own specs (its
yum-packaging-* repositories, 570). What Debian's stubs have alike is taken from them. Pure data.
"""

import re
from collections.abc import Iterator

import yaml

from lab.hosts.rpm import Rpm
from lab.packages import stub_packages as debs
from lab.packages.stub import StubPackage, says, tool, unit
from lab.packages.stub_runtimes import kubernetes, runtimes

UNITS = "usr/lib/systemd/system"
# The specs' own: a driver's packages have this epoch, its fabric manager none
DRIVER_EPOCH = 3
DKMS = "nvidia"  # the DKMS module's name since 570.148.08; it was nvidia-open
VERSIONS = [*debs.DRIVER_VERSIONS, "595.58.03"]  # a newer branch, which the default module stream has
KERNELS = {9: "5.14.0-570.12.1", 10: "6.12.0-55.9.1"}
RENAMED = {"libnccl2": "libnccl", "libnccl-dev": "libnccl-devel"}
OF_A_STREAM = (
    "nvidia-driver",
    "nvidia-driver-libs",
    "nvidia-driver-cuda",
    "nvidia-driver-cuda-libs",
    "nvidia-persistenced",
    "nvidia-modprobe",
    "nvidia-kmod-common",
)
# What is not NVIDIA's: of EPEL, and of the system's own repositories
EPEL = ("dkms", "opencl-filesystem", "ocl-icd", "apptainer", "apptainer-suid", "python3-boto3")
SYSTEM = (
    *("kernel-devel", "linux-firmware", "ca-certificates", "pciutils", "chrony", "python3-dnf-plugin-versionlock"),
    *("numactl-libs", "libnl3", "rdma-core", "libibumad", "libibverbs", "librdmacm", "infiniband-diags", "perftest"),
    "nftables",
)


def rpm_packages(major: int) -> list[Rpm]:
    """All stub packages of an EL's repositories."""
    alike = [*runtimes(), *kubernetes(), *debs.shared()]
    return [
        *(package for version in VERSIONS for package in _driver(version)),
        *(of_deb(package) for package in alike),
        *_kernel(major),
        *_rdma(),
        *_rented(),
        Rpm("libnccl-static", debs.NCCL_VERSION, debs.NCCL_RELEASE, requires="libnccl-devel", dist=False),
    ]


def repository_of(package: Rpm) -> str:
    """nv, epel or system: where the package is served."""
    return "epel" if package.name in EPEL else "system" if package.name in SYSTEM else "nv"


def of_deb(package: StubPackage) -> Rpm:
    """The same package as an rpm. Its units are enabled by a preset or not at all, and started by nobody."""
    epoch, _, rest = package.version.rpartition(":")
    version, _, release = rest.partition("-")
    scripts = {"post": "\n".join(f"systemctl --no-reload preset {name} || :" for name in package.enable)}
    return Rpm(
        RENAMED.get(package.name, package.name),
        version,
        release or "1",
        int(epoch or 0),
        requires=_relations(package.depends),
        provides=_relations(package.provides),
        conflicts=_relations(package.conflicts),
        files=package.files,
        scripts=scripts if package.enable else {},
        dist=not re.search("container|nccl", package.name),  # these are one build for all
    )


def _relations(text: str) -> str:
    """`a (= 1:2-3), b` as rpm has it; a release is left out, for %dist is behind it there."""
    found = re.sub(
        r"\((=|>=|<<|<=) ([^)]+)\)", lambda m: f"{m[1].replace('<<', '<')} {m[2].rpartition('-')[0] or m[2]}", text
    )
    for deb, name in RENAMED.items():
        found = re.sub(rf"\b{deb}(?= |,|$)", name, found)
    return re.sub(r"\bpython3(-[\w.]+)?(, |$)", "", found).strip(", ")


def _kernel(major: int) -> Iterator[Rpm]:
    """What the driver needs of the system and of EPEL. `uname -r` of a dressed host is the machine's, not this."""
    version, release = KERNELS[major].split("-")
    yield Rpm("dkms", "3.2.2", requires="kernel-devel", files={"usr/sbin/dkms": tool("dkms")})
    yield Rpm(
        "kernel-devel",
        version,
        release,
        provides=f"kernel-devel-uname-r = {KERNELS[major]}.el{major}.x86_64, installonlypkg(kernel)",
        files={f"usr/src/kernels/{KERNELS[major]}.el{major}.x86_64/Makefile": "# STUB of the lab\n"},
    )
    yield Rpm("linux-firmware", "20260909")
    # their programs are the userland's
    for name in ("ca-certificates", "pciutils", "python3-dnf-plugin-versionlock"):
        yield Rpm(name, "1")
    clock = unit("NTP client/server", "ExecStart=/usr/sbin/chronyd -n\n", head="ConditionCapability=CAP_SYS_TIME\n")
    yield Rpm("chrony", "4.6.1", files={f"{UNITS}/chronyd.service": clock})
    yield Rpm("opencl-filesystem", "1.0")
    yield Rpm("ocl-icd", "2.3.2")


def _rdma() -> Iterator[Rpm]:
    """Debian's own programs, split as EL's rdma-core has them. What the userland has already is left out."""
    libraries = {"post": "ldconfig"}
    version = "56.1"  # Debian 13's
    yield Rpm("numactl-libs", "2.0.19", debs=("libnuma1",), scripts=libraries)
    yield Rpm("libnl3", "3.7.0", debs=("libnl-3-200", "libnl-route-3-200"), scripts=libraries)
    yield Rpm("rdma-core", version, requires="libnl3", debs=("rdma-core",))
    yield Rpm("libibumad", version, requires="rdma-core")  # the userland's, for the simulated fabric
    yield Rpm("libibverbs", version, requires="rdma-core", debs=("libibverbs1", "ibverbs-providers"), scripts=libraries)
    yield Rpm("librdmacm", version, requires="rdma-core, libibverbs", debs=("librdmacm1t64",), scripts=libraries)
    diags = ("infiniband-diags", "libibnetdisc5t64")
    yield Rpm("infiniband-diags", version, requires="libibumad", debs=diags, scripts=libraries)
    yield Rpm("perftest", "25.01", requires="libibverbs, libibumad, librdmacm", debs=("perftest",))


def _rented() -> Iterator[Rpm]:
    """Debian's own programs that a rented node has beside the others; Python's modules where the userland's Python
    finds them.
    """
    filters = ("nftables", "libnftables1", "libnftnl11", "libjansson4")
    yield Rpm("nftables", "1.1.3", debs=filters, scripts={"post": "ldconfig"})
    sdk = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six", "certifi")
    yield Rpm("python3-boto3", "1.37.9", debs=tuple(f"python3-{name}" for name in sdk))


def _driver(version: str) -> Iterator[Rpm]:
    same = f"= {DRIVER_EPOCH}:{version}"

    def driver(name: str, requires: str = "", **fields: object) -> Rpm:
        return Rpm(name, version, epoch=DRIVER_EPOCH, requires=requires, **fields)  # type: ignore[arg-type]

    yield driver("nvidia-open", f"nvidia-driver {same}, nvidia-driver-cuda {same}, kmod-nvidia-open-dkms {same}")
    yield driver("nvidia-driver", f"nvidia-driver-libs {same}, nvidia-kmod-common {same}", provides="nvidia-drivers")
    yield driver("nvidia-driver-libs", f"libnvidia-ml {same}")
    yield driver("nvidia-driver-cuda-libs", f"libnvidia-ml {same}, libnvidia-cfg {same}")
    yield driver("libnvidia-ml")
    yield driver("libnvidia-cfg")
    # not the fabric manager's package but this one says that its unit is on
    presets = "".join(f"enable nvidia-{name}.service\n" for name in ("persistenced", "fabricmanager", "imex"))
    yield driver(
        "nvidia-driver-cuda",
        f"nvidia-driver-cuda-libs {same}, nvidia-kmod-common {same}, nvidia-persistenced {same}, opencl-filesystem, "
        "ocl-icd",
        conflicts="xorg-x11-drv-nvidia-cuda",
        files={
            "usr/bin/nvidia-smi": tool("nvidia-smi"),
            "usr/share/lab-nvidia/mig.py": tool("nvidia-smi-mig.py"),
            "usr/share/lab-nvidia/power.py": tool("nvidia-smi-power.py"),
            "usr/lib/systemd/system-preset/70-nvidia-driver-cuda.preset": presets,
        },
    )
    yield driver(
        "nvidia-kmod-common",
        f"linux-firmware, nvidia-modprobe, nvidia-kmod {same}",
        files={"usr/lib/modprobe.d/nvidia.conf": "# STUB of the lab\n"},
    )
    add = f"-m {DKMS} -v {version} -q"
    yield driver(
        "kmod-nvidia-open-dkms",
        f"nvidia-kmod-common {same}, dkms",
        provides=f"nvidia-kmod {same}",
        conflicts="kmod-nvidia-latest-dkms",
        files={f"usr/src/{DKMS}-{version}/dkms.conf": f'PACKAGE_NAME="{DKMS}"\nPACKAGE_VERSION="{version}"\n'},
        scripts={
            "post": f"dkms add {add} || :\ndkms build {add} || :\ndkms install {add} --force || :",
            "preun": f"dkms remove {add} --all || :",
        },
    )
    load = unit(
        "Load the NVIDIA driver",
        "Type=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/nvidia-modprobe\n",
        head=debs.LOAD_EARLY,
        wanted_by="sysinit.target",
    )
    yield driver(
        "nvidia-modprobe",
        files={
            "usr/bin/nvidia-modprobe": tool("nvidia-modprobe"),
            "usr/share/lab-nvidia/driver-version": f"{version}\n",
            f"{UNITS}/lab-nvidia-load.service": load,  # the lab's, as udev loads the real modules
        },
        scripts={
            "post": "systemctl enable -q lab-nvidia-load || :\n[ ! -d /run/systemd/system ] || nvidia-modprobe || :"
        },
    )
    yield driver(
        "nvidia-persistenced",
        f"libnvidia-cfg >= {DRIVER_EPOCH}:{version}",
        files={
            "usr/bin/nvidia-persistenced": tool("nvidia-persistenced"),
            f"{UNITS}/nvidia-persistenced.service": unit(
                "NVIDIA Persistence Daemon", "ExecStart=/usr/bin/nvidia-persistenced --verbose\n"
            ),
        },
        scripts=_preset("nvidia-persistenced"),
    )
    yield Rpm(
        "nvidia-fabricmanager",
        version,
        files={
            "usr/bin/nv-fabricmanager": tool("nv-fabricmanager", version=version),
            f"{UNITS}/nvidia-fabricmanager.service": unit(
                "NVIDIA Fabric Manager", "ExecStart=/usr/bin/nv-fabricmanager\n"
            ),
        },
        scripts=_preset("nvidia-fabricmanager"),
    )
    yield Rpm(
        "nvidia-imex",
        version,
        files={
            "usr/bin/nvidia-imex": says("nvidia-imex", "--version", f"IMEX version is: {version}"),
            f"{UNITS}/nvidia-imex.service": unit("NVIDIA IMEX service", "ExecStart=/bin/sleep infinity\n"),
        },
        scripts=_preset("nvidia-imex"),
    )
    yield Rpm("libnvidia-nscq", version)
    yield Rpm("libnvsdm", version)


def _preset(name: str) -> dict[str, str]:
    """As rpm's macros for units do: the preset decides at the first installation, and nothing is started."""
    return {
        "post": f"[ $1 -ne 1 ] || systemctl --no-reload preset {name}.service || :",
        "preun": f"[ $1 -ne 0 ] || systemctl --no-reload disable --now {name}.service || :",
        "postun": f"[ $1 -lt 1 ] || systemctl try-restart {name}.service || :",
    }


def modules(packages: list[Rpm], major: int) -> str:
    """modules.yaml as NVIDIA's repository of EL 9 has it (its cuda-repo-management); EL 10 has none. Streams by branch
    and kind, the default one latest-dkms. A stream has all versions of its branch, but of the kernel's module the
    newest alone.
    """
    if major >= 10:
        return ""
    branches = sorted({_branch(version) for version in VERSIONS})
    streams = {f"{branch}-{kind}": branch for branch in branches for kind in ("dkms", "open")}
    streams |= {"latest-dkms": branches[-1], "open-dkms": branches[-1]}
    defaults = {"module": "nvidia-driver", "stream": "latest-dkms", "profiles": {name: ["default"] for name in streams}}
    documents = [
        *(_stream(name, number, branch, packages, major) for number, (name, branch) in enumerate(streams.items())),
        {"document": "modulemd-defaults", "version": 1, "data": defaults},
    ]
    return yaml.safe_dump_all(documents, explicit_start=True, explicit_end=True)


def _branch(version: str) -> str:
    return version.split(".")[0]


def _stream(name: str, number: int, branch: str, packages: list[Rpm], major: int) -> dict[str, object]:
    kernel = "kmod-nvidia-open-dkms" if "open" in name else "kmod-nvidia-latest-dkms"
    newest = [version for version in VERSIONS if _branch(version) == branch][-1]
    chosen = [
        each
        for each in packages
        if (each.name in OF_A_STREAM and _branch(each.version) == branch)
        or (each.name, each.version) == (kernel, newest)
    ]
    stub = "STUB of the lab"
    data = {
        "name": "nvidia-driver",
        "stream": name,
        "version": 20260101000000,
        "context": f"{number:08x}",
        "arch": "x86_64",
        "summary": stub,
        "description": stub,
        "license": {"module": ["MIT"]},
        "artifacts": {
            "rpms": [f"{each.name}-{each.epoch}:{each.version}-{each.release}.el{major}.x86_64" for each in chosen]
        },
        "profiles": {"default": {"rpms": [*OF_A_STREAM, kernel]}},
    }
    return {"document": "modulemd", "version": 2, "data": data}
