"""The controller's own metrics, for Prometheus: written at each tick's end, so that a scrape reads a text and waits for
nothing. A controller that hangs goes on telling when its last tick ended.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ironburst.burst import Decision
from ironburst.controller import burn, copies, idle_gpus, ownership, records, status_report
from ironburst.controller.ledger import Ledger
from ironburst.controller.teams import Teams
from ironburst.controller.tick import Report
from ironburst.document import ClusterDocument, DocumentError
from ironburst.document.monitoring import PlaceEnergy
from ironburst.nodes import naming
from ironburst.ports import CloudError, SchedulerError
from ironburst.system import certificates, exposition
from ironburst.system.exposition import Family

Samples = Iterable[tuple[Mapping[str, str | None], float]]

_CLASSES: tuple[tuple[type[Exception], str], ...] = (
    (SchedulerError, "scheduler"),
    (CloudError, "cloud"),
    (DocumentError, "document"),
    (ownership.OwnedElsewhere, "owned_elsewhere"),
)
BUG = "bug"
"""class of what a tick isn't expected to raise"""
REPORTED = ("trouble", "needs_a_person")
"""kinds of events that count as errors, too, each as a class of its own"""


class Metrics:
    """`text` may be read from any thread; the rest is the ticking thread's."""

    def __init__(
        self,
        ledger: Ledger,
        backup: Path | None = None,
        certificates: Sequence[Path] = (),
        teams: Teams | None = None,
    ):
        """`backup`: where copies of the ledger are put, a file or a folder; `certificates`: PEM files; `teams`: what a
        ticking controller counts.
        """
        self._ledger, self._backup, self._certificates, self._teams = ledger, backup, certificates, teams
        self._ticks: Counter[str] = Counter(ok=0, failed=0)
        self._errors: Counter[str] = Counter({name: 0 for _, name in _CLASSES} | {BUG: 0} | dict.fromkeys(REPORTED, 0))
        self._decisions: Counter[str] = Counter()
        self._decided: dict[int, str] = {}  # code of each job that waits, at the last tick
        self._now: list[Family] = []
        self.text = ""
        self._write()

    def ended(self, document: ClusterDocument, outcome: Report | Exception) -> None:
        """A tick has ended, or failed: then the rest stays as it was known last. Never raises: a figure less is no
        reason to count a tick as failed.
        """
        try:
            if isinstance(outcome, Exception):
                self._failed(outcome)
            else:
                self._ticked(document, outcome)
            self._write()
        except Exception:  # the ledger or the arithmetic
            self._errors[BUG] += 1

    def _failed(self, error: Exception) -> None:
        self._ticks["failed"] += 1
        self._errors[next((name for kind, name in _CLASSES if isinstance(error, kind)), BUG)] += 1

    def _ticked(self, document: ClusterDocument, report: Report) -> None:
        self._ticks["ok"] += 1
        self._errors.update(event.kind for event in report.events if event.kind in REPORTED)
        self._count(report.decision)
        self._now = [*_now(document, self._ledger, report), *_energy(document)]
        self._now += self._teams.families() if self._teams else ()

    def _count(self, decision: Decision) -> None:
        """What is done counts each time; what a job waits for, once until it is another code."""
        for name, code in _DONE.items():
            if done := len(getattr(decision, name)):
                self._decisions[code] += done
        decided = dict(_codes(decision))
        self._decisions.update(code for job, code in decided.items() if self._decided.get(job) != code)
        self._decided = decided

    def _write(self) -> None:
        last = json.loads(self._ledger.noted("last_tick") or "null")
        ended, took, began = (
            [_one(last["at_s"] + last["took_s"]), _one(last["took_s"]), _one(last["at_s"])] if last else [(), (), ()]
        )
        self.text = exposition.text(
            (
                _gauge("last_tick_timestamp_seconds", "When the last tick that went well ended", ended),
                _gauge("last_tick_seconds", "Deprecated: when it began", began),  # until 0.3
                _gauge("tick_duration_seconds", "How long that tick took", took),
                _counter("ticks_total", "Ticks since the controller's start", "result", self._ticks),
                _counter(
                    "errors_total", "Ticks that failed, by what was out of reach, and events", "class", self._errors
                ),
                _counter("decisions_total", "What was decided, each thing once", "code", self._decisions),
                *self._now,
                _gauge(
                    "ledger_backup_timestamp_seconds",
                    "When the ledger was copied last; 0: there is no copy",
                    _one(copies.newest_s(self._backup)) if self._backup else (),
                ),
                _gauge(
                    "certificate_expiry_timestamp_seconds",
                    "When a certificate ends; 0: it can't be read",
                    [({"name": path.name}, _end_s(path)) for path in self._certificates],
                ),
            )
        )


_DONE = {"launches": "launch", "assigns": "assign", "widen": "widen", "narrow": "narrow", "releases": "release"}


def _end_s(path: Path) -> float:
    try:
        return certificates.end_s(path.read_text())
    except (OSError, ValueError):
        return 0.0


def _codes(decision: Decision) -> Iterable[tuple[int, str]]:
    """(job, code) of all that wait."""
    yield from ((wait.job, wait.code) for wait in decision.waits)
    yield from ((infeasible.job, infeasible.code) for infeasible in decision.infeasible)


def _one(value: float) -> Samples:
    return [({}, value)]


def _gauge(name: str, told: str, samples: Samples) -> Family:
    return Family(f"ironburst_{name}", "gauge", told, samples)


def _counter(name: str, told: str, label: str, counts: Counter[str]) -> Family:
    samples: Samples = [({label: value}, float(number)) for value, number in sorted(counts.items())]
    return Family(f"ironburst_{name}", "counter", told, samples)


def _now(document: ClusterDocument, ledger: Ledger, report: Report) -> Iterable[Family]:
    """How things are at the end of a tick."""
    now_s, leases = report.at_s, ledger.leases()
    kinds = Counter((lease.state.value, lease.market, lease.instance_type) for lease in leases)
    yield _gauge("leases", "Rented nodes by state", [(_kind(*kind), n) for kind, n in sorted(kinds.items())])
    idle = [lease for lease in leases if lease.state == records.READY and lease.idle_since_s is not None]
    jobless = [({"node": lease.node}, now_s - (lease.idle_since_s or now_s)) for lease in idle]
    told = "How long a rented node that is up and paid for has had no job"
    yield _gauge("lease_without_job_seconds", told, [sample for sample in jobless if sample[1] > 0])
    yield from _money(document, ledger, now_s)
    yield _gauge("closed_offers", "Places that take no launch for now", _one(len(ledger.cool_downs(now_s))))
    waits = Counter(code for _, code in _codes(report.decision))
    waits["undecided"] = max(report.pending - waits.total(), 0)
    codes = [({"code": code}, float(number)) for code, number in sorted(waits.items()) if number]
    yield _gauge("pending_jobs", "Jobs that wait, by what was decided of them last", codes)
    told = "GPUs of a running job that do nothing, of those whose account is told of it"
    theirs = [(_whose(each), float(each.idle)) for each in idle_gpus.read(ledger) if each.team_s]
    yield _gauge("job_idle_gpus", told, theirs)
    yield _gauge("document_serial", "Of the document that counts", _one(document.serial))


def _whose(told: idle_gpus.IdleRun) -> Mapping[str, str | None]:
    """`job` is the scrape's own."""
    return {"hpc_job": naming.called(told.job), "user": told.user, "account": told.account}


def _kind(state: str, market: str, instance_type: str) -> dict[str, str | None]:
    return {"state": state, "market": market, "instance_type": instance_type}


def _money(document: ClusterDocument, ledger: Ledger, now_s: float) -> Iterable[Family]:
    money = status_report.money(document, ledger, now_s)
    yield _gauge("usd_spent", "Estimate of what this month has cost", _one(money["spent_usd"]))
    yield _gauge("usd_committed", "Estimate of what is set aside beyond that", _one(money["committed_usd"]))
    budget = money["usd_per_month"]
    yield _gauge("usd_budget", "What this month may cost", [] if budget is None else _one(budget))
    rate = burn.gather(document, ledger, now_s)["usd_per_hour"]
    yield _gauge("usd_hour", "What an hour of all that is rented now costs", _one(rate))
    ceilings = [({"ceiling": _called(each)}, each) for each in money["ceilings"]]
    for name, key, told in (
        ("usd_ceiling", "usd", "Most that may be spent under a ceiling"),
        ("usd_ceiling_spent", "spent_usd", "Spent under it so far"),
        ("usd_ceiling_committed", "committed_usd", "Set aside under it beyond that"),
    ):
        yield _gauge(name, told, [(labels, each[key]) for labels, each in ceilings])


def _energy(document: ClusterDocument) -> Iterable[Family]:
    """What is declared of the places, to multiply with."""
    declared = document.monitoring
    places: list[tuple[Mapping[str, str | None], PlaceEnergy]] = [
        ({"hall": name}, place) for name, place in sorted(declared.halls.items())
    ]
    clouds = [(each.provider, document.of_provider(each.provider).monitoring.cloud) for each in document.clouds]
    whose = [{"cloud": provider} if document.other_clouds else {} for provider, _ in clouds]
    places += [({"rented": "true"} | its, place) for its, (_, place) in zip(whose, clouds, strict=True) if place]
    pues = [(labels, place.pue) for labels, place in places if place.pue is not None]
    grams = [(labels, place.gco2_per_kwh) for labels, place in places if place.gco2_per_kwh is not None]
    yield _gauge("pue_ratio", "Energy of a hall over that of its machines, as declared", pues)
    yield _gauge("carbon_grams_per_kwh", "CO2 equivalents of a kWh of electricity, mean of a year", grams)


def _called(ceiling: Mapping[str, str]) -> str:
    """month, day; one of an account's: account/month."""
    return "/".join(filter(None, (ceiling["account"], ceiling["kind"])))
