"""The solver: exact sets, sticky, one driver a partition, ways out of conflicts; and a search for exceptions over all
GPUs.
"""

import copy
import itertools
from dataclasses import replace
from typing import get_args

import pytest

from ironburst import catalog
from ironburst.software import rules
from ironburst.software.model import Group, Mig, NoBoard, Os, Wish
from ironburst.software.packages import ROLES
from ironburst.software.solve import solve, state

FACTS = catalog.software_facts()
H100, A100, V100, T4, B200 = "H100 SXM5 80GB", "A100 SXM4 80GB", "V100 SXM2 32GB", "T4", "B200 180GB"
WISH = Wish(driver="580", cuda="13.0", slurm="24.11")


def group(gpu=H100, name="g", span="home", os="debian13", count=8, fabric="infiniband", mig=(), **wish):
    model = catalog.gpu(gpu) if gpu else None
    board = catalog.board(model, count) if model else NoBoard()
    return Group(
        name, (f"{name}-1",), span, os, model, count if model else 0, board, fabric, replace(WISH, **wish), mig
    )


def chosen_for(*args, **kwargs):
    solution = solve([group(*args, **kwargs)], FACTS)
    assert not solution.conflicts, [str(hit) for hit in solution.conflicts]
    return solution.sets["g"]


def conflicts(*groups):
    solution = solve(groups, FACTS)
    assert not {wished.name for wished in groups if wished.gpu} <= solution.sets.keys(), (
        "a conflict leaves a group without a set"
    )
    return solution.conflicts


def test_the_newest_version_of_a_branch_and_what_follows_it():
    chosen = chosen_for()
    assert (chosen.driver, chosen.driver_branch, chosen.kernel_module) == ("580.178.04", 580, "open")
    assert chosen.fabric_manager == chosen.nscq == chosen.persistenced == chosen.driver
    assert (chosen.nvlsm, chosen.imex, chosen.peer_memory, chosen.rdma) == (False, None, "dma-buf", "inbox")
    assert (chosen.container_toolkit, chosen.dcgm, chosen.nccl) == ("1.20.0", "4.6.0", "2.30.7")
    assert set(chosen.packages) == set(ROLES)


def test_what_is_written_in_full_is_taken():
    chosen = chosen_for(driver="580.95.05", container_toolkit="1.18.0", dcgm="4.4.1", nccl="2.28.9")
    expected = ("580.95.05", "1.18.0", "4.4.1", "2.28.9")
    assert (chosen.driver, chosen.container_toolkit, chosen.dcgm, chosen.nccl) == expected


@pytest.mark.parametrize(
    ("gpu", "driver", "module"),
    [
        (H100, "535", "proprietary"),  # below 560 the packages default to it
        (H100, "560", "open"),
        (V100, "580", "proprietary"),
        (T4, "570", "proprietary"),  # T4 entered the open list in 575
        (T4, "575", "open"),
        ("T4G", "615", "proprietary"),
        ("GH200 96GB", "535", "open"),
        (B200, "580", "open"),
    ],
)
def test_the_kernel_module_by_rule(gpu, driver, module):
    assert chosen_for(gpu, driver=driver, cuda="12.2" if driver == "535" else "12.9").kernel_module == module


def test_no_gpu_before_turing_is_in_the_open_list():
    """The trap of the 595 list: it names 208 devices that 595 doesn't support at all."""
    for gpu in catalog.gpus().values():
        if gpu.architecture in ("Maxwell", "Pascal", "Volta"):
            assert gpu.open_kernel_module == "not_supported" and gpu.last_driver_branch == 580


@pytest.mark.parametrize(("gpu", "cuda"), [(H100, "13.0"), (V100, "12.9"), ("P100 PCIe 16GB", "12.9")])
def test_cuda_by_rule(gpu, cuda):
    assert chosen_for(gpu, cuda=None).cuda == cuda


@pytest.mark.parametrize(
    ("gpu", "count", "wanted"),
    [
        (H100, 8, {"fabric_manager"}),
        (H100, 4, set()),
        (B200, 8, {"fabric_manager", "nvlsm"}),
        ("GB200 186GB", 4, {"imex"}),
        ("L40S", 8, set()),
        ("V100 SXM3 32GB", 16, {"fabric_manager"}),
    ],
)
def test_what_the_board_needs(gpu, count, wanted):
    chosen = chosen_for(gpu, count=count, cuda="12.9")
    assert {role for role in ("fabric_manager", "nvlsm", "imex") if chosen.packages[role]} == wanted


@pytest.mark.parametrize(
    ("os", "fabric", "rdma", "module", "peer"),
    [
        ("debian13", "infiniband", "inbox", "open", "dma-buf"),
        ("debian13", "infiniband", "doca-ofed", "proprietary", "peermem"),
        ("debian13", "efa", "inbox", "open", "dma-buf"),
        ("debian13", "none", "inbox", "open", "none"),
    ],
)
def test_peer_memory_by_rule(os, fabric, rdma, module, peer):
    assert chosen_for(os=os, fabric=fabric, rdma=rdma, kernel_module=module).peer_memory == peer


@pytest.mark.parametrize(("rdma", "peer"), [("inbox", "none"), ("doca-ofed", "peermem")])
def test_an_old_kernel_has_no_dma_buf(rdma, peer):
    assert chosen_for(fabric="infiniband", rdma=rdma, kernel="5.10.0-36").peer_memory == peer


@pytest.mark.parametrize(
    ("os", "driver", "role", "specs"),
    [
        ("debian13", "580.95.05", "nvidia_driver", ["nvidia-open=580.95.05-*"]),
        ("debian12", "580.95.05", "fabric_manager", ["nvidia-fabricmanager=580.95.05-*", "libnvidia-nscq=580.95.05-*"]),
        (
            "ubuntu2204",
            "570.211.01",
            "fabric_manager",
            ["nvidia-fabricmanager-570=570.211.01-*", "libnvidia-nscq-570=570.211.01-*"],
        ),
        ("ubuntu2404", "595.91.07", "nvidia_driver", ["nvidia-driver-pinning-595", "nvidia-open=595.91.07-*"]),
        ("debian12", "535.309.01", "nvidia_driver", ["cuda-drivers-535=535.309.01-*"]),
        ("rhel9", "580.95.05", "fabric_manager", ["nvidia-fabricmanager-580.95.05", "libnvidia-nscq-580.95.05"]),
        ("rhel10", "570.211.01", "fabric_manager", ["nvidia-fabric-manager-570.211.01", "libnvidia-nscq-570.211.01"]),
        (
            "rhel9",
            "580.95.05",
            "nvidia_driver",
            [
                "nvidia-driver-cuda-580.95.05",
                "nvidia-persistenced-580.95.05",
                "nvidia-modprobe-580.95.05",
                "kmod-nvidia-open-dkms-580.95.05",
            ],
        ),
        (
            "debian13",
            "580.95.05",
            "dcgm",
            ["datacenter-gpu-manager-4-core=1:4.6.0-*", "datacenter-gpu-manager-4-cuda13=1:4.6.0-*", "libnuma1"],
        ),
        (
            "rhel9",
            "570.211.01",
            "dcgm",
            ["datacenter-gpu-manager-4-core-4.6.0", "datacenter-gpu-manager-4-cuda12-4.6.0", "numactl-libs"],
        ),
        ("debian13", "580.95.05", "slurm_node", ["slurmd=24.11*", "slurm-client=24.11*", "munge"]),
        ("rhel9", "580.95.05", "slurm_node", ["slurm-slurmd-24.11*", "slurm-24.11*", "munge"]),
        (
            "ubuntu2404",  # whose own is 23.11
            "580.95.05",
            "slurm_node",
            [*(f"slurm-smd{part}=24.11*" for part in ("-slurmd", "-client", "", "-libnss-slurm")), "munge"],
        ),
        ("debian13", "580.95.05", "slurm_head", []),
        ("debian13", "580.95.05", "kernel", []),
    ],
)
def test_package_names(os, driver, role, specs):
    cuda = {"580": "13.0", "595": "13.2", "535": "12.2"}.get(driver.split(".")[0], "12.8")
    assert list(chosen_for(os=os, driver=driver, cuda=cuda).packages[role]) == specs


@pytest.mark.parametrize(
    ("os", "kernel", "specs"),
    [
        ("debian13", "6.12.57", ["linux-image-amd64=6.12.57-*", "linux-headers-amd64=6.12.57-*"]),
        ("ubuntu2404", "6.8.0-55", ["linux-image-6.8.0-55-generic", "linux-headers-6.8.0-55-generic"]),
        ("rhel9", "5.14.0-503", ["kernel-5.14.0-503*", "kernel-devel-5.14.0-503*"]),
    ],
)
def test_a_pinned_kernel(os, kernel, specs):
    chosen = chosen_for(os=os, kernel=kernel)
    assert (chosen.kernel, list(chosen.packages["kernel"])) == (kernel, specs)


def test_the_other_packages():
    chosen = chosen_for(cuda="12.9", gds=True, rdma="doca-ofed", container_runtimes=("docker", "enroot"))
    assert chosen.packages["cuda"] == ("cuda-toolkit-12-9=12.9.*", "nvidia-gds")
    assert chosen.packages["nccl"] == ("libnccl2=2.30.7-1+cuda12.*", "libnccl-dev=2.30.7-1+cuda12.*")
    assert chosen.packages["container_runtime"] == ("docker.io", "enroot", "enroot+caps", "nvslurm-plugin-pyxis")
    assert (chosen.rdma_version, chosen.packages["rdma"]) == ("3.2.3", ("doca-ofed=3.2.3*",))
    assert len(chosen.packages["nvidia_container_toolkit"]) == 4
    assert chosen_for(fabric="none").packages["rdma"] == ()
    efa = chosen_for(fabric="efa", rdma="doca-ofed")
    # the EFA installer brings its own rdma-core, and stops at a held one
    assert (efa.rdma, efa.rdma_version, efa.packages["rdma"]) == ("efa", "1.51.0", ())


def test_a_head_has_slurm_and_no_driver():
    chosen = chosen_for(None, kernel="6.12.57")
    assert chosen.driver is chosen.cuda is chosen.nccl is None
    assert chosen.packages["slurm_head"][0] == "slurmctld=24.11*" and chosen.packages["nvidia_driver"] == ()
    assert chosen.kernel == "6.12.57"


@pytest.mark.parametrize(
    ("os", "slurm", "asked", "packaged"),
    [
        ("debian13", "24.11", None, "distribution"),
        ("debian13", "24.11", "schedmd", "schedmd"),
        ("debian13", "25.05", None, "schedmd"),
        ("debian12", "22.05", None, "distribution"),
        ("debian12", "24.11", None, "schedmd"),
        ("ubuntu2204", "25.11", None, "schedmd"),
        ("rhel9", "22.05", "distribution", "distribution"),
        ("rhel9", "25.05", None, "schedmd"),
    ],
)
def test_slurm_is_the_systems_own_where_it_has_the_release(os, slurm, asked, packaged):
    head = solve([group(None, os=os, slurm=slurm, slurm_packages=asked)], FACTS).sets["g"]
    assert head.slurm_packages == packaged
    daemon = head.packages["slurm_head"][0]
    assert daemon.startswith("slurm-smd-" if packaged == "schedmd" and "rhel" not in os else "slurm")
    assert slurm in daemon and "munge" in head.packages["slurm_head"]


@pytest.mark.parametrize(
    ("os", "slurm", "asked", "said"),
    [
        ("ubuntu2404", "24.11", "distribution", "ubuntu2404's own packages have 23.11"),
        ("rhel10", "24.11", "distribution", "rhel10's own packages have none that is known"),
        (
            "debian13",
            "23.02",
            None,
            "known for 24.11, 25.05, 25.11; debian13's own packages have 24.11",
        ),
        ("debian12", "22.05", "schedmd", "debian12's own packages have 22.05"),
    ],
)
def test_a_slurm_that_nobody_packages_for_the_system_is_refused(os, slurm, asked, said):
    for gpu in (None, H100):
        (hit,) = solve([group(gpu, os=os, slurm=slurm, slurm_packages=asked)], FACTS).conflicts
        assert hit.id == "LCK-006" and said in hit.message and "\n" not in hit.message


@pytest.mark.parametrize(
    ("os", "slurm", "wanted"),
    [
        ("debian13", "24.11", ["sackd=24.11*", "slurm-client=24.11*", "munge"]),
        ("ubuntu2404", "23.11", ["sackd=23.11*", "slurm-client=23.11*", "munge"]),
        (
            "ubuntu2204",
            "25.05",
            ["slurm-smd-sackd=25.05*", "slurm-smd-client=25.05*", "slurm-smd=25.05*", "munge"],
        ),
        ("rhel9", "25.05", ["slurm-sackd-25.05*", "slurm-25.05*", "munge"]),
    ],
)
def test_a_login_node_has_slurms_commands_and_sackd_alone(os, slurm, wanted):
    chosen = solve([replace(group(None, os=os, slurm=slurm, fabric="none"), login=True)], FACTS).sets["g"]
    assert {role: names for role, names in chosen.packages.items() if names} == {"slurm_login": tuple(wanted)}


@pytest.mark.parametrize(("os", "slurm"), [("debian12", "22.05"), ("rhel9", "22.05")])
def test_a_login_node_is_refused_a_slurm_without_sackd(os, slurm):
    assert not solve([group(None, os=os, slurm=slurm)], FACTS).conflicts, "a head may have it"
    (hit,) = solve([replace(group(None, os=os, slurm=slurm), login=True)], FACTS).conflicts
    assert hit.id == "LCK-006" and f"Slurm {slurm} on a login node, which needs sackd (23.11 or newer)" in hit.message


# ---- sticky


def test_what_is_locked_stays_while_it_fits():
    before = {"g": chosen_for(driver="580.95.05", container_toolkit="1.18.0")}
    kept = solve([group()], FACTS, before).sets["g"]
    assert kept == before["g"]
    assert solve([group()], FACTS).sets["g"].driver == "580.178.04"


def test_only_what_must_change_changes():
    before = {"g": chosen_for(driver="570.195.03", cuda="12.8", container_toolkit="1.18.0")}
    after = solve([group()], FACTS, before).sets["g"]
    assert after.driver == "580.178.04" and after.container_toolkit == "1.18.0"
    assert solve([group(dcgm="4.4.1")], FACTS, {"g": chosen_for(driver="580.95.05")}).sets["g"].driver == "580.95.05"


def test_a_new_group_takes_what_is_locked_elsewhere():
    before = {"g": chosen_for(driver="580.95.05", container_toolkit="1.18.0")}
    new = solve([group(), group(A100, name="new", span="burst")], FACTS, before).sets["new"]
    assert (new.driver, new.container_toolkit) == ("580.95.05", "1.18.0")


def test_a_locked_version_that_the_catalogue_does_not_know_is_dropped():
    before = {"g": replace(chosen_for(), driver="580.1.1", nccl="2.1.1", rdma_version="9.9.9")}
    after = solve([group(rdma="doca-ofed")], FACTS, before).sets["g"]
    assert (after.driver, after.nccl, after.rdma_version) == ("580.178.04", "2.30.7", "3.2.3")


# ---- partitions


def test_a_partition_gets_one_driver_that_all_its_groups_take():
    """B300 needs 580.82.07, so a lock of 580.65.06 can't stay for its partition; another partition keeps it."""
    before = {"old": solve([group(name="old", driver="580.65.06")], FACTS).sets["old"]}
    groups = [group(name="old"), group("B300 288GB", name="new")]
    solution = solve(groups, FACTS, before)
    assert {one.driver for one in solution.sets.values()} == {"580.178.04"}
    apart = solve([group(name="old"), group("B300 288GB", name="new", span="burst")], FACTS, before)
    assert apart.sets["old"].driver == "580.65.06" and apart.sets["new"].driver != "580.65.06"


def test_modules_may_differ_in_a_partition():
    solution = solve([group(V100, name="old", cuda="12.9"), group(B200, name="new", cuda="12.9")], FACTS)
    assert {name: one.kernel_module for name, one in solution.sets.items()} == {"old": "proprietary", "new": "open"}
    assert [hit.id for hit in solution.warnings] == ["DRV-009"]


@pytest.mark.parametrize(
    ("wishes", "words", "way"),
    [
        (({"driver": "580.95.05"}, {"driver": "580.105.08"}), "asks for driver 580.105.08", "driver: 580"),
        (({"driver": "580"}, {"driver": "595"}), "asks for driver 595", "driver: 595"),
        (({"nccl": "2.30.7"}, {"nccl": "2.28.9"}), "nccl differs", "nccl: 2.30.7"),
        (({"cuda": "12.9"}, {"cuda": "13.0"}), "cuda differs", "cuda: 13.3"),
    ],
)
def test_a_partition_that_does_not_agree(wishes, words, way):
    hits = conflicts(group(name="a", **wishes[0]), group(name="b", **wishes[1]))
    assert [hit.id for hit in hits] == ["LCK-003"] and words in hits[0].message and way in hits[0].remedies
    apart = solve([group(name="a", **wishes[0]), group(name="b", span="other", **wishes[1])], FACTS)
    assert not apart.conflicts


def test_a_release_that_is_listed_with_its_updates_alone_is_known():
    assert "11.0" not in FACTS.cuda and chosen_for(A100, driver="450.80.02", cuda="11.0", nccl="2.30.7").cuda == "11.0"


def test_a_partition_gets_one_nccl_and_one_cuda_where_nobody_names_them():
    groups = [group(H100, name="new", cuda=None), group(V100, name="old", cuda=None)]
    assert {one.cuda for one in solve(groups, FACTS).sets.values()} == {"12.9"}
    named = [group(name="a", nccl="2.28.9", cuda="12.8"), group(name="b", cuda=None)]
    assert {(one.nccl, one.cuda) for one in solve(named, FACTS).sets.values()} == {("2.28.9", "12.8")}
    facts = replace(FACTS, extra=copy.deepcopy(FACTS.extra))
    facts.extra["known_versions"]["nccl"]["versions"].append("2.28.9")
    chosen = solve([group(name="a")], facts).sets["a"]
    before = {"a": replace(chosen, nccl="2.28.9"), "b": chosen}  # two partitions that become one
    assert {one.nccl for one in solve([group(name="a"), group(name="b")], facts, before).sets.values()} == {"2.28.9"}


def test_cuda_minor_versions_may_differ_in_a_partition():
    assert not solve([group(name="a", cuda="13.0"), group(name="b", cuda="13.1")], FACTS).conflicts


# ---- conflicts and ways out


@pytest.mark.parametrize(
    ("given", "rule", "way"),
    [
        ((V100, {"driver": "595", "cuda": "12.9"}), "DRV-001", "driver: 580"),
        ((V100, {"cuda": "13.0"}), "CUD-002", "cuda: 12.9"),
        ((V100, {"cuda": "12.9", "kernel_module": "open"}), "DRV-003", "kernel_module: proprietary"),
        ((B200, {"kernel_module": "proprietary"}), "DRV-004", "kernel_module: open"),
        ((H100, {"driver": "535", "cuda": "13.0"}), "CUD-001", "driver: 580"),
        ((H100, {"driver": "535", "cuda": "13.0"}), "CUD-001", "cuda: 12.9"),
        ((B200, {"cuda": "12.6"}), "CUD-003", "cuda: 13.3"),
        ((B200, {"driver": "570.86.15", "cuda": "12.8"}), "DRV-007", "driver: 580"),
        ((H100, {"peer_memory": "peermem"}), "NET-001", "rdma: doca-ofed"),
        ((H100, {"peer_memory": "dma-buf", "kernel": "5.10.0-36"}), "NET-002", "peer_memory: auto"),
        ((V100, {"cuda": "12.9", "gds": True}), "NET-004", "gds: false"),
        ((T4, {"mig": (Mig((0,), {"1g.10gb": 7}),)}), "MIG-001", "no mig"),
        ((V100, {"driver": "595", "cuda": "13.2"}), "DRV-001", "driver: 580 and cuda: 12.9"),
        ((H100, {"driver": "999"}), "LCK-001", "driver: 580"),
        ((H100, {"driver": "620"}), "LCK-002", "driver: 580"),
        ((H100, {"driver": None}), "LCK-004", "driver: 580"),
        ((H100, {"cuda": "13.9"}), "LCK-001", "cuda: 13.3"),
        ((H100, {"slurm": None}), "LCK-004", "slurm: 24.11"),
        ((H100, {"scheduler": "kubernetes", "slurm": None}), "LCK-004", "kubernetes: 1.36"),
    ],
)
def test_a_conflict_names_its_rule_its_group_and_remedies(given, rule, way):
    gpu, wish = given
    by_rule = {hit.id: hit for hit in conflicts(group(gpu, **wish))}
    assert rule in by_rule and by_rule[rule].group == "g" and by_rule[rule].severity == "error"
    assert any(way in each for each in by_rule[rule].remedies), by_rule[rule].remedies
    assert "\n" not in str(by_rule[rule]) and len(str(by_rule[rule])) < 250


def test_a_declared_version_that_the_catalogue_does_not_list_is_a_warning():
    for wish in ({"driver": "580.200.01"}, {"nccl": "2.99.1"}, {"dcgm": "4.9.9"}, {"container_toolkit": "1.99.0"}):
        solution = solve([group(**wish)], FACTS)
        assert not solution.conflicts and [hit.id for hit in solution.warnings] == ["LCK-005"]
        assert next(iter(wish.values())) in solution.warnings[0].message


def test_a_head_without_its_scheduler_is_a_conflict():
    assert [hit.id for hit in solve([group(None, slurm=None)], FACTS).conflicts] == ["LCK-004"]
    (hit,) = solve([group(None, scheduler="kubernetes")], FACTS).conflicts  # the profile's Slurm is no Kubernetes
    assert hit.id == "LCK-004" and hit.message.startswith("no Kubernetes: ")


@pytest.mark.parametrize(
    ("os", "kubernetes", "packages"),
    [
        ("debian13", "1.36", ("kubelet=1.36.*",)),  # not 1.360, and never 1.3
        ("ubuntu2404", "1.36.3", ("kubelet=1.36.3-*",)),  # not 1.36.30
        ("rhel9", "1.36", ("kubelet-1.36.*",)),
        ("rhel10", "1.36.3", ("kubelet-1.36.3-*",)),
    ],
)
def test_a_node_of_kubernetes_has_kubelet_and_no_slurm(os, kubernetes, packages):
    wish = {"scheduler": "kubernetes", "slurm": None, "kubernetes": kubernetes}
    chosen = chosen_for(os=os, **wish)
    assert chosen.packages["kubernetes_node"] == packages and chosen.packages["slurm_node"] == ()
    assert (chosen.kubernetes, chosen.slurm) == (kubernetes, None)
    head = solve([group(None, os=os, **wish)], FACTS).sets["g"]
    assert head.packages["kubernetes_node"] == head.packages["slurm_head"] == ()
    (kubelet,) = packages
    own = [kubelet.replace("kubelet", name) for name in ("kubeadm", "kubelet", "kubectl")]
    assert head.packages["kubernetes_head"] == (*own, "cri-tools") and head.container_runtimes == ("containerd",)


def test_versions_that_may_be_locked_agree_with_the_package_table():
    known = catalog.software_extra()["known_versions"]
    for key in ("container_toolkit", "dcgm"):
        assert known[key]["current"] == catalog.package_names()[key]["current"]
    for key in ("container_toolkit", "dcgm", "nccl", "doca-ofed", "efa"):
        assert known[key]["current"] in known[key]["versions"]


@pytest.mark.parametrize(
    ("name", "gpu"), [("training-2026", B200), ("inference-2026", "L40S"), ("legacy-pascal-volta", "P100 PCIe 16GB")]
)
def test_a_profile_solves_and_says_why(name, gpu):
    profile = dict(catalog.profile(name))
    assert profile.pop("reason") and profile.pop("source") and profile.pop("confidence")
    profile["container_runtimes"] = tuple(profile.pop("container_runtime"))
    model = catalog.gpu(gpu)
    given = Group("g", ("n",), "home", "ubuntu2404", model, 8, catalog.board(model, 8), "infiniband", Wish(**profile))
    assert not solve([given], FACTS).conflicts
    assert set(catalog.profiles()) == {"training-2026", "inference-2026", "legacy-pascal-volta"}


# ---- every GPU


WISHES = [
    Wish(driver=driver, cuda=cuda, slurm="24.11", kernel_module=module)
    for driver, cuda in [
        ("535", "12.2"),
        ("570", None),
        ("580", None),
        ("580", "13.0"),
        ("580.95.05", "12.9"),
        ("595", "13.2"),
        ("620", "13.0"),
        ("610.43.02", None),
    ]
    for module in (("auto", "open") if driver == "580" else ("auto",))
]


def test_the_catalogue_has_every_system():
    names = catalog.package_names()
    assert set(names["os_targets"]) == set(get_args(Os)) == set(names["driver"])
    assert set(catalog.software_extra()["kernels"]) - {"source", "confidence"} == set(get_args(Os))


@pytest.mark.parametrize("os", get_args(Os))
def test_every_gpu_gets_a_set_that_the_rules_accept_or_a_conflict_with_a_rule(os, monkeypatch):
    # tried above; here it would be most of the time
    monkeypatch.setattr("ironburst.software.solve.remedies", lambda *_: ())
    solved = refused = 0
    for gpu, wish in itertools.product(catalog.gpus().values(), WISHES):
        count = 16 if gpu.form_factor == "SXM3" else 8
        given = Group("g", ("n1",), "home", os, gpu, count, catalog.board(gpu, count), "infiniband", wish)
        solution = solve([given], FACTS)
        assert ("g" in solution.sets) != bool(solution.conflicts)
        if solution.conflicts:
            refused += 1
            assert all(hit.id in FACTS.rules and hit.severity == "error" for hit in solution.conflicts)
        else:
            solved += 1
            chosen = solution.sets["g"]
            assert not [hit for hit in rules.check_node(state(given, chosen, FACTS), FACTS) if hit.severity == "error"]
            assert solve([given], FACTS, solution.sets).sets == solution.sets, "solving again changes nothing"
            assert all(" " not in spec and "<" not in spec for specs in chosen.packages.values() for spec in specs)
    assert solved > 150 and refused > 70


def dcgm(**wish):
    return list(chosen_for(driver=wish.pop("driver", "580.95.05"), **wish).packages["dcgm"])


def test_dcgm_of_a_gpu_that_cuda_13_dropped_is_of_both_cudas():
    _, *builds, numa = dcgm(gpu="V100 SXM2 32GB", cuda="12.9", kernel_module="proprietary")
    assert [name.partition("=")[0][-6:] for name in builds] == ["cuda13", "cuda12"] and numa == "libnuma1"
    assert len(dcgm()) == 3


def test_what_dcgm_only_recommends_is_named_where_it_was_seen():
    closed = [f"datacenter-gpu-manager-4-proprietary{cuda}=1:4.4.1-*" for cuda in ("", "-cuda13")]
    assert [name for name in dcgm(dcgm="4.4.1") if "proprietary" in name] == closed
    assert not any("proprietary" in name for name in dcgm(dcgm="4.6.0"))


def test_a_toolkit_without_the_refresh_of_cdi_can_not_be_locked():
    (hit,) = conflicts(group(container_toolkit="1.17.8"))
    assert hit.id == "LCK-007" and "declare 1.18.0 or newer" in str(hit)
    before = {"g": replace(chosen_for(), container_toolkit="1.17.8")}
    assert solve([group()], FACTS, before).sets["g"].container_toolkit == "1.20.0"
