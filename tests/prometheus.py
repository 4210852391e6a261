"""Prometheus and promtool for tests: from PATH, or from Debian's package, unpacked for the tests alone."""

import os
import shutil
import socket
import subprocess
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.system import wait_for


def program(name, folder):
    """The path of `prometheus` or `promtool`; skips the test where neither way leads to it."""
    if found := shutil.which(name):
        return found
    if os.geteuid() or not shutil.which("apt-get"):
        pytest.skip(f"{name} is not on PATH, and unpacking Debian's needs root and apt-get")
    if (unpacked := Path(folder) / "usr/bin" / name).exists():
        return str(unpacked)
    package = "prometheus-alertmanager" if name in ("prometheus-alertmanager", "amtool") else "prometheus"
    get = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "-qq", package]
    if subprocess.run(get, cwd=folder, capture_output=True).returncode:
        pytest.skip(f"{name} is not on PATH, and Debian's package {package} can't be had here")
    for deb in Path(folder).glob(f"{package}_*.deb"):
        subprocess.run(["dpkg", "-x", deb, folder], check=True)
    return str(unpacked)


def check_metrics(promtool, text):
    """Fails for what `promtool check metrics` says of a text."""
    ran = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")


@contextmanager
def serving(folder, openmetrics):
    """The URL of a Prometheus that has these samples (text in the OpenMetrics format) and scrapes nothing."""
    prometheus, promtool = program("prometheus", folder), program("promtool", folder)
    (folder / "samples").write_text(openmetrics)
    (folder / "prometheus.yml").write_text("global: {}\n")
    make = [promtool, "tsdb", "create-blocks-from", "openmetrics", "samples", "data"]
    subprocess.run(make, cwd=folder, check=True, capture_output=True)
    at = free_address()
    argv = [prometheus, "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={at}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*argv, "--storage.tsdb.retention.time=100y"], cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        wait_for(lambda: ready(at), 60, f"Prometheus: {(folder / 'log').read_text()[-500:]}")
        yield f"http://{at}"
    finally:
        process.terminate()
        process.wait(30)


def free_address():
    """On the loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def ready(at):
    """Whether a Prometheus or an Alertmanager answers there."""
    try:
        with urllib.request.urlopen(f"http://{at}/-/ready", timeout=5) as answer:
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
