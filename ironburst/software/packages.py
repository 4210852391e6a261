"""Names and versions of packages, per operating system.
The tables are the catalogue's (package_names.yaml, software.yaml).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironburst.software.model import Facts, Group, SoftwareSet
from ironburst.software.versions import branch_of

ROLES = (
    "nvidia_driver",
    "fabric_manager",
    "imex",
    "nvlsm",
    "cuda",
    "nccl",
    "nvidia_container_toolkit",
    "dcgm",
    "rdma",
    "container_runtime",
    "slurm_node",
    "slurm_head",
    "slurm_login",
    "kubernetes_node",
    "kubernetes_head",
    "kernel",
)
"""Whose packages a set names, in this order. NCCL's are installed by the role cuda."""
RENAMED_FROM = 580  # fabric manager, NSCQ and IMEX packages lost the branch in their names
# nvidia-kmod-common asks for nvidia-modprobe of any version: unnamed, it would be the newest
RHEL_DRIVER = ("nvidia-driver-cuda", "nvidia-persistenced", "nvidia-modprobe")
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


def driver_packages(os: str, driver: str, module: str, facts: Facts, dgx_os: bool = False) -> list[Package]:
    """The driver in this flavour.
    Debian family: the vendor repository's meta-package (its dependencies are pinned by the role), or DGX OS's.
    """
    section, _ = tables(facts, os)
    branch = driver.split(".")[0]
    if dgx_os:
        names = facts.extra["dgx_os"]["driver"][os][module]
        return [Package(_filled(name, branch=branch), f"{driver}-*") for name in names]
    if family(os) == "rhel":
        dkms = OPEN_DKMS if module == "open" else PROPRIETARY_DKMS
        return [Package(name, driver) for name in (*RHEL_DRIVER, dkms)]
    wanted = section[f"vendor_repo_{module}"]
    drivers = [Package(_filled(name, branch=branch), f"{driver}-*") for name in wanted["packages"]]
    pin = wanted.get("pin_package")
    if pin and int(branch) >= wanted["pin_from_branch"]:
        return [Package(_filled(pin, branch=branch)), *drivers]
    return drivers


def fabric_packages(os: str, driver: str, nvlink5: bool, facts: Facts) -> list[Package]:
    """Fabric manager and NSCQ (and NVSDM on NVLink5 boards) of exactly the driver's version."""
    names = _by_branch("fabric_manager", os, driver, facts)
    keys = ["packages", "nscq"] + ([key for key in names if key.startswith("nvsdm")] if nvlink5 else [])
    return [_at(text, os, driver) for key in keys for text in names[key]]


def imex_packages(os: str, driver: str, facts: Facts) -> list[Package]:
    """IMEX of exactly the driver's version."""
    return [_at(text.split()[0], os, driver) for text in _by_branch("imex", os, driver, facts)]


def _by_branch(section: str, os: str, driver: str, facts: Facts) -> Any:
    """What the catalogue's table has for the driver's branch: names with or without it in them."""
    key = "from_580" if branch_of(driver) >= RENAMED_FROM else "below_580"
    return facts.package_names[section][f"{family(os)}_family"][key]


def _at(text: str, os: str, driver: str) -> Package:
    """A table's entry with <branch> and <full> ("libnvidia-nscq-<branch>=<full>*",
    "nvidia-imex-<full>") at this driver version.
    """
    name = text.partition("=")[0].removesuffix("-<full>")
    exact = driver if family(os) == "rhel" else f"{driver}-*"
    return Package(_filled(name, branch=driver.split(".")[0]), exact)


def cuda_packages(os: str, cuda: str, gds: bool, facts: Facts) -> list[Package]:
    """Never the bare `cuda` meta-package: it pulls a driver."""
    names = facts.package_names["cuda_toolkit"]
    toolkit = [
        Package(_filled(name, cuda=cuda.replace(".", "-")), f"{cuda}.*")
        for name in names[f"{family(os)}_family"]["packages"]
    ]
    return toolkit + ([Package(name) for name in names["gds"]["packages"]] if gds else [])


def nccl_packages(os: str, nccl: str, cuda: str, facts: Facts) -> list[Package]:
    """NCCL built for the toolkit's major version."""
    names = facts.package_names["nccl"][f"{family(os)}_family"]["packages"]
    return [Package(name, f"{nccl}-1+cuda{cuda.split('.')[0]}.*") for name in names]


def toolkit_packages(version: str, facts: Facts) -> list[Package]:
    """Four packages of one version (rule PKG-002)."""
    return [Package(name, f"{version}-1") for name in facts.package_names["container_toolkit"]["packages_same_version"]]


def dcgm_packages(group: Group, dcgm: str, cuda_major: int | None, facts: Facts) -> list[Package]:
    """DCGM for the CUDA that the driver itself has (`cuda_major`; unknown: the package for all), and beside it for the
    last CUDA that knows the GPU. What its packages recommend is named, for the roles install nothing unnamed.
    """
    names = facts.package_names["dcgm"]["packages"]
    exact = dcgm if family(group.os) == "rhel" else f"1:{dcgm}-*"
    last = int(group.gpu.cuda_last.split(".")[0]) if group.gpu and group.gpu.cuda_last else None
    builds = names["by_driver_major_cuda"]
    older_too = last if cuda_major and last and last < cuda_major else None
    majors = [major for major in (cuda_major, older_too) if major in builds]
    wanted = [names["core"], *([builds[major] for major in majors] or [names["all"]])]
    if dcgm in names["closed"]["versions"]:
        wanted += [names["closed"]["core"], *(_filled(names["closed"]["by_cuda"], cuda=str(each)) for each in majors)]
    unpinned = names["recommended"][f"{family(group.os)}_family"]
    return [*(Package(name, exact) for name in wanted), *(Package(name) for name in unpinned)]


def own_rdma(facts: Facts) -> Sequence[str]:
    """Fabrics that bring an RDMA stack of their own, which is called as they are."""
    names: Sequence[str] = facts.extra["fabrics"]["own_rdma"]
    return names


def rdma_packages(group: Group, rdma: str, rdma_version: str | None, facts: Facts) -> list[Package]:
    """None without a fabric, and none for EFA: its installer brings an RDMA stack of its own, rdma-core too, and stops
    at a held package of the distribution.
    """
    if group.fabric == "none" or rdma in own_rdma(facts):
        return []
    if rdma == "doca-ofed":
        return [Package(name, f"{rdma_version}*") for name in facts.package_names["doca_ofed"]["packages"]]
    return [Package(name) for name in tables(facts, group.os)[1]["rdma"]]


def kernel_packages(os: str, kernel: str | None, facts: Facts, dgx_os: bool = False) -> list[Package]:
    """The pinned kernel with its headers; empty: not pinned."""
    if kernel is None:
        return []
    distribution = "ubuntu" if os.startswith("ubuntu") else family(os)
    names = facts.extra["dgx_os"]["kernel"] if dgx_os else facts.extra["kernel_packages"][distribution]
    return [parse_spec(_filled(name, kernel=kernel)) for name in names]


def slurm_packages(os: str, role: str, slurm: str | None, source: str, facts: Facts) -> list[Package]:
    """Slurm for `role`, slurm_node, slurm_head or slurm_login, as `source` packages it: distribution or schedmd."""
    if slurm is None:
        return []
    names = facts.extra["slurm_packages"][source][f"{family(os)}_family"]
    return [parse_spec(_filled(name, slurm=slurm)) for name in names[role]]


def slurm_sources(os: str, slurm: str, facts: Facts) -> list[str]:
    """Who packages this release for the system, the system itself first; empty: nobody."""
    table = facts.extra["slurm_packages"]
    own = ["distribution"] if slurm in table["distribution"]["releases"].get(os, ()) else []
    return own + (["schedmd"] if slurm in table["schedmd"]["releases"] else [])


def kubernetes_packages(os: str, role: str, kubernetes: str | None, facts: Facts) -> list[Package]:
    """Kubernetes for `role`, kubernetes_node or kubernetes_head, of the declared version: "1.36" is any of that minor
    version, "1.36.3" is only that one.
    """
    if kubernetes is None:
        return []
    wanted = f"{kubernetes}{'-' if kubernetes.count('.') > 1 else '.'}*"
    return [parse_spec(_filled(name, kubernetes=wanted)) for name in tables(facts, os)[1][role]]


def nvlsm_packages(os: str, rdma: str, facts: Facts) -> list[Package]:
    """NVLink's subnet manager, of any version; beside EFA without the distribution's RDMA tools (see rdma_packages)."""
    names = facts.package_names["nvlsm"][f"{family(os)}_family"]["packages"]
    left_out = tables(facts, os)[1]["rdma"] if rdma in own_rdma(facts) else []
    return [Package(name) for name in names if name not in left_out]


def runtime_packages(os: str, runtimes: Sequence[str], facts: Facts, dgx_os: bool = False) -> list[Package]:
    """The container runtimes, from the distribution (EL and DGX OS: Docker's own)."""
    names = {
        **tables(facts, os)[1]["container_runtime"],
        **(facts.extra["dgx_os"]["container_runtime"] if dgx_os else {}),
    }
    return [Package(name) for runtime in runtimes for name in names[runtime]]


def packages(group: Group, chosen: SoftwareSet, facts: Facts) -> dict[str, list[Package]]:
    """Every package of the set by the role that installs it, in the order of ROLES."""
    os, dgx_os = group.os, group.dgx_os
    wanted: dict[str, list[Package]] = {role: [] for role in ROLES}
    if chosen.driver:
        wanted["nvidia_driver"] = driver_packages(os, chosen.driver, chosen.kernel_module or "open", facts, dgx_os)
        if chosen.fabric_manager:
            wanted["fabric_manager"] = fabric_packages(os, chosen.driver, chosen.nvlsm, facts)
        if chosen.imex:
            wanted["imex"] = imex_packages(os, chosen.driver, facts)
    if chosen.nvlsm:
        wanted["nvlsm"] = nvlsm_packages(os, chosen.rdma, facts)
    if chosen.cuda:
        wanted["cuda"] = cuda_packages(os, chosen.cuda, chosen.gds, facts)
        if chosen.nccl:
            wanted["nccl"] = nccl_packages(os, chosen.nccl, chosen.cuda, facts)
    if chosen.container_toolkit:
        wanted["nvidia_container_toolkit"] = toolkit_packages(chosen.container_toolkit, facts)
    if chosen.dcgm and chosen.driver_branch:
        branch = facts.branches.get(chosen.driver_branch)
        wanted["dcgm"] = dcgm_packages(group, chosen.dcgm, branch.cuda_major_max if branch else None, facts)
    wanted["rdma"] = rdma_packages(group, chosen.rdma, chosen.rdma_version, facts)
    wanted["container_runtime"] = runtime_packages(os, chosen.container_runtimes, facts, dgx_os)
    slurm_role = "slurm_login" if group.login else "slurm_head" if group.gpu is None else "slurm_node"
    wanted[slurm_role] = slurm_packages(os, slurm_role, chosen.slurm, chosen.slurm_packages, facts)
    kubernetes_role = "kubernetes_head" if group.gpu is None else "kubernetes_node"
    wanted[kubernetes_role] = kubernetes_packages(os, kubernetes_role, chosen.kubernetes, facts)
    wanted["kernel"] = kernel_packages(os, chosen.kernel, facts, dgx_os)
    return wanted


def specs(group: Group, chosen: SoftwareSet, facts: Facts) -> dict[str, tuple[str, ...]]:
    """`packages` in the OS's own syntax."""
    wanted = packages(group, chosen, facts)
    return {role: tuple(spec(package, group.os) for package in of_role) for role, of_role in wanted.items()}
