"""The four operations from start to end: preview, up, refresh, destroy."""

import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lab.engine.deletes import delete_all
from lab.engine.deployment import Deployment
from lab.engine.errors import EngineError, Terminated
from lab.engine.events import Events
from lab.engine.journal import Journal
from lab.engine.monitor import serve
from lab.engine.plugins import Processes
from lab.engine.program import ALREADY_REPORTED, Program
from lab.engine.project import Config, Project
from lab.engine.refresh import refresh_all
from lab.engine.registry import Registry
from lab.engine.secrets import Crypter
from lab.engine.state import Snapshot

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Setting:
    """What an operation works on. `write(json)` stores the state; None: a preview, nothing is stored."""

    project: Project
    stack: str
    config: Config
    snapshot: Snapshot
    crypter: Callable[[], Crypter]
    write: Callable[[str], None] | None
    events: Events
    parallel: int

    @property
    def preview(self) -> bool:
        return self.write is None


def update(setting: Setting) -> bool:
    """`up`, or with `write` None a preview. True when all went well."""
    _warn_of_pending(setting)
    return _run(setting, partial(_run_program, setting))


def destroy(setting: Setting, run_program: bool) -> bool:
    """Delete all. EngineError when the state names delete hooks and the program is not to run."""
    hooked = [r for r in setting.snapshot.resources if {"BeforeDelete", "AfterDelete"} & r.resourceHooks.keys()]
    if hooked and not run_program:
        raise EngineError(f"{hooked[0].urn} has delete hooks, which live in the program; run `destroy --run-program`")
    if run_program:
        return _run(setting, partial(_run_program, setting), answer_only=True)
    return _run(setting, lambda d, *_: delete_all(d, list(d.journal.old)))


def refresh(setting: Setting, clear_pending_creates: bool) -> bool:
    """Take over what the providers report. True when all went well."""
    if clear_pending_creates:
        setting.snapshot.pending = []
    _warn_of_pending(setting)
    return _run(setting, lambda d, *_: refresh_all(d))


def _warn_of_pending(setting: Setting) -> None:
    for kind, resource in setting.snapshot.pending:
        hint = (
            "it may exist although the state does not know it; look, then run `refresh --clear-pending-creates`"
            if kind == "creating"
            else "run `refresh` to see what became of it"
        )
        setting.events.diagnostic(
            "warning", f"an earlier run was interrupted while {kind} {resource.urn}: {hint}", resource.urn
        )


def _run(setting: Setting, work: Callable[[Deployment, Processes, str], None], answer_only: bool = False) -> bool:
    """Server, signals, providers and clean-up around an operation."""
    journal = Journal(setting.snapshot, setting.crypter, setting.write)
    processes = Processes()
    registry = Registry(
        journal, processes, setting.events, setting.project.root, setting.project.plugin_folders, setting.preview
    )
    deployment = Deployment(
        setting.project.name,
        setting.stack,
        setting.config,
        journal,
        setting.events,
        registry,
        setting.preview,
        setting.parallel,
        answer_only,
    )
    server, address = serve(deployment)
    registry.address = address
    before = _catch_signals(deployment, processes)
    setting.events.prelude(setting.config.masked())
    try:
        work(deployment, processes, address)
        deployment.wait_idle()
        journal.save()
    except Terminated:
        pass
    finally:
        registry.cancel()
        processes.end_all()
        with deployment.condition:
            deployment.released = True
            deployment.condition.notify_all()
        server.stop(None)
        for number, handler in before.items():
            signal.signal(number, handler)
        if deployment.interrupted:
            setting.events.diagnostic("error", "update canceled")
        setting.events.summary(not deployment.stopping)
    return not deployment.stopping


def _catch_signals(deployment: Deployment, processes: Processes) -> dict:
    """First signal: stop cleanly. Second: end everything at once; the pending operations stay in the state."""

    def stop() -> None:
        if deployment.interrupted:
            processes.end_all(0)
            return
        deployment.events.diagnostic(
            "info", "interrupted: waiting for the operations under way; once more to end at once"
        )
        deployment.interrupted = True
        deployment.registry.cancel()
        deployment.wake()

    def handler(*_: object) -> None:
        # It runs between any two instructions of the main thread: leave it before taking a lock.
        threading.Thread(target=stop, daemon=True).start()

    return {number: signal.signal(number, handler) for number in STOP_SIGNALS}


def _run_program(setting: Setting, deployment: Deployment, processes: Processes, address: str) -> None:
    """Run the program; when it is content, delete what it did not ask for."""
    program = Program(setting.project, setting.stack, setting.config, setting.preview, setting.parallel)

    def on_line(text: str, is_stderr: bool) -> None:
        deployment.events.diagnostic("info#err" if is_stderr else "info", text)

    program.start(processes, address, on_line, deployment.wake)
    with deployment.condition:
        deployment.condition.wait_for(
            lambda: deployment.signalled or program.exit_code is not None or deployment.stopping
        )
    if not deployment.stopping and (deployment.signalled or program.exit_code == 0):
        delete_all(deployment, list(deployment.journal.old))
    elif not deployment.stopping:
        code, deployment.failed = program.exit_code, True
        if code != ALREADY_REPORTED:
            deployment.fail(f"the program ended with the exit code {code}")
    with deployment.condition:
        deployment.released = True
        deployment.condition.notify_all()
    if deployment.stopping:
        deployment.wait_idle()
        program.kill()
    with deployment.condition:
        deployment.condition.wait_for(lambda: program.exit_code is not None)
    if program.exit_code and not deployment.stopping:
        deployment.fail(f"the program ended with the exit code {program.exit_code}")
