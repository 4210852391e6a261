"""`ironburst simulate --spot FILE`: a trace of spot in the place of rates, and jobs with deadlines on it."""

import json
import re
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from ironburst import cli
from ironburst.controller import declared_site
from ironburst.replay import simulation_report, spot_trace, traces

STACK = Path("stacks/Pulumi.prod.yaml")
# Ticks of 10 minutes at which spot came (the first) and went, in turn: us-west-2a_v100_1, window 191 of the real probes
# of October 2022 that were published with Can't Be Late (NSDI'24); there for 70% of its 92 hours
TICK_S = 600
TURNS = """0 4 6 8 9 13 15 18 19 20 27 38 40 51 76 79 81 82 89 95 99 101 103 113 161 168 170 176 177 182 186 187 189 191
204 209 220 221 223 227 228 241 246 253 254 255 256 260 261 262 265 266 269 292 298 431 434 438 441 442 443 507 508"""
HOURS = (52, 60, 70, 80)  # deadlines of four jobs of 48 h that save every ten minutes; a large job fills home
JOBS = "submit_s,duration_s,num_gpus,limit_s,deadline_s,checkpoint_s\n0,864000,64,864000,,\n" + "".join(
    f"60,172800,8,172800,{60 + 3600 * hours},600\n" for hours in HOURS
)


@pytest.fixture
def site(tmp_path):
    """(a function that writes a stack file, jobs, spot): with one pool that has spot."""

    def stack(**burst):
        declared = yaml.safe_load(STACK.read_text())
        cluster = declared["config"]["ironburst:cluster"]
        cluster["cloud"]["pools"] = [cluster["cloud"]["pools"][1] | {"max_run": "10d"}]
        cluster["cloud"].pop("price")
        cluster["burst"] |= {"untyped_jobs_may_use": ["p4d"]} | burst
        path = tmp_path / f"Pulumi.spot{len(burst)}.yaml"
        path.write_text(yaml.safe_dump(declared))
        shutil.copy(STACK.with_name("prod.lock.yaml"), tmp_path / f"spot{len(burst)}.lock.yaml")
        return path

    jobs, spot = tmp_path / "jobs.csv", tmp_path / "spot.csv"
    jobs.write_text(JOBS)
    lines = (f"{TICK_S * int(tick)},{1 - n % 2}\n" for n, tick in enumerate(TURNS.split()))
    spot.write_text("at_s,available\n" + "".join(lines))
    return stack, jobs, spot


def test_jobs_that_move_meet_their_deadlines_for_less(site, capsys):
    stack, jobs, spot = site
    said = {}
    for name, burst in (("moves", {"deadline_spare": "30m"}), ("stays", {})):
        argv = ["simulate", str(jobs), "--config", str(stack(**burst)), "--bound-seconds", "0", "--spot", str(spot)]
        assert cli.main([*argv, "--json"]) == 0
        said[name] = json.loads(capsys.readouterr().out)
        assert cli.main(argv) == 0
        said[name]["text"] = capsys.readouterr().out
    moves, stays = said["moves"], said["stays"]
    assert moves["deadlines"] == {"jobs": 4, "saving": 4, "missed": 0} and stays["deadlines"] is None
    assert re.search(
        r"^deadlines +4 jobs with one, 4 of them save their work; ended late: 0$", moves["text"], re.MULTILINE
    )
    assert (
        re.search(r"^spot +to be had when spot.csv has it$", moves["text"], re.MULTILINE)
        and moves["spot"] == "spot.csv"
    )
    assert moves["usd"]["total"] < stays["usd"]["total"] and moves["usd"]["by_market"]["spot"] > 0
    assert moves["refusals"] > 0 and moves["interruptions"] > 0


def test_no_lease_of_spot_is_there_while_spot_is_not(site):
    stack, jobs, spot = site
    declared = declared_site.declared(stack(deadline_spare="30m"))
    declared = replace(declared, cloud=replace(declared.cloud, spot=spot_trace.read(spot)))
    played = simulation_report.played_on(traces.read(jobs), declared, None)
    ticks = [TICK_S * int(tick) for tick in TURNS.split()]
    away = list(pairwise([*ticks, float("inf")]))[1::2]
    leases = [bill for bill in played.bills if bill.market == "spot"]
    assert len(leases) > 10
    for lease in leases:
        assert not any(from_s < lease.to_s and lease.from_s < to_s for from_s, to_s in away)
    taken = [lease for lease in leases if lease.interrupted]
    assert taken and {lease.to_s for lease in taken} <= {from_s for from_s, _ in away}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("at_s,available\n", "has no line: give each moment at which spot came or went"),
        ("when,available\n0,1\n", "has no column at_s"),
        ("at_s,available\n0,yes\n", "line 2: available is 'yes'; write 1 where spot is to be had"),
        ("at_s,available\nnan,1\n", "line 2: at_s is 'nan'; seconds on the clock of the trace of jobs are needed"),
        ("at_s,available\n600,1\n600,0\n", "at_s doesn't rise from line to line: sort it"),
        (
            "at_s,available,zone\n0,1,mars-1\n",
            "no pool with spot is in zone mars-1; they are in us-east-1a",
        ),
        ("at_s,available\n1700000000,1\n1700000600,0\n", "jobs are submitted from 0 to 60: use their clock"),
        ("at_s,available\n-900,1\n-300,0\n", "jobs are submitted from 0 to 60: use their clock"),
    ],
)
def test_a_trace_of_spot_that_says_nothing_is_refused(text, told, site, capsys):
    stack, jobs, spot = site
    spot.write_text(text)
    assert cli.main(["simulate", str(jobs), "--config", str(stack(deadline_spare="30m")), "--spot", str(spot)]) == 2
    shown = capsys.readouterr().err
    assert told in shown and shown.count("\n") == 1


def test_a_stack_file_without_spot_has_nothing_to_play(site, tmp_path, capsys):
    stack, jobs, spot = site
    path = stack(deadline_spare="30m")
    path.write_text(path.read_text().replace("- spot\n", ""))
    assert cli.main(["simulate", str(jobs), "--config", str(path), "--spot", str(spot)]) == 2
    assert "no pool of the stack file has the market spot" in capsys.readouterr().err
    assert cli.main(["simulate", str(jobs), "--config", str(path), "--spot", str(tmp_path / "none.csv")]) == 2
    assert "can't be read as a trace of spot" in capsys.readouterr().err


def test_one_zone_has_spot_when_the_other_has_none(site, capsys):
    stack, jobs, spot = site
    spot.write_text("at_s,available,zone\n0,0,us-east-1a\n0,1,us-east-1b\n")
    argv = ["simulate", str(jobs), "--config", str(stack(deadline_spare="30m")), "--bound-seconds", "0", "--json"]
    assert cli.main([*argv, "--spot", str(spot)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["interruptions"] == 0 and set(said["usd"]["by_market"]) == {"spot"}
