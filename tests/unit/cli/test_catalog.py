"""`ironburst catalog`, `help`, and what a shell is told for completion."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ironburst import catalog, cli

ROOT = Path(__file__).parents[3]


def test_platforms_are_listed_as_they_are_written(capsys):
    assert cli.main(["catalog", "platforms", "dgx-a100"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["platform", "gpus", "gpu", "rack_units", "max_power_w", "name"]
    assert [row.split()[0] for row in rows] == ["dgx-a100-320gb", "dgx-a100-640gb"]
    assert all(catalog.platform(row.split()[0]) for row in rows)


@pytest.mark.parametrize("what", ["platforms", "gpus", "instances", "images"])
def test_everything_is_there_as_json(capsys, what):
    assert cli.main(["catalog", what, "--json"]) == 0
    names = [next(iter(row.values())) for row in json.loads(capsys.readouterr().out)]
    known = {
        "platforms": set(catalog.platforms()),
        "gpus": set(catalog.gpus()),
        "instances": {name for name, each in catalog.instance_types().items() if each.gpu},
        "images": {"debian12", "debian13", "ubuntu2204", "ubuntu2404", "rhel9", "rhel10"},
    }
    assert len(names) == len(set(names)) and set(names) == known[what]


def test_instances_of_a_region_have_its_zones(capsys):
    assert cli.main(["catalog", "instances", "g5.xlarge", "--region", "eu-west-1", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["gpus"] == 1 and row["zones"] and all(zone.startswith("eu-west-1") for zone in row["zones"])


def test_a_price_that_spot_stays_below_is_no_price_of_spot(capsys):
    """Azure's list has none of spot; what it never exceeds is the price on demand."""
    assert cli.main(["catalog", "instances", "Standard_ND96isr_H100_v5", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["usd_per_hour"] == 98.32 and row["spot"] is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["platforms", "nothing-such"], "nothing with 'nothing-such'; `ironburst catalog platforms` lists all"),
        (
            ["instances", "--region", "Frankfurt"],
            "'eu-central-1', 'europe-west3' or 'germanywestcentral'?",
        ),
    ],
)
def test_what_is_not_there(capsys, asked, words):
    assert cli.main(["catalog", *asked]) == 2
    assert words in capsys.readouterr().err


def test_help_of_a_verb_is_its_help(capsys):
    said = []
    for asked in (["help", "reap"], ["reap", "--help"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(asked)
        assert ended.value.code == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] and "--dry-run" in said[0]
    with pytest.raises(SystemExit):
        cli.main(["help"])
    assert all(verb in capsys.readouterr().out for verb in ("validate",))


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ironburst val", {"validate"}),
        ("ironburst catalog p", {"platforms"}),
        ("ironburst validate --no", {"--no-secrets"}),
    ],
)
def test_a_shell_is_told_what_may_come_next(tmp_path, typed, offered):
    asked = {"COMP_LINE": typed, "COMP_POINT": str(len(typed)), "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n"}
    answer = tmp_path / "answer"
    command = [sys.executable, "-m", "ironburst.cli"]
    shell = f'"$@" 8>{answer} 9>/dev/null'
    subprocess.run(["sh", "-c", shell, "sh", *command], env=os.environ | asked, cwd=ROOT, check=True, timeout=60)
    assert {each.strip() for each in answer.read_text().split("\n")} == offered
