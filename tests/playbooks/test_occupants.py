"""Nobody's work is disturbed: the modules and the action that may, run on random busy hosts (busy.py)."""

import json
import re
import threading
from types import SimpleNamespace

import pytest
import yaml
from ansible.module_utils import basic
from busy import OWN, WORK, busy, idle
from disturbing import PATHS
from programs import load
from test_disturbing import TASKS, found, look_of

from ansible.module_utils import occupants  # isort: skip (programs has put it there)

services, node_state = load("plugins/modules/services.py"), load("plugins/modules/node_state.py")
reboot_idle = load("plugins/action/reboot_idle.py")
STATES = 216  # 12 of each work, alone and with others


def looks() -> dict[str, tuple[str, dict]]:
    """{path: (kind of step, what its look asks)} of every path that has a look."""
    paths, tasks = {}, found()
    for where, (how, _) in PATHS.items():
        task = tasks[where]
        module = next((name for name in ("services", "reboot_idle") if name in task), "before")
        if how == "own":
            paths[where] = (module, task[module])
        elif how == "before":
            names = [name for name, _, _ in TASKS]
            file = where.partition(":")[0]
            before = [each for name, each, _ in TASKS[: names.index(where)] if name.partition(":")[0] == file]
            paths[where] = ("before", next(look_of(each) for each in reversed(before) if look_of(each)))
    asks = {"free_for": "This step", "disturbs": list(occupants.KINDS), "may_disturb": []}
    own = {where: {key: given[key] for key in ("disturbs",) if key in given} for where, (_, given) in paths.items()}
    return {where: (kind, asks | own[where]) for where, (kind, _) in paths.items()}


LOOKS = looks()


@pytest.fixture
def on(monkeypatch, tmp_path_factory):
    """Let modules see a host of busy.py, with a systemd whose units all run and are older than what they read; the
    steps of `services` that were done.
    """
    done = []
    young = tmp_path_factory.mktemp("etc") / "young"
    young.write_text("")

    def systemctl(command):
        words = [word for word in command[1:] if not word.startswith("--")]
        unit = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\nNeedDaemonReload=no\n"
        if words[0] == "show":
            text = "\n".join(unit + "InactiveExitTimestampMonotonic=1\n" for _ in words[1:])
        else:
            done.append(words)
            text = ""
        return SimpleNamespace(returncode=0, stdout=text, stderr="")

    monkeypatch.setattr(services, "run", systemctl)

    def use(host):
        def run(_self, *argv):
            return host.answers.get(argv[0], (None, f"{argv[0]} can't be run"))

        kept = {"run": run, "__init__": lambda self, **_: start(self, root=str(host.root), own_pid=OWN)}
        start = REAL.__init__
        monkeypatch.setattr(occupants, "Host", type("Host", (REAL,), kept))
        monkeypatch.setattr(node_state, "Look", type("Look", (LOOK,), kept))
        done.clear()
        return done, str(young)

    return use


REAL, LOOK = occupants.Host, node_state.Look


def run(module, capsys, monkeypatch, **arguments):
    """A module's answer, run in this process."""
    question = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", question)
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
    with pytest.raises(SystemExit):
        module.main()
    return json.loads(capsys.readouterr().out)


def rebooting(monkeypatch, tmp_path, asked, answer):
    """The action with its look `asked` through `answer`; whether Ansible's own reboot was called."""
    action = object.__new__(reboot_idle.ActionModule)
    called = []
    monkeypatch.setattr(action, "_execute_module", lambda module_args, **_: answer(**module_args), raising=False)
    monkeypatch.setattr(action, "_builtin", lambda *_: called.append(1) or {"changed": True}, raising=False)
    options = {"free_for": asked["free_for"], "may_disturb": [], "reboot_timeout": 1}
    return action._reboot(options, {"inventory_hostname": "dgx01"}, tmp_path / "failed"), called


def step(kind, asked, young, capsys, monkeypatch, folder):
    """One path's step, by the real module or action: (its answer, what it did)."""
    ask = {"services": services, "before": node_state}.get(kind, node_state)
    if kind == "services":
        unit = {"name": "unit", "state": "started", "reads": [young]}
        return run(ask, capsys, monkeypatch, services=[unit], **asked), None
    if kind == "before":
        return run(ask, capsys, monkeypatch, **asked), []
    return rebooting(monkeypatch, folder, asked, lambda **given: run(node_state, capsys, monkeypatch, **given))


def test_the_paths_are_all_kinds():
    assert {kind for kind, _ in LOOKS.values()} == {"services", "reboot_idle", "before"} and len(LOOKS) >= 18


@pytest.mark.parametrize("user", [0, 1000])
def test_an_idle_host_stands_against_nothing(on, tmp_path, capsys, monkeypatch, user):
    done, young = on(idle(tmp_path / "host", user))
    assert occupants.occupants(occupants.Host()) == []
    for where, (kind, asked) in LOOKS.items():
        done.clear()
        answer, called = step(kind, asked, young, capsys, monkeypatch, tmp_path)
        assert not answer.get("failed"), (where, answer)
        assert (done == [["restart", "unit.service"]]) if kind == "services" else called != [] or kind == "before"


def test_a_module_that_was_forked_looks_from_the_process_that_asked_for_it(monkeypatch):
    monkeypatch.setenv("IRONBURST_CALLER", "17")
    assert REAL().own_pid == 17


def test_nothing_is_disturbed_on_random_busy_hosts(on, tmp_path, capsys, monkeypatch):
    """The figure: states x paths, and what was disturbed."""
    asked_in_all, disturbed = 0, []
    for seed in range(STATES):
        host, kinds = busy(tmp_path / str(seed), seed)
        done, young = on(host)
        seen = {kind for kind, _ in occupants.occupants(occupants.Host())}
        # two works may both be of Slurm: its silence is asked for only where no step tells enough
        slurm = {"jobs", "unseen"}
        assert set(kinds) - slurm <= seen and bool(slurm & set(kinds)) <= bool(slurm & seen), (seed, kinds, seen)
        answers = {}
        for where, (kind, asked) in LOOKS.items():
            key = json.dumps([kind, asked])
            if not set(kinds) & set(asked["disturbs"]):
                continue  # container daemons: a person's shell is nothing to them, nor is Slurm's silence
            done.clear()
            answer, called = answers.get(key) or step(kind, asked, young, capsys, monkeypatch, tmp_path)
            answers[key] = (answer, called)
            asked_in_all += 1
            if not answer.get("failed") or done or called:
                disturbed.append((seed, where, kinds))
            assert "nothing was changed" in answer["msg"] and "This step would disturb" in answer["msg"]
    print(f"{STATES} states, {len(LOOKS)} paths, {asked_in_all} asked, {len(disturbed)} disturbed")
    assert disturbed == [] and STATES >= 200 and asked_in_all > STATES * 15


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_each_work_alone_is_found_and_named(on, tmp_path, work):
    import random

    host = idle(tmp_path, 1000)
    kind = work(host, random.Random(7))
    on(host)
    found_now = occupants.occupants(occupants.Host())
    assert kind in {each for each, _ in found_now}
    sentence = occupants.refusal(found_now, "A reboot", [], "dgx01")
    assert sentence.startswith("A reboot would disturb ") and sentence.endswith(
        "then run this again; nothing was changed"
    )
    assert "\n" not in sentence and all(len(part) < 200 for part in sentence.split(", "))


@pytest.mark.parametrize("kind", ["jobs", "gpus"])
def test_jobs_and_gpus_are_never_given_up(kind):
    found_now = [(kind, "something")]
    assert occupants.refusal(found_now, "A reboot", list(occupants.KINDS), "dgx01")
    assert "jobs and GPUs never" in occupants.unknown_words([kind])


def test_a_declared_word_lets_that_kind_be_disturbed_and_no_other(on, tmp_path, capsys, monkeypatch):
    host = idle(tmp_path / "host")
    host.process("train", uid=1001)
    on(host)
    said = run(node_state, capsys, monkeypatch, free_for="A reboot")
    assert said["failed"] and "alice with train (5003)" in said["msg"] and "base_may_disturb: [users]" in said["msg"]
    assert not run(node_state, capsys, monkeypatch, free_for="A reboot", may_disturb=["users"]).get("failed")
    host.process("python3", uid=1001, opens=["/dev/nvidia0"])
    said = run(node_state, capsys, monkeypatch, free_for="A reboot", may_disturb=["users"])
    assert said["failed"] and "with a GPU open" in said["msg"] and "base_may_disturb" not in said["msg"]
    said = run(node_state, capsys, monkeypatch, free_for="A reboot", may_disturb=["everything"])
    assert "base_may_disturb has everything: it takes containers, users, schedulers, unseen" in said["msg"]


def test_a_look_alone_and_a_check_run_refuse_nothing(on, tmp_path, capsys, monkeypatch):
    host = idle(tmp_path / "host")
    host.process("train", uid=1001)
    on(host)
    assert not run(node_state, capsys, monkeypatch).get("failed")
    assert not run(node_state, capsys, monkeypatch, free_for="A reboot", _ansible_check_mode=True).get("failed")


def test_files_that_nobody_may_read_count_as_somebodys(on, tmp_path, monkeypatch):
    on(idle(tmp_path))

    def closed(self, _pid):
        self.closed += 1
        return False

    monkeypatch.setattr(occupants.Host, "_holds_gpu", closed)
    ((kind, text),) = occupants.occupants(occupants.Host())
    assert kind == "unseen" and "this needs root" in text
    on(SimpleNamespace(root=tmp_path / "nothing", answers={}))
    assert occupants.occupants(occupants.Host()) == [("unseen", "/proc shows no process")]


def test_pods_of_daemonsets_are_nobodys_work(on, tmp_path):
    host = idle(tmp_path)
    group = "/kubepods.slice/kubepods-pod0a.slice/cri-containerd-9.scope"
    host.file("/usr/local/sbin/ironburst-kubelet")
    host.process("kubelet")
    host.process("containerd-shim", "/usr/bin/containerd-shim-runc-v2 -namespace k8s.io -id 7")
    plugin = host.process("nvidia-device-p", uid=1000, group=group, opens=["/dev/nvidia0"])
    host.answers["/usr/local/sbin/ironburst-kubelet"] = (0, f"{plugin}\n")
    on(host)
    assert occupants.occupants(occupants.Host()) == []


# ---- how many reboot at one time


@pytest.mark.parametrize(
    ("at_once", "hosts", "count"),
    [("10%", 100, 10), ("10%", 5, 1), ("25%", 9, 2), ("3", 100, 3), ("0", 8, 1), ("100%", 8, 8), (" 2 ", 4, 2)],
)
def test_a_share_is_at_least_one_host(at_once, hosts, count):
    assert reboot_idle.places(at_once, hosts) == count


@pytest.mark.parametrize("at_once", ["", "all", "-1", "10 %", "1.5", "101%"])
def test_other_shares_are_refused(at_once):
    with pytest.raises(ValueError, match="a number of hosts such as 4, or a share such as 10%"):
        reboot_idle.places(at_once, 8)


def test_never_more_than_so_many_at_one_time(tmp_path, monkeypatch):
    monkeypatch.setattr(reboot_idle, "PAUSE_S", 0.001)
    now, most, lock, third = 0, 0, threading.Lock(), threading.Event()

    def reboot():
        nonlocal now, most
        with reboot_idle.place(tmp_path / "run", 3):
            with lock:
                now += 1
                most = max(most, now)
                if now == 3:
                    third.set()
            third.wait(30)  # all three places are taken before one is given back
            with lock:
                now -= 1

    hosts = [threading.Thread(target=reboot) for _ in range(12)]
    for host in hosts:
        host.start()
    for host in hosts:
        host.join(60)
    assert most == 3 and now == 0


def test_after_one_that_failed_no_other_reboots(tmp_path):
    """By Ansible itself, under the strategy of site.yml: it refuses to reboot the control node, which is a failure."""
    import os
    import subprocess
    import sys
    from pathlib import Path

    from programs import PLAYBOOKS

    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "node_state.py").write_text(
        "from ansible.module_utils.basic import AnsibleModule\n"
        "AnsibleModule({'free_for': {}, 'may_disturb': {'type': 'list'}}).exit_json(changed=False)\n"
    )
    task = {"name": "Reboot", "reboot_idle": {"at_once": "1"}}
    (tmp_path / "tasks.yml").write_text(yaml.safe_dump([task]))
    include = {"name": "In a role's way", "ansible.builtin.include_tasks": "tasks.yml"}
    play = {"hosts": "all", "strategy": "free", "gather_facts": False, "tasks": [include]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "h1,h2,h3,h4", "-c", "local", "play.yml"],
        cwd=tmp_path,
        env=os.environ
        | {"ANSIBLE_LIBRARY": str(tmp_path / "library"), "ANSIBLE_NOCOLOR": "1",
           "ANSIBLE_ACTION_PLUGINS": str(PLAYBOOKS / "plugins" / "action"), "ANSIBLE_LOCAL_TEMP": str(tmp_path / "tmp"),
           "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"), "ANSIBLE_PYTHON_INTERPRETER": sys.executable},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(re.findall("fatal: .*would reboot the control node", done.stdout)) == 1
    assert len(re.findall(r"fatal: .*was rebooted and didn't come back, so h", done.stdout)) == 3, done.stdout
