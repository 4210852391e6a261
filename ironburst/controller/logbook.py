"""What a controller writes down of each tick: what it learned of jobs, and what was decided of them."""

from __future__ import annotations

import json

from ironburst.burst import Decision, Job, Policy, Snapshot, to_json
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
from ironburst.controller.recorder import Recorder, RecordError
from ironburst.controller.written import Written
from ironburst.document import ClusterDocument
from ironburst.ports import Observation

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
            ledger.still_decided(news.over, news.until_s)
            ledger.saw_jobs((job for job in snapshot.jobs if job.id in news.jobs), now)
            for gone in before - jobs.keys():
                if not observation.unseen_job(gone):
                    ledger.left_queue(gone, now)
            for wait in decision.waits:
                if wait.job not in news.answers:
                    continue
                figures = {
                    "start_s": wait.start_s,
                    "usd": wait.usd,
                    "run_s": wait.run_s,
                    "alternatives": to_json(wait.alternatives),
                }
                said = json.dumps(figures, separators=(",", ":"))
                ledger.decided(wait.job, "wait", wait.code, wait.text, now, wait.look_again_s, said)
            for item in decision.infeasible:
                if item.job in news.answers:
                    ledger.decided(item.job, "infeasible", item.code, item.text, now)
        self._written = written
        if self._recorder:
            try:
                self._recorder.record(policy, snapshot, decision)
            except RecordError as error:  # it is written down for later; what is decided goes on
                ledger.event("trouble", str(error), now)
