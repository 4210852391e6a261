"""What fitting to a history found: as JSON values, for people, and as a picture."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ironburst.burst import explain
from ironburst.burst.limits import WaitTarget
from ironburst.replay import fitting, pictures
from ironburst.replay.fitting import Checked, Fit, Reached
from ironburst.replay.pictures import Panel, Series
from ironburst.replay.simulation_report import WAITS

KEEP = "Keep the defaults: leave burst.hours_per_gpu_hour out"


def as_json(fitted: Fit, target: WaitTarget) -> dict[str, Any]:
    """All that is shown. `hours_per_gpu_hour`: what is recommended; None: the defaults, and `why` says why. `regret`:
    by which part more the numbers cost on the parts that they weren't fitted to; below 0: less.
    """
    keeping = next((each for each in fitted.tried if each.hours == fitted.keeping), None)
    return {
        "wait_target_h": asdict(target),
        "hours_per_gpu_hour": fitted.recommended,
        "why": fitted.why,
        "regret": fitted.regret,
        "keeping": keeping and _reached(target, keeping.hours, keeping.whole),
        "unfitted": _reached(target, None, fitted.unfitted.whole),
        "unfitted_parts": [_reached(target, None, each) for each in fitted.unfitted.parts],
        "tried": [_reached(target, each.hours, each.whole) for each in fitted.tried],
        "checked": [_checked(target, each) for each in fitted.checked],
        "parts": fitting.PARTS,
    }


def _reached(target: WaitTarget, hours: float | None, reached: Reached) -> dict[str, Any]:
    name, ratio = fitting.worst(target, reached.waits)
    return {
        "hours_per_gpu_hour": hours,
        "usd": reached.usd,
        "waits": {name: getattr(reached.waits, name) for name in WAITS},
        "longest": name,
        "over_target": ratio,
        "not_rented": reached.not_rented,
    }


def _checked(target: WaitTarget, each: Checked) -> dict[str, Any]:
    name, over = each.over
    allowed = {"part": each.part + 1, "usd_unfitted": each.unfitted.usd, "longest_allowed": name, "over_allowed": over}
    return allowed | _reached(target, each.hours, each.reached)


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
        note = "  <- fitted" if each["hours_per_gpu_hour"] == said["hours_per_gpu_hour"] else ""
        out.append(_row(f"{each['hours_per_gpu_hour']:g}", each) + note)
    out.append(_row("not fitted", said["unfitted"]))
    if said["checked"]:
        out += ["", "Each part, with what the other parts gave, and not fitted:"]
    for each in said["checked"]:
        out.append(_row(f"part {each['part']} of {said['parts']}, {each['hours_per_gpu_hour']:g}", each))
        out.append(_row("  not fitted", said["unfitted_parts"][each["part"] - 1]))
    return [*out, "", *_found(said)]


def _row(name: str, reached: dict[str, Any]) -> str:
    return f"{name:22}{explain.usd(reached['usd']):>14}" + _waits(reached["waits"])


def _waits(hours: dict[str, float]) -> str:
    return "".join(f"{explain.duration(3600 * hours[name]):>14}" for name in WAITS)


def _found(said: dict[str, Any]) -> list[str]:
    out = [f"{KEEP}. {_why(said)}"]
    if (hours := said["hours_per_gpu_hour"]) is not None:
        won = f"the longest with which none of {said['parts']} parts waits longer than wanted, or than not fitted"
        out = [f"Fitted: burst.hours_per_gpu_hour: {hours:g} ({won})."]
    if said["checked"]:
        out.append(_measured(said))
    if said["unfitted"]["over_target"] > fitting.LATE or any(
        part["over_target"] > fitting.LATE for part in said["unfitted_parts"]
    ):
        out.append(_not_kept(said))
    return out


def _why(said: dict[str, Any]) -> str:
    match said["why"]:
        case "quiet":
            return (
                f"In most of {said['parts']} parts even {fitting.HOURS[-1]:g} hours for each GPU-hour make no wait as "
                "long as it may be: how long is too long can't be known from them. A busier or a longer history could "
                "tell (--jobs)."
            )
        case "none":
            return (
                f"Even {fitting.HOURS[0]:g} hours for each GPU-hour make the waits of some part longer than is wanted, "
                "and than the defaults do."
            )
        case "no_gain":
            return "Fitted to some parts, a number saves less than 1% on the others."
        case "busier":
            return (
                "The number that its parts give does worse than the defaults where the same jobs come a sixth faster: "
                "in a busier month it would."
            )
        case "dearer" | "longer":
            return "Fitted to some parts, a number does worse on others: one for all isn't to be had from this history."
    return ""


def _measured(said: dict[str, Any]) -> str:
    """The regret, on parts that were kept aside."""
    checked = said["checked"]
    paid, unfitted = sum(each["usd"] for each in checked), sum(each["usd_unfitted"] for each in checked)
    dearest = max(checked, key=lambda each: each["usd"] - each["usd_unfitted"])
    far = max(checked, key=lambda each: each["over_allowed"])
    money = f"with what the others gave they paid {explain.usd(paid)}, with the defaults {explain.usd(unfitted)}"
    of_part = f"part {dearest['part']}: {_more(dearest['usd'], dearest['usd_unfitted'])}"
    wait = f"the {WAITS[far['longest_allowed']]} of part {far['part']} was {far['over_allowed']:.2f} of what it may be"
    return f"Measured on each part kept aside: {money} ({_more(paid, unfitted)}; at worst {of_part}); {wait}, at worst."


def _more(usd: float, than: float) -> str:
    return f"{usd / than - 1:+.1%}" if than else explain.usd(usd)


def _not_kept(said: dict[str, Any]) -> str:
    """The defaults don't keep what is wanted: what would, and what it costs."""
    worst = max([said["unfitted"], *said["unfitted_parts"]], key=lambda each: each["over_target"])
    out = f"The defaults don't keep what is wanted: the {WAITS[worst['longest']]} came to {worst['over_target']:.2f} of"
    out += " it. "
    if keeping := said["keeping"]:
        more = _more(keeping["usd"], said["unfitted"]["usd"])
        return f"{out}{keeping['hours_per_gpu_hour']:g} keeps all five in every part, and paid {more}: yours to choose."
    out += "No number keeps all five in every part: want longer waits"
    if late := said["unfitted"]["not_rented"]:
        late_jobs = explain.plural(late, "late job")
        out += f", or declare more to rent, for {late_jobs} nothing could be (ironburst simulate says why)"
    return f"{out}."


def picture(fitted: Fit, target: WaitTarget) -> str:
    """The frontier: what is paid over the mean wait and over the 99th percentile; SVG."""
    names = [f"{each.hours:g}" for each in fitted.tried]
    usd = [each.whole.usd for each in fitted.tried]
    panels = []
    for name in ("mean_h", "p99_h"):
        waits = [getattr(each.whole.waits, name) for each in fitted.tried]
        wanted, unfitted = [getattr(target, name)] * 2, fitted.unfitted.whole
        series = {
            "hours per GPU-hour": Series(waits, usd, marks=True, names=names),
            "not fitted": Series([getattr(unfitted.waits, name)], [unfitted.usd], marks=True, names=[""]),
            "wanted": Series(wanted, [0.0, max([*usd, unfitted.usd])]),
        }
        panels.append(Panel(f"What is paid over the {WAITS[name]}", "hours", "USD", series))
    return pictures.svg(panels)
