"""A job may save for what the shortest notice of its spot nodes' clouds leaves: 120 s at AWS (EC2 User Guide, "Spot
Instance interruption notices") and at Google, where it is asked for ("Create and use Spot VMs"), 30 s in Azure
("Scheduled Events for Linux VMs").
"""

from datetime import UTC, datetime

import pytest

from ironburst.config.checks import check
from ironburst.config.load import from_value, read_value
from ironburst.document.build_scheduler import scheduler
from tests import azure_stack, google_stack

AWS = read_value(google_stack.STACK)["cloud"]
CLOUDS = {"aws": AWS, "google": google_stack.cloud(), "azure": azure_stack.cloud()}
NOW = datetime(2026, 11, 28, tzinfo=UTC)


def declared(clouds, market="spot", tick="10s", **scheduler):
    """A stack with one pool in each of those clouds."""
    value = read_value(google_stack.STACK)
    each = [CLOUDS[name] | {"pools": [CLOUDS[name]["pools"][0] | {"markets": [market]}]} for name in clouds]
    value |= {"cloud": each[0], "other_clouds": each[1:], "burst": value["burst"] | {"tick": tick}}
    return from_value(value | {"scheduler": value["scheduler"] | {"kill_wait": None} | scheduler})


SHORTEST = [
    (["aws"], "10s", 90, 100),
    (["aws"], "30s", 80, 80),
    (["google"], "10s", 90, 100),
    (["azure"], "10s", 30, 30),
    (["aws", "google"], "10s", 90, 100),
    (["google", "azure"], "10s", 30, 30),
    (["aws", "google", "azure"], "10s", 30, 30),
]


@pytest.mark.parametrize(("clouds", "tick", "usual_s", "most_s"), SHORTEST)
def test_the_shortest_notice_of_a_stacks_spot_pools_counts(clouds, tick, usual_s, most_s):
    config = declared(clouds, tick=tick)
    assert scheduler(config, config.scheduler, [], None).kill_wait_s == usual_s
    assert of_kill_wait(declared(clouds, tick=tick, kill_wait=f"{most_s}s")) == []
    (found,) = of_kill_wait(declared(clouds, tick=tick, kill_wait=f"{most_s + 1}s"))
    assert found.endswith(f"write {most_s}s or less") and f"notice of {30 if 'azure' in clouds else 120}s" in found


@pytest.mark.parametrize("clouds", [["aws"], ["azure"], ["google", "azure"]])
def test_who_rents_on_demand_alone_is_bound_by_no_notice(clouds):
    config = declared(clouds, "on-demand", tick="100s")
    assert scheduler(config, config.scheduler, [], None).kill_wait_s == 90
    assert of_kill_wait(declared(clouds, "on-demand", kill_wait="110s")) == []
    (found,) = of_kill_wait(declared(clouds, "on-demand", kill_wait="111s"))
    assert "a node that is given up waits for its jobs" in found and "notice" not in found


def test_the_spot_pool_of_another_scheduler_doesnt_count():
    """Pods of Kubernetes have a grace period of their own."""
    config = declared(["aws", "azure"])
    other = config.other_clouds[0].pools[0].model_copy(update={"scheduler": "kubernetes"})
    there = config.other_clouds[0].model_copy(update={"pools": [other]})
    kubernetes = config.scheduler.model_copy(update={"kind": "kubernetes"})
    both = config.model_copy(update={"other_clouds": [there], "other_schedulers": [kubernetes]})
    assert scheduler(both, both.scheduler, [], None).kill_wait_s == 90


def of_kill_wait(config):
    return [each.message for each in check(config, NOW) if each.path.endswith("scheduler.kill_wait")]
