"""The module api_version against a server with a certificate; against a real API server:
test_kubelet_program_live.py.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import templated
from programs import PLAYBOOKS, load

from lab.kubernetes import authority

api_version = load("plugins/modules/api_version.py")


@pytest.fixture
def files(tmp_path):
    files = authority.files("127.0.0.1")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return files


@pytest.fixture
def serve(tmp_path, files):
    started = []

    def server(status, version):
        command = [sys.executable, "-m", "tests.version_server", tmp_path, "127.0.0.1", "0", str(status), version]
        started.append(
            subprocess.Popen(command, cwd=PLAYBOOKS.parent, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        )
        return f"https://127.0.0.1:{int(started[-1].stdout.readline())}"

    yield server
    for each in started:
        each.kill()
        each.wait()
        each.stdout.close()


@pytest.mark.parametrize(("status", "version"), [(200, "v1.36.3"), (401, ""), (403, "")])
def test_its_version_or_nothing_where_strangers_are_not_told(serve, files, tmp_path, status, version):
    assert api_version.version(serve(status, version), files["ca.crt"], 10, str(tmp_path / "none")) == version


def test_a_node_of_a_cluster_whose_authority_only_the_head_has_knows_it_since_it_joined(serve, files, tmp_path):
    server, none = serve(200, "v1.36.3"), str(tmp_path / "none")
    assert api_version.version(server, "", 10, none, authority=str(tmp_path / "ca.crt")) == "v1.36.3"
    with pytest.raises(api_version.Failed, match="authority can't be used"):
        api_version.version(server, "", 10, none, authority=none)


@pytest.mark.parametrize(
    ("status", "version", "ca", "words"),
    [
        (500, "x", None, "answers 500 for /version"),
        (200, "", None, "doesn't tell its version: "),
        (200, "v1.36.3", "other", "certificate verify failed"),
        (200, "v1.36.3", "no certificate", "authority can't be used"),
    ],
)
def test_what_is_no_answer_is_said_in_a_sentence(serve, files, tmp_path, status, version, ca, words):
    given = {None: files["ca.crt"], "other": authority.files("127.0.0.1")["ca.crt"]}.get(ca, ca)
    with pytest.raises(api_version.Failed) as error:
        api_version.version(serve(status, version), given, 10, str(tmp_path / "none"))
    assert words in str(error.value) and "\n" not in str(error.value)


def test_nobody_there(files, tmp_path):
    with pytest.raises(api_version.Failed, match=r"doesn't tell its version: .*refused"):
        api_version.version("https://127.0.0.1:1", files["ca.crt"], 10, str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("server", "kubelet", "skew"),
    [("v1.36.3", "1.36", 0), ("v1.36.3-eks-1-2", "1.33.9", 3), ("v1.37.2", "1.33", 4), ("v1.36.0", "1.37.2", -1)],
)
def test_how_far_a_kubelet_is_behind(server, kubelet, skew):
    known = {"kubernetes_node_api": {"version": server}, "node_software": {"kubernetes": kubelet}}
    assert templated.value("kubernetes_node", "kubernetes_node_skew", known) == skew


@pytest.mark.parametrize(("kubelet", "refused"), [("own", True), ("", False)])
def test_a_node_that_is_still_to_join_may_come_before_its_control_plane(files, tmp_path, kubelet, refused):
    """The role's preflight, on this machine, where nobody answers."""
    variables = {
        "cluster_scheduler": {"api_server": "https://127.0.0.1:1", "ca": files["ca.crt"]},
        "node_software": {"kubernetes": "1.36", "packages": {}},
        "kubernetes_node_bootstrap_token": "env:X",
    }
    seen = {"set_fact": {"node_seen": {"kubelet": kubelet}, "cacheable": True}}
    role = {"include_role": {"name": str(PLAYBOOKS / "roles/kubernetes_node"), "tasks_from": "preflight"}}
    play = {"hosts": "gpu01", "connection": "local", "gather_facts": False, "vars": variables, "tasks": [seen, role]}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    done = subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), "-i", "gpu01,", tmp_path / "play.yml"],
        env=os.environ | {"ANSIBLE_PYTHON_INTERPRETER": sys.executable},
        cwd=PLAYBOOKS.parent,
        capture_output=True,
        text=True,
    )
    said = " ".join((done.stdout + done.stderr).split())
    assert (done.returncode != 0) is refused, said
    assert "the API server https://127.0.0.1:1 doesn't tell its version: " in said or not refused
