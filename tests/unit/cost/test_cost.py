"""GPU-hours and dollars: the rows are the total, whatever they are of."""

from random import Random

import pytest

from ironburst.controller.records import DecisionRow, LeaseRow, Rate
from ironburst.cost import bought, report
from ironburst.cost.accounted import JobRun, Window, first_starts
from ironburst.cost.leases import Occupied, charges, priced
from ironburst.cost.report import BY, CostBasis

NOW = 10 * 86400.0
WINDOW = Window(86400.0, 6 * 86400.0 + 1234.5)
DAYS = [(f"d{n}", Window(max(n * 86400.0, WINDOW.from_s), min((n + 1) * 86400.0, WINDOW.to_s))) for n in range(1, 7)]
CLOUDS = {"p5": "aws", "g5": "google"}
SITE = CostBasis({"p5": 8}, {"p5-1": "p5", "p5-2": "p5"}, {"dgx01": 2.37, "dgx02": 2.37}, 16)


def lease(id="l1", node="p5-1", begin=0.0, end=7200.0, joined=600.0, usd=55.04, **more):
    fields = dict.fromkeys(LeaseRow.__dataclass_fields__) | {
        "id": id, "launch": id, "node": node, "pool": "p5", "instance_type": "p5.48xlarge", "market": "on-demand",
        "zone": "z", "usd_per_hour": usd, "state": "ended", "instance_id": f"i-{id}", "committed_until_s": 0.0,
        "worked": True, "made_s": begin, "from_s": begin, "joined_s": None if joined is None else begin + joined,
        "to_s": end, "changed_s": end, "end_reason": "",
    }  # fmt: skip
    return LeaseRow(**fields | more)


def run(job=1, node="p5-1", start=0.0, end=3600.0, gpus=8, account="nlp", user="bob", submit=None):
    nodes = (node,) if isinstance(node, str) else node
    submit = start - 60 if submit is None else submit
    return JobRun(job, str(job), user, account, nodes, gpus, submit, start, end, (end or NOW) - (start or 0.0))


def crowd(seed):
    """Leases one after the other on two nodes, and jobs there and at home."""
    rng, rows, runs, rates = Random(seed), [], [], {}
    for node in ("p5-1", "p5-2"):
        at = rng.uniform(0, 9e4)
        while at < 7 * 86400:
            end, id = at + rng.uniform(30, 40000), f"{node}/{len(rows)}"
            joined = None if rng.random() < 0.1 else rng.uniform(100, 500)
            rows.append(lease(id, node, at, end, joined, rng.choice([24.0, 55.04, 0.0])))
            rates[id] = [Rate(0.0, "nlp", rows[-1].usd_per_hour), Rate(at + 1000, "vision", rows[-1].usd_per_hour)]
            for _ in range(rng.randint(0, 3)):
                begin = rng.uniform(at + 500, max(end, at + 501))
                gpus, account = rng.choice([1, 2, 8]), rng.choice(["nlp", "vision", ""])
                runs.append(run(len(runs), node, begin, rng.uniform(begin, end + 300), gpus, account))
            at = end + rng.uniform(0, 30000)
    for n in range(60):
        begin = rng.uniform(0, 7 * 86400)
        node = rng.choice(["dgx01", "dgx02", ("dgx01", "dgx02")])
        runs.append(run(1000 + n, node, begin, begin + rng.uniform(10, 90000), 8, "vision", rng.choice("ab")))
    return priced(rows, rates, NOW), runs


@pytest.mark.parametrize("seed", range(6))
def test_rows_add_up_to_the_total_and_the_total_to_the_leases(seed):
    leases, runs = crowd(seed)
    windows = [("", WINDOW)]
    made = {by: report.report(by, runs, leases, SITE, DAYS if by == "day" else windows, NOW) for by in BY}
    whole = sum(each.micro(max(each.from_s, WINDOW.from_s), max(WINDOW.to_s, each.from_s)) for each in leases)
    for by, its in made.items():
        assert sum(row.rented_micro for row in its.rows) == its.total.rented_micro == whole > 0, by
        assert sum(row.home_micro for row in its.rows) == its.total.home_micro > 0
        assert its.total.home_gpu_s == pytest.approx(made["account"].total.home_gpu_s)
        assert its.total.rented_gpu_s == pytest.approx(made["account"].total.rented_gpu_s)
        assert sum(row.jobs for row in its.rows) == its.total.jobs == len(first_starts(runs, WINDOW))
        assert sum(each.micro for each in its.markets.values()) == whole
    assert len({its.total.home_micro for its in made.values()}) == 1
    shares: dict[int, int] = {}
    for charge in charges(leases, Occupied(runs, NOW), SITE.pool_gpus, [Window(0.0, NOW)]):
        assert charge.micro >= 0
        shares[charge.lease] = shares.get(charge.lease, 0) + charge.micro
    assert shares == {n: round(each.usd(NOW) * 1e6) for n, each in enumerate(leases)}


def test_windows_that_meet_cost_what_the_whole_does():
    leases, runs = crowd(3)
    parts = [report.report("account", runs, leases, SITE, [day], NOW).total for day in DAYS]
    whole = report.report("account", runs, leases, SITE, [("", WINDOW)], NOW).total
    assert sum(part.rented_micro for part in parts) == whole.rented_micro
    assert sum(part.home_micro for part in parts) == whole.home_micro


def test_jobs_on_one_node_share_its_dollars_by_gpu_hours_and_the_rest_is_idle():
    rows = [lease(usd=36.0, begin=0.0, end=3600.0, joined=600.0)]
    rates = {"l1": [Rate(0.0, "vision", 36.0)]}
    runs = [run(1, start=600.0, end=2400.0, gpus=4), run(2, start=600.0, end=3600.0, gpus=2, account="cv")]
    made = report.report("account", runs, priced(rows, rates, NOW), SITE, [("", Window(0, NOW))], NOW)
    rented = {row.name: row.rented for row in made.rows}
    assert rented["nlp"]["jobs"] == 9_000_000 and rented["cv"]["jobs"] == 7_500_000  # $36 is 8 GPU-hours
    assert rented["vision"] == {"jobs": 0, "boot": 6_000_000, "idle": 13_500_000, "other": 0}
    by_user = report.report("user", runs, priced(rows, rates, NOW), SITE, [("", Window(0, NOW))], NOW)
    assert {row.name for row in by_user.rows} == {"bob", "no job, vision"}


def test_boots_that_came_to_nothing_and_what_nobody_leased():
    rows = [
        lease("a", joined=None, end=900.0),
        lease("b", node="p5-2", joined=None, instance_id=None, market="carried-over"),
        lease("c", node="p5-2", begin=9000.0, end=9010.0, state="requested"),
        lease("d", node="p5-2", begin=20000.0, end=20010.0, joined=5.0),  # a minute at least
    ]
    made = report.report("pool", [], priced(rows, {}, NOW), SITE, [("", Window(0, NOW))], NOW)
    (row,) = made.rows
    assert row.rented["boot"] == round(55.04 / 4 * 1e6) + round(55.04 / 720 * 1e6) and row.rented["jobs"] == 0
    assert row.rented["other"] == 110_080_000 and row.rented["idle"] == pytest.approx(55.04e6 * 55 / 3600, abs=1)
    late = report.report("pool", [run(start=1e5, end=1.1e5)], priced(rows, {}, NOW), SITE, [("", Window(0, NOW))], NOW)
    assert late.unleased_gpu_s == pytest.approx(8e4) and late.total.rented["jobs"] == 0


def test_of_each_cloud_its_own_and_they_are_the_total():
    rows = [lease("a"), lease("b", node="g5-1", pool="g5", usd=88.0), lease("c", node="x-1", pool="x", usd=1.0)]
    site = CostBasis({"p5": 8, "g5": 8}, {"p5-1": "p5", "g5-1": "g5", "x-1": "x"}, {"dgx01": 2.0}, 16, CLOUDS)
    runs = [run(1, start=600.0, end=7200.0), run(2, "dgx01"), run(3, "g5-1", start=600.0, end=7200.0)]
    made = report.report("cloud", runs, priced(rows, {}, NOW), site, [("", Window(0, NOW))], NOW)
    assert {row.name: row.rented_micro / 1e6 for row in made.rows} == {
        "google": pytest.approx(176.0), "aws": pytest.approx(110.08), "-": pytest.approx(2.0), "home": 0
    }  # fmt: skip
    assert sum(row.rented_micro for row in made.rows) == made.total.rented_micro


def test_a_home_without_a_price_costs_nobody_knows_what():
    site = CostBasis({}, {}, {"dgx01": None, "dgx02": 2.0}, 16)
    runs = [run(1, "dgx01"), run(2, "dgx02"), run(3, ("dgx01", "dgx02"), account="cv")]
    made = report.report("job", runs, [], site, [("", Window(0, NOW))], NOW)
    assert {row.name: row.home_usd for row in made.rows} == {"1": None, "2": 16.0, "3": None}
    assert made.total.home_usd is None and made.unpriced == ["dgx01"]


def test_what_was_bought_by_capacity_blocks_costs_nothing_and_counts():
    rows = [lease(usd=0.0, market="capacity-block")]
    made = report.report("account", [run(start=700.0)], priced(rows, {}, NOW), SITE, [("", Window(0, NOW))], NOW)
    assert made.markets["capacity-block"].micro == 0 and made.markets["capacity-block"].gpu_s == 8 * 2900
    assert made.total.rented_micro == 0 and made.total.rented_gpu_s == 8 * 2900


def test_waits_count_from_the_first_submit_and_suspended_time_is_free():
    again = run(1, start=5000.0, end=6000.0, submit=4000.0)
    runs = [run(1, start=1000.0, end=4000.0, submit=100.0), again, run(2, start=None, end=None, submit=0.0)]
    (first,) = first_starts(runs, Window(0, NOW))
    assert first.wait_s == 900.0 and first.run is runs[0]
    assert first_starts(runs, Window(1001.0, NOW)) == []
    slept = again._replace(elapsed_s=250.0)
    made = report.report("job", [slept], [], SITE, [("", Window(0, NOW))], NOW)
    assert made.total.rented_gpu_s == 8 * 250
    still = run(3, node="dgx01", start=NOW - 3600, end=None)
    assert report.report("job", [still], [], SITE, [("", Window(0, NOW + 9e9))], NOW).total.home_gpu_s == 8 * 3600


def row(job, code, last_s, figures):
    return DecisionRow(0.0, last_s, job, "wait", code, "", None, figures)


def test_what_the_dollars_bought_is_what_was_predicted():
    rows = [
        row(1, "home_soon", 100.0, '{"start_s": 9000.0, "alternatives": []}'),
        row(1, "renting", 200.0, '{"start_s": 500.0, "alternatives": [{"what": "home", "in_s": 7000.0}]}'),
        row(1, "coming", 300.0, '{"start_s": null, "alternatives": []}'),
        row(2, "over_budget", 100.0, '{"start_s": 650.0}'),
        row(3, "renting", 100.0, '{"start_s": 650.0, "alternatives": [{"what": "rent", "in_s": 1.0}]}'),
        row(4, "home_soon", 100.0, "no JSON"),
    ]
    home_s = bought.predicted(rows)
    assert home_s == {1: 7200.0, 2: 650.0}
    runs = [run(1, start=3600.0), run(2, start=700.0), run(3, start=700.0), run(5, "dgx01", start=10.0)]
    found = bought.bought(first_starts(runs, Window(0, NOW)), SITE.pool_of, home_s)
    assert found == bought.Bought(jobs=3, known=2, later_h=1.0, no_later=1)


def test_the_same_id_of_another_user_is_another_job():
    """slurmctld was set up again, and counts from 1."""
    runs = [run(7, start=1000.0, end=1300.0), run(7, start=90_000.0, end=90_300.0)._replace(user="eve")]
    firsts = first_starts(runs, Window(0, NOW))
    assert [first.run for first in firsts] == runs and all(first.wait_s < 80_000 for first in firsts)
