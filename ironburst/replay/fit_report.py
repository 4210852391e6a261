"""What fitting to a history found: as JSON values, for people, and as a picture."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ironburst.burst import explain
from ironburst.burst.limits import WaitTarget
from ironburst.replay import fitting, pictures
from ironburst.replay.fitting import Fit, Reached
from ironburst.replay.pictures import Panel, Series
from ironburst.replay.simulation_report import WAITS


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
    waits = {name: getattr(reached.waits, name) for name in WAITS}
    return {"hours_per_gpu_hour": hours, "usd": reached.usd, "waits": waits, "longest": name, "over_target": ratio}


def lines(said: dict[str, Any]) -> list[str]:
    """What was found, for people."""
    newest = "" if said["played"] == said["jobs"] else f"the newest {said['played']:,} of "
    head = f"{said['trace']}: {newest}{said['jobs']:,} jobs, {said['days']:.1f} days"
    out = [
        head,
        "",
        f"{'hours per GPU-hour':22}{'paid':>14}" + "".join(f"{word:>14}" for word in WAITS.values()),
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
    return "".join(f"{explain.duration(3600 * hours[name]):>14}" for name in WAITS)


def _found(said: dict[str, Any]) -> list[str]:
    if said["kept"]:
        longest = f"the longest with which each of {said['parts']} parts keeps all five waits"
        return [f"Fitted: burst.hours_per_gpu_hour: {said['hours_per_gpu_hour']:g} ({longest})."]
    first = said["tried"][0]
    which = f"{WAITS[first['longest']]} is {first['over_target']:.2f} of what is wanted"
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
    worst = f"the furthest was the {WAITS[far['longest']]} of part {far['part']}, {far['over_target']:.2f} of it"
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
        panels.append(Panel(f"What is paid over the {WAITS[name]}", "hours", "USD", series))
    return pictures.svg(panels)
