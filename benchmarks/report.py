"""benchmarks/results.md and its pictures, from benchmarks/results/*.json. A result is known by what is in it, not by
its name.

Nothing here is measured or rounded up: what was asked and wanted is written down here, what was reached comes from the
files.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import days, dollars, full_days, hosts, mix, plays, report_pictures, watch
from benchmarks.figures import WAITS
from benchmarks.spot_peers import SETTINGS

RESULTS = Path(__file__).parent / "results"
PAGE = "results.md"  # beside the folder
NOT_MEASURED = "not measured"
PARTS = (("all", ""), ("aside", ", the part kept aside"))
PHILLY = "philly_first70d.csv.xz"
DATA = (
    "Traces: Microsoft Philly, September to November 2017 (its first 70 days; CC-BY-4.0); Chronus (Philly with "
    "deadlines, 2021); Alibaba openb (2023). Prices: us-east-1, on demand of 2026-07-20, spot of 2025-06-28."
)

HEADER = "<!-- written by `make bench` (benchmarks/report.py): change the benchmarks, not this file -->"
HOW_TO_READ = (
    "A figure is better the smaller it is. Every line names the commit that was measured; `make bench` measures anew."
)
Result = Mapping[str, Any]  # as it is in its file


@dataclass(frozen=True)
class Line:
    """One case of a row: a figure that is to be at most `asked`, at best `wanted`. `note`: what else must be said with
    it; `kept`: the waits are, without which the figure counts for nothing.
    """

    case: str
    asked: float | None
    wanted: float | None
    reached: float | None
    note: str = ""
    source: Result | None = None
    kept: bool = True


def read(folder: Path) -> list[dict[str, Any]]:
    """Every result in a folder, with its file's name under `file`. One that can't be read is left out; `unreadable`
    names it.
    """
    results = []
    for path in sorted(folder.glob("*.json")):
        try:
            value = json.loads(path.read_text())
        except (OSError, ValueError):
            value = None
        results.append({"file": path.name, **(value if isinstance(value, dict) else {"unreadable": True})})
    return results


def of_burst(results: Iterable[Result], **wanted: Any) -> Result | None:
    """The result of benchmarks.burst with these settings: the whole trace before a part of it, more seeds before
    fewer.
    """
    order = {"all": 2, "first": 1, "aside": 0}
    fitting = [
        result
        for result in results
        if {"ours", "peers"} <= result.keys() and all(result.get(key) == value for key, value in wanted.items())
    ]
    return max(fitting, key=lambda one: (order.get(one.get("part", "all"), 0), one.get("seeds", 0)), default=None)


def _with(results: Iterable[Result], *keys: str) -> Result | None:
    """The first result that has all of these."""
    return next((result for result in results if set(keys) <= result.keys()), None)


# ---- the rows: what each asks, and its lines

TITLES = (
    "Run times known: rented GPU-hours over Starburst's (whole queue), all five waits no longer than its own",
    "The frontier at 512 GPUs: the five waits may be so many times Starburst's",
    "Run times unknown (time limits of 2 to 5 times them, learned online), over Starburst with known ones, 512 GPUs",
    "Rented GPU-hours over the certified bound, 512 GPUs",
    "Dollars over what Starburst pays for the cheapest fitting instances, on demand",
    "Other traces: rented GPU-hours over the best peer's",
    "Paid for idle leases over the best in hindsight",
    "The 70-day trace through decide() on one core, seconds",
    "One decide(): 10,000 pending jobs, 2,000 nodes, 84 types, seconds",
    "Random scenarios with failures: times that a hard ceiling was passed",
    "Random days with accidents, a controller that comes back: what was lost",
    "Random days with accidents, a controller killed for ever: what was lost, and the last rented node's end, seconds",
    "Instances for 20,000 pending pods (openb): cost over the certified bound, cost and seconds over karpenter's",
    "A trace as a queue of pods and as one of Slurm's jobs: jobs that begin otherwise",
    "5,000 pending pods, 1,000 nodes: from the cluster's watches to a decision",
    "Random sequences of submit, finish, kill and drain: times that a team's guarantee was broken",
    "The same shares in Slurm and in Kubernetes, one workload: the largest difference, in parts of the GPU-seconds",
    "So many declared hosts: seconds and MB of `ansible-inventory --list`, seconds of a converge with nothing to do",
    "Days of 2,000 jobs with every fault of `make test-faults` at a random moment: what was lost",
    "Random days with states that last: what was paid for work that ended or never started, beyond the table of times",
    "Watching 60 nodes of 8 GPUs: GB of Prometheus a day",
    "What `ironburst fit` says of a third of a trace, on the other thirds, over not fitted: at worst",
    "Jobs with a deadline, on spot and on demand (120 windows of real probes): cost over that of uniform progress",
    "Random days of a site that rents in three clouds at once, with accidents: what was lost",
)


def rows(results: list[dict[str, Any]]) -> Iterator[tuple[str, list[Line]]]:
    """(title, lines) of the rows."""
    known = of_burst(results, trace=PHILLY, pool_gpus=512, run_times="known", wait_factor=1.0)
    lines_of_rows = (
        _known_run_times(results),
        _frontier(results),
        _unknown_run_times(results),
        _over_bound(known),
        _dollars(results),
        _other_traces(results),
        _idle(_with(results, "sequences", "adversarial")),
        _speed(known, _with(results, "of a million, minutes")),
        _one_decision(_with(results, "seconds for all (<= 1)")),
        _ceilings(_with(results, "times a ceiling was passed (0)")),
        _days(results, dead=False),
        _days(results, dead=True),
        _mix(results),
        _schedulers(_with(results, "schedulers")),
        _pending_pods(_with(results, "memory_mb")),
        _shares(results),
        _share_table(_with(results, "largest_difference")),
        _hosts(_with(results, hosts.EXPONENTS)),
        _full_days(_with(results, "full_days")),
        _lasting(results),
        _watch(_with(results, watch.WATCHED)),
        _fit(_with(results, "fit", "dearest")),
        _spot(_with(results, "seen_before", "parts")),
        _cloud_days(_with(results, days.LEFT)),
    )
    for number, (title, lines) in enumerate(zip(TITLES, lines_of_rows, strict=True), 1):
        yield f"{number}. {title}", list(lines)


def _burst(results: list[dict[str, Any]], case: str, asked: float, wanted: float, **settings: Any) -> Line:
    settings = {"trace": PHILLY, "pool_gpus": 512, "run_times": "known", "wait_factor": 1.0} | settings
    return _line(case, asked, wanted, of_burst(results, **settings))


def _known_run_times(results: list[dict[str, Any]]) -> Iterator[Line]:
    for part, words in PARTS:
        for gpus, asked in ((512, 0.98), (384, 0.99), (640, 0.93)):
            yield _burst(results, f"{gpus} GPUs{words}", asked, 0.90, pool_gpus=gpus, part=part)


def _frontier(results: list[dict[str, Any]]) -> Iterator[Line]:
    for factor, asked, wanted in ((1.0, 0.98, 0.85), (1.5, 0.93, 0.80), (2.0, 0.87, 0.75)):
        yield _burst(results, f"{factor:g} x", asked, wanted, wait_factor=factor)


def _unknown_run_times(results: list[dict[str, Any]]) -> Iterator[Line]:
    cases = (("factor drawn for each job", "limits"), ("factor depends on the queue", "limits-by-queue"))
    for part, words in PARTS:
        for case, told in cases:
            yield _burst(results, f"{case}{words}", 1.05, 0.98, run_times=told, part=part)


def _over_bound(known: Result | None) -> Iterator[Line]:
    yield Line("the same five limits", 1.57, 1.4, _ratio(known, "ours / bound"), _bound_note(known), known)


def _other_traces(results: list[dict[str, Any]]) -> Iterator[Line]:
    for part, words in PARTS:
        yield _best_peer(f"Chronus{words}", of_burst(results, trace="chronus_philly_slo.csv.xz", part=part))
    yield _best_peer("openb", of_burst(results, trace="openb2023_pods_default.csv.xz"))


def _idle(result: Result | None) -> Iterator[Line]:
    yield Line("mean", 1.3, 1.15, result and result.get("mean"), "", result)
    yield Line("worst", 2.0, None, result and result.get("max"), "never over 2", result)


def _speed(known: Result | None, million: Result | None) -> Iterator[Line]:
    whole = known if known and known.get("part") == "all" else None
    yield Line("512 GPUs", 600.0, 180.0, whole and whole["ours"]["wall_s"], _speed_note(whole), whole)
    minutes, note = million and million["of a million, minutes"], ""
    if million:
        note = f"{million['jobs']:,} were played, {million['decisions']:,} decisions, {million[plays.MEMORY]:,} MB"
    yield Line("a million jobs, in dollars", 900.0, None, minutes and 60 * minutes, note, million)


def _one_decision(result: Result | None) -> Iterator[Line]:
    reached = result and result["seconds for all (<= 1)"]
    slope = f"slope {result['slope (1 is linear)']} (1 is linear)" if result else ""
    yield Line("all jobs", 1.0, 0.2, reached, slope, result)


def _ceilings(result: Result | None) -> Iterator[Line]:
    passed = result and result["times a ceiling was passed (0)"]
    yield Line(_scenarios(result), 0.0, 0.0, passed, "", result)


def _days(results: list[dict[str, Any]], *, dead: bool) -> Iterator[Line]:
    of_days = [result for result in results if days.OUTLIVED in result and result["dead"] == dead]
    of_days = [result for result in of_days if not result.get("kubernetes") and not result.get("only")]
    result = max(of_days, key=lambda one: one["days"], default=None)
    note = f"{result['days']:,} days, {result['jobs']:,} jobs, {result['launches']:,} launches" if result else ""
    for case in (days.LOST, days.AGAIN, days.IDLE, days.BEYOND):
        yield Line(case.removesuffix(" (0)"), 0.0, None, result and float(len(result[case])), note, result)
    if dead:
        allowed = result and result["allowed of that, s"]
        note = f"of {allowed:g} that it may: {days.DEAD_MAN_S:g} declared, a boot and a look" if result else ""
        yield Line(days.OUTLIVED.removesuffix(", s"), allowed, None, result and result[days.OUTLIVED], note, result)


def _cloud_days(result: Result | None) -> Iterator[Line]:
    note = ""
    if result:
        short = "" if result["days"] >= 1000 else " (1,000 are asked)"
        note = f"{result['days']:,} days of {result['hours']:g} hours{short}, "
        note += f"{result['jobs']:,} jobs, {result['launches']:,} launches"
    for case in (days.LOST, days.AGAIN, days.IDLE, days.BEYOND, days.LEFT):
        yield Line(case.removesuffix(" (0)"), 0.0, None, result and float(len(result[case])), note, result)


def _full_days(result: Result | None) -> Iterator[Line]:
    note = ""
    if result:
        faults = f"{sum(result['faults'].values()):,} faults"
        note = f"{result['full_days']} days, {result['jobs']:,} jobs, {result['launches']:,} launches, {faults}"
    for case in full_days.ZEROES:
        yield Line(case.removesuffix(" (0)"), 0.0, None, result and float(len(result[case])), note, result)


def _lasting(results: list[dict[str, Any]]) -> Iterator[Line]:
    for kubernetes, kind in ((False, "Slurm"), (True, "Kubernetes")):
        of_kind = (each for each in results if each.get("states that last") and each["kubernetes"] == kubernetes)
        result = max(of_kind, key=lambda one: one["states that last"], default=None)
        note = ""
        if result:
            usd = result["paid for states that last, USD"]
            note = f"{result['days']:,} days, {result['states that last']:,} states, {usd:,.2f} USD paid for them"
        yield Line(f"{kind}: USD", 0.0, None, result and float(result[days.LASTING]), note, result)
        for case in (days.SILENT, days.LOST, days.AGAIN, days.IDLE, days.BEYOND):
            reached = result and float(len(result[case]))
            yield Line(f"{kind}: {case.removesuffix(' (0)')}", 0.0, None, reached, note, result)


def _mix(results: list[dict[str, Any]]) -> Iterator[Line]:
    for without, words in (([], ""), (["g5g"], ", without Arm's types")):
        mixes = (result for result in results if mix.COST in result.get("ratios", {}) and result["without"] == without)
        result = max(mixes, key=lambda one: one["pods"], default=None)
        for case, (most, best) in mix.ASKED.items() if not without else ((mix.COST, mix.ASKED[mix.COST]),):
            yield Line(case + words, most, best, result and result["ratios"].get(case), _mix_note(result), result)


def _schedulers(result: Result | None) -> Iterator[Line]:
    note = ""
    if result:
        pods = result["schedulers"]["kubernetes"]
        note = f"{result['jobs']:,} jobs, {pods['decisions']:,} decisions; rented {pods['rented_gpu_hours']:,.0f} GPU-h"
    for name, case in (("kubernetes", "Kubernetes' objects"), ("records", "the policy's own records")):
        otherwise = result and float(result["schedulers"][name]["jobs_otherwise"])
        yield Line(f"{case}, against Slurm's", 0.0, None, otherwise, note, result)


def _pending_pods(result: Result | None) -> Iterator[Line]:
    note = ""
    if result:
        note = f"{result['pods']:,} pods, {result['nodes']:,} nodes; the first round {result['first_s']:g} s"
    asked = {"seconds": (2.0, 0.5), "memory_mb": (500.0, None), "lists": (0.0, None)}
    words = {"seconds": "a round, s", "memory_mb": "memory at its most, MB", "lists": "lists in all later rounds"}
    for key, (most, best) in asked.items():
        yield Line(words[key], most, best, result and float(result[key]), note, result)


def _shares(results: list[dict[str, Any]]) -> Iterator[Line]:
    for name, case in (("rules", "the rules alone"), ("kubernetes", "kube-apiserver and kube-scheduler")):
        played = [each for each in results if "guarantees_broken" in each and each["scheduler"] == name]
        result, note = max(played, key=lambda one: one["sequences"], default=None), ""
        if result:
            note = f"{result['sequences']} sequences, {result['steps']:,} steps, {result['preempted']} jobs ended"
            note += f"; guarantees met within {result['slowest_guarantee_s']:g} s" if name == "kubernetes" else ""
        yield Line(case, 0.0, None, result and float(result["guarantees_broken"]), note, result)


def _share_table(result: Result | None) -> Iterator[Line]:
    for n, part in enumerate(result["parts"] if result else ("all parts",)):
        note = ""
        if result:
            rows = ((place, result["parts"][part][place]) for place in ("slurm", "kubernetes", "rules"))
            note = "; ".join(f"{place} {', '.join(f'{value:.3f}' for value in row.values())}" for place, row in rows)
            note += f" ({', '.join(result['parts'][part]['rules'])})" if not n else ""
        yield Line(part, 0.05, None, result and result["differences"][part], note, result)


def _hosts(result: Result | None) -> Iterator[Line]:
    """The asked figures are for 1,000 hosts; a smaller size has to stay below them, too."""
    of_sizes = result["hosts"] if result else {str(size): {} for size in hosts.SIZES}
    for size, steps in of_sizes.items():
        for what, figure, asked in hosts.ASKED:
            step = steps.get(what, {})
            note = f"{step['wall_s']:g} s by the clock" if step and figure == "seconds" else ""
            case = f"{int(size):,} hosts, {what}: {'MB' if figure == 'memory_mb' else 'seconds of the processor'}"
            yield Line(case, asked, None, step.get(figure), note, result)
    for what in (hosts.LISTING, hosts.RECEIPTS):
        exponent = result and result[hosts.EXPONENTS][what]
        yield Line(f"{what}: exponent of seconds over hosts", hosts.LINEAR, None, exponent, "1 is linear", result)


def _watch(result: Result | None) -> Iterator[Line]:
    note = ""
    if result:
        note = f"{result['series']:,} series, {result['bytes_a_sample']:g} bytes a sample before compaction; "
        note += (
            f"{result['memory_mb']:,} MB and {result['cpu_share']:.0%} of a core after {result['minutes']:g} minutes"
        )
    yield Line(
        "targets that are synthetic, Prometheus that is real", 1.0, None, result and result[watch.WATCHED], note, result
    )


def _fit(result: Result | None) -> Iterator[Line]:
    note = {"dearest": "", "longest": ""}
    if result:
        tests = sum(len(case["rows"]) for case in result["fit"].values())
        said = f'{result["recommended"]} of {tests} times a number, else "keep the defaults"'
        for name, before in (("dearest", "dearest_longest_kept"), ("longest", "longest_longest_kept")):
            was = "more than nothing" if result[before] is None else f"{result[before]:.2f}"
            note[name] = f"{said}; the longest number that every part keeps: {was}"
    yield Line("rented GPU-hours", 1.01, 1.0, result and result["dearest"], note["dearest"], result)
    yield Line("the longest of the five waits", 1.03, 1.0, result and result["longest"], note["longest"], result)


def _spot(result: Result | None) -> Iterator[Line]:
    for setting in SETTINGS:
        of = result and result["parts"]["all"][setting.name]
        note = ""
        if result and of:
            aside, missed = result["parts"]["aside"][setting.name]["ratio"], of["missed"]["ours"]
            note = f"{missed} deadlines missed; aside {aside:.3f}; best in hindsight {of['optimum_ratio']:.3f}; "
            note += f"without `deadline_spare` {of['without_ratio']:.3f}"
        yield Line(setting.name, 0.95, None, of and of["ratio"], note, result, not of or not of["missed"]["ours"])


def _mix_note(result: Result | None) -> str:
    if result is None:
        return ""
    ours, karpenter = result["ours"], result["karpenter"]
    note = f"{result['pods']:,} pods, {result['types']} types with a price; {ours['usd_per_hour']:,.0f} USD/h "
    note += f"in {ours['seconds']:.1f} s"
    if "skipped" in karpenter:
        return f"{note}; no karpenter: {karpenter['skipped']}"
    return f"{note}; karpenter {karpenter['usd_per_hour']:,.0f} USD/h in {karpenter['seconds']:.0f} s"


def _line(case: str, asked: float, wanted: float, result: Result | None, peer: str = "starburst") -> Line:
    """Rented GPU-hours over a peer's, with the waits over Starburst's (times the wait factor)."""
    if result is None:
        return Line(case, asked, wanted, None)
    note, kept = _waits(result["ratios"]["ours / starburst"], result.get("wait_factor", 1.0))
    if (patience := result.get("patience", 1.0)) != 1:
        note += f"; told {patience:g} times the waits"
    if hours := result.get("hours_per_gpu_hour"):
        note += f"; {hours:g} h for each GPU-hour, the longest that kept them on the first part"
    elif result.get("limits") == "fitted":
        note += "; fitted: the defaults are kept"
    return Line(case, asked, wanted, _ratio(result, f"ours / {peer}"), note + _part(result), result, kept)


def _waits(ratios: Mapping[str, float | None], factor: float = 1.0) -> tuple[str, bool]:
    used = [round(value / factor, 3) for name in WAITS if (value := ratios.get(name)) is not None]
    kept = max(used, default=0.0) <= 1
    shown = ", ".join(f"{value:.2f}" for value in used)
    return f"waits {'kept' if kept else 'NOT kept'}: {shown} of what they may be", kept


def _part(result: Result) -> str:
    words = {
        "aside": "; the last quarter of the jobs only",
        "first": "; the first three quarters of the jobs only",
    }
    part = words.get(result.get("part", ""), "")
    return f"{part}; {result['seeds']} seed{'s' if result['seeds'] > 1 else ''}" if "seeds" in result else part


def _ratio(result: Result | None, name: str) -> float | None:
    return result["ratios"].get(name, {}).get("rented_gpu_hours") if result else None


def _bound_note(result: Result | None) -> str:
    if not result or not result.get("bound"):
        return ""
    bound = result["bound"]
    return f"bound {bound['rented_gpu_hours']:,.0f} GPU-h, found in {bound['wall_s']:.0f} s{_part(result)}"


def _speed_note(result: Result | None) -> str:
    return f"peer {result['peers']['starburst']['jobs_per_s']:,.0f} jobs/s (a fair one has 1,500)" if result else ""


def _scenarios(result: Result | None) -> str:
    counts = (value for key, value in (result or {}).items() if key.startswith("scenarios") and isinstance(value, int))
    count = next(counts, None)
    return f"{count:,} scenarios" if count else "scenarios"


def _dollars(results: list[dict[str, Any]]) -> Iterator[Line]:
    priced = [result for result in results if isinstance(result.get("ratios"), dict) and "prices" in result]
    for row, words in (("a", "on demand only"), ("b", "70% may use spot"), ("c", "that, and a reservation")):
        case, most, best = f"({row}) {words}", dollars.ASKED[row], dollars.WANTED[row]
        with_row = [result for result in priced if row in result["ratios"]]
        result = max(with_row, key=lambda result: (not result.get("days"), result.get("seeds", 0)), default=None)
        if result is None:
            yield Line(case, most, best, None)
            continue
        ratio, days = result["ratios"][row], f"; days {result['days']} of the trace only" if result.get("days") else ""
        note, kept = _waits(ratio, result.get("wait_factor", 1.0))
        if row == "c" and "reserved" in result and not any(result["reserved"]):
            note += "; `size` recommends to reserve nothing"
        yield Line(case, most, best, ratio["usd"], note + days + _part(result), result, kept)


def _best_peer(name: str, result: Result | None) -> Line:
    if result is None:
        return Line(name, 1.0, 0.9, None)
    best = min(result["peers"], key=lambda peer: result["peers"][peer]["rented_gpu_hours"])
    line = _line(f"{name}, {result['pool_gpus']} GPUs", 1.0, 0.9, result, best)
    return replace(line, note=f"over {best}; {line.note}")


# ---- the page


def page(results: list[dict[str, Any]], drawn: Iterable[str] = ()) -> str:
    out = [HEADER, "# What was measured", "", DATA, "", HOW_TO_READ, ""]
    for title, lines in rows(results):
        out += [f"## {title}", "", "| case | asked | wanted | reached | | measured |", "|---|---|---|---|---|---|"]
        for line in lines:
            cells = (line.case, _most(line.asked), _most(line.wanted), _reached(line), line.note, _source(line.source))
            out.append(f"| {' | '.join(cells)} |")
        out.append("")
    out += [f"![{name}](results/{name})\n" for name in drawn]
    if unreadable := [result["file"] for result in results if result.get("unreadable")]:
        out += [f"Not readable, so not shown: {', '.join(unreadable)}.", ""]
    return "\n".join(out).rstrip() + "\n"


def _most(value: float | None) -> str:
    return "-" if value is None else f"<= {value:g}"


def _reached(line: Line) -> str:
    reached = line.reached
    if reached is None:
        return NOT_MEASURED
    if not line.kept:
        return f"{reached:.3f} (waits not kept)"
    shown = f"{reached:,.0f}" if reached >= 100 or reached == int(reached) else f"{reached:.3f}"
    if line.wanted is not None and reached <= line.wanted:
        return f"**{shown}** (wanted)"
    return f"**{shown}** (asked)" if line.asked is not None and reached <= line.asked else f"{shown} (missed)"


def _source(result: Result | None) -> str:
    if result is None:
        return ""
    ran = result.get("run") or {}
    words = (f"`{result['file']}`", ran.get("commit") or _committed(result["file"]), ran.get("date", ""))
    return " ".join(word for word in words if word)


def _committed(name: str) -> str:
    """The commit that brought a result which doesn't say what it measured."""
    done = subprocess.run(
        ["git", "-C", str(RESULTS), "log", "-1", "--format=brought by %h %cs", "--", name],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


# ---- files


def write(folder: Path = RESULTS) -> Path:
    """Write the pictures into the folder and the page beside it. Returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    results = read(folder)
    drawn = report_pictures.draw(results, PHILLY)
    for name, svg in drawn.items():
        (folder / name).write_text(svg)
    path = folder.parent / PAGE
    path.write_text(page(results, drawn))
    return path
