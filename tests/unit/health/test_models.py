"""Which model of the catalogue a GPU is."""

import pytest

from ironburst.catalog import gpus
from ironburst.health.models import HBM, model_matches
from ironburst.health.smi_table import NEEDS_ECC


@pytest.mark.parametrize(
    ("model", "name", "mib", "matches"),
    [
        ("H100 SXM5 80GB", "NVIDIA H100 80GB HBM3", 81559, True),
        ("H100 SXM5 80GB", "NVIDIA H100 PCIe", 81559, False),
        ("H100 SXM5 80GB", "NVIDIA H200", 143771, False),
        ("H100 NVL 94GB", "NVIDIA H100 NVL", 95830, True),
        ("H100 NVL 94GB", "NVIDIA H100 80GB HBM3", 81559, False),
        ("H200 SXM 141GB", "NVIDIA H200", 143771, True),
        ("A100 SXM4 40GB", "NVIDIA A100-SXM4-40GB", 40960, True),
        ("A100 SXM4 40GB", "NVIDIA A100-SXM4-80GB", 81920, False),
        ("A100 PCIe 80GB", "NVIDIA A100-SXM4-80GB", 81920, False),
        ("A100 PCIe 80GB", "NVIDIA A100 80GB PCIe", 81920, True),
        ("V100 SXM2 32GB", "Tesla V100-SXM2-32GB", 32768, True),
        ("V100 SXM2 32GB", "Tesla V100-PCIE-32GB", 32768, False),
        ("B200 180GB", "NVIDIA B200", 183359, True),
        ("H100 SXM5 80GB", "NVIDIA Graphics Device", 81559, False),
        ("A40", "NVIDIA A40", 46068, True),
        ("A40", "NVIDIA A40-8Q", 8192, False),  # an eighth of it
    ],
)
def test_model_matches(model, name, mib, matches):
    assert model_matches(model, name, mib) is matches


@pytest.mark.parametrize(
    "gpu", [gpu for gpu in gpus().values() if (gpu.form_factor or "").startswith(("SXM", "superchip"))]
)
def test_a_gpu_on_a_board_has_hbm_so_its_ecc_is_looked_at(gpu):
    assert HBM.search(gpu.model) and NEEDS_ECC.search(gpu.model), gpu.model
