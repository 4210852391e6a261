"""Every column that nvidia-smi's own help names: each alone, and who judges it (columns.csv names the sources)."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from ironburst.health import tools
from ironburst.health.expectation import Expectation
from ironburst.health.findings import healthy
from ironburst.health.rules import held_against
from ironburst.health.smi_csv import ALIASES
from tests.unit.health.catalogue import TABLES

LINES = (Path(__file__).parent / "columns.csv").read_text().splitlines()
COLUMNS = {row["column"]: row for row in csv.DictReader(line for line in LINES if not line.startswith("#"))}
NAMES = [(name, row) for row in COLUMNS.values() for name in [row["column"], *row["aliases"].split()]]
LOST = "[Unknown Error]"
SLOWED = "0x0000000000000048"


def parse(text):
    return tools.parse("nvidia-smi", text, Expectation(models=TABLES.models))


def output(name, row, value):
    return f"index, {name}{' [' + row['unit'] + ']' if row['unit'] else ''}\n0, {value}\n"


def test_the_table_has_every_column_of_four_branches():
    counts = Counter(branch for row in COLUMNS.values() for branch in row["branches"].split())
    assert counts == {"535": 141, "590": 212, "595": 202, "610": 241}


@pytest.mark.parametrize(("name", "row"), NAMES, ids=[name for name, _ in NAMES])
def test_a_column_alone(name, row):
    if name != "index":  # it is there already
        assert healthy(parse(output(name, row, row["sample"]))), parse(output(name, row, row["sample"]))
    assert (held_against(ALIASES.get(name, name)) or "-") == row["held_against"]
    assert not healthy(parse(output(name, row, LOST)))


@pytest.mark.parametrize("name", [name for name, row in COLUMNS.items() if row["held_against"] == "-"])
def test_what_nobody_judges_refuses_only_for_a_lost_gpu(name):
    judged_elsewhere = ("index", "count", "driver_version")
    for value in ("[Insufficient Permissions]", "[Function Not Found]", "anything", "12345678"):
        assert healthy(parse(output(name, COLUMNS[name], value))) or name in judged_elsewhere
    assert not healthy(parse(output(name, COLUMNS[name], "[GPU is lost]")))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("clocks_event_reasons.active", SLOWED, "hardware thermal slowdown"),
        ("clocks_throttle_reasons.active", SLOWED, "hardware thermal slowdown"),
        ("ecc.errors.uncorrected.aggregate.sram.thresholdExceeded", "Yes", "RMA"),
        ("ecc.errors.uncorrected.aggregate.sram.thresholdExceeded", "3", "not one of Yes, No"),
        ("ecc.errors.uncorrected.volatile.sram.parity", "1", "must be 0"),
        ("remapped_rows.dbe", "1", "accepted are 0"),
        ("gpu.power.requested_limit", "[Insufficient Permissions]", "is '[Insufficient Permissions]'"),
        ("pcie.link.width.current", "[N/A]", "is not available"),
    ],
)
def test_what_is_judged_refuses(name, value, said):
    row = next(row for known, row in NAMES if known == name)
    assert said in " ".join(finding.text for finding in parse(output(name, row, value)) if not finding.passed)


def test_a_column_that_no_driver_names_is_refused():
    assert "'ecc.errors.corrupted' is not known" in parse("index, ecc.errors.corrupted\n0, 0\n")[0].text


def test_an_empty_cell_is_no_value_where_somebody_judges_it():
    assert healthy(parse("index, platform.chassis_serial_number\n0, \n"))
    assert "empty column" in parse("index, pstate\n0, \n")[0].text
