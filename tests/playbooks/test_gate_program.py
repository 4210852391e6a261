"""The gate's program with tools of its own: what it writes, and that a tool that hangs does not hang the gate."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
GATE = REPOSITORY / "playbooks/roles/node_health/files/ironburst-gate.py"
PROLOG = REPOSITORY / "playbooks/roles/node_health/files/ironburst-prolog"
SMI = "".join(f"echo '{n}, NVIDIA H100 80GB HBM3, 580.95.05, 81559'\n" for n in range(8))
LSPCI = "".join(f"echo '0000:{0x18 + 16 * n:02x}:00.0 0302: 10de:2330 (rev a1)'\n" for n in range(8))
SETTINGS = {
    "driver": "580.95.05", "gpu_model": "H100 SXM5 80GB", "gpu_count": 8, "fabric": "infiniband", "fabric_links": 1, "mounts": ["/shared"],
}  # fmt: skip


class Node:
    """A root folder with what the gate reads, and its tools."""

    def __init__(self, root: Path):
        self.root = root
        self.stamp = root / "run/ironburst/gate.ok"
        self.put("etc/ironburst/gate.json", json.dumps(SETTINGS))
        self.put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n")
        self.put("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n")
        self.put("proc/self/mountinfo", "22 1 0:21 / / rw - overlay o rw\n23 22 0:22 / /shared rw - nfs4 s rw\n")
        self.tool("lspci", LSPCI)
        self.tool("nvidia-smi", SMI)

    def put(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def tool(self, name: str, script: str) -> None:
        self.put(f"bin/{name}", f"#!/bin/sh\n{script}").chmod(0o755)

    def gate(self, *arguments: str) -> tuple[int, dict]:
        env = {
            "PATH": f"{self.root}/bin:/bin", "IRONBURST_GATE_ROOT": str(self.root), "IRONBURST_GATE_TOOL_TIMEOUT": "1",
            "IRONBURST_GATE_LIB": str(REPOSITORY / "ironburst/health"),
        }  # fmt: skip
        command = [sys.executable, str(GATE), "--json", *arguments]
        done = subprocess.run(command, env=os.environ | env, capture_output=True, text=True, timeout=30)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def texts(report):
    return " ".join(finding["text"] for finding in report["findings"] if not finding["passed"])


def test_a_good_node_gets_its_stamp(node):
    assert node.gate() == (0, {"passed": True, "findings": json.loads((node.root / "run/ironburst/gate.json").read_text())["findings"]})
    assert node.stamp.exists()


def test_a_node_that_fails_later_loses_its_stamp(node):
    node.gate()
    node.put("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n")
    status, report = node.gate()
    assert status == 1 and "mlx5_0/1 is 1: DOWN" in texts(report)
    assert not node.stamp.exists()


def test_a_hanging_tool_fails_the_gate_in_time(node):
    node.tool("nvidia-smi", "exec sleep 1000")
    status, report = node.gate()
    assert status == 1 and "nvidia-smi did not answer in 1 s" in texts(report)
    assert not node.stamp.exists()


def test_a_missing_tool_fails_the_gate(node, monkeypatch):
    (node.root / "bin/nvidia-smi").unlink()
    status, report = node.gate()
    assert status == 1 and "nvidia-smi is not installed" in texts(report)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", json.dumps(SETTINGS | {"gpu_count": 0})])
def test_damaged_settings_fail_the_gate(node, text):
    node.gate()
    node.put("etc/ironburst/gate.json", text)
    status, report = node.gate()
    assert status == 1 and report["findings"][0]["check"] == "settings"
    assert not node.stamp.exists()


def test_no_infiniband_in_sysfs_fails_the_gate(node):
    (node.root / "sys/class/infiniband/mlx5_0").rename(node.root / "elsewhere")
    status, report = node.gate()
    assert status == 1 and "0 of 1 infiniband links" in texts(report)


def test_settling_waits_for_a_link_that_trains(node):
    state = node.put("sys/class/infiniband/mlx5_0/ports/1/state", "2: INIT\n")
    # the link comes up while the gate looks: its second look at the GPUs finds the file changed
    node.tool("lspci", LSPCI + f'[ -f {node.root}/once ] && echo "4: ACTIVE" > {state}\n: > {node.root}/once\n')
    assert node.gate()[0] == 1
    (node.root / "once").unlink()
    state.write_text("2: INIT\n")
    assert node.gate("--settle", "20")[0] == 0
    assert node.stamp.exists()


def test_the_prolog_reads_the_stamp():
    assert "test -f /run/ironburst/gate.ok" in PROLOG.read_text().splitlines()
