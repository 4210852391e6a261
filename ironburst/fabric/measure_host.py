"""Sent to a node by `ironburst fabric stress`: look at its InfiniBand ports, measure with others, or end what measures.

The question: {"do": "look"}; {"do": "end"}; {"do": "measure", "servers": [[device, TCP port]], "clients": [[device, TCP
  port, address of the server]], "seconds": of one measurement, "limit_s": for all, "root": "" but in tests}.
The answer: look: {"ports": [[device, Gb/s]] of those that are active, in the order of their rails, "tool": whether
  ib_write_bw is there}; measure: {"said": [[text, what went wrong or ""] of each client], "served":
  likewise of each server}; end: {"ended": bool}.
One runs on a node at a time: whoever comes ends the one before, which somebody has left. Python 3.6, root.
"""

import ctypes
import fcntl
import json  # noqa: F401 (sent_program.py reads the question with it)
import os
import re
import shutil
import signal
import subprocess
import sys  # noqa: F401 (likewise)
import tempfile
import time
from typing import Any, Dict, List, Optional, Tuple

MARK = "IRONBURST "
SIZE = 65536  # bytes a message, as the gate's and the acceptance table's row for host memory
LOCK = "/run/ironburst/fabric-stress"
REFUSED = "Couldn't connect to "
REFUSED_S = 15.0  # that a server may take to listen: it is started beside its client


def numbers(name: str) -> List[Any]:
    """mlx5_10 comes after mlx5_9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def text_of(path: str) -> str:
    """A small file's text; empty: it can't be read."""
    try:
        with open(path) as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def ports(root: str) -> List[Tuple[str, float]]:
    """(device, Gb/s) of active InfiniBand; only those that role rdma has told NCCL of, where it has."""
    folder = root + "/sys/class/infiniband"
    named = re.search(r"^NCCL_IB_HCA=+(\S+)$", text_of(root + "/etc/nccl.conf"), re.M)
    only = {word.partition(":")[0] for word in named.group(1).split(",")} if named else None
    found = []
    for device in sorted(os.listdir(folder) if os.path.isdir(folder) else [], key=numbers):
        port = os.path.join(folder, device, "ports/1")
        rate = re.match(r"[\d.]+", text_of(port + "/rate"))
        active = text_of(port + "/state").endswith("ACTIVE")
        if rate and active and text_of(port + "/link_layer") == "InfiniBand" and (only is None or device in only):
            found.append((device, float(rate.group())))
    return found


def die_with_parent() -> None:
    """A child that outlives this program would disturb the next job."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Started:
    """An ib_write_bw. Its error is a sentence, empty while there is none."""

    def __init__(self, words: List[str], seconds: float) -> None:
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the tool
        argv = ["ib_write_bw", "--report_gbits", "-F", "-s", str(SIZE), "-D", "%d" % seconds] + words
        options = {"stdin": subprocess.DEVNULL, "stdout": self.output, "stderr": subprocess.STDOUT}
        self.process = subprocess.Popen(
            argv,
            preexec_fn=die_with_parent,
            env=dict(os.environ, LC_ALL="C"),
            **options,  # type: ignore[call-overload]
        )

    def text(self) -> str:
        """All that it has printed."""
        self.output.seek(0)
        return self.output.read().decode(errors="replace")


def servers_and_clients(question: Dict[str, Any]) -> Dict[str, List[List[str]]]:
    """{"said": of each client, "served": of each server}. Ends what it has started."""
    end = time.monotonic() + question["limit_s"]
    seconds, refused_until = question["seconds"], time.monotonic() + REFUSED_S
    running: List[Started] = []
    clients = question["clients"]
    said: List[Optional[List[str]]] = [None] * len(clients)
    try:
        servers = []
        for device, port in question["servers"]:
            servers.append(Started(["-d", device, "-p", str(port)], seconds))
            running.append(servers[-1])
        words = [["-d", device, "-p", str(port), address] for device, port, address in clients]
        started = []
        for each in words:
            started.append(Started(each, seconds))
            running.append(started[-1])
        while None in said or any(server.process.poll() is None for server in servers):
            for n, client in enumerate(started):
                code = client.process.poll()
                if said[n] is not None or code is None:
                    continue
                if code and REFUSED in client.text() and time.monotonic() < refused_until:
                    started[n] = Started(words[n], seconds)
                    running.append(started[n])
                else:
                    said[n] = outcome(client)
            if time.monotonic() > end:
                break
            time.sleep(0.1)
    finally:
        for one in running:
            if one.process.poll() is None:
                one.process.kill()
    return {"said": [each or outcome(started[n]) for n, each in enumerate(said)], "served": list(map(outcome, servers))}


def outcome(tool: Started) -> List[str]:
    """[text, error]. One that hangs in its driver isn't waited for."""
    try:
        code = tool.process.wait(5)
    except subprocess.TimeoutExpired:
        return [tool.text(), "hangs, and can't be killed"]
    return [tool.text(), "" if code == 0 else "did not end in time" if code == -9 else "exit status %d" % code]


def take(path: str) -> Tuple[Any, bool]:
    """(the lock, whether somebody had to be ended for it). Raises OSError."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    lock = open(path, "a+")  # noqa: SIM115 - held until the end
    end, ended = time.monotonic() + 10, False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            holder = text_of(path)
            if holder.isdigit() and not ended:
                os.kill(int(holder), signal.SIGKILL)  # it holds the lock, so the number is its own
                ended = True
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
    lock.truncate(0)
    lock.write("%d\n" % os.getpid())
    lock.flush()
    return lock, ended


def gather(question: Dict[str, Any]) -> Dict[str, Any]:
    """The answer."""
    root = question.get("root", "")
    try:
        if question["do"] == "look":
            return {"ports": ports(root), "tool": bool(shutil.which("ib_write_bw"))}
        lock, ended = take(root + LOCK)
        with lock:
            return {"ended": ended} if question["do"] == "end" else servers_and_clients(question)
    except OSError as error:
        return {"error": " ".join(str(error).split())}
