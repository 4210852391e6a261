"""What rented nodes join with (munge key, join token): is it where they look for it, and may they read it? Its value is
never asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.config.aws.models import AwsCloud
from ironburst.config.scheduler_models import Scheduler
from ironburst.doctor.aws.account import IamQuestion, Secret
from ironburst.doctor.aws.rights import judged
from ironburst.doctor.aws.site import AwsSite, node_roles
from ironburst.doctor.checks import CheckResult, answered

CHECK = "secret"


def check(site: AwsSite) -> Iterator[CheckResult]:
    """Only where nodes read it from AWS."""
    used = {scheduler.kind: scheduler for scheduler in map(site.config.scheduler_of, site.cloud.pools)}
    for scheduler in used.values():
        key, reference = scheduler.joins_with or ("", "")
        if reference.partition(":")[0] == AwsCloud.store:
            name = reference.partition(":")[2].partition("#")[0]
            yield from answered(CHECK, f"secret {name}", _secret(site, scheduler, key, name))


def _secret(site: AwsSite, scheduler: Scheduler, key: str, name: str) -> Iterator[CheckResult]:
    found, region, looked_at = site.account.secret(name), site.cloud.region, f"secret {name}"
    if found is None:
        value = "file://munge.key" if scheduler.kind == "slurm" else "none-yet"
        make = f"aws secretsmanager create-secret --region {region} --name {name} --secret-string {value}"
        todo = f"make it: {make}" if not name.startswith("arn:") else "name a secret of this account and region"
        yield CheckResult(CHECK, looked_at, "fail", f"there is none in {region}", todo)
        return
    if found.deleted:
        todo = f"aws secretsmanager restore-secret --region {region} --secret-id {name}"
        yield CheckResult(CHECK, looked_at, "fail", f"it is deleted since {found.deleted:%Y-%m-%d}", todo)
    elif (lies_in := found.arn.split(":")[3]) != region:
        todo = f"make it in {region} and name that one as scheduler.{key}"
        yield CheckResult(CHECK, looked_at, "fail", f"it lies in {lies_in}; nodes look for it in {region}", todo)
    else:
        yield CheckResult(CHECK, looked_at, "ok", "it is there; its value was not asked for")
    yield from answered(CHECK, f"reading secret {name}", _readable(site, scheduler, key, found))


def _readable(site: AwsSite, scheduler: Scheduler, key: str, found: Secret) -> Iterator[CheckResult]:
    for name in node_roles(site, scheduler.kind):
        role = site.account.role(site.name, name)
        if role is None:
            seen = "there is none with this cluster's tag"
            yield CheckResult(CHECK, f"the rented nodes' role {name}", "fail", seen, "run `pulumi up`")
            continue
        question = IamQuestion("secretsmanager:GetSecretValue", found.arn)
        todo = f"run `pulumi up` with this scheduler.{key}: it writes the nodes' policy anew"
        yield judged(CHECK, role, question, site.account.simulate(role, question), todo)
        if found.kms_key:
            seen = f"the secret is under {found.kms_key}, whose key policy the simulator doesn't see"
            todo = f"let the key's policy allow kms:Decrypt to {role}"
            yield CheckResult(CHECK, "the secret's key in KMS", "unknown", seen, todo)
