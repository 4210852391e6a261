"""Stub packages of the lab: NVIDIA's names, versions and relations on Debian, without NVIDIA's software. Pure data.

Three driver versions are served, so that an exact version has to be asked for.
"""

from collections.abc import Iterator

from lab.packages.stub import StubPackage, says, tool, unit
from lab.packages.stub_runtimes import kubernetes, runtimes

DRIVER_VERSIONS = ["580.95.05", "580.105.08", "580.126.09"]
CUDA_TOOLKITS = {"12-9": "12.9.1", "13-0": "13.0.2"}
CONTAINER_TOOLKIT_VERSIONS = ["1.17.8", "1.18.0"]
DCGM_VERSIONS = ["4.4.1", "4.6.0"]
NCCL_VERSION, NCCL_RELEASE = "2.30.7", "1+cuda13.0"
NVLSM_VERSION = "2025.10.5"
DKMS_VERSION = "1:3.2.2-lab"
UNITS = "usr/lib/systemd/system"
LOAD_EARLY = "DefaultDependencies=no\nAfter=lab-hw.service systemd-remount-fs.service\nBefore=sysinit.target\n"


def stub_packages() -> list[StubPackage]:
    """All stub packages that the lab's repository `nv` serves."""
    return [
        *runtimes(),
        *kubernetes(),
        *(package for version in DRIVER_VERSIONS for package in _driver(version)),
        StubPackage("dkms", DKMS_VERSION, files={"usr/sbin/dkms": tool("dkms")}),
        *shared(),
    ]


def shared() -> list[StubPackage]:
    """Those that are the same on each system but for the form of a package."""
    return [
        *(package for version in CONTAINER_TOOLKIT_VERSIONS for package in _container_toolkit(version)),
        *(package for version in DCGM_VERSIONS for package in _dcgm(version)),
        StubPackage("nvlsm", NVLSM_VERSION),
        *_nccl(),
        *_cuda_toolkits(),
    ]


def _driver(version: str) -> Iterator[StubPackage]:
    v, same = f"{version}-1", f"(= {version}-1)"
    yield from _flavour("nvidia-open", "nvidia-kernel-open-dkms", version, conflicts="cuda-drivers")
    yield from _flavour("cuda-drivers", "nvidia-kernel-dkms", version, conflicts="nvidia-open")
    yield _kernel_module("nvidia-kernel-open-dkms", version, conflicts="nvidia-kernel-dkms")
    yield _kernel_module("nvidia-kernel-dkms", version, conflicts="nvidia-kernel-open-dkms")
    load = unit(
        "Load the NVIDIA driver",
        "Type=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/nvidia-modprobe\n",
        head=LOAD_EARLY,
        wanted_by="sysinit.target",
    )
    yield StubPackage(
        "nvidia-modprobe",
        v,
        files={
            "usr/bin/nvidia-modprobe": tool("nvidia-modprobe"),
            "usr/share/lab-nvidia/driver-version": f"{version}\n",
            f"{UNITS}/lab-nvidia-load.service": load,
        },
        enable=("lab-nvidia-load.service",),
    )
    yield StubPackage(
        "nvidia-driver-cuda",
        v,
        depends=f"python3, nvidia-modprobe {same}, nvidia-persistenced {same}",
        files={
            "usr/bin/nvidia-smi": tool("nvidia-smi"),
            "usr/share/lab-nvidia/mig.py": tool("nvidia-smi-mig.py"),
            "usr/share/lab-nvidia/power.py": tool("nvidia-smi-power.py"),
        },
    )
    persistence = unit("NVIDIA Persistence Daemon", "ExecStart=/usr/bin/nvidia-persistenced --verbose\n")
    yield StubPackage(
        "nvidia-persistenced",
        v,
        depends=f"nvidia-modprobe {same}",
        files={
            "usr/bin/nvidia-persistenced": tool("nvidia-persistenced"),
            f"{UNITS}/nvidia-persistenced.service": persistence,
        },
        enable=("nvidia-persistenced.service",),
    )
    fabric_manager = unit("NVIDIA Fabric Manager", "ExecStart=/usr/bin/nv-fabricmanager\n")
    yield StubPackage(
        "nvidia-fabricmanager",
        v,
        files={
            "usr/bin/nv-fabricmanager": tool("nv-fabricmanager", version=version),
            f"{UNITS}/nvidia-fabricmanager.service": fabric_manager,
        },
    )
    yield StubPackage("libnvidia-nscq", v)
    yield StubPackage("libnvsdm", v)
    yield StubPackage(
        "nvidia-imex",
        v,
        files={
            "usr/bin/nvidia-imex": says("nvidia-imex", "--version", f"IMEX version is: {version}"),
            f"{UNITS}/nvidia-imex.service": unit("NVIDIA IMEX service", "ExecStart=/bin/sleep infinity\n"),
        },
    )


def _flavour(name: str, kernel: str, version: str, conflicts: str) -> Iterator[StubPackage]:
    """The two metapackages of a driver flavour: the newest branch, and the branch by its number."""
    v, same = f"{version}-1", f"(= {version}-1)"
    yield StubPackage(name, v, depends=f"nvidia-driver-cuda {same}, {kernel} {same}", conflicts=conflicts)
    yield StubPackage(f"{name}-580", v, depends=f"{name} {same}")


def _kernel_module(name: str, version: str, conflicts: str) -> StubPackage:
    settings = f'# STUB of the lab\nPACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\n'
    return StubPackage(
        name,
        f"{version}-1",
        depends="dkms",
        provides="nvidia-kernel",
        conflicts=conflicts,
        files={f"usr/src/nvidia-{version}/dkms.conf": settings},
        after_install=f"dkms install nvidia/{version}",
        before_removal=f"dkms remove nvidia/{version} || true",
    )


def _container_toolkit(version: str) -> Iterator[StubPackage]:
    v, same = f"{version}-1", f"(= {version}-1)"
    watch = (
        "[Unit]\nDescription=Trigger CDI refresh on NVIDIA driver install (STUB of the lab)\n"
        "[Path]\nPathChanged=/usr/bin/nvidia-smi\nUnit=nvidia-cdi-refresh.service\n[Install]\nWantedBy=multi-user.target\n"
    )
    refresh = unit(
        "Refresh NVIDIA CDI specification",
        "Type=oneshot\nExecStart=/usr/bin/nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml\n",
    )
    runtime = '#!/bin/sh\n# STUB of the lab: containers run without GPUs\nexec runc "$@"\n'
    yield StubPackage("libnvidia-container1", v)
    yield StubPackage("libnvidia-container-tools", v, depends=f"libnvidia-container1 {same}")
    yield StubPackage(
        "nvidia-container-toolkit-base",
        v,
        depends="python3",
        files={
            "usr/bin/nvidia-ctk": tool("nvidia-ctk", version=version),
            "usr/bin/nvidia-container-runtime": runtime,
            f"{UNITS}/nvidia-cdi-refresh.service": refresh,
            f"{UNITS}/nvidia-cdi-refresh.path": watch,
        },
    )
    yield StubPackage(
        "nvidia-container-toolkit", v, depends=f"nvidia-container-toolkit-base {same}, libnvidia-container-tools {same}"
    )


def _dcgm(version: str) -> Iterator[StubPackage]:
    v, same = f"1:{version}-1", f"(= 1:{version}-1)"
    yield StubPackage(
        "datacenter-gpu-manager-4-core",
        v,
        depends="python3",
        conflicts="datacenter-gpu-manager",
        files={
            "usr/bin/dcgmi": tool("dcgmi", version=version),
            f"{UNITS}/nvidia-dcgm.service": unit("NVIDIA DCGM service", "ExecStart=/bin/sleep infinity\n"),
        },
    )
    for cuda in (12, 13):
        yield StubPackage(f"datacenter-gpu-manager-4-cuda{cuda}", v, depends=f"datacenter-gpu-manager-4-core {same}")
        yield StubPackage(f"datacenter-gpu-manager-4-proprietary-cuda{cuda}", v)
    yield StubPackage("datacenter-gpu-manager-4-proprietary", v, depends=f"datacenter-gpu-manager-4-core {same}")


def _nccl() -> Iterator[StubPackage]:
    version = f"{NCCL_VERSION}-{NCCL_RELEASE}"
    yield StubPackage("libnccl2", version)
    yield StubPackage("libnccl-dev", version, depends=f"libnccl2 (= {version})")


def _cuda_toolkits() -> Iterator[StubPackage]:
    for name, version in CUDA_TOOLKITS.items():
        release = name.replace("-", ".")
        nvcc = tool("nvcc", cuda=release, version=version)
        yield StubPackage(f"cuda-toolkit-{name}", f"{version}-1", files={f"usr/local/cuda-{release}/bin/nvcc": nvcc})
