"""The settings of the burst policy."""

from __future__ import annotations

from dataclasses import dataclass, field

from ironburst.burst.codec import IF_SAID
from ironburst.burst.limits import Limits

# So often spot may be taken from under a job before it is rented for on demand only: without checkpoints it began from
# the start each time, and a market that took its nodes back three times takes the fourth one, too.
SPOT_RESTARTS = 3


@dataclass(frozen=True)
class DeadlineMoves:
    """What is kept of the time that a job has to spare: `spare_s` for what goes wrong on demand, too, and `look_s` from
    one decision until the next one is carried out.
    """

    spare_s: float
    look_s: float = 60.0


@dataclass(frozen=True)
class Policy:
    """When a job is worth renting for, and how."""

    home_partition: str
    wait_limit_s: float  # a job that is predicted to wait longer than this at home is worth renting for
    # With these a job's limit follows from its size, and `wait_limit_s` is not looked at.
    limits: Limits | None = None
    # Spot only for batch jobs that may be requeued, up to this many nodes: a gang loses all its nodes' work with any
    # one of them, and its chance of an interruption grows with each.
    spot_max_nodes: int = 1
    spot_restarts: int = SPOT_RESTARTS
    # A running job that is past its limit is expected to end within this time.
    overdue_s: float = 30.0
    # A job isn't rented for before it has waited so long: while jobs are being submitted,
    # the scheduler and its priorities settle first.
    settle_s: float = 0.0
    # file systems that rented nodes have, by path; None: jobs' folders aren't looked at
    folders: tuple[str, ...] | None = field(default=None, metadata=IF_SAID)
    # whose jobs may be rented for; empty: everybody's
    accounts: tuple[str, ...] = field(default=(), metadata=IF_SAID)
    # home partitions of the site's other schedulers, whose jobs and nodes are apart (ironburst.burst.sides)
    other_homes: tuple[str, ...] = field(default=(), metadata=IF_SAID)
    # jobs that save their work and have a deadline move by it between spot and on demand; None: they don't
    deadline_moves: DeadlineMoves | None = field(default=None, metadata=IF_SAID)
