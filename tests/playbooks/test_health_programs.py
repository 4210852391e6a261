"""HealthCheckProgram and Epilog, run with a gate and Slurm's commands that write down how they were called."""

import subprocess
from pathlib import Path

import pytest

FILES = Path(__file__).resolve().parents[2] / "playbooks/roles/node_health/files"


@pytest.fixture
def node(tmp_path):
    """Runs ironburst-health with this answer of the gate and this state of the node: the calls of scontrol."""

    def run(gate, state="idle", program="ironburst-health", status=None):
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        code = int("FAILED" in gate) if status is None else status
        for name, text in {
            "ironburst-gate": f"cat <<'EOF'\n{gate}\nEOF\nexit {code}",
            "sinfo": f"echo '{state}'",
            "scontrol": f'printf "%s\\n" "$@" >> {calls}',
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


def test_no_job_waits_for_the_gate_behind_it():
    text = (FILES / "ironburst-epilog").read_text().splitlines()[-1]
    assert text.startswith("setsid ") and text.endswith("> /dev/null 2>&1 &") and "< /dev/null" in text
