"""The comparison of a declared node with what its BMC reports: every kind of mismatch, all of them listed."""

import re
from dataclasses import fields, replace
from datetime import date
from pathlib import Path

import pytest

from ironburst.baremetal import hardware, health
from ironburst.baremetal.drift import LOST
from ironburst.baremetal.gpu_names import possible_models
from ironburst.baremetal.hardware import Drive, GpuDevice, GpuGroup, Hardware, Ill, Port, PowerSupply
from ironburst.baremetal.verify import Declaration, examine
from ironburst.catalog.hardware import gpus, platform
from ironburst.config.allowance_models import MISMATCHES

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
    gpu_devices=tuple(GpuDevice(f"GPU{n}", H100, None, 16, 16, "OK") for n in range(1, 9)),
    ports=tuple(Port(f"HCA{n}", None, 400.0, "LinkUp") for n in (1, 2)),
    drives=(Drive("Disk1", 3840, None, None, "OK"),),
    power_supplies=tuple(PowerSupply(f"PSU{n}", 3300, True, "OK") for n in range(1, 7)),
    psus_needed=4,
    redundant=True,
    height_u=8,
)


def mismatches(declared, observed):
    return list(examine(declared, observed, gpus().values()).mismatches)


def test_a_node_as_declared_has_no_mismatch():
    assert mismatches(DECLARED, OBSERVED) == []


def test_what_is_not_declared_is_not_compared():
    assert mismatches(Declaration("x"), OBSERVED) == []


NOTHING = Hardware(None, None, None, None, (), (), 0, None, None, None, None, not_said=("gpus", "macs", "drives"))


def test_what_the_bmc_does_not_say_is_told_and_no_mismatch():
    verdict = examine(replace(DECLARED, platform=platform("dgx-h100")), NOTHING, gpus().values())
    assert verdict.mismatches == () and all(each.unknown for each in verdict.not_said)
    assert [each.field for each in verdict.not_said] == [
        "serial", "uuid", "manufacturer", "model", "macs", "gpu_count", "cpu_count", "memory_gib",
        "memory_minimum", "network_ports", "psu_redundancy", "local_storage", "form_factor",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("field", "change", "sentence"),
    [
        (
            "memory_minimum",
            {"memory_gib": 16},
            "at least 24 GiB of memory are needed (every node needs them), the BMC reports 16",
        ),
        (
            "network_ports",
            {"ports": OBSERVED.ports[:1], "macs": ()},
            "at least 2 network ports are needed, the BMC reports 1",
        ),
        (
            "gpu_lanes",
            {"gpu_devices": (replace(OBSERVED.gpu_devices[0], lanes=8), *OBSERVED.gpu_devices[1:])},
            "GPUs need 16 PCIe lanes, the BMC reports GPU1 x8",
        ),
        (
            "psu_redundancy",
            {"power_supplies": OBSERVED.power_supplies[:1], "redundant": False},
            "redundant power supplies are needed, the BMC reports 1 of which none may fail",
        ),
        (
            "psu_input",
            {"power_supplies": (replace(OBSERVED.power_supplies[0], has_input=False), *OBSERVED.power_supplies[1:])},
            "without input power: PSU1",
        ),
        ("local_storage", {"drives": ()}, "local storage is needed, the BMC lists no drives"),
        (
            "gpu_driver",
            {"gpus": (GpuGroup("Tesla K80", 1),)},
            "whether a driver supports Tesla K80 isn't known: it is not in the catalogue",
        ),
    ],
)
def test_every_node_has_the_minimums(field, change, sentence):
    verdict = examine(Declaration("x"), replace(OBSERVED, **change), gpus().values())
    (found,) = [*verdict.mismatches, *verdict.not_said]
    assert (found.field, found.sentence) == (field, f"x: {sentence}")
    assert found.unknown == (field == "gpu_driver")


def test_a_gpu_that_no_supported_driver_knows():
    old = replace(gpus()["H100 SXM5 80GB"], last_driver_branch=470)
    (found,) = examine(Declaration("x"), OBSERVED, [old]).mismatches
    assert found.field == "gpu_driver" and f"drives {H100}" in found.sentence


V100, B200 = "Tesla V100-SXM2-32GB", "NVIDIA B200"


@pytest.mark.parametrize(
    ("driver", "name", "sentence"),
    [
        ("580.95.05", H100, None),
        ("580.95.05", B200, None),
        ("580.95.05", V100, None),
        ("470.256.02", "Tesla T4", None),  # nobody says since when
        ("470.256.02", H100, f"the lock has driver 470.256.02 for it, {H100} needs branch 525 at least"),
        ("570.86.15", B200, f"the lock has driver 570.86.15 for it, {B200} needs 570.133.20 at least"),
        ("610.43.02", V100, f"the lock has driver 610.43.02 for it, {V100} needs branch 580 at most"),
        ("535.43.02", "NVIDIA GH200 480GB", None),  # 96 or 144 GB, of which one is driven
        (
            "470.256.02",
            "NVIDIA GH200 480GB",
            "the lock has driver 470.256.02 for it, NVIDIA GH200 480GB needs branch 535 at least",
        ),
    ],
)
def test_the_locked_driver_is_held_against_the_gpus_that_are_there(driver, name, sentence):
    observed = replace(OBSERVED, gpus=(GpuGroup(name, 8),), gpu_devices=())
    found = mismatches(Declaration("x", driver=driver), observed)
    assert [(each.field, each.sentence) for each in found] == ([("gpu_driver", f"x: {sentence}")] if sentence else [])


def test_a_gpu_that_nobody_knows_is_driven_by_no_known_lock():
    observed = replace(OBSERVED, gpus=(GpuGroup("Tesla K80", 1),))
    verdict = examine(Declaration("x", driver="580.95.05"), observed, gpus().values())
    assert verdict.mismatches == () and [each.field for each in verdict.not_said] == ["gpu_driver"]


def test_a_platform_has_what_the_catalogue_says():
    short = replace(OBSERVED, memory_gib=1024, power_supplies=OBSERVED.power_supplies[:5], height_u=4)
    declared = Declaration("x", platform=platform("dgx-h100"))
    assert mismatches(declared, OBSERVED) == []
    assert [(each.field, each.sentence) for each in mismatches(declared, short)] == [
        ("memory_minimum", "x: at least 1987 GiB of memory are needed (DGX H100 has 2048), the BMC reports 1024"),
        ("psu_count", "x: 6 power supplies are in DGX H100, the BMC lists 5"),
        ("form_factor", "x: a height of 8 rack units is declared, the BMC reports 4"),
    ]
    assert mismatches(replace(declared, height_u=4), replace(OBSERVED, height_u=4)) == []


def test_redundancy_by_the_catalogue_where_the_bmc_does_not_say():
    unsaid = replace(OBSERVED, redundant=None, psus_needed=None)
    declared = Declaration("x", platform=platform("dgx-h100"))  # 4+2
    assert mismatches(declared, unsaid) == []
    dead = replace(unsaid, power_supplies=tuple(replace(each, health="Critical") for each in unsaid.power_supplies[:4]))
    assert "psu_redundancy" in [each.field for each in mismatches(declared, dead)]


ONE_CARRIES_ALL = replace(OBSERVED, psus_needed=1, redundant=True)


@pytest.mark.parametrize("mute", [False, True])
def test_the_catalogue_knows_better_than_a_bmc_that_claims_too_much(mute):
    """As recorded: by DGX H100's BMC one of its six supplies carries all, and none says what it gives."""
    known = [replace(each, watts=None, has_input=None) if mute else each for each in OBSERVED.power_supplies]
    declared = Declaration("x", platform=platform("dgx-h100"))
    assert mismatches(declared, replace(ONE_CARRIES_ALL, power_supplies=tuple(known))) == []
    known[:2] = [replace(each, health="Critical") for each in known[:2]]
    (found,) = mismatches(declared, replace(ONE_CARRIES_ALL, power_supplies=tuple(known)))
    assert found.sentence == "x: redundant power supplies are needed, the BMC reports 4 of which none may fail"


@pytest.mark.parametrize(
    ("declared", "watts"),
    [
        ({}, 5600),  # 8 x 700 W, by its GPUs alone
        ({"platform": platform("generic-hgx-h100-8-gpu")}, 5600),
        ({"power_w": 8000.0}, 8000),
    ],
)
def test_a_claim_that_can_not_be_is_not_believed(declared, watts):
    """As recorded of Supermicro's SYS-821GE: one of eight."""
    verdict = examine(Declaration("x", **declared), ONE_CARRIES_ALL, gpus().values())
    (found,) = verdict.not_said
    assert verdict.mismatches == () and found.sentence == (
        "x: redundant power supplies are needed, the BMC says that 1 of 6 carry the load, which is 3300 W: the node "
        f"draws up to {watts} W, so that isn't believed"
    )


def test_what_is_declared_of_the_supplies_settles_it():
    declared = Declaration("x", psus_needed=3)
    assert examine(declared, ONE_CARRIES_ALL, gpus().values()).not_said == ()
    three = replace(ONE_CARRIES_ALL, power_supplies=OBSERVED.power_supplies[:3])
    assert [each.field for each in mismatches(declared, three)] == ["psu_redundancy"]
    assert examine(Declaration("x", power_w=3000.0), ONE_CARRIES_ALL, gpus().values()).not_said == ()


def test_a_superchips_gpu_is_not_on_pcie():
    """As recorded of GH200: x1."""
    chip = tuple(GpuDevice(f"GPU_{n}", "NVIDIA GH200 96GB HBM3", None, 1, 1, "OK") for n in (0, 1))
    assert mismatches(Declaration("x"), replace(OBSERVED, gpu_devices=chip)) == []


def test_a_trays_gpus_and_power_are_its_racks():
    tray = platform("dgx-gb200-compute-tray")
    unnamed = tuple(GpuDevice(f"GPU_{n}", None, None, None, None, "OK") for n in range(4))
    observed = replace(
        OBSERVED, gpu_devices=unnamed, gpus=(GpuGroup("", 4),), power_supplies=(), redundant=None, height_u=1
    )
    verdict = examine(Declaration("x", platform=tray), observed, gpus().values())
    assert verdict.mismatches == () and [each.field for each in verdict.not_said] == ["gpu_driver"]


def test_a_workstation_needs_no_second_power_supply():
    station = platform("dgx-station-a100-320gb")
    one = replace(OBSERVED, power_supplies=OBSERVED.power_supplies[:1], redundant=False)
    assert mismatches(Declaration("x", platform=station), one) == []


def test_what_somebody_answers_for_is_let_through_until_its_day():
    short = replace(OBSERVED, drives=(), memory_gib=16)
    allowed = {"local_storage": date(2026, 12, 31)}
    verdict = examine(Declaration("x"), short, gpus().values(), allowed=allowed, today=date(2026, 12, 31))
    assert [each.field for each in verdict.mismatches] == ["memory_minimum"]
    assert [each.field for each in verdict.allowed] == ["local_storage"]
    later = examine(Declaration("x"), short, gpus().values(), allowed=allowed, today=date(2027, 1, 1))
    assert [each.field for each in later.mismatches] == ["memory_minimum", "local_storage"]


def test_no_gpus_are_seen_while_the_node_is_off():
    off = replace(OBSERVED, gpus=(), gpu_devices=(), power_state="Off", not_said=("gpus",))
    verdict = examine(DECLARED, off, gpus().values())
    assert verdict.mismatches == ()
    assert [each.sentence for each in verdict.not_said] == [
        "dgx01: 8 x H100 SXM5 80GB GPUs are declared, the BMC lists no GPUs while the node is Off"
    ]


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
        "S", "M", "X", "u", ("00:00:00:00:00:01",), (GpuGroup("NVIDIA H200", 4),), 1, 12, "Off", None, None
    )
    fields = [mismatch.field for mismatch in mismatches(DECLARED, observed)]
    expected = ["serial", "uuid", "manufacturer", "model", "macs", "gpu_count", "gpu_model", "cpu_count", "memory_gib"]
    expected += ["memory_minimum", "network_ports", "local_storage"]
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

    for each in platforms().values():
        assert each.gpu.model in possible_models(f"NVIDIA {each.gpu.model}", gpus().values())


def test_the_stack_file_can_name_every_mismatch():
    sources = (Path(__file__).parents[3] / "ironburst/baremetal").glob("*.py")
    literal = re.findall(r'Mismatch\(\s*"(\w+)"|_least\("(\w+)"', "".join(path.read_text() for path in sources))
    only_told = {"machine", "replaced", "added", "health", "firmware"}
    texts = {"serial", "uuid", "manufacturer", "model"}
    broken = {*health.FIELD_OF.values(), "cpu_health", "gpu_health", "part_health", "maintenance"}
    assert {a or b for a, b in literal} - only_told | texts | LOST | broken == set(MISMATCHES)


# of the inventory: mismatches that a field can be, or why it is none
JUDGED = {
    "serial": "serial", "serial_of": "serial", "service_tag": "serial", "manufacturer": "manufacturer",
    "model": "model", "uuid": "uuid", "macs": "macs", "gpus": "gpu_count gpu_model gpu_driver",
    "cpu_count": "cpu_count", "memory_gib": "memory_gib memory_minimum", "bios": "bios", "height_u": "form_factor",
    "gpu_devices": "gpu_lanes gpus", "dimms": "memory_modules", "ports": "network_ports",
    "drives": "local_storage drives", "power_supplies": "psu_count psu_input power_supplies",
    "psus_needed": "psu_redundancy", "redundant": "psu_redundancy", "components": "firmware_minimum",
    "firmware": "firmware_minimum",
    "ill": "system_health cpu_health gpu_health memory_health drive_health network_health power_health "
    "cooling_health part_health",
    "power_state": "-: a machine may be off", "bios_version": "-: firmware's minimums are declared, drift tells it",
    "bmc_version": "-: the same", "free_sockets": "-: memory is what is there", "slots": "-: what may be plugged in",
    "sensors": "-: readings, watched by hall metrics", "chassis_type": "-: only tells chassis apart",
    "not_said": "-: what nobody can judge; shown", "unread": "-: the same, in sentences; shown",
    "GpuDevice.id": "-", "GpuDevice.model": "gpu_model", "GpuDevice.serial": "-: drift", "GpuDevice.lanes": "gpu_lanes",
    "GpuDevice.max_lanes": "gpu_lanes", "GpuDevice.health": "gpu_health", "Dimm.id": "-", "Dimm.gib": "memory_minimum",
    "Dimm.serial": "-: drift", "Dimm.health": "memory_health", "Drive.id": "-", "Drive.gb": "-: shown",
    "Drive.model": "-: drift", "Drive.serial": "-: drift", "Drive.health": "drive_health", "PowerSupply.id": "-",
    "PowerSupply.watts": "psu_redundancy", "PowerSupply.has_input": "psu_input", "PowerSupply.health": "power_health",
    "Port.id": "-", "Port.mac": "macs", "Port.gbps": "-: shown", "Port.link": "-: a cable is hall verify's",
}  # fmt: skip


def test_every_field_of_the_inventory_names_who_judges_it():
    parts = [hardware.GpuDevice, hardware.Dimm, hardware.Drive, hardware.PowerSupply, hardware.Port]
    has = {each.name for each in fields(Hardware)} | {f"{p.__name__}.{each.name}" for p in parts for each in fields(p)}
    assert set(JUDGED) == has
    named = {word for said in JUDGED.values() if not said.startswith("-") for word in said.split()}
    assert named == set(MISMATCHES) - {"maintenance"}


def test_what_is_critical_is_a_mismatch_until_somebody_answers_for_it():
    broken = replace(OBSERVED, ill=(Ill("drive_health", "Disk1", "is Critical"), Ill("system_health", "1", "x", True)))
    (found,) = mismatches(DECLARED, broken)
    assert (found.field, found.sentence) == ("drive_health", "dgx01: by its BMC Disk1 is Critical")
    day = date(2026, 12, 1)
    for today, refused in ((day, 0), (date(2026, 12, 2), 1)):
        verdict = examine(DECLARED, broken, gpus().values(), allowed={"drive_health": day}, today=today)
        assert len(verdict.mismatches) == refused and len(verdict.allowed) == 1 - refused


def test_a_machine_that_is_critical_as_a_whole_is_one_without_a_part_that_says_why():
    (found,) = mismatches(DECLARED, replace(OBSERVED, ill=(Ill("system_health", "1", "is Critical", True),)))
    assert found.field == "system_health" and "no part that was read says why" in found.sentence


def test_a_lost_gpu_that_no_count_misses_is_broken():
    lost = replace(OBSERVED, ill=(Ill("gpu_count", "GPU3", "is Critical"),))
    assert mismatches(DECLARED, lost) == []
    (found,) = mismatches(replace(DECLARED, gpu_model=None, gpu_count=None), lost)
    assert found.field == "gpu_health"
