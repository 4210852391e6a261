"""What brings declared accounts into Slurm's database: a small sacctmgr that answers as the real one's tables do."""

import pytest

from ironburst.shares import accounts

QOS = {"name": "urgent", "priority": 100, "max_run_s": 93_600, "max_gpus_per_user": 2}
PHYSICS = {"name": "physics", "parent": "root", "users": ["anna"], "qos": ["normal", "urgent"]}
LASERS = {"name": "lasers", "parent": "physics", "users": ["anna", "ben"], "qos": []}
DECLARED = {"qos": [QOS], "accounts": [PHYSICS, LASERS]}
IS_SO = (
    [
        "lab|root||||normal|",
        "lab|root|root||normal||",
        "lab|physics||root|normal,urgent|normal|",
        "lab|physics|anna||normal,urgent|normal|",
        "lab|lasers||physics|normal,urgent|normal|",
        "lab|lasers|anna||normal||",
        "lab|lasers|ben||normal||",
        "other|physics|zoe||normal||",
    ],
    ["root|root", "anna|physics", "ben|lasers"],
    ["normal|0||", "urgent|100|1-02:00:00|gres/gpu=2"],
)


def changes(declared=DECLARED, shown=IS_SO):
    return [" ".join(line[3:]) for line in accounts.changes("lab", declared, *shown)]


def test_nothing_is_done_where_the_database_is_as_declared():
    assert changes() == []


def test_a_fresh_database_gets_qos_first_then_accounts_from_above_then_users():
    assert changes(shown=(["lab|root|root||normal||"], ["root|root"], ["normal|0||"])) == [
        "add qos urgent",
        "modify qos where Name=urgent set Priority=100 MaxWall=1560 MaxTRESPerUser=gres/gpu=2",
        "add account physics Cluster=lab Parent=root",
        "modify account where Name=physics Cluster=lab set QOS=normal,urgent DefaultQOS=normal",
        "add account lasers Cluster=lab Parent=physics",
        "add user anna Account=physics Cluster=lab",
        "add user anna Account=lasers Cluster=lab",
        "add user ben Account=lasers Cluster=lab",
    ]


def test_who_leaves_an_account_submits_to_it_no_more_and_has_another_default():
    moved = DECLARED | {"accounts": [PHYSICS | {"users": []}, LASERS]}
    assert changes(moved) == [
        "modify user where Name=anna Account=physics Cluster=lab set MaxSubmitJobs=0",
        "modify user where Name=anna Cluster=lab set DefaultAccount=lasers",
    ]
    rows, users, qos = IS_SO
    closed = [row + "0" if row.startswith("lab|physics|anna") else row for row in rows]
    assert changes(moved, (closed, ["anna|lasers", "ben|lasers"], qos)) == []
    assert changes(DECLARED, (closed, users, qos)) == [
        "modify user where Name=anna Account=physics Cluster=lab set MaxSubmitJobs=-1"
    ]


@pytest.mark.parametrize(
    ("qos", "words"),
    [
        ({"max_run_s": None}, "MaxWall=-1"),
        ({"max_gpus_per_user": None}, "MaxTRESPerUser=gres/gpu=-1"),
        ({"priority": 7}, "Priority=7"),
    ],
)
def test_a_qos_follows_its_declaration(qos, words):
    (said,) = changes(DECLARED | {"qos": [QOS | qos]})
    assert said.startswith("modify qos") and words in said


def test_an_account_moves_and_gets_its_qos():
    declared = DECLARED | {"accounts": [PHYSICS, LASERS | {"parent": "root", "qos": ["urgent"]}]}
    assert changes(declared) == [
        "modify account where Name=lasers Cluster=lab set Parent=root",
        "modify account where Name=lasers Cluster=lab set QOS=urgent DefaultQOS=urgent",
    ]
