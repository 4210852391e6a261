"""What a trace that was played on a declared cluster comes to: as JSON values, for people, and as a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from ironburst.burst import explain
from ironburst.replay import carbon, pictures, results
from ironburst.replay.bound_search import lower_bound
from ironburst.replay.declared import Declared
from ironburst.replay.outcome import Played
from ironburst.replay.pictures import Panel, Series
from ironburst.replay.results import OfAccount
from ironburst.replay.simulate import play
from ironburst.replay.traces import Trace
from ironburst.system import local_time
from ironburst.system.bad_input import BadInput

MONTH_S = 30 * 86400
MISSED_S = 1e-3  # what is less is rounding
WAITS = {
    "mean_h": "mean wait",
    "p99_h": "p99",
    "p999_h": "p99.9",
    "max_h": "maximum",
    "gpu_hour_weighted_h": "by GPU-hours",
}  # as they are shown
COLUMNS = {"recorded": "as recorded", "home_only": "home only", "with_rent": "with rent"}
# Why nothing was rented for a late job, by the policy's code: said behind a number
NOT_RENTED = {
    "max_nodes": "too few of the pools' nodes were free to rent",
    "cool_down": "the cloud had refused lately",
    "closed": "the cheapest pool that was right was closed for now",
    "no_time_limit": "no time limit",
    "too_large": "more CPUs, memory or GPUs a node than a rented one has",
    "too_many_nodes": "more nodes than a pool has",
    "lesser_gpu": "they name no GPU type, and the pools' GPUs are less than home's",
    "too_long": "a time limit over the pools' max_run",
    "outlives": "a time limit beyond the end of what is bought",
    "deadline": "too late for the deadline in every pool",
    "no_price": "no known price",
    "spot_gang": "only spot is offered, and it has more nodes than spot_max_nodes",
    "spot_no_requeue": "only spot is offered, and it may not be requeued",
    "pool": "the pools can't be rented from as they are declared",
}


def played_on(trace: Trace, declared: Declared, progress: Callable[[int, int], None] | None) -> Played:
    """The trace on the declared cluster. Raises BadInput if some job can run nowhere."""
    widest, most = int(trace.gpus.max()), declared.home.nodes * declared.home.gpus
    rentable = max((len(pool.nodes) * pool.each.gpus for pool in declared.cloud.pools), default=0)
    if widest > max(most, rentable):
        job = int(trace.gpus.argmax())
        has = f"home has {most} and no pool more than {rentable}"
        raise BadInput(f"job {job + 1} of the trace wants {widest} GPUs, but {has}: leave it out, or declare more")
    try:
        return play(trace, declared.home, declared.policy, declared.cloud, progress)
    except ValueError as error:
        raise BadInput(str(error)) from None


def home_only(trace: Trace, declared: Declared, _progress: Any = None) -> dict[str, Any]:
    """The waits had nothing been rented, of the jobs that home can run."""
    fits = trace.gpus <= declared.home.nodes * declared.home.gpus
    ours = trace.take(fits)
    said: dict[str, Any] = {"jobs": len(ours), "never": int((~fits).sum()), "waits": None}
    if len(ours):
        played = play(ours, declared.home, None)
        said["waits"] = asdict(results.waits(ours, played.start_s))
    return said


def gather(trace: Trace, declared: Declared, played: Played) -> dict[str, Any]:
    """Everything that is shown but the bound and `home_only`, as JSON values."""
    recorded = results.recorded(trace)
    home, leases, policy = declared.home, played.bills, declared.policy
    rented_hours, past_limit = results.rented_hours(trace, played.pool, declared.cloud.pools)
    by_market: dict[str, float] = {}
    for bill in leases:
        if not bill.prepaid:
            by_market[bill.market] = by_market.get(bill.market, 0.0) + bill.usd
    return {
        "cluster": declared.name,
        "home": {"nodes": home.nodes, "gpus_per_node": home.gpus},
        "jobs": len(trace),
        "left_out": dict(trace.left_out),
        "note": trace.note,
        "gpu_hours": float(trace.gpu_hours.sum()),
        "policy": {
            "wait_limit_s": policy.wait_limit_s,
            "wait_target_h": asdict(policy.limits.target) if policy.limits else None,
            "hours_per_gpu_hour": policy.limits.hours_per_gpu_hour if policy.limits else None,
        },
        "run_times": "known" if trace.limit_s is None else "limits",
        "rented_jobs": int(played.rented.sum()),
        "rented_gpu_hours": rented_hours,
        "speed": _speed(declared) | {"past_limit": past_limit},
        "not_rented": dict(Counter(played.not_rented.values())),
        "recorded": {"jobs": recorded[0], "waits": asdict(recorded[1])} if recorded else None,
        "waits": asdict(results.waits(trace, played.start_s)),
        "usd": {
            "total": played.total_usd,
            "by_market": by_market,
            "prepaid": played.prepaid_usd,
            "boot": played.boot_usd,
            "idle": played.idle_usd,
            "prices_as_of": declared.prices_as_of,
        },
        "budget": _budget(trace, declared, played),
        "leases": len(leases),
        "lease_hours": sum(bill.to_s - bill.from_s for bill in leases) / 3600,
        "refusals": played.refusals,
        "interruptions": int(played.interruptions.sum()),
        "decisions": played.decisions,
        "deadlines": _deadlines(trace, declared, played),
    }


def _deadlines(trace: Trace, declared: Declared, played: Played) -> dict[str, int] | None:
    """How many jobs have one, how many save their work, and how many ended late; None: deadlines don't count."""
    if declared.policy.deadline_moves is None:
        return None
    deadline_s = np.full(len(trace), np.nan) if trace.deadline_s is None else trace.deadline_s
    saving = 0 if trace.saves_s is None else int((~np.isnan(trace.saves_s) & ~np.isnan(deadline_s)).sum())
    missed = int((played.end_s > deadline_s + MISSED_S).sum())
    return {"jobs": int((~np.isnan(deadline_s)).sum()), "saving": saving, "missed": missed}


def _speed(declared: Declared) -> dict[str, Any]:
    """`declared`: relative speeds by pool; `unknown`: pools of other GPUs than home's without one, counted as 1."""
    pools, models = declared.cloud.pools, {kind.model for kind in declared.home.kinds}
    return {
        "declared": {pool.name: pool.relative_speed for pool in pools if pool.relative_speed},
        "unknown": [pool.name for pool in pools if not pool.relative_speed and pool.gpu and models - {pool.gpu.model}],
    }


def _budget(trace: Trace, declared: Declared, played: Played) -> dict[str, Any] | None:
    """What 30 days from the first submit on cost, lease by lease as they begin, against a month's budget; None: there
    is none.
    """
    if declared.usd_per_month is None:
        return None
    by_month: dict[int, float] = {}
    for bill in played.bills:
        if not bill.prepaid:
            month = int((bill.from_s - trace.submit_s[0]) // MONTH_S)
            by_month[month] = by_month.get(month, 0.0) + bill.usd
    passed = sum(usd > declared.usd_per_month for usd in by_month.values())
    most = max(by_month.values(), default=0.0)
    return {"usd_per_month": declared.usd_per_month, "months": len(by_month), "passed": passed, "most_usd": most}


def bounded(trace: Trace, declared: Declared, played: Played, budget_s: float) -> dict[str, Any]:
    """The certified bound under the waits that were reached, and how far the rent is from it."""
    gpus, reached = declared.home.nodes * declared.home.gpus, results.waits(trace, played.start_s).limits()
    bound = lower_bound(trace, gpus, reached, budget_s=budget_s)
    rented = float(trace.gpu_hours[played.rented].sum())
    return {
        "rented_gpu_hours": bound.gpu_hours,
        "ratio": rented / bound.gpu_hours if bound.gpu_hours > 0 else None,
        "wall_s": bound.wall_s,
    }


def picture(trace: Trace, declared: Declared, played: Played) -> str:
    """The queue, and what runs at home and rented, over time; SVG."""
    curves, home = results.curves(trace, played.start_s, played.end_s, played.rented), declared.home
    days = (curves.hours / 24).tolist()
    waiting = {"queue": Series(days, curves.queued.tolist())}
    running = {"at home": Series(days, curves.home.tolist()), "rented": Series(days, curves.rented.tolist())}
    nodes = f"{home.nodes} nodes of {home.gpus} GPUs at home"
    return pictures.svg(
        [
            Panel("Jobs that wait", "days", "GPUs wanted", waiting),
            Panel(f"Jobs that run ({nodes})", "days", "GPUs", running),
        ]
    )


def lines(said: dict[str, Any]) -> list[str]:
    """What `gather` and the bound come to, for people."""
    out = [*_heading(said), "", *_rent(said)]
    if (budget := said["budget"]) and budget["passed"]:
        most = f"the dearest cost {explain.usd(budget['most_usd'])}; the controller stops renting there"
        months = f"in {budget['passed']} of {explain.plural(budget['months'], 'month')} with rent"
        out.append(f"{'budget passed':22}{months} ({explain.usd(budget['usd_per_month'])} each; {most})")
    if said.get("spot"):
        out.append(f"{'spot':22}to be had when {said['spot']} has it")
    if unknown := said["speed"]["unknown"]:
        out.append(f"{'relative speed':22}of {', '.join(unknown)} isn't declared: jobs are as fast there as at home")
    if past := said["speed"]["past_limit"]:
        out.append(f"{'past their limit':22}{explain.plural(past, 'job')} on slower GPUs: the scheduler would end them")
    if of := said["deadlines"]:
        saving = f"{of['jobs']:,} jobs with one, {of['saving']:,} of them save their work; ended late: {of['missed']:,}"
        out.append(f"{'deadlines':22}{saving}")
    out += carbon.lines(said.get("carbon"))
    out += [f"{'not rented for':22}{count:,}: {_why(code)}" for code, count in said["not_rented"].items()]
    out += _columns(said)
    if said["interruptions"] or said["refusals"]:
        out.append(f"{'interruptions':22}{said['interruptions']:,} jobs; refused launches: {said['refusals']:,}")
    if (bound := said["bound"]) and bound["ratio"] is not None:
        none = f"no policy rents fewer than {bound['rented_gpu_hours']:,.0f} GPU-hours within the same five waits"
        gain = f"so at most {1 - 1 / max(bound['ratio'], 1):.0%} of the rent could be saved by deciding otherwise"
        out += ["", f"{'rented / bound':22}{bound['ratio']:.2f} ({none}, {gain})"]
    return out


def _why(code: str) -> str:
    return NOT_RENTED.get(code, code.replace("_", " "))


def _columns(said: dict[str, Any]) -> list[str]:
    """The waits side by side, and of how many jobs they are where that isn't all."""
    kinds = {"recorded": said["recorded"], "home_only": said["home_only"], "with_rent": said}
    shown = {kind: each for kind, each in kinds.items() if each and each["waits"]}
    out = ["", f"{'wait':22}" + "".join(f"{COLUMNS[kind]:>14}" for kind in shown)]
    for name, word in WAITS.items():
        values = [explain.duration(3600 * each["waits"][name]) for each in shown.values()]
        out.append(f"{word:22}" + "".join(f"{value:>14}" for value in values))
    dollars = {"recorded": "-", "home_only": explain.usd(0.0), "with_rent": explain.usd(said["usd"]["total"])}
    out.append(f"{'rent':22}" + "".join(f"{dollars[kind]:>14}" for kind in shown))
    if never := said["home_only"]["never"]:
        out.append(f"home only is without {explain.plural(never, 'job')} that no home node has room for.")
    if said["recorded"] and said["recorded"]["jobs"] < said["jobs"]:
        out.append(f"As recorded is of the {said['recorded']['jobs']:,} jobs whose start the trace knows.")
    return out


def _heading(said: dict[str, Any]) -> list[str]:
    home = said["home"]
    left_out = "".join(f"; left out: {count} ({reason})" for reason, count in said["left_out"].items())
    left_out += f"; {said['note']}" if said["note"] else ""
    known = "run times known" if said["run_times"] == "known" else "time limits known, run times not"
    nodes = f"{explain.plural(home['nodes'], 'home node')} of {home['gpus_per_node']} GPUs"
    return [
        f"{said['trace']}: {said['jobs']:,} jobs, {said['gpu_hours']:,.0f} GPU-hours, {known}{left_out}",
        f"{said['cluster']}: {nodes}; {_policy(said['policy'])}",
    ]


def _rent(said: dict[str, Any]) -> list[str]:
    usd, leases = said["usd"], explain.plural(said["leases"], "lease")
    parts = [f"booting {explain.usd(usd['boot'])}", f"idle {explain.usd(usd['idle'])}"]
    parts += [f"prepaid {explain.usd(usd['prepaid'])}"] if usd["prepaid"] else []
    parts.append(f"prices of {local_time.prices_of(usd['prices_as_of'])}")
    return [
        f"{'rented':22}{said['rented_gpu_hours']:,.0f} GPU-hours, {said['rented_jobs']:,} jobs, {leases}",
        f"{'paid':22}{explain.usd(usd['total'])} ({', '.join(parts)})",
    ]


def _policy(said: dict[str, Any]) -> str:
    if target := said["wait_target_h"]:
        fitted = "" if said["hours_per_gpu_hour"] is None else f", {said['hours_per_gpu_hour']:g} h for each GPU-hour"
        return f"wait target {explain.duration(3600 * target['mean_h'])} on average{fitted}"
    return f"wait limit {explain.duration(said['wait_limit_s'])}"


def by_account(rows: list[OfAccount]) -> Iterator[str]:
    """A table of them, for people."""
    yield ""
    yield f"{'account':22}{'jobs':>10}{'rented for':>14}{'GPU-hours':>14}{'mean wait':>14}{'with rent':>14}"
    for row in rows:
        was, now = (
            "-" if hours is None else explain.duration(3600 * hours) for hours in (row.recorded_mean_h, row.mean_h)
        )
        rented = f"{row.rented_jobs:>14,}{row.rented_gpu_hours:>14,.0f}"
        yield f"{row.account[:21]:22}{row.jobs:>10,}{rented}{was:>14}{now:>14}"
