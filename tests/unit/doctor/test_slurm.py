"""`ironburst doctor --slurm`: each thing that may be missing in a Slurm that isn't managed, missed once."""

import hashlib
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ironburst import cli, slurm_programs
from ironburst.doctor import slurm
from ironburst.doctor.checks import Unasked
from ironburst.doctor.slurm import Held
from ironburst.document import of_stack
from ironburst.slurm_programs import snippet

STACK = Path(__file__).parents[3] / "stacks/Pulumi.lab-beside.yaml"
CLUSTER = of_stack.document(STACK)
TEXTS = snippet.parts(CLUSTER)
# As slurmctld 24.11 prints them
CONFIG = {
    "SLURM_VERSION": "24.11.5",
    "SlurmctldParameters": "enable_configless,idle_on_node_suspend,requeue_on_resume_failure,power_save_interval=5,"
    "power_save_min_interval=0",
    "GresTypes": "gpu",
    "ResumeProgram": "/usr/local/sbin/ironburst-resume",
    "SuspendProgram": "/usr/local/sbin/ironburst-suspend",
    "ResumeFailProgram": "/usr/local/sbin/ironburst-resume-fail",
    "ResumeTimeout": "1800 sec",
    "SuspendTimeout": "300 sec",
    "SuspendTime": "INFINITE",
    "ResumeRate": "0 nodes/min",
    "SuspendRate": "0 nodes/min",
    "MpiDefault": "pmix",
    "KillWait": "90 sec",
}
NODE = {
    "CPUTot": "16",
    "RealMemory": "1000",
    "Gres": "gpu:h100:8",
    "State": "IDLE+CLOUD+DRAIN+POWERED_DOWN",
    "Partitions": "burst-p5",
}


def held(name, mode="755", owner="root"):
    return Held(owner, mode, hashlib.sha256(TEXTS[name].encode()).hexdigest())


@dataclass
class Head:
    """A head with all that is needed."""

    said: dict = field(default_factory=lambda: dict(CONFIG))
    known: dict = field(default_factory=lambda: {"p5-1": dict(NODE), "p5-2": dict(NODE), "dgx01": {}})
    level: str = "Administrator"
    files: dict = field(
        default_factory=lambda: {
            "/usr/local/sbin/ironburst-resume": held("ironburst-resume"),
            "/usr/local/sbin/ironburst-suspend": held("ironburst-suspend"),
            "/usr/local/sbin/ironburst-names": held("ironburst-names"),
            "/usr/local/sbin/ironburst-resume-fail": held("ironburst-suspend"),
            "/etc/systemd/system/ironburst.service": Held("root", "644"),
            "/var/spool/ironburst": Held("ironburst", "775"),
            "/var/spool/ironburst/leases": Held("ironburst", "755"),
        }
    )
    names: tuple = ("p5-1", "p5-2")

    def config(self):
        return self.said

    def nodes(self):
        return self.known

    def admin_level(self, user):
        return self.level

    def held(self, paths):
        return {path: self.files[path] for path in paths if path in self.files}

    def addresses(self, names):
        return {name: snippet.NOWHERE for name in names if name in self.names}


def findings(head):
    return [found for found in slurm.check(slurm.UnmanagedSlurm(CLUSTER, head)) if found.state != "ok"]


def test_nothing_is_missed_where_all_is_there():
    assert findings(Head()) == []
    assert len(list(slurm.check(slurm.UnmanagedSlurm(CLUSTER, Head())))) > 15


@pytest.mark.parametrize("key", [key for key in CONFIG if key not in ("SLURM_VERSION", "MpiDefault", "KillWait")])
def test_a_setting_that_is_missing_or_another_one(key):
    for value in ("", "9 sec", "none"):
        head = Head()
        head.said[key] = value
        (found,) = findings(head)
        assert (found.looked_at, found.state) == (key, "fail") and "slurm snippet" in found.todo
    head = Head()
    del head.said[key]
    assert [found.looked_at for found in findings(head)] == [key]


def test_more_than_what_is_needed_is_fine():
    head = Head()
    head.said["SlurmctldParameters"] += ",max_dbd_msg_action=discard"
    head.said["GresTypes"] = "gpu,shard"
    assert findings(head) == []


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ("23.11.4", "fail"),
        ("24.05.1", "fail"),
        ("25.05.1", "ok"),
        ("25.11.7", "ok"),
        ("99.05.1", "unknown"),
        ("", "unknown"),
    ],
)
def test_a_slurmd_that_is_newer_than_the_head_or_too_old(version, state):
    head = Head()
    head.said["SLURM_VERSION"] = version
    assert [found.state for found in findings(head)] == ([] if state == "ok" else [state])


@pytest.mark.parametrize(
    ("changed", "seen"),
    [
        (None, "p5-2 isn't there"),
        ({"CPUTot": "8"}, "p5-2 has CPUTot=8, declared is 16"),
        ({"RealMemory": "1"}, "p5-2 has RealMemory=1, declared is 1000"),
        ({"Gres": "(null)"}, "p5-2 has Gres=(null), declared is gpu:h100:8"),
        ({"State": "IDLE"}, "p5-2 is in state IDLE, not CLOUD"),
        ({"Partitions": "gpu"}, "p5-2 isn't in partition burst-p5"),
    ],
)
def test_a_node_that_is_not_as_declared(changed, seen):
    head = Head()
    if changed is None:
        del head.known["p5-2"]
    else:
        head.known["p5-2"] |= changed
    assert [found.seen for found in findings(head)] == [seen]


def test_where_gpus_lie_may_stand_behind_the_gres():
    head = Head()
    head.known["p5-1"]["Gres"] = "gpu:h100:8(S:0-1)"
    assert findings(head) == []


@pytest.mark.parametrize("path", list(Head().files))
def test_what_is_missing_on_disk(path):
    head = Head()
    del head.files[path]
    (found,) = findings(head)
    assert found.looked_at == path and found.seen == "isn't there" and "install.sh" in found.todo


def test_an_older_program_one_that_can_not_be_run_and_a_folder_of_somebody_else():
    head = Head()
    head.files["/usr/local/sbin/ironburst-resume"] = Held("root", "755", "0" * 64)
    head.files["/usr/local/sbin/ironburst-suspend"] = held("ironburst-suspend", mode="644")
    head.files["/var/spool/ironburst"] = Held("root", "775")
    said = [found.seen for found in findings(head)]
    assert said == ["is another one than this version's", "can't be run (mode 644)", "root, mode 775"]


@pytest.mark.parametrize(("level", "seen"), [("", "isn't known"), ("Operator", "has AdminLevel Operator")])
def test_a_user_that_may_not(level, seen):
    (found,) = findings(Head(level=level))
    assert seen in found.seen and "AdminLevel=Administrator" in found.todo


def test_names_that_need_a_resolver():
    (found,) = findings(Head(names=("p5-1",)))
    assert found.state == "warn" and "doesn't know p5-2" in found.seen


def test_a_question_without_an_answer_is_unknown_and_the_others_are_asked():
    head = Head()

    def config():
        raise Unasked("slurmctld gives no answer", "start it")

    head.config = config
    assert [(found.check, found.state) for found in findings(head)] == [("slurm.conf", "unknown")]


# ---- the command, with a head of small programs

HEAD = """#!{python}
import json, os, subprocess, sys
said = json.load(open({said!r}))
command = sys.argv[1:]
if command[0] in ("sh", "cat"):
    os.execvp(command[0], command)
print(said[command[0] + " " + command[-1] if command[0] == "scontrol" else command[0]])
"""


@pytest.fixture
def prefix(tmp_path):
    said = {
        "scontrol config": "\n".join(f"{key:<23} = {value}" for key, value in CONFIG.items()) + "\nCluster up at x",
        "scontrol node": "".join(
            f"NodeName={name} Arch=x86_64 {' '.join(f'{key}={value}' for key, value in NODE.items())} Reason=no lease\n"
            for name in ("p5-1", "p5-2")
        ),
        "sacctmgr": "Administrator",
    }
    (tmp_path / "said.json").write_text(json.dumps(said))
    program = tmp_path / "head"
    program.write_text(HEAD.format(python=sys.executable, said=str(tmp_path / "said.json")))
    program.chmod(0o755)
    return str(program)


def test_the_command_asks_the_head(prefix, capsys):
    assert cli.main(["doctor", str(STACK), "--slurm", "--slurm-prefix", prefix, "--json"]) == 3
    found = json.loads(capsys.readouterr().out)["findings"]
    by_check = {check: {each["state"] for each in found if each["check"] == check} for check in ("slurm.conf", "nodes")}
    assert by_check == {"slurm.conf": {"ok"}, "nodes": {"ok"}}
    assert [each["state"] for each in found if each["check"] == "rights"] == ["ok"]
    missing = {each["looked_at"] for each in found if each["state"] == "fail"}
    assert f"{snippet.FOLDER}/{slurm_programs.NAMES[0]}" in missing


def test_a_head_that_can_not_be_asked(capsys):
    assert cli.main(["doctor", str(STACK), "--slurm", "--slurm-prefix", "/nowhere/ssh head"]) == 3
    seen = "there is no command '/nowhere/ssh' here: run on the head node, or give --slurm-prefix 'ssh root@HEAD'"
    todo = "run it on the head, or give --slurm-prefix 'ssh HEAD', as somebody who may ask Slurm"
    rented = "nodes that may be rented"
    asked = ["slurm.conf: settings", f"nodes: {rented}", f"names: {rented}", "programs: the head", "rights: ironburst"]
    lines = [f"unknown  {each}: {seen}\n         -> {todo}\n" for each in asked]
    assert capsys.readouterr().out == "".join(lines) + "5 unknown\n"


def test_a_slurm_that_is_managed_has_nothing_to_ask(capsys):
    assert cli.main(["doctor", str(STACK.with_name("Pulumi.lab.yaml")), "--slurm"]) == 2
    assert "`ironburst converge --check` looks" in capsys.readouterr().err


TREE = "# Written by ironburst from the declared halls: changes made here are lost\nSwitchName=leaf1 Nodes=dgx[01-02]\n"


def of_topology(head, tree=TREE):
    cluster = CLUSTER.model_copy(update={"topology": tree})
    return [found for found in slurm.check(slurm.UnmanagedSlurm(cluster, head)) if found.check == "topology"]


def test_a_topology_that_is_not_the_halls_is_named():
    head = Head()
    assert of_topology(head) == []
    head.files["/etc/slurm/topology.conf"] = Held("root", "644", hashlib.sha256(TREE.encode()).hexdigest())
    (found,) = of_topology(head)
    assert (found.state, found.looked_at) == ("ok", "/etc/slurm/topology.conf")
    head.files["/etc/slurm/topology.conf"] = Held("root", "644", hashlib.sha256(b"SwitchName=s0").hexdigest())
    (found,) = of_topology(head)
    assert found.state == "warn" and "the declared halls make another tree" in found.seen
    assert "hall plan STACK_FILE --topology conf" in found.todo and "administrator's to change" in found.todo
    assert of_topology(head, "") == []  # no tree is declared: theirs is nobody's business


def test_the_topology_lies_beside_slurm_conf():
    head = Head()
    head.said["SLURM_CONF"] = "/opt/slurm/etc/slurm.conf"
    head.files["/opt/slurm/etc/topology.yaml"] = Held("root", "644", "0" * 64)
    head.files["/etc/slurm/topology.conf"] = Held("root", "644", "0" * 64)
    (found,) = of_topology(head)
    assert (found.state, found.looked_at) == ("warn", "/opt/slurm/etc/topology.yaml")
    assert "is read in the place of topology.conf" in found.seen


@pytest.mark.parametrize(
    ("key", "said", "seen"),
    [
        # Slurm's own defaults, as `scontrol show config` of 24.11 prints them
        ("MpiDefault", "none", "N programs of one process"),
        ("KillWait", "30 sec", "is 30 s: so long a job of a spot node may save, of the 120 s"),
        ("KillWait", "300 sec", "longer than the cloud's notice"),
    ],
)
def test_a_foreign_slurm_that_loses_work_is_told_and_works(key, said, seen):
    head = Head()
    head.said[key] = said
    spot = CLUSTER.model_copy(update={"pools": [CLUSTER.pools[0].model_copy(update={"markets": ["spot"]})]})
    found = [each for each in slurm.check(slurm.UnmanagedSlurm(spot, head)) if each.looked_at == key]
    assert [each.state for each in found] == ["warn"] and seen in found[0].seen and key + "=" in found[0].todo
    assert key == "MpiDefault" or findings(head) == []  # without spot nobody takes a node back


@pytest.mark.parametrize(
    ("said", "state"), [("600 sec", "fail"), ("3599 sec", "fail"), ("3600 sec", "ok"), ("7200 sec", "ok")]
)
def test_a_foreign_slurm_waits_for_a_boot_as_long_as_its_pools_may_take(said, state):
    """It may wait longer."""
    head = Head()
    head.said["ResumeTimeout"] = said
    slow = CLUSTER.model_copy(update={"pools": [CLUSTER.pools[0].model_copy(update={"boot_s": 3000})]})
    (found,) = [each for each in slurm.check(slurm.UnmanagedSlurm(slow, head)) if each.looked_at == "ResumeTimeout"]
    assert found.state == state and (state == "ok" or "without the 3600 that its pools need" in found.seen)
