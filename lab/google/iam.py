"""Who may do what in the stand-in's project: roles bound to service accounts, with conditions on names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# calls whose permission has another name than they
NAMED = {
    "compute.globalOperations.aggregatedList": "compute.globalOperations.list",
    "compute.instances.aggregatedList": "compute.instances.list",
    "compute.instances.bulkInsert": "compute.instances.create",
}
_TYPE = r'resource\.type == "(?P<type>[^"]+)"'
_NAME = r'resource\.name\.extract\("(?P<before>[^"{]*)\{name\}"\)\.startsWith\("(?P<prefix>[^"]*)"\)'
_CONDITION = re.compile(rf"{_TYPE}(?: && {_NAME})?")
_STORED = re.compile(r'resource\.name == "(?P<bucket>[^"]+)" \|\| resource\.name\.startsWith\("(?P<below>[^"]+)"\)')


@dataclass(frozen=True)
class Binding:
    """One member's role, on what a condition (CEL) lets through; empty: on all of the project. `at`: the resource whose
    policy has it; empty: the project's.
    """

    member: str
    permissions: frozenset[str]
    condition: str = ""
    at: str = ""

    def holds(self, resource: str) -> bool:
        """Whether its condition is true of a resource. Raises ValueError for one that isn't of the known form: it is
        never treated as one that holds.
        """
        if self.at and not f"{resource}/".startswith(f"{self.at}/"):
            return False
        if not self.condition:
            return True
        return _true(self.condition, resource)


def _true(condition: str, resource: str) -> bool:
    if stored := _STORED.fullmatch(condition):
        return resource == stored["bucket"] or resource.startswith(stored["below"])
    said = _CONDITION.fullmatch(condition)
    if not said:
        raise ValueError(f"this stand-in can't judge the condition {condition!r}")
    kind = "compute.googleapis.com/Instance" if "/instances/" in resource else ""
    if said["type"] != kind:
        return False
    _, found, name = resource.partition(said["before"] or "/")
    return said["prefix"] is None or (bool(found) and name.startswith(said["prefix"]))


@dataclass
class Iam:
    """`tokens`: token -> e-mail of a service account. A caller without one is an administrator: the lab's own, and so
    are `owners`. `subjects`: token from outside -> e-mail of who signs in with it. `impersonators`: (e-mail, account
    that it may be), in the account's own policy, which goes with the account.
    """

    bindings: list[Binding] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    owners: set[str] = field(default_factory=set)
    subjects: dict[str, str] = field(default_factory=dict)
    impersonators: set[tuple[str, str]] = field(default_factory=set)

    def refusal(self, token: str, call: str, resource: str) -> str:
        """Why a call (compute.instances.delete) isn't allowed; empty: it is."""
        email = self.tokens.get(token)
        if email is None or email in self.owners:
            return ""
        call = NAMED.get(call, call)
        mine = [each for each in self.bindings if each.member == f"serviceAccount:{email}"]
        if any(call in each.permissions and each.holds(resource) for each in mine):
            return ""
        return f"Required '{call}' permission for '{resource}'"
