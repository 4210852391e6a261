"""Every rule of rules.yaml that speaks of software is code: one state that breaks it, and a neighbour that doesn't."""

from dataclasses import replace
from datetime import date

import pytest

from ironburst import catalog
from ironburst.catalog.tables import table
from ironburst.software import rules
from ironburst.software.model import ABSENT, Mig, NoBoard
from ironburst.software.state import ClusterState, DetectionState, FabricState, NodeState, ThresholdState
from ironburst.software.versions import kernel_version, version

FACTS = catalog.software_facts()
TODAY = date(2026, 11, 21)
KEPLER = replace(catalog.gpu("V100 PCIe 16GB"), model="K80", architecture="Kepler", cuda_first=None)
MAXWELL = replace(catalog.gpu("V100 PCIe 16GB"), model="M60", architecture="Maxwell", cuda_last="12.x")
V100, T4, H100, B200 = "V100 SXM2 32GB", "T4", "H100 SXM5 80GB", "B200 180GB"
HGX, NVLINK5, TRAY, PCIE = NoBoard(True), NoBoard(True, True), NoBoard(False, False, True), NoBoard()

NOT_SOFTWARE = {
    "NET-007": "hall/cabling.py",
    "NET-008": "hall/cabling.py",
    "AWS-001": "AWS network: config/checks/aws/cloud.py",
    "AWS-002": "AWS network: config/checks/aws/cloud.py",
    "AWS-003": "AWS network: config/checks/aws/cloud.py",
    "AWS-004": "job: burst/eligibility.py, with the end of cloud_models.Pool.taken_back",
    "AWS-005": "AWS network: EFA in one zone",
    "AWS-006": "AWS network: security group",
    "AWS-007": "AWS network: interfaces of a type",
    "AWS-008": "AWS network: card 0",
    "HW-001": "hall: memory",
    "HW-002": "hall: slots",
    "HW-003": "hall/power.py",
    "HW-004": "hall/power.py, hall/racks.py",
    "HW-005": "hall/racks.py",
    "HW-006": "hall/racks.py",
    "SLM-001": "scheduler: resume time-out",
    "SLM-002": "scheduler: suspend time",
    "SLM-004": "scheduler: what a prolog runs",
    "PLC-001": "job: one site and zone",
}


def node(gpu=None, **given):
    return NodeState(group="g", gpu=catalog.gpu(gpu) if isinstance(gpu, str) else gpu, **given)


def stack(gpu, driver="580.95.05", cuda="12.8", kernel_module="open"):
    return node(gpu, driver=driver, cuda=cuda, kernel_module=kernel_module)


def mig(gpu, profiles, **given):
    return node(gpu, mig=(Mig((0,), profiles),), gpu_count=8, **given)


TOOLKIT = dict.fromkeys(catalog.package_names()["container_toolkit"]["packages_same_version"], "1.18.0-1")
DMA_BUF = {"peer_memory": "dma-buf", "kernel_module": "open", "kernel": "5.15", "cuda": "12.8"}
ROW = {
    "name": "all_reduce",
    "gpu": H100,
    "minimum": 350.0,
    "message_size": "8G",
    "nodes": 2,
    "unit": "GB/s",
    "statistic": "busbw-at-size",
}

CASES = [
    ("DRV-001", stack(V100, "595.71.05"), stack(V100, "580.95.05")),
    ("DRV-001", stack("P100 PCIe 16GB", "590.48.01"), stack(MAXWELL, "590.48.01")),
    ("DRV-002", stack(KEPLER, "470.82.01", "11.4"), stack(V100, "470.82.01", "11.4")),
    ("DRV-003", stack(V100), stack(V100, kernel_module="proprietary")),
    ("DRV-003", stack("T4G", "615.78.08"), stack(T4, "615.78.08")),  # T4G was never in the open list, T4 is
    ("DRV-004", stack(B200, kernel_module="proprietary"), stack(H100, kernel_module="proprietary")),
    ("DRV-004", stack("GH200 96GB", kernel_module="proprietary"), stack("GH200 96GB")),
    (
        "DRV-005",
        stack(H100, "620.10.01", kernel_module="proprietary"),
        stack(H100, "615.78.08", kernel_module="proprietary"),
    ),
    ("DRV-006", stack(T4, "570.211.01"), stack(T4, "575.51.03")),
    ("DRV-006", stack(T4, "570.211.01"), stack(T4, "570.211.01", kernel_module="proprietary")),
    ("DRV-007", stack(B200, "570.86.15"), stack(B200, "570.133.20")),
    ("DRV-007", stack("B300 288GB", "580.65.06"), stack("B300 288GB", "580.82.07")),
    ("DRV-007", stack(H100, "515.48.07", "11.8"), stack(H100, "525.60.13", "11.8")),  # only the branch is known
    ("DRV-008", stack(H100, "570.211.01"), stack(H100, "580.95.05")),
    (
        "DRV-008",
        stack(H100, "550.90.07"),
        stack(H100, "620.10.01"),
    ),  # no date, but the vendor's list says so; unknown says nothing
    ("DRV-009", [node(V100), node(B200)], [node(V100), node(H100)]),
    ("DRV-009", [node("P100 PCIe 16GB"), node("GH200 96GB")], [node(T4), node("GH200 96GB")]),
    ("DRV-010", node(H100, not_held=("nvidia-open",)), node(H100, not_held=())),
    ("DRV-010", node(H100, unattended_upgrades="on"), node(H100, unattended_upgrades="excluded")),
    (
        "DRV-011",
        node(H100, os="ubuntu2404", package_source="distro", packages={"nvidia-headless-550-server-open": ""}),
        node(H100, os="ubuntu2404", package_source="distro", packages={"nvidia-headless-580-server-open": ""}),
    ),
    (
        "DRV-011",  # the transitional package: what it would install tells
        node(
            os="ubuntu2404",
            package_source="distro",
            packages={"nvidia-headless-550": ""},
            candidates={"nvidia-headless-550": "580.95-0"},
        ),
        node(
            os="ubuntu2404",
            package_source="distro",
            packages={"nvidia-headless-550": ""},
            candidates={"nvidia-headless-550": "550.163-0"},
        ),
    ),
    (
        "DRV-011",
        node(os="ubuntu2404", package_source="distro", packages={"nvidia-driver-550": ""}),
        node(os="ubuntu2404", package_source="vendor", packages={"nvidia-driver-550": ""}),
    ),
    (
        "DRV-012",
        node(secure_boot=True, module_build="dkms", module_key_enrolled=False),
        node(secure_boot=True, module_build="dkms", module_key_enrolled=True),
    ),
    (
        "DRV-012",
        node(secure_boot=True, module_build="dkms", module_key_enrolled=False),
        node(secure_boot=True, module_build="precompiled", module_key_enrolled=False),
    ),
    ("CUD-001", stack(H100, "575.57.08", "13.0"), stack(H100, "580.65.06", "13.2")),
    ("CUD-001", stack(H100, "520.61.05", "12.0"), stack(H100, "525.60.13", "12.9")),
    ("CUD-002", stack(V100, cuda="13.0"), stack(V100, cuda="12.9")),
    ("CUD-002", stack(MAXWELL, cuda="13.0"), stack(T4, cuda="13.0")),
    ("CUD-003", stack(B200, cuda="12.6"), stack(B200, cuda="12.8")),
    ("FAB-001", node(board=HGX, fabric_manager=ABSENT), node(board=PCIE, fabric_manager=ABSENT)),
    ("FAB-001", node(board=HGX, fabric_manager_active=False), node(board=HGX, fabric_manager_active=True)),
    (
        "FAB-002",
        node(driver="580.95.05", fabric_manager="580.105.08"),
        node(driver="580.95.05", fabric_manager="580.95.05"),
    ),
    ("FAB-002", node(driver="580.95.05", fabric_manager="580.95"), node(driver="580.95.05", fabric_manager=ABSENT)),
    ("FAB-003", node(board=PCIE, fabric_manager="580.95.05"), node(board=HGX, fabric_manager="580.95.05")),
    ("FAB-003", node(board=PCIE, fabric_manager="580.95.05"), node(board=NoBoard(None), fabric_manager="580.95.05")),
    (
        "FAB-004",
        node(driver="580.95.05", packages={"nvidia-fabricmanager-580": ""}),
        node(driver="580.95.05", packages={"nvidia-fabricmanager": ""}),
    ),
    (
        "FAB-004",
        node(driver="570.86.15", packages={"nvidia-fabricmanager": ""}),
        node(driver="570.86.15", packages={"nvidia-fabricmanager-570": ""}),
    ),
    (
        "FAB-004",  # RHEL: the runtime package lost its dash in 580, the devel package kept it
        node(driver="580.95.05", packages={"nvidia-fabric-manager": ""}),
        node(driver="580.95.05", packages={"nvidia-fabricmanager": "", "nvidia-fabric-manager-devel": ""}),
    ),
    (
        "FAB-004",
        node(driver="570.86.15", packages={"nvidia-fabricmanager-550": ""}),
        node(driver="570.86.15", packages={"nvidia-fabric-manager": ""}),
    ),
    ("FAB-005", node(board=NVLINK5, nvlsm=False), node(board=HGX, nvlsm=False)),
    (
        "FAB-005",
        node(board=NVLINK5, nvlsm=True, loaded_modules=frozenset({"mlx5_core"})),
        node(board=NVLINK5, nvlsm=True, loaded_modules=frozenset({"mlx5_core", "ib_umad"})),
    ),
    ("FAB-006", node(board=TRAY, imex=ABSENT), node(board=TRAY, imex="580.95.05", fabric_manager=ABSENT)),
    (
        "FAB-006",
        node(board=TRAY, imex="580.95.05", fabric_manager="580.95.05"),
        node(board=HGX, imex=ABSENT, fabric_manager="580.95.05"),
    ),
    ("FAB-007", DetectionState("tool", ("10de:22a3", "10de:2901")), DetectionState("tool", ("10de:1af1", "10de:22a3"))),
    ("MIG-001", mig(T4, {"1g.10gb": 7}), mig(H100, {"1g.10gb": 7})),
    (
        "MIG-002",
        mig("H200 SXM 141GB", {"1g.18gb": 7}, driver="535.274.02"),
        mig("H200 SXM 141GB", {"1g.18gb": 7}, driver="550.90.07"),
    ),
    ("MIG-003", mig("A100 SXM4 40GB", {"1g.20gb": 1}), mig("A100 SXM4 80GB", {"1g.20gb": 1})),
    (
        "MIG-003",
        mig("A100 SXM4 40GB", {"1g.10gb": 7}),
        mig("A100 SXM4 80GB", {"1g.10gb": 7}),
    ),  # 4 fit on the small board
    ("MIG-003", mig(H100, {"3g.40gb": 2, "2g.20gb": 1}), mig(H100, {"3g.40gb": 1, "2g.20gb": 2})),
    ("MIG-003", replace(mig(H100, {"7g.80gb": 1}), gpu_count=0), mig(H100, {"7g.80gb": 1})),
    (
        "MIG-004",
        [mig("A100 SXM4 40GB", {"1g.10gb": 4}), mig(H100, {"1g.10gb": 7})],
        [mig("A100 SXM4 80GB", {"1g.10gb": 7}), mig(H100, {"1g.10gb": 7})],
    ),
    (
        "MIG-004",  # all-1g.35gb: 4 on H200, 7 on GB300
        [mig("H200 SXM 141GB", {"1g.35gb": 4}), mig("GB300", {"1g.35gb": 7})],
        [mig("H200 SXM 141GB", {"1g.35gb": 4}), mig("GB300", {"1g.70gb": 4})],
    ),
    ("MIG-005", node(dcgm_level=4, mig_enabled=True), node(dcgm_level=3, mig_enabled=True)),
    ("MIG-005", node(dcgm_level=4, mig_enabled=True), node(dcgm_level=4, mig_enabled=False)),
    (
        "PKG-001",
        node(packages={"datacenter-gpu-manager": "", "datacenter-gpu-manager-4-core": ""}),
        node(packages={"datacenter-gpu-manager-4-core": "", "datacenter-gpu-manager-4-cuda13": ""}),
    ),
    ("PKG-002", node(packages=TOOLKIT | {"libnvidia-container1": "1.17.8-1"}), node(packages=TOOLKIT)),
    (
        "PKG-003",
        ClusterState(operator_driver=True, host_driver=True),
        ClusterState(operator_driver=False, host_driver=True),
    ),
    (
        "PKG-003",
        ClusterState(operator_toolkit=True, host_driver=True),
        ClusterState(operator_toolkit=True, host_driver=False),
    ),
    ("NET-001", node(peer_memory="peermem", rdma="inbox"), node(peer_memory="peermem", rdma="doca-ofed")),
    ("NET-001", node(peer_memory="peermem", rdma="efa"), node(peer_memory="dma-buf", rdma="inbox")),
    ("NET-002", node(H100, **DMA_BUF | {"kernel_module": "proprietary"}), node(H100, **DMA_BUF)),
    ("NET-002", node(H100, **DMA_BUF | {"kernel": "4.18.0-553.el8"}), node(H100, **DMA_BUF | {"kernel": "5.12"})),
    ("NET-002", node(H100, **DMA_BUF | {"cuda": "11.4"}), node(H100, **DMA_BUF | {"cuda": "11.7"})),
    ("NET-002", node(V100, **DMA_BUF), node(T4, **DMA_BUF)),
    ("NET-003", node(rdma="mlnx-ofed", kernel="6.8.0-55-generic"), node(rdma="mlnx-ofed", kernel="5.15.0-100-generic")),
    (
        "NET-003",
        node(rdma="mlnx-ofed", kernel="5.15.0", ofed_kernels=("5.4",)),
        node(rdma="mlnx-ofed", kernel="6.8.0", ofed_kernels=("6.8",)),
    ),
    ("NET-003", node(rdma="mlnx-ofed", kernel="6.8.0"), node(rdma="doca-ofed", kernel="6.8.0")),
    ("NET-004", node(gds=True, kernel_module="proprietary"), node(gds=True, kernel_module="open")),
    (
        "NET-004",
        node(gds=True, kernel_module="open", secure_boot=True),
        node(gds=False, kernel_module="open", secure_boot=True),
    ),
    ("NET-005", FabricState("hall", masters=2), FabricState("hall", masters=1)),
    ("NET-005", FabricState("hall", masters=0), FabricState("hall")),
    ("NET-005", FabricState("hall", managers=("a", "b", "c")), FabricState("hall", managers=("a", "b"))),
    (
        "NET-005",
        FabricState("hall", managers=("head",), opensm_hosts=("head", "dgx01"), compute_hosts=("dgx01",)),
        FabricState("hall", managers=("head",), opensm_hosts=("head",), compute_hosts=("dgx01",)),
    ),
    (
        "NET-006",
        FabricState("hall", partitions_conf="team=0x8001 : ALL=full;\n"),
        FabricState("hall", partitions_conf="Default=0x7fff : ALL=full;\n"),
    ),
    (
        "NET-006",
        FabricState("hall", partitions_conf="# Default=0x7fff : ALL=full;\n"),
        FabricState("hall", partitions_conf="# first\nDefault=0x7fff, ipoib :\n ALL=full;\nteam=0x8001 : ALL;\n"),
    ),
    (
        "SLM-003",
        ClusterState(gres_autodetect="nvidia", mig_used=True),
        ClusterState(gres_autodetect="nvml", mig_used=True),
    ),
    (
        "SLM-003",
        ClusterState(gres_autodetect="nvidia", nvlink_affinity=True),
        ClusterState(gres_autodetect="nvidia", nvlink_affinity=False),
    ),
    ("ACC-001", ThresholdState(**ROW | {"message_size": None}), ThresholdState(**ROW)),
    (
        "ACC-001",
        ThresholdState(**ROW | {"unit": None}),
        ThresholdState(**ROW | {"kind": "dcgm-memory-bandwidth", "unit": None}),
    ),
    ("ACC-001", ThresholdState(**ROW | {"statistic": "average-over-sweep"}), ThresholdState(**ROW)),
    (
        "ACC-002",
        ThresholdState("membw", "H200 SXM 141GB", "dcgm-memory-bandwidth", 2333.0),
        ThresholdState("membw", "H200 SXM 141GB", "dcgm-memory-bandwidth", 2_000_000.0),
    ),
    (
        "ACC-002",
        ThresholdState("membw", "H200 SXM 141GB", "dcgm-memory-bandwidth", 2333.0),
        ThresholdState("membw", H100, "dcgm-memory-bandwidth", 2333.0),
    ),
    ("K8S-001", ClusterState(relies_on_plugin_for_xids=(48, 109)), ClusterState(relies_on_plugin_for_xids=(48,))),
]

CHECKS = {
    NodeState: lambda state: rules.check_node(state, FACTS, today=TODAY),
    list: lambda fleet: rules.check_fleet(fleet, FACTS),
    FabricState: lambda state: rules.check_fabric(state, FACTS),
    ClusterState: lambda state: rules.check_cluster(state, FACTS),
    DetectionState: lambda state: rules.check_detection(state, FACTS),
    ThresholdState: lambda state: rules.check_threshold(state, FACTS),
}


def ids(state):
    return {hit.id for hit in CHECKS[type(state)](state)}


@pytest.mark.parametrize(
    ("rule", "hit", "miss"), [pytest.param(*case, id=f"{case[0]}-{n}") for n, case in enumerate(CASES)]
)
def test_each_rule_hits_and_misses(rule, hit, miss):
    assert rule in ids(hit)
    assert rule not in ids(miss)


def test_every_software_rule_is_code_and_has_a_hit_and_a_miss():
    software = {rule.id for rule in catalog.rules()} - NOT_SOFTWARE.keys()
    assert software == set(rules.CODED) == {case[0] for case in CASES}
    assert NOT_SOFTWARE.keys() <= {rule.id for rule in catalog.rules()}, "a listed id is gone from rules.yaml"


@pytest.mark.parametrize(
    "state", [NodeState(), [NodeState()], FabricState("f"), ClusterState(), DetectionState("d", ())], ids=str
)
def test_what_is_unknown_breaks_no_rule(state):
    assert ids(state) == set()


def test_an_unknown_cell_is_never_zero():
    unknown = replace(catalog.gpu(B200), min_driver=None, min_driver_branch=None, cuda_first=None)
    assert not ids(stack(unknown, "450.80.02", "11.0")) - {"DRV-008"}
    assert "CUD-001" not in ids(stack(H100, "580.95.05", "99.0"))  # no such CUDA in the data
    a100_64 = "A100 SXM 64GB"  # whether it has MIG is not sourced
    assert ids(mig(a100_64, {"1g.8gb": 7})) == set()
    gh200 = catalog.board(catalog.gpu("GH200 96GB"), 1)
    assert gh200.nvswitch is None
    assert not ids(node("GH200 96GB", board=gh200, fabric_manager=ABSENT, nvlsm=False, imex=ABSENT))


def test_a_good_stack_breaks_nothing():
    for gpu in (H100, B200, T4, "RTX PRO 4500 Blackwell Server Edition"):
        assert ids(stack(gpu, "580.142", "13.0")) == set()


def test_every_broken_rule_is_listed_with_the_severity_and_text_of_the_data():
    broken = stack(V100, "620.10.01", "13.0")
    hits = rules.check_node(broken, FACTS)
    assert [hit.id for hit in hits] == ["DRV-001", "DRV-003", "CUD-002"]
    for hit in hits:
        rule = catalog.rule(hit.id)
        assert hit.severity == rule.severity and hit.message.endswith(rule.message) and hit.group == "g"
        assert V100 in hit.message
    softer = replace(catalog.rule("DRV-003"), severity="warning")
    again = rules.check_node(broken, replace(FACTS, rules={**FACTS.rules, "DRV-003": softer}))
    assert [hit.severity for hit in again] == ["error", "warning", "error"]


def test_the_catalogue_itself_never_looks_for_the_b200_gpu():
    assert ids(DetectionState("nvswitch_pci.csv", catalog.nvswitch_pci_ids())) == set()
    assert "2901" in catalog.gpu(B200).pci_device_ids


def test_the_table_of_thresholds_held_against_the_rules():
    """Four rows have no number of nodes, so no gate may compare with them."""
    broken = set()
    for row in table("acceptance_thresholds.csv").rows:
        if row["kind"] == "gate" and ("bandwidth" in row["metric"] or "busbw" in row["metric"]):
            nodes = int(row["nodes"]) if row["nodes"] else None
            given = ThresholdState(
                row["id"],
                gpu=row["gpu"],
                kind="bandwidth",
                minimum=float(row["value"]),
                message_size=row["message_size"] or None,
                nodes=nodes,
                unit=row["unit"] or None,
            )
            broken |= {row["id"]} if "ACC-001" in ids(given) else set()
    assert broken == {"T32", "T33", "T34", "T50"}


@pytest.mark.parametrize(
    ("model", "count", "board"),
    [
        ("H100 SXM5 80GB", 8, (True, False, False)),
        ("H100 SXM5 80GB", 4, (False, False, False)),  # a 4-GPU board is meshed
        ("H100 SXM5 80GB", 1, (False, False, False)),
        ("A100 SXM4 40GB", 8, (True, False, False)),
        ("H20", 8, (True, False, False)),
        ("V100 SXM3 32GB", 16, (True, False, False)),
        ("V100 SXM2 32GB", 8, (False, False, False)),
        ("B200 180GB", 8, (True, True, False)),
        ("B300 288GB", 8, (True, True, False)),
        ("GB200 186GB", 4, (False, False, True)),
        ("GB300", 4, (False, False, True)),
        ("L40S", 8, (False, False, False)),
        ("GH200 96GB", 1, (None, None, None)),
    ],
)
def test_boards(model, count, board):
    needs = catalog.board(catalog.gpu(model), count)
    assert (needs.nvswitch, needs.nvlsm, needs.imex) == board


def test_every_gpu_has_a_board_with_any_count():
    for gpu in catalog.gpus().values():
        for count in (1, 2, 4, 8, 16):
            needs = catalog.board(gpu, count)
            assert not (needs.nvlsm and not needs.nvswitch), (gpu.model, count)
            assert not (needs.imex and needs.nvswitch), (gpu.model, count)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("580.95.05", "580.105.08"),
        ("580.95.05", "580.142"),
        ("570.9", "570.26"),
        ("12.8", "12.8u1"),
        ("9.2", "10.0"),
        ("12.9u1", "13.0"),
    ],
)
def test_versions_are_compared_as_numbers(older, newer):
    assert version(older) < version(newer)


@pytest.mark.parametrize("text", ["", "580.", "580.x", "v580", "580-server", "12.8u"])
def test_what_is_not_a_version_is_refused(text):
    with pytest.raises(ValueError, match="is not a version"):
        version(text)


def test_kernel_releases():
    assert kernel_version("6.12.57+deb13-amd64") == (6, 12, 57)
    assert kernel_version("4.18.0-553.el8_10.x86_64") == (4, 18, 0)
    with pytest.raises(ValueError, match="is not a kernel version"):
        kernel_version("linux")
