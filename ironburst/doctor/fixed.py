"""Are the account's fixed nodes those that are published? An `up` that was killed while EC2 launched one leaves it: it
is paid for, and no state knows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.finding import Finding, answered
from ironburst.doctor.site import PUBLISH, Site

CHECK = "fixed nodes"


def check(site: Site) -> Iterator[Finding]:
    """Only where groups are declared."""
    if site.cloud.groups:
        yield from answered(CHECK, "instances of groups", lambda: _instances(site))


def _instances(site: Site) -> Iterator[Finding]:
    there = site.account.fixed(site.name)
    if site.document is None:
        yield Finding(CHECK, "instances of groups", "unknown", "their ids are in the document: none is given", PUBLISH)
        return
    known = {host.instance_id for host in site.document.hosts}
    unknown = {id: group for id, group in sorted(there.items()) if id not in known}
    for id, group in unknown.items():
        seen = f"it has the tags of group {group} and is in no published document: an `up` that broke off left it"
        todo = f"if `pulumi up` and publish don't change that: aws ec2 terminate-instances --instance-ids {id}"
        yield Finding(CHECK, id, "fail", seen, todo)
    if not unknown:
        yield Finding(CHECK, "instances of groups", "ok", f"{len(there)} there, each of them published")
