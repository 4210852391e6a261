"""Shares as Slurm has them: what sacctmgr is told, and what it isn't told twice."""

import pytest

from ironburst.shares import Quota, TeamShare, quotas, slurm

VISION = TeamShare("vision", 16, weight=2, nodes=("dgx04",))
NLP = TeamShare("nlp", 8, most=12)
STRICT = TeamShare("strict", 4, over_quota=False)
IDLE = TeamShare("idle", 0)
ALL = [VISION, NLP, STRICT, IDLE]
OWN = {"vision": 8}


class Database:
    """What sacctmgr shows after some commands: a stand-in, written from its own output in a lab with Slurm 24.11."""

    def __init__(self):
        self.qos, self.accounts = {"normal": {"Description": "Normal QOS default", "Priority": "0"}}, {"root": {}}

    def run(self, lines):
        for line in lines:
            assert line[:3] == ["sacctmgr", "--immediate", "--quiet"]
            verb, kind, *rest = line[3:]
            table = self.qos if kind == "qos" else self.accounts
            given = dict(each.split("=", 1) for each in rest if "=" in each)
            if verb == "add":
                assert rest[0] not in table
                table[rest[0]] = given
            elif verb == "delete":
                del table[given["Name"]]
                for each in self.accounts.values():
                    assert given["Name"] not in each.get("QOS", "").split(",")
            else:
                name = given.pop("Name")
                table[name] |= given
            for each in self.qos.values():
                assert set(filter(None, each.get("Preempt", "").split(","))) <= set(self.qos)
            for each in self.accounts.values():
                named = set(filter(None, each.get("QOS", "").split(",")))
                assert named <= set(self.qos) and each.get("DefaultQOS", "-1") in {"-1", *named}

    @staticmethod
    def _limit(each):
        return "" if (limit := each.get("GrpTRES", "gres/gpu=-1")).endswith("=-1") else limit

    def qos_lines(self):
        return [
            "|".join((name, q["Description"], q["Priority"], self._limit(q), q.get("Preempt", "")))
            for name, q in self.qos.items()
        ]

    def account_lines(self):
        for name, a in self.accounts.items():
            default = a.get("DefaultQOS", "").replace("-1", "")
            yield f"lab|{name}||{a.get('QOS', 'normal')}|{default}|{a.get('Fairshare', '1')}|{self._limit(a)}"
            yield f"lab|{name}|alice|{a.get('QOS', 'normal')}|{default}|{a.get('Fairshare', '1')}|"
            yield f"other|{name}||elsewhere||7|"

    def shown(self):
        return slurm.shown_qos(self.qos_lines()), slurm.shown_accounts(self.account_lines(), "lab")


@pytest.fixture
def database():
    database = Database()
    database.run(slurm.changes("lab", ALL, OWN, *database.shown()))
    return database


def test_a_team_is_an_account_with_its_qos(database):
    qos, accounts = database.shown()
    over = {"vision-over", "nlp-over", "idle-over"}
    assert qos == {
        "vision-guaranteed": slurm.Qos(slurm.FIRST, 16, frozenset(over)),
        "nlp-guaranteed": slurm.Qos(slurm.FIRST, 8, frozenset(over)),
        "strict-guaranteed": slurm.Qos(slurm.FIRST, 4, frozenset(over)),
        "vision-own": slurm.Qos(slurm.FIRST),
    } | {name: slurm.Qos(slurm.LAST) for name in over}
    assert accounts["vision"].qos == {"vision-guaranteed", "vision-over", "vision-own", "normal"}
    assert accounts["strict"].qos == {"strict-guaranteed", "normal"}
    assert accounts["idle"].default == "idle-over"
    assert (accounts["nlp"].most, accounts["vision"].most) == (12, None)


def test_only_work_over_quota_is_preempted(database):
    qos, _ = database.shown()
    ended = frozenset().union(*(each.preempt for each in qos.values()))
    assert ended == {"vision-over", "nlp-over", "idle-over"}
    assert not any(qos[name].preempt for name in ended)  # and it ends nobody's


def test_a_second_time_nothing_is_told(database):
    assert slurm.changes("lab", ALL, OWN, *database.shown()) == []


def test_what_a_person_changed_comes_back(database):
    database.qos["nlp-guaranteed"]["GrpTRES"] = "gres/gpu=99"
    database.accounts["idle"]["QOS"] = "idle-over,vision-guaranteed,normal"
    lines = slurm.changes("lab", ALL, OWN, *database.shown())
    assert [line[3:7] for line in lines] == [
        ["modify", "qos", "where", "Name=nlp-guaranteed"],
        ["modify", "account", "where", "Name=idle"],
    ]
    database.run(lines)
    assert slurm.changes("lab", ALL, OWN, *database.shown()) == []


@pytest.mark.parametrize("left", [[NLP, STRICT], [], [VISION], [TeamShare("vision", 0), NLP]])
def test_a_team_that_is_gone_leaves_no_rights(database, left):
    database.run(slurm.changes("lab", left, OWN, *database.shown()))
    qos, accounts = database.shown()
    teams = {share.account for share in left}
    assert set(qos) == set(slurm.qos_of(left))
    for name in {"vision", "nlp", "strict", "idle"} - teams:
        assert accounts[name] == slurm.Account(frozenset({"normal"}), "", 1)  # it is there: its users, its history
    assert slurm.changes("lab", left, OWN, *database.shown()) == []


def test_what_still_runs_can_still_be_ended(database):
    """Seen in Slurm 24.11: a job whose QOS is deleted goes on with none, and nothing preempts it."""
    left, running = [NLP, STRICT, IDLE], ["vision-over", "vision-guaranteed", "nlp-over"]
    database.run(slurm.changes("lab", left, OWN, *database.shown(), running))
    qos, accounts = database.shown()
    assert {"vision-over", "vision-guaranteed"} <= set(qos) and "vision-own" not in qos
    assert qos["nlp-guaranteed"].preempt == {"vision-over", "nlp-over", "idle-over"}
    assert not qos["vision-guaranteed"].preempt and accounts["vision"].qos == {"normal"}  # nothing new starts
    assert slurm.changes("lab", left, OWN, *database.shown(), running) == []
    database.run(slurm.changes("lab", left, OWN, *database.shown(), ["nlp-over"]))
    assert set(database.shown()[0]) == set(slurm.qos_of(left))


def test_a_persons_own_qos_is_left_alone(database):
    database.qos["night"] = {"Description": "jobs of the night", "Priority": "5"}
    assert slurm.changes("lab", ALL, OWN, *database.shown()) == []
    database.run(slurm.changes("lab", [], {}, *database.shown()))
    assert set(database.qos) == {"normal", "night"}


def test_fair_shares_are_what_each_would_have_with_all_hungry():
    found = slurm.accounts_of([TeamShare("a", 10, weight=1), TeamShare("b", 10, weight=1)], {})
    assert found["a"].fairshare == found["b"].fairshare
    found = slurm.accounts_of([TeamShare("a", 30), TeamShare("b", 10)], {})
    assert found["a"].fairshare / found["b"].fairshare == (30 + 20) / (10 + 20)


def test_limits_follow_capacity(database):
    now = quotas(ALL, 14, [])
    lines = slurm.limits(ALL, now, database.shown()[0])
    assert ["modify", "qos", "where", "Name=vision-guaranteed", "set", "GrpTRES=gres/gpu=8"] in [
        line[3:] for line in lines
    ]
    database.run(lines)
    assert slurm.limits(ALL, now, database.shown()[0]) == []
    assert now["vision"] == Quota(8, 14, 8)
