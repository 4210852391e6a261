"""benchmarks/results.md: what was reached, against what was asked, from result files; and how those are made."""

import json
import xml.etree.ElementTree as ET

import pytest

from benchmarks import all as bench
from benchmarks import days, full_days, mix, plays, report, share_table
from benchmarks.figures import WAITS


def figures(rented, mean=0.3):
    return {"rented_gpu_hours": rented, "mean_wait_h": mean, "wall_s": 100.0, "jobs_per_s": 2000.0}


def burst(ratio=0.95, waits=0.9, **more):
    settings = {
        "trace": report.PHILLY,
        "part": "all",
        "pool_gpus": 512,
        "run_times": "known",
        "seeds": 1,
        "wait_factor": 1.0,
    } | more
    factor = settings["wait_factor"]
    ours = {"rented_gpu_hours": ratio, **dict.fromkeys(WAITS, waits * factor)}
    return settings | {
        "ours": figures(1000 * ratio, 0.3 * factor),
        "peers": {"starburst": figures(1000), "no_wait": figures(2000, 0.0)},
        "bound": figures(700),
        "ratios": {
            "ours / starburst": ours,
            "ours / no_wait": {"rented_gpu_hours": ratio / 2},
            "ours / bound": {"rented_gpu_hours": ratio / 0.7},
        },
    }


def lines(*results):
    numbered = [{"file": f"r{number}.json", **each} for number, each in enumerate(results)]
    return {title[: title.index(".")]: each for title, each in report.rows(numbered)}


def test_without_results_every_line_says_not_measured():
    text = report.page([])
    assert text.count(report.NOT_MEASURED) == sum(len(each) for each in lines().values()) and text.count("\n## ") == 24


@pytest.mark.parametrize(
    ("ratio", "waits", "shown"),
    [
        (0.95, 1.0, "**0.950** (asked)"),
        (0.89, 1.0, "**0.890** (wanted)"),
        (1.01, 1.0, "1.010 (missed)"),
        (0.80, 1.02, "0.800 (waits not kept)"),
    ],
)
def test_a_figure_is_held_against_what_was_asked_and_counts_only_with_its_waits(ratio, waits, shown):
    text = report.page([{"file": "r.json", **burst(ratio, waits)}])
    row = next(line for line in text.splitlines() if line.startswith("| 512 GPUs | <= 0.98 "))
    assert f"| {shown} |" in row and "`r.json`" in row


def test_waits_are_held_against_the_wait_factor():
    (plain, half, double) = lines(burst(0.9), burst(0.85, 0.99, wait_factor=1.5), burst(0.7, 1.2, wait_factor=2.0))["2"]
    assert (plain.reached, half.reached, double.reached) == (0.9, 0.85, 0.7)
    assert (half.kept, double.kept) == (True, False)


def test_a_patience_and_fitted_limits_are_told():
    found, given = (lines(burst(**more))["1"][0].note for more in ({"hours_per_gpu_hour": 0.08}, {"patience": 0.95}))
    assert "0.08 h for each GPU-hour, the longest that kept them on the first part" in found
    assert "told 0.95 times the waits;" in given and "GPU-hour" not in given


def test_the_whole_trace_and_more_seeds_come_first():
    by_number = lines(burst(0.5, part="aside", seeds=9), burst(0.94, seeds=3), burst(0.96, seeds=1))
    assert by_number["1"][0].reached == 0.94 and "3 seeds" in by_number["1"][0].note
    only = lines(burst(0.5, part="aside"))
    assert [one.reached for one in only["1"]] == [None, None, None, 0.5, None, None]
    assert "last quarter" in only["1"][3].note
    assert "last quarter" in only["2"][0].note and only["8"][0].reached is None


def test_a_million_jobs_are_seconds_and_how_many_were_played_is_beside_them():
    played = {"jobs": 12_000, "of a million, minutes": 20.5, "decisions": 14_292, plays.MEMORY: 130}
    line = lines(played)["8"][1]
    assert line.reached == 1230 and line.asked == 900 and line.note == "12,000 were played, 14,292 decisions, 130 MB"


def test_other_traces_are_held_against_the_best_peer():
    cheap = burst(0.8, trace="openb2023_pods_default.csv.xz", pool_gpus=128)
    cheap["peers"]["no_wait"]["rented_gpu_hours"], cheap["ratios"]["ours / no_wait"] = 400, {"rented_gpu_hours": 2.0}
    line = lines(cheap)["6"][2]
    assert line.reached == 2.0 and line.note.startswith("over no_wait; waits kept")


def test_the_other_benchmarks_are_known_by_what_is_in_them():
    ratio = {"usd": 0.7, "asked": 0.97, "wanted": 0.9, **dict.fromkeys(WAITS, 0.9)}
    by_number = lines(
        {"seconds for all (<= 1)": 0.5, "slope (1 is linear)": 1.01},
        {"sequences": {}, "adversarial": {}, "mean": 1.2, "max": 1.9},
        {"scenarios": 200, "times a ceiling was passed (0)": 0},
        {"prices": "p", "ratios": {"a": ratio}, "days": "3-4", "seeds": 1},
    )
    assert by_number["9"][0].reached == 0.5 and [line.reached for line in by_number["7"]] == [1.2, 1.9]
    assert (by_number["10"][0].case, by_number["10"][0].reached) == ("200 scenarios", 0)
    assert [line.reached for line in by_number["5"]] == [0.7, None, None] and "days 3-4" in by_number["5"][0].note


def test_page_and_pictures_are_written_and_a_broken_result_is_named(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    for name, result in {
        "one": burst(),
        "two": burst(0.9, wait_factor=2.0),
        "three": burst(pool_gpus=384, part="aside"),
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(result | {"run": {"commit": "abc1234", "date": "2026-11-22"}}))
    (folder / "four.json").write_text("{")
    page = report.write(folder)
    text = page.read_text()
    assert page == tmp_path / "results.md" and "Not readable, so not shown: four.json." in text
    assert "`one.json` abc1234 2026-11-22" in text
    for name in ("cost-over-wait-512.svg", "cost-over-wait-384-aside.svg"):
        assert f"(results/{name})" in text
        words = [each.text for each in ET.parse(folder / name).getroot().iter("{http://www.w3.org/2000/svg}text")]
        assert {"starburst", "● certified bound", "1 x"} <= set(words)


# ---- running them


def test_every_result_has_a_command_that_its_benchmark_understands():
    short, full = bench.benchmarks(False), bench.benchmarks(True)
    assert set(short) == set(full)
    assert {command[0] for command in full.values()} == {
        f"benchmarks.{name}"
        for name in (
            "decide",
            "idle",
            "budget",
            "days",
            "kube_days",
            "cloud_days",
            "full_days",
            "mix",
            "pending_pods",
            "plays",
            "schedulers",
            "hosts",
            "burst",
            "dollars",
            "fit",
            "shares",
            "share_table",
            "spot",
            "watch",
        )
    }


def test_a_result_is_kept_with_what_was_run_and_a_failure_leaves_the_last_one(tmp_path, monkeypatch):
    said = bench.run("decide", ["benchmarks.decide", "--jobs", "8", "--nodes", "4", "--repeat", "1"], tmp_path)
    kept = json.loads((tmp_path / "decide.json").read_text())
    assert said.startswith("decide: ") and kept["nodes"] == 4
    assert kept["run"]["command"] == "python -m benchmarks.decide --jobs 8 --nodes 4 --repeat 1"
    assert kept["run"]["commit"]
    assert "failed" in bench.run("decide", ["benchmarks.decide", "--jobs", "1"], tmp_path)
    assert json.loads((tmp_path / "decide.json").read_text()) == kept
    monkeypatch.setenv("IRONBURST_DATA", str(tmp_path))
    said = bench.run("burst-512", ["benchmarks.burst", "--trace", "none.csv"], tmp_path)
    assert "skipped: there is no none.csv" in said and not (tmp_path / "burst-512.json").exists()


@pytest.mark.parametrize(("dead", "row"), [(False, "11"), (True, "12")])
def test_days_are_shown_with_what_was_lost_and_the_longer_run_counts(dead, row):
    def result(count, **more):
        none = {days.LOST: [], days.AGAIN: [], days.IDLE: [], days.BEYOND: {}, days.OUTLIVED: 1900.0 * dead}
        return {"dead": dead, "days": count, "jobs": 7, "launches": 2, "allowed of that, s": 2130.0} | none | more

    kept = [line for line in lines(result(1000), result(50, **{days.LOST: ["job 1"]}))[row] if line.reached is not None]
    assert [line.reached for line in kept] == [0.0] * 4 + [1900.0] * dead
    assert [report._reached(line).endswith("(asked)") for line in kept] == [True] * len(kept)
    assert lines(result(50, **{days.LOST: ["job 1"]}))[row][0].reached == 1.0


@pytest.mark.parametrize(("kubernetes", "first"), [(False, 0), (True, 6)])
def test_what_states_that_last_cost_beyond_the_table_is_shown(kubernetes, first):
    none = {days.LOST: [], days.AGAIN: [], days.IDLE: [], days.BEYOND: {}, days.SILENT: ["job 1"], days.LASTING: 0.25}
    counts = {"days": 9, "jobs": 7, "launches": 2, "states that last": 8, "paid for states that last, USD": 12.5}
    of = {"dead": False, "kubernetes": kubernetes, "only": "" if kubernetes else "a state lasts", days.OUTLIVED: 0.0}
    shown = lines(none | counts | of)
    assert [line.reached for line in shown["20"]][first : first + 6] == [0.25, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert shown["20"][first].note == "9 days, 8 states, 12.50 USD paid for them"
    assert all(line.reached is None for line in shown["11"]), "those have other accidents"


def test_days_of_three_clouds_are_shown_with_what_was_lost():
    none = {days.LOST: [], days.AGAIN: [], days.IDLE: [], days.BEYOND: {}, days.LEFT: ["day 3: a disk"]}
    kept = lines({"days": 900, "hours": 6.0, "jobs": 4000, "launches": 9} | none)["24"]
    assert [line.reached for line in kept] == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert kept[0].note == "900 days of 6 hours (1,000 are asked), 4,000 jobs, 9 launches"


def test_full_days_are_shown_with_what_was_lost():
    none = {case: [] for case in full_days.ZEROES}
    counts = {"full_days": 2, "jobs": 4000, "launches": 9, "faults": {"spot notice": 2}}
    kept = lines(counts | none | {full_days.LOST: ["day 1: job 7"]})["19"]
    assert [line.reached for line in kept] == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert "4,000 jobs" in kept[0].note and "2 faults" in kept[0].note


def test_a_mix_is_shown_beside_its_bound_and_karpenter():
    result = {
        "pods": 20000,
        "types": 80,
        "without": [],
        "ours": {"usd_per_hour": 1010.0, "seconds": 2.0},
        "karpenter": {"usd_per_hour": 2020.0, "seconds": 40.0},
        "ratios": {mix.COST: 1.01, mix.DEARER: 0.5, mix.SLOWER: 0.05},
    }
    shown = lines(result)["13"]
    assert [line.reached for line in shown] == [1.01, 0.5, 0.05, None]
    assert "1,010 USD/h in 2.0 s; karpenter 2,020 USD/h in 40 s" in shown[0].note
    alone = lines(result | {"karpenter": {"skipped": "no Go"}, "ratios": {mix.COST: 1.01}})["13"]
    assert [line.reached for line in alone[:3]] == [1.01, None, None] and "no karpenter: no Go" in alone[0].note


def test_a_round_over_many_pods_is_shown_with_its_memory_and_its_lists():
    result = {"pods": 5000, "nodes": 1000, "first_s": 4.4, "seconds": 2.1, "memory_mb": 149, "lists": 0}
    shown = lines(result)["15"]
    assert [line.reached for line in shown] == [2.1, 149, 0] and "5,000 pods, 1,000 nodes" in shown[0].note
    assert [report._reached(line).split()[-1] for line in shown] == ["(missed)", "(asked)", "(asked)"]


def test_an_unknown_result_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        bench.main(["--only", "nothing"])
    assert ended.value.code == 2 and "there is no such result" in capsys.readouterr().err


def test_a_row_with_nothing_reserved_says_so():
    ratio = {"usd": 0.4, **dict.fromkeys(WAITS, 0.5)}
    result = {"prices": "", "ratios": {"b": ratio, "c": ratio}}

    def notes(**more):
        return [line.note for line in report._dollars([result | more])]

    assert ["reserve nothing" in note for note in notes(reserved=[{}])] == [False, False, True]
    assert not any("reserve nothing" in note for note in (*notes(reserved=[{"g6.xlarge": 2}]), *notes()))


def test_guarantees_are_counted_with_each_scheduler_and_more_sequences_count_before_fewer():
    played = {"guarantees_broken": 0, "sequences": 200, "steps": 6000, "preempted": 342}
    real = {**played, "scheduler": "kubernetes", "slowest_guarantee_s": 11.1}
    few = {**real, "sequences": 40, "guarantees_broken": 1}
    rules, kubernetes = lines({**played, "scheduler": "rules"}, few, real)["16"]
    assert rules.reached == 0 and rules.note == "200 sequences, 6,000 steps, 342 jobs ended"
    assert kubernetes.reached == 0 and kubernetes.note.endswith("guarantees met within 11.1 s")
    assert lines(few)["16"][1].reached == 1


def test_the_table_of_shares_has_a_line_for_each_part():
    rows = {"vision": 0.625, "nlp": 0.375, "free": 0.0}
    by = {
        "rules": [rows] * 3,
        "slurm": [rows] * 3,
        "kubernetes": [rows, {"vision": 0.5, "nlp": 0.5, "free": 0.0}, rows],
    }
    found = share_table.table(by)
    assert found["differences"] == dict(zip(share_table.PARTS, (0.0, 0.125, 0.0), strict=True))
    shown = lines(json.loads(json.dumps(found)))["17"]
    assert [(line.case, line.reached) for line in shown] == list(found["differences"].items())
    assert shown[1].note == "slurm 0.625, 0.375, 0.000; kubernetes 0.500, 0.500, 0.000; rules 0.625, 0.375, 0.000"
    assert "(missed)" in report.page([{"file": "shares-table.json", **found}])


def test_spot_with_a_missed_deadline_counts_for_nothing():
    def result(missed):
        setting = {"ratio": 0.9, "missed": {"ours": missed}, "optimum_ratio": 0.8, "without_ratio": 1.3}
        part = {each.name: setting for each in report.SETTINGS}
        return {"file": "spot.json", "seen_before": True, "parts": {"all": part, "aside": part}}

    for missed, kept in ((0, True), (1, False)):
        rows = next(rows for title, rows in report.rows([result(missed)]) if "deadline" in title and "spot" in title)
        assert len(rows) == 4 and all(row.reached == 0.9 and row.kept == kept for row in rows)
        assert all(f"{missed} deadlines missed" in row.note for row in rows)
