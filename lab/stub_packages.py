"""Stub packages of the lab: NVIDIA's names, versions and relations on Debian, without NVIDIA's software. Pure data.

Every description begins with STUB and every tool says so. Two driver versions are served, so that an exact version has to be asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

STUBS = Path(__file__).with_name("stubs")
DRIVER_VERSIONS = ["580.95.05", "580.105.08"]
CUDA_TOOLKITS = {"12-9": "12.9.1", "13-0": "13.0.2"}
CONTAINER_TOOLKIT_VERSIONS = ["1.17.8", "1.18.0"]
DCGM_VERSIONS = ["4.4.1", "4.6.0"]


@dataclass(frozen=True)
class StubPackage:
    """One .deb. `files` is {path: content}; a content that begins with #! is executable."""

    name: str
    version: str
    depends: str = ""
    conflicts: str = ""
    provides: str = ""
    files: dict[str, str] = field(default_factory=dict)
    enable: tuple[str, ...] = ()  # units that the package enables and starts, as NVIDIA's do
    after_install: str = ""  # shell lines, in postinst


def _tool(name: str, **values: str) -> str:
    text = (STUBS / name).read_text()
    for key, value in values.items():
        text = text.replace(f"@{key.upper()}@", value)
    return text


def _unit(description: str, service: str, unit: str = "") -> str:
    return (
        f"[Unit]\nDescription={description} (STUB of the lab)\n{unit}[Service]\n{service}[Install]\nWantedBy=multi-user.target\n"
    )


def _driver(version: str) -> Iterator[StubPackage]:
    v, same = f"{version}-1", f"(= {version}-1)"
    early = "DefaultDependencies=no\nAfter=lab-hw.service systemd-remount-fs.service\nBefore=sysinit.target\n"
    yield StubPackage(
        "nvidia-open", v, depends=f"nvidia-driver-cuda {same}, nvidia-kernel-open-dkms {same}", conflicts="cuda-drivers"
    )
    yield StubPackage("nvidia-open-580", v, depends=f"nvidia-open {same}")
    yield StubPackage("cuda-drivers", v, depends=f"nvidia-driver-cuda {same}, nvidia-kernel-dkms {same}", conflicts="nvidia-open")
    yield StubPackage("cuda-drivers-580", v, depends=f"cuda-drivers {same}")
    yield StubPackage("nvidia-kernel-open-dkms", v, provides="nvidia-kernel", conflicts="nvidia-kernel-dkms")
    yield StubPackage("nvidia-kernel-dkms", v, provides="nvidia-kernel", conflicts="nvidia-kernel-open-dkms")
    yield StubPackage(
        "nvidia-modprobe",
        v,
        files={
            "usr/bin/nvidia-modprobe": _tool("nvidia-modprobe"),
            "usr/share/lab-nvidia/driver-version": f"{version}\n",
            "usr/lib/systemd/system/lab-nvidia-load.service": _unit(
                "Load the NVIDIA driver", "Type=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/nvidia-modprobe\n", early
            ).replace("multi-user.target", "sysinit.target"),
        },
        enable=("lab-nvidia-load.service",),
    )
    yield StubPackage(
        "nvidia-driver-cuda",
        v,
        depends=f"python3, nvidia-modprobe {same}, nvidia-persistenced {same}",
        files={"usr/bin/nvidia-smi": _tool("nvidia-smi")},
    )
    yield StubPackage(
        "nvidia-persistenced",
        v,
        depends=f"nvidia-modprobe {same}",
        files={
            "usr/lib/systemd/system/nvidia-persistenced.service": _unit(
                "NVIDIA Persistence Daemon", "RuntimeDirectory=nvidia-persistenced\nExecStart=/bin/sleep infinity\n"
            )
        },
        enable=("nvidia-persistenced.service",),
    )
    yield StubPackage(
        "nvidia-fabricmanager",
        v,
        files={
            "usr/bin/nv-fabricmanager": _tool("nv-fabricmanager", version=version),
            "usr/lib/systemd/system/nvidia-fabricmanager.service": _unit(
                "NVIDIA Fabric Manager", "ExecStart=/usr/bin/nv-fabricmanager\n"
            ),
        },
    )
    yield StubPackage("libnvidia-nscq", v)


def _container_toolkit(version: str) -> Iterator[StubPackage]:
    v, same = f"{version}-1", f"(= {version}-1)"
    watch = (
        "[Unit]\nDescription=Trigger CDI refresh on NVIDIA driver install (STUB of the lab)\n"
        "[Path]\nPathChanged=/usr/bin/nvidia-smi\nUnit=nvidia-cdi-refresh.service\n[Install]\nWantedBy=multi-user.target\n"
    )
    refresh = _unit(
        "Refresh NVIDIA CDI specification",
        "Type=oneshot\nExecStart=/usr/bin/nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml\n",
    )
    yield StubPackage("libnvidia-container1", v)
    yield StubPackage("libnvidia-container-tools", v, depends=f"libnvidia-container1 {same}")
    yield StubPackage(
        "nvidia-container-toolkit-base",
        v,
        depends="python3",
        files={
            "usr/bin/nvidia-ctk": _tool("nvidia-ctk", version=version),
            "usr/bin/nvidia-container-runtime": '#!/bin/sh\n# STUB of the lab: containers run without GPUs\nexec runc "$@"\n',
            "usr/lib/systemd/system/nvidia-cdi-refresh.service": refresh,
            "usr/lib/systemd/system/nvidia-cdi-refresh.path": watch,
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
            "usr/bin/dcgmi": _tool("dcgmi", version=version),
            "usr/lib/systemd/system/nvidia-dcgm.service": _unit("NVIDIA DCGM service", "ExecStart=/bin/sleep infinity\n"),
        },
    )
    for cuda in (12, 13):
        yield StubPackage(f"datacenter-gpu-manager-4-cuda{cuda}", v, depends=f"datacenter-gpu-manager-4-core {same}")


def stub_packages() -> list[StubPackage]:
    """All stub packages that the lab's repository `nv` serves."""
    from lab.stub_runtimes import runtimes

    found: list[StubPackage] = [*runtimes()]
    for version in DRIVER_VERSIONS:
        found += _driver(version)
    for version in CONTAINER_TOOLKIT_VERSIONS:
        found += _container_toolkit(version)
    for version in DCGM_VERSIONS:
        found += _dcgm(version)
    for name, version in CUDA_TOOLKITS.items():
        release = name.replace("-", ".")
        found.append(
            StubPackage(
                f"cuda-toolkit-{name}",
                f"{version}-1",
                files={f"usr/local/cuda-{release}/bin/nvcc": _tool("nvcc", cuda=release, version=version)},
            )
        )
    return found
