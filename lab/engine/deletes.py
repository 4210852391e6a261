"""Deletes many entries: each goes when nothing of the set that needs it is left, as many at once as allowed."""

import collections
import concurrent.futures

from lab.engine.deployment import Deployment
from lab.engine.errors import Terminated
from lab.engine.events import Step
from lab.engine.state import Resource


def delete_all(deployment: Deployment, handles: list[int]) -> None:
    """A protected entry is an error; it and all that it needs stay, the rest is deleted."""
    entries = {h: deployment.journal.old[h] for h in handles}
    kept = _needed_by_protected(entries)
    waiting = [h for h in entries if h not in kept]
    deployment.doomed.update(entries[h].urn for h in waiting)
    needed = collections.Counter(urn for h in waiting for urn in entries[h].needs())
    with concurrent.futures.ThreadPoolExecutor(deployment.parallel) as pool:
        running: dict[concurrent.futures.Future, int] = {}
        while waiting or running:
            ready = [] if deployment.stopping else [h for h in waiting if not needed[entries[h].urn]]
            for handle in ready:
                waiting.remove(handle)
                running[pool.submit(_delete, deployment, handle, entries[handle])] = handle
            if not running:
                break
            for future in concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED).done:
                handle = running.pop(future)
                if future.result():
                    needed.subtract(entries[handle].needs())
    for entry in (entries[h] for h in kept if entries[h].protect):
        deployment.events.failed(Step("delete", entry.urn, entry))
        deployment.fail(
            f"{entry.urn} cannot be deleted because it is protected; "
            "remove `protect` from it in the program and run `up` first",
            entry.urn,
        )


def _delete(deployment: Deployment, handle: int, entry: Resource) -> bool:
    try:
        with deployment.step():
            deployment.delete(handle, "delete-replaced" if entry.delete else "delete")
    except Terminated:
        return False
    return True


def _needed_by_protected(entries: dict[int, Resource]) -> set[int]:
    """Handles of the protected entries and of all that they need."""
    by_urn: dict[str, set[int]] = {}
    for handle, entry in entries.items():
        by_urn.setdefault(entry.urn, set()).add(handle)
    kept: set[int] = set()
    todo = [h for h, entry in entries.items() if entry.protect and not entry.delete]
    while todo:
        handle = todo.pop()
        if handle not in kept:
            kept.add(handle)
            todo += [h for urn in entries[handle].needs() for h in by_urn.get(urn, ())]
    return kept
