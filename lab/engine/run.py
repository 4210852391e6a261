"""One run of the engine: its life cycle, and how one step is carried out."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from lab.engine.callbacks import Callbacks
from lab.engine.errors import EngineError, Terminated
from lab.engine.events import Events, Step
from lab.engine.journal import Journal
from lab.engine.provider import InitFailed
from lab.engine.state import Resource

PENDING = {"Create": "creating", "Update": "updating", "Delete": "deleting"}


class Run:
    """What the threads of one preview, update, refresh or destroy share."""

    def __init__(self, journal: Journal, events: Events, preview: bool, parallel: int):
        self.journal, self.events = journal, events
        self.callbacks = Callbacks(events, preview)
        self.preview, self.parallel = preview, parallel
        self.condition = threading.Condition()
        self.failed = self.interrupted = self.signalled = self.released = False
        self.slots = threading.BoundedSemaphore(parallel)  # calls of providers at once
        self._active = 0

    @property
    def stopping(self) -> bool:
        """True when no step may start any more."""
        return self.failed or self.interrupted

    def check_running(self) -> None:
        """Terminated when no step may start any more."""
        if self.stopping:
            raise Terminated

    def fail(self, message: str, urn: str = "") -> None:
        """Report an error; no step starts any more."""
        self.events.diagnostic("error", message, urn)
        self.failed = True
        self.wake()

    def wake(self) -> None:
        """Let those who wait look again."""
        with self.condition:
            self.condition.notify_all()

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Around everything that must be finished before the run may end. Failures become Terminated."""
        with self.condition:
            self.check_running()
            self._active += 1
        try:
            yield
        except EngineError as error:
            self.fail(str(error), getattr(error, "urn", ""))
            raise Terminated from None
        finally:
            with self.condition:
                self._active -= 1
                self.condition.notify_all()

    def wait_idle(self) -> None:
        """Wait until no step is under way."""
        with self.condition:
            self.condition.wait_for(lambda: self._active == 0)

    def operate(self, step: Step, kind: str, call: Callable | None, commit: Callable) -> Resource | None:
        """Hooks, the provider's call (none: only the state changes), and its outcome in the state, all at once."""
        self.events.before(step)
        try:
            self.callbacks.run_hooks("Before" + kind, step)
            with self.slots:
                self.check_running()
                entry = self.journal.begin(PENDING[kind], step.resource) if call and not self.preview else None
                failure = outcome = done = None
                try:
                    outcome = call() if call else None
                    done = True
                except InitFailed as error:
                    failure, outcome, done = error, error.outcome, True
                finally:
                    with self.journal.lock:
                        if entry:
                            self.journal.end(entry)
                        if done:
                            step.new = commit(outcome)
                    self.journal.save()
            if failure:
                raise failure
            if kind == "Delete":
                step.new = None
            self.callbacks.run_hooks("After" + kind, step)
        except EngineError:
            self.events.failed(step)
            raise
        self.events.done(step)
        return step.new

    def record(self, new: Resource, over: int | None) -> Resource:
        """Put a resource into the new state, in place of the old entry `over`."""
        self.journal.record(new, over)
        return new
