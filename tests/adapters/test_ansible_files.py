"""What ansible-runner writes on the way: nothing of the environment, which env: references are resolved from."""

import tempfile
from pathlib import Path

from ironburst.adapters.ansible import Ansible
from tests.planted import Plants

PLAY = "- hosts: all\n  gather_facts: false\n  tasks:\n    - debug: {msg: here}\n"


def test_no_file_of_a_run_holds_a_secret_of_the_environment(tmp_path, monkeypatch):
    plants, seen = Plants(), []
    monkeypatch.setenv("BMC_PASSWORD", plants.plant("BMC password"))
    monkeypatch.setenv("LONG", "x" * 100_000)  # more than a pipe holds
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "run"))
    (tmp_path / "run").mkdir()
    (tmp_path / "play.yml").write_text(PLAY)
    (tmp_path / "hosts.yml").write_text("all: {hosts: {here: {ansible_connection: local}}}\n")

    def look(event):
        seen.append([path.name for path in (tmp_path / "run").rglob("*")])
        seen.append(plants.in_folder(tmp_path / "run"))

    ran = Ansible(tmp_path / "hosts.yml", Path("unused")).play(str(tmp_path / "play.yml"), on_event=look)
    assert ran.hosts["here"].ok == 1, ran
    names, found = seen
    assert "job_events" in names and found == []
