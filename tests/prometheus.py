"""Prometheus and promtool for tests: from PATH, or from Debian's package, unpacked for the tests alone."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def program(name, folder):
    """The path of `prometheus` or `promtool`; skips the test where neither way leads to it."""
    if found := shutil.which(name):
        return found
    if os.geteuid() or not shutil.which("apt-get"):
        pytest.skip(f"{name} is not on PATH, and unpacking Debian's needs root and apt-get")
    get = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "-qq", "prometheus"]
    if subprocess.run(get, cwd=folder, capture_output=True).returncode:
        pytest.skip(f"{name} is not on PATH, and Debian's package prometheus can't be had here")
    subprocess.run(["dpkg", "-x", *map(str, Path(folder).glob("*.deb")), folder], check=True)
    return str(Path(folder) / "usr/bin" / name)


def check_metrics(promtool, text):
    """Fails for what `promtool check metrics` says of a text."""
    ran = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")
