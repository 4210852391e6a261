"""`python -m lab.demo`: see README.md.

Exit codes: 0 done and nothing left, 1 a step failed or something is left, 2 this machine can't, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from ironburst import document
from ironburst.controller.ledger import Ledger
from lab.demo import (
    burst,
    collect,
    converge,
    declare,
    explain,
    figures,
    giveback,
    kept,
    refusal,
    summary,
    trace,
    training,
    watch,
)
from lab.demo.all import ALL
from lab.demo.aws import AWS
from lab.demo.azure import AZURE
from lab.demo.cloud import DemoCloud
from lab.demo.frame import Stage, play
from lab.demo.google import GOOGLE
from lab.demo.history import History
from lab.demo.steps import Steps
from lab.hosts.check import check
from lab.pulumi import binary
from lab.site import Site
from lab.system import LabError

TITLE = "ironburst: the main job on the lab"


CLOUDS: dict[str, DemoCloud] = {"aws": AWS, "google": GOOGLE, "azure": AZURE, "all": ALL}


def demo(prefix: str, keep: bool = False, cloud: DemoCloud = AWS) -> int:
    """The whole story. The lab is down when this returns, whatever happened; its report stays. `keep`: the story
    without its end, after which the lab stays up.
    """
    try:
        engine = binary.path()
        site = Site(prefix)
        check(site.box.root)
        kept.refuse_second(site.box)
    except LabError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    stage = Stage(site.box, site.down, figures.caches(site.box.root), TITLE, keep)
    code = play(stage, summary.Summary(engine=binary.name(engine), kept=keep), partial(tell, site, engine, cloud))
    if site.box.is_up():
        print(kept.next_steps(prefix))
    return code


def tell(site: Site, engine: Path, cloud: DemoCloud, steps: Steps, result: summary.Summary) -> History:
    """The nine steps, of a lab that is kept the first seven. Raises LabError at the first that fails."""
    with steps.step("set up", "Set up: images, hosts, BMCs, the cloud"):
        inside = declare.start_world(site, steps.say, not result.kept, cloud)
    with steps.step("declare", "Declare: validate, preview and up of the Pulumi program"):
        pulumi = declare.declare(inside, engine, steps.say)
    with steps.step("converge", "Converge: Ansible on every host, twice, and the image of rented nodes"):
        result.converge = converge.converge(inside, steps.say)
    with steps.step("burst", f"Burst: {len(trace.jobs())} jobs of a real trace through Slurm"):
        submitted, faults, came_up = burst.run(inside, steps.say)
    with steps.step("explain", "Explain: where the jobs ran, and why money was spent"):
        published = document.read(inside.document)
        head, ledger = burst.Head(inside), Ledger(inside.ledger, read_only=True)
        facts = summary.facts(published, result.engine, trace.COMPRESSION, cloud.stand_in)
        history = collect.history(head, ledger, published, submitted, site.dir / "shared" / "alice", facts)
        result.faults = summary.faults(history, faults)
        result.figures = figures.reaction(ledger, history, submitted.began, published.burst.tick_s)
        if came_up:
            result.figures |= {"boot_to_accepted_s": round(came_up.accepted_s, 1), "boot_path_s": dict(came_up.path)}
        explain.explain(inside, history, steps.say, ["--slurm-prefix", shlex.join(inside.head_prefix())])
    with steps.step("train", "Train: two ranks of PyTorch on two rented nodes, of which the cloud takes one back"):
        broke_s = watch.breaks(inside)
        result.training = training.run(inside, ledger, steps.say)
        history = replace(history, facts=history.facts | {"Trained afterwards": result.training.text()})
    with steps.step("watch", "Watch: what Prometheus scrapes, whom a broken GPU pages, what a job made of its GPUs"):
        result.watched = watch.run(inside, ledger, broke_s, steps.say)
        history = replace(history, facts=history.facts | {"Watched": result.watched.text()})
    if result.kept:
        kept.keep(inside, result.engine)
        return history
    with steps.step("refuse", "Refuse: a gang that no zone has capacity for, while the hall is full"):
        result.refused = refusal.run(inside, ledger, steps.say)
        history = replace(history, facts=history.facts | {"Refused afterwards": result.refused.text()})
    with steps.step("give back", "Give back and destroy: no lease, no resource, no host"):
        result.leftovers = giveback.give_back(inside, pulumi, ledger, steps.say)
    return history


if __name__ == "__main__":
    # what `make demo` gives comes by the environment; --help must not start a demo
    parser = argparse.ArgumentParser(
        prog="python -m lab.demo", description=__doc__, epilog="LAB_PREFIX, ENGINE and CLOUD: see `make help`"
    )
    told = "end before anything is given back, and leave the lab up to play with: docs/tutorial/play.md"
    parser.add_argument("--keep", action="store_true", help=told)
    keep, wanted = parser.parse_args().keep, os.environ.get("CLOUD") or "aws"
    if wanted not in CLOUDS:
        parser.error(f"CLOUD={wanted!r} is not known: {' or '.join(CLOUDS)}")
    if keep and wanted != "aws":
        parser.error("only AWS's lab can be kept: leave CLOUD out, for `ironburst lab` plays with that alone")
    sys.exit(demo(os.environ.get("LAB_PREFIX") or "lab", keep, CLOUDS[wanted]))
