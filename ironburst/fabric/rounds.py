"""Who is measured with whom. Pure."""

from __future__ import annotations

from collections.abc import Sequence

Edge = tuple[str, str]
"""the one that sends, the one that receives"""


def all_pairs(nodes: Sequence[str]) -> list[list[Edge]]:
    """Every pair once, in rounds in which no node is twice: a round-robin tournament by the circle method, n - 1 rounds
    of n nodes, n for an odd number (one rests in each). Each node sends about as often as it receives.
    """
    seats = [*range(len(nodes) + len(nodes) % 2)]
    rounds = []
    for _ in seats[1:]:
        drawn = [sorted((seats[n], seats[-1 - n])) for n in range(len(seats) // 2)]
        pairs = [(nodes[a], nodes[b]) if (a + b) % 2 else (nodes[b], nodes[a]) for a, b in drawn if b < len(nodes)]
        rounds.append(pairs)
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return [each for each in rounds if each]


def ring(nodes: Sequence[str]) -> list[Edge]:
    """Each sends to the next one, all at once; none of fewer than three, who are a pair."""
    return [(node, nodes[(n + 1) % len(nodes)]) for n, node in enumerate(nodes)] if len(nodes) > 2 else []
