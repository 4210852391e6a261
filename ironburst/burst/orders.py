"""What a person ordered of the renting, as far as a decision needs it: a halt of it, and what a user may have."""

from __future__ import annotations

from dataclasses import dataclass

from ironburst.burst import explain


@dataclass(frozen=True)
class Halt:
    """Nothing is launched, by a person's order or, while the cloud doesn't list what is there, by us. `stops`: no
    pending job is let on rented nodes, either, and those without a job go.
    """

    who: str
    why: str
    at_s: float
    until_s: float | None = None  # None: until a person resumes it
    stops: bool = False

    @property
    def what(self) -> str:
        """For people."""
        return f"renting is {'stopped' if self.stops else 'paused'}"

    @property
    def text(self) -> str:
        """With who ordered it, since when, and why."""
        return f"{self.what} {signed(self.who, self.at_s, self.until_s, self.why)}"


@dataclass(frozen=True)
class UserLimit:
    """What one user's jobs may have of rented nodes. `spent_usd` and `aside_usd`: this month, by declared prices."""

    user: str
    said: str  # who set it, since when, why
    gpus: int | None = None  # at a time; None: any number
    usd: float | None = None  # a month; None: any amount
    spent_usd: float = 0.0
    aside_usd: float = 0.0  # for what is rented for them now, beyond what it has cost


def signed(who: str, at_s: float, until_s: float | None, why: str) -> str:
    """by alice since 2026-11-27 03:12:00Z until 2026-11-27 08:00:00Z: runaway jobs"""
    until = "" if until_s is None else f" until {explain.at(until_s)}"
    return f"by {who} since {explain.at(at_s)}{until}" + (f": {why}" if why else "")
