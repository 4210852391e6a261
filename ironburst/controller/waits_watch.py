"""The waits that jobs had, kept in the ledger and compared with those that are wanted (ironburst.burst.waits_kept)."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ironburst.burst import Job, explain, from_json, to_json, waits_kept
from ironburst.burst.limits import WaitTarget
from ironburst.burst.waits_kept import Changed, Ended, Kept
from ironburst.controller.ledger import Ledger
from ironburst.controller.site import Site
from ironburst.document import ClusterDocument

_KEY = "waits"
_NAMES = {"mean_h": "mean wait", "gpu_hour_weighted_h": "mean wait weighted by GPU-hours"}
_PERCENTILES = {"p99_h": ("99th", "1%"), "p999_h": ("99.9th", "0.1%")}
_FIT = "fit the limits again (`ironburst fit`)"


def note(ledger: Ledger, document: ClusterDocument, runs: Iterable[tuple[Job, float]], now_s: float) -> None:
    """Count the waits of jobs that have ended; (job, seconds that it ran). Another target begins again."""
    target = _target(document)
    ended = [
        Ended(max(0.0, job.start_s - job.since_s) / 3600, job.nodes * job.each.gpus * ran_s / 3600)
        for job, ran_s in runs
        if job.each.gpus and job.start_s is not None
    ]
    if target and ended:
        kept = waits_kept.add(_read(ledger, target), ended, now_s)
        ledger.note(_KEY, json.dumps(to_json(kept), separators=(",", ":")))


def look(site: Site) -> None:
    """Report when the waits are no longer those that are wanted."""
    if text := said(site.ledger, site.document, site.now):
        site.tell("waits", text)


def said(ledger: Ledger, document: ClusterDocument, now_s: float) -> str:
    """What the newest weeks prove, for people; empty: nothing."""
    target = _target(document)
    found = waits_kept.changed(_read(ledger, target), now_s) if target else None
    return _text(found, target) if target and found else ""


def _text(found: Changed, target: WaitTarget) -> str:
    during = f"in the last {found.weeks} weeks"
    if found.direction == "shorter":
        return (
            f"{during} every wait was below half of what is wanted, so more is rented than need be: the workload "
            f"isn't the one that the limits were fitted to; {_FIT}"
        )
    if found.wait in _PERCENTILES:
        which, may = _PERCENTILES[found.wait]
        wanted = explain.duration(3600 * getattr(target, found.wait))
        was = f"{100 * found.was:.2g}% of the jobs waited longer than {wanted}, the {which} percentile that is wanted "
        was += f"({may} may)"
    else:
        wanted = explain.duration(3600 * getattr(target, found.wait))
        was = f"the {_NAMES[found.wait]} was {explain.duration(3600 * found.was)}, and {wanted} is wanted"
    return (
        f"{during} {was}: nothing could be rented for late jobs (`ironburst explain` says why), or the workload isn't "
        f"the one that the limits were fitted to; then {_FIT}"
    )


def _target(document: ClusterDocument) -> WaitTarget | None:
    wanted = document.burst.wait_target
    return WaitTarget.of_mean(**wanted.model_dump()) if wanted else None


def _read(ledger: Ledger, target: WaitTarget) -> Kept:
    """What is kept for this target; that of another one, or of another version, is of no use."""
    try:
        kept = from_json(Kept, json.loads(ledger.noted(_KEY) or "{}"))
    except ValueError:
        return Kept(target)
    return kept if kept.target == target else Kept(target)
