"""ironburst-names: rented nodes in /etc/hosts, from what slurmctld printed (captured/README.md): a node of the hall,
one that is rented, one that boots, one that is powered down, and one that powers down.
"""

import os
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "playbooks/roles/slurm_host/files/ironburst-names"
NODES = (Path(__file__).parent / "captured/scontrol-nodes-oneliner.txt").read_text()
ADDRESS = "10.90.176.212"  # of p5-1
THEIRS = "127.0.0.1 localhost\n233.252.0.1 p5-1\n233.252.0.1 p5-2\n"


@pytest.fixture
def host(tmp_path):
    """A host whose slurmctld prints tmp_path/nodes. `sleep` waits for nothing here."""
    (tmp_path / "hosts").write_text(THEIRS)
    (tmp_path / "hosts").chmod(0o644)
    (tmp_path / "nodes").write_text(NODES)
    (tmp_path / "bin").mkdir()
    scontrol = f'[ "$2" = hostnames ] && exec printf "%s\\n" $(echo "$3" | tr , " "); exec cat {tmp_path}/nodes'
    for name, text in {"scontrol": scontrol, "sleep": f"cp {tmp_path}/later {tmp_path}/nodes 2> /dev/null"}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def names(host, *arguments):
    env = os.environ | {"PATH": f"{host}/bin:{os.environ['PATH']}", "IRONBURST_HOSTS": str(host / "hosts")}
    return subprocess.run(["sh", str(PROGRAM), *arguments], env=env, capture_output=True, text=True, timeout=30)


def test_only_rented_nodes_that_are_there_are_known_and_come_first(host):
    assert names(host, "p5-1").returncode == 0
    assert (host / "hosts").read_text() == (
        f"# BEGIN ironburst: rented nodes\n{ADDRESS} p5-1\n# END ironburst: rented nodes\n{THEIRS}"
    )
    assert (host / "hosts").stat().st_mode & 0o777 == 0o644
    assert sorted(path.name for path in host.glob("hosts*")) == ["hosts", "hosts.lock"]


def test_an_address_of_the_lease_before_is_gone(host):
    assert names(host, "p5-1").returncode == 0
    (host / "nodes").write_text(NODES.replace(ADDRESS, "10.90.1.99"))
    assert names(host, "p5-1").returncode == 0
    assert ADDRESS not in (host / "hosts").read_text() and "10.90.1.99 p5-1\n" in (host / "hosts").read_text()
    (host / "nodes").write_text(NODES.splitlines(keepends=True)[0])
    names(host, "dgx01")
    assert (host / "hosts").read_text() == THEIRS


def test_a_gang_waits_for_the_last_of_its_nodes_and_not_for_ever(host):
    (host / "later").write_text(NODES.replace("NodeAddr=p5-2 ", "NodeAddr=10.90.1.12 "))
    assert names(host, "p5-1,p5-2").returncode == 0
    assert "10.90.1.12 p5-2\n" in (host / "hosts").read_text()
    done = names(host, "p5-1,p5-3")
    assert done.returncode == 1 and "doesn't find p5-3 of p5-1,p5-3" in done.stderr


def test_without_an_answer_what_is_known_stays(host):
    assert names(host, "p5-1").returncode == 0
    before = (host / "hosts").read_text()
    (host / "bin/scontrol").write_text("#!/bin/sh\nexit 1\n")
    assert names(host, "p5-1").returncode == 1
    assert (host / "hosts").read_text() == before
