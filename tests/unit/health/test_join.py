"""The join level: what passes, and that everything not understood fails."""

import pytest

from ironburst.health import join
from ironburst.health.join import Disk, Node, Observed, RdmaPort, evaluate
from ironburst.health.settings import Settings
from ironburst.health.tools import Outcome
from tests.unit.health import samples
from tests.unit.health.catalogue import TABLES

LSPCI = "".join(f"0000:{0x18 + 16 * n:02x}:00.0 0302: 10de:2330 (rev a1)\n" for n in range(8))
SMI = "".join(f"{n}, NVIDIA H100 80GB HBM3, 580.95.05, 81559\n" for n in range(8))
H100 = samples.BY["h100-sxm5"]
SETTINGS = Settings(
    driver="580.95.05",
    gpu_model="H100 SXM5 80GB",
    gpu_count=8,
    fabric="infiniband",
    fabric_links=8,
    mounts=("/shared",),
    fabric_manager=True,
)
PORTS = tuple(RdmaPort(f"mlx5_{n}/1", "InfiniBand", "4: ACTIVE", "400 Gb/sec (4X NDR)", "5: LinkUp") for n in range(8))
OUTPUTS = {
    "lspci": LSPCI,
    "gpus": SMI,
    "gpu_health": samples.xml(H100),
    "nvlink": samples.nvlink(H100),
    "fabric_manager": "LoadState=loaded\nActiveState=active\nSubState=running\n",
    "xid": "[    1.500000] node01 kernel: NVRM: loading NVIDIA UNIX Open Kernel Module\n",
    "time": "NTPSynchronized=yes\n",
}
GOOD = Observed(
    outcomes={name: Outcome(0, text) for name, text in OUTPUTS.items()},
    ports=PORTS,
    mount_points=("/", "/shared", "/proc"),
    memory_kib={"MemTotal": 2113536000, "MemAvailable": 2000000000},
    uncorrected=0,
    disks=(Disk("/", 9 * 10**11, 10**12, True),),
)


def said(**outcomes):
    """GOOD, but some tools have said something else."""
    return GOOD._replace(outcomes=GOOD.outcomes | outcomes)


def failed(observed, settings=SETTINGS):
    findings = evaluate(Node(settings, TABLES, observed))
    assert join.passed(findings) == all(finding.passed for finding in findings)
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
    sentences = failed(said(gpus=outcome))
    assert set(sentences) == {"gpu_count", "gpu_model", "driver"}
    assert all(text in words for words in sentences.values())


@pytest.mark.parametrize(
    "outcome",
    [Outcome(None, "", "is not installed"), Outcome(0, ""), Outcome(1, LSPCI), Outcome(0, "pcilib: Cannot open\n")],
)
def test_lspci_fails_closed(outcome):
    assert set(failed(said(lspci=outcome))) == {"gpus_on_bus"}


def test_one_gpu_fell_off_the_bus():
    lspci, smi = ("".join(text.splitlines(True)[1:]) for text in (LSPCI, SMI))
    assert failed(said(lspci=Outcome(0, lspci), gpus=Outcome(0, smi))) == {
        "gpus_on_bus": "7 of 8 GPUs on the PCI bus",
        "gpu_count": "the driver has 7 of 8 GPUs",
    }


def test_an_nvswitch_is_no_gpu():
    assert failed(said(lspci=Outcome(0, LSPCI + "0000:c0:00.0 0680: 10de:22a3 (rev a1)\n"))) == {}


def test_another_driver_or_two_of_them():
    other, mixed = SMI.replace("580.95.05", "575.57.08"), SMI.replace("580.95.05", "575.57.08", 1)
    assert "declared 580.95.05" in failed(said(gpus=Outcome(0, other)))["driver"]
    driver = failed(said(gpus=Outcome(0, mixed)))["driver"]
    assert driver == "driver 575.57.08, 580.95.05, declared 580.95.05"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda lines: lines + lines[-1:], "a device is listed twice"),
        (lambda lines: lines[::-1], "the devices are not in the order of their addresses"),
        (lambda lines: [lines[0][5:], *lines[1:]], "not understood"),
        (lambda lines: [*lines, "0000:ff:00.0 0200: 15b3:1021"], "not understood"),
        (lambda lines: [*lines[:4], "", *lines[4:]], "not understood"),
        (lambda lines: [*lines[:-1], lines[-1].replace("a1", "a")], "not understood"),
    ],
)
def test_the_list_of_the_bus_must_be_the_one_that_was_asked(change, text):
    """The domain of each, only NVIDIA's, by number, in order, each once."""
    lspci = "\n".join(change(LSPCI.splitlines())) + "\n"
    assert text in failed(said(lspci=Outcome(0, lspci)))["gpus_on_bus"]


@pytest.mark.parametrize(
    ("ports", "text"),
    [
        ((), "0 of 8 infiniband links are active"),
        (PORTS[:7], "7 of 8 infiniband links are active"),
        ((*PORTS[:7], PORTS[7]._replace(state="1: DOWN")), "7 of 8 infiniband links are active; mlx5_7/1 is 1: DOWN"),
        ((*PORTS[:7], PORTS[7]._replace(state="2: INIT")), "mlx5_7/1 is 2: INIT"),
        ((*PORTS[:7], PORTS[7]._replace(state="")), "mlx5_7/1 is unknown"),
        ((*PORTS, PORTS[7]._replace(name="mlx5_8/1", state="1: DOWN")), "mlx5_8/1 is 1: DOWN"),
        (tuple(port._replace(layer="Ethernet") for port in PORTS), "0 of 8"),
        (tuple(port._replace(layer="") for port in PORTS), "0 of 8"),
    ],
)
def test_infiniband_fails_closed(ports, text):
    assert text in failed(GOOD._replace(ports=ports))["fabric"]


def test_efa_and_no_fabric():
    efa = SETTINGS._replace(fabric="efa", fabric_links=32)
    ports = tuple(PORTS[0]._replace(name=f"rdmap{n}s0/1", layer="Unspecified") for n in range(32))
    assert failed(GOOD._replace(ports=ports), efa) == {}
    assert "31 of 32 efa" in failed(GOOD._replace(ports=ports[1:]), efa)["fabric"]
    assert failed(GOOD._replace(ports=()), SETTINGS._replace(fabric="none", fabric_links=0)) == {}


def test_the_shared_folder_must_be_mounted():
    assert failed(GOOD._replace(mount_points=("/", "/shared2"))) == {"mounts": "not mounted: /shared"}
    assert failed(GOOD._replace(mount_points=())) == {"mounts": "not mounted: /shared"}


def test_a_crash_in_a_check_is_a_failed_check():
    assert failed(GOOD._replace(mount_points=None)).keys() == {"mounts"}
    assert "the check itself failed" in failed(GOOD._replace(mount_points=None))["mounts"]


def test_a_check_that_is_missing_is_no_pass():
    findings = evaluate(Node(SETTINGS, TABLES, GOOD))
    assert join.passed(findings)
    assert not join.passed(findings[:-1])
    assert not join.passed([])


def gpus_of(**outcomes):
    """{check: UUIDs} of what failed."""
    findings = evaluate(Node(SETTINGS, TABLES, said(**outcomes)))
    return {finding.check: finding.gpus for finding in findings if not finding.passed}


ROWS = "<remapped_row_failure>No</remapped_row_failure>"
UUIDS = [part.split("<")[0] for part in samples.xml(H100).split("<uuid>")[1:]]
PLACES = [part.split('"')[0] for part in samples.xml(H100).split('<gpu id="')[1:]]


def damaged(text, good, bad, *numbers):
    """The output with another value for these GPUs."""
    parts = text.split(good)
    assert len(parts) == 9
    return parts[0] + "".join((bad if n in numbers else good) + part for n, part in enumerate(parts[1:]))


@pytest.mark.parametrize("numbers", [(3,), (0, 7)])
def test_a_fault_of_some_gpus_is_about_those(numbers):
    text = damaged(samples.xml(H100), ROWS, ROWS.replace("No", "Yes"), *numbers)
    assert gpus_of(gpu_health=Outcome(0, text)) == {"gpu_health": tuple(sorted(UUIDS[n] for n in numbers))}


def test_a_fault_that_may_be_the_boards_is_about_the_node():
    state = "<state>Completed</state>"
    one = damaged(samples.xml(H100), ROWS, ROWS.replace("No", "Yes"), 3)
    assert gpus_of(gpu_health=Outcome(0, damaged(one, state, "<state>In Progress</state>", 3))) == {"gpu_health": ()}
    assert gpus_of(gpu_health=Outcome(1, one)) == {"gpu_health": ()}


@pytest.mark.parametrize(
    ("xid", "text", "own"),
    [
        (95, "uncontained ECC error", True),  # a reset
        (79, "GPU has fallen off the bus", False),  # a reboot of the node
        (74, "NVLink: fatal error", False),  # its peers see it, too
        (999, "nobody knows", False),
    ],
)
def test_an_xid_that_a_reset_heals_is_about_its_gpu(xid, text, own):
    domain, bus, device = PLACES[2].split(":")
    line = f"[  100.5] node01 kernel: NVRM: Xid (PCI:{domain[-4:]}:{bus}:{device.split('.')[0]}): {xid}, {text}\n"
    found = gpus_of(xid=Outcome(0, OUTPUTS["xid"] + line))
    assert found == {"xid": (UUIDS[2],) if own else ()}
    elsewhere = line.replace(f":{bus}:", ":fe:")
    assert gpus_of(xid=Outcome(0, OUTPUTS["xid"] + elsewhere)) == {"xid": ()}
    both = line + elsewhere
    assert gpus_of(xid=Outcome(0, OUTPUTS["xid"] + both)) == {"xid": ()}
