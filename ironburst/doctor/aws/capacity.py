"""What renting needs beside rights: EC2's role for spot, declared reservations, the queue of interruptions."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.config.aws.models import AwsGroup, AwsPool
from ironburst.doctor.aws.account import IamQuestion, Reservation
from ironburst.doctor.aws.site import PUBLISH, AwsSite, Reserved, markets_of, reserved
from ironburst.doctor.checks import CheckResult, State, answered, judged
from ironburst.doctor.rented import most, zones_of

CHECK = "capacity"
SPOT_ROLE, SCALING_ROLE = "AWSServiceRoleForEC2Spot", "AWSServiceRoleForAutoScaling"
KEY_ACTIONS = (
    "CreateGrant",
    "Decrypt",
    "DescribeKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptFrom",
    "ReEncryptTo",
)
DEFAULT_KEY = "default key of EBS"


def check(site: AwsSite) -> Iterator[CheckResult]:
    """Only what the declaration uses."""
    if any("spot" in markets_of(nodes) for _, nodes in site.nodes):
        yield from answered(CHECK, f"role {SPOT_ROLE}", _spot_role(site))
        yield from answered(CHECK, "interruption queue", _queues(site))
    if site.nodes:
        yield from answered(CHECK, DEFAULT_KEY, _default_key(site))
    for who, nodes in site.nodes:
        if held := reserved(nodes):
            yield from answered(CHECK, f"{held.id} of {who}", _reservation(site, who, nodes, held))


def _spot_role(site: AwsSite) -> Iterator[CheckResult]:
    if site.account.role_named(SPOT_ROLE):
        yield CheckResult(CHECK, f"role {SPOT_ROLE}", "ok", "it is there")
    else:
        todo = (
            "an administrator makes it once: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
        )
        yield CheckResult(
            CHECK, f"role {SPOT_ROLE}", "fail", "this account lacks it: EC2 refuses every spot launch", todo
        )


def _default_key(site: AwsSite) -> Iterator[CheckResult]:
    """Under a key of one's own a volume is made only for whom its policy or a grant lets use it; else the instance ends
    at once, Client.InternalError. A policy isn't asked for.
    """
    key = site.account.default_key()
    if key is None:
        yield CheckResult(CHECK, DEFAULT_KEY, "ok", "AWS's own: everybody of the account may use it")
        return
    spot = any("spot" in markets_of(nodes) for _, nodes in site.nodes)
    roles = [SPOT_ROLE] if spot else []
    roles += [SCALING_ROLE] if site.account.role_named(SCALING_ROLE) else []
    granted = site.account.grantees(key)
    for name in roles:
        what = f"{DEFAULT_KEY} for {name}"
        if any(each.rpartition("/")[2] == name for each in granted):
            yield CheckResult(CHECK, what, "ok", f"a grant of {key} lets it use it")
            continue
        seen = f"no grant of {key} lets it use it, and the key's policy isn't asked for: without either no node starts"
        path = f"arn:{site.account.caller().partition}:iam::{site.account.caller().account}:role/aws-service-role"
        service = "spot" if name == SPOT_ROLE else "autoscaling"
        todo = (
            f"aws kms create-grant --region {site.cloud.region} --key-id {key} --grantee-principal "
            f"{path}/{service}.amazonaws.com/{name} --operations Decrypt Encrypt GenerateDataKey "
            "GenerateDataKeyWithoutPlaintext CreateGrant DescribeKey ReEncryptFrom ReEncryptTo"
        )
        yield CheckResult(CHECK, what, "warn", seen, todo)
    if role := site.account.role(site.name, "controller"):
        for action in KEY_ACTIONS:
            asked = site.account.simulate(role, IamQuestion(f"kms:{action}", key))
            if asked.decision != "allowed":
                seen = f"{asked.decision} for the controller, says IAM's simulator, which sees no key's policy"
                todo = f"let {role} use {key} in the key's policy: {', '.join(KEY_ACTIONS)}"
                yield CheckResult(CHECK, f"{DEFAULT_KEY} for the controller", "unknown", seen, todo)
                return
        yield CheckResult(CHECK, f"{DEFAULT_KEY} for the controller", "ok", f"its policies let it use {key}")


def _queues(site: AwsSite) -> Iterator[CheckResult]:
    if site.document is None:
        seen = "its URL is in the document, and none is given"
        yield CheckResult(CHECK, "interruption queue", "unknown", seen, PUBLISH)
        return
    for url in sorted({pool.notices for pool in site.document.pools if "spot" in pool.markets}):
        looked_at = f"interruption queue {url.rsplit('/', 1)[-1]}".rstrip()
        arn = site.account.queue(url) if url else None
        if arn is None:
            yield CheckResult(CHECK, looked_at, "fail", "the queue that the document names isn't there", PUBLISH)
            continue
        rules = site.account.rules(arn)
        disabled = sorted(name for name, enabled in rules.items() if not enabled)
        if not rules:
            seen = "no event rule sends to it: a spot node would end without notice"
            yield CheckResult(CHECK, looked_at, "fail", seen, "run `pulumi up`")
        elif disabled:
            todo = f"aws events enable-rule --region {site.cloud.region} --name {disabled[0]}"
            yield CheckResult(CHECK, looked_at, "fail", f"rule {', '.join(disabled)} is disabled", todo)
        else:
            yield CheckResult(CHECK, looked_at, "ok", f"fed by rule {', '.join(sorted(rules))}")


def _reservation(site: AwsSite, who: str, nodes: AwsGroup | AwsPool, held: Reserved) -> Iterator[CheckResult]:
    looked_at, real = f"{held.id} of {who}", site.account.reservation(held.id)
    if real is None:
        seen = f"there is no such reservation in {site.cloud.region}"
        yield CheckResult(CHECK, looked_at, "fail", seen, "name one of this account and region, or leave it out")
        return
    window = f" until {real.ends:%Y-%m-%d %H:%M} UTC" if real.ends else ""
    fine = f"active, {real.count} {real.instance_type} in {real.zone}{window}"
    yield from judged(CHECK, looked_at, _wrong(nodes, held, real), fine)


def _wrong(nodes: AwsGroup | AwsPool, held: Reserved, real: Reservation) -> Iterator[tuple[State, str, str]]:
    """(fail or warn, what was seen, what to do)."""
    if real.state == "scheduled":
        starts = f"{real.starts:%Y-%m-%d %H:%M} UTC" if real.starts else "later"
        yield "warn", f"it is scheduled: it starts {starts}", "wait until then; EC2 refuses launches into it before"
    elif real.state != "active":
        yield "fail", f"it is {real.state}", "name one that is active, or leave it out"
    if real.instance_type not in nodes.types:
        declared = ", ".join(nodes.types)
        yield "fail", f"it is for {real.instance_type}, declared is {declared}", "declare the type that it is for"
    if real.zone not in zones_of(nodes):
        yield "fail", f"it lies in {real.zone}, declared is {', '.join(zones_of(nodes))}", f"declare {real.zone}"
    elif zones_of(nodes) != [real.zone]:
        others = ", ".join(zone for zone in zones_of(nodes) if zone != real.zone)
        yield "warn", f"it lies in {real.zone}: EC2 refuses launches into it in {others}", f"declare {real.zone} alone"
    if held.block != (real.kind == "capacity-block"):
        key = "capacity_block" if real.kind == "capacity-block" else "capacity_reservation"
        yield "fail", f"it is of kind {real.kind}", f"declare it as {key}"
    if real.count < most(nodes):
        many = f"{real.count} instances are reserved, {most(nodes)} declared"
        yield "warn", f"{many}: EC2 refuses the rest", f"declare {real.count}, or reserve more"
    if real.ends and held.ends and held.ends > real.ends:
        ends = f"{real.ends:%Y-%m-%dT%H:%MZ}"
        yield "fail", f"AWS takes it back at {ends}, declared is {held.ends.isoformat()}", f"declare {ends}"
    elif real.ends and held.ends is None:
        ends = f"{real.ends:%Y-%m-%dT%H:%MZ}"
        key = "capacity_ends" if isinstance(nodes, AwsPool) else "capacity_block.ends"
        yield "warn", f"AWS takes it back at {ends}, and nothing is declared", f"declare {key}: {ends}"
