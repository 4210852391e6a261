"""The gate's judgement: what passes, and that everything not understood fails."""

import pytest

from ironburst.health import checks
from ironburst.health.checks import Expected, Gpu, Link, Observed, Outcome, Unreadable, evaluate

LSPCI = "".join(f"0000:{0x18 + 16 * n:02x}:00.0 0302: 10de:2330 (rev a1)\n" for n in range(8))
SMI = "".join(f"{n}, NVIDIA H100 80GB HBM3, 580.95.05, 81559\n" for n in range(8))
EXPECTED = Expected("580.95.05", "H100 SXM5 80GB", 8, "infiniband", 8, ("/shared",))
LINKS = tuple(Link(f"mlx5_{n}", "1", "4: ACTIVE", "InfiniBand") for n in range(8))
GOOD = Observed(Outcome(0, LSPCI), Outcome(0, SMI), LINKS, ("/", "/shared", "/proc"))


def failed(observed, expected=EXPECTED):
    findings = evaluate(expected, observed)
    assert checks.passed(findings) == all(finding.passed for finding in findings)
    return {finding.check: finding.text for finding in findings if not finding.passed}


def test_a_good_node_passes():
    assert failed(GOOD) == {}


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Outcome(None, "", "is not installed"), "nvidia-smi is not installed"),
        (Outcome(None, "", "did not answer in 20 s"), "nvidia-smi did not answer in 20 s"),
        (Outcome(0, ""), "nvidia-smi says nothing"),
        (Outcome(6, "No devices were found\n"), "nvidia-smi failed with exit status 6: No devices were found"),
        (Outcome(0, "Hello\n"), "not understood"),
        (Outcome(0, SMI + "NVRM: something\n"), "not understood"),
        (Outcome(0, SMI.replace("81559", "[N/A]", 1)), "not understood"),
        (Outcome(0, SMI.replace("580.95.05", "[Unknown Error]", 1)), "not understood"),
        (Outcome(0, SMI + "0, NVIDIA H100 80GB HBM3, 580.95.05, 81559\n"), "twice"),
    ],
)
def test_nvidia_smi_fails_closed(outcome, text):
    found = failed(GOOD._replace(nvidia_smi=outcome))
    assert set(found) == {"gpu_count", "gpu_model", "driver"}
    assert all(text in words for words in found.values())


@pytest.mark.parametrize(
    "outcome",
    [Outcome(None, "", "is not installed"), Outcome(0, ""), Outcome(1, LSPCI), Outcome(0, "pcilib: Cannot open\n")],
)
def test_lspci_fails_closed(outcome):
    assert set(failed(GOOD._replace(lspci=outcome))) == {"gpus_on_bus"}


def test_one_gpu_fell_off_the_bus():
    lspci, smi = ("".join(text.splitlines(True)[1:]) for text in (LSPCI, SMI))
    found = failed(GOOD._replace(lspci=Outcome(0, lspci), nvidia_smi=Outcome(0, smi)))
    assert found == {"gpus_on_bus": "7 of 8 GPUs on the PCI bus", "gpu_count": "the driver has 7 of 8 GPUs"}


def test_an_nvswitch_is_no_gpu():
    assert failed(GOOD._replace(lspci=Outcome(0, LSPCI + "0000:c0:00.0 0680: 10de:22a3 (rev a1)\n"))) == {}


def test_another_driver_or_two_of_them():
    assert (
        "declared 580.95.05"
        in failed(GOOD._replace(nvidia_smi=Outcome(0, SMI.replace("580.95.05", "575.57.08"))))["driver"]
    )
    mixed = SMI.replace("580.95.05", "575.57.08", 1)
    assert (
        failed(GOOD._replace(nvidia_smi=Outcome(0, mixed)))["driver"]
        == "driver 575.57.08, 580.95.05, declared 580.95.05"
    )


@pytest.mark.parametrize(
    ("links", "text"),
    [
        ((), "0 of 8 infiniband links are active"),
        (LINKS[:7], "7 of 8 infiniband links are active"),
        ((*LINKS[:7], LINKS[7]._replace(state="1: DOWN")), "7 of 8 infiniband links are active; mlx5_7/1 is 1: DOWN"),
        ((*LINKS[:7], LINKS[7]._replace(state="2: INIT")), "mlx5_7/1 is 2: INIT"),
        ((*LINKS[:7], LINKS[7]._replace(state="")), "mlx5_7/1 is unknown"),
        ((*LINKS, LINKS[7]._replace(device="mlx5_8", state="1: DOWN")), "mlx5_8/1 is 1: DOWN"),
        (tuple(link._replace(layer="Ethernet") for link in LINKS), "0 of 8"),
        (tuple(link._replace(layer="") for link in LINKS), "0 of 8"),
    ],
)
def test_infiniband_fails_closed(links, text):
    assert text in failed(GOOD._replace(links=links))["fabric"]


def test_efa_and_no_fabric():
    efa = EXPECTED._replace(fabric="efa", fabric_links=32)
    links = tuple(Link(f"rdmap{n}s0", "1", "4: ACTIVE", "Unspecified") for n in range(32))
    assert failed(GOOD._replace(links=links), efa) == {}
    assert "31 of 32 efa" in failed(GOOD._replace(links=links[1:]), efa)["fabric"]
    assert failed(GOOD._replace(links=()), EXPECTED._replace(fabric="none", fabric_links=0)) == {}


def test_the_shared_folder_must_be_mounted():
    assert failed(GOOD._replace(mount_points=("/", "/shared2"))) == {"mounts": "not mounted: /shared"}
    assert failed(GOOD._replace(mount_points=())) == {"mounts": "not mounted: /shared"}


def test_a_crash_in_a_check_is_a_failed_check():
    assert set(failed(GOOD._replace(links=None))) == {"fabric"}


def test_a_check_that_is_missing_is_no_pass():
    assert not checks.passed(evaluate(EXPECTED, GOOD)[:-1])
    assert not checks.passed([])


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
        ("B200 180GB", "NVIDIA B200", 183359, True),
        ("H100 SXM5 80GB", "NVIDIA Graphics Device", 81559, False),
    ],
)
def test_model_matches(model, name, mib, matches):
    assert checks.model_matches(model, Gpu(0, name, "1.0", mib)) is matches


SETTINGS = {
    "driver": "580.95.05",
    "gpu_model": "H100 SXM5 80GB",
    "gpu_count": 8,
    "fabric": "infiniband",
    "fabric_links": 8,
    "mounts": ["/shared"],
}


def test_expected_from():
    assert checks.expected_from(SETTINGS) == EXPECTED


@pytest.mark.parametrize(
    "change",
    [
        {"gpu_count": 0},
        {"gpu_count": "8"},
        {"gpu_count": True},
        {"gpu_model": ""},
        {"driver": None},
        {"fabric": "ethernet"},
        {"fabric_links": 0},
        {"mounts": "/shared"},
    ],
)
def test_settings_that_would_let_every_node_pass_are_refused(change):
    with pytest.raises(Unreadable):
        checks.expected_from(SETTINGS | change)
    with pytest.raises(Unreadable):
        checks.expected_from({name: value for name, value in SETTINGS.items() if name not in change})
    with pytest.raises(Unreadable):
        checks.expected_from([SETTINGS])
