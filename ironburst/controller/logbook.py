"""What a controller writes down of each tick: what it learned of jobs, and what was decided of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

from ironburst.burst import Alternative, Decision, Infeasible, Job, Policy, Snapshot, Wait, to_json
from ironburst.controller import (
    deadline_moves,
    foreign,
    idle_gpus,
    lasting,
    own_exclusions,
    runtime_store,
    unstarted,
    waits_watch,
)
from ironburst.controller.ledger import Ledger
from ironburst.controller.ledger_decisions import Wording
from ironburst.controller.recorder import Recorder, RecordError
from ironburst.controller.records import GpuUse
from ironburst.controller.written import Written
from ironburst.document import ClusterDocument
from ironburst.ports import Observation

_JSON = json.JSONEncoder(separators=(",", ":")).encode
KEEPERS = (deadline_moves, foreign, idle_gpus, lasting, own_exclusions, unstarted)
"""modules that keep something of jobs by their ids in the ledger, beside its own tables"""


class Logbook:
    """Into the ledger, and the whole tick to the recorder, if there is one."""

    def __init__(self, ledger: Ledger, recorder: Recorder | None) -> None:
        self._ledger, self._recorder = ledger, recorder
        self._on_nodes: dict[int, Job] = {}  # at the last tick
        self._looked_s = 0.0
        self._written = Written()
        self._whose: dict[int, tuple[float, str]] = {}  # ids at the last tick: submit time, user

    def learn(self, document: ClusterDocument, observation: Observation, now_s: float) -> None:
        """Run times and waits of the jobs that have ended since the last tick of this process; and which ids are now
        another job's.
        """
        whose = {job.id: (job.submit_s, job.user) for job in observation.jobs}
        if new := [job for job in observation.jobs if self._whose.get(job.id) != whose[job.id]]:
            with self._ledger.transaction():
                if taken := self._ledger.set_apart(new):
                    for keeper in KEEPERS:
                        keeper.forget(self._ledger, taken)
        self._whose = whose
        seen = {id: job for id, job in self._on_nodes.items() if not observation.unseen_job(id)}
        if ended := runtime_store.ended(seen, self._looked_s, observation.jobs, now_s):
            runtime_store.learn(self._ledger, ended)
            waits_watch.note(self._ledger, document, ended, now_s)
        self._on_nodes, self._looked_s = {job.id: job for job in observation.jobs if job.on}, now_s

    def write(self, policy: Policy, snapshot: Snapshot, decision: Decision, observation: Observation) -> None:
        """Each job's decision, and the tick."""
        ledger, now, jobs = self._ledger, snapshot.now_s, {job.id: job for job in snapshot.jobs}
        before, (written, news) = ledger.in_queue(), self._written.after(jobs, decision, now)
        with ledger.transaction():
            if news.first:
                ledger.fold_wordings()
            ledger.reworded(_all_told(news.over), news.until_s)
            ledger.saw_jobs((job for job in snapshot.jobs if job.id in news.jobs), now)
            for gone in before - jobs.keys():
                if not observation.unseen_job(gone):
                    ledger.left_queue(gone, now)
            ledger.decided(_all_told(news.answers), now)
            if not observation.silent:  # of the jobs that aren't seen nobody knows
                ledger.saw_gpus(_gpu_use(policy, snapshot), now)
            if news.wordings is not None:
                ledger.word(dict(_all_told(news.wordings)), now)
        self._written = written
        if self._recorder:
            try:
                self._recorder.record(policy, snapshot, decision)
            except RecordError as error:  # it is written down for later; what is decided goes on
                ledger.event("trouble", str(error), now)


def _gpu_use(policy: Policy, snapshot: Snapshot) -> GpuUse:
    homes = {policy.home_partition, *policy.other_homes}
    home = {node.name for node in snapshot.owned if not homes.isdisjoint(node.partitions)}
    use = dict.fromkeys(("home", "rented", "waiting"), 0)
    for job in snapshot.jobs:
        where = "waiting" if job.pending or not job.on else "home" if home.issuperset(job.on[:1]) else "rented"
        use[where] += job.nodes * job.each.gpus
    return GpuUse(**use)


def _all_told(said: Mapping[int, Wait | Infeasible]) -> Iterator[tuple[int, Wording]]:
    """One after the other: of a large queue all at once are a hundred MB."""
    return ((job, _told(each)) for job, each in said.items())


def _told(said: Wait | Infeasible) -> Wording:
    if isinstance(said, Infeasible):
        return Wording("infeasible", said.code, said.text)
    own = f'"start_s":{_number(said.start_s)},"usd":{_number(said.usd)},"run_s":{_number(said.run_s)}'
    figures = f'{{{own},"alternatives":{_alternatives(said.alternatives)}}}'
    return Wording("wait", said.code, said.text, said.look_again_s, figures)


def _number(value: float | None) -> str:
    """As JSON; an encoder is made anew for each value, which takes ten times as long."""
    if value is None:
        return "null"
    return repr(value) if type(value) is float and math.isfinite(value) else _JSON(value)


@lru_cache(maxsize=4096)
def _alternatives(all: tuple[Alternative, ...]) -> str:
    """Alike jobs have the same ones."""
    return _JSON(to_json(all))
