"""Every drift that Ansible would repair is seen by the probe, on a real host; and Ansible does repair them (slow)."""

import json

import pytest

from ironburst.convergence import host_facts, receipts
from ironburst.system import sent_program
from tests.lab.drifts import DRIVER, all_drifts, apart, seen_only
from tests.sites import converge

pytestmark = pytest.mark.lab
NODE = "dgx01"


def question(inside):
    """The probe as the converge sends it, and what the receipt has recorded."""
    folder = inside.site.dir / "run" / "state" / "receipts"
    known = json.loads((folder / f"{NODE}.json").read_text())
    salt = (folder / "salt").read_text().strip()
    return sent_program.text(host_facts, {**known["watch"], "salt": salt, "unit_wait_s": 10}), known


def test_every_drift_is_seen(inside, converged):
    program, known = question(inside)
    drifts = all_drifts() + seen_only()
    sent = json.dumps([program, [[drift.seed, drift.undo] for drift in drifts]])
    done = inside.site.ssh(NODE, ["python3", "-c", DRIVER], stdin=sent, timeout=300)
    first, *answers, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert known["unwatched"] == [] and receipts.differences(known["state"], first) == []
    unseen = [
        drift.name
        for drift, facts in zip(drifts, answers, strict=True)
        if not receipts.differences(known["state"], facts)
    ]
    assert unseen == []
    assert receipts.differences(known["state"], last) == []  # every drift was undone: what was seen was that drift
    assert len(all_drifts()) >= 60


@pytest.mark.slow
def test_ansible_repairs_every_one_of_them(inside, converged):
    """Groups of drifts at once; after one converge the host is as its receipt said."""
    program, known = question(inside)
    for group in apart(all_drifts()):
        inside.site.ssh(NODE, " && ".join(drift.seed for drift in group), timeout=120)
        assert converge(inside, "--limit", NODE, "--share", "100%")["hosts"][NODE]["state"] == "converged"
        done = inside.site.ssh(NODE, ["python3", "-I", "-S", "-"], stdin=program, timeout=120)
        facts = sent_program.answer(host_facts, done.stdout)
        assert receipts.differences(known["state"], facts) == [], [drift.name for drift in group]
        inside.site.ssh(NODE, "rm -rf /root/drift-backup*")


def test_drifts_of_one_thing_are_never_seeded_together():
    groups = apart(all_drifts())
    assert sum(map(len, groups)) == len(all_drifts())
    assert all(len({drift.thing for drift in group}) == len(group) for group in groups)
