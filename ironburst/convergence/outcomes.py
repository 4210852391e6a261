"""The result of one converge for each host: reported, and kept in the receipts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ironburst.convergence import inputs, receipts
from ironburst.convergence.drift import Comparison, Facts, Recorded
from ironburst.convergence.events import GATE, HostEvents
from ironburst.convergence.model import HostReport, Tools
from ironburst.convergence.ports import HostResult
from ironburst.document import ClusterDocument, Host

LISTED = 20  # reasons and drifts that an entry of a history names at most


@dataclass(frozen=True)
class HostRun:
    """What one run of a playbook did on one host. `outcome`: converged, failed, unreachable, invalid or stopped."""

    outcome: str
    error: str | None = None
    changed: int = 0  # tasks
    failed: int = 0
    events: HostEvents = field(default_factory=HostEvents)
    began_s: float | None = None  # None: the outcome has no duration


def host_run(result: HostResult | None, events: HostEvents, began_s: float) -> HostRun:
    """The HostRun of a run of site.yml; `result` is None for a host that it did not get to."""
    if result is None:
        return HostRun("failed", "site.yml did not get to it", events=events, began_s=began_s)
    outcome = "unreachable" if result.unreachable else "failed" if result.failed else "converged"
    error = None if outcome == "converged" else result.error
    return HostRun(outcome, error, result.changed, result.failed, events, began_s)


class Outcomes:
    """The hosts of one converge: how they compared with their receipts before, and the reports of those that are done
    with. Methods that write receipts raise ReceiptError.
    """

    def __init__(self, document: ClusterDocument, tools: Tools, check: bool):
        self._document, self._tools, self._check = document, tools, check
        self.before: dict[str, Comparison] = {}
        self.reports: dict[str, HostReport] = {}

    def left(self, hosts: Sequence[str]) -> list[str]:
        """Those of `hosts` that are not done with."""
        return [name for name in hosts if name not in self.reports]

    def end(self, name: str, report: HostReport) -> None:
        """Be done with a host, and say so."""
        self.reports[name] = report
        changed = f", {report.changed} changed" if report.state != "unchanged" else ""
        drift = f" ({'; '.join(report.why[:3])})" if report.state == "drifted" and report.why else ""
        self._tools.say(f"{name}: {report.state}{changed}" + (f": {report.error}" if report.error else drift))

    def leave_alone(self, name: str, state: str, error: str) -> None:
        """Be done with a host to which nothing was done, though something is to do."""
        self.end(name, HostReport(state, error=error, why=self.before[name].why))

    def converged(self, name: str, run: HostRun, recorded: Recorded, *, drained: bool) -> None:
        """Be done with a host on which all is as declared; its receipt gets what is there now."""
        before = self.before[name]
        remaining = remaining_drift(before, recorded.facts)
        for line in remaining:
            self._tools.say(f"{name}: not undone by Ansible: {line}")
        packages = receipts.package_changes(before.facts or before.receipt.state, recorded.facts)
        entry = self._entry(name, run, drained=drained, packages=packages, remaining=remaining)
        receipt = replace(
            before.receipt,
            connection=recorded.connection,
            inputs=dict(before.inputs),
            watch=recorded.watch,
            state=dict(recorded.facts),
            unwatched=_unwatched(run.events, recorded),
            software=software_of(self._document.host(name)),
        )
        self._tools.store.write(receipt.with_entry(entry))
        report = HostReport(
            state="converged",
            changed=run.changed,
            why=before.why,
            tasks=run.events.changed,
            drained=drained,
            remaining=remaining,
        )
        self.end(name, report)

    def bad(self, name: str, run: HostRun, *, drained: bool = False) -> None:
        """Be done with a host that is not as declared; Ansible runs again for it if the run may have changed it."""
        before = self.before[name]
        if not self._check:
            touched = run.outcome == "failed" or (run.outcome != "invalid" and bool(run.events.changed))
            receipt = replace(before.receipt, inputs=None) if touched else before.receipt
            self._tools.store.write(receipt.with_entry(self._entry(name, run, drained=drained)))
        report = HostReport(
            state=run.outcome,
            changed=run.changed,
            failed=1,
            error=run.error,
            why=before.why,
            tasks=run.events.changed,
            drained=drained,
        )
        self.end(name, report)

    def stopped(self, names: Sequence[str], began_s: float) -> None:
        """Write into the receipts that a signal has ended the run: Ansible runs again for these hosts."""
        run = HostRun("stopped", "stopped by a signal", began_s=began_s)
        for name in names:
            receipt = replace(self.before[name].receipt, inputs=None)
            self._tools.store.write(receipt.with_entry(self._entry(name, run, drained=False)))

    def mark_drained(self, names: Iterable[str], drained_by_us: bool) -> None:
        """Write into the receipts whether a drain of ours is on these nodes."""
        for name in names:
            receipt = self._tools.store.read(name, self._document.cluster)
            self._tools.store.write(replace(receipt, drained_by_us=drained_by_us))
            before = self.before[name]
            self.before[name] = replace(before, receipt=replace(before.receipt, drained_by_us=drained_by_us))

    def _entry(
        self,
        name: str,
        run: HostRun,
        *,
        drained: bool,
        packages: Mapping[str, list[str | None]] | None = None,
        remaining: Sequence[str] = (),
    ) -> receipts.Entry:
        before, now = self.before[name], self._tools.clock()
        host = self._document.host(name)
        return receipts.Entry(
            at=round(now, 1),
            seconds=round(now - run.began_s, 1) if run.began_s is not None else 0.0,
            outcome=run.outcome,
            why=before.why[:LISTED],
            serial=self._document.serial,
            lock=inputs.lock_digest(software_of(host)),
            drained=drained,
            changed=run.events.changed,
            packages=dict(packages or {}),
            drift=before.drift[:LISTED],
            remaining=list(remaining),
            gate=_gate(host, run),
            error=run.error,
        )


def software_of(host: Host) -> dict[str, Any] | None:
    """The host's exact set as plain data; None in a document that has none yet."""
    return host.software.model_dump() if host.software else None


def remaining_drift(before: Comparison, facts: Facts) -> list[str]:
    """Drift that is still there after the run, although the inputs are the same."""
    if not before.same_inputs or not before.receipt.state or not before.drift:
        return []
    old = {fact: text for fact, text in before.receipt.state.items() if fact in facts}
    return receipts.differences(old, {fact: facts[fact] for fact in old})


def _unwatched(events: HostEvents, recorded: Recorded) -> list[str]:
    """Why the host can't be called unchanged, whatever it tells next time."""
    unrecorded = [f"its state could not be recorded: {recorded.error}"] if recorded.error else []
    unknown = [f"{fact}: {text.lstrip('? ')}" for fact, text in recorded.facts.items() if text.startswith("?")]
    return [*events.unwatched, *unrecorded, *unknown]


def _gate(host: Host, run: HostRun) -> str | None:
    """What the health gate said in this run; None on a host without one, and where it was not reached."""
    if GATE not in host.roles:
        return None
    return "failed" if run.events.gate_failed else "passed" if run.outcome == "converged" else None
