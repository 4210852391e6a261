"""`ironburst doctor --from hall`: each thing that may be wrong between the hosts, made wrong once, seen and named."""

import copy
import hashlib
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ironburst import cli
from ironburst.config import load
from ironburst.doctor import bmcs, host_probe, hosts, published, topology
from ironburst.doctor.bmcs import Bmc
from ironburst.doctor.declared import DeclaredSite
from ironburst.document.user_model import SlurmAccount, User, Users
from ironburst.system import sent_program
from tests.playbooks import sample

REPOSITORY = Path(__file__).parents[3]
LAB = REPOSITORY / "stacks/Pulumi.lab.yaml"
SALT, NOW = "00" * 16, 1_800_000_000.0
PEOPLE = Users(
    people=[User(name="ada", uid=2001, group="ada", shell="/bin/bash")],
    groups={"ada": 2001},
    accounts=[SlurmAccount(name="vision", parent="root", users=["ada", "grace"])],
)
DOCUMENT = sample.lab_document().model_copy(update={"users": PEOPLE})
ADDRESSES = {host.name: host.address for host in DOCUMENT.managed_hosts}
KEY = hosts.digest(b"the key", SALT)


def healthy(name, asked):
    """What a host answers that has nothing wrong."""
    return {
        "names": {other: [address] for other, address in ADDRESSES.items()},
        "reverse": {address: [f"{other}.lab", other] for other, address in ADDRESSES.items()},
        "users": {"ada": [2001, 2001], "grace": [2002, 2002]},
        "folders": {path: {"source": "nas:/shared", "kind": "nfs4", "writable": True} for path in asked["folders"]},
        "munge": {"digest": KEY, "mode": "400", "owner": "munge"} if "munge" in asked else None,
        "host_keys": [f"key of {name}"],
        "connect": {f"{address}:{port}": {"mss": 1400} for address, port in asked.get("connect", [])},
        "listens": [["0.0.0.0", 22], ["127.0.0.1", 5555], ["::1", 6666]],
        "disks": {path: [50 * 2**30, 100 * 2**30] for path in asked["disks"]},
        "backups": dict.fromkeys(asked.get("backups", ()), NOW - 3600),
        "state": None,
        "commands": {what: {"status": 0, "output": "lab\n"} for what in asked.get("commands", {})},
        "synchronised": True,
        "clock": NOW,
    }


class Hall:
    """All hosts, healthy; a test breaks something."""

    def __init__(self, **changes):
        self.document = DOCUMENT.model_copy(update=changes)
        self.answers = {name: healthy(name, asked) for name, asked in hosts.questions(self.document, SALT).items()}
        self.errors, self.secret, self.links, self.now_s = {}, KEY, {"hall-a": "vpn"}, NOW

    def findings(self):
        said = {
            name: hosts.HostAnswer(None if name in self.errors else answer, self.errors.get(name, ""), NOW - 1, NOW + 1)
            for name, answer in copy.deepcopy(self.answers).items()
        }
        links = {host.hall: "vpn" for host in self.document.hosts if host.hall} if self.links else {}
        return list(hosts.check(hosts.Hosts(self.document, said, self.secret, links, self.now_s)))


def test_nothing_is_found_where_nothing_is_wrong():
    found = Hall().findings()
    assert {each.state for each in found} == {"ok"}
    assert {each.check for each in found} >= {
        "hosts", "names", "clock", "users", "files", "munge", "ssh", "ports", "link", "disk", "accounting", "backup",
    }  # fmt: skip


def unreachable(hall):
    hall.errors["dgx01"] = "ssh: connect to host 10.78.0.11 port 22: No route to host"


def changed_host_key(hall):
    hall.errors["dgx01"] = "Host key verification failed."


def unknown_name(hall):
    hall.answers["dgx02"]["names"]["dgx01"] = []


def wrong_name(hall):
    hall.answers["dgx02"]["names"]["dgx01"] = ["10.99.9.9"]


def hung_resolver(hall):
    hall.answers["dgx02"]["names"] = dict.fromkeys(ADDRESSES)


def no_reverse(hall):
    hall.answers["head"]["reverse"][ADDRESSES["dgx01"]] = []


def fast_clock(hall):
    hall.answers["dgx01"]["clock"] += 3600


def slow_clock(hall):
    hall.answers["dgx01"]["clock"] -= 3600


def no_time_server(hall):
    hall.answers["dgx01"]["synchronised"] = False


def other_uid(hall):
    hall.answers["dgx01"]["users"]["ada"] = [1000, 1000]


def no_user(hall):
    hall.answers["dgx01"]["users"]["ada"] = None


def other_uid_of_the_directory(hall):
    hall.answers["dgx01"]["users"]["grace"] = [1001, 1001]


def known_nowhere(hall):
    for answer in hall.answers.values():
        answer["users"]["grace"] = None


def not_mounted(hall):
    hall.answers["dgx01"]["folders"]["/shared"] = None


def hung_mount(hall):
    hall.answers["dgx01"]["folders"]["/shared"]["writable"] = None


def read_only(hall):
    hall.answers["dgx01"]["folders"]["/shared"]["writable"] = False


def other_source(hall):
    hall.answers["dgx01"]["folders"]["/shared"]["source"] = "old-nas:/shared"


def other_munge_key(hall):
    hall.answers["dgx01"]["munge"]["digest"] = "f" * 64


def other_munge_key_than_the_secret(hall):
    hall.secret = "e" * 64


def no_munge_key(hall):
    hall.answers["dgx01"]["munge"] = None


def open_munge_key(hall):
    hall.answers["dgx01"]["munge"]["mode"] = "644"


def unreadable_secret(hall):
    hall.secret = None


def copied_host_keys(hall):
    hall.answers["dgx01"]["host_keys"] = hall.answers["dgx02"]["host_keys"]


def closed_slurmctld(hall):
    hall.answers["dgx01"]["connect"] = {f"{ADDRESSES['head']}:6817": {"error": "no answer in 5 s"}}


def stopped_slurmd(hall):
    hall.answers["head"]["connect"][f"{ADDRESSES['dgx01']}:6818"] = {"error": "Connection refused"}


def open_hostengine(hall):
    hall.answers["dgx01"]["listens"].append(["0.0.0.0", 5555])


def large_packets(hall):
    way = f"{ADDRESSES['fixed-1']}:22"
    assert way in hall.answers["head"]["connect"]
    hall.answers["head"]["connect"][way] = {"mss": 8961}


def full_disk(hall):
    hall.answers["head"]["disks"]["/var"] = [2**29, 100 * 2**30]


def filling_disk(hall):
    hall.answers["head"]["disks"]["/var"] = [8 * 2**30, 100 * 2**30]


def no_slurmdbd(hall):
    hall.answers["head"]["commands"]["accounting"] = {"status": 1, "output": ""}


def no_cluster(hall):
    hall.answers["head"]["commands"]["accounting"] = {"status": 0, "output": "\n"}


def no_backup(hall):
    hall.answers["head"]["backups"]["ironburst-slurm-backup"] = None


def old_backup(hall):
    hall.answers["head"]["backups"]["ironburst-slurm-backup"] = NOW - 9 * 86400


def old_copy_of_the_ledger(hall):
    hall.answers["head"]["backups"]["ironburst-backup"] = NOW - 3 * 86400


def failed_copy_of_the_ledger(hall):
    # systemd 257 (Debian 13), a unit whose ExecStart ended with 2
    line = (
        "ironburst-backup.service loaded failed failed ironburst backup: a copy of the ledger, proven by restoring it\n"
    )
    hall.answers["head"]["commands"]["failed"] = {"status": 0, "output": line}


BROKEN = [
    (unreachable, "hosts", "fail", "dgx01: ssh: connect to host 10.78.0.11 port 22: No route to host"),
    (changed_host_key, "hosts", "fail", "dgx01: Host key verification failed."),
    (unknown_name, "names", "fail", f"dgx02: dgx01 isn't known, declared is {ADDRESSES['dgx01']}"),
    (wrong_name, "names", "fail", f"dgx02: dgx01 is 10.99.9.9, declared is {ADDRESSES['dgx01']}"),
    (hung_resolver, "names", "fail", "dgx02: the resolver doesn't answer"),
    (no_reverse, "names", "warn", f"head: {ADDRESSES['dgx01']} is nobody, declared is dgx01"),
    (fast_clock, "clock", "fail", "dgx01: 3599 s or more ahead of this machine"),
    (slow_clock, "clock", "fail", "dgx01: 3599 s or more behind of this machine"),
    (no_time_server, "clock", "warn", "dgx01: systemd says that no time server is followed"),
    (other_uid, "users", "fail", "dgx01: uid 1000, gid 1000; declared is uid 2001, gid 2001"),
    (no_user, "users", "fail", "dgx01: isn't known; declared is uid 2001, gid 2001"),
    (other_uid_of_the_directory, "users", "fail", "dgx01: uid 1001, gid 1001; elsewhere uid 2002, gid 2002"),
    (known_nowhere, "users", "fail", "isn't known; known nowhere"),
    (not_mounted, "files", "fail", "dgx01: nothing is mounted at /shared"),
    (hung_mount, "files", "fail", "dgx01: /shared (nas:/shared) doesn't answer in 5 s"),
    (read_only, "files", "fail", "dgx01: /shared (nas:/shared) is mounted read-only"),
    (other_source, "files", "warn", "dgx01: /shared is old-nas:/shared (nfs4)"),
    (other_munge_key, "munge", "fail", "dgx01: another key than the secret has"),
    (other_munge_key_than_the_secret, "munge", "fail", "another key than the secret has"),
    (no_munge_key, "munge", "fail", "dgx01: there is no /etc/munge/munge.key"),
    (open_munge_key, "munge", "fail", "dgx01: /etc/munge/munge.key has mode 644, munged takes 400 or 600"),
    (unreadable_secret, "munge", "unknown", "the secret can't be read here, so it wasn't compared"),
    (copied_host_keys, "ssh", "fail", "dgx01, dgx02: they have one host key"),
    (closed_slurmctld, "ports", "fail", "dgx01: slurmctld of head (port 6817): no answer in 5 s"),
    (stopped_slurmd, "ports", "fail", "head: slurmd of dgx01 (port 6818): Connection refused"),
    (open_hostengine, "ports", "fail", "dgx01: DCGM's nv-hostengine listens on 0.0.0.0:5555"),
    (large_packets, "link", "warn", "fixed-1: packets with 8961 bytes of data, the vpn takes 1406"),
    (full_disk, "disk", "fail", "head: /var has 0.5 GiB free of 100"),
    (filling_disk, "disk", "warn", "head: /var has 8.0 GiB free of 100"),
    (no_slurmdbd, "accounting", "fail", "it gives no answer"),
    (no_cluster, "accounting", "fail", "it knows no cluster"),
    (no_backup, "backup", "fail", "there is none"),
    (old_backup, "backup", "fail", "the newest is 9 days old"),
    (old_copy_of_the_ledger, "backup", "fail", "the newest is 3 days old"),
    (failed_copy_of_the_ledger, "backup", "fail", "the last one failed; the newest is 1 hours old"),
]


@pytest.mark.parametrize(("breaks", "check", "state", "seen"), BROKEN, ids=[row[0].__name__ for row in BROKEN])
def test_what_is_wrong_is_seen_named_and_comes_with_what_to_do(breaks, check, state, seen):
    hall = Hall()
    breaks(hall)
    wrong = [each for each in hall.findings() if each.state != "ok"]
    assert [(each.check, each.state) for each in wrong] == [(check, state)]
    assert seen in wrong[0].seen and wrong[0].todo


def test_every_check_of_hosts_is_made_to_fail():
    assert {row[1] for row in BROKEN} == {each.check for each in Hall().findings()}


def test_many_hosts_make_one_line():
    hall = Hall()
    for name in hall.answers:
        hall.errors[name] = "no answer in 90 s"
    (found,) = [each for each in hall.findings() if each.check == "hosts"]
    assert found.seen.endswith(" and 1 more: no answer in 90 s") and found.seen.count(", ") == 2


def test_the_probe_answers_on_this_machine_and_holds_no_secret(tmp_path):
    key = tmp_path / "munge.key"
    key.write_bytes(b"the key")
    asked = hosts.questions(DOCUMENT, SALT)["head"] | {
        "names": {"localhost": "127.0.0.1"},
        "munge": str(key),
        "folders": ["/proc", "/not/there"],
        "connect": [["127.0.0.1", 1]],
        "backups": {
            "slurm": [f"{tmp_path}/[0-9]*", ""],
            "ledger": ["/*", f"{tmp_path}/ledger.*"],
            "keys": [str(key), str(key)],
        },
        "state": ["/proc", str(key)],
        "commands": {"accounting": ["no-such-command"]},
    }
    program = sent_program.text(host_probe, asked)
    done = subprocess.run([sys.executable, "-I", "-S", "-"], input=program, capture_output=True, text=True, check=True)
    assert "the key" not in done.stdout
    answer = sent_program.answer(host_probe, "a login shell says hello\n" + done.stdout)
    assert answer["munge"]["digest"] == KEY
    assert answer["names"]["localhost"] == ["127.0.0.1"]
    assert answer["folders"]["/not/there"] is None and answer["folders"]["/proc"]["kind"] == "proc"
    assert answer["connect"]["127.0.0.1:1"]["error"]
    assert answer["commands"]["accounting"]["status"] is None
    assert answer["backups"] == {"slurm": None, "keys": key.stat().st_mtime} and answer["disks"]["/"][0] > 0
    assert answer["state"]["kind"] == "proc" and answer["state"]["file"].startswith(f"{key.stat().st_ino} 7 ")
    assert answer.keys() == healthy("head", asked).keys()


# ---- Slurm's topology


@pytest.mark.parametrize(
    ("sums", "states"),
    [
        ("", []),
        ("{same}  /etc/slurm/topology.conf\n", [("/etc/slurm/topology.conf", "ok")]),
        ("{other}  /etc/slurm/topology.conf\n", [("/etc/slurm/topology.conf", "warn")]),
        (
            "{same}  /etc/slurm/topology.conf\n{other}  /etc/slurm/topology.yaml\n",
            [("/etc/slurm/topology.conf", "ok"), ("/etc/slurm/topology.yaml", "warn")],
        ),
    ],
)
def test_a_topology_on_the_head_that_is_not_the_halls_is_named(sums, states):
    tree = "# Written by ironburst\nSwitchName=leaf1 Nodes=dgx[01-02]\n"
    output = sums.format(same=hashlib.sha256(tree.encode()).hexdigest(), other="0" * 64)
    for declared, expected in ((tree, states), ("", [])):
        hall = Hall(topology=declared)
        hall.answers["head"]["commands"]["topology"] = {"status": 1, "output": output}
        found = [each for each in hall.findings() if each.check == "topology"]
        assert [(each.looked_at, each.state) for each in found] == expected
        assert all("ironburst converge" in each.todo or "remove it" in each.todo for each in found if each.todo)


def test_the_probe_sums_up_the_files_that_are_there(tmp_path):
    (tmp_path / "topology.yaml").write_text("x")
    argv = ["sha256sum", *topology.paths(str(tmp_path))]
    said = host_probe.gather({"salt": SALT, "commands": {"topology": argv}})["commands"]["topology"]
    assert said["output"].split() == [hashlib.sha256(b"x").hexdigest(), str(tmp_path / "topology.yaml")]


# ---- BMCs


@pytest.mark.parametrize(("outcome", "todo"), bmcs.TODO.items())
def test_a_bmc_that_does_not_do_is_named(outcome, todo):
    said = [Bmc("dgx01", outcome, "dgx01: BMC https://10.0.9.11 does not do"), Bmc("dgx02", "ok")]
    first, second = bmcs.check(iter(said))
    assert (first.state, first.looked_at, first.todo) == ("fail", "dgx01", todo)
    assert (second.state, second.seen) == ("ok", "1 BMCs answer and take their login")


def test_a_password_that_is_not_to_be_had_is_unknown():
    (found,) = bmcs.check(iter([Bmc("dgx01", "secret", "it does not resolve")]))
    assert (found.state, found.seen) == ("unknown", "it does not resolve")


# ---- what is published


def config():
    return load.from_value(load.read_value(LAB))


def states(document, now=datetime(2026, 11, 1, tzinfo=UTC)):
    return [(each.check, each.state, each.seen) for each in published.check(DeclaredSite(config(), document, now, {}))]


def test_what_is_published_is_what_is_declared():
    assert states(DOCUMENT) == [("document", "ok", "4 hosts and 1 pools, as declared")]
    assert states(None) == [("document", "unknown", "none is given")]
    older = DOCUMENT.model_copy(update={"hosts": DOCUMENT.hosts[:-1]})
    assert states(older) == [("document", "warn", f"declared only: {DOCUMENT.hosts[-1].name}")]


@pytest.mark.parametrize(
    ("left", "state"), [(timedelta(hours=-1), "fail"), (timedelta(hours=30), "warn"), (timedelta(days=9), "ok")]
)
def test_bought_time_that_ends_is_told_before(left, state):
    now = datetime(2026, 11, 1, tzinfo=UTC)
    ends_s = (now + left).timestamp()
    pools = [DOCUMENT.pools[0].model_copy(update={"capacity_ends_s": ends_s})]
    _, (check, seen, _) = states(DOCUMENT.model_copy(update={"pools": pools}), now)
    assert (check, seen) == ("time", state)


# ---- the command


def test_what_is_lacking_to_look_from_a_hall_is_one_sentence(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("IRONBURST_DOCUMENT", raising=False)
    assert cli.main(["doctor", str(LAB), "--from", "hall"]) == 2
    assert "give --document PATH" in capsys.readouterr().err
    path = sample.publish(tmp_path / "document.json")
    assert cli.main(["doctor", str(LAB), "--from", "hall", "--document", str(path)]) == 2
    assert "give --inventory" in capsys.readouterr().err
    assert cli.main(["doctor", str(LAB), "--from", "hall", "--document", str(path), "--inventory", str(tmp_path)]) == 2
    assert "is no inventory" in capsys.readouterr().err


def test_from_ci_hosts_are_asked_where_an_inventory_says_how(capsys, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(cli.doctor.site_doctor, "examine_hosts", lambda *given: iter(asked.append(given[-1]) or ()))
    monkeypatch.setattr("ironburst.doctor.aws.examine.check", lambda site: iter(()))
    path = sample.publish(tmp_path / "document.json")
    shown = ["doctor", str(LAB), "--from", "ci", "--document", str(path)]
    cli.main(shown)
    assert asked == []
    cli.main([*shown, "--inventory", str(LAB.parents[1] / "inventory/lab")])
    assert asked == [LAB.parents[1] / "inventory/lab"]
    assert cli.main(["doctor", str(LAB), "--from", "ci", "--inventory", "inventory/lab"]) == 2
    assert "give --document PATH" in capsys.readouterr().err
