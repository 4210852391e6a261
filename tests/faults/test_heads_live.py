"""How long a ledger in PostgreSQL is held by a head that is gone: real processes, a real server, a real network between
two namespaces. Slow but for the process: the kernel's keepalives take their time, which is what is measured.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from ironburst.cli.site_options import TURN_S
from ironburst.controller.ledger import Ledger
from ironburst.controller.lock import LockedError
from lab.system import wait_for
from tests import postgresql
from tests.faults.test_two_heads import NEXT_TICK_S

ROOT = Path(__file__).parents[2]
# A head: it has its turn, and its loop asks before each thing that it does, as a tick does
HEAD = """
import sys
from types import SimpleNamespace
from ironburst.controller import loop
from ironburst.controller.ledger import Ledger
from ironburst.controller.lock import Lost
ledger = Ledger(sys.argv[1])
print("mine", flush=True)

class Head:
    hurried = None
    def tick(self, document):
        ledger.check()
        ledger.note("alive", "yes")
    def tell(self, kind, text):
        print(kind, text, flush=True)

document = SimpleNamespace(burst=SimpleNamespace(tick_s=0.5))
try:
    loop.run(Head(), loop.SystemClock(), lambda: document, lambda _: None)
except Lost as error:
    print("lost", error, flush=True)
"""


@contextmanager
def head(path, inside=()):
    process = subprocess.Popen(
        [*inside, sys.executable, "-c", HEAD, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "mine\n"
        yield process
    finally:
        process.kill()
        process.wait()


def next_turn(path):
    """Seconds until the second head has the ledger, by its own way of waiting."""
    began = time.monotonic()

    def tried():
        try:
            Ledger(path).close()
            return True
        except LockedError:
            return False

    wait_for(tried, NEXT_TICK_S, "the ledger", pause=TURN_S)
    return time.monotonic() - began


def test_a_process_that_is_killed_frees_it_at_once(tmp_path):
    path = postgresql.ledger_file(tmp_path / "ledger")
    with head(path) as first:
        with pytest.raises(LockedError):
            Ledger(path)
        first.send_signal(signal.SIGKILL)
        next_turn(path)


@contextmanager
def cable():
    """Two network namespaces with a cable: (how to be in one, its address), of the server and of the head."""
    ends = []
    try:
        ends += [subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) for _ in range(2)]
        spaces = [Path(f"/proc/{end.pid}/ns/net") for end in ends]
        mine = Path("/proc/self/ns/net").stat().st_ino
        wait_for(lambda: all(each.exists() and each.stat().st_ino != mine for each in spaces), 30, "namespaces")
        inside = [["nsenter", "--target", str(end.pid), "--net"] for end in ends]
        names = ["name", "cable0", "type", "veth", "peer", "name", "cable1", "netns", str(ends[1].pid)]
        subprocess.run([*inside[0], "ip", "link", "add", *names], check=True)
        for n, way in enumerate(inside):
            subprocess.run([*way, "ip", "address", "add", f"10.99.0.{n + 1}/24", "dev", f"cable{n}"], check=True)
            subprocess.run([*way, "ip", "link", "set", f"cable{n}", "up"], check=True)
            subprocess.run([*way, "ip", "link", "set", "lo", "up"], check=True)
        yield inside
    finally:
        for end in ends:
            end.kill()
            end.wait()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@pytest.mark.parametrize("gone", ["network", "host"])
def test_a_host_or_a_network_that_is_gone_frees_it_within_the_promise(tmp_path, gone):
    """A head that lives on without its network stops by itself; of a host that is frozen nothing comes either."""
    with cable() as (at_server, at_head), postgresql.started_in(at_server, "10.99.0.1") as server:
        near, far = (tmp_path / f"{name}.url" for name in ("near", "far"))
        near.write_text(f"postgresql://ironburst@/postgres?host={server}\n")
        far.write_text("postgresql://ironburst@10.99.0.1/postgres\n")
        with head(far, at_head) as first:
            with pytest.raises(LockedError):
                Ledger(near)
            subprocess.run([*at_head, "ip", "link", "set", "cable1", "down"], check=True)
            if gone == "host":
                first.send_signal(signal.SIGSTOP)
            took_s = next_turn(near)
            first.send_signal(signal.SIGCONT)
            subprocess.run([*at_head, "ip", "link", "set", "cable1", "up"], check=True)
            assert first.stdout.readline().startswith("lost ")
    print(f"{gone}: free after {took_s:.0f} s")
