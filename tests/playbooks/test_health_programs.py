"""HealthCheckProgram and Epilog, run with a gate and Slurm's commands that write down how they were called."""

import subprocess
import sys
from pathlib import Path

import pytest

from ironburst.health import shared
from lab.system import wait_for
from tests.fakes import gates

FILES = Path(__file__).resolve().parents[2] / "playbooks/roles/node_health/files"


@pytest.fixture
def node(tmp_path):
    """Runs ironburst-health with this answer of the gate and this state of the node: the calls of scontrol."""

    def run(gate, state="idle", program="ironburst-health", status=None, reason="health: gpus: GPU 3 fell off the bus"):
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        code = int("FAILED" in gate) if status is None else status
        for name, text in {
            "ironburst-gate": f"cat <<'EOF'\n{gate}\nEOF\nexit {code}",
            "sinfo": f"echo '{state}'",
            "scontrol": f'case "$1" in show) printf "   Reason=%s [root@2026-11-27T07:00:00]\\n" "{reason}" ;; '
            f'*) printf "%s\\n" "$@" >> {calls} ;; esac',
        }.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
        (tmp_path / "node.env").write_text("IRONBURST_NODE=dgx01\nIRONBURST_CONF_SERVER=10.0.0.1\n")
        text = (FILES / program).read_text().replace("/usr/local/sbin/", f"{tmp_path}/")
        text = text.replace("/etc/ironburst/node.env", f"{tmp_path}/node.env").replace("/run/ironburst", str(tmp_path))
        script = tmp_path / program
        script.write_text(text)
        script.chmod(0o755)
        path = f"{tmp_path}:/usr/bin:/bin"
        done = subprocess.run(["sh", script], env={"PATH": path}, capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, done.stderr
        return calls.read_text().splitlines() if calls.exists() else []

    return run


SICK = "gate: ok     driver: 580\ngate: FAILED gpus: GPU 3 fell off the bus\ngate: not passed, this node takes no jobs"


def test_a_node_that_passes_is_left_alone(node):
    assert node("gate: passed") == []


def test_a_node_that_fails_is_drained_with_the_first_thing_that_is_wrong(node):
    said = ["update", "nodename=dgx01", "state=drain", "reason=health: gpus: GPU 3 fell off the bus"]
    assert node(SICK) == said and node(SICK, "mixed") == said
    assert node("it is gone", status=1)[-1] == "reason=health: it is gone"


@pytest.mark.parametrize("state", ["drained", "draining", "drained*", "drain"])
def test_what_is_drained_keeps_the_reason_that_it_has(node, state):
    assert node(SICK, state) == []


def installed(folder, gate, sinfo, show):
    """ironburst-health in a folder, beside a gate and Slurm's commands; scontrol keeps the drain's reason in a file."""
    update = f'for word; do case "$word" in reason=*) printf %s "${{word#reason=}}" > {folder}/reason ;; esac; done'
    for name, text in {
        "ironburst-gate": gate,
        "sinfo": f"#!/bin/sh\n{sinfo}\n",
        "scontrol": f'#!/bin/sh\ncase "$1" in show) {show} ;; *) {update} ;; esac\n',
        "node.env": "IRONBURST_NODE=dgx01\n",
        "ironburst-health": (FILES / "ironburst-health").read_text().replace("/usr/local/sbin/", f"{folder}/"),
    }.items():
        text = text.replace("/etc/ironburst/", f"{folder}/").replace("/run/ironburst", str(folder))
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


GATE = """#!{python}
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from ironburst.health import shared
from lab.system import wait_for
from tests.fakes import gates
told = Path({folder!r}) / "tolerated"
told = told.read_text().strip() if told.exists() else ""
found = shared.tolerate(gates.findings({wrong!r}), shared.tolerated(told, {now!r}))
for finding in found:
    print("gate: {{}} {{}}: {{}}".format("ok    " if finding.passed else "FAILED", finding.check, finding.text))
if shared.causes(found):
    print("gate: SHARED " + ",".join(shared.causes(found)))
sys.exit(not all(finding.passed for finding in found))
"""
NOW = 1795260000
HOT, DARK = (f"health: [{cause}] {gates.TEXT[cause]}" for cause in ("throttle", "mounts"))
BOTH = f"health: [mounts,throttle] {gates.TEXT['throttle']}"
ON = shared.work_until(shared.read(HOT), NOW + 900)


@pytest.mark.parametrize("wrong", [(), ("throttle",), ("mounts",), ("mounts", "throttle"), ("throttle", "xid")])
@pytest.mark.parametrize(
    "reason",
    [
        *(None, HOT, DARK, BOTH, ON, shared.work_until(shared.read(HOT), NOW - 1), f"{ON} : Kill task failed"),
        *(HOT.replace("] ", "] ready: "), "health: xid: Xid 79", "rack 4: ask Bob", "health: [of Bob's] mine"),
    ],
)
def test_the_real_program_does_what_the_stand_in_of_the_other_tests_does(tmp_path, reason, wrong):
    """tests/fakes/gates.py, by which the controller's answers are played."""
    drained = tmp_path / "reason"
    if reason is not None:
        drained.write_text(reason)
    show = f'printf "NodeName=dgx01\\n   Reason=%s [root@2026-11-27T07:00:00]\\n" "$(cat {drained})"'
    gate = GATE.format(python=sys.executable, root=str(FILES.parents[3]), folder=str(tmp_path), wrong=wrong, now=NOW)
    installed(tmp_path, gate, f"[ -e {drained} ] && echo drained || echo idle", show)
    path = f"{tmp_path}:/usr/bin:/bin"
    subprocess.run(["sh", str(tmp_path / "ironburst-health")], env={"PATH": path}, check=True, timeout=60)
    is_drained, now, told = gates.after(reason is not None, reason or "", sorted(wrong), "", NOW)
    assert (drained.exists(), drained.read_text() if drained.exists() else "") == (is_drained, now)
    assert ((tmp_path / "tolerated").read_text().strip() if (tmp_path / "tolerated").exists() else "") == told


def test_where_other_jobs_run_on_the_answer_is_looked_for_all_the_same(tmp_path):
    """Slurm's health check is for idle nodes; this one ran behind one of two jobs."""
    reason, looks = tmp_path / "reason", tmp_path / "looks"
    answer = f'grep -q . {looks} && [ $(wc -l < {looks}) -ge 2 ] && exit 0; echo "gate: FAILED gpu_health: hot"'
    show = f'echo "   Reason=$(cat {reason}) [root@now]"'
    gate = f"#!/bin/sh\necho look >> {looks}\n{answer}; echo 'gate: SHARED throttle'; exit 1\n"
    installed(tmp_path, gate, f"[ -e {reason} ] && echo draining || echo mixed", show)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "IRONBURST_AGAIN_S": "0.2"}
    subprocess.run([str(tmp_path / "ironburst-health")], env=environment, check=True, timeout=60)
    wait_for(lambda: "] ready: " in reason.read_text(), 60, "the second look")
    assert reason.read_text() == "health: [throttle] ready: gpu_health: hot" and looks.read_text() == "look\nlook\n"


def test_no_job_waits_for_the_gate_behind_it():
    text = (FILES / "ironburst-epilog").read_text().splitlines()[-1]
    assert text.startswith("setsid ") and text.endswith("> /dev/null 2>&1 &") and "< /dev/null" in text
