"""Whose lines somebody asks for, by a name."""

from pathlib import Path

import pytest

from ironburst.burst import Launch
from ironburst.controller.ledger import Ledger
from ironburst.controller.log_query import AROUND_S, NODE_S, queries
from ironburst.controller.records import RunRow
from ironburst.document import of_stack
from ironburst.ports.logs import LogQuery
from ironburst.system.bad_input import BadInput
from tests.fakes.world import World

NOW_S = 1_000_000.0
DOCUMENT = of_stack.document(Path(__file__).parents[3] / "stacks/Pulumi.lab.yaml")


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "ledger.sqlite")
    launch = Launch("p5", ("a",), "spot", ("p5-1",), (2,), 20.0, 9e9, 50.0, "late")
    made.add_launch("l1", launch, "p5.48xlarge", "ami", boot_s=600.0, serial=1, now_s=500_000.0)
    yield made
    made.close()


def test_a_node_of_the_document_also_a_rented_one(ledger):
    assert queries("dgx01", DOCUMENT, None, NOW_S, None) == [LogQuery(("dgx01",), NOW_S - NODE_S, NOW_S)]
    assert queries("p5-1", DOCUMENT, ledger, NOW_S, 60.0) == [LogQuery(("p5-1",), NOW_S - 60, NOW_S)]


def test_a_lease_for_as_long_as_it_was(ledger):
    (lease,) = ledger.leases()
    assert queries(lease.id, DOCUMENT, ledger, NOW_S, None) == [LogQuery(("p5-1",), 500_000.0, NOW_S, lease.id)]
    ledger.update([lease], instance_id="i-0abc", to_s=600_000.0)
    (found,) = queries("i-0abc", DOCUMENT, ledger, NOW_S, None)
    assert found == LogQuery(("p5-1",), 500_000.0, 600_000.0 + AROUND_S, lease.id), "the last lines come late"
    assert queries("p5-1", None, ledger, NOW_S, None)[0].lease == "", "a name has had several leases"


def test_a_job_by_the_nodes_and_times_of_its_runs(ledger):
    for start_s, end_s, nodes in ((900_000.0, 901_000.0, "dgx01,dgx02"), (902_000.0, None, "p5-1")):
        ledger.add_run(RunRow(7, start_s, 7, "7", "ann", "physics", nodes, 16, 0, 3600.0, end_s=end_s))
    assert queries("7", DOCUMENT, ledger, NOW_S, None) == [
        LogQuery(("dgx01", "dgx02"), 900_000.0 - AROUND_S, 901_000.0 + AROUND_S),
        LogQuery(("p5-1",), 902_000.0 - AROUND_S, NOW_S),
    ]
    assert queries("7", DOCUMENT, ledger, NOW_S, NOW_S - 903_000.0) == [LogQuery(("p5-1",), 903_000.0, NOW_S)]


def test_a_job_that_nobody_measured_by_where_it_ran_last(tmp_path):
    world = World(tmp_path, home=1)
    job = world.slurm.submit(runs_s=100.0, limit_s=600.0)
    waits = world.slurm.submit(runs_s=100.0, limit_s=600.0)
    world.tick()
    began = world.slurm.jobs[job].job.start_s
    (found,) = queries(str(job), world.document, world.ledger, world.clock.now(), None)
    assert found == LogQuery(("dgx01",), began - AROUND_S, world.clock.now())
    with pytest.raises(BadInput, match=f"job {waits} hasn't run"):
        queries(str(waits), world.document, world.ledger, world.clock.now(), None)


@pytest.mark.parametrize("asked", ["4711", "dgx99", "12_[3]"])
def test_what_nobody_knows(ledger, asked):
    with pytest.raises(BadInput):
        queries(asked, DOCUMENT, ledger, NOW_S, None)
    with pytest.raises(BadInput, match="no node of the document"):
        queries(asked, DOCUMENT, None, NOW_S, None)
