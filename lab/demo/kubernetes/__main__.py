"""`python -m lab.demo.kubernetes`: see README.md.

Exit codes: 0 done and nothing left, 1 a step failed or something is left, 2 this machine can't, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from ironburst import document
from ironburst.adapters.pulumi import Pulumi
from ironburst.controller.ledger import Ledger
from lab.demo import declare, explain, figures, giveback, kept, summary
from lab.demo import refusal as refused
from lab.demo.frame import Stage, play
from lab.demo.history import History
from lab.demo.inside import Boxed
from lab.demo.kubernetes import burst, collect, refusal, world
from lab.demo.kubernetes.pods import COMPRESSION
from lab.demo.kubernetes.trials import Wanted
from lab.demo.steps import Steps
from lab.hosts.box import Box
from lab.hosts.check import check
from lab.kubernetes import binaries
from lab.kubernetes.control_plane import ControlPlane
from lab.pulumi import binary
from lab.system import LabError

TITLE = "ironburst: the main job on the lab, with Kubernetes"


def demo(prefix: str, wanted: Wanted) -> int:
    """The whole story. The lab is down when this returns, whatever happened; its report stays."""
    try:
        engine = binary.path()
        binary.kubernetes_plugin()
        box = Box(prefix)
        check(box.root)
        kept.refuse_second(box)
        for name in binaries.build(box.root):
            print(f"building {name} (once, minutes)", flush=True)
    except LabError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2

    def end() -> None:
        box.down()
        ControlPlane(prefix).down()

    stage = Stage(box, end, [binaries.folder(box.root)], TITLE)
    result = summary.Summary(engine=binary.name(engine), scheduler="Kubernetes")
    return play(stage, result, partial(tell, box, engine, wanted))


def tell(box: Box, engine: Path, wanted: Wanted, steps: Steps, result: summary.Summary) -> History:
    """The steps. Raises LabError at the first that fails."""
    with steps.step("set up", "Set up: the control plane, home's nodes, BMCs, the cloud"):
        inside = world.start(box, steps.say)
    with box.network(), contextlib.closing(world.Cluster(box.prefix)) as cluster:
        with steps.step("declare", "Declare: validate, preview and up of the Pulumi program"):
            pulumi = declare.declare(inside, engine, steps.say)
        with steps.step("burst", "Burst: jobs of a real trace as pods"):
            trials = wanted.trials(inside, steps.say)
            submitted, faults = burst.run(inside, cluster, steps.say, trials)
        with steps.step("explain", "Explain: where the jobs ran, and why money was spent"):
            published, ledger = document.read(inside.document), Ledger(inside.ledger, read_only=True)
            facts = collect.facts(published, result.engine)
            history = collect.history(cluster, ledger, published, submitted, facts)
            result.faults = collect.faults(history, faults, ledger, trials)
            result.figures = figures.reaction(ledger, history, submitted.began, published.burst.tick_s)
            result.figures |= collect.coming(ledger, submitted.began) | collect.gangs(history)
            explain.explain(inside, history, steps.say)
        with steps.step("refuse", "Refuse: a gang that no zone has capacity for, while home is full"):
            result.refused = refusal.run(inside, cluster, ledger, steps.say)
            history = replace(history, facts=history.facts | {"Refused afterwards": result.refused.text()})
        with steps.step("give back", "Give back and destroy: no lease, no node, no resource"):
            result.leftovers = give_back(inside, cluster, pulumi, ledger, steps)
    return history


def give_back(inside: Boxed, cluster: world.Cluster, pulumi: Pulumi, ledger: Ledger, steps: Steps) -> dict[str, int]:
    """What the cloud and the cluster still hold after the end, by kind."""
    left = giveback.give_back(inside, pulumi, ledger, steps.say)
    in_cluster = cluster.leftovers()
    leased = {lease.instance_id for lease in ledger.leases(open_only=False)}
    left["cloud instances that no lease paid for"] = len(refused.instances(inside) - leased)
    steps.say("nothing is left in the cluster" if not any(in_cluster.values()) else f"left in it: {in_cluster}")
    return left | {f"cluster {kind}": len(names) for kind, names in in_cluster.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m lab.demo.kubernetes",
        description=f"{__doc__} Time is compressed {COMPRESSION} times.",
        epilog="LAB_PREFIX and ENGINE: see `make help`",
    )
    told = "the API server is killed while a rented gang runs, and started again some seconds later"
    parser.add_argument("--api-dies", action="store_true", help=told)
    told = "the controller meets 429, conflicts, watches that break off and 410; and a node isn't ready for a while"
    parser.add_argument("--difficult", action="store_true", help=told)
    given = parser.parse_args()
    wanted = Wanted(given.api_dies, given.difficult)
    sys.exit(demo(os.environ.get("LAB_PREFIX") or "lab", wanted))
