"""What the page shows, of files that the real controller wrote."""

import base64
import hashlib
import json
import re
import sqlite3
from html.parser import HTMLParser

import pytest

from ironburst.controller import order_book
from ironburst.controller.lease_states import State
from ironburst.controller.ledger import Ledger
from ironburst.controller.order_book import Order, Request
from ironburst.convergence.model import HostReport, Report
from ironburst.page import broken, view
from ironburst.system import local_time
from tests.fakes.operated import HOSTILE

DAY_S = 86400


def shown(site, asked="", rows=view.ROWS):
    return view.view(site.source().seen(), local_time.at, asked, rows)


def of_ledger(path, from_s, to_s):
    """USD that leases cost in a time, from the tables alone."""
    db = sqlite3.connect(path)
    usd = 0.0
    for id, begin, end in db.execute("SELECT id, from_s, to_s FROM leases WHERE from_s IS NOT NULL").fetchall():
        rates = db.execute("SELECT from_s, usd_per_hour FROM rates WHERE lease = ? ORDER BY from_s", (id,)).fetchall()
        for n, (since, price) in enumerate(rates):
            until = rates[n + 1][0] if n + 1 < len(rates) else to_s
            usd += max(0.0, min(end, until, to_s) - max(begin, since, from_s)) / 3600 * price
    return usd


def test_what_yesterday_cost_is_what_the_ledger_says(site):
    today_s = site.now() // DAY_S * DAY_S
    usd = of_ledger(site.folder / "ledger.sqlite", today_s - DAY_S, today_s)
    page = shown(site)
    assert usd > 100 and page.days[1].usd == f"${usd:,.2f}" and page.days[1].name.startswith("yesterday, 2026-11-21")
    assert ("yesterday, 2026-11-21", f"${usd:,.2f}", "money") in page.tiles
    (vision,) = (row for row in page.days[1].rows if row[0] == "vision")
    assert vision[1] == "p5" and 0 < float(vision[2].strip("$")) < usd
    assert sum(float(row[2].strip("$")) for row in page.days[1].rows) == pytest.approx(usd, abs=0.02)


def test_a_closed_pool_and_a_dead_node_are_on_top_and_drift_was_never_looked_for(site):
    troubles = shown(site).broken
    assert [each.what for each in troubles] == [
        "Pool p5 is closed",
        "dgx03 takes no jobs",
        "Needs a person",
        "Drift isn't known",
    ]
    assert [each.act for each in troubles] == [True, True, True, False]
    assert "us-east-1a spot" in troubles[0].text and "ironburst open p5" in troubles[0].text
    assert "nobody has looked yet" in troubles[3].text


def test_a_job_that_waits_says_why_and_what_else_there_was(site):
    (job,) = shown(site, str(site.world.waits)).queue.jobs
    assert job.why.startswith(f"Job {site.world.waits} (8 GPUs, 2 h) waits until ") and "$" in job.why
    assert job.more and job.more[0].startswith("instead: ") and job.where.startswith("waits ")
    (endless,) = shown(site, f"{site.world.endless}").queue.jobs
    assert "can't be rented for" in endless.why and "submit it with --time" in endless.why


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("vision ben", ["eval-large"]),
        ("EVAL", ["eval-large"]),
        ("cho", ["notebook"]),
        ("running language", ["pretrain"]),
        ("nobody", []),
    ],
)
def test_jobs_are_found_by_what_people_know_of_them(site, asked, names):
    queue = shown(site, asked).queue
    assert [job.name for job in queue.jobs] == names and queue.found == len(names) and queue.of == 5


def test_a_number_finds_that_job_first(site):
    assert [job.id for job in shown(site, "2").queue.jobs] == ["2", "29"]


def test_more_jobs_than_are_shown_are_counted(site):
    queue = shown(site, rows=2).queue
    assert len(queue.jobs) == 2 and queue.found == 5 and queue.waiting == 3


def test_a_silent_controller_is_said_first(site):
    site.ahead_s = 4 * 3600.0
    page = shown(site)
    assert page.late.startswith("the controller has not ticked for 4 h") and page.broken[0].text == page.late
    assert '<p class="silent"><strong>The controller is silent.' in site.source().page("")


def report(state, **more):
    return Report("lab", 1, True, 0.0, 3.0, {"dgx01": HostReport("unchanged"), "dgx02": HostReport(state, **more)})


@pytest.mark.parametrize(("state", "act"), [("drifted", False), ("unreachable", True)])
def test_drift_is_what_a_converge_with_check_wrote(site, state, act):
    said = report(state, why=["package cuda: was 13.0, is 12.9"]).as_json() | {"started": site.now() - 7200}
    site.check.write_text(json.dumps(said))
    page = shown(site)
    assert [(row["host"], row["state"]) for row in page.drift] == [("dgx01", "unchanged"), ("dgx02", state)]
    assert "2 h before" in page.drift_text and "changed nothing" in page.drift_text
    (trouble,) = (each for each in page.broken if each.what == f"dgx02 is {state}")
    assert trouble.act is act and "was 13.0, is 12.9" in trouble.text


def test_an_old_look_for_drift_is_told(site):
    site.check.write_text(json.dumps(report("unchanged").as_json() | {"started": site.now() - 2 * broken.LOOKED_S}))
    assert "for 14 d" in shown(site).broken[-1].text


@pytest.mark.parametrize("text", ["", "[]", '{"hosts": 3}', '{"hosts": {"a": null}}', '{"hosts": {}, "started": "x"}'])
def test_a_look_that_cannot_be_read_says_so(site, text):
    site.check.write_text(text)
    assert "is no report of" in shown(site).drift_text


def test_leases_and_their_jobs(site):
    ledger = Ledger(site.folder / "ledger.sqlite")
    lease = ledger.leases(open_only=False)[0]
    ledger.move([lease], State.READY, site.now(), to_s=None, from_s=site.now() - 3600)
    ledger.close()
    (row,) = shown(site).leases
    assert (row["node"], row["state"], row["usd"]) == (lease.node, "ready", f"${lease.usd_per_hour:.2f}")


@pytest.mark.parametrize("gone", ["ledger.sqlite", "ticks"])
def test_what_is_missing_is_said_and_the_rest_is_shown(site, gone):
    (site.folder / gone).rename(site.folder / "away")
    page = shown(site)
    if gone == "ticks":
        assert any("no tick can be read" in each.text for each in page.broken) and page.days[1].usd != "$0.00"
    else:
        assert page.broken[0].what == "No controller" and page.queue.of == 5


def test_a_damaged_ledger_and_a_damaged_document_are_said(site):
    source = site.source()
    (site.folder / "ledger.sqlite").write_bytes(b"no database at all" * 400)
    (site.folder / "lab.json").write_text("{")
    texts = [each.text for each in view.view(source.seen(), local_time.at).broken]
    assert any("can't be used as a ledger" in text for text in texts)
    assert any("the document of before is used" in text for text in texts)


# ---- the HTML


class Parsed(HTMLParser):
    """Tags, and what of them would ask somebody for something."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.urls = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.urls += [value for name, value in attrs if name in ("src", "href", "action", "srcset", "data")]


def test_names_of_others_are_text(site):
    for text in (site.source().file(), site.source().page(""), site.source().now(HOSTILE)):
        assert "<script>document" not in text and "<b>\n" not in text and 'brien"><b>' not in text
    assert "&lt;script&gt;document.title=&#39;owned&#39;&lt;/script&gt;" in site.source().file()
    assert Parsed(site.source().file()).tags.count("script") == 1
    assert 'value="&lt;script&gt;' in site.source().page(HOSTILE)
    assert "<script>" not in site.source().story(str(site.world.hostile))


def test_the_file_asks_nobody_and_allows_only_its_own_style_and_script(site):
    text = site.source().file()
    assert {url for url in Parsed(text).urls if not url.startswith("#")} <= {"data:,", ""}
    assert "http://" not in text and "https://" not in text and "url(" not in text and "@import" not in text
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    for tag in ("script", "style"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in policy
    assert "default-src &#39;none&#39;" in policy and "unsafe" not in policy


def test_looking_leaves_nothing_behind(site):
    def files():
        return {path: path.stat().st_mtime_ns for path in site.folder.rglob("*")}

    before, source = files(), site.source()
    assert source.file() and source.page("") and source.story("1")
    assert files() == before


def test_the_pictures_are_of_the_ledger(site):
    rented = next(each for each in site.source().seen().pictures if each.title == "GPUs, 24 hours")
    # 24 h of 8 GPUs a lease, averaged
    day_s = site.now() - DAY_S
    db = sqlite3.connect(site.folder / "ledger.sqlite")
    leases = db.execute("SELECT from_s, to_s FROM leases WHERE from_s IS NOT NULL").fetchall()
    hours = sum(max(0.0, end - max(begin, day_s)) / 3600 for begin, end in leases)
    average = float(re.search(r"rented \(paid for\): ([\d.]+) on average", rented.svg)[1])
    assert average == pytest.approx(8 * hours / 24, abs=0.1) and average > 1
    assert re.search(r"at home in all \(now\): 24.0 on average", rented.svg)


def test_the_gpus_that_ticks_saw_are_those_that_jobs_had(site):
    """By when each was submitted, started and gone, in 22 hours with looks five minutes apart at most."""
    db, now_s = sqlite3.connect(site.folder / "ledger.sqlite"), site.now()
    had = {"home": 0.0, "rented": 0.0, "waiting": 0.0}
    jobs = db.execute("SELECT nodes * gpus, submit_s, start_s, state, last_s, ran_on FROM jobs").fetchall()
    for gpus, submit_s, start_s, state, last_s, ran_on in jobs:
        end_s = last_s if state == "LEFT_QUEUE" else now_s
        had["waiting"] += gpus * ((start_s or end_s) - submit_s)
        if start_s is not None:
            had["rented" if ran_on.startswith("p5-") else "home"] += gpus * (end_s - start_s)
    seen = db.execute("SELECT SUM(home), SUM(rented), SUM(waiting) FROM gpu_use").fetchone()
    assert dict(zip(had, seen, strict=True)) == pytest.approx(had, rel=0.03) and min(had.values()) > 8 * 3600


def test_what_people_ordered_and_what_burns_is_shown(site):
    ledger = Ledger(site.folder / "ledger.sqlite")
    asked = Request("close", why="<b>bad</b> rack", target="p5", until_s=site.now() + 7200)
    order_book.write(
        ledger, [Order("1", "ann", site.now() - 60, asked), Order("2", "ben", site.now(), Request("stop"))]
    )
    ledger.close()
    page = shown(site)
    ordered = {each.what: each for each in page.broken if "lifts it" in each.text}
    assert set(ordered) == {"p5 is closed", "renting is stopped"}
    assert "by ann at 2026-11-" in ordered["p5 is closed"].when and "until 2026-11-" in ordered["p5 is closed"].when
    assert ordered["renting is stopped"].text == "no reason was given (`ironburst resume` lifts it)"
    assert any(words == "rented, an hour" for words, _, _ in page.tiles)
    assert page.burn[0].startswith("what is rented costs $")
    assert "&lt;b&gt;bad&lt;/b&gt; rack" in site.source().page("")


@pytest.mark.parametrize(
    ("known", "words", "figure"),
    [
        ([6.88], "1 fixed cloud node, an hour", "$55.04"),
        ([6.88, None], "2 fixed cloud nodes, an hour, 1 of unknown price", "$55.04"),
        ([None], "1 fixed cloud node, an hour", "unknown"),
    ],
)
def test_fixed_cloud_nodes_are_shown_and_an_unknown_price_is_no_zero(site, known, words, figure):
    path = site.folder / "lab.json"
    host = {"kind": "cloud", "role": "gpu", "address": "10.0.0.1", "partition": "fixed", "fabric": "efa", "roles": []}
    host |= {"gpu": {"model": "H100 SXM5 80GB", "count": 8}, "fabric_links": 32, "slurm": None}
    hosts = [host | {"name": f"fixed-{n}", "usd_per_gpu_hour": usd} for n, usd in enumerate(known)]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"hosts": hosts}))
    page = shown(site)
    assert (words, figure, "money") in page.tiles
    assert "working or not, under no ceiling" in page.burn[1]
