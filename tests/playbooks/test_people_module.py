"""The module `people`, with the real useradd, usermod and groupadd on a folder that is a root of its own."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from programs import PLAYBOOKS

MODULE = PLAYBOOKS / "plugins" / "modules" / "people.py"
KEY = "ssh-ed25519 AAAAC3Nza anna@desk"
ANNA = {"name": "anna", "uid": 5001, "group": "physics", "groups": ["gpu"], "shell": "/bin/bash", "keys": [KEY]}
BEN = {"name": "ben", "uid": 5002, "group": "ben", "groups": [], "shell": "/bin/sh", "keys": []}
GROUPS = {"physics": 5000, "gpu": 5003, "ben": 5002}

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("useradd"), reason="useradd --prefix needs root on Linux"
)


class Host:
    """A folder with /etc's tables as a fresh host has them."""

    def __init__(self, folder):
        self.root = folder
        etc = folder / "etc"
        etc.mkdir()
        (etc / "skel").mkdir()
        (etc / "skel" / ".bashrc").write_text("# skeleton\n")
        (etc / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\nadmin:x:1000:1000::/home/admin:/bin/bash\n")
        (etc / "group").write_text("root:x:0:\nadmin:x:1000:\ndocker:x:990:\n")
        (etc / "shadow").write_text("root:*:19000:0:99999:7:::\nadmin:!:19000:0:99999:7:::\n")
        (etc / "gshadow").write_text("root:*::\nadmin:!::\ndocker:!::\n")
        shutil.copy("/etc/login.defs", etc / "login.defs")

    def apply(self, people, groups=GROUPS, check=False, **more):
        given = {"people": people, "groups": groups, "homes": "/home", "keys": "/etc/ssh/authorized_keys.d", **more}
        arguments = {"ANSIBLE_MODULE_ARGS": given | {"_ansible_check_mode": check}}
        env = os.environ | {"IRONBURST_PEOPLE_ROOT": str(self.root)}
        done = subprocess.run(
            [sys.executable, MODULE], input=json.dumps(arguments), env=env, capture_output=True, text=True, timeout=60
        )
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def rows(self, table):
        lines = (self.root / "etc" / table).read_text().splitlines()
        return {line.split(":")[0]: line.split(":") for line in lines}


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_users_are_made_with_their_ids_homes_and_keys_and_the_second_run_changes_nothing(host):
    assert host.apply([ANNA, BEN])["changed"]
    anna, group = host.rows("passwd")["anna"], host.rows("group")
    assert anna[2:] == ["5001", "5000", "", "/home/anna", "/bin/bash"]
    assert (group["gpu"][2], group["gpu"][3], group["ben"][2]) == ("5003", "anna", "5002")
    assert host.rows("shadow")["anna"][1].startswith("!"), "no password opens the login"
    home = (host.root / "home/anna").stat()
    assert (home.st_uid, home.st_gid, home.st_mode & 0o7777) == (5001, 5000, 0o700)
    assert (host.root / "home/anna/.bashrc").stat().st_uid == 5001
    keys = host.root / "etc/ssh/authorized_keys.d"
    assert (keys / "anna").read_text().splitlines()[1:] == [KEY] and (keys / "anna").stat().st_mode & 0o777 == 0o644
    again = host.apply([ANNA, BEN])
    assert again["did"] == [] and not again["changed"]


def test_a_home_that_can_not_be_made_leaves_no_part_of_it(host):
    (host.root / "etc/skel/gone").symlink_to("/nowhere")
    said = host.apply([ANNA])
    assert said["failed"] and "home/anna can't be made: No such file or directory; where" in said["msg"]
    assert list((host.root / "home").iterdir()) == []


def test_check_mode_says_what_would_be_done_and_does_nothing(host):
    before = {name: host.rows(name) for name in ("passwd", "group", "shadow")}
    said = host.apply([ANNA], check=True)
    assert said["changed"] and "user anna is made" in said["did"] and "home of anna is made" in said["did"]
    assert {name: host.rows(name) for name in before} == before and not (host.root / "home").exists()


def test_who_is_no_longer_declared_is_locked_and_keeps_everything_and_may_come_back(host):
    host.apply([ANNA, BEN])
    (host.root / "home/ben/result").write_text("42")
    said = host.apply([ANNA])
    shadow = host.rows("shadow")["ben"]
    assert said["locked"] == ["ben"] and shadow[1].startswith("!") and shadow[7] == "1"
    assert host.rows("passwd")["ben"][2] == "5002" and (host.root / "home/ben/result").read_text() == "42"
    assert not (host.root / "etc/ssh/authorized_keys.d/ben").exists()
    assert host.apply([ANNA])["did"] == []
    host.apply([ANNA, BEN])
    assert host.rows("shadow")["ben"][7] == ""


def test_somebody_whom_the_role_did_not_make_is_left_alone(host):
    host.apply([ANNA])
    host.apply([])
    assert host.rows("shadow")["admin"] == ["admin", "!", "19000", "0", "99999", "7", "", "", ""]


@pytest.mark.parametrize(
    ("people", "groups", "words"),
    [
        ([ANNA | {"name": "admin"}], GROUPS, "user admin has uid 1000 here, declared is 5001"),
        ([ANNA | {"uid": 1000}], GROUPS, "uid 1000 of user anna is that of user admin here"),
        ([ANNA], GROUPS | {"docker": 5009}, "group docker has gid 990 here, declared is 5009"),
        ([ANNA], GROUPS | {"physics": 1000}, "gid 1000 of group physics is that of group admin here"),
    ],
)
def test_an_id_that_somebody_else_has_is_refused_before_anything_changes(host, people, groups, words):
    before = (host.root / "etc/passwd").read_text()
    said = host.apply([BEN, *people], groups)
    assert said["failed"] and words in said["msg"] and "nothing was changed" in said["msg"]
    assert (host.root / "etc/passwd").read_text() == before


def test_a_home_that_is_somebody_elses_is_refused(host):
    (host.root / "home/anna").mkdir(parents=True)
    os.chown(host.root / "home/anna", 1234, 1234)
    said = host.apply([ANNA])
    assert said["failed"] and "is owned by uid 1234, and user anna has 5001" in said["msg"]
    assert "anna" not in host.rows("passwd")


def test_a_user_leaves_declared_groups_alone_and_stays_in_those_of_the_host(host):
    host.apply([ANNA])
    subprocess.run(["usermod", "--prefix", host.root, "-a", "-G", "docker", "anna"], check=True)
    assert host.apply([ANNA])["did"] == []
    assert host.apply([ANNA | {"groups": [], "shell": "/bin/sh"}])["did"] == ["user anna is changed"]
    group = host.rows("group")
    assert (group["docker"][3], group["gpu"][3]) == ("anna", "") and host.rows("passwd")["anna"][6] == "/bin/sh"
