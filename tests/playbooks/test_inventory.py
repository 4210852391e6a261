"""The inventory plugin: groups and variables of a document, and what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sample import lab_document, publish

REPOSITORY = Path(__file__).resolve().parents[2]
ANSIBLE_INVENTORY = Path(sys.executable).with_name("ansible-inventory")


def ansible_inventory(document: Path | None, environment: str = "lab", *arguments: str) -> subprocess.CompletedProcess:
    env = {name: value for name, value in os.environ.items() if not name.startswith("IRONBURST_")}
    if document:
        env["IRONBURST_DOCUMENT"] = str(document)
    command = [str(ANSIBLE_INVENTORY), "-i", f"inventory/{environment}", *(arguments or ("--list",))]
    return subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, timeout=60)


def decoded(text: str) -> dict:
    """The listing, without the marks that ansible puts on text that is no template."""
    return json.loads(
        text, object_hook=lambda value: value["__ansible_unsafe"] if set(value) == {"__ansible_unsafe"} else value
    )


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    done = ansible_inventory(publish(tmp_path_factory.mktemp("document") / "lab.json"))
    assert done.returncode == 0, done.stderr
    return decoded(done.stdout)


def test_group_name_is_role_name(listed):
    for host in lab_document().hosts:
        for role in host.roles:
            assert host.name in listed[role]["hosts"]
    assert listed["slurm_head"]["hosts"] == ["head"]
    assert "head" not in listed["slurm_node"]["hosts"]
    assert sorted(listed["slurm_node"]["hosts"]) == ["dgx01", "dgx02", "fixed-1"]


def test_what_is_not_managed_is_nowhere_but_in_slurm_conf(tmp_path):
    document = lab_document()
    hosts = [host.model_copy(update={"managed": host.name != "dgx02"}) for host in document.hosts]
    path = tmp_path / "lab.json"
    path.write_text(document.model_copy(update={"hosts": hosts, "serial": 1}).model_dump_json())
    done = ansible_inventory(path)
    assert done.returncode == 0, done.stderr
    listing = decoded(done.stdout)
    known = listing["_meta"]["hostvars"]
    assert sorted(known) == ["dgx01", "fixed-1", "head"]
    assert not any("dgx02" in group.get("hosts", []) for group in listing.values())
    assert "dgx02" in [host["name"] for host in known["head"]["cluster_hosts"]], "the head tells Slurm of it"


def test_groups_of_kind_place_and_partition(listed):
    assert listed["cloud"]["hosts"] == ["fixed-1"]
    assert sorted(listed["bare_metal"]["hosts"]) == ["dgx01", "dgx02", "head"]
    assert (
        sorted(listed["hall_hall_a"]["hosts"])
        == sorted(listed["rack_hall_a_r01"]["hosts"])
        == ["dgx01", "dgx02", "head"]
    )
    assert sorted(listed["partition_home"]["hosts"]) == ["dgx01", "dgx02"]
    assert listed["partition_fixed"]["hosts"] == ["fixed-1"]


def test_a_stock_image_s_own_user_becomes_root(listed):
    users = {name: listed["_meta"]["hostvars"][name] for name in ("dgx01", "fixed-1")}
    assert {name: (its["ansible_user"], its["ansible_become"]) for name, its in users.items()} == {
        "dgx01": ("root", False),
        "fixed-1": ("admin", True),
    }


def test_sudos_password_is_in_no_listing(tmp_path):
    declared = {"ssh": {"user": "ops", "sudo_password": f"file:{tmp_path / 'word'}"}}
    (tmp_path / "word").write_text("correct horse\n")
    done = ansible_inventory(publish(tmp_path / "lab.json", declare=declared))
    assert done.returncode == 0 and "correct horse" not in done.stdout
    hosts = json.loads(done.stdout)["_meta"]["hostvars"]
    assert "ansible_become_password" in hosts["dgx01"] and "ansible_become_password" not in hosts["fixed-1"]
    command = [ANSIBLE_INVENTORY.with_name("ansible"), "dgx01", "-i", "inventory/lab"]
    names = "ansible_user, ansible_become, ansible_become_password"
    said = subprocess.run(
        [*command, "-c", "local", "-m", "debug", "-a", f"msg={{{{ [{names}] | join(' ') }}}}"],
        cwd=REPOSITORY,
        env={**os.environ, "IRONBURST_DOCUMENT": str(tmp_path / "lab.json")},
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    assert "ops True correct horse" in said


def test_host_variables(listed):
    dgx = listed["_meta"]["hostvars"]["dgx01"]
    assert (dgx["ansible_host"], dgx["ansible_user"], dgx["node_serial"]) == ("10.78.0.11", "root", "LAB-DGX01")
    gpu = {"model": "H100 SXM5 80GB", "count": 8, "memory_gb": 80.0, "nvlink": True, "pcie_width": 0}
    assert dgx["node_gpu"] == gpu
    assert (dgx["node_fabric"], dgx["node_fabric_links"]) == ("infiniband", 8)
    assert dgx["cluster_software"]["driver"] == "580.95.05"
    fixed = listed["_meta"]["hostvars"]["fixed-1"]
    assert (fixed["ansible_host"], fixed["node_fabric"], fixed["node_fabric_links"]) == ("10.90.0.7", "efa", 32)


def test_what_the_version_lock_gives_to_hosts(listed):
    hosts = listed["_meta"]["hostvars"]
    dgx, head = hosts["dgx01"], hosts["head"]
    assert (dgx["node_os"], dgx["node_mig"], dgx["node_scratch"]) == ("debian13", None, None)
    assert dgx["node_software"]["packages"]["nvidia_driver"] == ["nvidia-open=580.95.05-*"]
    assert dgx["node_software"]["packages"].keys() == head["node_software"]["packages"].keys()
    assert head["node_software"]["driver"] is None and head["node_software"]["packages"]["slurm_head"]
    assert (dgx["cluster_filesystem"], dgx["cluster_subnet_managers"], dgx["cluster_data_science"]) == (None, {}, [])


def test_no_secret_only_its_reference(listed):
    text = json.dumps(listed)
    assert listed["_meta"]["hostvars"]["head"]["cluster_scheduler"]["munge_key"] == "env:LAB_MUNGE_KEY"
    assert "lab/bmc.password" not in text


def test_without_a_document_says_what_to_do():
    done = ansible_inventory(None)
    assert done.returncode != 0
    assert "set IRONBURST_DOCUMENT to the file that `ironburst publish` wrote" in " ".join(done.stderr.split())


def test_a_document_that_is_not_there(tmp_path):
    done = ansible_inventory(tmp_path / "nothing.json")
    assert done.returncode != 0
    assert "there is no ClusterDocument at" in " ".join(done.stderr.split())


def test_a_document_of_an_unknown_version_is_refused(tmp_path):
    path = publish(tmp_path / "lab.json")
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"version": 99}))
    done = ansible_inventory(path)
    assert done.returncode != 0
    assert "has version 99; this ironburst reads versions 1, 2, 3" in " ".join(done.stderr.split())


def test_unknown_fields_are_ignored(tmp_path):
    path = publish(tmp_path / "lab.json")
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"a_field_of_tomorrow": 1}))
    assert ansible_inventory(path).returncode == 0


@pytest.mark.parametrize("environment", ["staging", "prod"])
def test_the_last_good_copy_serves_while_the_document_is_gone(tmp_path, monkeypatch, environment):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = publish(tmp_path / "document.json")
    assert ansible_inventory(path, environment).returncode == 0
    path.unlink()
    done = ansible_inventory(path, environment)
    assert done.returncode == 0, done.stderr
    assert "dgx01" in decoded(done.stdout)["_meta"]["hostvars"]
    # the versions beat group_vars, for they are host variables
    assert decoded(done.stdout)["_meta"]["hostvars"]["dgx01"]["cluster_software"]["slurm"] == "24.11"


def test_the_plugin_finds_the_repository_without_an_installed_package():
    plugin = REPOSITORY / "playbooks/plugins/inventory/stack_document.py"
    code = f"import runpy, sys; runpy.run_path({str(plugin)!r}); print(sys.path[0])"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd="/", capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == str(REPOSITORY), done.stderr
