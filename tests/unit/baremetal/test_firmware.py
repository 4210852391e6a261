"""Versions in their makers' own forms, and the minimums that are declared of them."""

import pytest

from ironburst.baremetal import firmware
from ironburst.baremetal.firmware import Minimum, compare
from ironburst.baremetal.verify import Declaration, examine
from ironburst.catalog.hardware import gpus
from tests.unit.baremetal import redfish


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2.9.4", "2.10.2"),  # Dell; a text compares otherwise
        ("7.00.30.00", "7.10.50.10"),
        ("01.03.14", "1.4"),
        ("U54 v2.9", "U54 v2.10 (07/20/2023)"),
        ("2.78 Nov 04 2022", "3.04 Sep 20 2024"),
        ("iLO 6 v1.9", "iLO 6 v1.55"),
        ("96.00.5E.00.01", "96.00.A1.00.01"),
        ("96.00.99.00.01", "96.00.9A.00.01"),
        ("00.04.0011.0000_n00", "00.04.0018.0000_n00"),
        ("GB200Nvl-25.08-9", "GB200Nvl-25.08-10"),
        ("12/31/2025", "20260102"),
        ("2025-12-31", "01/02/2026"),
    ],
)
def test_forms_that_are_known(older, newer):
    assert (compare(older, newer), compare(newer, older), compare(newer, newer)) == ("below", "reached", "reached")


def test_a_missing_part_is_zero():
    assert compare("2.1", "2.1.0") == compare("2.1.0", "2.1") == "reached"


@pytest.mark.parametrize(
    ("have", "least"),
    [
        ("AFE120G", "AFE122A"),  # Lenovo's build ids
        ("U54 v2.10", "U46 v2.10"),  # ROMs of two families
        ("iLO 5 v2.9", "iLO 6 v1.5"),
        ("U54 v2.10", "2.9"),
        ("00.1B.53", "00.1C.10"),
        ("F20", "F9"),
        ("GB200Nvl-25.08-B", "GB200Nvl-25.08-9"),
        ("2.10-rc1", "2.10"),
        ("2026-03-31", "2.10"),
        ("1", "2"),
    ],
)
def test_what_is_not_comparable_is_said_and_not_guessed(have, least):
    assert compare(have, least) == compare(least, have) == "not comparable"
    assert compare(have, have) == "reached"


def least(component, version):
    return Minimum(component=component, atLeast=version, source="advisory 7", asOf="2026-10-01")


def seen(vendor, *minimums, **changed):
    machine = redfish.machine(vendor, next(iter(redfish.servers(vendor))), **changed)
    hardware = redfish.read(redfish.served(machine), vendor)
    return examine(Declaration("dgx01", firmware=minimums), hardware, gpus().values())


@pytest.mark.parametrize("vendor", redfish.VENDORS)
def test_every_makers_shape_is_held_against_a_minimum(vendor):
    """Dell lists what was installed before, too, under the same name."""
    verdict = seen(vendor, least("bios", "1.2"), least("GPU*", "96.00.5E.00.01"))
    assert [each.field for each in verdict.mismatches] == ["firmware_minimum"]
    (mismatch,) = verdict.mismatches
    assert "is 1.0: at least 1.2 is declared (advisory 7, 2026-10-01)" in mismatch.sentence
    assert not seen(vendor, least("bios", "1.0")).mismatches


def test_what_cannot_be_known_is_no_mismatch_and_is_told():
    verdict = seen("lab", least("BMC", "1.2"), least("CPLD*", "3"))
    told = [each.sentence for each in verdict.not_said if each.field == "firmware_minimum"]
    assert not verdict.mismatches and len(told) == 2
    assert told[0] == (
        "dgx01: firmware of BMC is 'lab-1.0': at least 1.2 is declared (advisory 7, 2026-10-01), "
        "and the two can't be compared"
    )
    assert told[1].endswith("the BMC lists no such component")


def test_eight_of_a_pattern_are_eight_rows():
    hardware = redfish.read(redfish.served(redfish.machine("nvidia-hgx")), "nvidia-hgx")
    rows = list(firmware.rows([least("GPU*", "97.00.00.00.00")], hardware.components))
    assert [row.order for row in rows] == ["below"] * 8
