"""Child processes (program and plugins): started in their own process groups, ended with the engine whatever
happens.
"""

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from lab.engine.errors import EngineError

# Reads process group ids; kills the groups when its input ends, that is also when the engine was killed with -9.
_WATCHDOG = (
    'groups=""; while read -r group; do groups="$groups -$group"; done; [ -z "$groups" ] || kill -s KILL -- $groups'
)
START_LIMIT_S = 60


class Processes:
    """All child processes of one run."""

    def __init__(self):
        self._lock = threading.Lock()
        self._children: list[subprocess.Popen] = []
        self._watchdog: subprocess.Popen | None = None

    def start(self, argv: list[str], cwd: Path, env: dict, on_line: Callable[[str, bool], None]) -> subprocess.Popen:
        """Start `argv`; `on_line(text, is_stderr)` gets its output line by line from threads."""
        with self._lock:
            if self._watchdog is None:
                self._watchdog = subprocess.Popen(
                    ["/bin/sh", "-c", _WATCHDOG],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    text=True,
                )
            child = subprocess.Popen(
                argv,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                text=True,
                errors="replace",
            )
            self._children.append(child)
            self._watchdog.stdin.write(f"{child.pid}\n")
            self._watchdog.stdin.flush()
        for stream, is_stderr in ((child.stdout, False), (child.stderr, True)):
            thread = threading.Thread(target=_pump, args=(stream, is_stderr, on_line), daemon=True)
            thread.start()
            child.__dict__.setdefault("pumps", []).append(thread)
        return child

    def end_all(self, grace_s: float = 3.0) -> None:
        """SIGTERM to every group, SIGKILL after `grace_s`; returns when all are gone."""
        with self._lock:
            for child in self._children:
                signal_group(child, signal.SIGTERM)
            for child in self._children:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(grace_s)
                signal_group(child, signal.SIGKILL)
                child.wait()
            self._children.clear()
            if self._watchdog:
                self._watchdog.kill()
                self._watchdog.wait()
                self._watchdog.stdin.close()
                self._watchdog = None


def signal_group(child: subprocess.Popen, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def drain(child: subprocess.Popen) -> None:
    """Wait until the output of an ended process is read (its own children may hold the pipe: not for long)."""
    for thread in child.__dict__.get("pumps", []):
        thread.join(1)


def _pump(stream, is_stderr: bool, on_line) -> None:
    with contextlib.suppress(ValueError):
        for line in stream:
            on_line(line.rstrip("\n"), is_stderr)


def find_plugin(package: str, folders: dict[str, Path]) -> Path:
    """The executable `pulumi-resource-<package>`: from Pulumi.yaml's plugins.providers, else from PATH."""
    name = f"pulumi-resource-{package}"
    if package in folders:
        path = folders[package] / name
        if not os.access(path, os.X_OK):
            raise EngineError(f"Pulumi.yaml: plugins.providers: {folders[package]} has no executable {name}")
        return path
    if on_path := shutil.which(name):
        return Path(on_path)
    raise EngineError(
        f"no provider plugin for the package {package!r}: {name} is neither named by path under plugins.providers in "
        "Pulumi.yaml nor found on PATH"
    )


def start_plugin(
    processes: Processes, path: Path, engine_address: str, cwd: Path, on_line: Callable[[str, bool], None]
) -> tuple[subprocess.Popen, str]:
    """Start a plugin; returns its process and its gRPC address, which it prints as its first line."""
    first: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    seen = threading.Event()

    def line(text: str, is_stderr: bool) -> None:
        if not is_stderr and not seen.is_set():
            seen.set()
            first.put(text.strip())
        else:
            on_line(text, is_stderr)

    child = processes.start([str(path), engine_address], cwd, dict(os.environ), line)
    threading.Thread(target=lambda: (child.wait(), drain(child), first.put(None)), daemon=True).start()
    try:
        port = first.get(timeout=START_LIMIT_S)
    except queue.Empty:
        raise EngineError(f"the plugin {path} printed no port within {START_LIMIT_S} s") from None
    if not (port or "").isdigit():
        raise EngineError(
            f"the plugin {path} "
            + (f"printed {port!r} instead of its port" if port else "ended before it printed its port")
        )
    return child, f"127.0.0.1:{port}"
