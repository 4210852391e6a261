"""What differs between a node and its declaration."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mismatch:
    """One difference. `field` is the Declaration's or a minimum's, `observed` the value that would have been right
    there. `unknown`: the BMC doesn't say, so that it may be none.
    """

    field: str
    observed: object
    sentence: str
    unknown: bool = False


@dataclass(frozen=True)
class Verdict:
    """All that differs, what of it somebody answers for, and what the BMC doesn't say."""

    mismatches: tuple[Mismatch, ...]
    allowed: tuple[Mismatch, ...] = ()
    not_said: tuple[Mismatch, ...] = ()
