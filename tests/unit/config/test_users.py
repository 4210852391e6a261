"""Users in the stack file: what is refused, in one sentence each, and what becomes of them in the document."""

import pytest

from ironburst import document
from ironburst.config import load
from ironburst.config.user_models import FIRST_ID
from ironburst.convergence.inputs import Sources
from ironburst.document import build, variables
from tests.unit.config.test_checks import findings
from tests.unit.document.test_document import OBSERVED

KEY = "ssh-ed25519 AAAAC3Nza anna@desk"
ANNA = {"name": "anna", "uid": 5001, "group": "physics", "keys": [KEY]}
BEN = {"name": "ben", "uid": 5002}
GROUPS = {"physics": 5000}
USERS = {"people": [ANNA, BEN], "groups": GROUPS, "homes": "/shared/home"}
LDAP = {"uri": "ldaps://ldap.example.org", "base": "dc=example,dc=org"}
SECRET = {"bind_dn": "cn=sssd,dc=example,dc=org", "bind_password": "env:HOME"}


def test_users_reach_the_document_with_groups_of_their_own_and_an_account(declared):
    declared["users"] = USERS | {"accounts": [{"name": "physics", "users": ["anna"]}], "node_login": {}}
    assert findings(declared) == []
    built = build.build(load.from_value(declared), OBSERVED)
    users = built.users
    assert [(each.name, each.uid, each.group) for each in users.people] == [
        ("anna", 5001, "physics"),
        ("ben", 5002, "ben"),
    ]
    assert users.groups == {"physics": 5000, "ben": 5002} and users.node_login == []
    assert [(each.name, each.parent, each.users) for each in users.accounts] == [
        ("physics", "root", ["anna"]),
        ("users", "root", ["ben"]),
    ]
    assert all("users" in each.roles for each in [*built.hosts, *built.pools])
    older = built.model_dump(mode="json")
    del older["users"], older["names"]
    assert document.parse(older).users == document.parse(older).users.model_copy()
    assert document.parse(older).users.people == []


def test_nobody_is_declared_and_nothing_is_made(declared):
    built = build.build(load.from_value(declared), OBSERVED)
    assert built.users.accounts == [] and not any({"users", "host_names"} & set(host.roles) for host in built.hosts)


def test_people_join_the_default_account_that_is_declared(declared):
    declared["users"] = USERS | {"default_account": "lab", "accounts": [{"name": "lab", "users": ["anna"]}]}
    (account,) = build.build(load.from_value(declared), OBSERVED).users.accounts
    assert account.users == ["anna", "ben"]


# case: (what differs in users, path of the finding, words of it)
BAD = {
    "a uid of the system": ({"people": [ANNA | {"uid": FIRST_ID - 1}]}, "people[0].uid", "is no id of a person"),
    "a uid of nobody's kind": ({"people": [ANNA | {"uid": 65534}]}, "people[0].uid", "from 1000 to 60000"),
    "a uid twice": ({"people": [ANNA, BEN | {"uid": 5001}]}, "people[1].uid", "uid 5001 is anna's already"),
    "a user twice": ({"people": [ANNA, ANNA | {"uid": 5003}]}, "people[1].name", "user 'anna' is declared already"),
    "a name that useradd refuses": ({"people": [BEN | {"name": "Ben B"}]}, "people[0].name", "'Ben B' is no name"),
    "a name of the system": ({"people": [BEN | {"name": "slurm"}]}, "people[0].name", "'slurm' is a name of the"),
    "a gid twice": ({"groups": GROUPS | {"lasers": 5000}}, "groups.lasers", "gid 5000 is that of group physics"),
    "a group of one's own that is taken": (
        {"people": [ANNA, BEN | {"uid": 5000}]},
        "people[1].uid",
        "own group would have gid 5000, which is that of group physics",
    ),
    "a user with a group's name": (
        {"people": [ANNA, BEN | {"name": "physics"}]},
        "people[1].name",
        "'physics' is a group, too: give the user `group: physics`",
    ),
    "a group that isn't declared": (
        {"people": [ANNA, BEN | {"groups": ["optics"]}]},
        "people[1].groups[0]",
        "group 'optics' isn't declared; users.groups has physics",
    ),
    "a private key": (
        {"people": [ANNA | {"keys": ["-----BEGIN OPENSSH PRIVATE KEY-----"]}]},
        "people[0].keys[0]",
        "is a private key; write the line of the .pub file",
    ),
    "no key": ({"people": [ANNA | {"keys": ["hunter2"]}]}, "people[0].keys[0]", "is no public ssh key"),
    "an account of a stranger": (
        {"accounts": [{"name": "physics", "users": ["zoe"]}]},
        "accounts[0].users[0]",
        "user 'zoe' isn't declared; users.people has anna, ben",
    ),
    "an account twice": (
        {"accounts": [{"name": "physics"}, {"name": "physics"}]},
        "accounts[1].name",
        "account 'physics' is there already",
    ),
    "an account below one that comes later": (
        {"accounts": [{"name": "lasers", "parent": "physics"}, {"name": "physics"}]},
        "accounts[0].parent",
        "the account above, 'physics', isn't declared before it",
    ),
    "a QOS that isn't declared": (
        {"accounts": [{"name": "physics", "qos": ["fast"]}]},
        "accounts[0].qos[0]",
        "QOS 'fast' isn't declared; users.qos has none",
    ),
    "two sources": ({"directory": LDAP}, "", "has a directory beside people or groups: declare one of the two"),
    "a directory without TLS": (
        {"people": [], "groups": {}, "directory": LDAP | {"uri": "http://ldap"}},
        "directory.uri",
        "isn't of the form",
    ),
    "half a sign-in": (
        {"people": [], "groups": {}, "directory": LDAP | {"bind_dn": "cn=sssd,dc=x"}},
        "directory",
        "has one of bind_dn and bind_password without the other",
    ),
    "a secret that rented nodes would need": (
        {"people": [], "groups": {}, "directory": LDAP | SECRET},
        "directory.bind_password",
        "rented nodes would need bind_password",
    ),
}


@pytest.mark.parametrize(
    ("homes", "folders", "told"),
    [
        (None, None, True),  # nobody has said where they are: /home, then
        ("/home", None, True),
        ("/shared/home", None, False),
        (None, ["/shared"], False),  # it is decided
        ("/home", ["/shared", "/home"], False),
    ],
)
def test_homes_on_rented_nodes_are_asked_for_until_they_are_decided(declared, homes, folders, told):
    del declared["burst"]["folders"]
    if folders:
        declared["burst"]["folders"] = folders
    if homes:
        declared["users"] = USERS | {"homes": homes}
    found = [each for each in findings(declared) if each.rule == "rented-homes"]
    assert [each.severity for each in found] == (["warning"] if told else [])
    if told:
        assert "homes are in /home, which rented nodes don't have" in found[0].message
        assert "write burst.folders: [/shared, /home]" in found[0].message
    declared["cloud"]["pools"] = []
    assert not [each for each in findings(declared) if each.rule == "rented-homes"]


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said_in_a_sentence(declared, case):
    more, path, words = BAD[case]
    declared["users"] = USERS | more
    found = findings(declared)
    assert len(found) == 1, found
    where = f"config.ironburst:cluster.users{'.' if path else ''}{path}"
    assert found[0].path == where and words in found[0].message
    assert "hunter2" not in f"{found[0]} {found[0].value}"


def test_a_user_whose_accounts_have_no_share_is_told(declared):
    declared["users"] = USERS
    declared["shares"] = [{"team": "physics"}]
    (found,) = findings(declared)
    assert found.severity == "warning" and "anna, ben can submit nothing" in found.message


# ---- who is told what


def with_users(declared):
    declared |= {"users": USERS, "names": "hosts"}
    return build.build(load.from_value(declared), OBSERVED).model_dump(mode="json")


def test_only_the_keeper_has_the_lists(declared):
    whole = with_users(declared)
    assert "cluster_users" not in variables.of_all(whole) and variables.of_all(whole)["cluster_names"] == "hosts"
    kept = variables.of_keeper(whole)
    assert kept["cluster_users"]["groups"] == {"physics": 5000, "ben": 5002}
    assert kept["cluster_host_names"].splitlines()[:2] == ["10.78.0.10 head", "10.78.0.11 dgx01"]


def test_another_hosts_software_changes_no_receipt_and_a_new_user_every_one(declared, tmp_path):
    """A role that reads one thing of the keeper has that alone among its inputs."""
    tasks = tmp_path / "playbooks/roles/base/tasks"
    tasks.mkdir(parents=True)
    (tasks / "main.yml").write_text(
        "{{ hostvars[cluster_keeper].cluster_users }} {{ hostvars[cluster_keeper].cluster_host_names }}"
    )
    (tmp_path / "inventory").mkdir()

    def inputs(whole):
        return Sources(tmp_path, tmp_path / "inventory", whole, "00", lambda _: "secret", {}).of("dgx01")

    whole = with_users(declared)
    before = inputs(whole)
    other = next(host for host in whole["hosts"] if host["name"] == "dgx02")
    other["mig"] = [{"gpus": [0], "profiles": {"1g.10gb": 7}}]
    assert inputs(whole) == before
    other["address"] = "10.78.0.99"
    assert {name for name, value in inputs(whole).items() if before[name] != value} == {"host names"}
    whole["users"]["people"][0]["shell"] = "/bin/sh"
    assert {name for name, value in inputs(whole).items() if before[name] != value} == {"host names", "cluster_users"}
