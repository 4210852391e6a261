"""Drives the Pulumi CLI, or a command that takes the same verbs and flags.

The CLI itself, not the Automation API: only the CLI honours `stackConfigDir`.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TAIL_LINES = 30
_NO_REASON = re.compile(r"(update|refresh|destroy|preview) failed|Resource monitor has terminated, shutting down")
"""what the CLI says after the error that has the reason"""
DO = ("--yes", "--skip-preview")
"""without a question; the CLI refuses each of them beside --preview-only"""
AT_ONCE = "32"
"""resources; of the CLI's own four for each core, 200 nodes would wait for slow BMCs for minutes"""
Event = dict[str, Any]
"""A JSON object as the CLI prints it: an event, a diagnostic, a step."""


class PulumiError(Exception):
    """A command failed. `diagnostics` are the engine's errors: [{"urn"?,
    "message", "severity"}]; `code` the exit code.
    """

    def __init__(self, message: str, code: int, diagnostics: list[Event]):
        super().__init__(message)
        self.code = code
        self.diagnostics = diagnostics


@dataclass(frozen=True)
class Result:
    """`changes`: number of resources by operation (create, update, delete, replace, same, ...).

    `steps` only of what was looked at: the CLI's own step objects (op, urn, oldState, newState, ...).
    """

    changes: dict[str, int]
    diagnostics: list[Event] = field(default_factory=list)
    steps: list[Event] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Is there any resource that isn't the same?"""
        return any(count for op, count in self.changes.items() if op != "same")


class Pulumi:
    """One stack of the project in `folder`.

    `command` is what to run (default `["pulumi"]`), `environment` is added to the inherited one
    (PULUMI_BACKEND_URL, PULUMI_CONFIG_PASSPHRASE, ...). `progress` gets each JSON event of up, refresh
    and destroy as it comes. Methods raise PulumiError.
    """

    def __init__(
        self,
        folder: Path,
        stack: str,
        command: Sequence[str] = ("pulumi",),
        environment: dict[str, str] | None = None,
        progress: Callable[[Event], None] | None = None,
    ):
        self.folder, self.stack, self.command = Path(folder), stack, list(command)
        ours = {"PULUMI_SKIP_UPDATE_CHECK": "true", "PULUMI_PARALLEL": os.environ.get("PULUMI_PARALLEL", AT_ONCE)}
        self._environment = {**os.environ, **ours, **(environment or {})}
        self._progress = progress or (lambda _: None)

    def stack_exists(self) -> bool:
        """Does the backend know the stack?"""
        code, _, _ = self._capture("stack", "export", "--stack", self.stack)
        return code == 0

    def stack_init(self) -> None:
        """Make the stack; nothing happens when it is there."""
        if not self.stack_exists():
            self._checked("stack", "init", self.stack)

    def export(self) -> dict[str, Any]:
        """The state as `stack export` prints it; secrets stay encrypted."""
        state: dict[str, Any] = json.loads(self._checked("stack", "export", "--stack", self.stack))
        return state

    def outputs(self, show_secrets: bool = False) -> dict[str, Any]:
        """The stack's outputs; secrets are `[secret]` unless asked for."""
        flags = ["--show-secrets"] if show_secrets else []
        outputs: dict[str, Any] = json.loads(self._checked("stack", "output", "--json", "--stack", self.stack, *flags))
        return outputs

    def preview(self) -> Result:
        """What `up` would do; changes nothing."""
        return self._look("preview")

    def up(self) -> Result:
        """Make what is declared."""
        return self._operate("up", *DO)

    def refresh(self, preview_only: bool = False) -> Result:
        """`preview_only`: only look; `Result.changed` is whether there is drift."""
        return self._look("refresh", "--preview-only") if preview_only else self._operate("refresh", *DO)

    def destroy(self) -> Result:
        """Remove every resource of the stack."""
        return self._operate("destroy", *DO)

    # -- running -------------------------------------------------------------------------------------------------------

    def _look(self, verb: str, *flags: str) -> Result:
        """What changes nothing prints one object."""
        code, out, err = self._capture(verb, "--stack", self.stack, "--non-interactive", "--json", *flags)
        try:
            data = json.loads(out)
        except ValueError:
            data = {}
        diagnostics = data.get("diagnostics") or []
        if code:
            raise self._error(verb, code, diagnostics, err)
        return Result(data.get("changeSummary") or {}, diagnostics, data.get("steps") or [])

    def _operate(self, verb: str, *flags: str) -> Result:
        """Stream the events.
        When this process is interrupted, the command is too, and it is waited for: it stops cleanly.
        """
        unattended = ("--non-interactive", "--json")
        process = self._start([*self.command, verb, "--stack", self.stack, *unattended, *flags])
        assert process.stdout is not None and process.stderr is not None  # pipes, as _start asks for
        out, err = process.stdout, process.stderr
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        reader = threading.Thread(target=lambda: tail.extend(err), daemon=True)
        reader.start()
        changes: dict[str, int] = {}
        diagnostics: list[Event] = []
        try:
            for line in out:
                event = _event(line)
                if event is None:
                    tail.append(line)
                    continue
                changes = event.get("summaryEvent", {}).get("resourceChanges") or changes
                if "diagnosticEvent" in event:
                    diagnostics.append(event["diagnosticEvent"])
                self._progress(event)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            out.read()
            raise
        finally:
            code = process.wait()
            reader.join()
        if code:
            raise self._error(verb, code, diagnostics, "".join(tail))
        return Result(changes, diagnostics)

    def _start(self, argv: list[str]) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(
                argv,
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        except FileNotFoundError:
            what = argv[0] if self.folder.is_dir() else str(self.folder)
            raise PulumiError(
                f"{what!r} is not there: the command {self.command} cannot be run in {self.folder}", 127, []
            ) from None

    def _capture(self, *arguments: str) -> tuple[int, str, str]:
        process = self._start([*self.command, *arguments])
        out, err = process.communicate()
        return process.returncode, out, err

    def _checked(self, *arguments: str) -> str:
        code, out, err = self._capture(*arguments)
        if code:
            raise self._error(" ".join(arguments[:2]), code, [], err)
        return out

    def _error(self, verb: str, code: int, diagnostics: list[Event], stderr: str) -> PulumiError:
        errors = [d for d in diagnostics if d.get("severity") == "error"]
        lines = [f"{_name(d)}{d['message'].removeprefix('error: ').strip()}" for d in errors]
        lines = [line for line in lines if not _NO_REASON.fullmatch(line)] or [
            line for line in stderr.strip().splitlines()[-3:] if line
        ]
        why = "; ".join(dict.fromkeys(lines)) or "no reason given"
        return PulumiError(f"`{verb}` of stack {self.stack} failed (exit code {code}): {why}", code, errors)


def _event(line: str) -> Event | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _name(diagnostic: Event) -> str:
    """`Type name: ` of the resource that the diagnostic is about."""
    parts = diagnostic.get("urn", "").split("::", 3)
    return f"{parts[2].rsplit('$', 1)[-1]} {parts[3]}: " if len(parts) == 4 else ""
