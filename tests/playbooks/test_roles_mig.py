"""ironburst-mig against the lab's stand-in for nvidia-smi (tests run it as a process), and its parsers on the tool's
layout of lines.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import PLAYBOOKS, load

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = REPOSITORY / "playbooks/roles/mig/files/ironburst-mig.py"
# Written after the columns of `nvidia-smi mig -lgi` in NVIDIA's MIG guide, not captured
LGI = """+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   0  MIG 1g.10gb         19       13          6:1     |
+-------------------------------------------------------+
|   0  MIG 1g.10gb+me      20       14          5:1     |
+-------------------------------------------------------+
|   3  MIG 3g.40gb          9        2          0:4     |
+-------------------------------------------------------+
"""


@pytest.fixture
def program():
    return load(PROGRAM.relative_to(PLAYBOOKS))


@pytest.fixture
def node(tmp_path):
    """A folder with a stand-in for nvidia-smi of 2 GPUs; call it with a layout to run the program."""
    (tmp_path / "mig.py").write_text((REPOSITORY / "lab/packages/stubs/nvidia-smi-mig.py").read_text())
    smi = tmp_path / "nvidia-smi"
    smi.write_text(
        f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\nimport mig\n"
        f"mig.STATE = Path({str(tmp_path / 'state.json')!r})\n"
        "mig.in_use = lambda index: False  # the processes of this machine are none of the node\n"
        "if '--query-gpu=index,mig.mode.current,mig.mode.pending' in sys.argv:\n"
        "    print('\\n'.join(f'{i}, {mig.mode(i)}, {mig.mode(i)}' for i in range(2)))\n    sys.exit(0)\n"
        "code, text = mig.answer(sys.argv[1:], 2)\nprint(text)\nsys.exit(code)\n"
    )
    smi.chmod(0o755)

    def run(layout, *options):
        (tmp_path / "layout.json").write_text(json.dumps(layout))
        command = [sys.executable, str(PROGRAM), "--layout", str(tmp_path / "layout.json"), *options]
        return subprocess.run(
            command, capture_output=True, text=True, env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        )

    return run


def test_a_layout_is_made_once_and_changed(node):
    layout = {"0": {"1g.10gb": 2, "3g.40gb": 1}, "1": {}}
    assert node(layout, "--check").returncode == 3
    made = node(layout)
    assert made.returncode == 0 and "GPU 0 has no MIG, declared is 2 × 1g.10gb + 1 × 3g.40gb" in made.stdout
    assert node(layout, "--check").stdout == "as declared\n" and node(layout).stdout == "as declared\n"
    repartitioned = {"0": {}, "1": {"7g.80gb": 1}}
    assert node(repartitioned, "--check").returncode == 3
    assert node(repartitioned).returncode == 0 and node(repartitioned, "--check").returncode == 0


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (
            {"0": {"1g.5gb": 7}},
            "GPU 0 has no MIG profile 1g.5gb; it has 1g.10gb, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb",
        ),
        ({"0": {"3g.40gb": 3}}, "GPU 0 takes 2 × 3g.40gb at most, declared are 3"),
        ({"0": {"3g.40gb": 2, "1g.10gb": 2}}, "Insufficient Resources"),
        ({"5": {}}, "the layout names GPU 5, this node has GPUs 0, 1"),
    ],
)
def test_what_can_not_be_made_is_said(node, layout, words):
    done = node(layout)
    assert done.returncode == 1 and words in done.stderr, done


def test_a_tool_that_is_missing_or_says_something_else_is_no_success(node, tmp_path):
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'Failed to initialize NVML: Unknown Error'\n")
    done = node({"0": {}}, "--check")
    assert done.returncode == 1 and "does not tell the MIG mode" in done.stderr


def test_instances(program):
    assert {gpu: dict(found) for gpu, found in program.instances(LGI).items()} == {
        0: {"1g.10gb": 1, "1g.10gb+me": 1},
        3: {"3g.40gb": 1},
    }
    assert program.instances("") == {}
    with pytest.raises(program.Failed, match="not understood"):
        program.instances("something else")
