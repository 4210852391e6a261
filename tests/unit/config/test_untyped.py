"""What validate says of pools whose GPUs are less than home's, and what the document tells the policy of them."""

import copy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from ironburst import catalog
from ironburst.burst import Policy, decide
from ironburst.config import gpu_models, load
from ironburst.config.checks import check
from ironburst.config.software_models import Mig
from ironburst.controller import declared_site, policy_view
from ironburst.document import of_stack
from ironburst.nodes.gpus import NodeGpu
from ironburst.replay import simulation_report
from ironburst.replay.simulate import play
from ironburst.replay.traces import Trace
from tests.fakes.snapshots import BUSY, POLICY, job, pool, snapshot

NOW = datetime(2026, 11, 24, tzinfo=UTC)

L40S = {"name": "g6e", "instance_type": "g6e.48xlarge", "max_nodes": 2, "zones": ["us-east-1a"], "markets": ["spot"]}


def said(declared):
    return [each for each in check(load.from_value(declared), NOW) if each.rule == "lesser-gpus"]


@pytest.fixture
def with_l40s(declared):
    declared["cloud"]["pools"].append(copy.deepcopy(L40S))
    return declared


def test_a_lesser_pool_is_told_until_it_is_decided(with_l40s):
    (finding,) = said(with_l40s)
    assert finding.severity == "warning" and finding.path.endswith(f"pools[{len(with_l40s['cloud']['pools']) - 1}]")
    assert "this pool has L40S 48 GB without NVLink" in finding.message
    assert "--gres=gpu:l40s" in finding.message and "untyped_jobs_may_use: [g6e]" in finding.message
    for decided in ([], ["g6e"]):
        with_l40s["burst"] = {"untyped_jobs_may_use": decided}
        assert said(with_l40s) == []


def test_without_a_hall_nothing_is_lesser(with_l40s):
    for hall in with_l40s["halls"]:
        for nodes in hall["nodes"]:
            if nodes.get("role", "gpu") == "gpu":
                nodes["platform"] = "generic-pcie-server-8-gpu-l40s"
    assert said(with_l40s) == []


@pytest.mark.parametrize(
    ("name", "mig", "is_"),
    [
        ("g6e.48xlarge", None, NodeGpu("L40S", 48, False)),
        ("p5.48xlarge", None, NodeGpu("H100 SXM5 80GB", 80, True)),
        ("g6f.2xlarge", None, NodeGpu("L4", 6, False)),  # a quarter of one
        ("p5.48xlarge", {"1g.10gb": 7}, NodeGpu("H100 SXM5 80GB", 10, False)),  # Slurm gives a slice for --gpus=1
    ],
)
def test_what_a_job_may_be_given_for_one_gpu(name, mig, is_):
    assert gpu_models.rented(catalog.instance_type(name), [Mig(profiles=mig)] if mig else None) == is_


PROD = Path(__file__).parents[3] / "stacks/Pulumi.prod.yaml"  # H100s at home; pools p5 and, much cheaper, p4d on spot


def test_the_policy_is_told_of_both_sides():
    document = of_stack.document(PROD)
    pools = {pool.name: policy_view.declared_pool(pool, document) for pool in document.pools}
    assert pools["p4d"].gpu == NodeGpu("A100 SXM4 40GB", 40, True) and not pools["p4d"].untyped
    assert pools["p5"].gpu in {policy_view.kind(host.gpu) for host in document.hosts if host.gpu}
    before = document.model_copy(update={"burst": document.burst.model_copy(update={"untyped_jobs_may_use": None})})
    assert policy_view.declared_pool(document.pools[0], before).gpu is None  # a document of before: as before


def test_run_times_are_counted_by_the_declared_speed():
    """An A100 that takes twice as long: so do the lease, the money, and the hours that are said."""
    declared = declared_site.declared(PROD)
    trace = Trace(np.array([0.0, 3600.0]), np.array([360000.0, 7200.0]), np.array([8, 8]))
    trace = replace(trace, limit_s=np.array([360000.0, 9000.0]))
    declared = replace(declared, home=replace(declared.home, nodes=1), policy=Policy("home", 3600.0))
    took, usd, said = {}, {}, {}
    for speed in (None, 1.0, 0.5):
        pools = (replace(declared.cloud.pools[1], relative_speed=speed, untyped=True, interruptions_per_hour={}),)
        its = replace(declared, cloud=replace(declared.cloud, pools=pools))
        played = play(trace, its.home, its.policy, its.cloud)
        took[speed], usd[speed] = played.end_s[1] - played.start_s[1], played.total_usd
        said[speed] = simulation_report.gather(trace, its, played)
    assert took == {None: 7200, 1.0: 7200, 0.5: 14400} and usd[None] == usd[1.0] < usd[0.5]
    assert said[0.5]["rented_gpu_hours"] == 2 * said[1.0]["rented_gpu_hours"] == 32
    assert [each["speed"]["unknown"] for each in said.values()] == [["p4d"], [], []]
    assert [each["speed"]["past_limit"] for each in said.values()] == [0, 0, 1]


def test_a_cheap_pool_that_is_slow_is_dear():
    cheap, fast = (
        pool("g6e", usd_per_hour={"on-demand": 30.0, "spot": None}, markets=("on-demand",)),
        pool("p5", markets=("on-demand",)),
    )
    assert [launch.pool for launch in decide(snapshot([*BUSY, job()], pools=[cheap, fast]), POLICY).launches] == ["g6e"]
    slow = replace(cheap, relative_speed=0.5)
    assert [launch.pool for launch in decide(snapshot([*BUSY, job()], pools=[slow, fast]), POLICY).launches] == ["p5"]


def test_a_simulation_rents_what_the_controller_would():
    declared = declared_site.declared(PROD)
    trace = Trace(np.array([0.0, 3600.0]), np.array([360000.0, 7200.0]), np.array([8, 8]))

    def rented_from(pools):
        home, cloud = replace(declared.home, nodes=1), replace(declared.cloud, pools=pools)
        return play(trace, home, Policy("home", 3600.0), cloud).pool[1]

    assert rented_from(declared.cloud.pools) == "p5"
    assert rented_from(tuple(replace(pool, untyped=True) for pool in declared.cloud.pools)) == "p4d"
