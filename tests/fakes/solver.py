"""Counts how often the software of a declaration is solved."""

from ironburst.software import solve


def solutions(monkeypatch):
    """The list of every solution that is made from now on, by whomever: solve.solve() makes one a call."""
    made, real = [], solve.Solution

    def make(*arguments):
        made.append(real(*arguments))
        return made[-1]

    monkeypatch.setattr(solve, "Solution", make)
    return made
