"""What would have been decided otherwise in recorded ticks: as JSON values, for people, and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ironburst.burst import explain
from ironburst.nodes import naming
from ironburst.replay import pictures
from ironburst.replay.pictures import Panel, Series
from ironburst.replay.ticks import Act, Comparison, Difference, Side
from ironburst.system import local_time

SHOWN = 20  # jobs, without --json


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison for programs."""
    return {
        "ticks": comparison.ticks,
        "looks_between": comparison.looks,
        "from_s": comparison.from_s,
        "to_s": comparison.to_s,
        "clock_back": comparison.clock_back,
        "ticks_that_differ": comparison.differ,
        "first_difference": _difference(comparison.first) if comparison.first else None,
        "jobs": [_difference(difference) for difference in comparison.jobs],
        "recorded": _side(comparison.recorded),
        "replayed": _side(comparison.replayed),
        "committed_usd_difference": comparison.replayed.usd - comparison.recorded.usd,
        "hours": asdict(comparison.hours),
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "at_s": difference.at_s,
        "job": difference.job,
        "between_ticks": difference.between,
        "recorded": asdict(difference.recorded),
        "replayed": asdict(difference.replayed),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "launched_for": side.rents,
        "assigned": side.assigns,
        "waits": side.waits,
        "infeasible": side.infeasible,
        "releases": side.releases,
        "committed_usd": side.usd,
    }


def lines(comparison: Comparison, a_day: float | None) -> list[str]:
    """For people. `a_day`: MB that the record takes a day."""
    jobs, hours = comparison.jobs, comparison.hours
    if not comparison.ticks:
        return ["no tick could be read"]
    from_, to = local_time.at(comparison.from_s), local_time.at(comparison.to_s)
    size = "" if a_day is None else f", {a_day:.2g} MB a day"
    out = [f"{explain.plural(comparison.ticks, 'tick')} from {from_} to {to}{size}"]
    if comparison.clock_back:
        out.append(f"the clock went back {explain.plural(comparison.clock_back, 'time')}")
    if not comparison.first and not comparison.differ:
        return [*out, "nothing would have been decided otherwise"]
    out.append(f"{explain.plural(len(jobs), 'job')} otherwise, in {explain.plural(comparison.differ, 'tick')}")
    out += [f"  {_line(difference)}" for difference in jobs[:SHOWN]]
    out += [f"  and {len(jobs) - SHOWN} more: --json has all"] if len(jobs) > SHOWN else []
    out += ["", *_table(_side(comparison.recorded), _side(comparison.replayed))]
    out += ["", f"jobs that both rent for: {hours.sooner_h:.1f} h sooner and {hours.later_h:.1f} h later in all"]
    unknown = f"of {explain.plural(hours.unknown, 'job')} no record can tell"
    return [*out, f"jobs that only the replay rents for: {hours.saved_h:.1f} h less wait; {unknown}"]


def picture(comparison: Comparison) -> str:
    """The money that was committed, and the jobs that were decided otherwise, over time; SVG."""
    sides = {"recorded": comparison.recorded.course, "replayed": comparison.replayed.course}
    otherwise = [(first.at_s, number) for number, first in enumerate(comparison.jobs, 1)]
    money = {name: _steps(comparison, course) for name, course in sides.items()}
    return pictures.svg(
        [
            Panel("Committed to launches so far", "days", "USD", money),
            Panel("Jobs decided otherwise so far", "days", "jobs", {"jobs": _steps(comparison, otherwise)}),
        ]
    )


def _steps(comparison: Comparison, course: Sequence[tuple[float, float]]) -> Series:
    """What has one value up to the next moment, over days since the first tick."""
    from_s, to_s = comparison.from_s or 0.0, comparison.to_s or 0.0
    moments, values = [from_s], [0.0]
    for at_s, value in course:
        moments += [at_s, at_s]
        values += [values[-1], value]
    moments, values = [*moments, max(to_s, moments[-1])], [*values, values[-1]]
    return Series([(moment - from_s) / 86400 for moment in moments], values)


def _table(recorded: dict[str, Any], replayed: dict[str, Any]) -> list[str]:
    rows = [
        (name.replace("_", " "), *(_number(name, side[name]) for side in (recorded, replayed))) for name in recorded
    ]
    return [f"{name:24}{ours:>14}{theirs:>14}" for name, ours, theirs in (("", "recorded", "replayed"), *rows)]


def _number(name: str, value: float) -> str:
    return f"{value:,.2f}" if name.endswith("usd") else f"{value:,}"


def _line(difference: Difference) -> str:
    recorded, replayed = _words(difference.recorded), _words(difference.replayed)
    return f"{local_time.at(difference.at_s)} job {naming.called(difference.job)}: {recorded}; replayed: {replayed}"


def _words(act: Act) -> str:
    money = f" ({explain.usd(act.usd)})" if act.usd else ""
    return f"{act}{money}"
