"""One convergence: compare, validate, run Ansible where something is to do,
drain nodes for what needs it, keep receipts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from ironburst.convergence import drift, rolling, watch
from ironburst.convergence.drains import Drains, is_ours, patient_occupancy
from ironburst.convergence.events import HostEvents, Listener
from ironburst.convergence.model import HostReport, Options, Report, Tools
from ironburst.convergence.outcomes import HostRun, Outcomes, host_run, software_of
from ironburst.convergence.ports import Connection
from ironburst.convergence.services import Heads, Services, heads_of
from ironburst.document import ClusterDocument, Scheduler
from ironburst.ports.service import NodeService, Occupancy, SchedulerError, SchedulerMissing

BAD = ("failed", "unreachable", "invalid")


class NoAnswer(Exception):
    """Ansible reached no host at all; the text says why."""


def converge(document: ClusterDocument, hosts: Sequence[str], tools: Tools, options: Options) -> Report:
    """Converge `hosts`. Never raises for a host's failure: that is in the report."""
    started = tools.clock()
    convergence = _Convergence(document, tools, options)
    error = None
    try:
        convergence.run(hosts)
    except (NoAnswer, ValueError) as failure:
        # no inventory; a secret that does not resolve; a state folder that can't be written
        error = str(failure)
    reports = convergence.outcomes.reports
    return Report(
        cluster=document.cluster,
        serial=document.serial,
        check=options.check,
        started=started,
        seconds=round(tools.clock() - started, 2),
        hosts={host.name: reports[host.name] for host in document.managed_hosts if host.name in reports},
        error=error,
    )


class _Convergence:
    def __init__(self, document: ClusterDocument, tools: Tools, options: Options):
        self._document, self._tools, self._options = document, tools, options
        self.outcomes = Outcomes(document, tools, options.check)
        self._connections: Mapping[str, Connection] = {}
        self._of: dict[str, str] = {}  # nodes, and of which kind of scheduler
        self._scheduler: NodeService | None = None
        self._working: list[str] = []  # nodes that are drained, and at which Ansible works

    # ---- the whole
    def run(self, hosts: Sequence[str]) -> None:
        """Every step, on those of `hosts` that the steps before have not done with."""
        self._compare(hosts)
        todo = self.outcomes.left(hosts)
        if not todo:
            return
        self._connect(todo)
        self._validate(todo)
        todo = self.outcomes.left(todo)
        if not todo:
            return
        if self._options.check:
            self._check(todo)
        else:
            self._change(todo)

    # ---- steps
    def _compare(self, hosts: Sequence[str]) -> None:
        """Hosts that are as their receipts say are done with; with --check also those that told their drift."""
        self.outcomes.before = drift.compare(self._tools, self._document.cluster, hosts)
        if self._options.always:
            return
        for name in hosts:
            before = self.outcomes.before[name]
            if not before.why:
                self.outcomes.end(name, HostReport("unchanged"))
            elif self._options.check and before.drifted:
                self.outcomes.end(name, HostReport("drifted", changed=len(before.drift), why=before.drift))

    def _connect(self, todo: Sequence[str]) -> None:
        """How ssh alone reaches the hosts and the head, for the scheduler and the
        probe; asked again when something is to do.
        """
        kinds = rolling.NODE_ROLES.items()
        self._of = {name: kind for name in todo for role, kind in kinds if role in self._roles(name)}
        heads = {head for kind in self._of.values() for head in heads_of(self._declared(kind))}  # Kubernetes has none
        self._connections = self._tools.playbooks.connections(sorted({*todo, *heads}))

    def _roles(self, name: str) -> list[str]:
        return self._document.host(name).roles

    def _declared(self, kind: str) -> Scheduler:
        return self._document.scheduler_of_kind(kind) or self._document.scheduler

    def _validate(self, todo: Sequence[str]) -> None:
        """Refuse hosts that are not what was declared."""
        listener = Listener("validate", self._tools.say)
        playbook = self._tools.playbooks.play("validate.yml", hosts=todo, on_event=listener)
        if playbook.error:
            raise NoAnswer(playbook.error)
        for name in todo:
            result = playbook.hosts.get(name)
            if result is None:
                self.outcomes.bad(name, HostRun("invalid", "validate.yml did not get to it"))
            elif result.failed or result.unreachable:
                never_reached = result.unreachable or listener.hosts.get(name, HostEvents()).unreached
                outcome = "unreachable" if never_reached else "invalid"
                self.outcomes.bad(name, HostRun(outcome, result.error))

    def _check(self, todo: Sequence[str]) -> None:
        """Say what would change."""
        for name, run in self._play(todo, check=True).items():
            report = HostReport(
                state="drifted" if run.outcome == "converged" and run.changed else run.outcome,
                changed=run.changed,
                failed=run.failed,
                error=run.error,
                why=self.outcomes.before[name].why,
                tasks=run.events.changed,
                drained=bool(run.events.drain),
            )
            self.outcomes.end(name, report)

    def _change(self, todo: Sequence[str]) -> None:
        """Converge: nodes that have joined the scheduler with care for their jobs, all others at once."""
        nodes = self._occupancy(todo)
        todo = self.outcomes.left(todo)
        joined = [name for name in todo if name in nodes and nodes[name].joined]
        self._converge_at_once([name for name in todo if name not in joined])
        self._converge_nodes_in_service(joined, {name for name in joined if is_ours(nodes[name])})

    def _occupancy(self, todo: Sequence[str]) -> dict[str, Occupancy]:
        """What the scheduler says of the nodes; none before it is installed.
        Nodes end as `unknown` if it does not answer.
        """
        nodes = [name for name in todo if name in self._of]
        if not nodes:
            return {}
        # then a scheduler that is missing isn't there yet
        new = not any(map(self._before, self._of))
        try:
            return self._service().occupancy()
        except SchedulerMissing:
            if new:
                return {}
        except SchedulerError:
            pass
        # the head may be among the others: converging it may be what lets the scheduler answer
        self._converge_at_once([name for name in todo if name not in nodes])
        try:
            return patient_occupancy(self._service(), self._tools, self._options)
        except SchedulerError as error:
            kinds = set(self._of.values())
            if len(kinds) > 1:
                text = f"a scheduler does not say what runs on its nodes ({error}): converge those of each by --limit"
            elif heads := heads_of(self._declared(*kinds)):
                cure = f"repair the head (`ironburst converge --limit {','.join(heads)}`), then converge again"
                text = f"Slurm on {' and '.join(heads)} does not say whether it runs jobs ({error}): {cure}"
            else:
                text = f"the cluster does not say whether it runs pods ({error}): converge again when it answers"
            for name in nodes:
                self.outcomes.end(name, HostReport("unknown", error=text))
            return {}

    def _before(self, name: str) -> bool:
        """Whether this host was converged before."""
        return name in self.outcomes.before and bool(self.outcomes.before[name].receipt.history)

    def _service(self) -> NodeService:
        if self._scheduler is None:
            sides = {kind: self._side(kind) for kind in sorted(set(self._of.values()))}
            there = {kind for name, kind in self._of.items() if self._before(name)}
            self._scheduler = Services(sides, self._of, there)
        return self._scheduler

    def _side(self, kind: str) -> NodeService:
        heads = heads_of(self._declared(kind))
        if not heads:
            return self._tools.service(None)
        if lacking := [head for head in heads if head not in self._connections]:
            raise NoAnswer(
                f"Slurm is asked by ssh to the head {lacking[0]}, and the inventory gives it another connection, or "
                "another way to root than the stack file's ssh.user and ssh.sudo_password: declare these"
            )
        return Heads([self._tools.service(self._connections[head]) for head in heads])

    def _converge_at_once(self, names: Sequence[str]) -> None:
        """Hosts that run no jobs: the head, and nodes that have not joined yet."""
        if names:
            self._record(self._play(names), drained=False)

    def _converge_nodes_in_service(self, names: Sequence[str], ours: Set[str]) -> None:
        """Nodes that have joined. What would change in check mode says whether a node must be drained for it.

        `ours`: drained by an earlier converge, which did not come to its end.
        """
        if not names:
            return
        self._tools.say(f"check run: which of {', '.join(names)} must be drained?")
        live: list[str] = []
        reasons: dict[str, str] = {}
        for name, run in self._play(names, check=True).items():
            if run.outcome == "unreachable":
                self.outcomes.bad(name, HostRun(run.outcome, run.error, events=run.events, began_s=run.began_s))
            elif run.outcome == "converged" and not run.events.drain and name not in ours:
                live.append(name)
            else:
                reasons[name] = next(iter(run.events.drain), "an earlier converge did not come to its end")
        if live:
            self._record(self._play(live, skip_tags=["drain"]), drained=False)
        if reasons:
            self._roll(reasons)

    # ---- nodes that must be drained
    def _roll(self, reasons: Mapping[str, str]) -> None:
        """Batch by batch: drain, wait, converge, gate (a role of the run), resume. The first bad node ends it.

        `reasons`: of each node, what it must be drained for.
        """
        drains = Drains(self._service(), self._tools, self._options)
        waiting = list(reasons)
        try:
            while waiting:
                waiting = self._converge_batch(drains, waiting, reasons)
        except SchedulerError as error:
            text = f"the scheduler does not answer any more ({error}); a drained node stays so"
            for name in self.outcomes.left(list(reasons)):
                self.outcomes.end(name, HostReport("unknown", error=text))
        except KeyboardInterrupt:
            for name in self._working:
                drains.keep(name, "stopped in the middle; converge again")
            untouched = list(drains.ours)
            drains.give_back(untouched)
            self.outcomes.mark_drained([*untouched, *drains.foreign], False)
            raise

    def _converge_batch(self, drains: Drains, waiting: Sequence[str], reasons: Mapping[str, str]) -> list[str]:
        """Converge the next nodes of those that wait; returns those that wait on, none if it ends here."""
        nodes = drains.occupancy()
        ours = {name for name in waiting if is_ours(nodes.get(name))}
        order = rolling.order(waiting, nodes, ours)
        batch = rolling.batch(order, self._document.managed_hosts, nodes, self._options.share)
        if not batch:
            for name in waiting:
                partition = self._document.host(name).partition
                text = f"it is the last node of partition {partition} that takes jobs: give --share 100% to take it"
                self.outcomes.leave_alone(name, "waiting", text)
            return []
        rest = [name for name in waiting if name not in batch]
        free = self._drain(drains, batch, nodes, reasons[batch[0]])
        bad = self._converge_drained(drains, free, nodes) if free else []
        if bad:
            text = f"{bad[0]} is bad: repair it and converge again, which goes on where this stopped"
            for name in rest:
                self.outcomes.leave_alone(name, "not started", text)
            return []
        return rest

    def _drain(self, drains: Drains, batch: Sequence[str], nodes: Mapping[str, Occupancy], reason: str) -> list[str]:
        """Drain a batch and wait; returns the nodes that are free of jobs. Those that are not take jobs again."""
        self._tools.say(f"{', '.join(batch)}: drain, for {reason}")
        # before the drain: whatever ends this process, the next one gives them back
        self.outcomes.mark_drained(batch, True)
        drains.take(batch, nodes, reason)
        late = drains.wait(batch)
        self.outcomes.mark_drained([*drains.give_back(late), *late], False)
        limit = f"{self._options.drain_timeout:g} s"
        cure = "converge it later, or give a longer --drain-timeout"
        for name in late:
            self.outcomes.leave_alone(name, "busy", f"its jobs did not end in {limit}, it takes jobs again: {cure}")
        return [name for name in batch if name not in late]

    def _converge_drained(self, drains: Drains, names: Sequence[str], nodes: Mapping[str, Occupancy]) -> list[str]:
        """Converge drained nodes and give the good ones back; returns the bad ones, which stay drained."""
        self._working = list(names)
        self._record(self._play(names), drained=True)
        reports = self.outcomes.reports
        bad = [name for name in names if reports[name].state in BAD]
        for name in bad:
            drains.keep(name, reports[name].error or "it failed")
        good = [name for name in names if name not in bad]
        foreign = drains.give_back(good)
        self.outcomes.mark_drained([*good, *drains.foreign.intersection(names)], False)
        for name in foreign:
            self._tools.say(f"{name}: stays drained, as it was before: {nodes[name].reason}")
        self._working = []
        return bad

    # ---- running and recording
    def _play(self, names: Sequence[str], *, check: bool = False, skip_tags: Sequence[str] = ()) -> dict[str, HostRun]:
        """Run site.yml. Raises NoAnswer if it reached no host at all."""
        tools, began_s = self._tools, self._tools.clock()
        listener = Listener("site", tools.say, lambda role: tools.role_watch(role) is not None)
        try:
            playbook = tools.playbooks.play(
                "site.yml", hosts=names, check=check, skip_tags=skip_tags, on_event=listener
            )
        except KeyboardInterrupt:
            if not check:
                self.outcomes.stopped(names, began_s)
            raise
        if playbook.error:
            raise NoAnswer(playbook.error)
        return {
            name: host_run(playbook.hosts.get(name), listener.hosts.get(name, HostEvents()), began_s) for name in names
        }

    def _record(self, runs: Mapping[str, HostRun], *, drained: bool) -> None:
        """Keep receipts of a run, and what is there now."""
        good = {name: run for name, run in runs.items() if run.outcome == "converged"}
        for name, run in runs.items():
            if name not in good:
                self.outcomes.bad(name, run, drained=drained)
        named = {name: self._named(name, run) for name, run in good.items()}
        receipts = {name: self.outcomes.before[name].receipt for name in good}
        recorded = drift.record(self._tools, self._connections, named, receipts)
        for name, run in good.items():
            self.outcomes.converged(name, run, recorded[name], drained=drained)

    def _named(self, name: str, run: HostRun) -> watch.Watch:
        """What the tasks of a run, the host's roles and its lock name to be watched."""
        host = self._document.host(name)
        of_roles = [watched for role in host.roles if (watched := self._tools.role_watch(role))]
        return watch.merge(run.events.watch, watch.of_software(software_of(host)), *of_roles)
