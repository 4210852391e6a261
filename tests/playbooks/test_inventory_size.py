"""No host's variables grow with the hosts, but one's; and what looked the others up there finds what it needs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from sample import lab_document
from test_inventory import ansible_inventory, decoded

from benchmarks.hosts import observed
from ironburst import document as documents
from ironburst.config import load
from ironburst.document import build, of_stack

REPOSITORY = Path(__file__).resolve().parents[2]
WHOLE = {"cluster_hosts", "cluster_pools", "cluster_shares", "cluster_users"}


def of_size(path, count):
    """A published document of the lab's head and so many nodes."""
    document = lab_document()
    model = document.host("dgx01")
    nodes = [model.model_copy(update={"name": f"n{n:04}", "rack": f"r{n // 4:03}"}) for n in range(count)]
    documents.publish(document.model_copy(update={"hosts": [document.host("head"), *nodes]}), path)
    return path


def kubernetes(path):
    config = load.load(REPOSITORY / "stacks/Pulumi.lab-kubernetes.yaml")
    documents.publish(build.build(config, observed(config)), path)
    return path


def listing(document):
    done = ansible_inventory(document)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_listing_grows_as_the_hosts_do(tmp_path):
    """With the square of the hosts it has 10 times the bytes for 4 times as many."""
    few, many = (listing(of_size(tmp_path / f"{count}.json", count)) for count in (6, 24))
    assert 3 < len(many) / len(few) < 5


def test_without_a_managed_host_an_image_can_be_baked_all_the_same(tmp_path):
    """Beside somebody else's Slurm, or with rented nodes only: no host is there to keep the pools."""
    path = tmp_path / "document.json"
    documents.publish(of_stack.document(REPOSITORY / "stacks/Pulumi.lab-beside.yaml"), path)
    assert "localhost" not in decoded(listing(path))["_meta"]["hostvars"], "`hosts: all` would converge this machine"
    program = Path(sys.executable).with_name("ansible-playbook")
    given = ("image_address=192.0.2.1", "image_user=admin", "image_known_hosts=none", "image_pool=p6")
    done = subprocess.run(
        [program, "-i", "inventory/lab", "playbooks/image.yml", *(word for each in given for word in ("-e", each))],
        cwd=REPOSITORY,
        env={**os.environ, "IRONBURST_DOCUMENT": str(path), "ANSIBLE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert "the document's pools are p5." in " ".join(done.stdout.split()), done.stdout + done.stderr


@pytest.mark.parametrize("make", [lambda path: of_size(path, 3), kubernetes])
def test_one_host_keeps_the_whole(tmp_path, make):
    path = make(tmp_path / "document.json")
    document = json.loads(path.read_text())
    hosts = decoded(listing(path))["_meta"]["hostvars"]
    keeper = document["scheduler"]["head"] or document["hosts"][0]["name"]
    assert {name for name, its in hosts.items() if WHOLE & its.keys()} == {keeper}
    assert {its["cluster_keeper"] for its in hosts.values()} == {keeper}
    for key in WHOLE:
        assert hosts[keeper][key] == document[key.removeprefix("cluster_")]


def test_nodes_of_slurm_know_the_heads_release(tmp_path):
    hosts = decoded(listing(of_size(tmp_path / "document.json", 2)))["_meta"]["hostvars"]
    assert hosts["n0001"]["node_head_slurm"] == "24.11" and "node_head_slurm" not in hosts["head"]


# ---- playbooks that look at others, with the real Ansible and no host


LOCAL = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": sys.executable}


def plays_of(playbook):
    return yaml.safe_load((REPOSITORY / "playbooks" / playbook).read_text())


def showing(path, hosts, shown):
    """A play that writes what these variables are, as JSON."""
    copy = {"ansible.builtin.copy": {"dest": str(path), "content": "{{ shown | to_json }}"}, "run_once": True}
    return {"hosts": hosts, "gather_facts": False, "vars": {"shown": shown}, "tasks": [copy]}


def run(tmp_path, plays, document, *arguments):
    path = tmp_path / "play.yml"
    path.write_text(yaml.safe_dump(plays))
    shutil.copy(REPOSITORY / "playbooks/site.yml", tmp_path)  # read beside the playbook
    program = Path(sys.executable).with_name("ansible-playbook")
    return subprocess.run(
        [str(program), "-i", "inventory/lab", str(path), *arguments],
        cwd=REPOSITORY,
        env={"IRONBURST_DOCUMENT": str(document), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, ""),
        ({"node_mig": [{"gpus": [0], "profiles": {"1g.10gb": 7}}]}, "node_mig is set for dgx01"),
        ({"node_os": "debian12", "node_software": {"slurm": "25.05"}}, "node_software, node_os are set for dgx01"),
    ],
)
def test_validate_sees_what_an_inventory_sets_otherwise(tmp_path, changed, told):
    document = tmp_path / "document.json"
    documents.publish(lab_document(), document)
    first = plays_of("validate.yml")[:1]
    done = run(tmp_path, first, document, "--limit", "dgx01", "-e", json.dumps(changed))
    output = " ".join((done.stdout + done.stderr).split())
    assert (done.returncode == 0) == (not told), output
    assert told in output


@pytest.mark.parametrize("make", [lambda path: documents.publish(lab_document(), path), kubernetes])
def test_an_image_has_what_its_pool_declares(tmp_path, make):
    document = tmp_path / "document.json"
    make(document)
    declared = json.loads(document.read_text())
    pool = declared["pools"][0]
    given = {"image_pool": pool["name"], "image_address": "10.0.0.9", "image_user": "admin", "image_known_hosts": "f"}
    shown = {"fixed": "{{ cluster_software }}", "software": "{{ node_software }}", "groups": "{{ group_names }}"}
    plays = [plays_of("image.yml")[0], showing(tmp_path / "shown", "image", shown)]
    done = run(tmp_path, plays, document, "-e", json.dumps(given | LOCAL))
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads((tmp_path / "shown").read_text())
    assert (seen["fixed"], seen["software"]) == (declared["software"], pool["software"])
    assert set(seen["groups"]) == {"image", *pool["roles"]}


def test_a_stress_test_pairs_the_nodes_with_infiniband(tmp_path):
    documents.publish(lab_document(), tmp_path / "document.json")
    stress = plays_of("fabric.yml")[1]
    look = showing(
        tmp_path / "shown", stress["hosts"], {"nodes": "{{ fabric_nodes }}", "pairs": "{{ fabric_partner }}"}
    )
    look["vars"] |= stress["vars"]
    done = run(tmp_path, [look], tmp_path / "document.json", "-e", json.dumps(LOCAL | {"fabric_shift": 1}))
    assert done.returncode == 0, done.stdout + done.stderr
    shown = json.loads((tmp_path / "shown").read_text())
    assert shown == {"nodes": ["dgx01", "dgx02"], "pairs": {"dgx02": "dgx01"}}  # not the cloud's, which has EFA
