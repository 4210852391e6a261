"""Whether the resource providers that a stack needs are registered in the subscription."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.doctor.azure.site import AzureSite
from ironburst.doctor.checks import CheckResult

CHECK = "providers"
NEEDED = {
    "Microsoft.Compute": "nothing can be rented or looked at",
    "Microsoft.Network": "machines have no network",
    "Microsoft.ManagedIdentity": "nodes have no identity to read secrets with",
    "Microsoft.Logic": "nobody ends a lease when the controller is gone",
    "Microsoft.KeyVault": "rented nodes read what they join with there",
}
"""resource provider: what goes wrong without it"""


def check(site: AzureSite) -> Iterator[CheckResult]:
    """Raises Unasked where nobody answers: then nothing else is asked, either."""
    there = site.subscription.providers()
    lacking = [name for name in NEEDED if there.get(name) != "Registered"]
    for name in lacking:
        todo = f"az provider register --namespace {name} --subscription {site.cloud.subscription}"
        seen = f"it is {there.get(name, 'unknown')}, not Registered: {NEEDED[name]}"
        yield CheckResult(CHECK, name, "fail", seen, todo)
    if not lacking:
        yield CheckResult(CHECK, site.cloud.subscription, "ok", f"{len(NEEDED)} resource providers are registered")
