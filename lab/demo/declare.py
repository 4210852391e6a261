"""Steps 1 and 2: the world is set up, and the declaration becomes a cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from ironburst.adapters.pulumi import Pulumi, PulumiError
from lab.demo.aws import AWS
from lab.demo.cloud import DemoCloud
from lab.demo.inside import Boxed, Inside
from lab.site import Site
from lab.system import CHECKOUT, LabError, wait_for

Say = Callable[[str], None]


def start_world(site: Site, say: Say, tied: bool = True, cloud: DemoCloud = AWS) -> Inside:
    """Images, box, bare-metal hosts, BMCs, the cloud; then what an operator prepares once in an account. `tied`: all
    of it dies with this process.
    """
    site.prepare()
    say("base image and package repositories are in the cache")
    site.up(tied=tied)
    inside = Inside(site, cloud)
    say(f"head, dgx01 and dgx02 answer by ssh (lab {site.prefix!r})")
    inside.spawn([sys.executable, "-m", "lab.bmc", "--prefix", site.prefix], "bmc")
    prepared = inside.cloud.start(inside)
    log = site.log("bmc")
    wait_for(lambda: "ready" in log.read_text(), 30, f"the BMCs (see {log})")
    say(f"three Redfish BMCs and {prepared}")
    return inside


def declare(inside: Boxed, engine: Path, say: Say) -> Pulumi:
    """validate, preview, up, publish: the product's own verbs."""
    inside.run(inside.ironburst("validate", f"stacks/Pulumi.{inside.stack}.yaml"), log="declare")
    say(f"stacks/Pulumi.{inside.stack}.yaml is valid")
    pulumi = Pulumi(CHECKOUT, inside.stack, command=inside.argv(str(engine)), progress=lambda event: _tell(event, say))
    try:
        pulumi.stack_init()
        say(f"preview: {counts(pulumi.preview().changes)}")
        made = counts(pulumi.up().changes)
        say(f"up: {made}; the hall's nodes were verified over Redfish before they were accepted")
    except PulumiError as error:
        raise LabError(str(error)) from None
    outputs = pulumi.outputs()
    inside.cloud.sign_in(inside, outputs)
    document = json.dumps(outputs["cluster"])
    said = inside.run(inside.ironburst("publish", "--to", str(inside.document)), stdin=document, log="declare")
    say(f"document published: {said.strip().split(': ', 1)[-1]}")
    return pulumi


def _tell(event: dict, say: Say) -> None:
    """What money the declaration can cost at worst: the program's own words."""
    message = event.get("diagnosticEvent", {}).get("message", "")
    if "at worst" in message:
        say(message.strip())


def counts(changes: dict[str, int]) -> str:
    return ", ".join(f"{number} {op}" for op, number in changes.items() if number) or "no changes"
