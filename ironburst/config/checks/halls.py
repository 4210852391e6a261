"""What the rules of ironburst.hall say of each declared hall, with its place in the file."""

from __future__ import annotations

import functools

from ironburst.config import halls
from ironburst.config.checks.common import Findings
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.hall import rules


def rules_of_halls(config: ClusterConfig) -> Findings:
    """Power, cooling, weight, cables and fabric of every hall."""
    for h, hall in enumerate(halls.declared(config)):
        for found in rules.check(hall):
            path = path_of("halls", h, *found.where)
            yield Finding(path, dict(found.numbers) or None, found.rule, str(found), found.severity)


def cables(config: ClusterConfig) -> Findings:
    """Both ends of cables are as many."""
    for h, hall in enumerate(config.halls):
        for n, each in enumerate(hall.cables):
            a, b = map(len, each.ends)
            if a != b:
                message = f"gives {a} ports at one end and {b} at the other; give as many"
                yield Finding(path_of("halls", h, "cables", n, "ends"), each.ends, "one-a-cable", message)


def switches(config: ClusterConfig) -> Findings:
    """Lists give one value a switch; a rail is a leaf's."""
    for h, hall in enumerate(config.halls):
        for n, each in enumerate(hall.switches):
            at = functools.partial(path_of, "halls", h, "switches", n)
            for key, values in (
                ("units", each.units if each.rack or each.units else None),
                ("rails", each.rails or None),
            ):
                if values is not None and len(values) != len(each.names):
                    message = f"gives {len(values)} values for {len(each.names)} switches; give one each"
                    yield Finding(at(key), values, "one-a-switch", message)
            if each.rails and each.kind != "leaf":
                message = f"are of leaves, and this is a {each.kind} switch: leave them out"
                yield Finding(at("rails"), each.rails, "rails", message)
