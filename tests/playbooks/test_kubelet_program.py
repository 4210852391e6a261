"""What a node says to its Kubernetes cluster beside kubelet: what the program decides, and its gate. Against the API
server: test_kubelet_program_live.py.
"""

import contextlib
import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from programs import load

from lab.system import wait_for
from tests.pki import issue

NOW, BEFORE = "2026-11-21T10:00:00Z", "2026-11-21T09:00:00Z"
GOOD = {"passed": True, "level": "join", "findings": [{"check": "gpus", "passed": True, "text": "8 GPUs"}]}
BAD = {
    "passed": False,
    "level": "join",
    "findings": [
        {"check": "gpus", "passed": False, "text": "7 of 8 GPUs"},
        {"check": "mounts", "passed": True, "text": "/shared"},
        {"check": "links", "passed": False, "text": "mlx5_0 is down"},
    ],
}


def pod(name, phase="Running", owner=None, mirror=None):
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if owner:
        meta["ownerReferences"] = [{"kind": owner, "name": "x", "uid": "u", "controller": True}]
    if mirror:
        meta["annotations"] = {"kubernetes.io/config.mirror": mirror}
    return {"metadata": meta, "spec": {}, "status": {"phase": phase}}


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setenv("IRONBURST_KUBELET_ROOT", str(tmp_path))
    monkeypatch.setenv("IRONBURST_KUBELET_GATE", str(tmp_path / "ironburst-gate"))
    return load("roles/kubernetes_node/files/ironburst-kubelet.py")


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        (pod("bare"), True),
        (pod("job", owner="Job"), True),
        (pod("pulling", phase="Pending"), True),
        (pod("lost", phase="Unknown"), True),
        (pod("done", phase="Succeeded", owner="Job"), False),
        (pod("broken", phase="Failed"), False),
        (pod("cni", owner="DaemonSet"), False),
        (pod("static", owner="Node", mirror="f" * 32), False),
        (pod("static", mirror="f" * 32), False),
    ],
)
def test_what_keeps_a_node(program, one, counts):
    assert program.is_workload(one) is counts


def test_the_line_for_the_dead_mans_switch_says_who_does_not_count(program):
    node = {"metadata": {"name": "gpu-1", "annotations": {"ironburst.io/beat": "ironburst,at=7,left=600"}}}
    others = [pod("cni", owner="DaemonSet"), pod("proxy", owner="Node", mirror="ab" * 16)]
    line = program.shown(node, [pod("train", owner="Job"), *others])
    assert (
        line == f"NodeName=gpu-1 State=ALLOCATED Comment=ironburst,at=7,left=600 Others={'ab' * 16},uid-cni,uid-proxy"
    )
    assert (
        program.shown({"metadata": {"name": "gpu-1"}}, others[:1])
        == "NodeName=gpu-1 State=IDLE Comment= Others=uid-cni"
    )
    split = {"metadata": {"name": "gpu-1", "annotations": {"ironburst.io/beat": "x State=IDLE\nState=IDLE"}}}
    assert "Comment=xState=IDLEState=IDLE " in program.shown(split, [])  # nobody's annotation is a word of its own


@pytest.mark.parametrize(
    ("status", "text", "word", "words"),
    [
        (0, json.dumps(GOOD), "True", "has passed"),
        (1, json.dumps(BAD), "False", "7 of 8 GPUs; mlx5_0 is down"),
        (1, json.dumps(GOOD), "Unknown", "gave no word (exit status 1)"),
        (0, json.dumps(BAD), "False", "7 of 8 GPUs"),
        (0, json.dumps(GOOD | {"findings": []}), "Unknown", "gave no word"),
        (0, json.dumps(GOOD | {"findings": BAD["findings"]}), "Unknown", "gave no word"),
        (0, json.dumps(GOOD | {"passed": "yes"}), "Unknown", "gave no word"),
        (0, "", "Unknown", "exit status 0): nothing"),
        (0, "[]", "Unknown", "gave no word"),
        (1, "Traceback\n  File x\nOSError: no", "Unknown", "Traceback File x OSError: no"),
        (None, "it did not end in 180 s", "Unknown", "it did not end in 180 s"),
        (-9, json.dumps(GOOD), "Unknown", "exit status -9"),
    ],
)
def test_only_a_whole_report_that_passed_is_a_pass(program, status, text, word, words):
    said = program.word_of(status, text)
    assert said[0] == word and words in said[2] and len(said[2]) <= 600 and "\n" not in said[2]


def test_the_time_of_a_condition_is_that_of_its_last_change(program):
    before = {"type": program.CONDITION, "status": "True", "lastTransitionTime": BEFORE}
    same = program.condition(("True", "GatePassed", "m"), before, NOW)
    assert (same["lastTransitionTime"], same["lastHeartbeatTime"]) == (BEFORE, NOW)
    assert program.condition(("False", "GateFailed", "m"), before, NOW)["lastTransitionTime"] == NOW
    assert program.condition(("True", "GatePassed", "m"), None, NOW)["lastTransitionTime"] == NOW


def gate(tmp_path, body):
    path = tmp_path / "ironburst-gate"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_the_gate_is_asked_now_and_what_it_said_before_does_not_count(program, tmp_path):
    (tmp_path / "run/ironburst").mkdir(parents=True)
    (tmp_path / "run/ironburst/gate.ok").touch()
    (tmp_path / "run/ironburst/gate.json").write_text(json.dumps(GOOD))
    assert program.word_of(*program.run_gate())[0] == "Unknown"  # there is no gate
    gate(tmp_path, "echo warning >&2; echo '" + json.dumps(GOOD) + "'")
    assert program.word_of(*program.run_gate())[0] == "True"
    gate(tmp_path, "echo 'no health.json' >&2; exit 1")
    assert "no health.json" in program.word_of(*program.run_gate())[2]


def test_a_gate_that_hangs_is_ended_with_all_that_it_started(program, tmp_path, monkeypatch):
    monkeypatch.setattr(program, "GATE_S", 0.3)
    gate(tmp_path, f"sleep 600 & echo $! > {tmp_path}/child; echo '{json.dumps(GOOD)}'; wait")
    assert program.run_gate() == (None, "it did not end in 0.3 s")
    child = (tmp_path / "child").read_text().strip()
    status = Path(f"/proc/{child}/status")
    wait_for(lambda: not status.exists() or "(zombie)" in status.read_text(), 10, "the end of the gate's child")


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "cluster.json says nothing usable of the cluster"),
        ({"cluster.json": "{"}, "cluster.json says nothing usable of the cluster"),
        ({"cluster.json": "{}"}, "cluster.json says nothing usable of the cluster: KeyError('node')"),
        ({"cluster.json": '{"node": "n", "api_server": "https://x"}'}, "cluster-ca.crt can't be used"),
    ],
)
def test_without_its_files_it_says_so_and_what_the_gate_said(program, tmp_path, capsys, files, sentence):
    (tmp_path / "etc/ironburst").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / "etc/ironburst" / name).write_text(text)
    gate(tmp_path, f"echo '{json.dumps(BAD)}'; exit 1")
    assert program.main(["gate"]) == 1
    error = capsys.readouterr().err
    assert sentence in error and "GatePassed is False (7 of 8 GPUs; mlx5_0 is down)" in error
    assert program.main(["show"]) == 1 and sentence in capsys.readouterr().err


def test_containers_of_others_are_seen(program, tmp_path):
    shims = {
        "7": "/usr/bin/containerd-shim-runc-v2\0-namespace\0k8s.io\0-id\0a\0",
        "8": "/usr/bin/containerd-shim-runc-v2\0-namespace\0moby\0-id\0b\0",
        "9": "python\0-namespace\0x\0",
        "10": "",
    }
    for number, words in shims.items():
        (tmp_path / "proc" / number).mkdir(parents=True)
        (tmp_path / "proc" / number / "cmdline").write_text(words)
    assert sorted(program.namespaces()) == ["k8s.io", "moby"]


def status_of(ready="True", gate="True", offered=None, capacity=None):
    conditions = [
        {"type": "Ready", "status": ready, "message": "container runtime is down"},
        {"type": "ironburst.io/GatePassed", "status": gate, "message": "7 of 8 GPUs"},
    ]
    allocatable = {"cpu": "8"} | (offered or {})
    return {"status": {"conditions": conditions, "allocatable": allocatable, "capacity": capacity or allocatable}}


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (status_of(offered={"nvidia.com/gpu": "8"}), ""),
        (status_of(), ""),  # claims hand the GPUs out
        (status_of(ready="False"), "Ready is False: container runtime is down"),
        (status_of(gate="False"), "ironburst.io/GatePassed is False: 7 of 8 GPUs"),
        ({"status": {}}, "Ready is unheard: it said nothing"),
        (status_of(offered={"nvidia.com/gpu": "7"}), "its device plugin offers 7 of 8 GPUs"),
        (status_of(offered={"nvidia.com/gpu": "0"}, capacity={"nvidia.com/gpu": "8"}), "offers 0 of 8"),
        (status_of(offered={"nvidia.com/gpu": "4", "nvidia.com/mig-1g.10gb": "28"}), ""),
        (status_of(offered={"nvidia.com/gpu": "0", "nvidia.com/mig-7g.80gb": "x"}), "offers 0 of 8"),
    ],
)
def test_when_a_node_is_ready_for_pods(program, node, words):
    assert (words in program.unready(node, 8)) and bool(program.unready(node, 8)) is bool(words)


@pytest.fixture
def held(program, tmp_path, monkeypatch):
    """Processes that hold a GPU on the node: started here, with control groups as they would have there."""
    started = {}

    def start(uid, command="exec sleep 600", device="/dev/nvidia0"):
        child = subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE)
        if "echo" in command:
            child.stdout.readline()
        folder = tmp_path / "proc" / str(child.pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "fd/3").symlink_to(device)
        place = f"kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice/cri-containerd-c.scope" if uid else "x.slice"
        (folder / "cgroup").write_text(f"0::/{place}\n")
        started[child.pid] = child
        return child

    def forget(seconds):
        for pid, child in started.items():
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=seconds)
                shutil.rmtree(tmp_path / "proc" / str(pid), ignore_errors=True)

    clock = SimpleNamespace(monotonic=time.monotonic, sleep=forget)
    monkeypatch.setattr(program, "time", clock)
    monkeypatch.setattr(program, "kept", lambda: {DAEMON, OTHER})
    running = ["false"]
    monkeypatch.setattr(program.subprocess, "call", lambda words: 0 if running[0] == "true" else 3)
    start.running = running
    yield start
    for child in started.values():
        child.kill()
        child.wait()
        child.stdout.close()


DAEMON, OTHER, JOB = (f"{n}b1c2d3e-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))


def test_what_services_hold_is_known_and_ended_and_nothing_else(program, held, tmp_path, capsys):
    plugin, deaf = held(DAEMON), held(OTHER, "trap '' TERM; echo up; while :; do sleep 0.1; done", "/dev/nvidiactl")
    host, idle = held(""), held(DAEMON.replace("1b", "9b"), device="/dev/null")
    assert program.main(["services"]) == 0
    assert sorted(map(int, capsys.readouterr().out.split())) == sorted((plugin.pid, deaf.pid))
    program.GRACE_S = 0.5
    assert program.main(["free"]) == 0
    assert plugin.returncode == -signal.SIGTERM and deaf.returncode == -signal.SIGKILL
    assert host.poll() is None and idle.poll() is None


def test_a_pod_of_a_workload_is_never_ended(program, held, capsys):
    plugin, job = held(DAEMON), held(JOB)
    assert program.main(["free"]) == 1 and f"holds a GPU, of uid {JOB}: drain the node" in capsys.readouterr().err
    assert plugin.poll() is None and job.poll() is None


def test_nothing_is_ended_that_kubelet_would_start_again(program, held, capsys):
    plugin, held.running[0] = held(DAEMON), "true"
    assert program.main(["free"]) == 1 and "kubelet runs, and would start again" in capsys.readouterr().err
    assert plugin.poll() is None


def test_what_does_not_end_is_told(program, held, capsys, monkeypatch):
    plugin, program.FREE_S = held(DAEMON), 0.3
    with monkeypatch.context() as patch:
        patch.setattr(program.os, "kill", lambda pid, number: None)
        assert program.main(["free"]) == 1
    assert f"process {plugin.pid} holds a GPU, and doesn't end" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("""echo '{"status": {"token": "k8s-aws-v1.x"}}'""", ""),
        (
            "echo 'ironburst-eks: has this instance a role?' >&2; exit 1",
            "can't sign in to its cluster: ironburst-eks: has",
        ),
        ("echo '{}'", "can't sign in to its cluster: no token"),
    ],
)
def test_on_eks_it_signs_in_by_the_instances_role(program, tmp_path, body, words):
    gate(tmp_path, body)
    (tmp_path / "etc/ironburst").mkdir(parents=True)
    (tmp_path / "etc/kubernetes").mkdir(parents=True)
    join = load("roles/cloud_node/files/ironburst-join.py")
    user = {"exec": {"command": str(tmp_path / "ironburst-gate"), "args": ["token"]}}
    (tmp_path / "etc/kubernetes/kubelet.conf").write_bytes(join.kubeconfig("https://127.0.0.1:1", user))
    (tmp_path / "etc/ironburst/cluster-ca.crt").write_text(issue("kubernetes", ca=True).pem)
    settings = {"node": "i-0abc", "api_server": "https://127.0.0.1:1", "eks": "ironburst-lab", "region": "us-east-1"}
    (tmp_path / "etc/ironburst/cluster.json").write_text(json.dumps(settings))
    if not words:
        assert program.Api().token == "k8s-aws-v1.x"
        return
    with pytest.raises(program.Failed, match=words):
        program.Api()
