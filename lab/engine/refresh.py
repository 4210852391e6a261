"""Refresh: read every resource and take over what the provider says."""

import concurrent.futures
import dataclasses

from lab.engine.deployment import Deployment, with_secrets
from lab.engine.errors import Terminated
from lab.engine.events import Step
from lab.engine.properties import same
from lab.engine.provider import Diff, InitFailed
from lab.engine.state import Resource


def refresh_all(deployment: Deployment) -> None:
    """Unreadable resources fail the run; what was read is kept."""
    journal = deployment.journal
    to_read = [h for h, r in journal.old.items() if r.custom and not r.is_provider and not r.pendingReplacement]
    for entry in (r for h, r in journal.old.items() if h not in to_read):
        deployment.events.done(Step("same", entry.urn, entry, entry, refreshed=True))
    with concurrent.futures.ThreadPoolExecutor(deployment.parallel) as pool:
        gone = [
            h for h, here in zip(to_read, pool.map(lambda h: _refresh(deployment, h), to_read), strict=True) if not here
        ]
    _forget(journal, gone)
    journal.save()


def _refresh(deployment: Deployment, handle: int) -> bool:
    """False: it is gone."""
    try:
        with deployment.step():
            old = deployment.journal.old[handle]
            new = _read(deployment, old)
            if new is None:
                deployment.events.done(Step("delete", old.urn, old, refreshed=True))
                return False
            diff = (
                Diff()
                if old.external
                else deployment.registry.get(old.provider).diff(new, old.urn, old.inputs, old.ignoreChanges)
            )
            # As an `up` of the unchanged program would see it: what no input asks for is taken over, but is no change.
            unchanged = same(old.outputs, new.outputs) if old.external else not diff.changed
            deployment.journal.change(handle, **{f.name: getattr(new, f.name) for f in dataclasses.fields(new)})
            deployment.events.done(
                Step("same" if unchanged else "update", old.urn, old, new, diff.inverted(), refreshed=True)
            )
    except Terminated:
        pass
    return True


def _read(deployment: Deployment, old: Resource) -> Resource | None:
    provider = deployment.registry.get(old.provider)
    try:
        outcome = provider.read(old.urn, old.type, old.id, old.inputs, old.outputs, old.customTimeouts.get("read", 0))
    except InitFailed as error:
        outcome = error.outcome
        deployment.events.diagnostic("warning", str(error), old.urn)
    if not outcome.id:
        return None
    inputs = old.inputs if outcome.inputs is None else outcome.inputs
    new = dataclasses.replace(old, id=outcome.id, inputs=inputs, initErrors=outcome.init_errors)
    return dataclasses.replace(new, outputs=with_secrets(new, outcome.outputs))


def _forget(journal, gone: list[int]) -> None:
    """Drop entries; nobody may refer to them any more. A child without its parent moves up to the nearest one left."""
    parents = {journal.old[h].urn: journal.old[h].parent for h in gone}
    for handle in gone:
        journal.drop(handle)
    left = {r.urn for r in journal.old.values()}
    lost = parents.keys() - left
    for handle, entry in list(journal.old.items()):
        if entry.needs() & lost:
            parent = entry.parent
            while parent in lost:
                parent = parents[parent]
            entry = dataclasses.replace(entry, parent=parent).with_urns(lambda urn: None if urn in lost else urn)
            journal.change(handle, **{f.name: getattr(entry, f.name) for f in dataclasses.fields(entry)})
