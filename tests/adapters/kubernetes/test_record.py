"""What the controller keeps in the cluster: the record and the claim."""

import pytest

from ironburst.adapters.kubernetes import record
from ironburst.adapters.kubernetes.nodes import NodesRecord
from ironburst.ports import Claim, SchedulerError, WrongShape
from tests.fakes.kube_objects import SITE

LEASES, MAPS = "coordination.k8s.io/v1 leases", "v1 configmaps"
HERE = ("ironburst-system", "ironburst-lab")


def claim(client, owner, said="", stale_s=600.0, **more):
    return record.claim(client, SITE, owner, said, stale_s, **more)


def up(*names):
    return lambda kept: NodesRecord(kept.up | set(names), kept.permits)


def test_the_record_is_empty_at_first_and_keeps_what_is_written(api, client):
    assert record.read(client, SITE) == NodesRecord()
    record.write(client, SITE, up("p5-1"))
    record.write(client, SITE, up("p5-2"))
    assert record.read(client, SITE).up == {"p5-1", "p5-2"}


def test_nothing_new_is_not_written(api, client):
    record.write(client, SITE, up("p5-1"))
    record.write(client, SITE, up("p5-1"))
    assert (len(api.verbs("create")), len(api.verbs("update"))) == (1, 0)


def test_another_writer_in_between_loses_nothing(api, client):
    record.write(client, SITE, up("p5-1"))
    api.conflicts = 3
    record.write(client, SITE, up("p5-2"))
    assert record.read(client, SITE).up == {"p5-1", "p5-2"}
    api.conflicts = 99
    with pytest.raises(SchedulerError, match="changed by somebody else"):
        record.write(client, SITE, up("p5-3"))


def test_a_record_that_cannot_be_read_is_not_an_empty_one(api, client):
    api.put(MAPS, {"kind": "ConfigMap", "metadata": {"namespace": HERE[0], "name": HERE[1]}, "data": {"nodes": "[1"}})
    with pytest.raises(WrongShape, match="ConfigMap ironburst-lab, key 'nodes', can't be read"):
        record.read(client, SITE)


# ---- the claim


def test_looking_at_nobodys_site_claims_nothing(api, client):
    assert claim(client, "") == Claim("", 0.0, "")
    assert api.get(LEASES, *HERE) is None


def test_a_claim_says_who_was_there_before_and_keeps_words_where_none_are_given(api, client):
    assert claim(client, "a", "one\nline") == Claim("", 0.0, "")
    assert claim(client, "a") == Claim("a", pytest.approx(0, abs=3), "one line")
    assert claim(client, "") == Claim("a", pytest.approx(0, abs=3), "one line")


def test_anothers_claim_stands_until_it_is_stale(api, client):
    claim(client, "a", "mine")
    assert claim(client, "b", "yours").owner == "a"
    assert claim(client, "").owner == "a"
    api.skew_s = 601
    before = claim(client, "b", "yours")
    assert (before.owner, before.said) == ("a", "mine")
    assert before.age_s > 600
    assert claim(client, "") == Claim("b", pytest.approx(0, abs=3), "yours")
    assert claim(client, "a", stale_s=-1.0).owner == "b"  # taken at once
    assert claim(client, "").owner == "a"


def test_the_age_is_by_the_servers_clock_whatever_the_holder_writes(api, client):
    claim(client, "a", now=lambda: 4_000_000_000.0)  # its clock is 70 years ahead
    assert claim(client, "").age_s < 5
    claim(client, "a", now=lambda: 1_000_000.0)  # or in 1970
    assert claim(client, "").age_s < 5
    api.skew_s = 700
    assert 695 < claim(client, "").age_s < 705


def test_a_claim_from_the_future_begins_to_age_now(api, client):
    api.skew_s = 10_000
    claim(client, "a", "mine")
    api.skew_s = 0
    assert claim(client, "b").owner == "a"
    api.skew_s = 300
    assert claim(client, "") == Claim("a", pytest.approx(300, abs=3), "mine")


def test_two_that_claim_at_the_same_moment(api, client):
    """The one that writes second reads again, and finds the other."""
    claim(client, "a", "mine")
    api.skew_s = 700
    first = client.update

    def overtaken(path, body):
        client.update = first
        claim(client, "b", "faster")
        return first(path, body)

    client.update = overtaken
    assert claim(client, "c", "slower").owner == "b"
    assert claim(client, "").owner == "b"


def test_what_is_said_has_a_bound(client):
    with pytest.raises(SchedulerError, match="has 300000 bytes, 245760 are the most"):
        claim(client, "a", "x" * 300_000)
    assert claim(client, "a", "x" * 200_000).owner == ""
