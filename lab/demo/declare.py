"""Steps 1 and 2: the world is set up, and the declaration becomes a cluster."""

from __future__ import annotations

import base64
import json
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from ironburst.adapters.pulumi import Pulumi, PulumiError
from lab.demo import rights
from lab.demo.inside import Boxed, Inside
from lab.hosts import rootfs
from lab.site import Site
from lab.system import CHECKOUT, LabError, wait_for

FIXED_IMAGE = "ami-0ba5e0000000000a1"  # of the fixed node in stacks/Pulumi.lab.yaml
MUNGE_SECRET = "ironburst/lab/munge-key"
CREATE_SECRET = (
    "import boto3, sys; client = boto3.client('secretsmanager');"
    "client.create_secret(Name=sys.argv[1], SecretString=sys.stdin.read())"
)
ALLOW_SPOT = "import boto3; boto3.client('iam').create_service_linked_role(AWSServiceName='spot.amazonaws.com')"
KEY_PAIR = "lab"  # ssh.key_name of the stack: what fixed nodes let in
IMPORT_KEY = (
    "import boto3, sys; client = boto3.client('ec2');"
    "client.import_key_pair(KeyName=sys.argv[1], PublicKeyMaterial=sys.stdin.buffer.read())"
)
Say = Callable[[str], None]


def control(inside: Boxed, verb: str, path: str, **body: object) -> object:
    """One call of the lab cloud's switchboard (capacity, faults, interruptions, images, leftovers)."""
    arguments = [verb, path, *([json.dumps(body)] if verb == "POST" else [])]
    return json.loads(inside.run([sys.executable, "-m", "lab.aws.client", *arguments]))


def start_world(site: Site, say: Say, tied: bool = True) -> Inside:
    """Images, box, bare-metal hosts, BMCs, the cloud; then what an operator prepares once in an account. `tied`: all
    of it dies with this process.
    """
    site.prepare()
    say("base image and package repositories are in the cache")
    site.up(tied=tied)
    inside = Inside(site)
    say(f"head, dgx01 and dgx02 answer by ssh (lab {site.prefix!r})")
    inside.spawn([sys.executable, "-m", "lab.bmc", "--prefix", site.prefix], "bmc")
    inside.spawn([sys.executable, "-m", "lab.aws", "--prefix", site.prefix], "aws")
    inside.run([sys.executable, "-c", "from lab.aws.client import wait_ready; wait_ready(60)"])
    log = site.log("bmc")
    wait_for(lambda: "ready" in log.read_text(), 30, f"the BMCs (see {log})")
    inside.run([sys.executable, "-c", ALLOW_SPOT])
    control(inside, "POST", "/lab/images", image_id=FIXED_IMAGE, name="debian-13")
    key = base64.b64encode(secrets.token_bytes(96)).decode()
    inside.run([sys.executable, "-c", CREATE_SECRET, MUNGE_SECRET], stdin=key)
    public = rootfs.ssh_key(site.box.root).with_suffix(".pub").read_text()
    inside.run([sys.executable, "-c", IMPORT_KEY, KEY_PAIR], stdin=public)
    say("three Redfish BMCs and the AWS API (moto, a stand-in) answer; the munge key lies in Secrets Manager")
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
    rights.prepare(inside, outputs["controller_role_arn"])
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
