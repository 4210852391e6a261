"""Drives `lab.engine` against the probe provider in a temporary project."""

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lab.engine.cli import main

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
ENGINE = [sys.executable, "-m", "lab.engine"]
FLAGS = ["--yes", "--skip-preview", "--non-interactive", "--json"]
LIMIT_S = 60
# Of the passphrase `correct`; the same for all tests, for to derive a key takes a while.
SALT = "v1:odx454TeB/8=:v1:3B7ZjvUPuMWZU+nA:WNVV0XGkqJUXkfUaF0AWAS1yT2TCdg=="


@dataclass
class Run:
    code: int
    out: str
    err: str
    events: list[dict] = field(default_factory=list)

    @property
    def changes(self) -> dict:
        """Counts by operation of the last summary, or of a preview's object."""
        counts = [e["summaryEvent"]["resourceChanges"] for e in self.events if "summaryEvent" in e]
        return counts[-1] if counts else json.loads(self.out)["changeSummary"]

    @property
    def messages(self) -> str:
        return "\n".join(e["diagnosticEvent"]["message"] for e in self.events if "diagnosticEvent" in e) + self.err


class Project:
    """A project `t` with the stack `dev`; the state, the store and the plugin's calls are at hand."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        self.folder, self.store, self.states = folder / "project", folder / "store", folder / "state"
        for path in (self.folder, self.store, self.states):
            path.mkdir()
        self.environment = {
            "PULUMI_BACKEND_URL": f"file://{self.states}",
            "PULUMI_CONFIG_PASSPHRASE": "correct",
            "PROBE_STORE": str(self.store),
            "PROBE_PYTHON": sys.executable,
            "PYTHONPATH": f"{HERE}{os.pathsep}{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        for key, value in self.environment.items():
            monkeypatch.setenv(key, value)
        self._monkeypatch = monkeypatch
        (self.folder / "Pulumi.yaml").write_text(
            json.dumps(
                {"name": "t", "runtime": "python", "plugins": {"providers": [{"name": "probe", "path": str(HERE)}]}}
            )
        )
        self.config_file = self.folder / "Pulumi.dev.yaml"

    def setenv(self, **values: str) -> None:
        for key, value in values.items():
            self._monkeypatch.setenv(key, value)

    def program(self, text: str) -> None:
        (self.folder / "__main__.py").write_text("import pulumi\nfrom probe_sdk import *\n" + text)

    def run(self, *arguments: str) -> Run:
        """In this process: the same code, without the interpreter's start."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*arguments, "--stack", "dev", "--cwd", str(self.folder)])
        return self._result(code, out.getvalue(), err.getvalue())

    def start(self, *arguments: str) -> subprocess.Popen:
        """As a process of its own, for signals and locks."""
        return subprocess.Popen(
            [*ENGINE, *arguments, "--stack", "dev"],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process: subprocess.Popen) -> Run:
        out, err = process.communicate(timeout=LIMIT_S)
        return self._result(process.returncode, out, err)

    @staticmethod
    def _result(code: int, out: str, err: str) -> Run:
        events = []
        for line in out.splitlines():
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                events += [event] if isinstance(event, dict) else []
        return Run(code, out, err, events)

    def init(self) -> None:
        assert self.run("stack", "init").code == 0

    def up(self, *flags: str, code: int = 0) -> Run:
        return self._checked("up", code, *flags)

    def refresh(self, *flags: str, code: int = 0) -> Run:
        return self._checked("refresh", code, *flags)

    def destroy(self, *flags: str, code: int = 0) -> Run:
        return self._checked("destroy", code, *flags)

    def _checked(self, verb: str, code: int, *flags: str) -> Run:
        asked = [flag for flag in FLAGS if "--preview-only" not in flags or flag not in ("--yes", "--skip-preview")]
        done = self.run(verb, *asked, *flags)
        assert done.code == code, done.messages
        return done

    def preview(self, code: int = 0) -> dict:
        done = self.run("preview", "--non-interactive", "--json")
        assert done.code == code, done.out + done.err
        return json.loads(done.out)

    def deployment(self, *flags: str) -> dict:
        return json.loads(self.run("stack", "export", *flags).out)["deployment"]

    def resources(self, *flags: str) -> dict[str, dict]:
        """State entries by name (default providers left out)."""
        entries = self.deployment(*flags).get("resources") or []
        return {r["urn"].rsplit("::", 1)[-1]: r for r in entries if "::default" not in r["urn"]}

    def outputs(self, *flags: str) -> dict:
        return json.loads(self.run("stack", "output", "--json", *flags).out)

    def calls(self, *kinds: str) -> list[dict]:
        """The plugin's calls since the last time, of these kinds, without previews."""
        path = self.store / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        calls = [json.loads(line) for line in lines]
        return [c for c in calls if (not kinds or c["call"] in kinds) and not c.get("preview")]

    def knobs(self, **knobs: list[str]) -> None:
        (self.store / "knobs").write_text(json.dumps(knobs))

    def stored(self) -> list[str]:
        return sorted(path.stem for path in self.store.glob("*.json"))

    def drift(self, id_: str, **values) -> None:
        path = self.store / f"{id_}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    def wait_for(self, name: str) -> None:
        """Until the file `name` is in the store."""
        wait_until(lambda: (self.store / name).exists(), f"{name} in the store")


def wait_until(condition, what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within {LIMIT_S} s"
        time.sleep(0.02)


@pytest.fixture(name="project")
def initialised_project(tmp_path, monkeypatch) -> Project:
    made = Project(tmp_path, monkeypatch)
    made.config_file.write_text(f"encryptionsalt: {SALT}\n")
    made.init()
    return made
