"""The fabric as Slurm's topology.conf and topology.yaml."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ironburst.hall.fabric import TreeSwitch

Compact = Callable[[Sequence[str]], str]
"""Names as one expression of Slurm's: dgx[01-04]."""

WRITTEN = "# Written by ironburst from the declared halls: changes made here are lost"


def conf(trees: Sequence[TreeSwitch], compact: Compact) -> str:
    """topology.conf for topology/tree (slurm.conf: TopologyPlugin=topology/tree)."""
    lines = [f"SwitchName={each.name} {key}={names}" for each, key, names in _lines(trees, compact)]
    return "\n".join([WRITTEN, *lines, ""])


def yaml(trees: Sequence[TreeSwitch], compact: Compact, name: str) -> str:
    """topology.yaml, from Slurm 25.05 on; where it exists, topology.conf isn't read."""
    lines = [
        WRITTEN,
        f"- topology: {name}",
        "  cluster_default: true",
        "  tree:",
        "    switches:",
    ]
    for each, key, names in _lines(trees, compact):
        lines += [f"      - switch: {each.name}", f"        {'nodes' if key == 'Nodes' else 'children'}: {names}"]
    return "\n".join([*lines, ""])


def _lines(trees: Sequence[TreeSwitch], compact: Compact) -> Iterator[tuple[TreeSwitch, str, str]]:
    for each in trees:
        yield (each, "Nodes", compact(each.nodes)) if each.nodes else (each, "Switches", compact(each.switches))
