"""Who is measured with whom. Pure."""

from __future__ import annotations

from collections.abc import Sequence

Edge = tuple[str, str]
"""the one that sends, the one that receives"""


def all_pairs(nodes: Sequence[str]) -> list[list[Edge]]:
    """Every pair once, in rounds in which no node is twice: a round-robin tournament by the circle method, n - 1 rounds
    of n nodes, n for an odd number (one rests in each). Each node sends about as often as it receives.
    """
    seats: list[str | None] = [*nodes, *([None] if len(nodes) % 2 else [])]
    rounds = []
    for number in range(len(seats) - 1):
        drawn = [(seats[n], seats[-1 - n]) for n in range(len(seats) // 2)]
        turned = [(a, b) if (number + n) % 2 else (b, a) for n, (a, b) in enumerate(drawn)]
        rounds.append([(a, b) for a, b in turned if a is not None and b is not None])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return [each for each in rounds if each]


def ring(nodes: Sequence[str]) -> list[Edge]:
    """Each sends to the next one, all at once; none of fewer than three, who are a pair."""
    return [(node, nodes[(n + 1) % len(nodes)]) for n, node in enumerate(nodes)] if len(nodes) > 2 else []
