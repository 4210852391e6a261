"""Is what is published what is declared, and how long is what was bought still there? Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ironburst.config.models import ClusterConfig
from ironburst.doctor.aws.site import PUBLISH
from ironburst.doctor.checks import CheckResult
from ironburst.doctor.declared import DeclaredSite
from ironburst.document import ClusterDocument
from ironburst.nodes import naming

SOON_S = 2 * 86400.0


def check(site: DeclaredSite) -> Iterator[CheckResult]:
    """The document, and its pools' capacity."""
    config, document, now = site.config, site.document, site.now
    if document is None:
        yield CheckResult("document", config.name, "unknown", "none is given", PUBLISH)
        return
    yield _document(config, document)
    for pool in document.pools:
        if pool.capacity_ends_s is None:
            continue
        left_s = pool.capacity_ends_s - now.timestamp()
        ends = f"{datetime.fromtimestamp(pool.capacity_ends_s, now.tzinfo):%Y-%m-%d %H:%M %Z}"
        looked_at = f"capacity of pool {pool.name}"
        if left_s <= 0:
            todo = "take the pool out of the stack file, or declare what was bought after it"
            yield CheckResult("time", looked_at, "fail", f"ended {ends}", todo)
        elif left_s < SOON_S:
            todo = "what runs in it is taken back 30 minutes before: buy more, or let its jobs end"
            yield CheckResult("time", looked_at, "warn", f"ends {ends}, in {left_s / 3600:.0f} hours", todo)
        else:
            yield CheckResult("time", looked_at, "ok", f"ends {ends}")


def _document(config: ClusterConfig, document: ClusterDocument) -> CheckResult:
    """By the names of its hosts and pools: values differ by what AWS filled in."""
    looked_at = f"serial {document.serial}"
    declared = {name for hall in config.halls for nodes in hall.nodes for name in nodes.names}
    declared |= {name for group in config.groups for name in naming.numbered(group.name, group.count)}
    declared |= {f"pool {pool.name}" for pool in config.pools}
    published = {host.name for host in document.hosts} | {f"pool {pool.name}" for pool in document.pools}
    told = [
        f"{what} only: {', '.join(sorted(names)[:4])}" + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        for what, names in (("declared", declared - published), ("published", published - declared))
        if names
    ]
    if told:
        return CheckResult("document", looked_at, "warn", "; ".join(told), "run `pulumi up` and publish its document")
    return CheckResult(
        "document", looked_at, "ok", f"{len(document.hosts)} hosts and {len(document.pools)} pools, as declared"
    )
