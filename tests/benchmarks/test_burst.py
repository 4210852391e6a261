"""The burst benchmark: what it prints, and that a policy can be held against the peers and the bound."""

import json

import numpy as np
import pytest

from benchmarks import burst, figures, peers
from benchmarks.figures import Outcome
from ironburst.replay import fitting, traces

NAMES = [
    "rented_gpu_hours",
    "mean_wait_h",
    "p50_wait_h",
    "p99_wait_h",
    "p999_wait_h",
    "max_wait_h",
    "gpu_hour_weighted_wait_h",
]


@pytest.fixture
def trace_file(tmp_path):
    random = np.random.default_rng(0)
    jobs = zip(
        np.sort(random.integers(0, 90_000, 200)),
        random.integers(60, 20_000, 200),
        random.choice([1, 2, 4, 8, 16], 200),
        strict=True,
    )
    path = tmp_path / "jobs.csv"
    path.write_text("submit_s,duration_s,num_gpus,vc\n" + "".join(f"{s},{d},{g},q{g}\n" for s, d, g in jobs))
    return path


def rent_all(trace, pool_gpus):
    return Outcome(trace.submit_s, np.ones(len(trace), bool))


def test_json_has_the_peers_the_bound_and_the_ratios(trace_file, capsys):
    arguments = ["--trace", str(trace_file), "--pool-gpus", "32", "--seeds", "2", "--bound-seconds", "2", "--json"]
    assert burst.main(arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["jobs"] == 200 and printed["seeds"] == 2
    assert list(printed["ours"]) == [*NAMES, "wall_s", "jobs_per_s"]
    assert 0 < printed["ours"]["rented_gpu_hours"] < printed["gpu_hours"]
    assert list(printed["peers"]) == ["no_wait", "constant", "starburst_head", "starburst"]
    assert all(list(row) == [*NAMES, "wall_s", "jobs_per_s"] for row in (*printed["peers"].values(), printed["bound"]))
    starburst = printed["peers"]["starburst"]
    by_hand = [
        figures.figures(trace, peers.run(trace, 32, peers.PEERS["starburst"]), 32, 1.0)["rented_gpu_hours"]
        for trace in (traces.jittered(traces.read(trace_file), seed) for seed in (1, 2))
    ]
    assert starburst["rented_gpu_hours"] == pytest.approx(sum(by_hand) / 2)
    assert 0 < printed["bound"]["rented_gpu_hours"] < starburst["rented_gpu_hours"]
    assert printed["bound"]["max_wait_h"] == starburst["max_wait_h"] and printed["bound"]["p50_wait_h"] is None
    ratio = printed["ratios"]["starburst / bound"]["rented_gpu_hours"]
    assert ratio == pytest.approx(starburst["rented_gpu_hours"] / printed["bound"]["rented_gpu_hours"])


def test_our_policy_is_told_the_waits_to_keep_and_held_against_all(trace_file, capsys):
    told = []

    def ours(limits):
        told.append(limits)
        return rent_all

    arguments = ["--trace", str(trace_file), "--pool-gpus", "32", "--wait-factor", "1.5", "--bound-seconds", "1"]
    assert burst.main([*arguments, "--json"], ours) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["ours"]["rented_gpu_hours"] == pytest.approx(printed["gpu_hours"], rel=1e-3)
    assert printed["ours"]["max_wait_h"] == 0
    assert (
        told[0].mean_h
        == pytest.approx(1.5 * printed["peers"]["starburst"]["mean_wait_h"])
        == printed["bound"]["mean_wait_h"]
    )
    assert printed["ratios"]["ours / starburst"]["rented_gpu_hours"] > 1
    assert printed["ratios"]["ours / bound"]["mean_wait_h"] == 0
    assert printed["ratios"]["ours / no_wait"]["mean_wait_h"] is None  # nobody waited: nothing to divide by
    assert burst.main([*arguments, "--run-times", "limits"], ours) == 0  # where run times are learned, with some room
    assert told[1].mean_h == pytest.approx(burst.ROOM["limits"] * told[0].mean_h) and burst.ROOM["limits"] < 1
    capsys.readouterr()
    assert burst.main([*arguments, "--bound-seconds", "0"], ours) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:6]] == ["ours", *peers.PEERS] and "ours / starburst:" in lines[9]


@pytest.mark.parametrize("run_times", ["limits", "limits-by-queue"])
def test_without_run_times_a_policy_sees_limits(trace_file, run_times, capsys):
    seen = []

    def look(trace, pool_gpus):
        seen.append(trace.limit_s / trace.duration_s)
        return rent_all(trace, pool_gpus)

    arguments = ["--trace", str(trace_file), "--pool-gpus", "32", "--bound-seconds", "0", "--run-times", run_times]
    assert burst.main(arguments, lambda limits: look) == 0
    assert 1.8 <= seen[0].min() < 3 and 4 < seen[0].max() <= 5.5
    within = np.std(seen[0][np.array(traces.jittered(traces.read(trace_file), 1).queue) == "q1"])
    assert (within < 0.4) == (run_times == "limits-by-queue")


def test_known_limits_are_kept(trace_file):
    trace = traces.read(trace_file)
    known = traces.in_order(
        trace.submit_s, trace.duration_s, trace.gpus, limit_s=np.where(np.arange(200) < 9, 77.0, np.nan)
    )
    limits = burst.with_time_limits(known, 1).limit_s
    assert (limits[:9] == 77).all() and (limits[9:] >= 2 * trace.duration_s[9:]).all()


def test_parts_of_a_trace(trace_file, capsys):
    sizes = {}
    told = ["--limits", "told"]  # the first part is too short to be fitted to
    asked = ["--trace", str(trace_file), "--pool-gpus", "32", "--bound-seconds", "0", "--json", *told]
    for part in ("all", "first", "aside"):
        assert burst.main([*asked, "--part", part]) == 0
        sizes[part] = json.loads(capsys.readouterr().out)["jobs"]
    assert sizes == {"all": 200, "first": 150, "aside": 50}


@pytest.fixture
def long_trace_file(tmp_path):
    random, path = np.random.default_rng(1), tmp_path / "long.csv"
    submit, duration = np.sort(random.integers(0, 300_000, 600)), random.integers(60, 20_000, 600)
    jobs = zip(submit, duration, random.choice([1, 2, 4, 8, 16], 600), strict=True)
    path.write_text("submit_s,duration_s,num_gpus\n" + "".join(f"{s},{d},{g}\n" for s, d, g in jobs))
    return path


@pytest.mark.parametrize("run_times", ["known", "limits"])
def test_limits_that_keep_the_waits_of_the_first_part_are_used_on_the_other(
    long_trace_file, run_times, capsys, monkeypatch
):
    seen = []

    def ours(limits, hours_per_gpu_hour=None, in_order=False):
        seen.append((limits, hours_per_gpu_hour, in_order))
        return burst_decided(limits, hours_per_gpu_hour, in_order)

    burst_decided = burst.decided
    monkeypatch.setattr(burst, "decided", ours)
    arguments = ["--trace", str(long_trace_file), "--pool-gpus", "32", "--bound-seconds", "0", "--run-times", run_times]
    assert burst.main([*arguments, "--part", "aside", "--limits", "kept", "--json"], ours) == 0
    printed = json.loads(capsys.readouterr().out)
    hours = printed["hours_per_gpu_hour"]
    assert printed["limits"] == "kept" and printed["patience"] == 1.0 and hours in fitting.HOURS
    *tried, (told, used, in_order) = seen
    assert used == hours and in_order and told.mean_h == printed["peers"]["starburst"]["mean_wait_h"]
    parts, had = first_parts(long_trace_file)
    assert {limits.mean_h for limits, *_ in tried} <= {each["mean_wait_h"] for each in had}
    # on every part of the first one it keeps what Starburst had there
    for part, each in zip(parts, had, strict=True) if run_times == "known" else ():
        outcome = burst_decided(burst.wait_limits(each), hours, in_order=True)(part, 32)
        reached = figures.figures(part, outcome, 32, 1.0)
        assert all(reached[name] <= 1.005 * each[name] for name in figures.WAITS)


def first_parts(path):
    """Those that are fitted to, and what Starburst had on each."""
    parts = fitting.parts_of(traces.jittered(traces.split(traces.read(path), burst.ASIDE)[0], 1))
    return parts, [figures.figures(part, peers.run(part, 32, peers.PEERS["starburst"]), 32, 1.0) for part in parts]


def test_what_fit_says_of_the_first_part_is_used_on_the_other(long_trace_file, capsys):
    arguments = [
        "--trace",
        str(long_trace_file),
        "--pool-gpus",
        "32",
        "--bound-seconds",
        "0",
        "--part",
        "aside",
        "--json",
    ]
    assert burst.main(arguments) == 0
    fitted = json.loads(capsys.readouterr().out)
    first = traces.split(traces.read(long_trace_file), burst.ASIDE)[0]
    assert fitted["limits"] == "fitted" and fitted["hours_per_gpu_hour"] == burst.fitted(first, 32).recommended
    assert burst.main([*arguments, "--limits", "told"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert fitted["ours"]["rented_gpu_hours"] <= 1.01 * told["ours"]["rented_gpu_hours"]


def test_a_patience_that_is_none_is_refused(trace_file, capsys):
    with pytest.raises(SystemExit):
        burst.main(["--trace", str(trace_file), "--patience", "0"])
    assert "--patience: it is 0; allowed is a number above 0" in capsys.readouterr().err
    assert burst.main(["--trace", str(trace_file), "--pool-gpus", "32", "--limits", "fitted"]) == 2
    assert "the history has 150 jobs; limits can be fitted to 400 or more" in capsys.readouterr().err


def test_without_data_it_says_so_and_bad_input_is_one_sentence(trace_file, capsys):
    assert burst.main(["--trace", "nowhere.csv"]) == 0
    assert capsys.readouterr().out.startswith("skipped: there is no nowhere.csv")
    for wrong in (["--pool-gpus", "12"], ["--seeds", "0"]):
        assert burst.main(["--trace", str(trace_file), "--bound-seconds", "0", *wrong]) == 2
        error = capsys.readouterr().err
        assert error.startswith("benchmarks.burst: ") and error.count("\n") == 1 and wrong[1] in error
    trace_file.write_text("submit_s,duration_s,num_gpus\n0,x,1\n")
    assert burst.main(["--trace", str(trace_file)]) == 2
    assert "jobs.csv, line 2: duration_s is 'x'" in capsys.readouterr().err
