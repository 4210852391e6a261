"""What a plan has to know of kinds of resources. A kind names whose it is, so all of them count, whatever the stack
file declares now: what a stack gives up is in its preview, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Kinds:
    """Of one provider, by Pulumi's types. `nodes`: what jobs run on, in words; `control_planes`: those of them that no
    drain empties; `stops`: inputs whose change stops such a node; `words`: what people call a kind whose own name
    doesn't say it; `firewalls`: with lists of rules, under which key; `rules`: ends of the types of single rules;
    `secrets`: beginnings of the types of secrets; `open_unless`: keys of a single rule, which lets in everybody where
    it has none of them; `narrow`: words in the place of a network that let in nobody from outside.
    """

    nodes: Mapping[str, str]
    control_planes: frozenset[str] = frozenset()
    stops: Mapping[str, frozenset[str]] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    firewalls: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    open_unless: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    narrow: frozenset[str] = frozenset()


def together(*every: Kinds) -> Kinds:
    """Of several providers."""
    return Kinds(
        nodes={kind: words for each in every for kind, words in each.nodes.items()},
        control_planes=frozenset().union(*(each.control_planes for each in every)),
        stops={kind: keys for each in every for kind, keys in each.stops.items()},
        words={kind: words for each in every for kind, words in each.words.items()},
        firewalls={kind: key for each in every for kind, key in each.firewalls.items()},
        rules=tuple(rule for each in every for rule in each.rules),
        secrets=tuple(secret for each in every for secret in each.secrets),
        open_unless={rule: keys for each in every for rule, keys in each.open_unless.items()},
        narrow=frozenset().union(*(each.narrow for each in every)),
    )
