"""The workflow files for prod with real hosts behind its runner: nothing is applied before somebody approves it, and
every night the hosts are asked. lab/ci stands in for GitHub, moto for AWS.
"""

import shlex
import shutil
import sys
from pathlib import Path

import pytest

from ironburst import document
from lab.tests.ci.sites import ROOT, Site, ended, first_up
from tests.lab_cloud import clients, cloud, server  # noqa: F401

pytestmark = [pytest.mark.lab, pytest.mark.slow]
FILE = "/etc/profile.d/ironburst-cuda.sh"


@pytest.fixture
def runner(tmp_path, cloud, inside, converged):  # noqa: F811
    """A site named prod, whose runner stands in the lab's hall: its ironburst and its ssh run in the lab's box."""
    made = Site(tmp_path, cloud.url, "prod")
    settings = {name: each for name, each in inside.env.items() if name not in ("PATH", "IRONBURST_DOCUMENT")}
    path = f"PATH={ROOT}/.venv/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    # HOME: ssh's control sockets lie below it, and a test's own folder has too long a name for a socket
    box = f'{shlex.join(inside.box.enter_prefix())} env --chdir="$PWD" PYTHONPATH="$PWD" HOME={Path.home()}'
    there = [path, *(f"{name}={each}" for name, each in settings.items())]
    tools = {
        "ironburst": [*there, sys.executable, "-m", "ironburst.cli"],
        "ssh": [*there, *inside.ssh, "-l", "root"],
    }
    for name, words in tools.items():
        (tmp_path / "tools" / name).write_text(f'#!/bin/sh\nexec {box} {shlex.join(words)} "$@"\n')
        (tmp_path / "tools" / name).chmod(0o755)
    real = f"{ROOT}/.venv"
    make = (
        f"mkdir -p .venv/bin && ln -s {real}/lib {real}/pyvenv.cfg .venv && ln -s {real}/bin/* .venv/bin && "
        f"ln -sf {tmp_path}/tools/ironburst .venv/bin/ironburst"
    )
    (tmp_path / "tools" / "make").write_text(f'#!/bin/sh\n[ "$*" != setup ] || {{ {make}; }}\n')
    shutil.rmtree(made.clone / "inventory/prod")
    shutil.copytree(made.clone / "inventory/lab", made.clone / "inventory/prod", symlinks=True)
    made.prepare_account()
    yield made
    made.forge.close()


def test_prod_waits_for_its_reviewer_and_its_hosts_are_asked_every_night(runner, inside, site):
    forge = runner.forge
    runner.push("main", "first")
    first_up(runner)
    hall = {"DOCUMENT": str(inside.document), "HEAD_SSH": "10.78.0.10"}
    for name in ("preview-prod", "drift-prod"):
        forge.environments[name].vars |= hall

    runner.push("more", "a second node", lambda c: c["cloud"]["pools"][0].update(max_nodes=2))
    pull, results = forge.pull_request("more", "A second node")
    log = ended(results, preview="success")
    (comment,) = pull.comments.values()
    assert "- none on 3 hosts" in comment, comment + log + (runner.of("preview-plan") / "converge.json").read_text()

    forge.approve = lambda environment: environment == "staging"
    assert "nobody approved prod" in ended(forge.merge(pull), up="failure")
    assert not runner.document.exists()
    forge.approve = lambda environment: environment == "prod"
    runner.push("third", "a third node", lambda c: c["cloud"]["pools"][0].update(max_nodes=3))
    pull, _ = forge.pull_request("third", "A third node")
    ended(forge.merge(pull), up="success")
    assert document.read(runner.document).serial == 1

    (night,) = forge.nightly("drift")
    assert night.conclusion == "success" and "- none on 3 hosts" in night.summary, night.log
    site.ssh("dgx01", f"cp -a {FILE} /root/kept && echo by-hand >> {FILE}")
    try:
        (night,) = forge.nightly("drift")
    finally:
        site.ssh("dgx01", f"cp -a /root/kept {FILE}")
    assert night.conclusion == "failure" and "`dgx01`: drifted" in night.summary, night.log
