"""The locked lists of the frameworks: exact, with hashes, of the node's CUDA; and the program that builds an
environment from one.
"""

import os
import re
import subprocess

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from programs import PLAYBOOKS, load

ROLE = PLAYBOOKS / "roles/data_science"
LISTS = yaml.safe_load((ROLE / "vars/main.yml").read_text())["data_science_lists"]
choose = load("plugins/filter/data_science.py").data_science_lists_of
FILES = sorted((ROLE / "files").glob("*.txt"))


def chosen(names, cuda="13", own=None):
    return choose(names, LISTS, cuda, own or {}, str(ROLE / "files"))


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_a_list_is_exact_and_has_hashes_and_names_no_index(file):
    text = file.read_text()
    entries = re.split(r"\n(?=[A-Za-z0-9])", text.split("\n", 1)[1].strip())
    assert len(entries) > 20
    for entry in entries:
        assert re.match(r"[A-Za-z0-9._-]+(\[\S+\])?==\S+", entry), entry[:80]
        assert "--hash=sha256:" in entry, entry[:80]
    assert "://" not in text and "index" not in text.split("\n", 1)[1]
    wanted = [line.split("==")[0].split("[")[0] for line in file.with_suffix(".in").read_text().splitlines()]
    assert all(re.search(rf"^{name}(\[\S+\])?==", text, re.MULTILINE) for name in wanted)


@pytest.mark.parametrize("file", [path for path in FILES if "cuda" in path.stem], ids=lambda path: path.stem)
def test_a_list_brings_the_cuda_of_its_name(file):
    major = re.search(r"cuda(\d+)", file.stem)[1]
    others = {"12", "13"} - {major}
    names = re.findall(r"^(nvidia-\S+?)==(\d+)", file.read_text(), re.MULTILINE)
    assert names and not [name for name, _ in names if name.endswith(tuple(f"-cu{other}" for other in others))]
    assert {version for name, version in names if "cuda-runtime" in name} == {major}


def test_the_list_follows_the_cuda_of_the_node():
    twelve, thirteen = chosen(["pytorch"], "12")[0], chosen(["pytorch"], "13")[0]
    assert twelve["list"].endswith("pytorch-cuda12.txt") and thirteen["list"].endswith("pytorch-cuda13.txt")
    assert re.fullmatch(r"pytorch-[\d.]+-cuda13-[0-9a-f]{8}", thirteen["key"])
    assert thirteen["version"].endswith("-cuda13")
    assert chosen(["jupyter"], "")[0]["version"].count("-") == 0


def test_a_framework_that_is_not_built_for_the_node_is_refused():
    with pytest.raises(AnsibleFilterError, match="tensorflow is built for CUDA 12, the node has 13"):
        chosen(["tensorflow"])
    with pytest.raises(AnsibleFilterError, match="'caffe': known are jax, jupyter, pytorch, tensorflow"):
        chosen(["caffe"])


@pytest.mark.parametrize(
    "text", ["torch>=2\n", "torch==2.15.0\n", "torch\n    --hash=sha256:00\n", "numpy==1 --hash=sha256:00\n", ""]
)
def test_a_list_that_is_not_locked_is_refused(tmp_path, text):
    own = tmp_path / "own.txt"
    own.write_text(text)
    with pytest.raises(AnsibleFilterError, match=r"is not locked|has no torch"):
        chosen(["pytorch"], own={"pytorch": str(own)})


def test_a_changed_list_is_a_new_environment(tmp_path):
    own = tmp_path / "own.txt"
    keys = set()
    for digest in ("00", "11"):
        own.write_text(f"torch==2.15.0 \\\n    --hash=sha256:{digest}\n")
        keys.add(chosen(["pytorch"], own={"pytorch": str(own)})[0]["key"])
    assert len(keys) == 2


def build(tmp_path, python):
    program = ROLE / "files/ironburst-environment"
    argv = ["sh", str(program), "key", str(tmp_path), str(python), "http://index.invalid/simple", "--cert", "x"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, env=os.environ)


def test_an_interrupted_build_is_built_anew(tmp_path):
    python = tmp_path / "python"  # makes a venv whose pip writes down how it was called, and fails while `bad` is there
    python.write_text(
        '#!/bin/sh\nmkdir -p "$3/bin"\n'
        f'printf \'#!/bin/sh\\necho "$@" > {tmp_path}/called\\ntest ! -e {tmp_path}/bad\\n\' > "$3/bin/pip"\n'
        'chmod +x "$3/bin/pip"\n'
    )
    python.chmod(0o755)
    env = tmp_path / "envs/key"
    (tmp_path / "bad").touch()
    assert build(tmp_path, python).returncode == 1 and not (env / ".complete").exists()
    (env / "rest").touch()
    (tmp_path / "bad").unlink()
    assert build(tmp_path, python).stdout == "built\n"
    assert (env / ".complete").exists() and not (env / "rest").exists()
    called = (tmp_path / "called").read_text()
    for word in (
        "--require-hashes",
        "--only-binary :all:",
        "--index-url http://index.invalid/simple",
        "--cert x",
        "lists/key.txt",
    ):
        assert word in called
    assert build(tmp_path, python).stdout == ""  # complete: nothing to do
