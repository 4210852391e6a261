"""What `ironburst job` and `report --efficiency` make of the ledger's runs: lines, advice with sources, sums."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ironburst import cli
from ironburst.controller import job_report
from ironburst.controller.energy import Places
from ironburst.controller.job_figures import Figures, GpuFigures, packed
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import RunRow

T0 = 1_795_000_000.0
HOUR = 3600.0
EACH = tuple(
    GpuFigures(f"gpu-00{n // 2 + 1}", str(n % 2), 0.9, 0.7, 0.4, 0.3, 60_000.0, 600.0, 6e10, 0.6, 0.05, False)
    for n in range(4)
)
GOOD = Figures(
    4, 0, 120, T0 + 10, T0 + HOUR - 10, 81_559.0, 0.9, 0.7, 0.4, 0.3, 60_000.0, 2400.0, 6e10, 2.4, 0.05, 0, EACH
)
RUN = RunRow(
    *(7, T0, 7, "7", "alice", "physics", "gpu-001,gpu-002", 4, 0, 2 * HOUR),
    end_s=T0 + HOUR,
    usd=40.0,
    asked=1,
    figures=packed(GOOD),
)


def told(figures, **run):
    return [text for text, _ in job_report.advice(replace(RUN, **run), figures)]


def test_a_job_that_does_well_is_left_alone():
    assert told(GOOD) == []


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"unused": 1}, "1 of 4 GPUs did nothing"),
        ({"busy": 0.1, "sm": 0.05}, "10% of the time"),
        ({"busy": 0.95, "sm": 0.3}, "30% of their SMs"),
        ({"unused": 2, "busy": 0.06, "sm": 0.01}, "the 2 GPUs that worked did so 12% of the time"),
    ],
)
def test_advice_names_what_is_low_and_who_says_so(figures, words):
    found = job_report.advice(RUN, replace(GOOD, **figures))
    assert any(words in text for text, _ in found) and len(found) <= 2
    assert all(source.startswith(("jobstats", "NVIDIA")) for _, source in found)


def test_the_unused_gpus_do_not_make_the_others_look_idle():
    """Three of four work 80 % of the time: the mean of all four is 60 %, and of those that work none waits."""
    assert len(told(replace(GOOD, unused=1, busy=0.6, sm=0.45))) == 1


def test_never_more_than_two_and_none_from_a_handful_of_samples():
    bad = replace(GOOD, unused=1, busy=0.05, sm=0.01)
    assert len(told(bad, time_limit_s=100 * HOUR)) == 2
    assert told(replace(bad, samples=job_report.SAMPLES - 1), time_limit_s=100 * HOUR) == []
    assert told(None) == [] and told(replace(GOOD, gpus=0, each=())) == []


def test_a_limit_that_is_far_too_long():
    (text,) = told(GOOD, time_limit_s=24 * HOUR)
    assert "1 h of its limit of 1 d" in text
    assert told(GOOD, time_limit_s=9 * HOUR) == told(GOOD, time_limit_s=None) == []


# ---- the verb


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.delenv("IRONBURST_DOCUMENT", raising=False)
    ledger = Ledger(tmp_path / "ledger.sqlite")
    yield ledger
    ledger.close()


def kept(ledger, *runs):
    for run in runs:
        ledger.add_run(run)


def said(capsys, *argv, code=0):
    assert cli.main(list(argv)) == code
    out = capsys.readouterr()
    return out.out or out.err


def test_a_job_and_its_ranks(ledger, capsys):
    kept(ledger, RUN)
    text = said(capsys, "job", "7")
    for words in (
        "job 7 (alice, physics): 4 GPUs on gpu-001, gpu-002",
        "$40",
        "busy    90%",
        "SMs active   70%",
        "58.6 GiB",
    ):
        assert words in text, text
    assert "2.4 kW, 2.4 kWh of the GPUs only, without cooling" in text
    rows = [line.split() for line in text.splitlines() if line.startswith("  gpu-00")]
    assert [row[:3] for row in rows] == [[each.node, each.gpu, "90%"] for each in EACH]
    assert "score" not in text


def test_json_has_the_same_figures(ledger, capsys):
    kept(ledger, RUN)
    (run,) = json.loads(said(capsys, "job", "7", "--json"))["runs"]
    assert (run["state"], run["figures"]["kwh"], run["usd"], run["complete"]) == ("measured", 2.4, 40.0, True)
    assert len(run["figures"]["each"]) == 4


@pytest.fixture
def utc(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_the_page_shows_what_is_printed(ledger, utc):
    rows = ((0.93, 0.71, 0.42, 640.0), (0.91, 0.70, 0.41, 630.0), (0.92, 0.71, 0.42, 635.0), (0.0, 0.0, 0.0, 75.0))
    each = [
        replace(gpu, busy=busy, sm=sm, tensor=tensor, watts=watts, kwh=watts / 1000, unused=not busy)
        for gpu, (busy, sm, tensor, watts) in zip(EACH, rows, strict=True)
    ]
    each[3] = replace(each[3], memory_mib=520.0, nvlink_bytes=0.0)
    means = {"busy": 0.69, "sm": 0.53, "tensor": 0.31, "dram": 0.27, "watts": 1980.0, "nvlink_bytes": 4.5e10}
    figures = replace(GOOD, **means, kwh=1.98, idle=0.29, unused=1, each=tuple(each))
    kept(ledger, replace(RUN, job=4711, called="4711", figures=packed(figures)))
    page = (Path(__file__).parents[3] / "docs/how-to/researcher/job.md").read_text()
    assert "\n".join(job_report.lines(job_report.gather(ledger, "4711"))) in page


def test_cooling_counts_where_the_hall_says_how_much(ledger):
    kept(ledger, RUN)
    text = "\n".join(job_report.lines(job_report.gather(ledger, "7", Places(pue=1.5))))
    assert "(3.6 with the hall's PUE of 1.5)" in text


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"end_s": None, "figures": None}, "it runs on"),
        ({"figures": None, "ask_s": T0 + HOUR + 60}, "asked for again"),
        ({"figures": None}, "nothing was measured"),
        ({"figures": None, "slice": 1}, "shared"),
        ({"figures": packed(replace(GOOD, gpus=0, shared=4, each=()))}, "shared"),
        ({"figures": packed(replace(GOOD, to_s=T0 + HOUR / 2))}, "before its end: what followed isn't in it"),
        ({"figures": packed(replace(GOOD, gpus=3, shared=1))}, "3 of 4 GPUs, 1 were shared"),
        ({"figures": b"\x1f\x8bdamaged"}, "nothing was measured"),
    ],
)
def test_what_is_not_known_is_said(ledger, capsys, run, words):
    kept(ledger, replace(RUN, **run))
    assert words in said(capsys, "job", "7")


def test_runs_of_a_requeued_job_and_tasks_of_an_array(ledger, capsys):
    kept(ledger, RUN, replace(RUN, start_s=T0 + 2 * HOUR, end_s=T0 + 3 * HOUR))
    assert said(capsys, "job", "7").count("job 7 (alice") == 2
    tasks = [replace(RUN, job=-n, number=500 + n, called=f"500_{n}") for n in (1, 2, 10)]
    kept(ledger, *tasks, replace(RUN, job=5001, called="5001"))
    text = said(capsys, "job", "500")
    assert [word for word in ("job 500_1 ", "job 500_2 ", "job 500_10 ", "job 5001") if word in text] == [
        "job 500_1 ",
        "job 500_2 ",
        "job 500_10 ",
    ]
    assert "job 500_2 (" in said(capsys, "job", "500_2")


def test_a_job_that_nobody_saw_and_no_ledger(ledger, capsys, tmp_path, monkeypatch):
    assert said(capsys, "job", "4711", code=2).startswith("ironburst: job 4711 was never seen")
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "none"))
    assert said(capsys, "job", "7", code=2).startswith("ironburst: there is no ledger")


def test_a_ledger_of_before_has_no_runs(ledger, capsys):
    ledger._db.execute("DROP TABLE job_runs")
    assert said(capsys, "job", "4711", code=2).startswith("ironburst: job 4711 was never seen")


# ---- by account


def test_by_account_sums_are_those_of_the_runs(ledger, capsys):
    idle = packed(replace(GOOD, busy=0.2, sm=0.1, idle=0.75))
    kept(
        ledger,
        RUN,
        replace(RUN, job=8, figures=idle, usd=20.0, gpus=8),
        replace(RUN, job=9, figures=None, usd=None),
        replace(RUN, job=10, account="chemistry", usd=None),
        replace(RUN, job=11, end_s=None),
        replace(RUN, job=12, slice=1, figures=None),
    )
    rows = job_report.by_account(ledger.runs_between(T0, T0 + 2 * HOUR))
    physics, chemistry = rows
    assert (physics["account"], physics["gpu_hours"], physics["measured_gpu_hours"]) == ("physics", 16.0, 12.0)
    assert physics["busy"] == pytest.approx((0.9 * 4 + 0.2 * 8) / 12)
    assert physics["idle_gpu_hours"] == pytest.approx(0.05 * 4 + 0.75 * 8)
    assert physics["idle_usd"] == pytest.approx(0.05 * 40 + 0.75 * 20)
    assert (chemistry["gpu_hours"], chemistry["idle_usd"]) == (4.0, None)
    text = said(capsys, "report", "--efficiency", "--from", "2026-11-01", "--to", "2026-12-01")
    line = next(line for line in text.splitlines() if "physics" in line)
    assert line.split() == ["physics", "16", "75%", "43%", "30%", "52%", "6", "$17.00"]


def test_a_window_without_jobs(ledger, capsys):
    assert "no job with GPUs" in said(capsys, "report", "--efficiency", "--from", "2020-01-01", "--to", "2020-02-01")
    assert said(capsys, "report", "--efficiency", "--csv", code=2).startswith("ironburst: --csv is of another report")
