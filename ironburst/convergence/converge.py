"""One convergence: look, validate, run Ansible where something is to do, drain nodes for what needs it, keep
receipts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, replace
from typing import Any

from ironburst.convergence import drift, receipts, rolling
from ironburst.convergence import inputs as inputs_of
from ironburst.convergence.drains import Drains, is_ours, patient
from ironburst.convergence.events import GATE, Listener, Told
from ironburst.convergence.model import HostReceipt, Options, Receipt, Tools
from ironburst.document import ClusterDocument, Host
from ironburst.service import NodeService, Occupancy, SchedulerError, SchedulerMissing

BAD = ("failed", "unreachable", "invalid")


class NoAnswer(Exception):
    """Ansible reached no host at all; the text says why."""


def converge(document: ClusterDocument, hosts: Sequence[str], tools: Tools, options: Options) -> Receipt:
    """Converge `hosts`. Never raises for a host's failure: that is in the receipt."""
    started = tools.clock()
    run = _Convergence(document, tools, options)
    error = None
    try:
        run.all(hosts)
    except (
        NoAnswer,
        ValueError,
    ) as failure:  # no inventory; a secret that does not resolve; a state folder that can't be written
        error = str(failure)
    ordered = {host.name: run.results[host.name] for host in document.hosts if host.name in run.results}
    return Receipt(
        document.cluster, document.serial, options.check, started, round(tools.clock() - started, 2), ordered, error
    )


class _Convergence:
    def __init__(self, document: ClusterDocument, tools: Tools, options: Options):
        self.document, self.tools, self.options = document, tools, options
        self.results: dict[str, HostReceipt] = {}
        self.looks: dict[str, drift.Look] = {}
        self.connections: dict[str, dict[str, Any]] = {}
        self._head: NodeService | None = None

    # ---- the whole
    def all(self, hosts: Sequence[str]) -> None:
        self.looks = drift.look(self.tools, self.document.cluster, hosts)
        for name in hosts:
            found = self.looks[name]
            if not found.why and not self.options.always:
                self._end(name, HostReceipt("unchanged"))
            elif (
                self.options.check
                and found.same_inputs
                and found.facts is not None
                and found.drift
                and not self.options.always
            ):
                self._end(name, HostReceipt("drifted", len(found.drift), why=found.drift))
        todo = self._left(hosts)
        if not todo:
            return
        self._connect(todo)
        self._validate(todo)
        todo = self._left(todo)
        if not todo:
            return
        if self.options.check:
            self._check(todo)
            return
        nodes = self._occupancy(todo)
        joined = [name for name in self._left(todo) if name in nodes and nodes[name].joined]
        self._at_once([name for name in self._left(todo) if name not in joined])
        if joined:
            self._working_nodes(joined, {name for name in joined if is_ours(nodes[name])})

    def _left(self, hosts: Sequence[str]) -> list[str]:
        return [name for name in hosts if name not in self.results]

    def _end(self, name: str, result: HostReceipt) -> None:
        self.results[name] = result
        drift = f" ({'; '.join(result.why[:3])})" if result.state == "drifted" and result.why else ""
        told = f": {result.error}" if result.error else drift
        self.tools.say(
            f"{name}: {result.state}" + (f", {result.changed} changed" if result.state != "unchanged" else "") + told
        )

    # ---- steps
    def _connect(self, todo: Sequence[str]) -> None:
        """How ssh alone reaches the hosts and the head, for the scheduler and the probe; asked anew when something is
        to do.
        """
        wanted = {*todo, self.document.scheduler.head}
        found = self.tools.player.connections(sorted(wanted))
        self.connections = {name: asdict(connection) for name, connection in found.items()}

    def _validate(self, todo: Sequence[str]) -> None:
        ran = self.tools.player.play("validate.yml", hosts=todo, on_event=Listener("validate", self.tools.say))
        if ran.error:
            raise NoAnswer(ran.error)
        for name in todo:
            found = ran.hosts.get(name)
            if found is None or found.failed or found.unreachable:
                state = "unreachable" if found and found.unreachable else "invalid"
                self._bad(name, state, found.error if found else "validate.yml did not get to it", Told())

    def _check(self, todo: Sequence[str]) -> None:
        told = self._play(todo, check=True)
        for name, (state, error, counts) in told.items():
            heard = counts[1]
            if state == "converged" and counts[0].changed:
                state = "drifted"
            numbers = (counts[0].changed, counts[0].failed)
            self._end(name, HostReceipt(state, *numbers, error, self.looks[name].why, heard.changed, bool(heard.drain)))

    def _occupancy(self, todo: Sequence[str]) -> dict[str, Occupancy]:
        """What the scheduler says of the nodes; none before it is installed. Nodes end as `unknown` if it does not
        answer.
        """
        nodes = [name for name in todo if "slurm_node" in self.document.host(name).roles]
        if not nodes:
            return {}
        try:
            return self._service().occupancy()
        except SchedulerMissing:
            return {}
        except SchedulerError:
            pass
        others = [name for name in todo if name not in nodes]
        if others:  # the head may be among them: converging it may be what lets the scheduler answer
            self._at_once(others)
        try:
            return patient(self._service().occupancy, self.tools, self.options)
        except SchedulerError as error:
            head = self.document.scheduler.head
            cure = f"repair the head (`ironburst converge --limit {head}`), then converge again"
            for name in nodes:
                self._end(
                    name,
                    HostReceipt(
                        "unknown", error=f"Slurm on {head} does not say whether it runs jobs ({error}): {cure}"
                    ),
                )
            return {}

    def _service(self) -> NodeService:
        head = self.document.scheduler.head
        if self._head is None:
            if head not in self.connections:
                raise NoAnswer(
                    f"the inventory gives the head {head} no ssh connection, which Slurm is asked by: give it one"
                )
            self._head = self.tools.service(self.connections[head])
        return self._head

    def _at_once(self, names: Sequence[str]) -> None:
        """Hosts that run no jobs: the head, and nodes that have not joined yet."""
        if names:
            self._record(self._play(names), drained=False)

    def _working_nodes(self, names: Sequence[str], ours: Set[str]) -> None:
        """Nodes that have joined. What would change in check mode says whether a node must be drained for it.

        `ours`: drained by an earlier converge, which did not come to its end.
        """
        self.tools.say(f"check run: which of {', '.join(names)} must be drained?")
        checked = self._play(names, check=True)
        live, rest = [], []
        for name, (state, error, (_, heard)) in checked.items():
            if state == "unreachable":
                self._bad(name, state, error, heard)
            elif state == "converged" and not heard.drain and name not in ours:
                live.append(name)
            else:
                rest.append(name)
        if live:
            self._record(self._play(live, skip_tags=["drain"]), drained=False)
        if rest:
            self._rolling(
                rest,
                {
                    name: checked[name][2][1].drain[:1] or ["an earlier converge did not come to its end"]
                    for name in rest
                },
            )

    def _rolling(self, names: Sequence[str], why: Mapping[str, Sequence[str]]) -> None:
        """Batch by batch: drain, wait, converge, gate (a role of the run), resume. The first bad node ends it."""
        drains = Drains(self._service(), self.tools, self.options)
        waiting = list(names)
        working: list[str] = []
        try:
            while waiting:
                nodes = drains.occupancy()
                ours = [name for name in waiting if is_ours(nodes.get(name))]
                batch = rolling.batch(
                    rolling.order(waiting, nodes, ours), self.document.hosts, nodes, self.options.share
                )
                if not batch:
                    for name in waiting:
                        partition = self.document.host(name).partition
                        text = f"it is the last node of partition {partition} that takes jobs: give --share 100% to take it"
                        self._end(name, HostReceipt("waiting", error=text, why=self.looks[name].why))
                    return
                waiting = [name for name in waiting if name not in batch]
                self.tools.say(f"{', '.join(batch)}: drain, for {why[batch[0]][0]}")
                self._hold(batch, True)  # before the drain: whatever ends this process, the next one gives them back
                drains.take(batch, nodes, f"{why[batch[0]][0]}")
                late = drains.wait(batch)
                self._hold([*drains.give_back(late), *late], False)
                for name in late:
                    limit = f"{self.options.drain_timeout:g} s"
                    text = f"its jobs did not end in {limit}, it takes jobs again: converge it later, or give a longer --drain-timeout"
                    self._end(name, HostReceipt("busy", error=text, why=self.looks[name].why))
                working = [name for name in batch if name not in late]
                if not working:
                    continue
                self._record(self._play(working), drained=True)
                bad = [name for name in working if self.results[name].state in BAD]
                for name in bad:
                    drains.keep(name, self.results[name].error or "it failed")
                good = [name for name in working if name not in bad]
                kept = drains.give_back(good)
                self._hold([*good, *drains.foreign.intersection(working)], False)
                for name in kept:
                    self.tools.say(f"{name}: stays drained, as it was before: {nodes[name].reason}")
                working = []
                if bad:
                    for name in waiting:
                        text = f"{bad[0]} is bad: repair it and converge again, which goes on where this stopped"
                        self._end(name, HostReceipt("not started", error=text, why=self.looks[name].why))
                    return
        except SchedulerError as error:
            for name in self._left(names):
                self._end(
                    name,
                    HostReceipt("unknown", error=f"Slurm does not answer any more ({error}); a drained node stays so"),
                )
        except KeyboardInterrupt:
            for name in working:
                drains.keep(name, "stopped in the middle; converge again")
            back = list(drains.held)
            drains.give_back(back)
            self._hold([*back, *drains.foreign], False)
            raise

    def _hold(self, names: Iterable[str], held: bool) -> None:
        """Write into the receipts whether a drain of ours is on these nodes."""
        for name in names:
            state = replace(self.tools.store.read(name, self.document.cluster), held=held)
            self.tools.store.write(state)
            self.looks[name] = replace(self.looks[name], known=replace(self.looks[name].known, held=held))

    # ---- running and recording
    def _play(self, names: Sequence[str], *, check: bool = False, skip_tags: Sequence[str] = ()) -> dict[str, Any]:
        """site.yml: {host: (state, error, (counts, what it told))}"""
        listener = Listener("site", self.tools.say, lambda role: self.tools.role_watch(role) is not None)
        begun = self.tools.clock()
        try:
            ran = self.tools.player.play("site.yml", hosts=names, check=check, skip_tags=skip_tags, on_event=listener)
        except KeyboardInterrupt:
            if not check:
                self._forget(names, begun, "stopped", "stopped by a signal")
            raise
        if ran.error:
            raise NoAnswer(ran.error)
        self._begun = begun
        found = {name: ran.hosts.get(name) for name in names}
        return {
            name: (*_outcome(found[name]), (found[name] or _Nothing, listener.hosts.get(name, Told())))
            for name in names
        }

    def _record(self, told: Mapping[str, Any], *, drained: bool) -> None:
        """Keep receipts of a run, and what is there now."""
        good = [name for name, (state, *_) in told.items() if state == "converged"]
        for name, (state, error, (counts, heard)) in told.items():
            if name not in good:
                self._bad(name, state, error, heard, counts.changed, drained)
        asked, fresh = {}, {}
        for name in good:
            host, heard = self.document.host(name), told[name][2][1]
            software = _software(host)
            fresh[name] = drift.question(
                self.tools, host.roles, software, heard.watch, receipts.HostState(name, self.document.cluster)
            )
            watched = drift.question(self.tools, host.roles, software, heard.watch, self.looks[name].known)
            if name in self.connections:
                asked[name] = (self.connections[name], watched)
        known = {name: self.looks[name].known for name in good}
        found = drift.record(self.tools, asked, fresh, known)
        for name in good:
            self._good(name, told[name][2], found.get(name, "it is not reached by plain ssh"), drained)

    def _good(self, name: str, run: Any, found: Any, drained: bool) -> None:
        counts, heard = run
        before, host = self.looks[name], self.document.host(name)
        unwatched = list(heard.unwatched)
        if isinstance(found, str):
            unwatched.append(f"its state could not be recorded: {found}")
            found = (before.known.watch, {})
        watched, facts = found
        unwatched += [f"{fact}: {text.lstrip('? ')}" for fact, text in facts.items() if text.startswith("?")]
        remaining = self._remaining(before, facts)
        for line in remaining:
            self.tools.say(f"{name}: not undone by Ansible: {line}")
        entry = self._entry(
            name,
            "converged",
            heard,
            drained,
            None,
            receipts.package_changes(before.facts or before.known.state, facts),
            remaining,
        )
        state = replace(
            before.known,
            connection=self.connections.get(name),
            inputs=dict(before.inputs),
            watch=watched,
            state=facts,
            unwatched=unwatched,
            software=_software(host),
        )
        self.tools.store.write(state.with_entry(entry))
        self._end(
            name,
            HostReceipt(
                "converged", counts.changed, why=before.why, tasks=heard.changed, drained=drained, remaining=remaining
            ),
        )

    def _remaining(self, before: drift.Look, facts: Mapping[str, str]) -> list[str]:
        """Drift that is still there after the run, although the inputs are the same."""
        if not before.same_inputs or not before.known.state or not before.drift:
            return []
        old = {fact: text for fact, text in before.known.state.items() if fact in facts}
        return receipts.differences(old, {fact: facts[fact] for fact in old})

    def _bad(
        self, name: str, state: str, error: str | None, heard: Told, changed: int = 0, drained: bool = False
    ) -> None:
        before = self.looks[name]
        if not self.options.check:
            entry = self._entry(name, state, heard, drained, error, {}, [])
            touched = state != "invalid" and bool(heard.changed or state == "failed")
            known = replace(before.known, inputs=None) if touched else before.known
            self.tools.store.write(known.with_entry(entry))
        self._end(name, HostReceipt(state, changed, 1, error, before.why, heard.changed, drained))

    def _forget(self, names: Sequence[str], begun: float, outcome: str, error: str) -> None:
        self._begun = begun
        for name in names:
            entry = self._entry(name, outcome, Told(), False, error, {}, [])
            self.tools.store.write(replace(self.looks[name].known, inputs=None).with_entry(entry))

    _begun = 0.0

    def _entry(
        self,
        name: str,
        outcome: str,
        heard: Told,
        drained: bool,
        error: str | None,
        packages: dict[str, Any],
        remaining: list[str],
    ) -> receipts.Entry:
        before, now = self.looks[name], self.tools.clock()
        host, gate = self.document.host(name), None
        if GATE in host.roles:
            gate = "failed" if heard.gate_failed else "passed" if outcome == "converged" else None
        lock = inputs_of.lock_digest(_software(host))
        return receipts.Entry(
            at=round(now, 1),
            seconds=round(now - (self._begun or now), 1),
            outcome=outcome,
            why=before.why[:20],
            serial=self.document.serial,
            lock=lock,
            drained=drained,
            changed=heard.changed,
            packages=packages,
            drift=before.drift[:20],
            remaining=remaining,
            gate=gate,
            error=error,
        )


class _Nothing:
    changed = failed = 0


def _outcome(found: Any) -> tuple[str, str | None]:
    if found is None:
        return "failed", "site.yml did not get to it"
    if found.unreachable:
        return "unreachable", found.error
    return ("failed", found.error) if found.failed else ("converged", None)


def _software(host: Host) -> dict[str, Any] | None:
    """The host's exact set as plain data; None in a document that has none yet."""
    return host.software.model_dump() if host.software else None
