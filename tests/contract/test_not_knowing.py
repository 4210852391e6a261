"""Every way not to know whether jobs are on a node, and every verb that disturbs one: all refused, and its BMC is told
nothing. The scheduler is a program that answers as the real one does, or doesn't.
"""

import ast
import copy
import hashlib
import json
import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from ironburst import cli, document
from ironburst.adapters.slurm import scheduler as slurm
from ironburst.cli import node_guard
from ironburst.convergence import guard
from ironburst.ports.service import Occupancy, SchedulerError, SchedulerMissing
from ironburst.system.bad_input import BadInput
from tests.contract import emulator
from tests.contract.emulator import PASSWORD, serving

ROOT = Path(__file__).parents[2]
LAB = yaml.safe_load((ROOT / "stacks/Pulumi.lab.yaml").read_text())
FIXTURES = ROOT / "tests/adapters/slurm_fixtures/24.11"
QUEUE, NODES = (json.loads((FIXTURES / f"{name}.json").read_text()) for name in ("squeue", "nodes"))
ADDRESS = "10.78.0.11"
VERBS = {
    "off": ["node", "power", "NODE", "STACK", "off"],
    "restart": ["node", "power", "NODE", "STACK", "restart"],
    "replace": ["node", "replace", "NODE", "STACK"],
    "bios": ["node", "bios", "NODE", "STACK", "--set", "--timeout", "1s"],
    "firmware": ["node", "firmware", "STACK", "NODE", "--update", "--restart"],
}


def node(name="dgx01", states=("IDLE", "DRAIN"), address=ADDRESS, **more):
    return NODES["nodes"][0] | {"name": name, "state": list(states), "address": address, "reason": "by hand"} | more


def job(*states, nodes="dgx01", **more):
    raw = next(each for each in QUEUE["jobs"] if "RUNNING" in each["job_state"])
    return raw | {"job_state": list(states), "nodes": nodes, "job_id": 4711} | more


def queue(*jobs, cluster="lab", **more):
    meta = copy.deepcopy(QUEUE["meta"])
    meta["slurm"]["cluster"] = cluster
    return json.dumps({"meta": meta, "jobs": list(jobs), "errors": []} | more)


def nodes(*rows, cluster="lab", **more):
    meta = copy.deepcopy(NODES["meta"])
    meta["slurm"]["cluster"] = cluster
    return json.dumps({"meta": meta, "nodes": list(rows or [node()]), "errors": []} | more)


AWAY = (1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
TABLE = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
# what squeue and scontrol answer: exit code, stdout, stderr; a text alone is a good answer's
WAYS = {
    "squeue is not on the PATH": ((127, "", "bash: line 1: squeue: command not found"), nodes()),
    "the same, in German": ((127, "", "bash: Zeile 1: squeue: Kommando nicht gefunden."), nodes()),
    "scontrol is not on the PATH": (queue(), (127, "", "sh: 1: scontrol: not found")),
    "it may not be run": ((126, "", "squeue: Permission denied"), nodes()),
    "sudo does not find it": ((1, "", "sudo: squeue: command not found"), nodes()),
    "ssh fails": ((255, "", "ssh: connect to host head port 22: No route to host"), nodes()),
    "no answer in time": ("hangs", nodes()),
    "no answer in time of the nodes": (queue(), "hangs"),
    "slurmctld is down": (AWAY, AWAY),
    "slurmctld is down, and squeue says 0": (queue(errors=[{"error": AWAY[2]}]), nodes()),
    "slurmctld goes down in between": (queue(), AWAY),
    "empty": ("", ""),
    "empty nodes": (queue(), ""),
    "a table": (TABLE, nodes()),
    "a banner before it": ("Welcome to head!\n" + queue(), nodes()),
    "half of it": (queue()[:-40], nodes()),
    "half of the nodes": (queue(), nodes()[:-40]),
    "null": ("null", "null"),
    "a list": ("[]", "[]"),
    "an object of something else": ("{}", "{}"),
    "no nodes at all": (queue(), nodes(*[{}][:0]).replace('"nodes": [', '"nodes": [], "x": [')),
    "another node alone": (queue(), nodes(node("gpu7", address="10.78.0.77"))),
    "its whole name": (queue(), nodes(node("dgx01.hall.example.org"))),
    "another name at its address": (queue(), nodes(node("a01n01"))),
    "its name at another address": (queue(), nodes(node(address="10.99.0.11"))),
    "another cluster": (queue(cluster="other"), nodes(cluster="other")),
    "the queue of another cluster": (queue(cluster="other"), nodes()),
    "another language's states": (queue(), nodes(node(states=("LEERLAUF", "DRAIN")))),
    "numbers with a comma": (queue(), nodes().replace('"cpus": ', '"cpus": 1,')),
    "dates in words": (queue(job("RUNNING", start_time="27.11.2026 17:03")), nodes()),
    "a job without a state": (queue(job("RUNNING") | {"job_state": None}), nodes()),
    "a running job without nodes": (queue(job("RUNNING", nodes="", submit_time=[])), nodes()),
    "a job in a state of another release": (queue(job("PONDERING")), nodes()),
    "it never registered": (queue(), nodes(node(states=("UNKNOWN", "DRAIN")))),
    "it is for the future": (queue(), nodes(node(states=("FUTURE", "DRAIN")))),
    "a state that Slurm does not know": (queue(), nodes(node(states=("INVALID", "DRAIN")))),
    "a node that can't be read": (queue(), nodes(node() | {"partitions": 7})),
    # not in doubt: jobs are there, though one of both answers hides it
    "a running job": (queue(job("RUNNING")), nodes()),
    "a completing job": (queue(job("CANCELLED", "COMPLETING")), nodes()),
    "a suspended job": (queue(job("SUSPENDED")), nodes()),
    "a job that starts": (queue(job("RUNNING", "CONFIGURING")), nodes()),
    "a job that squeue hides": (queue(), nodes(node(states=("MIXED", "DRAIN")))),
    "a job in a reservation": (queue(), nodes(node(states=("ALLOCATED", "RESERVED", "DRAIN")))),
    "what a job has left": (queue(), nodes(node(states=("IDLE", "COMPLETING", "DRAIN")))),
}
FIRST = {  # what --no-scheduler-yet lets through
    "squeue is not on the PATH", "the same, in German", "scontrol is not on the PATH", "no nodes at all",
    "another node alone", "it never registered", "it is for the future",
}  # fmt: skip


class Site:
    def __init__(self, folder, bmc, power, capsys, monkeypatch):
        self.folder, self.bmc, self.power, self.capsys = folder, bmc, power, capsys
        self.stack, self.prefix = folder / "Pulumi.x.yaml", folder / "prefix"
        value = copy.deepcopy(LAB)
        hall = value["config"]["ironburst:cluster"]["halls"][0]
        hall["bmc_cidr"] = "127.0.0.0/24"
        head, dgx = hall["nodes"]
        head.pop("bmc")
        (folder / "image").write_bytes(b'{"component": "BIOS", "version": "1.2"}')
        image = {
            "uri": "http://127.0.0.1:9/image",
            "sha256": hashlib.sha256((folder / "image").read_bytes()).hexdigest(),
        }
        least = {"component": "BIOS", "at_least": "1.2", "source": "advisory 7", "as_of": "2026-10-01", "image": image}
        dgx |= {"names": "dgx01", "units": [1], "addresses": ADDRESS, "macs": ["52:54:00:4e:00:0b"]}
        dgx |= {"serials": ["LAB-DGX01"], "bios": {"QuietBoot": False}, "allow_bios": ["dgx01"]}
        dgx |= {"firmware": [least], "allow_update": ["dgx01"]}
        dgx["bmc"] = {"addresses": bmc.url, "username": "admin", "password": "env:LAB_BMC_PASSWORD"}
        self.stack.write_text(yaml.safe_dump(value, sort_keys=False))
        monkeypatch.setenv("LAB_BMC_PASSWORD", PASSWORD)
        monkeypatch.setattr(guard, "POLL_S", 0.0)
        monkeypatch.setattr("ironburst.adapters.firmware_image.fetched", lambda *_: None)
        real = subprocess.run

        def run(argv, **more):  # time that nobody waits for
            if (folder / f"{argv[1]}.hangs").exists() if len(argv) > 1 else False:
                raise subprocess.TimeoutExpired(argv, more["timeout"])
            return real(argv, **more)

        monkeypatch.setattr(slurm.subprocess, "run", run)

    def slurm_says(self, queue, shown):
        lines = ["#!/bin/sh", f'echo "$*" >>{self.folder}/asked', 'case "$1 $2" in']
        for program, pattern, said in (("squeue", "squeue *", queue), ("scontrol", "scontrol show", shown)):
            if said == "hangs":
                (self.folder / f"{program}.hangs").touch()
            code, out, err = said if isinstance(said, tuple) else (0, said, "")
            (self.folder / program).write_text(out)
            lines.append(f'"{pattern}") ' if " *" not in pattern else '"squeue "*) ')
            lines[-1] += f"cat {self.folder}/{program}; echo {shlex.quote(err)} >&2; exit {code} ;;"
        self.prefix.write_text("\n".join([*lines, "esac", ""]))
        self.prefix.chmod(0o755)

    def run(self, verb, *words):
        argv = [{"NODE": "dgx01", "STACK": str(self.stack)}.get(word, word) for word in VERBS[verb]]
        code = cli.main([*argv, "--slurm-prefix", str(self.prefix), "--drain-timeout", "0s", *words])
        out, err = self.capsys.readouterr()
        for thread in self.bmc.resets:
            thread.join(5)
        return code, out + err

    def changed(self):
        """What the BMC was told: everything but its sessions."""
        log = self.folder / "requests.jsonl"
        rows = map(json.loads, log.read_text().splitlines() if log.exists() else [])
        return [row for row in rows if row["method"] not in ("GET", "HEAD") and "Session" not in row["path"]]


@pytest.fixture
def site(tmp_path, monkeypatch, capsys):
    with serving(tmp_path, emulator.MACHINE) as (bmc, power):
        yield Site(tmp_path, bmc, power, capsys, monkeypatch)


@pytest.mark.parametrize("verb", VERBS)
def test_every_way_not_to_know_refuses(site, verb):
    for way, (of_jobs, of_nodes) in WAYS.items():
        for file in site.folder.glob("*.hangs"):
            file.unlink()
        site.slurm_says(of_jobs, of_nodes)
        code, said = site.run(verb)
        assert code in (3, 5), (way, code, said)
        assert site.power.on and not site.power.calls and not site.changed(), (way, said)
        assert "dgx01" in said and "Traceback" not in said, (way, said)


@pytest.mark.parametrize("verb", VERBS)
def test_a_clear_answer_lets_it_go_on(site, verb):
    """Without this, refusing everything would pass the test above."""
    site.slurm_says(queue(), nodes())
    code, said = site.run(verb)
    assert site.changed(), (code, said)


@pytest.mark.parametrize("way", WAYS)
def test_the_flag_of_a_first_installation_is_for_no_other_doubt(site, way):
    site.slurm_says(*WAYS[way])
    code, said = site.run("off", guard.FLAG)
    assert (code == 0) is (way in FIRST) is (not site.power.on), said
    assert (way in FIRST) or not site.changed()


def test_a_prefix_that_is_no_command(site):
    site.prefix = "/nowhere/ssh head"
    code, said = site.run("off")
    assert code == 3 and site.power.on and "there is no command" in said


@pytest.mark.parametrize("name", ["dgx01.hall.example.org", ADDRESS, "https://127.0.0.1", "DGX01"])
def test_a_node_is_called_by_its_declared_name_alone(site, name):
    site.slurm_says(queue(), nodes())
    code = cli.main(["node", "power", name, str(site.stack), "off", "--slurm-prefix", str(site.prefix)])
    assert code == 2 and site.power.on and "is no managed node with a bmc" in site.capsys.readouterr().err


def test_what_a_person_filters_is_not_filtered_here(site, monkeypatch):
    """SQUEUE_USERS in a person's shell hides everybody else's jobs, SLURM_CLUSTERS asks another cluster."""
    for name in ("SQUEUE_USERS", "SQUEUE_STATES", "SQUEUE_PARTITION", "SLURM_CLUSTERS"):
        monkeypatch.setenv(name, "x")
    site.slurm_says(queue(), nodes())
    site.prefix.write_text(f"#!/bin/sh\nenv >>{site.folder}/env\n")
    site.run("off")
    seen = (site.folder / "env").read_text()
    assert "SQUEUE_" not in seen and "SLURM_CLUSTERS" not in seen and "PATH=" in seen


def test_each_verb_that_can_disturb_is_above():
    """By what it calls of a BMC."""
    acts = {"power_off", "restart", "RedfishBios", "RedfishUpdate", "shut_down"}
    found = set()
    for path in (ROOT / "ironburst/cli").glob("*.py"):
        text = path.read_text()
        called = [each.func for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Call)]
        if {getattr(each, "attr", getattr(each, "id", "")) for each in called} & acts:
            found.add(path.stem)
            assert "node_guard.of(" in text, path
    assert found == {"node_cycle", "node_bios", "node_update"}


# ---- several schedulers of one site


class Memory:
    """A scheduler in memory; an error is what it answers with."""

    def __init__(self, *seen, error=None):
        self.nodes, self.error, self.drains = {each.name: each for each in seen}, error, []

    def occupancy(self):
        if self.error:
            raise self.error
        return self.nodes

    def drain(self, names, reason):
        self.drains += names
        for name in names:
            its = self.nodes[name]
            self.nodes[name] = Occupancy(name, its.partitions, its.states | {"DRAIN"}, jobs=its.jobs)


def seen(name="dgx01", *states, jobs=(), address=""):
    return Occupancy(name, ("home",), frozenset(states or ("IDLE",)), jobs=jobs, address=address)


def taken(own, others=None, **more):
    said = []
    made = guard.Guard(own, 0.0, said.append, others=others, addresses={"dgx01": ADDRESS}, **more)
    return made.take("dgx01", "power off")


FREE = seen("dgx01", "IDLE", "DRAIN")
OTHERS = {
    "silent": Memory(error=SchedulerError("the pods of the cluster aren't known yet")),
    "not there": Memory(error=SchedulerMissing("there is no command squeue")),
    "runs a pod": Memory(seen("dgx01", "MIXED", jobs=("team/pod",))),
    "runs a pod, cordoned": Memory(seen("dgx01", "MIXED", "DRAIN", jobs=("team/pod",))),
    "may start one": Memory(seen()),
    "by its whole name": Memory(seen("dgx01.hall.example.org")),
    "at its address": Memory(seen("worker-3", address=ADDRESS)),
}


@pytest.mark.parametrize("way", OTHERS)
def test_the_sites_other_scheduler_is_asked_too(way):
    own = Memory(FREE)
    with pytest.raises(SchedulerError, match="dgx01: "):
        taken(own, {"Kubernetes": OTHERS[way]})
    assert not own.drains


def test_another_scheduler_that_has_no_such_node_or_has_drained_it_is_no_hindrance():
    assert taken(Memory(FREE), {"Kubernetes": Memory(seen("cpu01", "MIXED", jobs=("a/b",)))})
    assert taken(Memory(FREE), {"Kubernetes": Memory(seen("dgx01", "IDLE", "DRAIN"))})


def test_pods_of_a_bridge_are_waited_for():
    """slurm-bridge's job has left Slurm, and its pod has its grace time."""
    with pytest.raises(guard.Busy, match="team/pod"):
        taken(Memory(FREE), bridged=Memory(seen("dgx01", "MIXED", jobs=("team/pod",))))
    assert taken(Memory(FREE), bridged=Memory(seen()))


def test_another_clusters_document_is_no_answer(tmp_path, monkeypatch):
    """IRONBURST_DOCUMENT of the cluster that a person works on otherwise."""
    monkeypatch.setattr(document, "read", lambda _: SimpleNamespace(cluster="other"))
    asked = SimpleNamespace(document=tmp_path / "document.json")
    with pytest.raises(BadInput, match="is of cluster other, and prod is declared"):
        node_guard._cluster(asked, SimpleNamespace(name="prod"))
    monkeypatch.delenv("IRONBURST_DOCUMENT", raising=False)
    with pytest.raises(BadInput, match="give --document"):
        node_guard._cluster(SimpleNamespace(document=None), SimpleNamespace(name="prod"))
