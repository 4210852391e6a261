"""Prometheus, promtool, Alertmanager and amtool for tests: from PATH, or from Debian's packages, unpacked for the tests
alone.
"""

import atexit
import functools
import http.server
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml

from lab.system import wait_for


def program(name):
    """The path of one of them; skips the test where neither way leads to it."""
    if found := shutil.which(name):
        return found
    if os.geteuid() or not shutil.which("apt-get"):
        pytest.skip(f"{name} is not on PATH, and unpacking Debian's needs root and apt-get")
    package = "prometheus-alertmanager" if name in ("prometheus-alertmanager", "amtool") else "prometheus"
    if not (folder := unpacked(package)):
        pytest.skip(f"{name} is not on PATH, and Debian's package {package} can't be had here")
    return str(folder / "usr/bin" / name)


@functools.cache
def unpacked(package):
    """The folder with a package's files, for as long as this process; None: it can't be had."""
    folder = Path(tempfile.mkdtemp(prefix="ironburst-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    get = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "-qq", package]
    if subprocess.run(get, cwd=folder, capture_output=True).returncode:
        return None
    subprocess.run(["dpkg", "-x", *map(str, folder.glob("*.deb")), folder], check=True)
    return folder


def check_metrics(promtool, text):
    """Fails for what `promtool check metrics` says of a text."""
    ran = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")


@contextmanager
def running(folder, config, *options):
    """The URL of a Prometheus with this configuration, which keeps its data in `folder`/data."""
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    at = free_address()
    argv = [program("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    argv += [f"--web.listen-address={at}", *options]
    with started(argv, folder, at):
        yield f"http://{at}"


@contextmanager
def started(argv, folder, at, path="/-/ready"):
    """The process of a server, from when it is ready until the block ends."""
    with (folder / f"{at}.log").open("w+") as log:
        process = subprocess.Popen(argv, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_for(lambda: ready(at, path) or process.poll() is not None, 60, argv[0])
            log.seek(0)
            assert process.poll() is None, log.read()[-1000:]
            yield process
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def serving(folder, openmetrics):
    """The URL of a Prometheus that has these samples (text in the OpenMetrics format) and scrapes nothing."""
    (folder / "samples").write_text(openmetrics)
    make = [program("promtool"), "tsdb", "create-blocks-from", "openmetrics", "samples", "data"]
    subprocess.run(make, cwd=folder, check=True, capture_output=True)
    with running(folder, {}, "--storage.tsdb.retention.time=100y") as url:
        yield url


def query(url, expression):
    """What `/api/v1/query` answers: a list of {metric, value}."""
    with urllib.request.urlopen(f"{url}/api/v1/query?{urlencode({'query': expression})}", timeout=10) as answer:
        return json.load(answer)["data"]["result"]


@contextmanager
def exporter(text):
    """The address of a server of these samples; counters (by their TYPE lines) grow with each scrape."""
    counters = set(re.findall(r"^# TYPE (\S+) counter$", text, re.MULTILINE))
    scrapes = itertools.count(2)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            factor = next(scrapes) / 2
            rows = (line.rpartition(" ") for line in text.splitlines())
            lines = (
                f"{series} {float(value) * factor}" if series.partition("{")[0] in counters else f"{series} {value}"
                for series, _, value in rows
            )
            self.send_response(200)
            self.end_headers()
            self.wfile.write("".join(f"{line}\n" for line in lines).encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def free_address():
    """On the loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def ready(at, path):
    """Whether a server answers there."""
    try:
        with urllib.request.urlopen(f"http://{at}{path}", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def alertmanager(path):
    """The command of an unpacked Alertmanager: it reads its templates below /usr/share, which it gets to itself."""
    share = Path(path).parents[1] / "share"
    if Path("/usr/share/prometheus/alertmanager").exists() or not share.exists():
        return [path]
    alone = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
    return [*alone, 'mount --bind "$0" /usr/share && exec "$@"', str(share), path]
