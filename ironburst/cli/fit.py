"""`ironburst fit TRACE`: how long jobs may wait and still keep the waits that are wanted, from one's history."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from typing import Any

from ironburst.burst import Policy, explain
from ironburst.burst.limits import WaitTarget
from ironburst.cli import Subparsers, simulate, site_options, stack_file, trials
from ironburst.replay import fitting, pictures
from ironburst.replay.fitting import Fit, Reached
from ironburst.replay.outcome import Played
from ironburst.replay.pictures import Panel, Series
from ironburst.replay.traces import Trace
from ironburst.system.bad_input import BadInput

JOBS = 10_000
DESCRIPTION = (
    "How many hours a job may wait for each GPU-hour that it runs before it is rented for, so that the waits of the "
    "stack file's burst.wait_target are just kept: burst.hours_per_gpu_hour. Which it is depends on the workload; it "
    "is found by playing parts of your own history, all of which have to keep them. How sure that is comes from later "
    f"parts, each played with what the parts before it gave. {site_options.EXIT_CODES}"
)


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "fit",
        help="how long jobs may wait, from your own history",
        description=DESCRIPTION,
        epilog="example: ironburst fit jobs.txt --config stacks/Pulumi.prod.yaml --out fitted",
    )
    trials.add_inputs(parser, config_help="the cluster, and its burst.wait_target", trace_help="as for simulate")
    newest = "of the history, the newest, at most (default: %(default)s)"
    parser.add_argument("--jobs", type=int, default=JOBS, metavar="N", help=newest)
    trials.add_outputs(parser, "fit")
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Play the history, and print or write what it gives."""
    if arguments.jobs < fitting.LEAST_JOBS:
        raise BadInput(f"--jobs is {arguments.jobs}; allowed is {fitting.LEAST_JOBS} or more")
    declared = stack_file.declared(arguments.config, arguments.scheduler)
    limits = declared.policy.limits
    if limits is None:
        raise BadInput(
            f"{arguments.config}: it has no burst.wait_target, and its waits are what is fitted to: give one"
        )
    whole = trials.read(arguments.trace)
    trace = whole.take(slice(max(0, len(whole) - arguments.jobs), None))
    trials.make(arguments.out)

    def play(part: Trace, policy: Policy) -> Played:
        return simulate.played_on(part, replace(declared, policy=policy), None)

    try:
        fitted = fitting.fit(trace, declared.policy, play, trials.bar(sys.stderr, "limits"))
    except ValueError as error:
        raise BadInput(f"{arguments.trace}: {error}") from None
    said = {"trace": arguments.trace.name, "config": str(arguments.config), "jobs": len(whole), "played": len(trace)}
    said["days"] = float(trace.submit_s[-1] - trace.submit_s[0]) / 86400
    said |= as_json(fitted, limits.target) | {"declared_hours_per_gpu_hour": limits.hours_per_gpu_hour}
    if arguments.out:
        trials.write(arguments.out, "fit", said, picture(fitted, limits.target), lines(said))
    print(json.dumps(said) if arguments.json else "\n".join(lines(said)))
    return 0


def as_json(fitted: Fit, target: WaitTarget) -> dict[str, Any]:
    """All that is shown."""
    unfitted = fitted.unfitted
    return {
        "wait_target_h": asdict(target),
        "hours_per_gpu_hour": fitted.best.hours,
        "kept": fitted.kept,
        "not_rented": fitted.best.whole.not_rented,
        "unfitted": _reached(target, None, unfitted.whole),
        "tried": [_reached(target, each.hours, each.whole) for each in fitted.tried],
        "checked": [
            {"part": each.part + 1, **_reached(target, each.tried.hours, each.reached)}
            | {"usd_unfitted": unfitted.parts[each.part].usd}
            for each in fitted.checked
        ],
        "parts": fitting.PARTS,
    }


def _reached(target: WaitTarget, hours: float | None, reached: Reached) -> dict[str, Any]:
    name, ratio = fitting.worst(target, reached.waits)
    waits = {name: getattr(reached.waits, name) for name in simulate.WAITS}
    return {"hours_per_gpu_hour": hours, "usd": reached.usd, "waits": waits, "longest": name, "over_target": ratio}


def lines(said: dict[str, Any]) -> list[str]:
    """What was found, for people."""
    newest = "" if said["played"] == said["jobs"] else f"the newest {said['played']:,} of "
    head = f"{said['trace']}: {newest}{said['jobs']:,} jobs, {said['days']:.1f} days"
    out = [
        head,
        "",
        f"{'hours per GPU-hour':22}{'paid':>14}" + "".join(f"{word:>14}" for word in simulate.WAITS.values()),
    ]
    out.append(f"{'wanted':22}{'':>14}" + _waits(said["wait_target_h"]))
    for each in said["tried"]:
        note = "  <- fitted" if said["kept"] and each["hours_per_gpu_hour"] == said["hours_per_gpu_hour"] else ""
        out.append(f"{each['hours_per_gpu_hour']:<22g}{explain.usd(each['usd']):>14}" + _waits(each["waits"]) + note)
    out.append(f"{'not fitted':22}{explain.usd(said['unfitted']['usd']):>14}" + _waits(said["unfitted"]["waits"]))
    out += ["", "Later parts, with what the parts before them gave:"]
    for each in said["checked"]:
        part = f"part {each['part']} of {said['parts']}, {each['hours_per_gpu_hour']:g}"
        out.append(f"{part:22}{explain.usd(each['usd']):>14}" + _waits(each["waits"]))
    return [*out, "", *_found(said), _sure(said)]


def _waits(hours: dict[str, float]) -> str:
    return "".join(f"{explain.duration(3600 * hours[name]):>14}" for name in simulate.WAITS)


def _found(said: dict[str, Any]) -> list[str]:
    if said["kept"]:
        longest = f"the longest with which each of {said['parts']} parts keeps all five waits"
        return [f"Fitted: burst.hours_per_gpu_hour: {said['hours_per_gpu_hour']:g} ({longest})."]
    first = said["tried"][0]
    which = f"{simulate.WAITS[first['longest']]} is {first['over_target']:.2f} of what is wanted"
    hours = f"{first['hours_per_gpu_hour']:g} hours for each GPU-hour"
    out = [f"No limits keep the waits that are wanted in every part: with {hours} the {which}. Want longer ones."]
    if late := said["not_rented"]:
        late_jobs = explain.plural(late, "late job")
        out.append(f"Or declare more to rent: for {late_jobs} nothing could be (ironburst simulate says why).")
    return out


def _sure(said: dict[str, Any]) -> str:
    """How sure it is."""
    checked = said["checked"]
    kept = sum(each["over_target"] <= 1 for each in checked)
    far = max(checked, key=lambda each: each["over_target"])
    worst = (
        f"the furthest was the {simulate.WAITS[far['longest']]} of part {far['part']}, {far['over_target']:.2f} of it"
    )
    paid, unfitted = sum(each["usd"] for each in checked), sum(each["usd_unfitted"] for each in checked)
    money = f"They paid {explain.usd(paid)}, not fitted {explain.usd(unfitted)}."
    return f"How sure: {kept} of {len(checked)} later parts kept what is wanted; {worst}. {money}"


def picture(fitted: Fit, target: WaitTarget) -> str:
    """The frontier: what is paid over the mean wait and over the 99th percentile; SVG."""
    names = [f"{each.hours:g}" for each in fitted.tried]
    usd = [each.whole.usd for each in fitted.tried]
    panels = []
    for name in ("mean_h", "p99_h"):
        waits = [getattr(each.whole.waits, name) for each in fitted.tried]
        wanted = [getattr(target, name)] * 2
        series = {
            "hours per GPU-hour": Series(waits, usd, marks=True, names=names),
            "wanted": Series(wanted, [0.0, max(usd, default=0.0)]),
        }
        panels.append(Panel(f"What is paid over the {simulate.WAITS[name]}", "hours", "USD", series))
    return pictures.svg(panels)
