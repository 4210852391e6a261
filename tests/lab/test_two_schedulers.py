"""One controller over both schedulers of a site, both real: slurmctld on the lab's head, and an API server with its
scheduler and controller manager. The cloud is in memory; what kubelet and a gate would say of a rented node is written
here, and no slurmd of a rented node is there.
"""

import pytest

from ironburst import document
from ironburst.adapters.both import Both
from ironburst.adapters.kubernetes import Access, Client, Kubernetes
from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.controller import records
from ironburst.controller.ledger import Ledger
from ironburst.controller.tick import Controller
from ironburst.wiring import schedulers
from lab.kubernetes.nodes import NodeSpec
from lab.system import wait_for
from tests import planes
from tests.adapters.kubernetes.test_both_live import LIMIT_S, ROOM, RealClock, job, node_of, passes_its_gate
from tests.fakes import FakeCloud
from tests.fakes.both import CLUSTER
from tests.lab.test_shares import alice

pytestmark = [pytest.mark.lab, pytest.mark.slow, planes.BUILT]


class Rented:
    """What the programs on rented nodes would see of themselves."""

    down, cloud = False, None

    def show(self, node):
        return f"NodeName={node} State=IDLE"

    def steps(self, _):
        return False


@pytest.fixture
def plane():
    with planes.running("two") as plane:
        plane.add_node(NodeSpec("kube1", labels={"ironburst.io/site": "home"}, allocatable=ROOM))
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ironburst-system"}}
        plane.api().call("POST", "/api/v1/namespaces", namespace)
        yield plane


@pytest.fixture
def declared(inside, converged):
    """The lab's document, with the cluster beside its Slurm: pool p5 is Slurm's, g5 the cluster's."""
    raw = document.read(inside.document).model_dump(mode="json")
    (p5,) = raw["pools"]
    p5 |= {"boot_s": 600, "max_run_s": 14_400, "scheduler": "slurm"}
    more = {"name": "g5", "scheduler": "kubernetes", "partition": "burst-g5", "nodes": ["g5-1", "g5-2"]}
    hosts = [host | {"scheduler": "slurm"} for host in raw["hosts"]]
    soon = raw["burst"] | {"wait_target": raw["burst"]["wait_target"] | {"mean_h": 1e-6}}
    both = {"other_schedulers": [CLUSTER], "pools": [p5, p5 | more], "hosts": hosts, "burst": soon}
    return document.parse(raw | both)


@pytest.fixture
def head(site, converged):
    head = site.host("head")
    yield head
    head.ssh("systemctl start slurmctld; scancel -u alice")
    wait_for(lambda: not head.ssh("squeue -h", check=False).stdout.strip(), LIMIT_S, "an empty queue", pause=0.5)
    head.ssh("scontrol update nodename=p5-1 state=power_down_force reason=test", check=False)


@pytest.fixture
def world(plane, declared, head, inside, tmp_path):
    """(controller, both, cloud, ledger)"""
    slurm = Slurm(inside.argv(*inside.head_prefix()))
    cluster = Kubernetes(Client(Access(plane.layout().kubeconfig("admin"))), schedulers.site_of(declared), deliver=str)
    nodes = {node: pool.scheduler for pool in declared.pools for node in pool.nodes}
    both, clock = Both({"slurm": slurm, "kubernetes": cluster}, nodes, {}), RealClock()
    cloud, ledger = FakeCloud(clock, Rented()), Ledger(tmp_path / "ledger.sqlite")
    cloud.images |= {pool.image: "ami-2" for pool in declared.pools}
    yield Controller(both, cloud, ledger, clock), both, cloud, ledger
    cluster.close()


def submit(head, nodes):
    """Whole nodes for two hours; its number."""
    return alice(head, f"sbatch --parsable -N {nodes} --gres=gpu:8 -c 1 --time=120 --wrap 'sleep 7000'")


def state_of(head, number):
    return head.ssh(f"squeue -h -j {number} -o %T", check=False).stdout.strip()


def test_one_controller_rents_for_both_and_goes_on_while_slurmctld_is_away(plane, declared, head, world):
    controller, both, cloud, ledger = world
    api = plane.api()
    job(api, "first", 7200)
    wait_for(lambda: node_of(api, "first") == "kube1", LIMIT_S, "a pod at home")
    first = submit(head, 2)
    wait_for(lambda: state_of(head, first) == "RUNNING", LIMIT_S, "a job at home", pause=0.5)
    mine = submit(head, 1)
    job(api, "train", 3600)

    def ticked(condition):
        controller.tick(declared)
        return condition()

    def states():
        return {lease.node: lease.state for lease in ledger.leases()}

    wanted = {"p5-1": records.LAUNCHED, "g5-1": records.LAUNCHED}
    wait_for(lambda: ticked(lambda: states() == wanted), LIMIT_S, "one node for each")
    assert both.observe().silent == ()
    spent = sum(lease.usd_per_hour for lease in ledger.leases())
    assert spent == pytest.approx(2 * ledger.leases()[0].usd_per_hour) and len(cloud.alive()) == 2

    head.ssh("systemctl stop slurmctld")
    wait_for(lambda: ticked(lambda: both.observe().silent == ("slurm",)), LIMIT_S, "Slurm is missed")
    plane.add_node(
        NodeSpec("g5-1", allocatable=ROOM, taints=["ironburst.io/not-ready=:NoSchedule"], devices_after_s=0.2)
    )
    wait_for(lambda: passes_its_gate(api, "g5-1"), LIMIT_S, "the gate's word")
    wait_for(lambda: ticked(lambda: node_of(api, "train") == "g5-1"), LIMIT_S, "the pod on its rented node")
    assert states() == {"p5-1": records.LAUNCHED, "g5-1": records.READY} and len(cloud.alive()) == 2
    assert any("Slurm gives no answer" in event.text for event in ledger.events())

    head.ssh("systemctl start slurmctld")
    wait_for(lambda: ticked(lambda: not both.observe().silent), LIMIT_S, "slurmctld answers again")
    seen = {each.id: each for each in both.observe().jobs}
    assert seen[int(first)].state == "RUNNING" and seen[int(mine)].state == "PENDING"
    assert states() == {"p5-1": records.LAUNCHED, "g5-1": records.READY} and len(cloud.alive()) == 2
