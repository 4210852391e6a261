"""`ironburst report` of the money, as it is called."""

import csv
import json
from datetime import datetime
from decimal import Decimal

import pytest

from ironburst import cli
from ironburst.adapters.slurm.accounting import COLUMNS
from ironburst.burst import Launch
from ironburst.cli import cost
from ironburst.controller.lease_states import State
from ironburst.controller.ledger import Ledger
from ironburst.cost.aws import cur as bill_columns
from tests.fakes import document
from tests.fakes.clock import T0

NOW = T0 + 86400.0
HOST = {
    "kind": "bare_metal", "role": "gpu", "address": "", "partition": "home", "fabric": "none", "fabric_links": 0,
    "gpu": {"model": "H100 SXM5 80GB", "count": 8}, "slurm": None, "roles": [],
}  # fmt: skip
JOBS = [
    f"1|1|{T0:.0f}|{T0 + 600:.0f}|{T0 + 4200:.0f}|3600|billing=8,gres/gpu=4,node=1|alice|nlp|p5-1|COMPLETED",
    f"2|2|{T0:.0f}|{T0 + 60:.0f}|{T0 + 7260:.0f}|7200|billing=8,gres/gpu=8,node=1|bob|vision|dgx01|COMPLETED",
    "2.batch|2.batch|1|2|3|1|gres/gpu=8|||dgx01|COMPLETED",
]


@pytest.fixture
def site(tmp_path, monkeypatch):
    raw = document().model_dump(mode="json")
    raw["hosts"] = [HOST | {"name": "dgx01", "usd_per_gpu_hour": 2.5}, HOST | {"name": "dgx02"}]
    raw["burst"]["wait_target"] = {"mean_h": 0.05}
    (tmp_path / "cluster.json").write_text(json.dumps(raw))
    (tmp_path / "jobs.txt").write_text("\n".join(["|".join(COLUMNS), *JOBS]) + "\n")
    ledger = Ledger(tmp_path / "ledger.sqlite")
    launch = Launch("p5", ("us-east-1a",), "on-demand", ("p5-1",), (1,), 55.04, T0 + 9999, 99.0, "late", "nlp")
    ledger.add_launch("L1", launch, "p5.48xlarge", "ami-1", 120.0, 1, T0)
    paid = {"instance_id": "i-1", "from_s": T0 + 60, "joined_s": T0 + 500, "to_s": T0 + 4800}
    ledger.move(ledger.leases(), State.ENDED, T0, **paid)
    ledger.close()
    monkeypatch.setenv("IRONBURST_DOCUMENT", str(tmp_path / "cluster.json"))
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.delenv("IRONBURST_SLURM_PREFIX", raising=False)
    monkeypatch.setattr(cost.time, "time", lambda: NOW)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report(*arguments, code=0):
    assert cli.main(["report", *arguments]) == code


def test_what_it_says(site, capsys):
    report("--jobs", "jobs.txt", "--json")
    said = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in said["rows"]}
    assert rows["vision"]["usd"]["home"] == 40.0 and rows["vision"]["gpu_hours"]["home"] == 16.0
    assert rows["nlp"]["usd"]["jobs"] == 27.52 and rows["nlp"]["gpu_hours"]["rented"] == 4.0
    spent = 55.04 * 4740 / 3600
    assert rows["nlp"]["usd"]["rented"] == said["total"]["usd"]["rented"] == pytest.approx(spent, abs=1e-6)
    assert said["markets"]["on-demand"]["gpu_hours"] == 4.0 and said["notes"] == []
    begin = datetime.fromtimestamp(NOW).replace(day=1, hour=0, minute=0, second=0).timestamp()
    assert (said["from_s"], said["to_s"]) == (begin, NOW)
    report("--jobs", "jobs.txt")
    out = capsys.readouterr().out
    assert "rented: $72.47 for 4.0 GPU-hours of jobs" in out and "longer than wanted" in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("by", cost.BY)
def test_csv_adds_up_exactly(site, capsys, by):
    report("--jobs", "jobs.txt", "--csv", "--by", by)
    *rows, total = csv.DictReader(capsys.readouterr().out.splitlines())
    for column in ("home_usd", "rented_usd", "jobs_usd", "boot_usd", "idle_usd", "total_usd"):
        assert sum(Decimal(row[column]) for row in rows) == Decimal(total[column]) >= 0
    assert Decimal(total["total_usd"]) == Decimal(total["home_usd"]) + Decimal(total["rented_usd"])


def test_a_page_that_needs_nothing(site, capsys):
    report("--jobs", "jobs.txt", "--html")
    page = capsys.readouterr().out
    assert page.startswith("<!doctype html>") and "<svg" in page and "$72.47" in page
    assert "src=" not in page and "href=" not in page


def test_home_without_a_price_is_a_dash_and_a_sentence(site, capsys):
    text = (site / "jobs.txt").read_text().replace("|dgx01|COMPLETED", "|dgx02|COMPLETED")
    (site / "jobs.txt").write_text(text)
    report("--jobs", "jobs.txt")
    out = capsys.readouterr().out
    assert "What a GPU-hour of dgx02 costs isn't declared" in out and "halls[].nodes[].usd_per_gpu_hour" in out
    report("--jobs", "jobs.txt", "--json")
    assert json.loads(capsys.readouterr().out)["total"]["usd"]["home"] is None
    report("--jobs", "jobs.txt", "--csv")
    assert next(csv.DictReader(capsys.readouterr().out.splitlines()))["home_usd"] in ("", "0.000000")


@pytest.mark.parametrize(
    ("usd", "home", "words"),
    [
        (6.88, 110.08, ["fixed-1, fixed cloud nodes, count at home, at the on-demand price"]),
        (None, None, ["GPU-hour of fixed-1 costs", "publish it again", "cloud.price"]),
    ],
)
def test_a_fixed_cloud_node_has_the_price_that_was_published(site, capsys, usd, home, words):
    raw = json.loads((site / "cluster.json").read_text())
    raw["hosts"].append(HOST | {"name": "fixed-1", "kind": "cloud", "partition": "fixed", "usd_per_gpu_hour": usd})
    (site / "cluster.json").write_text(json.dumps(raw))
    (site / "jobs.txt").write_text((site / "jobs.txt").read_text().replace("|dgx01|COMPLETED", "|fixed-1|COMPLETED"))
    report("--jobs", "jobs.txt", "--json")
    said = json.loads(capsys.readouterr().out)
    assert {row["name"]: row for row in said["rows"]}["vision"]["usd"]["home"] == home  # 16 GPU-hours
    (note,) = said["notes"]
    assert all(word in note for word in words), note


def test_slurm_is_asked_where_no_file_is_given(site, capsys, monkeypatch):
    asked = []

    class Slurm:
        def __init__(self, prefix):
            asked.append(list(prefix))

        def show(self, *command):
            asked.append(command)
            return (site / "jobs.txt").read_text()

    monkeypatch.setattr(cost.schedulers, "Slurm", Slurm)
    report("--slurm-prefix", "ssh root@head", "--from", "2026-11-21T12:00Z", "--to", "2026-11-22T12:00Z", "--json")
    assert json.loads(capsys.readouterr().out)["total"]["jobs"] == 2
    assert asked[0] == ["ssh", "root@head"] and "--starttime=2026-11-21T12:00:00" in asked[1]


def cur(*lines):
    return "\n".join(
        [",".join([*bill_columns.COLUMNS, "line_item_resource_id,line_item_usage_amount,resource_tags"]), *lines]
    )


def test_the_bill_beside_it(site, capsys):
    tags = '"{""user_ironburst_cluster"": ""lab""}"'
    usage = "BoxUsage:p5.48xlarge,i-1"
    lines = (
        f"Usage,2026-11-21T12:00:00Z,54.1226666667,{usage},0.9833333333,{tags}",
        f"Usage,2026-11-21T13:00:00Z,18.3466666667,{usage},0.3333333333,{tags}",
        f"Usage,2026-11-21T13:00:00Z,0.5,EBS:VolumeUsage.gp3,vol-1,1,{tags}",
        f"Usage,2026-11-21T13:00:00Z,7,Dance:Hours,d-1,1,{tags}",
    )
    (site / "bill.csv").write_text(cur(*lines))
    report("--jobs", "jobs.txt", "--bill", "bill.csv", "--json")
    said = json.loads(capsys.readouterr().out)
    assert said["bill"]["billed_usd"] == 79.9693333334 and said["bill"]["unexplained_usd"] == 7.0
    assert said["bill"]["estimated_usd"] == said["total"]["usd"]["rented"]
    assert (said["from_s"], said["to_s"]) == (T0, T0 + 7200)
    report("--jobs", "jobs.txt", "--bill", "bill.csv")
    out = capsys.readouterr().out
    assert "dollars unexplained: 7.00" in out and "    d-1" in out and "disks" in out
    report("--jobs", "jobs.txt", "--bill", "bill.csv", "--csv")
    *rows, billed = csv.DictReader(capsys.readouterr().out.splitlines())
    assert sum(Decimal(row["usd"]) for row in rows) == Decimal(billed["usd"]) == Decimal("79.9693333334")
    report("--jobs", "jobs.txt", "--bill", "bill.csv", "--html")
    assert "difference by difference" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "yesterday"], "--from 'yesterday': write a date such as 2026-03-01, or 2026-03-01T12:00Z"),
        (["--from", "2026-11-22", "--to", "2026-11-21"], "--to 2026-11-21 is not after --from 2026-11-22"),
        (["--from", "2030-01-01"], "--to now is not after --from 2030-01-01"),
        (["--json", "--csv"], "--json, --csv and --html are three shapes of one report: give one of them"),
        (["--jobs", "none.txt"], "none.txt can't be read: No such file or directory"),
        (["--bill", "none.csv"], "none.csv can't be read: No such file or directory"),
        (["--bill", "jobs.txt"], "jobs.txt is no known bill"),
        (["--bill", "bill.parquet"], "bill.parquet is no text: of a bill, export text/csv (gzip), not Parquet"),
        (["--bill", "bad.csv.gz"], "bad.csv.gz can't be read: Not a gzipped file"),
        (["--jobs", "bill.csv"], "bill.csv, line 1: it has no column JobIDRaw"),
        (
            ["--bill", "bill.csv", "--from", "2026-11-21T12:30Z"],
            "line 2 of the bill lies across the edge of the window",
        ),
        (["ticks"], "DIR is of the jobs that were seen: give --shadow, too"),
        (["--out", "there"], "--out is of the jobs that were seen: give --shadow, too"),
        (["--shadow", "--csv"], "--jobs is of the money: leave --shadow out"),
        (["--ledger", "none.sqlite"], "there is no ledger at none.sqlite"),
    ],
)
def test_bad_input_is_one_sentence(site, capsys, arguments, said):
    (site / "bill.parquet").write_bytes(b"PAR1\xff\xfe\x00\x80")
    (site / "bad.csv.gz").write_bytes(b"no gzip")
    (site / "bill.csv").write_text(cur("Usage,2026-11-21T12:00:00Z,1,BoxUsage:p5,i-1,1,{}"))
    report(*(["--jobs", "jobs.txt"] if "--jobs" not in arguments else []), *arguments, code=2)
    assert said in capsys.readouterr().err
