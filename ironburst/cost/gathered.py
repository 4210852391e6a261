"""What the report of the money says, as JSON values; how it looks: shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from ironburst import catalog
from ironburst.controller import policy_view
from ironburst.controller.records import DecisionRow, LeaseRow
from ironburst.cost import bought, report
from ironburst.cost.accounted import JobRun, Window, first_starts
from ironburst.cost.leases import MICRO, Priced
from ironburst.cost.report import CostBasis, CostReport, CostRow
from ironburst.document import ClusterDocument

UNKNOWN_PRICE, FIXED_PRICE = "halls[].nodes[].usd_per_gpu_hour", "cloud.price"


def gather(
    document: ClusterDocument,
    rows: Sequence[LeaseRow],
    leases: Sequence[Priced],
    runs: Sequence[JobRun],
    by: str,
    window: Window,
    decisions: Sequence[DecisionRow],
    now_s: float,
) -> dict[str, Any]:
    """Everything that is shown, as JSON values."""
    site = _site(document, rows)
    windows = _days(window) if by == "day" else [("", window)]
    made = report.report(by, runs, leases, site, windows, now_s)
    firsts = first_starts(runs, window)
    limits = policy_view.policy(document).limits
    worth = bought.bought(firsts, site.pool_of, bought.predicted(decisions))
    return {
        "cluster": document.cluster,
        "from_s": window.from_s,
        "to_s": window.to_s,
        "by": by,
        "rows": [_row(row) for row in made.rows],
        "total": _row(made.total),
        "markets": {
            name: {"usd": each.micro / MICRO, "gpu_hours": each.gpu_s / 3600} for name, each in made.markets.items()
        },
        "home": {"gpu_hours": made.home_gpu_s / 3600, "used_gpu_hours": made.total.home_gpu_s / 3600},
        "wait_target_h": asdict(limits.target) if limits else None,
        "bought": {"jobs": worth.jobs, "known": worth.known, "later_h": worth.later_h, "no_later": worth.no_later},
        "notes": list(_notes(document, made, runs)),
        "bill": None,
    }


def by_day(
    document: ClusterDocument,
    rows: Sequence[LeaseRow],
    leases: Sequence[Priced],
    runs: Sequence[JobRun],
    window: Window,
    now_s: float,
) -> list[dict[str, Any]]:
    """A row a day, for the page's pictures."""
    made = report.report("day", runs, leases, _site(document, rows), _days(window), now_s)
    return [_row(row) for row in made.rows]


def _days(window: Window) -> list[tuple[str, Window]]:
    """The days of a window, by the clock here."""
    days, at = [], datetime.fromtimestamp(window.from_s)
    while at.timestamp() < window.to_s:
        after = (at + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        days.append((f"{at:%Y-%m-%d}", Window(at.timestamp(), min(after.timestamp(), window.to_s))))
        at = after
    return days


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _site(document: ClusterDocument, rows: Sequence[LeaseRow]) -> CostBasis:
    pool_of = {row.node: row.pool for row in rows if row.node}
    pool_of |= {node: pool.name for pool in document.pools for node in pool.nodes}
    nodes = [host for host in document.hosts if host.gpu]
    return CostBasis(
        pool_gpus={pool.name: pool.gpu.count for pool in document.pools},
        pool_of=pool_of,
        home_usd_per_gpu_hour={host.name: host.usd_per_gpu_hour for host in nodes},
        home_gpus=sum(host.gpu.count for host in nodes if host.gpu),
        cloud_of=_clouds(document, rows),
    )


def _clouds(document: ClusterDocument, rows: Sequence[LeaseRow]) -> dict[str, str]:
    """The cloud of each pool; of one that isn't declared any more, that of what it rented."""
    known = catalog.instance_types()
    gone = {row.pool: known[row.instance_type].provider for row in rows if row.instance_type in known}
    return gone | {pool.name: pool.provider for pool in document.pools}


def _row(row: CostRow) -> dict[str, Any]:
    home, beside = row.home_usd, {part: micro / MICRO for part, micro in row.rented.items()}
    rented = row.rented_micro / MICRO
    return {
        "name": row.name,
        "jobs": row.jobs,
        "gpu_hours": {"home": row.home_gpu_s / 3600, "rented": row.rented_gpu_s / 3600},
        "usd": {
            "home": home,
            "rented": rented,
            **beside,
            "total": None if home is None else (row.home_micro + row.rented_micro) / MICRO,
        },
        "waits": asdict(row.waits) if row.waits else None,
    }


def _notes(document: ClusterDocument, made: CostReport, runs: Sequence[JobRun]) -> Iterator[str]:
    fixed = {host.name for host in document.hosts if host.kind == "cloud"}
    if owned := [name for name in made.unpriced if name not in fixed]:
        yield (
            f"What a GPU-hour of {_listed(owned)} costs isn't declared, so dollars at home are not known: "
            f"write {UNKNOWN_PRICE} into the stack file."
        )
    if cloud := [name for name in made.unpriced if name in fixed]:
        yield (
            f"What a GPU-hour of {_listed(cloud)} costs, fixed cloud nodes, isn't in the document, so dollars at home "
            f"are not known: publish it again, with a price under {FIXED_PRICE} where the catalogue has none."
        )
    if known := sorted({node for run in runs for node in run.nodes if node in fixed} - set(made.unpriced)):
        yield f"{_listed(known)}, fixed cloud nodes, count at home, at the on-demand price: their bill says more."
    if made.unleased_gpu_s >= 36:
        hours = made.unleased_gpu_s / 3600
        yield (
            f"{hours:,.2f} GPU-hours ran on nodes of pools when the ledger had no lease for them: "
            "they are counted, without dollars."
        )
    if runs and not any(run.gpus for run in runs):
        yield "sacct knows GPUs only of jobs that ran while slurm.conf had AccountingStorageTRES=gres/gpu."
