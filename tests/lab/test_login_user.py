"""A hall whose login user is no root: sudo asks for a password on the head, and for none on the node."""

import json
import os

import pytest

from lab.demo.inside import Inside
from tests import sites
from tests.playbooks import sample

pytestmark = [pytest.mark.lab, pytest.mark.slow]
HALL = ("head", "dgx01")
WORD = 'correct horse "battery$'
MAKE = """useradd --create-home --shell /bin/bash ops && install -d -o ops -g ops -m 700 ~ops/.ssh
install -o ops -g ops -m 600 /root/.ssh/authorized_keys ~ops/.ssh/ && chpasswd
"""


@pytest.fixture(scope="module")
def inside():
    with sites.running(f"t-login-{os.getpid()}", *HALL) as site:
        key, word = (site.dir / "run" / name for name in ("munge.key", "sudo"))
        key.write_bytes(b"x" * 64)
        word.write_text(WORD)
        for name, rule in (("head", "ALL=(ALL) ALL"), ("dgx01", "ALL=(ALL) NOPASSWD: ALL")):
            # every time anew, as hardened hosts have it
            site.ssh(name, f"printf 'Defaults timestamp_timeout=0\\nops {rule}\\n' > /etc/sudoers.d/ops")
            site.ssh(name, MAKE, stdin=f"ops:{WORD}\n")
        inside = Inside(site)
        login = {"ssh": {"user": "ops", "sudo_password": f"file:{word}"}}
        sample.publish(inside.document, munge_key=f"file:{key}", names=HALL, declare=login)
        yield inside


def test_the_hall_is_converged_proved_unchanged_and_repaired(inside):
    first = sites.converge(inside)
    assert {name: host["state"] for name, host in first["hosts"].items()} == dict.fromkeys(HALL, "converged")
    again = sites.converge(inside)
    assert {name: host["state"] for name, host in again["hosts"].items()} == dict.fromkeys(HALL, "unchanged")
    receipts = (inside.site.dir / "run" / "state").rglob("*")
    texts = [path.read_text() for path in receipts if path.is_file()] + [json.dumps(first), json.dumps(again)]
    assert texts and not any("battery" in text for text in texts)


def test_a_node_in_service_is_drained_and_given_back_through_the_head(inside):
    sample.publish(
        inside.document,
        munge_key=f"file:{inside.site.dir / 'run' / 'munge.key'}",
        names=HALL,
        driver="580.105.08",
        declare={"ssh": {"user": "ops", "sudo_password": f"file:{inside.site.dir / 'run' / 'sudo'}"}},
    )
    told = sites.converge(inside, "--limit", "dgx01", "--share", "100%")
    assert told["hosts"]["dgx01"]["state"] == "converged" and told["hosts"]["dgx01"]["drained"]
