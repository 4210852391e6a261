"""Energy and carbon: a real Prometheus with BMCs' and DCGM's samples, against arithmetic by hand."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ironburst import cli
from ironburst.adapters.prometheus import Prometheus
from ironburst.controller import energy
from ironburst.controller.energy import RENTED, Energy, Places
from ironburst.controller.job_figures import measure, packed
from ironburst.controller.ledger import Ledger
from ironburst.document.model import Host
from ironburst.document.monitoring import MonitoringDocument, PlaceEnergy
from tests import dcgm, prometheus
from tests.dcgm import Gpu, Load
from tests.fakes import document
from tests.unit.controller.test_job_report import GOOD, HOUR, RUN, T0

START = int(T0) // 300 * 300 + 1200  # halls are looked at each five minutes
END = START + 2 * 3600
JOB = 21
# half of dgx01 is the job's, all of dgx02's two GPUs; the BMC of dgx03 doesn't tell
LOAD = Load(START, END, (JOB,), 0.9, 0.6, 0.3, 9000, 500.0)
GPUS = [
    *[Gpu("dgx01", index, [LOAD] if index < 2 else [Load(START, END, (99,), 0.5, watts=300.0)]) for index in range(4)],
    *[Gpu("dgx02.example.org", index, [LOAD], phase_s=7) for index in range(2)],
    Gpu("dgx03", 0, [Load(START - 600, END + 600, (), 0.1, watts=100.0)]),
]
BMC_W = {"dgx01": 2600.0, "dgx02": 1500.0}
GERMANY = PlaceEnergy(pue=1.5, gco2_per_kwh=342.06, origin="Germany 2024, Ember")
IRELAND = PlaceEnergy(gco2_per_kwh=279.79, origin="Ireland 2024, Ember")
PLACES = Places(
    halls={"dc1": GERMANY},
    cloud=IRELAND,
    hall_of={"dgx01": "dc1", "dgx02": "dc1", "dgx03": "dc1", "dgx04": "dc2", "gpu-001": "dc1", "gpu-002": "dc1"},
    rented=frozenset({"p5-1"}),
)


def near(value):
    return pytest.approx(value, rel=0.02)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    gpus = dcgm.openmetrics(GPUS, START - 600, END + 600).removesuffix("# EOF\n")
    bmcs = ["# TYPE ironburst_node_power_watts gauge"]
    for node, watts in BMC_W.items():
        labels = f'node="{node}",hall="dc1",rack="r1"'
        bmcs += [f"ironburst_node_power_watts{{{labels}}} {watts} {at}" for at in range(START - 600, END + 600, 60)]
    folder = tmp_path_factory.mktemp("prometheus")
    with prometheus.serving(folder, gpus + "\n".join([*bmcs, "# EOF", ""])) as url:
        yield Prometheus(url)


def test_a_job_has_its_part_of_what_a_node_takes_beside_its_gpus(asked):
    found = measure(asked, JOB, ["dgx01", "dgx02"], START, END)
    assert found.kwh == near(4 * 0.5 * 2)
    beside = (2600 - 2 * 500 - 2 * 300) / 2 + (1500 - 2 * 500)
    assert found.node_kwh == near(4 * 0.5 * 2 + beside / 1000 * 2)


def test_without_dcgms_counter_the_bmc_tells(asked):
    query = asked.query

    class Uncounted:
        def query(self, expression, at_s):
            return query(expression.replace("TOTAL_ENERGY", "NOT_THERE"), at_s)

    found = measure(Uncounted(), JOB, ["dgx01", "dgx02"], START, END)
    assert found.kwh is None and found.node_kwh == near((2600 / 2 + 1500) / 1000 * 2)


def test_one_bmc_that_does_not_tell_leaves_the_gpus_alone(asked):
    assert measure(asked, JOB, ["dgx01", "dgx02", "dgx03"], START, END).node_kwh is None


def test_halls_with_their_idle_nodes(asked):
    (hall,) = energy.of_halls(asked, PLACES, START, END)
    its = hall["energy"]
    assert (hall["hall"], hall["nodes"], hall["share"]) == ("dc1", 3, 1.0)
    assert its["nodes"] == near((2600 + 1500) / 1000 * 2) and its["gpus"] == its["bare"] == near(0.1 * 2)
    assert its["cooling"] == near(0.5 * (its["nodes"] + its["gpus"]))
    assert its["kg"] == near(its["kwh"] * 0.34206)
    # of a window of which half was seen, the half is told, not the double
    (half,) = energy.of_halls(asked, PLACES, START - 2 * 3600, END)
    assert half["share"] == pytest.approx(27 / 48) and half["energy"]["kwh"] == near(its["kwh"] * 27 / 24)


# ---- arithmetic


def run(nodes="gpu-001,gpu-002", **figures):
    return replace(RUN, nodes=nodes, figures=packed(replace(GOOD, **figures)))


def test_measured_nodes_with_cooling():
    found = energy.of_run(run(node_kwh=4.0), PLACES)
    assert (found.gpus, found.nodes, found.rented, found.bare, found.uncooled) == pytest.approx((2.4, 1.6, 0, 0, 0))
    assert found.kwh == pytest.approx(6.0) and found.kg == pytest.approx(6.0 * 0.34206)


def test_rented_nodes_are_an_estimate_and_their_cooling_is_not_known():
    found = energy.of_run(run("p5-1"), PLACES)
    assert found.kwh == pytest.approx(2.4 * RENTED) and found.rented == pytest.approx(2.4 * (RENTED - 1))
    assert found.uncooled == found.kwh and found.kg == pytest.approx(2.4 * RENTED * 0.27979)
    said = energy.sentence(found.as_json())
    assert "estimated" in said and "without cooling" in said and "Ireland 2024, Ember" in said, said


def test_what_is_not_known_is_left_out_and_told():
    found = energy.of_run(run("dgx04"), PLACES)  # in a hall of which nothing is declared
    assert (found.kwh, found.bare, found.uncooled, found.unpriced) == pytest.approx((2.4,) * 4)
    assert found.as_json()["kg"] is None
    said = energy.sentence(found.as_json())
    assert said == "2.4 kWh: GPUs 2.4; without the rest of the nodes, cooling"
    both = (found + energy.of_run(run(node_kwh=4.0), PLACES)).as_json()
    assert both["kg"] == pytest.approx(6.0 * 0.34206)
    assert "2.4 kWh left out" in energy.sentence(both) and "(of 2.4 kWh)" in energy.sentence(both)
    assert energy.of_run(replace(RUN, figures=None), PLACES) is None and energy.of_runs([], PLACES) == Energy()


def with_node(declared):
    """With a node in hall dc1."""
    said = {"name": "dgx01", "kind": "bare_metal", "role": "gpu", "address": "10.0.0.1", "hall": "dc1", "roles": []}
    none = {"partition": "home", "gpu": None, "fabric": "none", "fabric_links": 0, "slurm": None}
    return declared.model_copy(update={"hosts": [Host.model_validate(said | none)]})


def test_places_of_a_document(tmp_path):
    declared = document().model_copy(update={"monitoring": MonitoringDocument(halls={"dc1": GERMANY}, cloud=IRELAND)})
    found = Places.of(with_node(declared))
    home, rented = "dgx01", declared.pools[0].nodes[0]
    assert (found.at(home), found.at(rented), found.at("nobody")) == (GERMANY, IRELAND, PlaceEnergy())
    assert Places.of(None).at(home) == PlaceEnergy()


# ---- printed


def test_a_job_and_its_account(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "ledger.sqlite"))
    declared = document()
    declared = with_node(declared.model_copy(update={"monitoring": MonitoringDocument(halls={"dc1": GERMANY})}))
    (tmp_path / "site.json").write_text(declared.model_dump_json())
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.add_run(run("dgx01", node_kwh=4.0))
    ledger.close()
    given = ["--document", str(tmp_path / "site.json")]
    assert cli.main(["job", "7", *given]) == 0
    text = capsys.readouterr().out
    assert "2.4 kW, 2.4 kWh of the GPUs only\n" in text
    assert "energy       6 kWh: GPUs 2.4, the rest of their nodes 1.6, cooling 2; 2.05 kg CO2e (location-based" in text
    window = ["--from", "2026-11-01", "--to", "2026-12-01"]
    assert cli.main(["report", "--efficiency", *given, *window]) == 0
    text = capsys.readouterr().out
    assert "kg CO2e" in text.splitlines()[0] and "5% of 4 measured GPU-hours were idle, which cost $2.00" in text
    assert cli.main(["report", "--efficiency", "--json", *given, *window]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["accounts"][0]["energy"]["kwh"] == pytest.approx(6.0) and said["halls"] == []
    assert said["idle"] == pytest.approx({"gpu_hours": 4, "idle_gpu_hours": 0.2, "share": 0.05, "usd": 2.0})
    assert RUN.end_s - RUN.start_s == HOUR


def test_halls_are_told_by_the_report_and_a_prometheus_that_is_away_costs_only_them(
    asked, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "ledger.sqlite"))
    Ledger(tmp_path / "ledger.sqlite").close()
    window = [f"--from={datetime.fromtimestamp(START, UTC):%Y-%m-%dT%H:%MZ}"]
    window.append(f"--to={datetime.fromtimestamp(END, UTC):%Y-%m-%dT%H:%MZ}")
    for url, line in ((asked._url, "hall dc1, 1 node with and without jobs, seen 100%"), ("http://127.0.0.1:9", "")):
        declared = with_node(document())
        monitoring = MonitoringDocument(url=url, halls={"dc1": GERMANY})
        (tmp_path / "site.json").write_text(declared.model_copy(update={"monitoring": monitoring}).model_dump_json())
        assert cli.main(["report", "--efficiency", "--document", str(tmp_path / "site.json"), *window]) == 0
        said = capsys.readouterr()
        assert line in said.out and ("what the halls took isn't known" in said.err) == (not line)
    assert "no job with GPUs" in said.out


def test_the_report_of_the_money_has_one_line_of_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "ledger.sqlite"))
    ledger = Ledger(tmp_path / "ledger.sqlite")
    (tmp_path / "sacct").write_text(
        "JobIDRaw|JobID|Submit|Start|End|ElapsedRaw|AllocTRES|User|Account|NodeList|State\n"
    )
    declared = with_node(document()).model_copy(update={"monitoring": MonitoringDocument(halls={"dc1": GERMANY})})
    (tmp_path / "site.json").write_text(declared.model_dump_json())
    argv = ["report", "--document", str(tmp_path / "site.json"), "--jobs", str(tmp_path / "sacct")]
    argv += ["--from", "2026-11-01", "--to", "2026-12-01"]
    assert cli.main(argv) == 0 and "energy" not in capsys.readouterr().out
    ledger.add_run(run("dgx01", node_kwh=4.0))
    ledger.close()
    assert cli.main(argv) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "energy of the jobs that ended then, as far as measured: 6 kWh: GPUs 2.4" in text
    assert cli.main([*argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["energy"]["kg"] == pytest.approx(6 * 0.34206)
