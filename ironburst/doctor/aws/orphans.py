"""What is used by nobody, and paid for or in the way: an `up` killed while AWS made a thing leaves it, and no state
knows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.aws.site import PUBLISH, AwsSite
from ironburst.doctor.checks import CheckResult, answered

CHECK = "orphans"
LEFT = "an `up` that broke off left it"


def check(site: AwsSite) -> Iterator[CheckResult]:
    """Of what has the cluster's tag; in a VPC that isn't ours, that is no network."""
    if site.cloud.groups:
        yield from answered(CHECK, "instances of groups", _instances(site))
    yield from answered(CHECK, "NAT gateways", _gateways(site))
    yield from answered(CHECK, "addresses", _addresses(site))
    yield from answered(CHECK, "VPN gateways", _vpn_gateways(site))


def _instances(site: AwsSite) -> Iterator[CheckResult]:
    there = site.account.fixed(site.name)
    if site.document is None:
        yield CheckResult(
            CHECK, "instances of groups", "unknown", "their ids are in the document: none is given", PUBLISH
        )
        return
    known = {host.instance_id for host in site.document.hosts}
    unknown = {id: group for id, group in sorted(there.items()) if id not in known}
    for id, group in unknown.items():
        seen = f"it has the tags of group {group} and is in no published document: {LEFT}"
        todo = f"if `pulumi up` and publish don't change that: aws ec2 terminate-instances --instance-ids {id}"
        yield CheckResult(CHECK, id, "fail", seen, todo)
    if not unknown:
        yield CheckResult(CHECK, "instances of groups", "ok", f"{len(there)} there, each of them published")


def _gateways(site: AwsSite) -> Iterator[CheckResult]:
    """One without a route holds its address, so the next `up` fails with Resource.AlreadyAssociated."""
    there = site.account.nat_gateways(site.name)
    used = {route.target for routes in site.account.routes(site.name).values() for route in routes}
    for id in sorted(there - used):
        gone = (
            f"aws ec2 delete-nat-gateway --nat-gateway-id {id}; aws ec2 wait nat-gateway-deleted --nat-gateway-ids {id}"
        )
        todo = f"if `pulumi up` doesn't change that (Resource.AlreadyAssociated): {gone}; then `pulumi up`"
        yield CheckResult(CHECK, id, "fail", f"no route leads to this NAT gateway: {LEFT}", todo)
    if there <= used:
        yield CheckResult(CHECK, "NAT gateways", "ok", f"{len(there)} there, a route to each")


def _addresses(site: AwsSite) -> Iterator[CheckResult]:
    there = site.account.addresses(site.name)
    idle = sorted(id for id, associated in there.items() if not associated)
    for id in idle:
        todo = f"if `pulumi up` doesn't change that: aws ec2 release-address --allocation-id {id}"
        yield CheckResult(CHECK, id, "fail", f"nothing has this address: {LEFT}", todo)
    if not idle:
        yield CheckResult(CHECK, "addresses", "ok", f"{len(there)} there, each of them in use")


def _vpn_gateways(site: AwsSite) -> Iterator[CheckResult]:
    """Not the connections: EC2 makes one between two gateways, so the next `up` takes up one that was left. A gateway
    that is attached makes it fail with InvalidVpcState.
    """
    there = sorted(site.account.vpn_gateways(site.name))
    if len(there) > 1:
        seen = f"a VPC takes one, and several have the cluster's tag ({', '.join(there)}): {LEFT}"
        gone = (
            "if it is attached, aws ec2 detach-vpn-gateway --vpn-gateway-id ID --vpc-id VPC, and wait until"
            " aws ec2 describe-vpn-gateways --vpn-gateway-ids ID shows it as detached;"
            " then aws ec2 delete-vpn-gateway --vpn-gateway-id ID"
        )
        todo = f"the one that `pulumi stack export` doesn't have: {gone}; then `pulumi refresh` and `pulumi up`"
        yield CheckResult(CHECK, "VPN gateways", "fail", seen, todo)
    else:
        yield CheckResult(CHECK, "VPN gateways", "ok", f"{len(there)} there")
