"""The benchmark of `fit`: what it says of one part of a trace is held against the defaults on the others."""

import json

import numpy as np
import pytest

from benchmarks import fit


@pytest.fixture
def trace_file(tmp_path):
    random, path = np.random.default_rng(1), tmp_path / "jobs.csv"
    submit, duration = np.sort(random.integers(0, 400_000, 800)), random.integers(60, 20_000, 800)
    jobs = zip(submit, duration, random.choice([1, 2, 4, 8], 800), strict=True)
    path.write_text("submit_s,duration_s,num_gpus\n" + "".join(f"{s},{d},{g}\n" for s, d, g in jobs))
    return path


def test_each_part_is_fitted_to_and_played_on_the_others(trace_file, capsys):
    arguments = ["--trace", str(trace_file), "--pool-gpus", "32", "--cut", "2"]
    assert fit.main([*arguments, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    rows = said["fit"]["jobs.csv"]["rows"]
    assert [(row["fitted_to"], row["played_on"]) for row in rows] == [(1, 2), (2, 1)]
    for row in rows:
        assert (row["hours_per_gpu_hour"] is None) == (row["why"] is not None)
        if row["why"]:  # the defaults: the same play
            assert row["rented / not fitted"] == 1.0 and row["over"] <= 1.0
    # what was asked
    assert said["dearest"] <= 1.01 and said["longest"] <= 1.03
    assert said["dearest"] == max(row["rented / not fitted"] for row in rows)
    assert said["longest_longest_kept"] == max(row["longest_kept"]["over"] for row in rows)
    text = fit.table(said)
    assert text.count("fitted to ") == 2 and "at worst " in text


def test_a_trace_that_is_too_short_is_refused(trace_file, capsys):
    assert fit.main(["--trace", str(trace_file), "--pool-gpus", "32", "--cut", "3"]) == 2
    assert "benchmarks.fit: the history has 26" in capsys.readouterr().err
