"""One stress test: idle nodes are taken out of service, measured in pairs, and given back, whatever happens."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ironburst.convergence import rolling
from ironburst.convergence.drains import Drains
from ironburst.convergence.model import Options, Tools
from ironburst.convergence.ports import Connection, RemoteProgram
from ironburst.convergence.services import Heads, Services, heads_of
from ironburst.document import ClusterDocument
from ironburst.fabric import judge, measure_host, rounds
from ironburst.fabric.judge import Bandwidth, Port, Slow
from ironburst.ports.service import NodeService, Occupancy, SchedulerError
from ironburst.system import sent_program
from ironburst.system.signals import handled

TCP_PORT = 18600
SPARE_S = 25.0  # beside the measurement itself: ssh, a server that listens late
AGAIN = 20  # slow pairs that are measured once more, alone
WHY = "fabric stress"


@dataclass(frozen=True)
class Plan:
    """What to measure. `seconds`: of each measurement; `wait`: for busy nodes, which are left alone without."""

    tests: tuple[str, ...] = ("pairs", "ring")
    rails: tuple[int, ...] = ()  # none: all
    seconds: int = 5
    wait: bool = False


@dataclass
class StressReport:
    """What a test found. `left_out`: nodes that took no part, and why; `lost`: those that stopped to answer;
    `kept`: those that stay drained, and why.
    """

    nodes: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    measured: list[Bandwidth] = field(default_factory=list)


class Stress:
    """One test of these `hosts`. `accepted`: {key of a measurement: Gb/s}"""

    def __init__(
        self,
        document: ClusterDocument,
        hosts: Sequence[str],
        tools: Tools,
        options: Options,
        plan: Plan,
        accepted: Mapping[str, float],
    ):
        self._document, self._tools, self._options, self._plan = document, tools, options, plan
        self._hosts = [document.host(name) for name in hosts]
        self._accepted = accepted
        self._connections: Mapping[str, Connection] = {}
        self._ports: dict[str, list[Port]] = {}
        self.outcome = StressReport()

    def run(self) -> StressReport:
        """Raises SchedulerError before anything is drained; KeyboardInterrupt when all is given back."""
        service = self._service()
        nodes = service.occupancy()
        names = self._free(nodes)
        drains = Drains(service, self._tools, self._options)
        try:
            if len(names) > 1:
                self._tools.say(f"{', '.join(names)}: drain, for the {WHY} test")
                drains.take(names, nodes, WHY)
                late = drains.wait(names)
                self._left(late, "its jobs did not end in time")
                drains.give_back(late)
                free = [name for name in names if name not in late]
                names = self._look(free)
                drains.give_back([name for name in free if name not in names])
            self.outcome.nodes = names if len(names) > 1 else []
            self._measure(self.outcome.nodes)
        finally:
            with handled(signal.SIG_IGN):
                self._give_back(drains)
        return self.outcome

    # ---- which nodes
    def _service(self) -> Services:
        kinds = rolling.NODE_ROLES
        of = {host.name: kinds[role] for host in self._hosts for role in host.roles if role in kinds}
        heads = {kind: self._declared_heads(kind) for kind in sorted(set(of.values()))}
        every = [head for names in heads.values() for head in names]
        self._connections = self._tools.playbooks.connections(sorted({*(host.name for host in self._hosts), *every}))
        if missing := [head for head in every if head not in self._connections]:
            raise SchedulerError(f"the head {missing[0]} isn't reached by ssh as root, so nobody says what is idle")
        service, reached = self._tools.service, self._connections
        sides: dict[str, NodeService] = {
            kind: Heads([service(reached[head]) for head in names]) if names else service(None)
            for kind, names in heads.items()
        }
        return Services(sides, of, set(of.values()))

    def _declared_heads(self, kind: str) -> list[str]:
        scheduler = self._document.scheduler_of_kind(kind)
        if scheduler and scheduler.bridge:
            raise SchedulerError("slurm-bridge's pods aren't seen by this test: take its nodes out by --limit")
        return heads_of(scheduler) if scheduler else []

    def _free(self, nodes: Mapping[str, Occupancy]) -> list[str]:
        """Those that may be taken now; the others are left out, each with its reason."""
        free = []
        for host in self._hosts:
            its = nodes.get(host.name)
            if rolling.NODE_ROLES.keys().isdisjoint(host.roles):
                self._left([host.name], "it is no node of a scheduler: `playbooks/fabric.yml --tags stress` takes it")
            elif its is None:
                self._left([host.name], "no scheduler lists it, so nobody knows what runs there")
            elif not its.says_whether_busy or not (its.available or its.drained):
                self._left([host.name], f"the scheduler says {'+'.join(sorted(its.states)).lower()}")
            elif its.busy and not self._plan.wait:
                self._left([host.name], f"runs {', '.join(map(str, its.jobs)) or 'a job'}")
            elif host.name not in self._connections:
                self._left([host.name], "Ansible doesn't reach it by ssh as root")
            else:
                free.append(host.name)
        limit = self._options.share
        ours = [name for name in free if nodes[name].drained]  # out of service already
        chosen = rolling.batch([name for name in free if name not in ours], self._document.managed_hosts, nodes, limit)
        self._left([name for name in free if name not in ours + chosen], "--share leaves it in service")
        return [name for name in free if name in ours + chosen]

    def _left(self, names: Sequence[str], why: str) -> None:
        for name in names:
            self.outcome.left_out[name] = why
            self._tools.say(f"{name}: left out: {why}")

    def _look(self, names: Sequence[str]) -> list[str]:
        """Those that have ports to measure and the program."""
        answers = self._ask({name: {"do": "look"} for name in names})
        for name, (answer, error) in answers.items():
            if error:
                self._left([name], error)
            elif not answer["tool"]:
                self._left([name], "ib_write_bw is not installed (package perftest)")
            elif not answer["ports"]:
                self._left([name], "it has no active InfiniBand port")
            else:
                its = enumerate(answer["ports"], 1)
                self._ports[name] = [Port(name, device, rail, gbps) for rail, (device, gbps) in its]
        return [name for name in names if name in self._ports]

    # ---- measuring
    def _measure(self, names: Sequence[str]) -> None:
        last = max((len(ports) for ports in self._ports.values()), default=0)
        rails = [rail for rail in range(1, last + 1) if not self._plan.rails or rail in self._plan.rails]
        for test in self._plan.tests:
            drawn = [rounds.ring(names)] if test == "ring" else rounds.all_pairs(names)
            for rail in rails:
                for number, edges in enumerate(filter(None, drawn), 1):
                    self._tools.say(f"rail {rail}, {test}: round {number} of {len(drawn)}, {len(edges)} at once")
                    self.outcome.measured += self._round(test, rail, edges)
        self._again()

    def _again(self) -> None:
        """What was slow beside others, alone: two routes may have shared a cable for that moment."""
        for each in judge.slow(self.outcome.measured, self._accepted)[:AGAIN]:
            was = each.measured
            for now in self._round(was.test, was.sender.rail, [(was.sender.node, was.receiver.node)]):
                if now.gbps is not None and now.gbps > (was.gbps or 0):
                    self.outcome.measured[self.outcome.measured.index(was)] = now

    def _round(self, test: str, rail: int, edges: Sequence[rounds.Edge]) -> list[Bandwidth]:
        """All of these at once; without those whose node is lost or has no such rail."""
        there = {
            name: ports[rail - 1]
            for name, ports in self._ports.items()
            if len(ports) >= rail and name not in self.outcome.lost
        }
        lines = [(there[a], there[b]) for a, b in edges if a in there and b in there]
        questions: dict[str, dict[str, Any]] = {}
        for sender, receiver in lines:  # both of a pair side by side: they are asked in the same breath
            for port in (sender, receiver):
                limits = {"seconds": self._plan.seconds, "limit_s": self._plan.seconds + SPARE_S}
                questions.setdefault(port.node, {"do": "measure", "servers": [], "clients": [], **limits})
            questions[receiver.node]["servers"].append([receiver.device, TCP_PORT + rail])
            address = self._document.host(receiver.node).address
            questions[sender.node]["clients"].append([sender.device, TCP_PORT + rail, address])
        answers = self._ask(questions)
        for name, (_, error) in answers.items():
            if error:
                self.outcome.lost[name] = error
                self._tools.say(f"{name}: lost: {error}")
        found = []
        for sender, receiver in lines:
            errors = [f"{port.node}: {answers[port.node][1]}" for port in (sender, receiver) if answers[port.node][1]]
            if errors:
                found.append(Bandwidth(test, sender, receiver, None, errors[0]))
                continue
            text, error = answers[sender.node][0]["said"][0]
            gbps, wrong = judge.read(text, error, answers[receiver.node][0]["served"][0][1])
            found.append(Bandwidth(test, sender, receiver, gbps, wrong))
        return found

    def _ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[Any, str]]:
        """{node: (answer, error)}"""
        programs = {
            name: RemoteProgram(self._connections[name], sent_program.text(measure_host, question))
            for name, question in questions.items()
        }
        found: dict[str, tuple[Any, str]] = {}
        for name, said in self._tools.ask(programs).items() if programs else ():
            try:
                answer = {"error": said.error} if said.error else sent_program.answer(measure_host, said.output)
            except ValueError as error:
                answer = {"error": str(error)}
            found[name] = (answer, answer.get("error") or "")
        return found

    # ---- afterwards
    def _give_back(self, drains: Drains) -> None:
        """Whatever still measures is ended first. A node that doesn't answer is kept: something may run on it."""
        ours = sorted(drains.ours)
        if not ours:
            return
        silent = {
            name: error for name, (_, error) in self._ask({name: {"do": "end"} for name in ours}).items() if error
        }
        try:
            for name, error in silent.items():
                self.outcome.kept[name] = f"it did not answer after the {WHY} test: {error}"
                drains.keep(name, self.outcome.kept[name])
            good = [name for name in ours if name not in silent]
            drains.give_back(good)
            if good:
                self._tools.say(f"{', '.join(good)}: in service again")
        except SchedulerError as error:
            text = f"the scheduler does not answer any more ({error})"
            self.outcome.kept |= dict.fromkeys(ours, text)


def cables(document: ClusterDocument) -> dict[str, str]:
    """{"dgx01/ib1": "leaf1/1 - dgx01/ib1, NDR dac 3 m"}"""
    found: dict[str, str] = {}
    for hall in document.halls.values():
        for cable in hall.cables:
            text = f"{cable.ends[0]} - {cable.ends[1]}, {cable.what}"
            found |= dict.fromkeys(cable.ends, text)
    return found


def lines(outcome: StressReport, below: Sequence[Slow], named: Mapping[str, str], worst: int = 10) -> list[str]:
    """What people read. `named`: cables()."""

    def port(each: Port) -> str:
        cable = named.get(f"{each.node}/ib{each.rail}")
        return f"{each} ({cable})" if cable else f"{each} (rail {each.rail})"

    out = [
        f"{name}: {len(its)} measured, {min(its):g} to {max(its):g} Gb/s"
        for name in ("pairs", "ring")
        if (its := [each.gbps for each in outcome.measured if each.test == name and each.gbps is not None])
    ]
    out += [
        f"suspect: {port(each.port)}: {each.slow} of its {each.of} measurements are too slow"
        for each in judge.suspects(outcome.measured, below)
    ]
    for one in below[:worst]:
        its_gbps = one.measured.error if one.measured.gbps is None else f"{one.measured.gbps:g} Gb/s"
        ends = f"{port(one.measured.sender)} to {port(one.measured.receiver)}"
        out.append(f"slow: {one.measured.test}: {ends}: {its_gbps}, wanted {one.wanted:g} ({one.than})")
    if len(below) > worst:
        out.append(f"and {len(below) - worst} more that are slow")
    out += [f"kept: {name} stays drained: {why}" for name, why in outcome.kept.items()]
    return out
