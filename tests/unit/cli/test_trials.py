"""The verbs that try a cluster on a trace: `simulate`, `fit` and `size`."""

import html
import io
import json
import random
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import get_args

import pytest
import yaml

from ironburst import cli
from ironburst.cli import trials
from ironburst.replay import fit_report, fitting

STACK = "stacks/Pulumi.prod.yaml"  # 8 home nodes of 8 GPUs, pools of p5 and p4d
OWNED = ("--owned-usd-per-gpu-hour", "2")
KEPT = {"mean": "4h", "p99": "40h", "p999": "48h", "max": "3d"}
SACCT = """JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES|ReqTRES|User|Partition|Account|State
1|1700000000|1700000001|x|36000|1200|cpu=8,gres/gpu=64|cpu=8|ann|gpu|a|COMPLETED
2|1700003600|1700003601|x|7200|240|cpu=8,gres/gpu=8|cpu=8|bob|gpu|a|COMPLETED
3|1700003600|Unknown|x|0|240||cpu=8|bob|gpu|a|CANCELLED by 1
"""


@pytest.fixture
def trace(tmp_path):
    """One job fills home for 30 h; one of 40 min waits for it, three small ones come and go."""
    path = tmp_path / "jobs.csv"
    path.write_text("submit_s,duration_s,num_gpus\n0,108000,64\n60,2400,8\n200,3600,1\n90000,1000,8\n110000,90000,16\n")
    return path


def test_simulate_says_waits_money_and_the_distance_to_the_bound(trace, tmp_path, capsys):
    out = tmp_path / "out"
    argv = ["simulate", str(trace), "--config", STACK, "--bound-seconds", "0.3", "--out", str(out)]
    assert cli.main([*argv, "--json"]) == 0
    captured = capsys.readouterr()
    said = json.loads(captured.out)
    assert captured.err == ""  # no progress bar where no terminal is
    assert said["jobs"] == 5 and said["rented_jobs"] >= 2 and said["home"] == {"nodes": 8, "gpus_per_node": 8}
    usd = said["usd"]
    assert usd["total"] == pytest.approx(sum(usd["by_market"].values()) + usd["prepaid"])
    assert 0 < usd["boot"] < usd["total"] and usd["prices_as_of"]
    assert set(said["waits"]) >= {"mean_h", "p99_h", "p999_h", "max_h", "gpu_hour_weighted_h"}
    assert said["bound"]["ratio"] is None or said["bound"]["ratio"] >= 1
    assert json.loads((out / "simulation.json").read_text())["usd"] == said["usd"]
    ET.fromstring((out / "simulation.svg").read_text())
    assert cli.main(argv) == 0
    text = capsys.readouterr().out
    page = (out / "simulation.html").read_text()
    assert html.escape(text.strip()) in page and (out / "simulation.svg").read_text() in page and "src=" not in page
    assert "prod: 8 home nodes of 8 GPUs; wait target 20 min on average" in text
    assert all(words in text for words in ("by GPU-hours", "rented / bound", "paid"))


def test_simulate_shows_the_waits_as_recorded_with_home_alone_and_with_rent(trace, tmp_path, capsys):
    lines = trace.read_text().splitlines()
    starts = ["start_s", "30", "", "150", "97200", "110000"]  # one is not known, one is before its submit
    trace.write_text("".join(f"{line},{start}\n" for line, start in zip(lines, starts, strict=True)))
    argv = ["simulate", str(trace), "--config", STACK, "--bound-seconds", "0"]
    assert cli.main([*argv, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["recorded"]["jobs"] == 4 and said["recorded"]["waits"]["max_h"] == pytest.approx(2)
    assert said["recorded"]["waits"]["mean_h"] == pytest.approx((30 + 0 + 7200 + 0) / 4 / 3600)
    alone = said["home_only"]
    assert (alone["jobs"], alone["never"]) == (5, 0)  # the small ones wait for the large one
    assert (
        alone["waits"]["max_h"] == pytest.approx((108000 - 60) / 3600)
        and alone["waits"]["max_h"] > said["waits"]["max_h"]
    )
    assert cli.main(argv) == 0
    text = capsys.readouterr().out
    assert "as recorded     home only     with rent" in text and "1 d 5 h" in text
    rent = next(line.split() for line in text.splitlines() if line.startswith("rent "))
    assert rent == ["rent", "-", "$0.00", f"${said['usd']['total']:,.2f}"]
    assert "As recorded is of the 4 jobs whose start the trace knows." in text and "budget passed" not in text
    trace.write_text("submit_s,duration_s,num_gpus\n0,3600,8\n")
    assert cli.main(argv) == 0
    assert "as recorded" not in capsys.readouterr().out


def test_simulate_says_why_nothing_was_rented_and_what_passes_the_budget(tmp_path, capsys):
    stack = tmp_path / "Pulumi.prod.yaml"
    stack.write_text(re.sub(r"\busd_per_month: \d+", "usd_per_month: 5", Path(STACK).read_text()))
    path = tmp_path / "jobs.csv"
    # ten days with the whole home; a job over the max_run of the pool that is wide enough; one that is rented for
    path.write_text("submit_s,duration_s,num_gpus\n0,864000,64\n60,216000,40\n120,7200,8\n")
    argv = ["simulate", str(path), "--config", str(stack), "--bound-seconds", "0"]
    assert cli.main([*argv, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["not_rented"] == {"too_long": 1} and said["rented_jobs"] == 1
    assert said["budget"]["passed"] == 1 and said["budget"]["most_usd"] == pytest.approx(said["usd"]["total"])
    assert cli.main(argv) == 0
    shown = capsys.readouterr().out
    assert "1: a time limit over the pools' max_run" in shown and "budget passed" in shown
    assert "in 1 of 1 month with rent ($5.00 each" in shown


def priced(tmp_path, usd_per_tonne):
    """p4d costs a little more than p5 an hour, and takes much less power."""
    declared = yaml.safe_load(Path(STACK).read_text())
    value = declared["config"]["ironburst:cluster"]
    p5, p4d = value["cloud"]["pools"]
    p4d["markets"] = ["on-demand"]
    value["cloud"]["price"] = {p5["instance_type"]: {"on_demand": 20}, p4d["instance_type"]: {"on_demand": 21.5}}
    value["burst"] |= {"untyped_jobs_may_use": [p4d["name"]]}
    if usd_per_tonne is not None:
        value["burst"] |= {"carbon_usd_per_tonne": usd_per_tonne}
        value["monitoring"] = {"carbon": {}}
    stack = tmp_path / f"Pulumi.{usd_per_tonne}.yaml"
    stack.write_text(yaml.safe_dump(declared))
    shutil.copy(Path(STACK).with_name("prod.lock.yaml"), tmp_path / f"{usd_per_tonne}.lock.yaml")
    return str(stack)


def test_a_price_of_carbon_changes_where_is_rented_and_what_that_costs(trace, tmp_path, capsys):
    said = {}
    for usd_per_tonne in (None, 0, 1, 2000):
        argv = ["simulate", str(trace), "--config", priced(tmp_path, usd_per_tonne), "--bound-seconds", "0"]
        assert cli.main([*argv, "--json"]) == 0
        said[usd_per_tonne] = json.loads(capsys.readouterr().out)
        assert cli.main(argv) == 0
        said[usd_per_tonne]["text"] = capsys.readouterr().out
    assert said[0]["carbon"] is said[None]["carbon"] is None and "carbon" not in said[0]["text"]
    assert said[0]["usd"] == said[None]["usd"] and said[0]["waits"] == said[None]["waits"]
    cheap, dear = said[1]["carbon"], said[2000]["carbon"]
    assert cheap["with"] == cheap["without"] and "it changes nothing here" in said[1]["text"]
    assert dear["without"] == cheap["without"] and dear["without"]["usd"] == said[0]["usd"]["total"]
    assert dear["with"]["kg"] < dear["without"]["kg"] and dear["with"]["usd"] > dear["without"]["usd"]
    # p5: 8 GPUs of 700 W, times 1.7; Ember's United States of 2024
    hours = said[0]["lease_hours"]
    assert dear["without"]["kg"] == pytest.approx(hours * 8 * 0.7 * 1.7 * 0.38355, rel=0.01)
    assert "for each tonne less" in said[2000]["text"] and "at $2,000" in said[2000]["text"]


def test_a_price_without_emissions_is_refused(trace, tmp_path, capsys):
    stack = Path(priced(tmp_path, 50))
    stack.write_text(stack.read_text().replace("monitoring:", "# monitoring:").replace("carbon: {}", ""))
    assert cli.main(["simulate", str(trace), "--config", str(stack), "--bound-seconds", "0"]) == 2
    assert "write monitoring.carbon, too" in capsys.readouterr().err


def test_simulate_reads_slurms_accounting_with_its_limits(tmp_path, capsys):
    path = tmp_path / "sacct.txt"
    path.write_text(SACCT)
    assert cli.main(["simulate", str(path), "--config", STACK, "--bound-seconds", "0", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["jobs"] == 2 and said["run_times"] == "limits" and said["left_out"] == {"never started": 1}
    assert said["bound"] is None
    assert said["recorded"] == {"jobs": 2, "waits": said["recorded"]["waits"]}
    assert said["recorded"]["waits"]["max_h"] == pytest.approx(1 / 3600)


def test_size_prints_the_break_even_curve(trace, tmp_path, capsys):
    out = tmp_path / "out"
    argv = ["size", str(trace), "--config", STACK, *OWNED, "--reserved-usd-per-gpu-hour", "1.5"]
    assert cli.main([*argv, "--nodes", "8,0,3", "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["nodes"] for one in said["candidates"]] == [0, 3, 8] and said["best"] in said["candidates"]
    assert (said["pool"], said["instance_type"]) == ("p5", "p5.48xlarge")  # p4d is cheaper, and for jobs that name it
    assert said["best"]["total_usd"] == min(one["total_usd"] for one in said["candidates"])
    assert said["usd_per_gpu_hour"]["rented"] > 0 and said["rented_price_from"].startswith("pool ")
    ET.fromstring((out / "size.svg").read_text())
    assert cli.main([*argv, "--wait-p95", "0.0001", "--nodes", "0"]) == 0
    text = capsys.readouterr().out
    assert "no candidate keeps the wanted waits (p95 of 0.0001 h)" in text and "waits too long" in text
    assert text.splitlines()[-1] == (
        "Unlike simulate: one pool, p5 of p5.48xlarge; nodes for every job, and no max_run; "
        "each row has the most patient policy that keeps the wanted waits; and figures are of a year."
    )


def alone(tmp_path, limit="2h", spot=False):
    """The stack file with one pool, on demand, as large and as long as any job wants: what `size` counts with."""
    declared = yaml.safe_load(Path(STACK).read_text())
    cluster = declared["config"]["ironburst:cluster"]
    markets = ["spot", "on-demand"] if spot else ["on-demand"]
    pool = {"name": "p5", "instance_type": "p5.48xlarge", "max_nodes": 200, "zones": ["us-east-1a"]}
    cluster["cloud"]["pools"] = [pool | {"markets": markets, "max_run": "60d"}]
    cluster["cloud"]["network"]["cidr"] = "10.31.0.0/16"
    cluster["burst"] = {"wait_limit": limit}
    cluster["budget"]["usd_per_month"] = 100_000_000
    path = tmp_path / "Pulumi.prod.yaml"
    path.write_text(yaml.safe_dump(declared))
    shutil.copy("stacks/prod.lock.yaml", tmp_path)
    return str(path)


def sized_and_simulated(trace, config, capsys):
    assert cli.main(["size", str(trace), "--config", config, *OWNED, "--nodes", "8", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (size,) = said["candidates"]
    assert said["unlike_simulate"] == ["nodes for every job, and no max_run"]
    assert cli.main(["simulate", str(trace), "--config", config, "--bound-seconds", "0", "--json"]) == 0
    return size, json.loads(capsys.readouterr().out)


def test_size_and_simulate_agree_on_what_both_play(history, tmp_path, capsys):
    size, simulated = sized_and_simulated(history, alone(tmp_path), capsys)
    submits = [float(row.split(",")[0]) for row in history.read_text().splitlines()[1:]]
    years = (submits[-1] - submits[0]) / (8760 * 3600)
    assert simulated["rented_jobs"] > 10
    assert size["waits"] == pytest.approx(simulated["waits"])
    assert size["rented_usd"] * years == pytest.approx(simulated["usd"]["total"], rel=1e-6)
    assert size["rented_gpu_hours"] * years == pytest.approx(simulated["rented_gpu_hours"], rel=1e-6)


def test_size_says_what_it_plays_otherwise_than_simulate(history, tmp_path, capsys):
    config = alone(tmp_path, spot=True)
    assert cli.main(["size", str(history), "--config", config, *OWNED, "--nodes", "8"]) == 0
    assert (
        "Unlike simulate: on demand alone; nodes for every job, and no max_run; and figures" in capsys.readouterr().out
    )


def test_size_of_a_long_history_says_that_it_is_a_sample(tmp_path, capsys):
    path = tmp_path / "long.csv"
    path.write_text("submit_s,duration_s,num_gpus\n" + "".join(f"{20000 * n},3600,8\n" for n in range(30)))
    argv = ["size", str(path), "--config", STACK, *OWNED, "--jobs", "10", "--nodes", "1"]
    assert cli.main(argv) == 0
    assert "a sample: 10 in a row, as busy as the whole, of 30 jobs, 2.1 days" in capsys.readouterr().out


@pytest.fixture
def history(tmp_path):
    """A home that is too small for it at times."""
    rng, at_s, rows = random.Random(3), 0, ["submit_s,duration_s,num_gpus"]
    for _ in range(400):
        at_s += rng.randint(600, 2700)
        rows.append(f"{at_s},{rng.randint(600, 45_000)},{rng.choice((1, 2, 4, 8, 8, 16))}")
    path = tmp_path / "history.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def stack(tmp_path, **burst):
    """The stack file with another `burst`."""
    declared = yaml.safe_load(Path(STACK).read_text())
    declared["config"]["ironburst:cluster"]["burst"] = burst
    path = tmp_path / "Pulumi.prod.yaml"
    path.write_text(yaml.safe_dump(declared))
    shutil.copy("stacks/prod.lock.yaml", tmp_path)
    return str(path)


def test_fit_keeps_the_defaults_where_a_number_does_not_win_on_parts_kept_aside(history, tmp_path, capsys):
    config = stack(tmp_path, wait_target=KEPT)
    argv = ["fit", str(history), "--config", config, "--out", str(tmp_path / "out")]
    assert cli.main([*argv, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (
        said["hours_per_gpu_hour"] is None
        and said["why"] in get_args(fitting.Why)
        and said["declared_hours_per_gpu_hour"] is None
    )
    tried = [each["hours_per_gpu_hour"] for each in said["tried"]]
    assert tried == sorted(tried) and len(said["unfitted_parts"]) == said["parts"]
    ET.fromstring((tmp_path / "out/fit.svg").read_text())
    text = "\n".join(fit_report.lines(said))
    assert fit_report.KEEP in text and fit_report.KEEP in (tmp_path / "out/fit.html").read_text()
    assert "<- fitted" not in text and "\nnot fitted  " in text


def test_fit_says_that_a_target_cant_be_kept(history, tmp_path, capsys):
    config = stack(tmp_path, wait_target="1m")
    assert cli.main(["fit", str(history), "--config", config]) == 0
    text = capsys.readouterr().out
    assert fit_report.KEEP in text and "The defaults don't keep what is wanted: the " in text
    assert "No number keeps all five in every part: want longer waits" in text and "<- fitted" not in text


def test_fit_refuses_what_it_cant_fit_to(trace, history, tmp_path, capsys):
    for argv, why in (
        ([str(trace), "--config", STACK], "the history has 5 jobs; limits can be fitted to 400 or more"),
        ([str(history), "--config", STACK, "--jobs", "10"], "--jobs is 10; allowed is 400 or more"),
        ([str(history), "--config", stack(tmp_path, wait_limit="2h")], "it has no burst.wait_target"),
    ):
        assert cli.main(["fit", *argv]) == 2
        captured = capsys.readouterr()
        assert why in captured.err and not captured.out


SIMULATE, SIZE = ("simulate", "--bound-seconds", "0"), ("size", *OWNED, "--nodes", "1")
NOT_PLAYED = (
    (None, "there is no trace "),
    ("submit_s,duration_s,num_gpus\n", "has no job that could be played again"),
    ("submit_s,duration_s,num_gpus\n0,3600,0\n", "left out: 1 (wants no GPU)"),
    ("", "is no known trace"),
    ("a,b\n1,2\n", "is no known trace: its first line has a, b"),
    ("submit_s,duration_s,num_gpus\n0,-5,8\n", "line 2: duration_s is '-5'; allowed is a number of 0 or more"),
    ("submit_s,duration_s,num_gpus\n-1,5,8\n", "line 2: submit_s is '-1'; allowed is a number of 0 or more"),
    (
        "submit_s,duration_s,num_gpus\n0,1e308,8\n",
        "line 2: duration_s is '1e308'; allowed is a number of 0 or more, up to 25340230",
    ),
    ("submit_s,duration_s,num_gpus\n0,3600\n", "line 2 has 2 values"),
)
# for `simulate`: what `size` rents has no limit
TOO_LARGE = (
    "submit_s,duration_s,num_gpus\n0,3600,8\n90000,3600,72\n",
    "72 GPUs",
)


@pytest.mark.parametrize(
    ("verb", "file", "says"),
    [*((verb, *each) for verb in (SIMULATE, SIZE) for each in NOT_PLAYED), (SIMULATE, *TOO_LARGE)],
)
def test_a_trace_that_can_not_be_played_is_one_sentence_and_exit_code_2(tmp_path, capsys, verb, file, says):
    path = tmp_path / "jobs.csv"
    if file is not None:
        path.write_text(file)
    assert cli.main([verb[0], str(path), "--config", STACK, *verb[1:]]) == 2
    captured = capsys.readouterr()
    assert says in captured.err and captured.err.startswith("ironburst: ") and captured.err.count("\n") == 1
    assert captured.out == ""


def test_a_history_of_minutes_says_nothing_of_a_year(tmp_path, capsys):
    path = tmp_path / "jobs.csv"
    path.write_text("submit_s,duration_s,num_gpus\n0,90000,8\n360,3600,8\n")
    assert cli.main(["size", str(path), "--config", STACK, *OWNED]) == 2
    assert "were submitted within 0.1 h; a year can be told from a history of 24 h or more" in capsys.readouterr().err


@pytest.mark.filterwarnings("error")
def test_jobs_of_no_length_are_played_and_bounded(tmp_path, capsys):
    path = tmp_path / "jobs.csv"
    path.write_text("submit_s,duration_s,num_gpus\n0,0,8\n5,0,8\n")
    assert cli.main(["simulate", str(path), "--config", STACK, "--bound-seconds", "0.2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bound"]["rented_gpu_hours"] == 0


def test_submits_that_go_back_in_time_are_sorted_and_played(tmp_path, capsys):
    path = tmp_path / "jobs.csv"
    path.write_text("submit_s,duration_s,num_gpus\n7200,60,8\n0,60,8\n")
    assert cli.main(["simulate", str(path), "--config", STACK, "--bound-seconds", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["waits"]["max_h"] == 0


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["simulate", "{trace}", "--config", "{tmp}/no.yaml"], "give the path of a stack file"),
        (["simulate", "{trace}", "--config", "README.md"], "README.md"),
        (
            ["simulate", "{trace}", "--config", STACK, "--bound-seconds", "-1"],
            "--bound-seconds is -1; allowed is 0 or more",
        ),
        (["simulate", "{trace}", "--config", STACK, "--bound-seconds", "nan"], "--bound-seconds is nan"),
        (
            ["simulate", "{trace}", "--config", STACK, "--bound-seconds", "0", "--out", "{trace}"],
            "--out {trace}: can't be written",
        ),
        (
            ["size", "{trace}", "--config", STACK, "--owned-usd-per-gpu-hour", "0"],
            "ironburst: the owned price is 0 USD per GPU-hour; all",
        ),
        (["size", "{trace}", "--config", STACK, *OWNED, "--wait-p50", "-2"], "ironburst: the wanted wait p50_h is -2"),
        (["size", "{trace}", "--config", STACK, *OWNED, "--nodes", "8,x"], "--nodes is '8,x'"),
        (["size", "{trace}", "--config", STACK, *OWNED, "--jobs", "1"], "--jobs is 1; allowed is 2 or more"),
    ],
)
def test_an_option_that_can_not_be_used_is_one_sentence(trace, tmp_path, capsys, argv, says):
    names = {"trace": trace, "tmp": tmp_path}
    assert cli.main([each.format(**names) for each in argv]) == 2
    err = capsys.readouterr().err
    assert says.format(**names) in err and err.startswith("ironburst: ") and err.count("\n") == 1


def test_a_folder_that_can_not_be_written_is_told_before_the_work(trace, monkeypatch, capsys):
    monkeypatch.setattr("ironburst.replay.simulation_report.play", lambda *given: pytest.fail("played"))
    assert cli.main(["simulate", str(trace), "--config", STACK, "--out", str(trace)]) == 2
    assert "can't be written" in capsys.readouterr().err


def test_home_nodes_of_two_sizes_are_refused_in_a_sentence(trace, tmp_path, capsys):
    text = Path(STACK).read_text()
    mixed = tmp_path / "mixed.yaml"
    mixed.write_text(
        text.replace("platform: dgx-h100", "platform: generic-pcie-server-4-gpu-t4\n            height: 4", 1)
    )
    assert cli.main(["simulate", str(trace), "--config", str(mixed)]) == 2
    err = capsys.readouterr().err
    assert "equally many GPUs" in err and err.count("\n") == 1


def test_the_bar_is_for_terminals():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    assert trials.bar(io.StringIO(), "jobs") is None
    terminal = Terminal()
    tell = trials.bar(terminal, "jobs")
    for done in range(201):
        tell(done, 200)
    shown = terminal.getvalue()
    assert shown.count("\r") == 101 and shown.endswith("100% of 200 jobs\n")


def test_size_says_what_idle_gpu_hours_cost(trace, tmp_path, capsys):
    report = tmp_path / "efficiency.json"
    report.write_text(json.dumps({"idle": {"gpu_hours": 5900.0, "idle_gpu_hours": 1180.0, "share": 0.2, "usd": None}}))
    argv = ["size", str(trace), "--config", STACK, *OWNED, "--nodes", "8"]
    assert cli.main([*argv, "--json", "--efficiency", str(report)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["idle"]["usd"] == pytest.approx(0.2 * said["best"]["total_usd"])
    assert said["idle"]["gpus"] == pytest.approx(0.2 * said["sample"]["mean_gpus"])
    assert cli.main([*argv, "--efficiency", str(report)]) == 0
    assert "20% of GPU-hours were idle, of 5,900 that were measured" in capsys.readouterr().out
    assert cli.main([*argv, "--json"]) == 0 and "idle" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "isn't what"),
        ("no", "isn't what"),
        ('{"idle": null}', "none of its jobs was measured"),
        ('{"idle": {"gpu_hours": 1, "share": 7}}', "allowed is 0 to 1"),
        (None, "can't be read"),
    ],
)
def test_a_report_that_can_not_be_used(trace, tmp_path, capsys, text, words):
    report = tmp_path / "efficiency.json"
    if text is not None:
        report.write_text(text)
    assert cli.main(["size", str(trace), "--config", STACK, *OWNED, "--efficiency", str(report)]) == 2
    assert words in capsys.readouterr().err
