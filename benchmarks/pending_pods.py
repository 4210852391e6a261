"""How long is it from a cluster's watches to a decision? python -m benchmarks.pending_pods [--pods 5000] [--json]

A real kube-apiserver with kube-scheduler and controller manager; its nodes are stand-ins, each full, and each pending
pod is one that kube-scheduler has called unschedulable. A process of its own then reads the cluster as the controller
does and decides, some times over; nothing changes in between. Told are the median of a round, how long the first one
takes (it lists everything), the memory of that process at its most, and how many lists the API server was asked for
in all rounds but the first.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.decide import POLICY
from ironburst.adapters.kubernetes import Access, Client, Kubernetes, KubernetesSite
from ironburst.adapters.kubernetes import KubernetesPool as KubePool
from ironburst.adapters.kubernetes.client import call_of
from ironburst.burst import Budget, Pool, Resources, Snapshot, decide
from lab.kubernetes import binaries
from lab.kubernetes.commands import Options
from lab.kubernetes.control_plane import ControlPlane
from lab.kubernetes.nodes import NodeSpec
from lab.system import LabError, wait_for

ROUNDS, GPUS, RENTABLE = 7, 8, 64
GRACE_S = 600  # no node goes away here, and a thousand of them needn't say so each second
LIMIT_S = 900.0
PODS, PENDING = "/api/v1/namespaces/default/pods", "status.phase=Pending"
EACH = Resources(GPUS, 192, 2_000_000)
NAMES = tuple(f"p5-{n}" for n in range(RENTABLE))
Json = dict[str, Any]


def pod(name: str, node: str = "") -> Json:
    """One that asks for a whole node, and is on this one, if there is one."""
    asks = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": str(GPUS)}
    spec: Json = {"activeDeadlineSeconds": 7200, "restartPolicy": "Never"}
    spec["containers"] = [{"name": "c", "image": "x", "resources": {"requests": asks, "limits": asks}}]
    spec |= {"nodeName": node} if node else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def fill(plane: ControlPlane, pods: int, nodes: int) -> None:
    """Until all nodes are full and kube-scheduler has no room for any of `pods`. Raises LabError."""
    api = plane.api()
    room = {"cpu": "192", "memory": "2000Gi", "pods": "110", "nvidia.com/gpu": str(GPUS)}
    names = [f"gpu{n:04}" for n in range(nodes)]

    def home(name: str) -> None:
        plane.add_node(NodeSpec(name, labels={"ironburst.io/site": "home"}, allocatable=room))
        api.call("POST", PODS, pod(f"on-{name}", name))

    with ThreadPoolExecutor(8) as calls:
        list(calls.map(home, names))
        list(calls.map(lambda n: api.call("POST", PODS, pod(f"waits-{n}")), range(pods)))

    def said() -> bool:
        waiting = [each for page in pages(api) for each in page if each["metadata"]["name"].startswith("waits-")]
        return len(waiting) == pods and all(unschedulable(each) for each in waiting)

    wait_for(said, LIMIT_S, f"{pods} unschedulable pods", pause=5)


def pages(api: Any) -> Iterator[list[Json]]:
    """The pending pods, some at a time."""
    more = ""
    while True:
        answer = api.call("GET", f"{PODS}?limit=500&fieldSelector={PENDING}{more}")
        yield answer["items"]
        if not (token := answer["metadata"].get("continue")):
            return
        more = f"&continue={token}"


def unschedulable(raw: Json) -> bool:
    """As kube-scheduler says it."""
    return any(each.get("reason") == "Unschedulable" for each in raw["status"].get("conditions") or ())


class Counted(Client):
    """Counts the lists."""

    lists = 0

    def get(self, path: str, query: Any = None) -> Any:
        """The same."""
        self.lists += call_of("GET", path).verb == "list"
        return super().get(path, query)


def observed(kubeconfig: Path) -> Json:
    """In this process: the rounds."""
    client = Counted(Access(kubeconfig))
    cluster = Kubernetes(client, KubernetesSite("lab", (KubePool("burst-p5", NAMES, EACH, "h100"),)), first_s=LIMIT_S)
    pool = Pool(
        name="p5",
        partition="burst-p5",
        nodes=NAMES,
        instance_type="p5.48xlarge",
        each=EACH,
        gpu_type="h100",
        markets=("on-demand",),
        usd_per_hour={"on-demand": 55.04},
        zones=("us-east-1a",),
        boot_s=300.0,
        idle_s=600.0,
        max_run_s=86_400.0,
    )
    took: list[float] = []
    lists, pending, launches = 0, 0, 0
    try:
        for number in range(ROUNDS + 1):
            began = time.monotonic()
            seen, now = cluster.observe(), cluster.now()
            budget = Budget(1_000_000.0, 0.0, 0.0, now + 20 * 86_400)
            made = decide(Snapshot(now, tuple(seen.jobs), tuple(seen.nodes), (pool,), budget=budget), POLICY)
            took.append(time.monotonic() - began)
            pending, launches = sum(job.state == "PENDING" for job in seen.jobs), len(made.launches)
            if number == 0:
                lists = client.lists
    finally:
        cluster.close()
    return {
        "pending": pending,
        "launches": launches,
        "first_s": round(took[0], 2),
        "seconds": round(statistics.median(took[1:]), 3),
        "memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "lists": client.lists - lists,
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--observe", type=Path, metavar="KUBECONFIG", help="only look at this cluster, and decide")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.observe:
        print(json.dumps(observed(arguments.observe)))
        return 0
    if not binaries.built():
        print(json.dumps({"skipped": "the lab's Kubernetes isn't built: make kubernetes"}))
        return 0
    plane = ControlPlane(f"bench-pods-{os.getpid()}")
    try:
        plane.up(Options(grace_s=GRACE_S), tied=True)
        fill(plane, arguments.pods, arguments.nodes)
        looks = [sys.executable, "-m", "benchmarks.pending_pods", "--observe", str(plane.layout().kubeconfig("admin"))]
        result = json.loads(subprocess.run(looks, stdout=subprocess.PIPE, check=True).stdout)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        plane.down()
    result = {"pods": arguments.pods, "nodes": arguments.nodes, **result}
    print(json.dumps(result) if arguments.json else "\n".join(f"{key:10} {value}" for key, value in result.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
