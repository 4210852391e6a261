"""What jobs made of their GPUs, by the ledger: of one job, and by account; as JSON values, and for people.

Advice is given only where somebody has published the threshold, with the source beside it, and never from a handful of
samples. There is no score: a figure that hides what is low helps nobody to make it higher.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ironburst.burst import explain
from ironburst.controller import energy, job_runs, job_story
from ironburst.controller.energy import Places
from ironburst.controller.job_figures import Figures
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import RunRow
from ironburst.system import local_time, terminal

SAMPLES = 10
"""fewer say nothing about a job: five minutes at 30 s"""
_JOBSTATS = "jobstats, Princeton University: config.py"
_EACH = ("node", "GPU", "busy", "SM", "tensor", "memory", "W", "NVLink", "kWh")
_TEAMS = ("account", "GPU-hours", "measured", "busy", "SM", "idle", "idle GPU-hours", "what idle costs")


def gather(ledger: Ledger, asked: str, places: Places = energy.NOWHERE) -> dict[str, Any]:
    """Of a job's number or name, as JSON values: every run, the oldest first. Raises BadInput for a job that was never
    seen.
    """
    found = ledger.runs_called(asked)
    if not found:
        found = [run for job in job_story.numbers(ledger, asked) for run in ledger.runs_of(job)]
    if not found:
        for job in job_story.numbers(ledger, asked):
            job_story.gather(ledger, job, 0.0)  # raises that it was never seen
    return {"asked": asked, "pue": places.pue, "runs": [_run(run, places) for run in found]}


def _run(run: RunRow, places: Places) -> dict[str, Any]:
    figures, its = job_runs.measured(run), energy.of_run(run, places)
    return {
        **{
            name: getattr(run, name) for name in ("job", "called", "user", "account", "gpus", "start_s", "end_s", "usd")
        },
        "nodes": run.nodes.split(","),
        "time_limit_s": run.time_limit_s,
        "state": _state(run, figures),
        "figures": None if figures is None else asdict(figures),
        "energy": its.as_json() if its else None,
        "complete": figures is not None and run.end_s is not None and run.end_s - figures.to_s <= job_runs.LATE_S,
        "advice": [{"text": text, "source": source} for text, source in advice(run, figures)],
    }


def _state(run: RunRow, figures: Figures | None) -> str:
    if run.slice or (figures and not figures.gpus):
        return "shared"
    if figures:
        return "measured"
    if run.end_s is None:
        return "running"
    return "unmeasured" if run.ask_s is None else "asked later"


def advice(run: RunRow, figures: Figures | None) -> list[tuple[str, str]]:
    """(sentence, source): at most two, the weightiest first."""
    if figures is None or not figures.gpus or figures.samples < SAMPLES:
        return []
    return list(_advice(run, figures))[:2]


def _advice(run: RunRow, figures: Figures) -> Iterator[tuple[str, str]]:
    used = figures.gpus - figures.unused
    busy, sm = (_of_used(figures, value) for value in (figures.busy, figures.sm))
    if figures.unused:
        what = f"{figures.unused} of {figures.gpus} GPUs did nothing: does the program use GPUs, as many as asked for"
        yield f"{what} (--gpus), one process for each?", f"{_JOBSTATS}, unused GPUs"
    if busy is not None and busy < 0.15:
        what = f"the {used} GPUs that worked did so {busy:.0%} of the time: look for what they wait for, often"
        yield f"{what} the reading of data (more workers, files on local disks)", f"{_JOBSTATS}, GPU_UTIL_RED (15%)"
    if busy is not None and busy > 0.8 and sm is not None and sm < 0.5:
        what = f"the GPUs are busy, but {sm:.0%} of their SMs: the kernels are too small for them (larger batches,"
        source = "NVIDIA, DCGM user guide: SM activity below 0.5 is likely ineffective use"
        yield f"{what} CUDA graphs, torch.compile)", source
    if run.time_limit_s and run.end_s and (ran_s := run.end_s - run.start_s) < run.time_limit_s / 10:
        what = f"it used {explain.duration(ran_s)} of its limit of {explain.duration(run.time_limit_s)}: if it ended by"
        yield f"{what} itself, a shorter --time starts sooner", f"{_JOBSTATS}, TIME_EFFICIENCY_RED (10%)"


def _of_used(figures: Figures, mean: float | None) -> float | None:
    """Mean of the GPUs that worked: the others add nothing to it."""
    used = figures.gpus - figures.unused
    return mean * figures.gpus / used if used and mean is not None else None


# ---- for people


def lines(said: dict[str, Any], columns: int = terminal.UNLIMITED, colour: bool = False) -> list[str]:
    """What `gather` gathered."""
    if not said["runs"]:
        what = f"nothing is known of the GPUs of {said['asked']}: it had none of its own, or ran before"
        return [f"{what} `monitoring` was declared"]
    out = []
    for number, run in enumerate(said["runs"]):
        out += [*([""] if number else []), *terminal.wrapped(_head(run), columns)]
        if run["state"] == "measured":
            out += terminal.wrapped([*_summary(run, said["pue"])], columns)
            out += terminal.table(
                _EACH, list(map(_row, run["figures"]["each"])), columns=columns, colour=colour, right=_EACH[1:]
            )
            out += terminal.wrapped([f"  advice: {each['text']} [{each['source']}]" for each in run["advice"]], columns)
    return out


def _head(run: dict[str, Any]) -> list[str]:
    until = "" if run["end_s"] is None else f" to {local_time.at(run['end_s'])}"
    whose = run["user"] + (f", {run['account']}" if run["account"] else "")
    usd = f", {explain.usd(run['usd'])} (estimate)" if run["usd"] is not None else ""
    size = f"{explain.plural(run['gpus'], 'GPU')} on {explain.listed(run['nodes'])}"
    head = f"job {run['called']} ({whose}): {size}, {local_time.at(run['start_s'])}{until}{usd}"
    return [head, *([_STATES[run["state"]]] if run["state"] in _STATES else [])]


_STATES = {
    "shared": "  shared: its GPUs had other jobs, too, or it had parts of them, so no figure is its own",
    "running": "  it runs on: its figures are asked for behind its end",
    "asked later": "  its figures are not there yet: they are asked for again",
    "unmeasured": "  nothing was measured: no exporter said which job had which GPU, or Prometheus was away",
}


def _summary(run: dict[str, Any], pue: float | None) -> Iterator[str]:
    found = run["figures"]
    span = explain.duration(found["to_s"] - found["from_s"])
    seen = f"  measured     {explain.plural(found['samples'], 'sample')} over {span}"
    if not run["complete"]:
        seen += f"; the last one at {local_time.at(found['to_s'])}, before its end: what followed isn't in it"
    if found["gpus"] < run["gpus"]:
        shared = f", {found['shared']} were shared" if found["shared"] else ""
        seen += f"; {found['gpus']} of {explain.plural(run['gpus'], 'GPU')}{shared}"
    yield seen
    idle = "" if found["idle"] is None else f", idle {found['idle']:.0%} of the time"
    unused = f"; {found['unused']} of {found['gpus']} never used" if found["unused"] else ""
    yield f"  GPUs busy    {_share(found['busy'])}{idle}{unused}"
    rest = f"tensor cores {_share(found['tensor'])}, memory interface {_share(found['dram'])}"
    yield f"  SMs active   {_share(found['sm'])}, {rest}"
    if found["memory_mib"] is not None:
        of = f" of {_gib(found['memory_total_mib'])}" if found["memory_total_mib"] else ""
        yield f"  memory       {_gib(found['memory_mib'])}{of} at most, of the GPU that used most"
    if found["watts"] is not None:
        kwh = "" if found["kwh"] is None else f", {found['kwh']:.3g} kWh"
        cooled = (
            ", without cooling"
            if pue is None or found["kwh"] is None
            else f" ({found['kwh'] * pue:.3g} with the hall's PUE of {pue:g})"
        )
        yield f"  power        {found['watts'] / 1000:.3g} kW{kwh} of the GPUs only{'' if _more(run) else cooled}"
    if _more(run):
        yield f"  energy       {energy.sentence(run['energy'])}"
    if found["nvlink_bytes"]:
        yield f"  NVLink       {found['nvlink_bytes'] / 1e9:.3g} GB/s a GPU, both ways"
    if len(found["each"]) < found["gpus"]:
        yield f"  the {len(found['each'])} that worked least:"


def _more(run: dict[str, Any]) -> bool:
    """More is known of its energy than that of its GPUs, and the hall's PUE."""
    its = run["energy"]
    return its is not None and (its["nodes"] > 0 or its["rented"] > 0 or its["kg"] is not None)


def _row(gpu: dict[str, Any]) -> list[str]:
    def number(name: str, per: float = 1.0) -> str:
        return "-" if gpu[name] is None else f"{gpu[name] / per:.3g}"

    shares = [_share(gpu[name]) for name in ("busy", "sm", "tensor")]
    memory = "-" if gpu["memory_mib"] is None else _gib(gpu["memory_mib"])
    return [gpu["node"], gpu["gpu"], *shares, memory, number("watts"), number("nvlink_bytes", 1e9), number("kwh")]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _gib(mib: float) -> str:
    return f"{mib / 1024:.3g} GiB"


# ---- by account


def by_account(runs: Sequence[RunRow], places: Places = energy.NOWHERE) -> list[dict[str, Any]]:
    """As JSON values, the most GPU-hours first. Shares are means over the GPU-hours that were measured, of `idle` over
    `judged_gpu_hours` (DCGM's profiling fields); `idle_usd`: of those whose price is known, too.
    """
    accounts: dict[str, list[RunRow]] = {}
    for run in runs:
        accounts.setdefault(run.account, []).append(run)
    rows = [{"account": account, **_efficiency(each, places)} for account, each in accounts.items()]
    return sorted(rows, key=lambda row: (-row["gpu_hours"], row["account"]))


def _efficiency(runs: Sequence[RunRow], places: Places) -> dict[str, Any]:
    measured = [(run, found) for run in runs if (found := job_runs.measured(run)) and found.gpus]

    def mean(name: str) -> float | None:
        known = [(value, _gpu_hours(run)) for run, found in measured if (value := getattr(found, name)) is not None]
        hours = sum(each for _, each in known)
        return sum(value * each for value, each in known) / hours if hours else None

    idle = [(run, found.idle) for run, found in measured if found.idle is not None]
    priced = [(run.usd or 0.0) * share for run, share in idle if run.usd is not None]
    return {
        "gpu_hours": sum(map(_gpu_hours, runs)),
        "measured_gpu_hours": sum(_gpu_hours(run) for run, _ in measured),
        "busy": mean("busy"),
        "sm": mean("sm"),
        "idle": mean("idle"),
        "judged_gpu_hours": sum(_gpu_hours(run) for run, _ in idle),
        "idle_gpu_hours": sum(_gpu_hours(run) * share for run, share in idle) if idle else None,
        "idle_usd": sum(priced) if priced else None,
        "kwh": sum(found.kwh or 0.0 for _, found in measured) if measured else None,
        "energy": energy.of_runs(runs, places).as_json() if measured else None,
    }


def _gpu_hours(run: RunRow) -> float:
    return 0.0 if run.slice or run.end_s is None else run.gpus * (run.end_s - run.start_s) / 3600


def idle(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Of all accounts together, of the GPU-hours that were measured: how many did nothing, and what those cost. None:
    nothing was measured.
    """
    known = [row for row in rows if row["idle_gpu_hours"] is not None]
    hours = sum(row["judged_gpu_hours"] for row in known)
    if not hours:
        return None
    priced = [row["idle_usd"] for row in known if row["idle_usd"] is not None]
    idle_hours = sum(row["idle_gpu_hours"] for row in known)
    usd = sum(priced) if priced else None
    return {"gpu_hours": hours, "idle_gpu_hours": idle_hours, "share": idle_hours / hours, "usd": usd}


def idle_lines(said: dict[str, Any] | None) -> Iterator[str]:
    """What `idle` gathered."""
    if said:
        usd = "" if said["usd"] is None else f", which cost {explain.usd(said['usd'])}"
        yield f"{said['share']:.0%} of {said['gpu_hours']:,.0f} measured GPU-hours were idle{usd}"


def account_lines(rows: Sequence[dict[str, Any]], columns: int = terminal.UNLIMITED, colour: bool = False) -> list[str]:
    """What `by_account` gathered."""
    if not rows:
        return ["no job with GPUs ended in that time, or `monitoring` wasn't declared then"]
    more = any(row["energy"] and row["energy"]["kg"] is not None for row in rows)
    titles = (*_TEAMS, "kWh", "kg CO2e") if more else _TEAMS
    told = [
        [
            row["account"] or "(none)",
            f"{row['gpu_hours']:,.0f}",
            _share(row["measured_gpu_hours"] / row["gpu_hours"] if row["gpu_hours"] else None),
            *(_share(row[name]) for name in ("busy", "sm", "idle")),
            "-" if row["idle_gpu_hours"] is None else f"{row['idle_gpu_hours']:,.0f}",
            "-" if row["idle_usd"] is None else explain.usd(row["idle_usd"]),
            *(_emitted(row["energy"]) if more else ()),
        ]
        for row in rows
    ]
    return terminal.table(titles, told, columns=columns, colour=colour, right=titles[1:])


def _emitted(its: dict[str, Any] | None) -> list[str]:
    kg = its and its["kg"]
    return ["-" if its is None else f"{its['kwh']:,.0f}", "-" if kg is None else f"{kg:,.0f}"]
