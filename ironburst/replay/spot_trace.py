"""When spot was to be had, as somebody wrote it down: a CSV with at_s (on the clock of the trace of jobs), available (1
or 0, from then on) and, if it differs by zone, zone. Pure but for `read`.
"""

from __future__ import annotations

import csv
import math
from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ironburst.system.bad_input import BadInput

_COLUMNS = ("at_s", "available")


@dataclass(frozen=True)
class SpotTrace:
    """Of one zone, or all. `turns`: (moment, whether spot is there from then on), in order; before the first it isn't
    known, and taken to be there.
    """

    turns: tuple[tuple[float, bool], ...]

    def there(self, now_s: float) -> bool:
        """Whether it is to be had now."""
        number = bisect_right(self.turns, (now_s, True))
        return self.turns[number - 1][1] if number else True

    def goes_s(self, now_s: float) -> float:
        """When spot that is there now goes; infinite: not any more."""
        number = bisect_right(self.turns, (now_s, True))
        return next((at_s for at_s, there in self.turns[number:] if not there), math.inf)


def fits(traces: Mapping[str, SpotTrace], zones: Collection[str], first_s: float, last_s: float) -> None:
    """Whether they say anything of jobs submitted between these moments, on pools in these zones. Raises BadInput."""
    if not zones:
        raise BadInput("--spot: no pool of the stack file has the market spot, so nothing would follow it")
    for zone, trace in traces.items():
        if zone and zone not in zones:
            raise BadInput(f"--spot: no pool with spot is in zone {zone}; they are in {', '.join(sorted(zones))}")
        begins_s, ends_s = trace.turns[0][0], trace.turns[-1][0]
        if begins_s > last_s or (len(trace.turns) > 1 and ends_s < first_s):
            its = f"at_s is from {begins_s:,.0f} to {ends_s:,.0f}"
            raise BadInput(
                f"--spot: {its}, and jobs are submitted from {first_s:,.0f} to {last_s:,.0f}: use their clock"
            )


def read(path: Path) -> dict[str, SpotTrace]:
    """By zone; an empty one is all zones. Raises BadInput."""
    turns: dict[str, list[tuple[float, bool]]] = {}
    try:
        with path.open(newline="") as file:
            rows = csv.DictReader(file)
            if missing := [name for name in _COLUMNS if name not in (rows.fieldnames or ())]:
                raise BadInput(f"{path} has no column {missing[0]}; a trace of spot has at_s, available and maybe zone")
            for number, row in enumerate(rows, 2):
                turns.setdefault(row.get("zone") or "", []).append(_turn(row, f"{path}, line {number}"))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path} can't be read as a trace of spot: {error}") from None
    if not turns:
        raise BadInput(f"{path} has no line: give each moment at which spot came or went")
    for zone, its in turns.items():
        if any(later[0] <= before[0] for before, later in pairwise(its)):
            raise BadInput(f"{path}: at_s doesn't rise from line to line{f' of zone {zone}' if zone else ''}: sort it")
    return {zone: SpotTrace(tuple(its)) for zone, its in turns.items()}


def _turn(row: Mapping[str, str | None], where: str) -> tuple[float, bool]:
    at, available = row["at_s"] or "", row["available"] or ""
    try:
        at_s = float(at)
    except ValueError:
        at_s = math.nan
    if not math.isfinite(at_s):
        raise BadInput(f"{where}: at_s is {at!r}; seconds on the clock of the trace of jobs are needed")
    if available not in ("0", "1"):
        raise BadInput(f"{where}: available is {available!r}; write 1 where spot is to be had from then on, else 0")
    return at_s, available == "1"
