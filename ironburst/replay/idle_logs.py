"""The idle logs of a play's pools (ironburst.burst.idle_log), kept as the controller keeps them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ironburst.burst import CoolDown, Pool, idle, idle_log, release
from ironburst.burst.idle import Terms
from ironburst.burst.memory import IdleHistory
from ironburst.replay.leases import LiveLease


class IdleLogs:
    """One a pool. Moments in seconds."""

    def __init__(self, pools: Iterable[Pool]):
        self._logs = {pool.name: idle_log.IdleLog() for pool in pools}

    def history(self, pool: str) -> IdleHistory:
        """What the policy learns from."""
        return self._logs[pool].history

    def began(self, lease: LiveLease, now_s: float) -> None:
        """Its last job has left it."""
        name = lease.pool.name
        self._logs[name] = idle_log.began(self._logs[name], lease.id, now_s)

    def used(self, lease: LiveLease, cool_downs: Sequence[CoolDown], now_s: float) -> None:
        """A job takes it."""
        log = self._logs[lease.pool.name]
        if lease.id in log.idle:
            terms = self._terms(lease, cool_downs, now_s)
            self._logs[lease.pool.name] = idle_log.used(log, lease.id, terms, lease.usd_per_hour, now_s)

    def released(self, lease: LiveLease, cool_downs: Sequence[CoolDown], now_s: float) -> None:
        """It is given back."""
        log = self._logs[lease.pool.name]
        if lease.id in log.idle:
            terms = self._terms(lease, cool_downs, now_s)
            self._logs[lease.pool.name] = idle_log.given_back(log, lease.id, terms, lease.usd_per_hour, now_s)

    def launched(self, pool: str, nodes: int, now_s: float) -> None:
        """This number of nodes is rented again."""
        self._logs[pool] = idle_log.launched(self._logs[pool], nodes, now_s)

    def tidy(self, alive: Callable[[str], LiveLease | None], now_s: float) -> None:
        """Drop what makes no difference any more. `alive`: a lease by its id; None: it has ended."""
        for pool, log in self._logs.items():
            if log.idle or log.away:
                ready = {id for id in log.idle if (lease := alive(id)) and lease.state == "ready"}
                self._logs[pool] = idle_log.tidied(log, ready, now_s)

    def look_again_s(self, lease: LiveLease, cool_downs: Sequence[CoolDown]) -> float:
        """When an idle lease is worth giving back."""
        return release.look_again_s(lease.pool, lease.seen(), cool_downs, self.history(lease.pool.name))

    def _terms(self, lease: LiveLease, cool_downs: Sequence[CoolDown], now_s: float) -> Terms:
        since_s = self._logs[lease.pool.name].idle[lease.id]
        return idle.terms(lease.pool, lease.seen(), cool_downs, since_s, now_s)
