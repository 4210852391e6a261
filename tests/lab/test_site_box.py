"""The box: side by side, one at a time, and nothing left however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab import names
from lab.hosts import spec
from lab.hosts.box import Box
from lab.hosts.host import Host
from lab.system import CHECKOUT, LabError, wait_for
from tests.sites import need_lab

pytestmark = pytest.mark.lab


@pytest.fixture
def boxes():
    """Makes boxes with prefixes of this test run, and ends them all."""
    need_lab()
    made = []

    def box(name: str) -> Box:
        made.append(Box(f"t-{name}-{os.getpid()}"))
        return made[-1]

    yield box
    for one in made:
        one.down()


def start(box: Box, name: str) -> Host:
    machine = Host(box, name)
    machine.start(spec.bare_metal(name))
    return machine


def clean(box: Box) -> bool:
    return not any(box.leftovers().values())


def test_two_labs_use_the_same_names_and_addresses(boxes):
    first, second = boxes("one"), boxes("two")
    machines = []
    for box in (first, second):
        box.up(tied=True)
        machines.append(start(box, "dgx01"))
    for machine in machines:
        assert machine.wait() == "running"
        machine.ssh(f"echo {machine.box.prefix} > /root/lab")
    assert [machine.ssh("cat /root/lab").stdout.strip() for machine in machines] == [first.prefix, second.prefix]
    first.down()
    assert clean(first) and machines[1].ssh("hostname").stdout.strip() == "dgx01"


def test_the_gateway_keeps_its_mac_as_hosts_come_and_go(boxes):
    """A bridge takes its lowest port's, unless it was given one; the hosts then send to the former for 48 s."""
    box = boxes("mac")
    box.up(tied=True)

    def link(*words):
        return subprocess.run([*box.net_prefix(), "ip", *words], check=True, capture_output=True, text=True).stdout

    before = link("-brief", "link", "show", "br0").split()[2]
    link("link", "add", "low", "address", "00:00:00:00:00:01", "type", "veth", "peer", "name", "high")
    link("link", "set", "low", "master", "br0", "up")
    assert link("-brief", "link", "show", "br0").split()[2] == before == names.mac_of("gateway")


def test_one_lab_is_up_once(boxes):
    box = boxes("once")
    box.up(tied=True)
    with pytest.raises(LabError, match=f"lab '{box.prefix}' is already up"):
        Box(box.prefix).up()
    assert box.is_up()


@pytest.mark.parametrize("victim", ["init", "unshare"])
def test_a_kill_leaves_nothing_after_down(boxes, victim):
    box = boxes(f"kill-{victim}")
    box.up()
    start(box, "dgx01").wait()
    (box.dir / "report" / "kept.txt").write_text("evidence")
    before = box.leftovers()
    assert min(before[kind] for kind in ("processes", "network_namespaces", "cgroups", "veths", "folders")) > 0, before
    init = box.pid()
    os.kill(
        init if victim == "init" else int(Path(f"/proc/{init}/stat").read_text().rsplit(")", 1)[1].split()[1]),
        signal.SIGKILL,
    )
    wait_for(lambda: not box.is_up(), 10, "the end of the box")
    wait_for(lambda: box.leftovers()["processes"] == 0, 10, "the end of its processes")
    box.down()
    assert clean(box) and [path.name for path in box.dir.rglob("*")] == ["report", "kept.txt"]
    (box.dir / "report" / "kept.txt").unlink()


def test_a_killed_nspawn_does_not_leave_its_host_running(boxes):
    box = boxes("orphan")
    box.up(tied=True)
    machine = start(box, "dgx01")
    machine.wait()
    box.kill(int((machine.dir / "nspawn.pid").read_text()), signal.SIGKILL)
    wait_for(lambda: machine.state() == "off", 10, "the end of the host")
    assert machine.ssh("true", check=False).returncode == 255
    machine.start()
    assert machine.wait() == "running"


def test_a_tied_box_dies_with_its_starter(boxes):
    box = boxes("tied")
    code = (
        "import sys; from lab.hosts.box import Box; Box(sys.argv[1]).up(tied=True);"
        "print('up', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, box.prefix], cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdout.readline() == b"up\n"
        assert box.is_up()
        starter.kill()
    wait_for(lambda: not box.is_up(), 10, "the end of the tied box")


def test_daemons_die_with_the_box(boxes):
    box = boxes("daemon")
    box.up(tied=True)
    pid = box.spawn(["sleep", "1000"], box.dir / "log" / "sleep.log", env={"SECRET": "not in the command line"})
    assert box.alive(pid) and box.leftovers()["processes"] >= 2
    box.down()
    assert clean(box)


def test_command_line(boxes):
    box = boxes("cli")

    def lab(*words):
        return subprocess.run([sys.executable, "-m", "lab", *words], cwd=CHECKOUT, text=True, capture_output=True)

    up = lab("up", box.prefix, "--hosts", "dgx01")
    assert (
        up.returncode == 0
        and "dgx01    10.78.0.11   on" in up.stdout.splitlines()
        and f"lab down {box.prefix}" in up.stdout
    ), up.stderr
    again = lab("up", box.prefix)
    assert again.returncode == 1 and again.stderr.startswith(f"lab: lab '{box.prefix}' is already up")
    assert lab("ssh", box.prefix, "dgx01", "hostname").stdout == "dgx01\n"
    assert lab("ssh", box.prefix, "dgx09", "hostname").stderr.startswith(f"lab: lab '{box.prefix}' has no host 'dgx09'")
    assert lab("leftovers", box.prefix).returncode == 1
    assert lab("down", box.prefix).returncode == 0
    assert lab("leftovers", box.prefix).returncode == 0 and lab("status", box.prefix).returncode == 3
