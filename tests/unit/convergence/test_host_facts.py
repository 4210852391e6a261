"""The probe, run here: what it sees of files, links, users, commands; no secret in its answer."""

import json
import os
import subprocess
import sys

import pytest

from ironburst.convergence import host_facts
from ironburst.system import sent_program

SALT = "00" * 32


def ask(**question):
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-"],
        input=sent_program.text(host_facts, {"salt": SALT, **question}),
        capture_output=True,
        text=True,
        check=True,
    )
    return sent_program.answer(host_facts, "a login shell's greeting\n" + done.stdout)


def test_files_as_they_are(tmp_path):
    (tmp_path / "a").write_text("munge-secret")
    (tmp_path / "a").chmod(0o640)
    (tmp_path / "l").symlink_to("a")
    (tmp_path / "d").mkdir(mode=0o755)
    paths = {f"{tmp_path}/{name}": "content" for name in ("a", "l", "d", "gone", "a/below")}
    facts = ask(files={**paths, f"{tmp_path}/d/": "exists"})
    assert facts[f"file {tmp_path}/a"].startswith("file 0640 root:root ") or os.geteuid()
    assert facts[f"file {tmp_path}/l"].endswith(" a")
    assert facts[f"file {tmp_path}/d"].split()[:2] == ["directory", "0755"]
    assert facts[f"file {tmp_path}/gone"] == facts[f"file {tmp_path}/a/below"] == "absent"
    assert facts[f"file {tmp_path}/d/"] == "there"
    assert "munge-secret" not in json.dumps(facts)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text("other"),
        lambda path: path.chmod(0o600),
        lambda path: path.unlink(),
        lambda path: (path.unlink(), path.symlink_to("/etc/hostname")),
        lambda path: (path.unlink(), path.mkdir()),
    ],
)
def test_every_change_of_a_file_shows(tmp_path, change):
    path = tmp_path / "x"
    path.write_text("one")
    path.chmod(0o644)
    question = {"files": {str(path): "content"}}
    before = ask(**question)
    assert ask(**question) == before
    change(path)
    assert ask(**question) != before


def test_a_tree_shows_what_changes_below(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    before = ask(files={str(tmp_path): "tree"})
    (tmp_path / "a" / "b" / "new").write_text("")
    assert ask(files={str(tmp_path): "tree"}) != before


def test_the_same_content_has_another_digest_in_another_folder_of_receipts():
    assert host_facts.Probe(SALT).digest(b"x") != host_facts.Probe("11" * 32).digest(b"x")


def test_people_kernel_and_commands():
    facts = ask(
        users=["root", "nobody-here"],
        groups=["root"],
        commands=[["sh", "-c", "echo a"], ["no-such-command"]],
        sysctls=["kernel.ostype"],
    )
    assert facts["user root"].startswith("0 0 /root") and facts["user nobody-here"] == "absent"
    assert facts["group root"].startswith("0 ") and facts["sysctl kernel.ostype"] == "Linux"
    assert facts["command sh -c echo a"].startswith("0 ") and facts["command no-such-command"] == "not installed"
    assert facts["kernel"].startswith(os.uname().release)


def test_what_cannot_be_found_out_is_said_and_never_silent(monkeypatch):
    monkeypatch.setattr(host_facts, "LIMIT_S", 0.1)
    facts = host_facts.gather(
        {"salt": SALT, "commands": [["sleep", "5"]], "services": {"x.service": ["active"]}, "packages": []}
    )
    assert facts["command sleep 5"].startswith("? TimeoutExpired")
    assert facts["service x.service"]


def test_dpkg_versions_and_holds(tmp_path, monkeypatch):
    status = (
        "Package: slurmd\nStatus: hold ok installed\nVersion: 24.11.5-4\nDescription: x\n y\n\n"
        "Package: slurmd-dev\nStatus: install ok installed\nVersion: 1\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 2\n"
    )
    real = open
    (tmp_path / "status").write_text(status)
    monkeypatch.setitem(
        host_facts.__dict__,
        "open",
        lambda path, *a, **k: real(tmp_path / "status" if "dpkg" in str(path) else path, *a, **k),
    )
    assert host_facts.dpkg(["slurmd", "slurmd-dev", "gone", "never"]) == {
        "slurmd": "24.11.5-4 hold",
        "slurmd-dev": "1",
        "gone": "absent",
        "never": "absent",
    }


def test_rpm_versions_by_name_or_spec(monkeypatch):
    rows = "slurm-slurmd 24.11.5 1.el9.x86_64\nnvidia-open 580.95.05 1.el9.noarch\n"
    monkeypatch.setattr(host_facts, "run", lambda argv: rows)
    versions = host_facts.rpm(["slurm-slurmd", "nvidia-open-580.95.*", "nvidia-open-590.*"])
    assert versions == {
        "slurm-slurmd": "24.11.5-1.el9.x86_64",
        "nvidia-open-580.95.*": "580.95.05-1.el9.noarch",
        "nvidia-open-590.*": "absent",
    }


def test_units_and_their_drop_ins_are_read_from_the_disk(tmp_path, monkeypatch):
    (tmp_path / "slurmd.service.d").mkdir()
    (tmp_path / "slurmd.service").write_text("[Service]\n")
    monkeypatch.setattr(host_facts, "UNIT_FOLDERS", (str(tmp_path), str(tmp_path)))
    shown = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
    monkeypatch.setattr(host_facts, "run", lambda argv: shown)
    probe = host_facts.Probe(SALT)
    before = probe.services({"slurmd.service": ["enabled", "active"]}, 0)
    assert before["slurmd.service"].startswith(f"enabled active {tmp_path}/slurmd.service=")
    assert before["slurmd.service"].count("=") == 1
    (tmp_path / "slurmd.service.d" / "override.conf").write_text("[Service]\nNice=1\n")
    assert probe.services({"slurmd.service": ["enabled", "active"]}, 0) != before
    monkeypatch.setattr(host_facts, "run", lambda argv: "nothing that is known")
    assert probe.services({"a.service": ["active"], "b.service": ["active"]}, 0)["a.service"].startswith("?")


def test_two_answers_or_none_are_no_answer():
    with pytest.raises(ValueError, match="0 answers"):
        sent_program.answer(host_facts, "python3: command not found")
