"""Names and versions of packages, per operating system. The tables are the catalogue's (package_names.yaml,
software.yaml).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironburst.software.model import Facts, Group, SoftwareSet

ROLES = (
    *("nvidia_driver", "fabric_manager", "imex", "nvlsm", "cuda", "nccl", "nvidia_container_toolkit", "dcgm", "rdma"),
    *("container_runtime", "slurm_node", "slurm_head", "kernel"),
)
"""Whose packages a set names, in this order. NCCL's are installed by the role cuda."""
RENAMED_FROM = 580  # fabric manager, NSCQ and IMEX packages lost the branch in their names
PROPRIETARY_DKMS = "kmod-nvidia-latest-dkms"
OPEN_DKMS = "kmod-nvidia-open-dkms"


@dataclass(frozen=True)
class Package:
    """One package. `version` is a pattern as apt and dnf take them; None: any."""

    name: str
    version: str | None = None


def family(os: str) -> str:
    """debian or rhel."""
    return "rhel" if os.startswith("rhel") else "debian"


def spec(package: Package, os: str) -> str:
    """The package in the OS's own syntax: name=version (apt), name-version (dnf)."""
    if package.version is None:
        return package.name
    return f"{package.name}{'-' if family(os) == 'rhel' else '='}{package.version}"


def parse_spec(text: str) -> Package:
    """A table's entry: "slurmd=24.11*" or "munge"; a dnf entry stays a name."""
    name, _, wanted = text.partition("=")
    return Package(name, wanted or None)


def tables(facts: Facts, os: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """(driver section of the OS, distribution section of its family); `same_as` is followed."""
    names = facts.package_names["driver"]
    section = names[os]
    while "same_as" in section:
        section = {**names[section["same_as"]], **{key: value for key, value in section.items() if key != "same_as"}}
    return section, facts.extra["distribution"][f"{family(os)}_family"]


def _filled(text: str, **values: str) -> str:
    for key, value in values.items():
        text = text.replace(f"<{key}>", value)
    return text


def driver_packages(os: str, driver: str, module: str, facts: Facts) -> list[Package]:
    """The driver in this flavour. Debian family: the vendor repository's meta-package (its dependencies are pinned by
    the role).
    """
    section, _ = tables(facts, os)
    branch = driver.split(".")[0]
    if family(os) == "rhel":
        dkms = OPEN_DKMS if module == "open" else PROPRIETARY_DKMS
        return [Package(name, driver) for name in ("nvidia-driver-cuda", "nvidia-persistenced", dkms)]
    wanted = section[f"vendor_repo_{module}"]
    found = [Package(_filled(name, branch=branch), f"{driver}-*") for name in wanted["packages"]]
    pin = wanted.get("pin_package")
    if pin and int(branch) >= wanted["pin_from_branch"]:
        found.insert(0, Package(_filled(pin, branch=branch)))
    return found


def fabric_packages(os: str, driver: str, nvlink5: bool, facts: Facts) -> list[Package]:
    """Fabric manager and NSCQ (and NVSDM on NVLink5 boards) of exactly the driver's version."""
    branch = int(driver.split(".")[0])
    names = facts.package_names["fabric_manager"][f"{family(os)}_family"][
        "from_580" if branch >= RENAMED_FROM else "below_580"
    ]
    keys = ["packages", "nscq"] + ([key for key in names if key.startswith("nvsdm")] if nvlink5 else [])
    return [_at(text, os, driver) for key in keys for text in names[key]]


def imex_packages(os: str, driver: str, facts: Facts) -> list[Package]:
    branch = int(driver.split(".")[0])
    names = facts.package_names["imex"][f"{family(os)}_family"]["from_580" if branch >= RENAMED_FROM else "below_580"]
    return [_at(text.split()[0], os, driver) for text in names]


def _at(text: str, os: str, driver: str) -> Package:
    """A table's entry with <branch> and <full> ("libnvidia-nscq-<branch>=<full>*", "nvidia-imex-<full>") at this driver
    version.
    """
    name = text.partition("=")[0].removesuffix("-<full>")
    exact = driver if family(os) == "rhel" else f"{driver}-*"
    return Package(_filled(name, branch=driver.split(".")[0]), exact)


def cuda_packages(os: str, cuda: str, gds: bool, facts: Facts) -> list[Package]:
    """Never the bare `cuda` meta-package: it pulls a driver."""
    names = facts.package_names["cuda_toolkit"]
    found = [
        Package(_filled(name, cuda=cuda.replace(".", "-")), f"{cuda}.*")
        for name in names[f"{family(os)}_family"]["packages"]
    ]
    return found + ([Package(name) for name in names["gds"]["packages"]] if gds else [])


def nccl_packages(os: str, nccl: str, cuda: str, facts: Facts) -> list[Package]:
    """NCCL built for the toolkit's major version."""
    names = facts.package_names["nccl"][f"{family(os)}_family"]["packages"]
    return [Package(name, f"{nccl}-1+cuda{cuda.split('.')[0]}.*") for name in names]


def toolkit_packages(version: str, facts: Facts) -> list[Package]:
    """Four packages of one version (rule PKG-002)."""
    return [Package(name, f"{version}-1") for name in facts.package_names["container_toolkit"]["packages_same_version"]]


def dcgm_packages(os: str, dcgm: str, cuda_major: int | None, facts: Facts) -> list[Package]:
    """DCGM for the CUDA that the driver itself has (`cuda_major`; unknown: the package for all)."""
    names = facts.package_names["dcgm"]["packages"]
    exact = dcgm if family(os) == "rhel" else f"1:{dcgm}-*"
    return [Package(names["core"], exact), Package(names["by_driver_major_cuda"].get(cuda_major, names["all"]), exact)]


def rdma_packages(group: Group, rdma: str, rdma_version: str | None, facts: Facts) -> list[Package]:
    """None without a fabric. EFA hosts take the inbox libraries; the installer brings its own beside them."""
    if group.fabric == "none":
        return []
    if rdma == "doca-ofed":
        return [Package(name, f"{rdma_version}*") for name in facts.package_names["doca_ofed"]["packages"]]
    return [Package(name) for name in tables(facts, group.os)[1]["rdma"]]


def kernel_packages(os: str, kernel: str | None, facts: Facts) -> list[Package]:
    if kernel is None:
        return []
    names = facts.extra["kernel_packages"][
        "rhel" if family(os) == "rhel" else "ubuntu" if os.startswith("ubuntu") else "debian"
    ]
    return [parse_spec(_filled(name, kernel=kernel)) for name in names]


def slurm_packages(os: str, role: str, slurm: str | None, facts: Facts) -> list[Package]:
    if slurm is None:
        return []
    return [parse_spec(_filled(name, slurm=slurm)) for name in tables(facts, os)[1][role]]


def packages(group: Group, chosen: SoftwareSet, facts: Facts) -> dict[str, list[Package]]:
    """Every package of the set by the role that installs it."""
    os, driver = group.os, chosen.driver
    head = group.gpu is None
    found: dict[str, list[Package]] = {
        "nvidia_driver": driver_packages(os, driver, chosen.kernel_module or "open", facts) if driver else [],
        "fabric_manager": fabric_packages(os, driver, chosen.nvlsm, facts) if driver and chosen.fabric_manager else [],
        "imex": imex_packages(os, driver, facts) if driver and chosen.imex else [],
        "nvlsm": [Package(name) for name in facts.package_names["nvlsm"][f"{family(os)}_family"]["packages"]]
        if chosen.nvlsm
        else [],
        "cuda": cuda_packages(os, chosen.cuda, chosen.gds, facts) if chosen.cuda else [],
        "nccl": nccl_packages(os, chosen.nccl, chosen.cuda, facts) if chosen.nccl and chosen.cuda else [],
        "nvidia_container_toolkit": toolkit_packages(chosen.container_toolkit, facts)
        if chosen.container_toolkit
        else [],
        "dcgm": [],
        "rdma": rdma_packages(group, chosen.rdma, chosen.rdma_version, facts),
        "container_runtime": [
            Package(name)
            for runtime in chosen.container_runtimes
            for name in tables(facts, os)[1]["container_runtime"][runtime]
        ],
        "slurm_node": [] if head else slurm_packages(os, "slurm_node", chosen.slurm, facts),
        "slurm_head": slurm_packages(os, "slurm_head", chosen.slurm, facts) if head else [],
        "kernel": kernel_packages(os, chosen.kernel, facts),
    }
    if chosen.dcgm and chosen.driver_branch:
        branch = facts.branches.get(chosen.driver_branch)
        found["dcgm"] = dcgm_packages(os, chosen.dcgm, branch.cuda_major_max if branch else None, facts)
    return found


def specs(group: Group, chosen: SoftwareSet, facts: Facts) -> dict[str, tuple[str, ...]]:
    """`packages` in the OS's own syntax."""
    return {role: tuple(spec(one, group.os) for one in found) for role, found in packages(group, chosen, facts).items()}
