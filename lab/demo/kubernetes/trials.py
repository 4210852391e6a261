"""What the cluster does to the controller on the way, where that is asked for, and jobs must not notice."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ironburst.controller.ledger import Ledger
from lab import names
from lab.demo.inside import Boxed
from lab.demo.kubernetes.world import HOME, KUBECONFIGS, PORT, USER, Cluster
from lab.kubernetes.commands import ALIVE
from lab.kubernetes.control_plane import ControlPlane
from lab.system import wait_for

AWAY_S = 6.0  # so long the API server, or a node, is away
DIFFICULT_PORT = PORT + 1
Say = Callable[[str], None]


class Moment(NamedTuple):
    """`interrupted`: the instance that AWS took back; None: not yet."""

    cluster: Cluster
    ledger: Ledger
    interrupted: str | None


class Trial(Protocol):
    """One of them. `what`: for the summary; `done`: it is over."""

    what: str
    done: bool

    def look(self, now: Moment) -> None:
        """Do what is to be done now. Raises LabError."""

    def met(self) -> Any:
        """What came of it, for the summary; something that is false: nothing."""


@dataclass(frozen=True)
class Wanted:
    """Which ones a demo is asked for."""

    api_dies: bool = False
    difficult: bool = False

    def trials(self, inside: Boxed, say: Say) -> list[Trial]:
        """Before the controller starts. Raises LabError."""
        trials: list[Trial] = [ApiDeath(inside, say)] if self.api_dies else []
        return [*trials, Difficult(inside, say), NodeSilent(say)] if self.difficult else trials


class ApiDeath:
    """The API server is killed once, while a rented node has pods, and starts again `AWAY_S` later. Not while an
    instance ends: kwok would still tell its pods' end (lab/kubernetes/__init__.py).
    """

    what = "the API server is killed"

    def __init__(self, inside: Boxed, say: Say):
        self.inside, self.say, self.done = inside, say, False

    def look(self, now: Moment) -> None:
        leases = now.ledger.leases()
        rented = [lease.node for lease in leases if lease.state == "ready"]
        over = now.interrupted and now.interrupted not in {lease.instance_id for lease in leases}
        if self.done or not over or not any(on_node(now.cluster, node) for node in rented):
            return
        self.done = True
        self.say(f"the API server is killed, and starts again in {AWAY_S:g} s")
        pause = ["--pause", f"{AWAY_S:g}", "--prefix", self.inside.box.prefix]
        self.inside.run([sys.executable, "-m", "lab.kubernetes", "restart", "kube-apiserver", *pause])
        self.say("the API server is back, with the same data")

    def met(self) -> str:
        """For how long."""
        return f"away for {AWAY_S:g} s" if self.done else ""


class NodeSilent:
    """A node of home, with pods that run, sends no heartbeat until Kubernetes says that it isn't ready, and comes back
    `AWAY_S` after that.
    """

    what = "a node is not ready"

    def __init__(self, say: Say):
        self.say, self.done = say, False
        self._node, self._lost_s = "", 0.0

    def look(self, now: Moment) -> None:
        if self.done:
            return
        if not self._node:
            self._node = next((node for node in HOME if on_node(now.cluster, node)), "")
            if self._node:
                self.say(f"{self._node} falls silent while {', '.join(on_node(now.cluster, self._node))} runs on it")
                self._alive(now.cluster, None)
        elif not self._lost_s:
            self._lost_s = time.monotonic() if self._ready(now.cluster) != "True" else 0.0
        elif time.monotonic() > self._lost_s + AWAY_S:
            self._alive(now.cluster, "true")
            self.done = True
            self.say(f"{self._node} sends heartbeats again; it was NotReady")

    def met(self) -> str:
        """Which node it was."""
        return f"{self._node} was NotReady for {AWAY_S:g} s" if self.done else ""

    def _alive(self, cluster: Cluster, value: str | None) -> None:
        cluster.api.call("PATCH", f"/api/v1/nodes/{self._node}", {"metadata": {"labels": {ALIVE: value}}})

    def _ready(self, cluster: Cluster) -> str:
        node = next(each for each in cluster.nodes() if each["metadata"]["name"] == self._node)
        return next((each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready"), "")


class Difficult:
    """The controller reaches the API server by `lab.kubernetes.difficult` alone, all the time."""

    what = "a difficult API server"

    def __init__(self, inside: Boxed, say: Say):
        self.done, self._told = True, inside.box.dir / "run" / "difficult.json"
        layout, at = ControlPlane(inside.box.prefix).layout(), f"{names.HALL_GATEWAY}:{DIFFICULT_PORT}"
        way = ["--listen", at, "--target", layout.server, "--certificates", str(layout.certificates)]
        program = [sys.executable, "-m", "lab.kubernetes.difficult", *way, "--told", str(self._told)]
        inside.spawn(program, "difficult")
        wait_for(self._told.exists, 30, f"the way to the API server (see {inside.log('difficult')})")
        inside.run(["sed", "-i", f"s#{layout.server}#https://{at}#", KUBECONFIGS[USER]])
        say("the controller's way to the API server: 429, conflicts on every write, watches cut and expired (stand-in)")

    def look(self, now: Moment) -> None:
        """It is there all the time."""

    def met(self) -> dict[str, int]:
        """How often each happened; nothing, if one of them never did."""
        counts: dict[str, int] = json.loads(Path(self._told).read_text())
        return counts if all(counts.values()) else {}


def on_node(cluster: Cluster, node: str) -> list[str]:
    """Jobs that run there."""
    return [pod.job for pod in cluster.record.pods().values() if pod.node == node and pod.ran and pod.ended is None]
