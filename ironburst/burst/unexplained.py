"""The answers of a decision that no person reads: codes and moments, without sentences, figures and alternatives."""

from __future__ import annotations

from collections.abc import Sequence

from ironburst.burst.answers import Answers
from ironburst.burst.decision import Infeasible, Launch, Wait
from ironburst.burst.lateness import Late, NotYet
from ironburst.burst.renting import Impossible, RentingRefused
from ironburst.burst.reuse import Reused
from ironburst.burst.snapshot import Job, Lease


class Unexplained(Answers):
    """The same answer for each job, in the same order."""

    def served(self, job: Job, leases: Sequence[Lease]) -> None:
        """It has rented nodes already."""
        self._said(job, "coming" if "coming" in [lease.state for lease in leases] else "widened")

    def not_yet(self, job: Job, verdict: NotYet) -> None:
        """It waits at home."""
        self._waits.pop(job.id, None)  # as `_wait` does: most jobs wait
        self._waits[job.id] = Wait(job.id, verdict.code, "", verdict.look_again_s, verdict.rent_s)

    def rented(self, job: Job, _late: Late, _why: str, got: Launch | Reused) -> None:
        """Nodes are launched for it, or it shares some."""
        if isinstance(got, Launch) or got.assign is None:
            self._said(job, "renting")
        else:
            self._said(job, "coming" if got.coming else "widened")

    def not_rented(self, job: Job, _late: Late, _why: str, what: RentingRefused | Impossible) -> None:
        """It stays at home though it is late."""
        if isinstance(what, Impossible):
            self.infeasible.append(Infeasible(job.id, what.reasons[0][0], ""))
        else:
            self._wait(Wait(job.id, what.all.codes[0], "", what.all.look_again_s))

    def why(self, _job: Job, _verdict: Late | NotYet) -> str:
        """Nothing is said."""
        return ""

    def _said(self, job: Job, code: str) -> None:
        self._wait(Wait(job.id, code, ""))
