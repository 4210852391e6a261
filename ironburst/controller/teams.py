"""What accounts use, for Prometheus: counted from the process' start, as `increase()` takes it, each run at its end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from ironburst.controller import energy, job_figures
from ironburst.controller.energy import Places
from ironburst.controller.records import RunRow
from ironburst.system.exposition import Family

NOBODY = "none"
"""label of runs without an account"""
_J_PER_KWH = 3.6e6


class Teams:
    """Of one process of the controller; the ticking thread's. Keys: account, or (account, place)."""

    def __init__(self) -> None:
        self._now: Counter[tuple[str, str]] = Counter()
        self._used, self._usd = defaultdict[tuple[str, str], float](float), defaultdict[tuple[str, str], float](float)
        self._idle, self._joules = defaultdict[str, float](float), defaultdict[str, float](float)
        self._grams = defaultdict[str, float](float)

    def running(self, runs: Iterable[RunRow], places: Places) -> None:
        """Those that go on. An account is there from its first start on, with 0: a series' first value is no
        increase.
        """
        self._now = Counter(dict.fromkeys(self._now, 0))
        for run in runs:
            if run.slice:
                continue
            account, _ = key = _key(run, places)
            self._now[key] += run.gpus
            for of_place in (self._used, self._usd):
                of_place[key] += 0
            for of_account in (self._idle, self._joules, self._grams):
                of_account[account] += 0

    def ended(self, run: RunRow, places: Places) -> None:
        """Once for each run, with its end and what it cost."""
        if not run.slice and run.end_s is not None:
            self._used[_key(run, places)] += run.gpus * (run.end_s - run.start_s)
            self._usd[_key(run, places)] += run.usd or 0.0

    def measured(self, run: RunRow, places: Places) -> None:
        """Once for each run, when nobody asks for its figures any more."""
        account, figures, its = _account(run), job_figures.kept(run.figures), energy.of_run(run, places)
        if run.end_s is not None and figures and figures.idle is not None:
            self._idle[account] += figures.idle * run.gpus * (run.end_s - run.start_s)
        if its:
            self._joules[account] += its.kwh * _J_PER_KWH
            self._grams[account] += its.kg * 1000

    def families(self) -> Iterator[Family]:
        """As they are now."""
        gpus = ((_labels(key), float(number)) for key, number in sorted(self._now.items()))
        yield Family("ironburst_account_gpus", "gauge", "GPUs that an account's jobs have now", gpus)
        yield _counter("gpu_seconds", "Time of GPUs that an account's jobs had", map(_labelled, self._used.items()))
        yield _counter("usd", "Estimate of what an account's jobs cost", map(_labelled, self._usd.items()))
        for name, told, of_account in (
            ("idle_gpu_seconds", "Part of that time in which they did nothing, as far as measured", self._idle),
            ("energy_joules", "Energy of an account's jobs, as far as known", self._joules),
            ("carbon_grams", "CO2 equivalents of that energy, location-based, as far as known", self._grams),
        ):
            yield _counter(name, told, (({"account": account}, value) for account, value in of_account.items()))


def _counter(name: str, told: str, samples: Iterable[tuple[Mapping[str, str | None], float]]) -> Family:
    of_all = sorted(samples, key=lambda sample: tuple(sample[0].values()))
    return Family(f"ironburst_account_{name}_total", "counter", told, of_all)


def _labelled(item: tuple[tuple[str, str], float]) -> tuple[Mapping[str, str | None], float]:
    return _labels(item[0]), item[1]


def _labels(key: tuple[str, str]) -> Mapping[str, str | None]:
    return {"account": key[0], "place": key[1]}


def _account(run: RunRow) -> str:
    return run.account or NOBODY


def _key(run: RunRow, places: Places) -> tuple[str, str]:
    rented = any(node in places.rented for node in run.nodes.split(","))
    return _account(run), "rented" if rented else "home"
