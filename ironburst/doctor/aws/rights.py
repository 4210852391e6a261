"""May the controller what it has to? IAM's simulator is asked of its role, and EC2 of each launch, as a dry run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ironburst.config.aws.models import AwsPool
from ironburst.doctor.aws.account import Caller, DryRun, IamDecision, IamQuestion
from ironburst.doctor.aws.site import PUBLISH, AwsSite, node_roles, reserved
from ironburst.doctor.checks import CheckResult, Unasked, answered
from ironburst.document import PoolDocument, PoolZone
from ironburst.document.aws import AwsPlace
from ironburst.nodes.naming import CLUSTER_TAG, LEASE_TAG, POOL_TAG, image_parameter
from ironburst.ports import LaunchRequest

CHECK = "rights"
AGAIN = "run `pulumi up`: it writes the controller's policies anew"
# condition keys of the policies that `up` writes: which of them a question needs is known
OURS = re.compile(
    r"(aws:RequestTag|ec2:ResourceTag)/ironburst:.*"
    r"|ec2:(CreateAction|Owner|LaunchTemplate|IsLaunchTemplateResource|InstanceType)"
    r"|iam:PassedToService",
    re.IGNORECASE,
)
INSTANCE = "instance/i-0123456789abcdef0"  # any: the policies go by tags
LEASE = "doctor"  # a launch that isn't done needs a lease's name, for its tag is asked for


def check(site: AwsSite) -> Iterator[CheckResult]:
    """Of the controller's role; the nodes' is the secret's check."""
    if site.cloud.pools:
        yield from answered(CHECK, "the controller's role", _all(site))


def _all(site: AwsSite) -> Iterator[CheckResult]:
    role = site.account.role(site.name, "controller")
    if role is None:
        yield CheckResult(
            CHECK, "the controller's role", "fail", "there is none with this cluster's tag", "run `pulumi up`"
        )
        return
    for question in questions(site, site.account.caller()):
        what = f"{question.action} on {question.resource}"
        yield from answered(CHECK, what, _simulated(site, role, question))
    if site.document is None:
        seen = "launch templates and subnets are in the document, and none is given"
        yield CheckResult(CHECK, "launches", "unknown", seen, PUBLISH)
        return
    for pool in site.cloud.pools:
        published = site.document.pool(pool.name)
        if published is None:
            seen = f"the document doesn't know pool {pool.name}"
            yield CheckResult(CHECK, f"launches of pool {pool.name}", "fail", seen, PUBLISH)
            continue
        yield from answered(CHECK, f"launches of pool {pool.name}", _launches(site, role, pool, published))


def questions(site: AwsSite, caller: Caller) -> list[IamQuestion]:
    """One of each kind of call that the controller makes, but for launches, on a resource as it would have."""

    def arn(service: str, resource: str) -> str:
        return f"arn:{caller.partition}:{service}:{site.cloud.region}:{caller.account}:{resource}"

    rented = {f"ec2:ResourceTag/{CLUSTER_TAG}": site.name, f"ec2:ResourceTag/{LEASE_TAG}": LEASE}
    instance = arn("ec2", INSTANCE)
    asked = [
        IamQuestion(f"ec2:{name}")
        for name in ("DescribeInstances", "DescribeInstanceStatus", "DescribeSpotPriceHistory")
    ]
    asked += [IamQuestion(f"ec2:{name}", instance, rented) for name in ("TerminateInstances", "GetConsoleOutput")]
    for pool in site.cloud.pools:
        parameter = image_parameter(site.name, pool.name)
        asked.append(IamQuestion("ssm:GetParameter", arn("ssm", f"parameter{parameter}")))
        born = {f"aws:RequestTag/{POOL_TAG}": pool.name, f"aws:RequestTag/{CLUSTER_TAG}": site.name}
        asked.append(IamQuestion("ec2:RunInstances", arn("ec2", "volume/vol-0123456789abcdef0"), born))
        asked += _of_templates(site, pool, arn, born)
    image = f"arn:{caller.partition}:ec2:{site.cloud.region}::image/ami-0123456789abcdef0"
    asked.append(IamQuestion("ec2:RunInstances", image, {"ec2:Owner": caller.account}))
    creating = {"ec2:CreateAction": "RunInstances"}
    asked.append(IamQuestion("ec2:CreateTags", arn("ec2", INSTANCE), creating))
    for role in filter(None, (site.account.role(site.name, name) for name in node_roles(site))):
        asked.append(IamQuestion("iam:PassRole", role, {"iam:PassedToService": f"ec2.{_suffix(caller)}"}))
    return asked + _of_queues(site, arn)


def _of_templates(
    site: AwsSite, pool: AwsPool, arn: Callable[[str, str], str], born: Mapping[str, str]
) -> Iterator[IamQuestion]:
    """The instance of a launch from each of the pool's templates."""
    published = site.document.pool(pool.name) if site.document else None
    for zone in published.zones if published else ():
        if not isinstance(zone.place, AwsPlace):
            continue  # of a document of another cloud
        template = {"ec2:LaunchTemplate": arn("ec2", f"launch-template/{zone.place.launch_template_id}")}
        tagged = {**born, f"aws:RequestTag/{LEASE_TAG}": LEASE}
        kind = {"ec2:InstanceType": zone.instance_type or pool.types[0]}
        yield IamQuestion("ec2:RunInstances", arn("ec2", INSTANCE), tagged | template | kind)


def _suffix(caller: Caller) -> str:
    return "amazonaws.com.cn" if caller.partition == "aws-cn" else "amazonaws.com"


def _of_queues(site: AwsSite, arn: Callable[[str, str], str]) -> list[IamQuestion]:
    pools = site.document.pools if site.document else []
    names = sorted({pool.notices.rsplit("/", 1)[-1] for pool in pools if pool.notices})
    actions = ("sqs:ReceiveMessage", "sqs:DeleteMessage")
    return [IamQuestion(action, arn("sqs", name)) for name in names for action in actions]


def _simulated(site: AwsSite, role: str, question: IamQuestion) -> Iterator[CheckResult]:
    yield judged(CHECK, role, question, site.account.simulate(role, question), AGAIN)


def judged(check: str, role: str, question: IamQuestion, verdict: IamDecision, todo: str) -> CheckResult:
    """The simulator's answer to one question."""
    name = role.rsplit("/", 1)[-1]
    what = f"{name}: {question.action} on {question.resource}"
    if verdict.decision == "allowed":
        return CheckResult(check, what, "ok", "allowed, says IAM's simulator")
    if verdict.by_organization:
        more = "ask who owns the organization's service control policies to allow it"
        return CheckResult(check, what, "fail", f"{verdict.decision}: a policy of the organization says no", more)
    foreign = [key for key in verdict.missing if not OURS.fullmatch(key)]
    if foreign and verdict.decision == "implicitDeny":
        keys = ", ".join(foreign)
        more = "look at the policies of the role and its boundary that ask for these"
        return CheckResult(check, what, "unknown", f"the simulator can't say without the values of {keys}", more)
    return CheckResult(check, what, "fail", f"{verdict.decision}, says IAM's simulator", todo)


def _launches(site: AwsSite, role: str, pool: AwsPool, published: PoolDocument) -> Iterator[CheckResult]:
    image = site.account.parameter(published.image)
    if image is None:
        seen = "the pool has no image yet, and EC2 asks for one"
        todo = f"bake one (see the images), then run again: ironburst image {pool.name}"
        yield CheckResult(CHECK, f"launches of pool {pool.name}", "unknown", seen, todo)
        return
    for zone in published.zones:
        for market in published.markets:
            request = _request(site, pool, published, zone, market, image)
            kind = f" ({zone.instance_type})" if published.other_types else ""
            what = f"launch of pool {pool.name}{kind} in {zone.zone}, {market}"
            yield from answered(CHECK, what, _tried(site, role, request, what))


def _request(
    site: AwsSite, pool: AwsPool, published: PoolDocument, zone: PoolZone, market: str, image: str
) -> LaunchRequest:
    """As the controller would ask for one node."""
    held, kind = reserved(pool), zone.instance_type or published.instance_type
    asked = {"capacity_reservation_id": held.id if held else None}
    asked["capacity_reservation_group_arn"] = pool.capacity_reservation_group
    return LaunchRequest(
        token=f"ib-doctor-{pool.name}-{zone.zone}-{market}"[:64],  # a dry run uses none up
        launch=LEASE,
        cluster=site.name,
        pool=pool.name,
        zone=zone.zone,
        market=market,
        count=1,
        place=zone.place.model_dump() | asked,
        image_id=image,
        user_data="{}",
        max_usd_per_hour=published.spot_max_usd_per_hour.get(kind) if market == "spot" else None,
    )


def _tried(site: AwsSite, role: str, request: LaunchRequest, what: str) -> Iterator[CheckResult]:
    try:
        answer = site.account.dry_run(request, role)
    except Unasked as error:
        yield _as_caller(site.account.dry_run(request, None), what, error)
        return
    if answer.code == "DryRunOperation":
        seen = "EC2 would take it from the controller (a dry run sees neither capacity nor quotas)"
        yield CheckResult(CHECK, what, "ok", seen)
    else:
        yield CheckResult(CHECK, what, "fail", answer.text, _remedy(answer))


def _as_caller(answer: DryRun, what: str, refused: Unasked) -> CheckResult:
    """What this shows is that the request is right, not that the controller may make it."""
    todo = refused.todo
    if answer.code == "DryRunOperation":
        seen = f"EC2 would take it from the caller; not asked as the controller: {refused.seen}"
        return CheckResult(CHECK, what, "unknown", seen, todo)
    if answer.code == "UnauthorizedOperation":
        seen = f"neither asked as the controller ({refused.seen}) nor allowed to the caller"
        return CheckResult(CHECK, what, "unknown", seen, todo)
    return CheckResult(CHECK, what, "fail", answer.text, _remedy(answer))


def _remedy(answer: DryRun) -> str:
    if "service control policy" in answer.text:
        return "declare the tags that the organization's policy asks for under cloud.tags, then `pulumi up` and publish"
    if answer.code.startswith("UnauthorizedOperation"):
        return AGAIN
    if answer.code.startswith("InvalidAMIID"):
        return "bake the pool's image anew: ironburst image POOL"
    if ".NotFound" in answer.code:
        return f"what the document names isn't there: {PUBLISH}"
    return (
        "see the message; https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html explains the code"
    )
