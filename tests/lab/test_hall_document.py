"""A hall without a cloud and without Pulumi: `ironburst lock`, `document | publish`, site.yml; then a node and a login
node that the document doesn't manage, from somebody's own inventory, in the same Slurm.
"""

import json
import os

import pytest
import yaml

from lab import names
from lab.demo.inside import Inside
from lab.system import wait_for
from tests import sites
from tests.lab.static_inventory import Static, failure
from tests.playbooks.sample import REPOSITORY

pytestmark = [pytest.mark.lab, pytest.mark.slow]
BEFORE = ["base", "nvidia_driver", "fabric_manager", "dcgm", "rdma", "node_health"]
OWN = {"dgx02": "slurm_node", "login01": "slurm_login"}


@pytest.fixture(scope="module")
def site():
    hosts = names.ADDRESSES | sites.LOGIN
    with sites.running(f"t-hall-{os.getpid()}", *hosts, hall=hosts) as site:
        yield site


@pytest.fixture(scope="module")
def inside(site):
    return Inside(site)


@pytest.fixture(scope="module")
def key(site):
    return sites.munge_key(site)


@pytest.fixture(scope="module")
def published(inside, key):
    """The document of the lab's hall alone; Slurm knows dgx02, which is somebody else's to converge."""
    stack = yaml.safe_load((REPOSITORY / "stacks" / "Pulumi.lab.yaml").read_text())
    cluster = stack["config"]["ironburst:cluster"]
    for part in ("cloud", "budget", "burst"):
        cluster.pop(part)
    cluster["scheduler"]["munge_key"] = key
    stack_file = inside.site.dir / "run" / "Pulumi.hall.yaml"
    stack_file.write_text(yaml.safe_dump({"config": {"ironburst:cluster": cluster}}))
    inside.run(inside.ironburst("lock", str(stack_file)))
    text = inside.run(inside.ironburst("document", str(stack_file)))
    return inside.run(inside.ironburst("publish", "--to", str(inside.document)), stdin=text)


def play(inside, *options):
    playbook = ["ansible-playbook", "-i", "inventory/lab", "--limit", "head,dgx01", "playbooks/site.yml"]
    return inside.run(["env", "ANSIBLE_NOCOLOR=1", *playbook, *options])


@pytest.fixture(scope="module")
def converged(inside, published):
    return play(inside)


def runs_on(site, host, from_host="head"):
    """What a job there prints."""
    job = f"sbatch --wait -w {host} -o out-{host} --wrap hostname"
    site.ssh(from_host, f"cd /shared/alice && exec runuser -u alice -- {job}", timeout=120)
    return site.ssh(from_host, f"cat /shared/alice/out-{host}").stdout.strip()


def test_a_hall_is_converged_from_its_document(site, inside, published, converged):
    assert published.endswith("cluster lab, serial 1\n")
    assert runs_on(site, "dgx01") == "dgx01"
    assert " changed=0 " in (again := play(inside)) and again.count("changed=0 ") == 2, again


@pytest.fixture(scope="module")
def static(site, key, converged):
    hall = names.ADDRESSES | sites.LOGIN
    groups = {"head": [], "dgx02": ["gpu", *BEFORE, "slurm_node"], "login01": ["base", "slurm_login"]}
    hosts = {name: (hall[name], groups[name]) for name in groups}
    edits = {"10.1.0.10": hall["head"], "file:/etc/ironburst/munge.key": key}
    static = Static(site, hosts, edits)
    software = yaml.safe_load(static.text("gpu"))["node_software"]
    own = {"driver": None, "kernel": None, "slurm": software["slurm"]}
    login = {"node_software": own | {"packages": {"slurm_login": software["packages"]["slurm_login"]}}}
    (static.folder / "host_vars" / "login01.json").write_text(json.dumps(login))
    return static


def test_slurms_roles_alone_from_an_inventory_of_ones_own(site, static):
    static.roles({"dgx02": BEFORE, "login01": ["base"]})
    own = {name: [role] for name, role in OWN.items()}
    for run, options in (("check", ["--check"]), ("real", []), ("again", [])):
        recap, said = static.roles(own, *options, ok=False)
        for name in OWN:
            assert recap[name]["failed"] == 0, f"{run}: {failure(said, name)}"
            assert (recap[name]["changed"] == 0) == (run == "again"), f"{run}: {said[-3000:]}"
    wait_for(lambda: "idle" in site.ssh("head", "sinfo -h -n dgx02 -o %t").stdout, 60, "dgx02", pause=0.5)
    assert runs_on(site, "dgx02", from_host="login01") == "dgx02"


def test_the_whole_site_from_an_inventory_of_ones_own(static):
    """site.yml changes nothing more, and validate.yml passes."""
    recap, said = static.play("playbooks/site.yml", "--limit", "dgx02,login01")
    assert {name: (each["failed"], each["changed"]) for name, each in recap.items()} == {
        "dgx02": (0, 0),
        "login01": (0, 0),
    }, said[-4000:]
    static.play("playbooks/validate.yml", "--limit", "dgx02,login01")


def test_a_role_that_needs_every_host_says_that_a_document_has_them(static):
    inventory = static.folder / "hosts.ini"
    inventory.write_text(inventory.read_text() + "[slurm_head]\nhead\n")
    _, said = static.play("playbooks/validate.yml", "--limit", "head", ok=False)
    said = " ".join(said.split())
    assert "The role slurm_head needs what head is not given: cluster_name (str: Name of the cluster)" in said
    assert "`ironburst document STACK_FILE` writes it" in said and "undefined" not in said
