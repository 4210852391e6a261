"""How the report of the money is shown: a table for people, CSV, and a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from typing import Any

from ironburst.burst import explain
from ironburst.controller import energy
from ironburst.cost.bill_row import UNITS
from ironburst.cost.causes import CAUSES
from ironburst.cost.reconcile import Compared
from ironburst.replay import pictures
from ironburst.replay.pictures import Panel, Series
from ironburst.replay.simulation_report import WAITS
from ironburst.system import terminal

COLUMNS = 100
MOST_ROWS = 40  # for people; programs get all
NAMED = ("orphan", "missing", "unexplained")
"""causes of which each thing is named, for people, too"""


def of_bill(compared: Compared, files: list[str]) -> dict[str, Any]:
    """As JSON values: dollars with ten decimals, as the bill has them."""
    return {
        "files": files,
        "from_s": compared.window.from_s,
        "to_s": compared.window.to_s,
        "estimated_usd": compared.estimated / UNITS,
        "billed_usd": compared.billed / UNITS,
        "lines": compared.lines,
        "unexplained_usd": compared.unexplained / UNITS,
        "others": {"lines": compared.others, "usd": compared.others_units / UNITS},
        "differences": [
            {
                "cause": each.cause,
                "what": each.what,
                "node": each.node,
                "usd": each.units / UNITS,
                "lines": each.lines,
            }
            for each in compared.differences
        ],
    }


# ---- for people


def lines(said: dict[str, Any], columns: int = COLUMNS) -> list[str]:
    """In that many columns."""
    window = f"{_date(said['from_s'])} to {_date(said['to_s'])}"
    return [
        f"cluster {said['cluster']}, {window}, by {said['by']}",
        "",
        *_table(said, columns),
        "",
        *terminal.wrapped(list(_sentences(said)), columns),
        *(_waits(said) if said["total"]["waits"] else []),
        *(["", *_bill(said["bill"], columns)] if said["bill"] else []),
        *(["", *terminal.wrapped(said["notes"], columns)] if said["notes"] else []),
    ]


def _date(at_s: float) -> str:
    moment = datetime.fromtimestamp(at_s)
    return f"{moment:%Y-%m-%d}" if (moment.hour, moment.minute) == (0, 0) else f"{moment:%Y-%m-%d %H:%M}"


def _table(said: dict[str, Any], columns: int) -> list[str]:
    titles = (said["by"], "jobs", "home GPU-h", "rented GPU-h", "home", "rented", "unused", "mean wait")
    left_out = said["rows"][MOST_ROWS:]
    rows = [_cells(row) for row in said["rows"][:MOST_ROWS]]
    if left_out:
        rows.append([f"… {len(left_out):,} more (--csv has them)", *[""] * (len(titles) - 1)])
    return terminal.table(titles, [*rows, _cells(said["total"])], columns=columns, colour=False, right=titles[1:])


def _cells(row: dict[str, Any]) -> list[str]:
    usd, rented = row["usd"], row["usd"]["rented"]
    beside = usd["boot"] + usd["idle"] + usd["other"]
    return [
        row["name"],
        f"{row['jobs']:,}",
        f"{row['gpu_hours']['home']:,.1f}",
        f"{row['gpu_hours']['rented']:,.1f}",
        "-" if usd["home"] is None else explain.usd(usd["home"]),
        explain.usd(rented),
        f"{beside / rented:.0%}" if rented else "",
        explain.duration(3600 * row["waits"]["mean_h"]) if row["waits"] else "",
    ]


def _sentences(said: dict[str, Any]) -> Iterator[str]:
    total, usd = said["total"], said["total"]["usd"]
    rented, hours = usd["rented"], total["gpu_hours"]["rented"]
    each = f" ({explain.usd(rented / hours)} a GPU-hour)" if hours and rented else ""
    yield f"rented: {explain.usd(rented)} for {hours:,.1f} GPU-hours of jobs{each}; estimates, by the declared prices"
    if rented:
        parts = {"jobs": "of jobs", "boot": "booting", "idle": "idle", "other": "of nodes without a lease"}
        shares = [f"{explain.usd(usd[part])} ({usd[part] / rented:.1%}) {word}" for part, word in parts.items()]
        yield "  " + ", ".join(shares[: 4 if usd["other"] else 3])
    for market, its in said["markets"].items():
        paid = "paid for before" if market == "capacity-block" and not its["usd"] else explain.usd(its["usd"])
        yield f"  {market}: {paid}, {its['gpu_hours']:,.1f} GPU-hours"
    home = said["home"]
    if home["gpu_hours"]:
        share = home["used_gpu_hours"] / home["gpu_hours"]
        yield (
            f"home: {home['used_gpu_hours']:,.1f} of {home['gpu_hours']:,.1f} GPU-hours used ({share:.1%}; "
            "by the nodes that are declared now)"
        )
    yield from _bought(said["bought"])
    if said.get("energy"):
        yield f"energy of the jobs that ended then, as far as measured: {energy.sentence(said['energy'])}"


def _bought(bought: dict[str, Any]) -> Iterator[str]:
    if not bought["jobs"]:
        return
    jobs = explain.plural(bought["jobs"], "job")
    if not bought["known"]:
        yield f"bought: {jobs} began on rented nodes; when home would have started them isn't in the ledger"
        return
    mean = explain.duration(3600 * bought["later_h"] / bought["known"])
    none = f"; {bought['no_later']} of them not later than they did" if bought["no_later"] else ""
    yield (
        f"bought: {jobs} began on rented nodes; as far as predicted ({bought['known']} of them) home would have "
        f"started them {mean} later on average{none}"
    )


def _waits(said: dict[str, Any]) -> Iterator[str]:
    target, reached = said["wait_target_h"], said["total"]["waits"]
    yield ""
    yield f"  {'waits':22}{'reached':>14}" + (f"{'wanted':>14}" if target else "")
    for name, word in WAITS.items():
        line = f"  {word:22}{explain.duration(3600 * reached[name]):>14}"
        if target:
            kept = "" if reached[name] <= target[name] else "  longer than wanted"
            line += f"{explain.duration(3600 * target[name]):>14}{kept}"
        yield line


def _bill(bill: dict[str, Any], columns: int) -> list[str]:
    by_cause: dict[str, list[dict[str, Any]]] = {}
    for each in bill["differences"]:
        by_cause.setdefault(each["cause"], []).append(each)
    rows = [["estimates of the ledger", "", _precise(bill["estimated_usd"])]]
    for cause, its in by_cause.items():
        if cause == "unexplained":
            continue
        rows.append([CAUSES[cause], f"{len(its):,}", _precise(sum(each["usd"] for each in its))])
        rows += _named(its) if cause in NAMED else []
    unexplained = by_cause.get("unexplained", [])
    rows += [["unexplained", f"{len(unexplained):,}", _precise(sum(each["usd"] for each in unexplained))]]
    rows += _named(unexplained)
    rows.append([f"billed for this cluster ({bill['lines']:,} lines)", "", _precise(bill["billed_usd"])])
    others = bill["others"]
    return [
        f"bill ({', '.join(bill['files'])}), {_date(bill['from_s'])} to {_date(bill['to_s'])}:",
        *terminal.table(("", "things", "USD"), rows, columns=columns, colour=False, right=("things", "USD")),
        *terminal.wrapped([f"dollars unexplained: {bill['unexplained_usd']:,.2f}"], columns),
        f"  not of this cluster: {others['lines']:,} lines, {explain.usd(others['usd'])}",
    ]


def _named(its: Sequence[dict[str, Any]]) -> list[list[str]]:
    rows = [[f"  {each['what']} {each['node']}".rstrip(), "", _precise(each["usd"])] for each in its[:MOST_ROWS]]
    return rows + ([[f"  … {len(its) - MOST_ROWS:,} more (--csv has them)", "", ""]] if its[MOST_ROWS:] else [])


def _precise(usd: float) -> str:
    """With more decimals where a cent would hide all of it."""
    return f"{usd:,.2f}" if not usd or abs(usd) >= 0.005 else f"{usd:,.6f}"


# ---- for programs


def csv_lines(said: dict[str, Any]) -> list[str]:
    """The rows and their sum; with a bill, its differences between the estimates and what was billed."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if bill := said["bill"]:
        writer.writerow(("cause", "what", "node", "usd", "lines"))
        writer.writerow(("estimated", "", "", f"{bill['estimated_usd']:.10f}", ""))
        for each in bill["differences"]:
            writer.writerow((each["cause"], each["what"], each["node"], f"{each['usd']:.10f}", each["lines"]))
        writer.writerow(("billed", "", "", f"{bill['billed_usd']:.10f}", bill["lines"]))
        return out.getvalue().splitlines()
    money = ("home", "rented", "jobs", "boot", "idle", "other", "total")
    titles = [said["by"], "jobs", "home_gpu_hours", "rented_gpu_hours", *(f"{name}_usd" for name in money)]
    writer.writerow([*titles, *(name.replace("_h", "_wait_h") for name in WAITS)])
    for row in [*said["rows"], said["total"]]:
        hours = [f"{row['gpu_hours'][name]:.6f}" for name in ("home", "rented")]
        usd = ["" if row["usd"][name] is None else f"{row['usd'][name]:.6f}" for name in money]
        waits = [f"{row['waits'][name]:.6f}" if row["waits"] else "" for name in WAITS]
        writer.writerow([row["name"], row["jobs"], *hours, *usd, *waits])
    return out.getvalue().splitlines()


def page(said: dict[str, Any], days: Sequence[dict[str, Any]]) -> str:
    """A page that needs nothing else: what is printed, with the dollars and GPU-hours of each day."""
    text = "\n".join(lines(said))
    title = f"ironburst report: {said['cluster']}, {_date(said['from_s'])} to {_date(said['to_s'])}"
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<body style="font-family: sans-serif; margin: 2em"><h1>ironburst report</h1>\n'
        f'<pre style="white-space: pre-wrap">{escape(text)}</pre>\n{_picture(days)}{_differences(said["bill"])}'
        "</body></html>"
    )


def _picture(days: Sequence[dict[str, Any]]) -> str:
    at = [float(n + 1) for n in range(len(days))]
    usd = {word: Series(at, [day["usd"][part] for day in days]) for word, part in _RENTED.items()}
    hours = {word: Series(at, [day["gpu_hours"][word] for day in days]) for word in ("home", "rented")}
    return pictures.svg([Panel("Rented, each day", "day", "USD", usd), Panel("Used, each day", "day", "GPU-h", hours)])


_RENTED = {"all": "rented", "jobs": "jobs", "booting": "boot", "idle": "idle"}


def _differences(bill: dict[str, Any] | None) -> str:
    """Each of them, as a table."""
    if not bill:
        return ""
    right = 'style="text-align: right"'
    rows = "".join(
        f"<tr><td>{escape(CAUSES[each['cause']])}</td><td>{escape(each['what'])}</td><td>{escape(each['node'])}</td>"
        f"<td {right}>{each['usd']:,.10f}</td><td {right}>{each['lines']}</td></tr>\n"
        for each in bill["differences"]
    )
    heads = "".join(f"<th>{word}</th>" for word in ("difference", "of", "node", "USD", "lines"))
    return f"<h2>The bill, difference by difference</h2><table><tr>{heads}</tr>\n{rows}</table>"
