"""A real journal and real log centres for tests: journald with a namespace of its own (its sockets are like the
host's), VictoriaLogs and OpenSearch on the loopback, and the role's program between them.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab import logs
from lab.system import LabError, wait_for
from tests.prometheus import free_address

PROGRAM = Path(__file__).parents[1] / "playbooks/roles/logs/files/ironburst-logs.py"
JOURNALD = "/lib/systemd/systemd-journald"
VICTORIA_PATH = "/insert/elasticsearch/_bulk?_msg_field=message&_time_field=@timestamp&_stream_fields=host,program"


class Journal:
    """One of a host. `options`: journalctl's, to read it."""

    def __init__(self, namespace):
        self.options = [f"--namespace={namespace}"]
        self.socket = f"/run/systemd/journal.{namespace}/socket"

    def write(self, message, program="slurmd", **fields):
        """A line, by journald's own protocol."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as way:
            way.connect(self.socket)
            self.write_to(way, message, program, **fields)

    @staticmethod
    def write_to(way, message, program="slurmd", **fields):
        data = message.encode()
        said = [f"{name}={value}" for name, value in {"PRIORITY": 6, "SYSLOG_IDENTIFIER": program, **fields}.items()]
        body = "\n".join([*said, "MESSAGE\n"]).encode()
        way.send(body + len(data).to_bytes(8, "little") + data + b"\n")

    def lines(self, first, number):
        """So many numbered ones."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as way:
            way.connect(self.socket)
            for n in range(first, first + number):
                self.write_to(way, f"line {n}")


@contextmanager
def journal():
    """A host's journal; skips the test where journald can't be run. One that hears nothing for 30 s ends."""
    if os.geteuid() or not Path(JOURNALD).exists() or not Path("/etc/machine-id").read_text().strip():
        pytest.skip("a journal of one's own needs root, systemd-journald and a machine-id")
    name = f"ib{os.getpid()}x{os.urandom(3).hex()}"
    kept = [Path(f"{parent}/{Path('/etc/machine-id').read_text().strip()}.{name}") for parent in PARENTS]
    config = Path(f"/run/systemd/journald@{name}.conf")
    config.parent.mkdir(exist_ok=True)
    config.write_text("[Journal]\nRateLimitIntervalSec=0\nSystemMaxUse=200M\n")
    process = subprocess.Popen([JOURNALD, name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        made = Journal(name)
        wait_for(lambda: Path(made.socket).exists() or process.poll() is not None, 20, "journald")
        if process.poll() is not None:
            pytest.skip("systemd-journald doesn't run here")
        yield made
    finally:
        process.terminate()
        process.wait(20)
        config.unlink()
        for folder in [*kept, Path(f"/run/systemd/journal.{name}")]:
            shutil.rmtree(folder, ignore_errors=True)


PARENTS = ("/var/log/journal", "/run/log/journal")


def asked(url, data=None, method=None, headers=None):
    """What a centre answers: text."""
    request = urllib.request.Request(url, data, headers or {}, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


class Centre:
    """A log centre that can be stopped and started again, with what it has."""

    kind = ""

    def __init__(self, folder):
        self.folder, self.at, self.process = folder, free_address(), None
        self.url = f"http://{self.at}"

    def start(self):
        with (self.folder / "centre.log").open("a") as log:
            self.process = subprocess.Popen(self.command(), cwd=self.folder, stdout=log, stderr=subprocess.STDOUT)
        wait_for(lambda: self.process.poll() is not None or self.ready(), 120, self.kind)
        assert self.process.poll() is None, (self.folder / "centre.log").read_text()[-1000:]

    def stop(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait(60)

    def ready(self):
        try:
            asked(f"{self.url}{self.HEALTH}")
        except OSError:
            return False
        return True


class Victoria(Centre):
    kind, HEALTH, path = "victorialogs", "/health", VICTORIA_PATH

    def command(self):
        return logs.victoria_command(logs.victoria(), self.at, self.folder / "data", days=3650)

    def documents(self):
        asked(f"{self.url}/internal/force_flush")
        query = urllib.parse.urlencode({"query": "* | sort by (_time)", "limit": 10_000_000})
        rows = [json.loads(row) for row in asked(f"{self.url}/select/logsql/query", query.encode()).splitlines()]
        return [row | {"message": row["_msg"]} for row in rows]


class OpenSearch(Centre):
    kind, HEALTH, path = "elasticsearch", "/_cluster/health?wait_for_status=yellow&timeout=5s", "/_bulk"

    def command(self):
        return logs.opensearch_command(logs.opensearch(), self.at, self.folder)

    def documents(self):
        try:
            asked(f"{self.url}/ironburst-logs-*/_refresh", b"", "POST")
            return self._all()
        except urllib.error.HTTPError:  # it reads what it had before
            return []

    def _all(self):
        found, after = [], []
        while True:
            body = {"size": 10_000, "sort": [{"@timestamp": "asc"}, {"id": "asc"}]}
            body |= {"search_after": after[-1]} if after else {}
            answer = asked(f"{self.url}/ironburst-logs-*/_search", json.dumps(body).encode(), None, JSON)
            hits = json.loads(answer)["hits"]["hits"]
            if not hits:
                return found
            found += [hit["_source"] for hit in hits]
            after = [hits[-1]["sort"]]


JSON = {"Content-Type": "application/json"}


@contextmanager
def centre(kind, folder):
    """One that runs; skips the test where it can't be had."""
    folder.mkdir(exist_ok=True)
    made = kind(folder)
    try:
        made.start()
    except LabError as error:
        pytest.skip(str(error))
    try:
        yield made
    finally:
        made.stop()


@contextmanager
def sending(folder, url, journal, **settings):
    """The program, which sends a journal there; ended as by the end of a host."""
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({"url": url, "journal": journal.options} | settings))
    environment = os.environ | {"STATE_DIRECTORY": str(folder)}
    with (folder / "said").open("a") as said:
        process = subprocess.Popen(
            [sys.executable, PROGRAM, str(folder / "settings.json")],
            env=environment,
            stderr=said,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)
