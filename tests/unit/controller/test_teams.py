"""What accounts use, on the controller's /metrics: against the runs in the ledger."""

import pytest

from ironburst.controller.metrics import Metrics
from ironburst.document.monitoring import MonitoringDocument, PlaceEnergy
from ironburst.ports.measured import MeasuredError
from tests import prometheus
from tests.unit.controller.test_job_runs import URL, Measured, ran
from tests.unit.controller.test_metrics import samples


@pytest.fixture
def world(tmp_path):
    world = Measured(tmp_path, home=2)
    cloud = PlaceEnergy(gco2_per_kwh=383.55, origin="United States 2024, Ember")
    halls = {"dc1": PlaceEnergy(pue=1.2, gco2_per_kwh=50.0, origin="declared")}
    monitoring = MonitoringDocument(url=URL, halls=halls, cloud=cloud)
    world.document = world.document.model_copy(update={"monitoring": monitoring})
    world.metrics = Metrics(world.ledger, teams=world.controller.job_runs.teams)
    return world


def said(world):
    world.metrics.ended(world.document, world.tick())
    return samples(world.metrics.text)


def test_an_accounts_gpu_time_counts_once_and_begins_with_nothing(world):
    job = world.slurm.submit(runs_s=600.0, limit_s=3600.0, account="vision")
    world.tick()
    key = '{account="vision",place="home"}'
    now = said(world)
    assert now[f"ironburst_account_gpus{key}"] == 8 and now[f"ironburst_account_gpu_seconds_total{key}"] == 0
    began = world.slurm.jobs[job].job.start_s
    world.prometheus.seen[job] = (began, began + 600)
    world.until(lambda: world.slurm.jobs[job].done, every_s=5.0)
    world.pass_by(300, 10.0)
    (run,) = world.runs(job)
    now = said(world)
    assert now[f"ironburst_account_gpu_seconds_total{key}"] == pytest.approx(8 * (run.end_s - run.start_s))
    assert now[f"ironburst_account_gpus{key}"] == 0
    # the stand-in answers 0.5 to each query: half of the time idle
    idle = now['ironburst_account_idle_gpu_seconds_total{account="vision"}']
    assert idle == pytest.approx(0.5 * 8 * (run.end_s - run.start_s))
    joules = now['ironburst_account_energy_joules_total{account="vision"}']
    assert joules == pytest.approx(0.5 / 1000, rel=0.01)  # 0.5 mJ
    world.pass_by(7200, 60.0)
    assert said(world)[f"ironburst_account_gpu_seconds_total{key}"] == now[f"ironburst_account_gpu_seconds_total{key}"]


def test_rented_gpus_cost_dollars_and_emit_with_the_rest_of_their_node(world):
    world.fill_home(limit_s=3600)
    job = world.slurm.submit(limit_s=600, runs_s=300, account="vision")
    world.until(lambda: world.slurm.jobs[job].job.on)
    began = world.slurm.jobs[job].job.start_s
    world.prometheus.seen[job] = (began, began + 300)
    world.until(lambda: world.slurm.jobs[job].done)
    world.pass_by(300, 10.0)
    (run,) = world.runs(job)
    now = said(world)
    assert now['ironburst_account_usd_total{account="vision",place="rented"}'] == pytest.approx(run.usd) and run.usd > 0
    joules = now['ironburst_account_energy_joules_total{account="vision"}']
    assert joules == pytest.approx(1.7 * 0.5 / 1000, rel=0.01)
    grams = now['ironburst_account_carbon_grams_total{account="vision"}']
    assert grams == pytest.approx(joules / 3.6e6 * 383.55, rel=0.01)


def test_what_is_never_measured_still_has_its_gpu_time(world):
    world.prometheus.raises = MeasuredError("away")
    ran(world, account="")
    world.pass_by(120, 10.0)
    now = said(world)
    assert now['ironburst_account_gpu_seconds_total{account="none",place="home"}'] > 0
    assert now['ironburst_account_energy_joules_total{account="none"}'] == 0


def test_promtool_takes_them_and_places_are_there_to_multiply_with(world):
    ran(world, account='v"is\nion')
    now = said(world)
    assert now['ironburst_pue_ratio{hall="dc1"}'] == 1.2 and now['ironburst_carbon_grams_per_kwh{hall="dc1"}'] == 50
    assert now['ironburst_carbon_grams_per_kwh{rented="true"}'] == 383.55
    prometheus.check_metrics(prometheus.program("promtool"), world.metrics.text)
