"""The program's process: an unmodified Pulumi Python program, run by the shim."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from lab.engine.errors import EngineError
from lab.engine.plugins import Processes, drain, signal_group
from lab.engine.project import Config, Project

ALREADY_REPORTED = 32  # the shim's exit code for "the error is in the engine's log"
ORGANIZATION = "organization"


class Program:
    """`start` runs it; `on_exit` is called once from a thread, when it has ended and its output is read."""

    def __init__(self, project: Project, stack: str, config: Config, preview: bool, parallel: int):
        self.project, self.stack, self.config, self.preview, self.parallel = project, stack, config, preview, parallel
        self._child: subprocess.Popen | None = None
        self.exit_code: int | None = None

    def start(
        self, processes: Processes, address: str, on_line: Callable[[str, bool], None], on_exit: Callable[[], None]
    ) -> None:
        main = (self.project.root / self.project.main).resolve()
        if not main.exists():
            raise EngineError(f"Pulumi.yaml: main: {main} does not exist")
        folder = main if main.is_dir() else main.parent
        if main.is_dir() and not (main / "__main__.py").exists():
            raise EngineError(f"{main} has no __main__.py to run")
        arguments = {
            "monitor": address,
            "engine": address,
            "project": self.project.name,
            "stack": self.stack,
            "root_directory": str(self.project.root),
            "organization": ORGANIZATION,
            "dry_run": "true" if self.preview else "false",
            "parallel": str(self.parallel),
        }
        # -P: the shim's own folder must not come onto sys.path (it holds a secrets.py)
        argv = [self._python(), "-P", str(Path(__file__).with_name("shim.py"))]
        argv += [word for name, value in arguments.items() for word in (f"--{name}", value)]
        env = {
            **os.environ,
            "PULUMI_CONFIG": json.dumps(self.config.values),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(sorted(self.config.secret_keys)),
        }
        self._child = processes.start([*argv, str(main)], folder, env, on_line)
        threading.Thread(target=self._wait, args=(on_exit,), daemon=True).start()

    def kill(self) -> None:
        """At once: the interpreter would wait for threads that wait for the engine."""
        if self._child:
            signal_group(self._child, signal.SIGKILL)

    def _wait(self, on_exit: Callable[[], None]) -> None:
        code = self._child.wait()
        drain(self._child)
        self.exit_code = code
        on_exit()

    def _python(self) -> str:
        if not self.project.virtualenv:
            return sys.executable
        python = self.project.root / self.project.virtualenv / "bin" / "python"
        if not python.exists():
            raise EngineError(f"Pulumi.yaml: runtime.options.virtualenv: {python} does not exist")
        return str(python)
