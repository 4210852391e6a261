"""ironburst-power-limit against the lab's stand-in for nvidia-smi (run as a process), and the role's words."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_roles_sentences import GPUS, value

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = REPOSITORY / "playbooks/roles/gpu_power_limit/files/ironburst-power-limit.py"
STAND_IN = """#!{python}
import sys
from pathlib import Path
import power

power.STATE = Path({folder!r}) / "persistenced" / "power.json"
changes = eval((Path({folder!r}) / "changes").read_text())
mode = "Enabled" if power.STATE.parent.is_dir() else "Disabled"
chosen = sys.argv[sys.argv.index("-i") + 1] if "-i" in sys.argv else None
rows = [
    power.shown(n) | {{"index": str(n), "pci.bus_id": f"00000000:0{{n + 1}}:00.0", "persistence_mode": mode}} | changes
    for n in range(2)
    if chosen in (None, str(n))
]
if "-pl" in sys.argv:
    with open({folder!r} + "/set", "a") as file:
        file.write(" ".join(sys.argv[1:]) + "\\n")
    code, text = power.answer(sys.argv[1:], rows, root={root})
    print(text)
    sys.exit(code)
fields = next(a for a in sys.argv if a.startswith("--query-gpu=")).partition("=")[2].split(",")
print("\\n".join(", ".join(row[field] for field in fields) for row in rows))
"""


class Node:
    """Two GPUs; `changes` are fields of both."""

    def __init__(self, folder, changes=None, root=True):
        self.folder = folder
        (folder / "power.py").write_text((REPOSITORY / "lab/packages/stubs/nvidia-smi-power.py").read_text())
        (folder / "changes").write_text(repr(changes or {}))
        (folder / "persistenced").mkdir()
        smi = folder / "nvidia-smi"
        smi.write_text(STAND_IN.format(python=sys.executable, folder=str(folder), root=root))
        smi.chmod(0o755)

    def run(self, *argv):
        environment = os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(argv, capture_output=True, text=True, env=environment)

    def __call__(self, watts, *options):
        (self.folder / "limit").write_text(f"{watts}\n")
        return self.run(sys.executable, str(PROGRAM), "--limit", str(self.folder / "limit"), *options)

    @property
    def touched(self):
        return (self.folder / "set").exists()


def test_a_limit_is_set_once_and_kept(tmp_path):
    node = Node(tmp_path)
    compared = node(500, "--check")
    assert compared.returncode == 3 and not node.touched
    assert compared.stdout.startswith("GPU 0 is limited to 700.00 W, declared are 500 W; GPU 1 is")
    assert node(500).returncode == 0
    assert (node(500, "--check").stdout, node(500, "--check").returncode) == ("as declared\n", 0)
    assert node(500).returncode == 0 and (tmp_path / "set").read_text() == "-i 0 -pl 500\n-i 1 -pl 500\n"


def test_what_somebody_changed_by_hand_is_told_and_taken_back(tmp_path):
    node = Node(tmp_path)
    assert node(500).returncode == 0
    node.run("nvidia-smi", "-i", "1", "-pl", "650")
    assert node(500, "--check").stdout == "GPU 1 is limited to 650.00 W, declared are 500 W\n"
    assert node(500).returncode == 0 and node(500, "--check").returncode == 0


def test_the_limit_goes_with_the_persistence_daemon(tmp_path):
    """As at a boot."""
    node = Node(tmp_path)
    assert node(500).returncode == 0
    (tmp_path / "persistenced/power.json").unlink()
    assert node(500, "--check").returncode == 3 and node(500).returncode == 0


@pytest.mark.parametrize(
    ("watts", "changes", "words"),
    [
        (150, {}, "GPU 0 takes 200 to 700 W, declared is 150 W"),
        (701, {}, "GPU 0 takes 200 to 700 W, declared is 701 W"),
        (300, {"power.min_limit": "[N/A]", "power.max_limit": "[N/A]"}, "has no power limit that can be set"),
        (300, {"power.limit": "[Not Supported]"}, "leave gpu_power_limit_w of these nodes out"),
        (300, {"persistence_mode": "Disabled"}, "persistence mode is off on GPU 0, 1"),
    ],
)
def test_what_no_gpu_takes_is_refused_before_one_is_touched(tmp_path, watts, changes, words):
    node = Node(tmp_path, changes)
    done = node(watts)
    assert done.returncode == 1 and words in done.stderr and not node.touched


def test_a_limit_that_is_not_taken_is_no_success(tmp_path):
    """nvidia-smi warns, and ends with 0, where the driver knows the range and can't set the limit."""
    node = Node(tmp_path)
    (tmp_path / "nvidia-smi").write_text(
        (tmp_path / "nvidia-smi")
        .read_text()
        .replace("power.answer(", "power.answer(*")
        .replace("sys.argv[1:], rows", '[sys.argv[1:], [row | {"power.min_limit": "[N/A]"} for row in rows]]')
    )
    done = node(500)
    assert done.returncode == 1 and "Changing power management limit is not supported" in done.stderr
    assert "GPU 0 is limited to 700.00 W, declared are 500 W" in done.stderr


def test_without_the_right_it_says_so(tmp_path):
    done = Node(tmp_path, root=False)(500)
    assert done.returncode == 1 and "(exit 4)" in done.stderr and "Insufficient Permissions" in done.stderr


def test_a_driver_that_is_not_there_yet_is_waited_for_so_long(tmp_path):
    node = Node(tmp_path)
    (tmp_path / "persistenced").rmdir()
    started = f"(sleep 0.3; mkdir {tmp_path}/persistenced) & exec {sys.executable} {PROGRAM} --limit {tmp_path}/limit"
    (tmp_path / "limit").write_text("500")
    assert node.run("sh", "-c", f"{started} --settle 30").returncode == 0
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n")
    done = node(500, "--settle", "0")
    assert done.returncode == 1 and "(exit 9): NVIDIA-SMI has failed" in done.stderr


def refused(watts, **changes):
    gpus = [GPUS[0] | changes, *GPUS[1:]]
    return value("gpu_power_limit", "gpu_power_limit_refused", {"gpus": gpus}, node_gpu_power_limit_w=watts)


def test_the_role_refuses_before_it_writes_anything():
    assert refused(500) == refused(200) == refused(700) == []
    assert refused(150) == ["its GPUs take 200 to 700 W each, declared are gpu_power_limit_w: 150"]
    assert refused(701) and refused(250, least_w=300.0) and refused(650, most_w=600.0)
    (none,) = refused(500, least_w=None, most_w=None)
    assert none.startswith("1 of 8 GPUs have no power limit that can be set") and "leave gpu_power_limit_w" in none
    assert value("gpu_power_limit", "gpu_power_limit_refused", {"gpus": []}, node_gpu_power_limit_w=9000) == []
