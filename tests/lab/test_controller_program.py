"""The controller's program on the head, by the role: installed, upgraded, and taken back. pip gets what it needs from a
folder, as on a site without a way out; this machine fetches that from its package index.
"""

import json
import re
import subprocess
import sys

import pytest

import ironburst
from tests import wheels

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.usefixtures("converged")]
NEWER = "9.9.9"


@pytest.fixture(scope="module")
def play(inside, site, tmp_path_factory):
    folder = site.dir / "shared" / "wheels"
    folder.mkdir()
    python = site.ssh("head", "python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'").stdout.strip()
    scratch, built = tmp_path_factory.mktemp("scratch"), tmp_path_factory.mktemp("built")
    paths = {version: wheels.build(scratch, built, version) for version in ("", NEWER)}
    fetch = ["download", "--quiet", "--only-binary=:all:", "--python-version", python, "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", *fetch, f"{paths['']}[kubernetes]"], check=True, timeout=300)

    def run(version, ok=True, **more):
        """Of one run of the head's role: (what was changed, output)."""
        given = {
            "slurm_head_controller_wheel": str(paths[version]),
            "slurm_head_controller_pip": ["--no-index", "--find-links", "/shared/wheels"],
        } | more
        command = ["ansible-playbook", "-i", "inventory/lab", "playbooks/site.yml", "--limit", "head"]
        done = subprocess.run(
            inside.argv(*command, "-e", json.dumps(given)), capture_output=True, text=True, timeout=600
        )
        assert not ok or done.returncode == 0, (done.stdout + done.stderr)[-6000:]
        recap = re.search(r"^head +: ok=\d+ +changed=(\d+)", done.stdout.rpartition("PLAY RECAP")[2], re.MULTILINE)
        return int(recap[1]) if recap else -1, " ".join((done.stdout + done.stderr).split())

    return run


def version_of(site):
    return site.ssh("head", "/opt/ironburst/.venv/bin/ironburst --version").stdout.strip()


def test_it_is_installed_upgraded_and_taken_back(play, site):
    assert play("")[0] > 0
    assert version_of(site) == f"ironburst {ironburst.__version__}"
    assert play("")[0] == 0
    assert play(NEWER)[0] > 0
    assert version_of(site) == f"ironburst {NEWER}"
    assert play("")[0] > 0
    assert version_of(site) == f"ironburst {ironburst.__version__}"
    versions = site.ssh("head", "ls -d /opt/ironburst/[0-9]*").stdout.split()
    assert versions == [f"/opt/ironburst/{each}" for each in sorted((ironburst.__version__, NEWER))]


def test_a_cluster_beside_slurm_brings_what_reaches_it(play, site):
    """When it is asked for: tests/playbooks/test_service_roles.py. Here its installation, beside the same version."""
    python = "/opt/ironburst/.venv/bin/python"
    play("")
    assert site.ssh("head", f"{python} -m ironburst.cli --help").stdout.startswith("usage: ironburst")
    assert site.ssh("head", f"{python} -c 'import kubernetes'", check=False).returncode != 0
    assert play("", slurm_head_controller_extra="kubernetes")[0] > 0
    site.ssh("head", f"{python} -c 'import kubernetes, cryptography'")
    assert play("", slurm_head_controller_extra="kubernetes")[0] == 0


def test_one_that_somebody_put_there_stays(play, site):
    site.ssh("head", "rm /opt/ironburst/.venv; mkdir -p /opt/ironburst/.venv/bin; touch /opt/ironburst/.venv/bin/mine")
    try:
        assert "/opt/ironburst/.venv on head is a folder that was put there by hand" in play("", ok=False)[1]
        assert site.ssh("head", "ls /opt/ironburst/.venv/bin").stdout.split() == ["mine"]
    finally:
        site.ssh("head", "rm -r /opt/ironburst", timeout=300)
