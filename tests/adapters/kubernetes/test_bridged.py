"""slurm-bridge: the controller and its adapters with a Slurm in memory, a stand-in of the API server, and a stand-in
of slurm-bridge that was written from its documents (tests/fakes/bridge.py). No real slurm-bridge was ever asked.
"""

import itertools

import pytest

from ironburst.adapters.bridged import Bridged
from ironburst.adapters.kubernetes import BridgedNodes
from ironburst.adapters.kubernetes.bridged import MANAGED
from ironburst.document import parse
from ironburst.kubernetes_rights import BRIDGE, TOKENS, namespaced
from ironburst.wiring.schedulers import site_of
from tests.fakes import document
from tests.fakes.bridge import NODES, BridgedFakeSlurm, FakeBridge
from tests.fakes.kube_api import Refusal
from tests.fakes.world import World

BRIDGED = {
    "api_server": "https://10.0.0.5:6443",
    "ca": "-----BEGIN CERTIFICATE-----",
    "kubeconfig": "file:/etc/ironburst/kubeconfig",
    "join_token": "aws-secretsmanager:ironburst/lab/join-token",
    "cluster_dns": "10.96.0.10",
    "cluster_domain": "cluster.local",
    "namespace": "ironburst-system",
    "scheduler_name": "slurm-bridge-scheduler",
}


def bridged_document(**burst):
    raw = document(**burst).model_dump(mode="json")
    return parse(raw | {"scheduler": raw["scheduler"] | {"bridge": BRIDGED}})


def allowed(verb, group, resource, namespace, name):
    """As what the how-to gives the controller lets it."""
    there = {"ironburst-system": namespaced("ironburst-lab"), "kube-system": TOKENS}
    return any(
        rule.group == group
        and resource in rule.resources
        and verb in rule.verbs
        and (not rule.names or name in rule.names)
        for rule in (*BRIDGE, *there.get(namespace, ()))
    )


class BridgedWorld(World):
    """A site with slurm-bridge."""

    def __init__(self, tmp_path, api, client, home=2, **burst):
        super().__init__(tmp_path, home=home, **burst)
        self.document, self.api, self.tokens = bridged_document(**burst), api, []
        api.allowed = allowed
        self.slurm = BridgedFakeSlurm(self.clock, home=home)
        self.cloud = type(self.cloud)(self.clock, self.slurm)
        self.bridge = FakeBridge(api, self.slurm, self.cloud, self.clock)
        self.cluster = BridgedNodes(client, site_of(self.document), self.tokens.append)
        self.queue = Bridged(self.slurm, self.cluster)
        self.ledger.close() if hasattr(self.ledger, "close") else None
        slurm, self.slurm = self.slurm, self.queue
        self.start()
        self.slurm = slurm

    def tick(self, times=1):
        for _ in range(times):
            self.bridge.step()
            report = super().tick()
        return report

    def node(self, name):
        return self.api.get(NODES, "", name)


@pytest.fixture
def world(tmp_path, api, client):
    return BridgedWorld(tmp_path, api, client, markets=["on-demand"])


def fill(world):
    for name in ("a", "b"):
        world.bridge.pod(name, runs_s=7200.0, limit_s=7200.0)
    world.until(lambda: world.bridge.of("a")[1] == world.bridge.of("b")[1] == "Running", 60.0)


def test_a_pod_that_waits_gets_a_rented_node_of_both_sides_and_gives_it_back(world):
    fill(world)
    world.bridge.pod("train")
    world.until(lambda: world.bridge.of("train")[1] == "Running")
    name = world.bridge.of("train")[0]
    assert name.startswith("p5-") and world.ledger.job("team-a/train").ran_on
    world.until(lambda: world.bridge.of("train")[1] == "Succeeded")
    world.until(lambda: not world.ledger.leases())
    assert world.node(name) is None and not world.cloud.alive()
    assert len(world.tokens) == 1


def test_a_node_is_in_service_only_when_both_sides_have_it(world):
    world.bridge.gate = "False"
    fill(world)
    world.bridge.pod("train")
    world.until(lambda: "launched" in world.states())
    world.until(lambda: any("POWERING_UP" not in node.states and node.address for node in world.slurm.nodes.values()))
    world.pass_by(30.0, 2.0)
    assert world.states() == ["launched"] and world.bridge.of("train")[1] == "Pending"
    world.bridge.gate = "True"
    world.until(lambda: world.bridge.of("train")[1] == "Running", 300.0)


def test_without_its_controllers_no_node_is_opened_to_everybody(world):
    fill(world)
    world.bridge.pod("train")
    world.until(lambda: "launched" in world.states())
    world.bridge.runs = False
    world.until(lambda: any(world.node(f"p5-{n}") for n in (1, 2, 3)))
    world.pass_by(40.0, 2.0)
    (name,) = [f"p5-{n}" for n in (1, 2, 3) if world.node(f"p5-{n}")]
    assert [taint["key"] for taint in world.node(name)["spec"]["taints"]] == ["ironburst.io/not-ready"]
    assert any(MANAGED in text for text in world.queue.observe().unreadable)


@pytest.mark.parametrize("by_lua", [True, False], ids=["with our job_submit.lua", "without"])
def test_what_slurm_bridge_writes_anew_takes_nothing_back(world, by_lua):
    """It writes partitions and fitting nodes at each look; which nodes are excluded stays ours."""
    world.bridge.by_lua = by_lua
    fill(world)
    world.bridge.pod("train", limit_s=200_000.0)  # longer than a rented node may serve
    world.until(lambda: world.bridge.of("train")[2] is not None, 60.0)
    world.tick(3)
    job = int(world.bridge.of("train")[2])
    raw = world.slurm.jobs[job].job
    assert raw.partitions == ("home", "burst-p5") and set(raw.excluded) == {"p5-1", "p5-2", "p5-3"}
    shown = world.queue.observe().job(job)
    assert shown.partitions == ("home",) and shown.excluded == () and shown.name == "team-a/train"


def test_a_gang_gets_all_its_nodes(world):
    fill(world)
    for n in range(2):
        world.bridge.pod(f"gang-{n}", group="gang")
    world.until(lambda: all(world.bridge.of(f"gang-{n}")[1] == "Running" for n in range(2)))
    nodes = {world.bridge.of(f"gang-{n}")[0] for n in range(2)}
    assert len(nodes) == 2 and all(name.startswith("p5-") for name in nodes)
    assert len({world.bridge.of(f"gang-{n}")[2] for n in range(2)}) == 1


def test_pods_without_a_job_in_slurm_are_told(world):
    """More pods together than the cluster has nodes: slurm-bridge makes no job, so Slurm knows nothing of them."""
    for n in range(3):
        world.bridge.pod(f"gang-{n}", group="gang")
    world.tick(3)
    (text,) = world.queue.observe().unreadable
    assert "pods team-a/gang-0, team-a/gang-1, team-a/gang-2 have no job in Slurm yet, so nothing is rented" in text
    assert not world.ledger.leases()


def test_a_node_that_goes_cancels_its_job_and_waits_for_the_pods_grace(world):
    fill(world)
    world.bridge.pod("train", runs_s=3000.0)
    world.until(lambda: world.bridge.of("train")[1] == "Running")
    job = world.bridge.of("train")[2]
    (instance,) = world.cloud.alive()
    world.cloud.interrupt(instance.id)
    world.until(lambda: world.slurm.state(int(job)) == "CANCELLED", 60.0)
    assert any("ends, and is made anew by what made them" in text for text in world.events("trouble"))
    began = world.clock.now()
    while world.bridge.of("train"):
        assert instance.id in {each.id for each in world.cloud.alive()}, "its pod has its grace time"
        world.tick()
    assert world.clock.now() - began >= 56.0
    world.until(lambda: world.bridge.of("train.1") and world.bridge.of("train.1")[1] == "Running")
    world.until(lambda: instance.id not in {each.id for each in world.cloud.alive()}, 300.0)
    assert world.bridge.of("train.1")[2] != job


def test_a_job_that_somebody_cancels_leaves_its_node_with_its_pods(world):
    fill(world)
    world.bridge.pod("train", owner=False, runs_s=3000.0)
    world.until(lambda: world.bridge.of("train")[1] == "Running")
    job = int(world.bridge.of("train")[2])
    world.slurm.cancel([job])
    while world.bridge.of("train"):
        world.tick()
        shown = world.queue.observe().job(job)
        assert (shown.state if shown else "") == ("COMPLETING" if world.bridge.of("train") else "")
        assert all(lease.idle_since_s is None for lease in world.ledger.leases()) or not world.bridge.of("train")
    world.until(lambda: not world.ledger.leases(), 600.0)


def test_while_kubernetes_is_away_slurms_own_jobs_go_on_and_nothing_comes_into_service(world):
    fill(world)
    world.bridge.pod("train")
    world.until(lambda: "launched" in world.states())
    world.api.fail(Refusal(503, "ServiceUnavailable", "away"), times=10**6, when=lambda call: True)
    world.pass_by(60.0, 2.0)
    assert world.states() == ["launched"]
    assert any("Kubernetes gives no answer" in text for text in world.queue.observe().unreadable)
    assert world.bridge.of("a")[1] == "Running"
    world.api.faults.clear()
    world.until(lambda: world.bridge.of("train")[1] == "Running", 600.0)


def test_an_instance_ends_although_kubernetes_is_away_and_its_node_object_goes_later(world):
    fill(world)
    world.bridge.pod("train", runs_s=100.0)
    world.until(lambda: world.bridge.of("train")[1] == "Running")
    name = world.bridge.of("train")[0]
    world.until(lambda: world.bridge.of("train")[1] == "Succeeded")
    world.api.fail(Refusal(503, "ServiceUnavailable", "away"), times=10**6, when=lambda call: True)
    world.until(lambda: not world.cloud.alive(), 600.0)
    assert world.node(name) is not None
    world.api.faults.clear()
    world.until(lambda: world.node(name) is None, 120.0)
    assert {"POWERED_DOWN", "DRAIN"} <= world.slurm.nodes[name].states
    assert world.slurm.opened == [], "it was never without its drain"


def test_a_gate_that_stops_passing_drains_the_node_in_slurm(world):
    fill(world)
    world.bridge.pod("train", runs_s=3000.0)
    world.until(lambda: world.bridge.of("train")[1] == "Running")
    name = world.bridge.of("train")[0]
    world.bridge.gate = "False"
    world.until(lambda: "DRAIN" in world.slurm.nodes[name].states, 200.0)
    world.pass_by(60.0, 5.0)
    reason = world.slurm.nodes[name].reason
    assert reason.startswith("ironburst: its gate stopped passing") and "DRAIN" in world.slurm.nodes[name].states


@pytest.mark.parametrize("reason", ["slurm-bridge: by hand", "bob: its fan is loud"])
def test_a_persons_drain_stays_as_slurm_bridge_leaves_it(world, reason):
    world.slurm.drain(["dgx01"], reason)
    world.tick(3)
    assert ("DRAIN" in world.slurm.nodes["dgx01"].states) == (not reason.startswith("slurm-bridge:"))


def test_plain_jobs_of_slurm_are_rented_for_as_always(world):
    world.slurm.submit(nodes=2, limit_s=7200.0, runs_s=7200.0)
    job = world.slurm.submit(runs_s=60.0)
    world.until(lambda: world.slurm.state(job) == "COMPLETED")
    assert world.ledger.job(job).ran_on.startswith("p5-")


def test_two_machines_of_one_name_are_not_both_let_in(world):
    fill(world)
    world.bridge.pod("train")
    world.until(lambda: "launched" in world.states())
    (lease,) = world.ledger.leases()
    world.until(lambda: world.node(lease.node) is not None)
    world.bridge._ask(lease.node, "i-other")
    assert any("isn't approved" in text or "is denied" in text for text in itertools.chain(world.queue.admit()))
