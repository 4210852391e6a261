"""The role logs on a real host, with its own journald and systemd: what it says arrives at a log centre, also what
it says while that is away, and nothing of it that looks like a secret.
"""

import json
import os
import re
import subprocess

import pytest

from lab import logs
from lab.demo.inside import Inside
from lab.system import wait_for
from tests import sites
from tests.lab.test_roles import out
from tests.planted import Plants
from tests.playbooks import sample

pytestmark = [pytest.mark.lab, pytest.mark.slow]
AT = "10.78.0.1:9428"


def signed(password):
    return {"user": "ironburst", "password": f"file:{password}"}


@pytest.fixture(scope="module")
def site():
    with sites.running(f"t-logs-{os.getpid()}", "head") as site:
        yield site


@pytest.fixture(scope="module")
def plants():
    return Plants()


@pytest.fixture(scope="module")
def password(site, plants):
    """Its file, of who may write."""
    file = site.dir / "run" / "logs.password"
    file.write_text(plants.plant("the centre's password", "a-{}"))
    return file


@pytest.fixture(scope="module")
def inside(site, password):
    inside = Inside(site)
    document = sample.lab_document(names=("head",)).model_dump(mode="json") | {"serial": 1}
    document["monitoring"]["logs"] = {"url": f"http://{AT}", "kind": "victorialogs", "days": 30, **signed(password)}
    document["hosts"][0]["roles"].append("logs")
    inside.document.write_text(json.dumps(document))
    return inside


def start(site, password):
    """The centre, with what it has; it asks for the password."""
    command = logs.victoria_command(logs.victoria(), AT, site.dir / "run" / "logs")
    asks = ["-httpAuth.username=ironburst", f"-httpAuth.password=file://{password}"]
    pid = site.spawn([*command, *asks], "logs")
    wait_for(lambda: asked(site, password, "*") is not None, 60, "the log centre")
    return pid


def asked(site, password, query):
    """Lines that it has; None: it gives no answer."""
    user = ["--user", f"ironburst:{password.read_text()}"]
    command = [
        "curl",
        "--silent",
        "--fail",
        *user,
        f"http://{AT}/select/logsql/query",
        "--data-urlencode",
        f"query={query}",
    ]
    done = site.run(command, capture_output=True, text=True, timeout=30)
    return [json.loads(row) for row in done.stdout.splitlines()] if done.returncode == 0 else None


def play(inside, *options):
    values = json.dumps({"roles_tried": ["logs"]})
    command = inside.argv("ansible-playbook", "-i", "inventory/lab", "tests/lab/roles.yml", "-e", values, *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return re.findall(r"^changed: .*|^TASK.*(?=\nchanged)", done.stdout, re.MULTILINE)


def test_what_a_host_says_arrives(site, inside, plants, password):
    centre = start(site, password)
    assert len(play(inside)) >= 3
    secret = plants.plant("password")
    site.ssh("head", "cat > /tmp/line && logger -t slurmctld -f /tmp/line", stdin=f"password={secret}\n")
    site.ssh("head", "logger -p kern.crit -t kernel 'NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus'")
    (line,) = wait_for(lambda: asked(site, password, '"Xid"'), 60, "the line")
    assert (line["host"], line["program"], line["severity"]) == ("head", "kernel", "crit")
    assert (
        asked(site, password, "program:=slurmctld")
        and plants.found("centre", json.dumps(asked(site, password, "*"))) == []
    )

    assert play(inside) == play(inside, "--check") == []
    site.box.kill(centre)
    wait_for(lambda: asked(site, password, "*") is None, 30, "its end")
    site.ssh("head", "for n in $(seq 500); do logger -t slurmctld line $n; done")
    site.ssh("head", "systemctl restart ironburst-logs")
    start(site, password)
    query = 'program:=slurmctld "line"'
    wait_for(lambda: len({each["_msg"] for each in asked(site, password, query) or ()}) == 500, 90, "all of them")
    assert out(site, "systemctl show -P User,DynamicUser ironburst-logs").split()[-1] == "yes"
    anybody = out(site, "cat /etc/ironburst/logs.json /etc/systemd/system/ironburst-logs.service /proc/*/cmdline")
    assert plants.found("a file or a process", anybody) == []
    assert out(site, "stat -c %a /etc/ironburst/logs.password") == "600\n"
