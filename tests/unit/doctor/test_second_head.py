"""What two heads share, as the doctor sees it: each way in which it may be none."""

import copy

import pytest

from ironburst.doctor import hosts, second_head
from ironburst.document import SecondHead
from tests.playbooks import sample

SECOND = SecondHead(head="head2", address="10.78.0.9", state="/srv/heads", ledger="postgresql://i@db/i")
DOCUMENT = sample.lab_document()
DOCUMENT = DOCUMENT.model_copy(
    update={
        "scheduler": DOCUMENT.scheduler.model_copy(update={"second_head": SECOND}),
        "hosts": [*DOCUMENT.hosts, DOCUMENT.host("head").model_copy(update={"name": "head2", "address": "10.78.0.9"})],
    }
)
# As an NFS of a filer is seen: one source, and the same inode on both
GOOD = {"source": "nas:/heads", "kind": "nfs4", "writable": True, "file": "7 206 1796000000"}


def found(**changes):
    """(state, what is seen) where the answers of these heads are otherwise."""
    states = {name: {**GOOD, **changes.get(name, {})} for name in ("head", "head2")} | {"dgx01": None}
    ((state, seen),) = {(each.state, each.seen) for each in second_head.compared(DOCUMENT.scheduler, states)}
    return state, seen


def test_both_heads_are_asked_and_nobody_else():
    asked = hosts.questions(DOCUMENT, "00")
    assert {name for name, question in asked.items() if "state" in question} == {"head", "head2"}
    assert not any("state" in question for question in hosts.questions(sample.lab_document(), "00").values())
    assert found() == ("ok", "/srv/heads is one on both")
    assert not list(second_head.compared(sample.lab_document().scheduler, {"head": None}))


@pytest.mark.parametrize("accounting", [None, "mysql://slurm@db/slurm_acct"])
def test_each_head_is_asked_for_the_backups_that_it_makes(accounting):
    scheduler = DOCUMENT.scheduler.model_copy(
        update={"second_head": SECOND.model_copy(update={"accounting": accounting})}
    )
    asked = hosts.questions(DOCUMENT.model_copy(update={"scheduler": scheduler}), "00")
    both = {"ironburst-slurm-backup", "ironburst-backup"}
    assert {name: {*question["backups"]} for name, question in asked.items() if "backups" in question} == {
        "head": both,
        "head2": both if accounting else {"ironburst-backup"},
    }


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ({"kind": None}, "head2: nothing is mounted at /srv/heads"),
        ({"writable": None}, "head2: /srv/heads (nas:/heads) doesn't answer in 5 s"),
        ({"writable": False}, "head2: /srv/heads (nas:/heads) is mounted read-only"),
        (
            {"kind": "ext4", "source": "/dev/sdb1"},
            "head2: /srv/heads is /dev/sdb1 (ext4), which dies with one host",
        ),
        ({"file": "9 206 1796000000"}, "the heads see two files at /var/lib/ironburst/ledger.url"),
        ({"file": None}, "the heads see two files at /var/lib/ironburst/ledger.url"),
    ],
)
def test_a_folder_that_is_none_of_both_is_seen_and_named(changes, seen):
    state, said = found(head2=changes)
    assert state == "fail" and said.startswith(seen)


def test_a_head_that_is_dead_says_nothing_of_it():
    states = {"head2": copy.copy(GOOD)}
    assert [each.state for each in second_head.compared(DOCUMENT.scheduler, states)] == ["ok"]
