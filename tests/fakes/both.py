"""A site with two schedulers in memory. The cluster is played by a second FakeSlurm with pods' ids and partitions of
its own: what the controller does with two sides is tried here, Kubernetes' own ways in tests/adapters/kubernetes.
"""

from __future__ import annotations

import itertools

from ironburst.adapters.both import Both
from ironburst.document import parse
from ironburst.ports import SchedulerError
from tests.fakes.clock import FakeClock
from tests.fakes.cloud import FakeCloud
from tests.fakes.site import document
from tests.fakes.slurm import FakeNode, FakeSlurm
from tests.fakes.world import World

FIRST_POD = 2**40
CLUSTER = {
    "kind": "kubernetes",
    "home_partition": "pods",
    "shared_filesystem": "",
    "api_server": "https://10.0.0.5:6443",
    "ca": "CA",
    "kubeconfig": "file:/etc/ironburst/kubeconfig",
    "join_token": "aws-secretsmanager:ironburst/lab/join-token",
    "cluster_dns": "10.96.0.10",
    "namespace": "ironburst-system",
}


def both_document(**burst):
    """Pool p5 is Slurm's, g5 the cluster's."""
    raw = document(**burst).model_dump(mode="json")
    (p5,) = raw["pools"]
    g5 = p5 | {
        "name": "g5",
        "scheduler": "kubernetes",
        "partition": "burst-g5",
        "nodes": ["g5-1", "g5-2", "g5-3"],
        "image": "/ironburst/lab/g5/image",
    }
    return parse(raw | {"other_schedulers": [CLUSTER], "pools": [p5 | {"scheduler": "slurm"}, g5]})


class Switched:
    """A port that can be out of reach: then each call says so."""

    def __init__(self, port, name):
        self._port, self._name, self.off, self.asked = port, name, False, 0

    def __getattr__(self, method):
        def call(*given, **more):
            self.asked += 1
            if self.off:
                raise SchedulerError(f"{self._name} is away")
            return getattr(self._port, method)(*given, **more)

        return call


class _Shown:
    """Both, as the programs on rented nodes ask them."""

    def __init__(self, sides):
        self._sides, self.down, self.cloud = sides, False, None

    def _of(self, node):
        return next(side for side in self._sides if node in side.nodes)

    def show(self, node):
        return self._of(node).show(node)

    def steps(self, node):
        return self._of(node).steps(node)


class BothWorld(World):
    """`slurm` and `kube` are the sides, `ways` how they are reached."""

    def __init__(self, tmp_path, **burst):
        self.path, self.document = tmp_path / "ledger.sqlite", both_document(**burst)
        self.clock = FakeClock()
        self.slurm = FakeSlurm(self.clock)
        self.kube = FakeSlurm(self.clock, home=0, burst={"burst-g5": ["g5-1", "g5-2", "g5-3"]})
        self.kube.nodes |= {name: FakeNode(name, ("pods",), {"IDLE"}) for name in ("kube1", "kube2")}
        self.kube.ids = itertools.count(FIRST_POD)
        self.cloud = FakeCloud(self.clock, _Shown([self.slurm, self.kube]))
        self.slurm.cloud = self.kube.cloud = self.cloud
        self.cloud.images["/ironburst/lab/g5/image"] = "ami-2"
        self.ways = {"slurm": Switched(self.slurm, "slurmctld"), "kubernetes": Switched(self.kube, "the API server")}
        self.start()

    def start(self, **breaking):
        super().start(**breaking)
        nodes = {node: pool.scheduler for pool in self.document.pools for node in pool.nodes}
        self.controller.scheduler = self.both = Both(self.ways, nodes, {})

    def submit_pod(self, **more):
        return self.kube.submit(partitions=("pods",), **more)

    def fill(self, limit_s=7200.0):
        """Both homes."""
        self.fill_home(limit_s)
        self.submit_pod(nodes=2, limit_s=limit_s, runs_s=limit_s)

    def of(self, kind):
        """Nodes with an open lease, of one side."""
        side = self.slurm if kind == "slurm" else self.kube
        return sorted(lease.node for lease in self.ledger.leases() if lease.node in side.nodes)

    def shown(self, id):
        """Its state."""
        return (self.kube if id >= FIRST_POD else self.slurm).state(id)
