"""Step 5: the product's own answers to "where is my job" and "why was money spent"."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lab.demo.burst import arguments
from lab.demo.history import History
from lab.demo.inside import Boxed


def explain(inside: Boxed, history: History, say: Callable[[str], None], reach: Sequence[str] = ()) -> None:
    """`ironburst status`, then `ironburst explain` for one job that waited and one that was rented, gangs first.
    `reach`: options that say where the scheduler is.
    """
    _show("status", inside.run(inside.ironburst("status", *arguments(inside), *reach)), say)
    for fate in ("waited", "rented"):
        jobs = sorted((job for job in history.jobs if job.fate == fate), key=lambda job: -job.nodes)
        if jobs:
            job = jobs[0]
            _show(
                f"explain {job.id}",
                inside.run(inside.ironburst("explain", str(job.id), "--ledger", str(inside.ledger))),
                say,
            )


def _show(command: str, text: str, say: Callable[[str], None]) -> None:
    say(f"$ ironburst {command}")
    for line in text.rstrip().splitlines():
        say(f"  {line}")
