"""The comparison of a declared node with what its BMC reports: every kind of mismatch, all of them listed."""

from dataclasses import replace

import pytest

from ironburst.baremetal.gpu_names import possible_models
from ironburst.baremetal.hardware import GpuGroup, Hardware
from ironburst.baremetal.verify import Declaration, verify
from ironburst.catalog.hardware import gpus

OTHER_GPUS = "dgx01: GPU model H100 SXM5 80GB is declared, the BMC reports 8 x "
H100 = "NVIDIA H100 80GB HBM3"
DECLARED = Declaration(
    name="dgx01",
    serial="LAB-DGX01",
    uuid="8b1e7f0e-0000-4000-8000-00000000000b",
    manufacturer="NVIDIA",
    model="DGXH100",
    macs=("52:54:00:4e:00:0b",),
    gpu_model="H100 SXM5 80GB",
    gpu_count=8,
    cpu_count=2,
    memory_gib=1900,
)
OBSERVED = Hardware(
    serial="LAB-DGX01",
    manufacturer="Nvidia",
    model="DGXH100",
    uuid="8B1E7F0E-0000-4000-8000-00000000000B",
    macs=("52:54:00:4e:00:0b", "52:54:00:4e:01:0b"),
    gpus=(GpuGroup(H100, 8),),
    cpu_count=2,
    memory_gib=2048,
    power_state="On",
    bios_version="1.0",
    bmc_version=None,
)


def mismatches(declared, observed):
    return verify(declared, observed, gpus().values())


def test_a_node_as_declared_has_no_mismatch():
    assert mismatches(DECLARED, OBSERVED) == []


def test_what_is_not_declared_is_not_compared():
    assert mismatches(Declaration("x"), OBSERVED) == []


@pytest.mark.parametrize(
    ("field", "change", "sentence"),
    [
        (
            "serial",
            {"serial": "LAB-DGX02"},
            "dgx01: serial number 'LAB-DGX01' is declared, the BMC reports 'LAB-DGX02'",
        ),
        (
            "serial",
            {"serial": "lab-dgx01"},
            "dgx01: serial number 'LAB-DGX01' is declared, the BMC reports 'lab-dgx01'",
        ),
        ("serial", {"serial": None}, "dgx01: serial number 'LAB-DGX01' is declared, the BMC reports none"),
        (
            "uuid",
            {"uuid": None},
            "dgx01: UUID '8b1e7f0e-0000-4000-8000-00000000000b' is declared, the BMC reports none",
        ),
        (
            "manufacturer",
            {"manufacturer": "Dell Inc."},
            "dgx01: manufacturer 'NVIDIA' is declared, the BMC reports 'Dell Inc.'",
        ),
        ("model", {"model": "DGXA100"}, "dgx01: model 'DGXH100' is declared, the BMC reports 'DGXA100'"),
        (
            "macs",
            {"macs": ("52:54:00:4e:00:0c",)},
            "dgx01: MAC address 52:54:00:4e:00:0b is declared, the BMC reports 52:54:00:4e:00:0c",
        ),
        ("macs", {"macs": ()}, "dgx01: MAC address 52:54:00:4e:00:0b is declared, the BMC reports none"),
        (
            "gpu_count",
            {"gpus": (GpuGroup(H100, 7),)},
            f"dgx01: 8 x H100 SXM5 80GB GPUs are declared, the BMC reports 7 x {H100}",
        ),
        ("gpu_count", {"gpus": ()}, "dgx01: 8 x H100 SXM5 80GB GPUs are declared, the BMC reports none"),
        (
            "gpu_model",
            {"gpus": (GpuGroup("NVIDIA A100-SXM4-80GB", 8),)},
            OTHER_GPUS + "NVIDIA A100-SXM4-80GB (A100 SXM4 80GB in the catalogue)",
        ),
        (
            "gpu_model",
            {"gpus": (GpuGroup("AMD Instinct MI300X", 8),)},
            OTHER_GPUS + "AMD Instinct MI300X (not in the catalogue)",
        ),
        ("cpu_count", {"cpu_count": 1}, "dgx01: 2 CPU sockets are declared, the BMC reports 1"),
        ("memory_gib", {"memory_gib": 1024}, "dgx01: at least 1900 GiB of memory are declared, the BMC reports 1024"),
        (
            "memory_gib",
            {"memory_gib": None},
            "dgx01: at least 1900 GiB of memory are declared, the BMC reports nothing",
        ),
    ],
)
def test_each_kind_of_mismatch_is_one_sentence(field, change, sentence):
    (mismatch,) = mismatches(DECLARED, replace(OBSERVED, **change))
    assert (mismatch.field, mismatch.sentence) == (field, sentence)


def test_one_wrong_gpu_among_right_ones_is_found():
    (mismatch,) = mismatches(DECLARED, replace(OBSERVED, gpus=(GpuGroup(H100, 7), GpuGroup("NVIDIA H200", 1))))
    assert mismatch.field == "gpu_model" and "1 x NVIDIA H200 (H200 SXM 141GB in the catalogue)" in mismatch.sentence


def test_a_node_declared_without_gpus_must_have_none():
    (mismatch,) = mismatches(Declaration("head", gpu_count=0), OBSERVED)
    assert mismatch.sentence == f"head: 0 GPUs are declared, the BMC reports 8 x {H100}"


def test_everything_wrong_is_listed_at_once():
    observed = Hardware(
        "S", "M", "X", "u", ("00:00:00:00:00:01",), (GpuGroup("NVIDIA H200", 4),), 1, 512, "Off", None, None
    )
    fields = [mismatch.field for mismatch in mismatches(DECLARED, observed)]
    expected = ["serial", "uuid", "manufacturer", "model", "macs", "gpu_count", "gpu_model", "cpu_count", "memory_gib"]
    assert fields == expected


@pytest.mark.parametrize(
    ("reported", "models"),
    [
        ("NVIDIA H100 80GB HBM3", {"H100 SXM5 80GB"}),
        ("H100 80GB HBM3", {"H100 SXM5 80GB"}),
        ("NVIDIA H100 PCIe", {"H100 PCIe 80GB"}),
        ("NVIDIA H100 NVL", {"H100 NVL 94GB"}),
        ("NVIDIA H200", {"H200 SXM 141GB"}),
        ("NVIDIA A100-SXM4-80GB", {"A100 SXM4 80GB"}),
        ("NVIDIA A100-PCIE-40GB", {"A100 PCIe 40GB"}),
        ("Tesla V100-SXM2-32GB", {"V100 SXM2 32GB"}),
        ("NVIDIA GH200 480GB", {"GH200 96GB", "GH200 144GB"}),
        ("Tesla T4", {"T4"}),
        ("NVIDIA L40S", {"L40S"}),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", {"RTX PRO 6000 Blackwell Server Edition"}),
        ("A100", {"A100 SXM4 40GB", "A100 SXM4 80GB", "A100 SXM 64GB"}),
        ("H100 79GB", set()),
        ("", set()),
    ],
)
def test_reported_names_join_to_the_catalogue(reported, models):
    assert possible_models(reported, gpus().values()) == models


def test_every_platform_of_the_catalogue_has_a_gpu_that_its_own_name_finds():
    from ironburst.catalog.hardware import platforms

    for platform in platforms().values():
        assert platform.gpu.model in possible_models(f"NVIDIA {platform.gpu.model}", gpus().values())
