"""Under which URNs a resource may stand in the old state."""

from pulumi.runtime.proto import alias_pb2

from lab.engine.goal import Goal
from lab.engine.state import make_urn, urn_parts


def alias_urns(goal: Goal, urn: str, stack: str, project: str, parent_aliases: list[str]) -> list[str]:
    """The resource's own aliases, and those that follow from its parent's. `urn` itself is not among them."""
    urns: list[str] = []
    for alias in [alias_pb2.Alias(spec=alias_pb2.Alias.Spec()), *goal.aliases]:
        if isinstance(alias, str) or alias.HasField("urn"):
            urns.append(alias if isinstance(alias, str) else alias.urn)
            continue
        spec = alias.spec
        named = [""] if spec.noParent else [spec.parentUrn] if spec.parentUrn else []
        parents = named or [goal.parent, *parent_aliases]
        for parent in parents:
            name = spec.name or _inherited_name(goal, parent, parent_aliases)
            urns.append(make_urn(spec.stack or stack, spec.project or project, parent, spec.type or goal.type, name))
    return [alias for alias in dict.fromkeys(urns) if alias != urn]


def _inherited_name(goal: Goal, parent: str, parent_aliases: list[str]) -> str:
    """A child named after its parent was named after the parent's old name."""
    if parent in parent_aliases and goal.name.startswith(now := urn_parts(goal.parent)[1]):
        return urn_parts(parent)[1] + goal.name[len(now) :]
    return goal.name
