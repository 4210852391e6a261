"""A whole converge with a fake Ansible, fake hosts and a fake Slurm: who is run, who is drained, where it stops, how it
goes on.
"""

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from ironburst.convergence import host_facts
from ironburst.convergence.converge import converge
from ironburst.convergence.drains import reason
from ironburst.convergence.model import Options, SelectionError, Tools, select
from ironburst.convergence.ports import Answer, Connection, HostResult, PlaybookRun, TaskEvent
from ironburst.convergence.receipts import Store
from ironburst.convergence.rolling import MaxUnavailable
from ironburst.document import ClusterDocument
from ironburst.ports.service import Occupancy, SchedulerError, SchedulerMissing
from tests.playbooks import sample

NODES = ("n1", "n2", "n3", "n4")


def site_document(racks=None) -> ClusterDocument:
    """A head and four nodes of partition home; `racks`: {node: rack}."""
    built = sample.lab_document()
    head = next(host for host in built.hosts if host.role == "head")
    node = next(host for host in built.hosts if host.partition == "home")
    nodes = [node.model_copy(update={"name": name, "rack": (racks or {}).get(name, f"rack-{name}")}) for name in NODES]
    return built.model_copy(update={"hosts": [head, *nodes]})


@dataclass(frozen=True)
class Task:
    """A task of the fake playbook: brings `fact` of a host to `value`."""

    name: str
    fact: str
    value: str
    tags: frozenset = frozenset({"live"})
    role: str = "base"


@dataclass
class Site:
    """Fake hosts (facts), fake Ansible, fake Slurm, time that only waiting moves."""

    store: Store
    document: ClusterDocument = field(default_factory=site_document)
    tasks: list = field(default_factory=lambda: [Task("Settings", "file /etc/a", "file 0644 root:root 1")])
    facts: dict = field(default_factory=dict)
    inputs: dict = field(default_factory=dict)
    states: dict = field(default_factory=dict)
    reasons: dict = field(default_factory=dict)
    jobs: dict = field(default_factory=dict)  # {node: {job: seconds that it still runs}}
    bad: set = field(default_factory=set)
    dark: set = field(default_factory=set)
    installed: bool = True
    answers: int = 0  # calls of Slurm that fail first
    now: float = 1000.0
    plays: list = field(default_factory=list)
    calls: list = field(default_factory=list)
    lines: list = field(default_factory=list)
    hurt: list = field(default_factory=list)  # a drain task that ran on a node with a job, or on one that takes jobs
    interrupt: str | None = None

    def __post_init__(self):
        for host in self.document.hosts:
            self.facts.setdefault(host.name, {})
            if "slurm_node" in host.roles:
                self.states.setdefault(host.name, {"IDLE"})

    # Slurm
    def occupancy(self):
        if not self.installed:
            raise SchedulerMissing("there is no command 'squeue'")
        if self.answers:
            self.answers -= 1
            raise SchedulerError("Unable to contact slurm controller")
        nodes = {}
        for name, states in self.states.items():
            jobs = tuple(self.jobs.get(name, {}))
            shown = states | ({"ALLOCATED"} if jobs else set())
            end = self.now + max(self.jobs.get(name, {}).values(), default=0) if jobs else 0.0
            registered = not states & {"UNKNOWN"}
            nodes[name] = Occupancy(
                name, ("home",), frozenset(shown), self.reasons.get(name, ""), registered, jobs, end
            )
        return nodes

    def drain(self, nodes, reason):
        self.calls.append(("drain", tuple(nodes), reason))
        for name in nodes:
            self.states[name] = self.states[name] | {"DRAIN"}
            self.reasons[name] = reason

    def resume(self, nodes):
        self.calls.append(("resume", tuple(nodes)))
        for name in nodes:
            self.states[name] = self.states[name] - {"DRAIN", "DOWN"}
            self.reasons[name] = ""

    # the hosts
    def ask(self, programs):
        answers = {}
        for name, program in programs.items():
            question = json.loads(ast.literal_eval(program.text.rsplit("json.loads(", 1)[1].split("))) + ")[0]))
            if name in self.dark:
                answers[name] = Answer(error="no route to host")
                continue
            watched = [f"file {path}" for path in question.get("files", {})]
            told = {fact: self.facts[name].get(fact, "absent") for fact in watched}
            answers[name] = Answer(host_facts.MARK + json.dumps(told))
        return answers

    # Ansible
    def connections(self, hosts):
        return {name: Connection(name) for name in hosts}

    def play(self, playbook, *, hosts=(), check=False, skip_tags=(), on_event=None):
        self.plays.append(
            (playbook.removesuffix(".yml") + (" --check" if check else ""), tuple(hosts), tuple(skip_tags))
        )
        results = {}
        for name in hosts:
            if name in self.dark:  # Ansible counts a wait in vain for a connection as a failed task
                said = {"msg": "timed out: no route to host"}
                on_event(TaskEvent(name, None, "Reach", "failed", said, "ansible.builtin.wait_for_connection"))
                results[name] = HostResult(failed=1, error="Reach: timed out: no route to host")
                continue
            changed, failed = 0, 0
            for task in self.tasks if playbook == "site.yml" else []:
                if task.tags & set(skip_tags) or (
                    task.role == "slurm_node" and "slurm_node" not in self.document.host(name).roles
                ):
                    continue
                if not check and self.interrupt == name:
                    raise KeyboardInterrupt
                differs = self.facts[name].get(task.fact) != task.value
                if differs and not check:
                    if "drain" in task.tags and (
                        self.jobs.get(name) or ("DRAIN" not in self.states.get(name, {"DRAIN"}) and self.joined(name))
                    ):
                        self.hurt.append((name, task.name))
                    self.facts[name][task.fact] = task.value
                changed += differs
                arguments = {"module_args": {"dest": task.fact.split()[1]}}
                result = {"changed": differs, "invocation": arguments}
                on_event(event(name, task, "ok", result))
            if name in self.bad and playbook == "site.yml" and not check:
                failed = 1
                on_event(
                    event(name, Task("Gate", "", "", frozenset(), "node_health"), "failed", {"msg": "a GPU is missing"})
                )
            error = "Gate: a GPU is missing" if failed else None
            results[name] = HostResult(changed=changed, failed=failed, error=error)
        return PlaybookRun(playbook, 2 if self.bad else 0, results)

    def joined(self, name):
        return name in self.states and not self.states[name] & {"UNKNOWN"} and self.installed

    # time
    def pause(self, seconds):
        self.now += seconds
        for jobs in self.jobs.values():
            for job in list(jobs):
                jobs[job] -= seconds
                if jobs[job] <= 0:
                    del jobs[job]

    def converge(self, *names, **options):
        self.lines = []
        tools = Tools(
            playbooks=self,
            ask=self.ask,
            service=lambda connection: self,
            inputs=lambda name: {"playbooks": "1", **self.inputs},
            role_watch=lambda role: None,
            store=self.store,
            say=self.lines.append,
            clock=lambda: self.now,
            pause=self.pause,
        )
        self.plays, self.calls = [], []
        return converge(
            self.document, list(names) or [host.name for host in self.document.hosts], tools, Options(**options)
        )

    def sites(self):
        return [play for play in self.plays if play[0].startswith("site")]


def event(host, task, status, result):
    return TaskEvent(host, task.role, task.name, status, result, action="ansible.builtin.copy", tags=task.tags)


def states(receipt) -> Mapping[str, str]:
    return {name: host.state for name, host in receipt.hosts.items()}


DRIVER = Task("Driver packages", "file /usr/driver", "file 0644 root:root 580", frozenset({"drain"}), "slurm_node")


@pytest.fixture
def site(tmp_path):
    """Four nodes that have joined and are converged."""
    made = Site(Store(tmp_path / "receipts"))
    made.tasks.append(DRIVER)
    made.installed = False
    made.converge()
    made.installed = True
    return made


def upgrade(site, version="590"):
    site.tasks[-1] = replace(DRIVER, value=f"file 0644 root:root {version}")
    site.inputs["node_software"] = version


def test_the_first_converge_takes_all_hosts_at_once(tmp_path):
    site = Site(Store(tmp_path), installed=False)
    assert set(states(site.converge()).values()) == {"converged"}
    assert site.sites() == [("site", ("head", *NODES), ())] and not site.calls


def test_nodes_that_slurm_has_not_seen_yet_are_converged_without_a_drain(tmp_path):
    site = Site(Store(tmp_path))
    site.tasks.append(DRIVER)
    site.states = {name: {"UNKNOWN"} for name in NODES}
    site.converge()
    assert site.sites() == [("site", ("head", *NODES), ())] and not site.calls


def test_nodes_that_were_converged_before_are_left_alone_where_slurm_is_not_found(site):
    """Its commands are not on the PATH any more: jobs may run all the same."""
    upgrade(site)
    site.installed = False
    assert states(site.converge()) == {"head": "converged"} | dict.fromkeys(NODES, "unknown")
    assert not site.hurt and not site.calls


def test_a_node_that_slurm_forgot_in_a_restart_counts_as_one_that_has_joined(site, monkeypatch):
    upgrade(site)
    real = site.occupancy

    def forgotten():
        return {
            name: replace(node, registered=False, states=node.states | {"NOT_RESPONDING"})
            for name, node in real().items()
        }

    monkeypatch.setattr(site, "occupancy", forgotten)
    site.converge("n1")
    assert site.calls[0][:2] == ("drain", ("n1",)) and not site.hurt


def test_unchanged_hosts_need_no_ansible(site):
    assert set(states(site.converge()).values()) == {"unchanged"}
    assert site.plays == [] and site.calls == []


def test_always_runs_ansible_anyway(site):
    receipt = site.converge(always=True)
    assert set(states(receipt).values()) == {"converged"} and all(not host.changed for host in receipt.hosts.values())
    assert not site.calls


def test_a_live_change_is_made_under_running_jobs_and_drain_tasks_are_left_out(site):
    site.jobs = {name: {7: 1e9} for name in NODES}
    site.facts["n2"]["file /etc/a"] = "file 0600 root:root 1"
    receipt = site.converge()
    assert states(receipt) == {
        "head": "unchanged",
        "n1": "unchanged",
        "n2": "converged",
        "n3": "unchanged",
        "n4": "unchanged",
    }
    assert site.sites() == [("site --check", ("n2",), ()), ("site", ("n2",), ("drain",))] and not site.calls
    assert not site.hurt
    assert receipt.hosts["n2"].why == ["file /etc/a: mode was 0644, is 0600"]


def test_a_change_that_needs_it_drains_node_by_node_and_gives_them_back(site):
    site.jobs = {"n1": {1: 5}, "n2": {2: 60}}
    upgrade(site)
    receipt = site.converge()
    assert set(states(receipt).values()) == {"converged"}
    expected = [("n3",), ("n4",), ("n1",), ("n2",)]
    assert [hosts for name, hosts, skip in site.sites() if name == "site" and hosts[0] in NODES] == expected
    assert not site.hurt and all("DRAIN" not in states for states in site.states.values())
    assert all(host.drained for name, host in receipt.hosts.items() if name in NODES)
    assert site.calls[0][2] == "ironburst converge: slurm_node: Driver packages"


def test_waiting_says_for_which_job(site):
    site.jobs = {"n1": {41: 5}}
    upgrade(site)
    site.converge("n1")
    assert "n1: drained, waits for job 41" in site.lines


@pytest.mark.parametrize(
    ("share", "batches"),
    [
        (MaxUnavailable(2), [2, 2]),
        (MaxUnavailable(None, 0.25), [1] * 4),
        (MaxUnavailable(9), [3, 1]),
        (MaxUnavailable(None, 1.0), [4]),
    ],
)
def test_the_share_is_kept_and_never_the_whole_partition_unless_told(site, share, batches):
    upgrade(site)
    site.converge(*NODES, share=share)
    assert [len(hosts) for name, hosts, _ in site.sites() if name == "site"] == batches


def test_one_of_each_rack_at_a_time(tmp_path):
    site = Site(Store(tmp_path), site_document({"n1": "a", "n2": "a", "n3": "b", "n4": "b"}))
    site.tasks.append(DRIVER)
    site.converge(*NODES, share=MaxUnavailable(None, 0.5))
    assert [hosts for name, hosts, _ in site.sites() if name == "site"] == [("n1", "n3"), ("n2", "n4")]


def test_the_last_node_of_a_partition_waits_unless_told(site):
    site.states |= {name: {"IDLE", "DRAIN"} for name in ("n2", "n3", "n4")}
    site.reasons |= dict.fromkeys(("n2", "n3", "n4"), "fan broken")
    upgrade(site)
    assert states(site.converge("n1")) == {"n1": "waiting"} and not site.calls
    assert states(site.converge("n1", share=MaxUnavailable(None, 1.0))) == {"n1": "converged"}


def test_a_bad_node_stops_it_and_a_second_call_goes_on(site):
    site.jobs = {"n4": {9: 30}}
    site.bad = {"n2"}
    upgrade(site)
    receipt = site.converge()
    assert states(receipt) == {
        "head": "converged",
        "n1": "converged",
        "n2": "failed",
        "n3": "not started",
        "n4": "not started",
    }
    assert site.states["n2"] == {"IDLE", "DRAIN"} and site.reasons["n2"] == "ironburst converge: Gate: a GPU is missing"
    assert site.states["n1"] == site.states["n3"] == site.states["n4"] == {"IDLE"} and site.jobs["n4"]
    assert "n2 is bad" in receipt.hosts["n3"].error
    site.bad = set()
    again = site.converge()
    assert states(again) == {
        "head": "unchanged",
        "n1": "unchanged",
        "n2": "converged",
        "n3": "converged",
        "n4": "converged",
    }
    assert next(hosts for name, hosts, _ in site.sites() if name == "site") == ("n2",)
    assert set(map(frozenset, site.states.values())) == {frozenset({"IDLE"})} and not site.hurt
    assert set(states(site.converge()).values()) == {"unchanged"}


def test_a_node_that_was_killed_before_it_was_given_back_is_given_back_by_the_next_converge(site, monkeypatch):
    upgrade(site)

    class Killed(BaseException):
        pass

    def die(nodes):
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(site, "resume", die)
        site.converge("n1")
    assert "DRAIN" in site.states["n1"]
    assert states(site.converge("n1")) == {"n1": "converged"} and site.states["n1"] == {"IDLE"}
    assert states(site.converge("n1")) == {"n1": "unchanged"}


def test_a_node_that_was_exchanged_is_given_back_after_the_gate(site):
    """`ironburst node replace` drains as a converge does; a part is another, and the host's files are as before."""
    site.drain(["n1"], reason("node replace"))
    assert site.converge("n1").hosts["n1"].state == "unchanged" and "DRAIN" in site.states["n1"]
    site.converge("n1", always=True)
    assert site.plays[-1] == ("site", ("n1",), ()) and site.calls[-1] == ("resume", ("n1",))
    site.drain(["n1"], reason("node replace"))
    site.bad.add("n1")
    site.converge("n1", always=True)
    assert site.calls[-1][0] == "drain" and "DRAIN" in site.states["n1"]


def test_a_node_that_is_still_bad_stops_the_second_call_too(site):
    site.bad = {"n2"}
    upgrade(site)
    site.converge()
    assert states(site.converge("n2", "n3")) == {"n2": "failed", "n3": "not started"}


def test_somebody_else_s_drain_is_converged_and_never_resumed(site):
    site.states["n2"], site.reasons["n2"] = {"IDLE", "DRAIN"}, "fan broken"
    upgrade(site)
    assert states(site.converge("n2")) == {"n2": "converged"}
    assert site.calls == [] and site.reasons["n2"] == "fan broken" and "DRAIN" in site.states["n2"]
    assert any("stays drained" in line for line in site.lines)


def test_a_node_that_somebody_drains_meanwhile_is_not_resumed(site, monkeypatch):
    upgrade(site)
    real = site.play

    def play(playbook, **options):
        ran = real(playbook, **options)
        if playbook == "site.yml" and not options.get("check"):
            site.reasons["n1"] = "memory errors"
        return ran

    monkeypatch.setattr(site, "play", play)
    site.converge("n1")
    assert "DRAIN" in site.states["n1"] and ("resume", ("n1",)) not in site.calls


def test_jobs_that_do_not_end_in_time_leave_the_node_busy_and_serving(site):
    site.jobs = {"n1": {5: 1e9}}
    upgrade(site)
    receipt = site.converge(drain_timeout=30.0)
    assert states(receipt) == {
        "head": "converged",
        "n1": "busy",
        "n2": "converged",
        "n3": "converged",
        "n4": "converged",
    }
    assert site.states["n1"] == {"IDLE"} and 5 in site.jobs["n1"] and not site.hurt


def test_check_says_what_differs_and_touches_nothing(site):
    assert set(states(site.converge(check=True)).values()) == {"unchanged"}
    site.facts["n3"]["file /etc/a"] = "absent"
    receipt = site.converge(check=True)
    assert states(receipt)["n3"] == "drifted" and receipt.hosts["n3"].why == ["file /etc/a: is gone"]
    assert site.plays == []
    upgrade(site)
    before = json.dumps(site.facts)
    receipt = site.converge(check=True)
    assert receipt.hosts["n1"].state == "drifted" and receipt.hosts["n1"].drained
    assert receipt.hosts["n1"].tasks == ["slurm_node: Driver packages"]
    assert json.dumps(site.facts) == before and not site.calls
    assert site.sites() == [("site --check", ("head", *NODES), ())]


def test_what_ansible_does_not_undo_is_said_and_then_taken_as_it_is(site):
    site.converge()
    site.tasks[0] = replace(site.tasks[0], fact="file /etc/b")  # nobody manages /etc/a any more, but it is watched
    site.facts["n1"] |= {"file /etc/a": "file 0600 root:root 1", "file /etc/b": "file 0644 root:root 1"}
    receipt = site.converge("n1")
    assert receipt.hosts["n1"].remaining == ["file /etc/a: mode was 0644, is 0600"]
    assert states(site.converge("n1")) == {"n1": "unchanged"}


def test_a_host_that_does_not_answer_is_unreachable_and_the_others_go_on(site):
    site.dark = {"n2"}
    upgrade(site)
    outcomes = states(site.converge())
    assert outcomes.pop("n2") == "unreachable" and set(outcomes.values()) == {"converged"}


def test_slurm_that_is_restarting_is_asked_again_and_a_dead_one_leaves_the_nodes_alone(site):
    upgrade(site)
    site.answers = 3
    assert states(site.converge("n1")) == {"n1": "converged"}
    upgrade(site, "600")
    site.answers = 10**6
    receipt = site.converge("head", "n1")
    assert states(receipt) == {"head": "converged", "n1": "unknown"}
    assert "repair the head" in receipt.hosts["n1"].error and not site.hurt


def test_a_signal_while_jobs_end_gives_the_nodes_back(site, monkeypatch):
    site.jobs = {"n1": {5: 1e9}}
    upgrade(site)

    def pause(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(site, "pause", pause)
    with pytest.raises(KeyboardInterrupt):
        site.converge("n1")
    assert site.states["n1"] == {"IDLE"} and 5 in site.jobs["n1"]


def test_a_signal_in_the_middle_leaves_the_node_drained_for_the_next_converge(site):
    upgrade(site)
    site.interrupt = "n1"
    with pytest.raises(KeyboardInterrupt):
        site.converge("n1")
    assert "DRAIN" in site.states["n1"] and "stopped in the middle" in site.reasons["n1"]
    assert site.store.read("n1", "lab").history[-1].outcome == "stopped"
    site.interrupt = None
    assert states(site.converge("n1")) == {"n1": "converged"} and site.states["n1"] == {"IDLE"}


def test_the_receipt_says_what_when_why_and_the_gate(site):
    site.bad = {"n1"}
    site.facts["n1"]["file /etc/a"] = "absent"
    site.converge("n1")
    last = site.store.read("n1", "lab").history[-1]
    expected = ("failed", "failed", ["file /etc/a: is gone"], ["base: Settings"])
    assert (last.outcome, last.gate, last.drift, last.changed) == expected
    assert site.store.read("n1", "lab").inputs is None  # so the next converge runs Ansible in any case
    site.bad = set()
    assert states(site.converge("n1")) == {"n1": "converged"}
    assert site.store.read("n1", "lab").history[-1].gate == "passed"


def test_a_secret_that_does_not_resolve_is_a_sentence_and_nothing_is_done(site):
    def refuse(name):
        raise ValueError("the secret reference 'env:X' does not resolve")

    tools = Tools(site, site.ask, lambda c: site, refuse, lambda role: None, site.store, print, lambda: 0.0, site.pause)
    site.plays = []
    assert "does not resolve" in converge(site.document, ["n1"], tools, Options()).error and site.plays == []


def test_a_limit_names_hosts_roles_kinds_halls_or_partitions():
    document = site_document()
    assert select(document, "n1,head") == ["n1", "head"] and select(document, "home") == list(NODES)
    with pytest.raises(SelectionError, match="no such host, role, kind, hall or partition"):
        select(document, "n9")
