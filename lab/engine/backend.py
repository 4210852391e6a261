"""The file backend: where checkpoints and locks lie, in the layout of the Pulumi CLI's own."""

import contextlib
import datetime
import json
import os
import shutil
import socket
import urllib.parse
import uuid
from pathlib import Path

from lab.engine.errors import EXIT_NO_STACK, EngineError, Refused


class FileBackend:
    """`file://` backend. `project` and `stack` are plain names."""

    def __init__(self, url: str, project: str, stack: str):
        if not url.startswith("file://"):
            raise EngineError(f"PULUMI_BACKEND_URL is {url!r}; lab/engine stores state only under file://<folder>")
        folder = urllib.parse.unquote(url[len("file://") :].split("?")[0]) or "."
        self.root = Path(folder).expanduser() / ".pulumi"
        self.name = f"organization/{project}/{stack}"
        self.path = self.root / "stacks" / project / f"{stack}.json"
        self.locks = self.root / "locks" / "organization" / project / stack

    def exists(self) -> bool:
        return self.path.exists()

    def create(self) -> None:
        if self.exists():
            raise EngineError(f"stack {self.name!r} already exists")
        meta = self.root / "meta.yaml"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not meta.exists():
            meta.write_text("version: 1\n")
        self.write('{"manifest":{"time":"0001-01-01T00:00:00Z","magic":"","version":""},"metadata":{}}')

    def read(self) -> dict:
        """The deployment (`latest`); EngineError with exit code 6 when there is no such stack."""
        try:
            data = json.loads(self.path.read_text())
        except FileNotFoundError:
            raise EngineError(f"no stack named {self.name!r} found; make it with `stack init`", EXIT_NO_STACK) from None
        except ValueError as error:
            raise EngineError(f"{self.path} is not JSON ({error}); its predecessor is {self.path.name}.bak") from None
        if data.get("version") != 3:
            raise Refused(f"{self.path} has the version {data.get('version')!r}; lab/engine reads only 3")
        return data["checkpoint"].get("latest") or {}

    def write(self, deployment: str) -> None:
        """Replace the checkpoint atomically; `deployment` is JSON text."""
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        temporary.write_text(
            f'{{"version":3,"checkpoint":{{"stack":{json.dumps(self.name)},"latest":{deployment}}}}}\n'
        )
        temporary.replace(self.path)

    def keep_previous(self) -> None:
        shutil.copyfile(self.path, self.path.with_name(self.path.name + ".bak"))

    def remove(self) -> None:
        for path in (self.path, self.path.with_name(self.path.name + ".bak")):
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def lock(self):
        """Hold the stack's lock; EngineError when another process has it."""
        self.locks.mkdir(parents=True, exist_ok=True)
        mine = self.locks / f"{uuid.uuid4()}.json"
        who = {
            "pid": os.getpid(),
            "username": os.environ.get("USER", "root"),
            "hostname": socket.gethostname(),
            "timestamp": datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z"),
        }
        mine.write_text(json.dumps(who))
        try:
            if others := [_describe(p) for p in sorted(self.locks.glob("*.json")) if p != mine]:
                raise EngineError(
                    f"the stack is currently locked by {len(others)} lock(s): {'; '.join(others)}. Wait for the other "
                    "process to end, or remove the lock with `cancel`"
                )
            yield
        finally:
            mine.unlink(missing_ok=True)

    def unlock(self) -> int:
        """Remove all locks; how many there were."""
        locks = list(self.locks.glob("*.json"))
        for path in locks:
            path.unlink(missing_ok=True)
        return len(locks)


def _describe(lock: Path) -> str:
    try:
        data = json.loads(lock.read_text())
        return f"{lock.name} by {data['username']}@{data['hostname']} (pid {data['pid']}) at {data['timestamp']}"
    except (OSError, ValueError, KeyError):
        return lock.name
