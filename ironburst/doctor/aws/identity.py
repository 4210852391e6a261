"""Who asks, in which account and region."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from ironburst.doctor.aws.site import AwsSite
from ironburst.doctor.checks import CheckResult, answered

CHECK = "credentials"
AS_WHOM = "set AWS_PROFILE or AWS_ACCESS_KEY_ID to the right account's, and run again"


def check(site: AwsSite) -> Iterator[CheckResult]:
    """First of all: without credentials no other check can ask. Raises Unasked."""
    yield _account(site)
    yield from answered(CHECK, f"region {site.cloud.region}", _region(site))


def _account(site: AwsSite) -> CheckResult:
    caller = site.account.caller()
    seen = f"{caller.arn} in account {caller.account}"
    if caller.arn.endswith(":root"):
        return CheckResult(CHECK, "caller", "warn", f"{seen}: the root user", "use a role or user that may only read")
    declared, where = list(site.accounts), "aws:allowedAccountIds of the stack file"
    if not declared:
        declared, where = sorted(_of_document(site)), "the document's queues"
    if declared and caller.account not in declared:
        return CheckResult(CHECK, "caller", "fail", f"{seen}; {where} name {', '.join(declared)}", AS_WHOM)
    return CheckResult(CHECK, "caller", "ok", seen)


def _of_document(site: AwsSite) -> set[str]:
    """The accounts that its queues lie in: https://sqs.us-east-1.amazonaws.com/123456789012/name."""
    urls = [pool.notices for pool in site.document.pools] if site.document else []
    parts = [urlsplit(url).path.strip("/").split("/") for url in urls if url]
    return {part[0] for part in parts if len(part) == 2}


def _region(site: AwsSite) -> Iterator[CheckResult]:
    region, looked_at = site.cloud.region, f"region {site.cloud.region}"
    status = site.account.region_opt_in()
    if status == "not-opted-in":
        todo = f"an administrator enables it once: aws account enable-region --region-name {region}"
        yield CheckResult(CHECK, looked_at, "fail", "this account has not enabled it", todo)
    elif site.document and site.document.region != region:
        seen = f"the published document is of {site.document.region}"
        yield CheckResult(CHECK, looked_at, "fail", seen, "name the document of this stack with --document")
    else:
        yield CheckResult(CHECK, looked_at, "ok", status)
