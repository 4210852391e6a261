"""Stub packages of the lab: NVIDIA's names, versions and relations on Debian, without NVIDIA's software. Pure data.

Every description begins with STUB and every tool says so. Three driver versions are served, so that an exact version
has to be asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

STUBS = Path(__file__).with_name("stubs")
DRIVER_VERSIONS = ["580.95.05", "580.105.08", "580.126.09"]
CUDA_TOOLKITS = {"12-9": "12.9.1", "13-0": "13.0.2"}
CONTAINER_TOOLKIT_VERSIONS = ["1.17.8", "1.18.0"]
DCGM_VERSIONS = ["4.4.1", "4.6.0"]
NCCL_VERSION = "2.30.7"
NVLSM_VERSION = "2025.10.5"
DKMS_VERSION = "1:3.2.2-lab"


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
    before_removal: str = ""  # shell lines, in prerm: also before an upgrade


def _tool(name: str, **values: str) -> str:
    text = (STUBS / name).read_text()
    for key, value in values.items():
        text = text.replace(f"@{key.upper()}@", value)
    return text


def _says(name: str, version_words: str, answer: str) -> str:
    """A tool that answers `version_words` with `answer`, and anything else with the word STUB and status 1."""
    known = f'[ "$*" = "{version_words}" ] && echo "{answer}" && exit 0'
    return f'#!/bin/sh\n# STUB of the lab\n{known}\necho "{name}: STUB of the lab" >&2\nexit 1\n'


def _unit(description: str, service: str, unit: str = "") -> str:
    return f"[Unit]\nDescription={description} (STUB of the lab)\n{unit}[Service]\n{service}[Install]\nWantedBy=multi-user.target\n"


def _driver(version: str) -> Iterator[StubPackage]:
    v, same = f"{version}-1", f"(= {version}-1)"
    early = "DefaultDependencies=no\nAfter=lab-hw.service systemd-remount-fs.service\nBefore=sysinit.target\n"
    yield StubPackage(
        "nvidia-open", v, depends=f"nvidia-driver-cuda {same}, nvidia-kernel-open-dkms {same}", conflicts="cuda-drivers"
    )
    yield StubPackage("nvidia-open-580", v, depends=f"nvidia-open {same}")
    yield StubPackage(
        "cuda-drivers", v, depends=f"nvidia-driver-cuda {same}, nvidia-kernel-dkms {same}", conflicts="nvidia-open"
    )
    yield StubPackage("cuda-drivers-580", v, depends=f"cuda-drivers {same}")
    for name, other in (
        ("nvidia-kernel-open-dkms", "nvidia-kernel-dkms"),
        ("nvidia-kernel-dkms", "nvidia-kernel-open-dkms"),
    ):
        yield StubPackage(
            name,
            v,
            depends="dkms",
            provides="nvidia-kernel",
            conflicts=other,
            files={
                f"usr/src/nvidia-{version}/dkms.conf": f'# STUB of the lab\nPACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\n'
            },
            after_install=f"dkms install nvidia/{version}",
            before_removal=f"dkms remove nvidia/{version} || true",
        )
    yield StubPackage(
        "nvidia-modprobe",
        v,
        files={
            "usr/bin/nvidia-modprobe": _tool("nvidia-modprobe"),
            "usr/share/lab-nvidia/driver-version": f"{version}\n",
            "usr/lib/systemd/system/lab-nvidia-load.service": _unit(
                "Load the NVIDIA driver",
                "Type=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/nvidia-modprobe\n",
                early,
            ).replace("multi-user.target", "sysinit.target"),
        },
        enable=("lab-nvidia-load.service",),
    )
    yield StubPackage(
        "nvidia-driver-cuda",
        v,
        depends=f"python3, nvidia-modprobe {same}, nvidia-persistenced {same}",
        files={"usr/bin/nvidia-smi": _tool("nvidia-smi"), "usr/share/lab-nvidia/mig.py": _tool("nvidia-smi-mig.py")},
    )
    yield StubPackage(
        "nvidia-persistenced",
        v,
        depends=f"nvidia-modprobe {same}",
        files={
            "usr/bin/nvidia-persistenced": _tool("nvidia-persistenced"),
            "usr/lib/systemd/system/nvidia-persistenced.service": _unit(
                "NVIDIA Persistence Daemon", "ExecStart=/usr/bin/nvidia-persistenced --verbose\n"
            ),
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
    yield StubPackage("libnvsdm", v)
    yield StubPackage(
        "nvidia-imex",
        v,
        files={
            "usr/bin/nvidia-imex": _says("nvidia-imex", "--version", f"IMEX version is: {version}"),
            "usr/lib/systemd/system/nvidia-imex.service": _unit(
                "NVIDIA IMEX service", "ExecStart=/bin/sleep infinity\n"
            ),
        },
    )


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
            "usr/lib/systemd/system/nvidia-dcgm.service": _unit(
                "NVIDIA DCGM service", "ExecStart=/bin/sleep infinity\n"
            ),
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
    found.append(StubPackage("dkms", DKMS_VERSION, files={"usr/sbin/dkms": _tool("dkms")}))
    found.append(StubPackage("nvlsm", NVLSM_VERSION))
    for name in ("libnccl2", "libnccl-dev"):
        same = f"libnccl2 (= {NCCL_VERSION}-1+cuda13.0)" if name == "libnccl-dev" else ""
        found.append(StubPackage(name, f"{NCCL_VERSION}-1+cuda13.0", depends=same))
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
