"""With Kueue as the queue the teams' guarantees are quotas of ClusterQueues, which follow what is in service."""

import copy

import pytest

from ironburst import kubernetes_rights as rights
from ironburst.adapters.kubernetes import Kueue
from ironburst.ports import SchedulerError
from ironburst.shares import Quota, TeamShare, kueue, quotas
from tests.fakes.kube_objects import SITE
from tests.fakes.kueue_api import API, QUEUES, KueueApi

SHARES = [TeamShare("vision", 8, over_quota=True, most=16), TeamShare("nlp", 4, over_quota=False, nodes=("own-1",))]
COHORTS = f"{API} cohorts"


@pytest.fixture
def api():
    api = KueueApi()
    for each in kueue.objects(SHARES, 16, {"nlp": 8}, quotas(SHARES, 16, []), rented_gpus=24, check="ironburst-lab"):
        plural = {"ClusterQueue": QUEUES, "Cohort": COHORTS}.get(each["kind"])
        if plural:
            api.put(plural, copy.deepcopy(each))
    rules = rights.cluster("kueue", "ironburst-lab", teams=("vision", "nlp"))
    api.allowed = lambda verb, group, resource, _, name: any(
        (rule.group, resource in rule.resources, verb in rule.verbs) == (group, True, True)
        and (not rule.names or name in rule.names)
        for rule in rules
    )
    return api


@pytest.fixture
def kube(client):
    it = Kueue(client, SITE, first_s=10.0)
    yield it
    it.close()


def said(api, plural, name):
    """{flavor: its quota of GPUs}"""
    spec = next(raw for key, raw in api.objects.items() if key[0] == plural and key[-1] == name)["spec"]
    groups = [group for group in spec["resourceGroups"] if group["coveredResources"] == [kueue.GPU]]
    return {
        flavor["name"]: {key: value for key, value in flavor["resources"][0].items() if key != "name"}
        for flavor in groups[0]["flavors"]
    }


def test_with_nodes_away_guarantees_are_less_and_nothing_else_changes(api, kube):
    before = {name: said(api, QUEUES, name) for name in ("vision", "nlp")}
    kube.limit(SHARES, {}, 9)
    assert said(api, QUEUES, "vision")[kueue.SHARED] == {"nominalQuota": "6", "borrowingLimit": "10"}
    assert said(api, QUEUES, "nlp")[kueue.SHARED] == {"nominalQuota": "3", "borrowingLimit": "0"}
    assert said(api, COHORTS, kueue.COHORT) == {
        kueue.SHARED: {"nominalQuota": "0"},
        kueue.RENTED: {"nominalQuota": "24"},
    }
    for name, quota in before.items():
        now = said(api, QUEUES, name)
        assert {**now, kueue.SHARED: None} == {**quota, kueue.SHARED: None} and len(now) == len(quota)
    writes = len(api.verbs("patch"))
    kube.limit(SHARES, {}, 9)
    assert (writes, len(api.verbs("patch"))) == (3, 3), "what is said already isn't written"
    kube.limit(SHARES, {}, 16)
    assert {name: said(api, QUEUES, name) for name in before} == before
    assert said(api, COHORTS, kueue.COHORT)[kueue.SHARED] == {"nominalQuota": "4"}


@pytest.mark.parametrize("gpus", [0, 5, 12, 1012, 16000])
def test_no_more_is_promised_than_is_there(gpus):
    numbers = [each["nominalQuota"] for each in kueue.live(SHARES, gpus).values()]
    assert sum(int(each.replace("k", "000")) for each in numbers) == gpus


def test_a_thousand_is_written_as_kueue_writes_it_back():
    """Its typed client does with its next update: 1k. Else each tick would write it anew."""
    (cohort,) = (quota for (plural, _), quota in kueue.live(SHARES, 1012).items() if plural == "cohorts")
    assert cohort == {"nominalQuota": "1k"}


def test_a_queue_that_is_not_there_is_told_and_the_others_are_written(api, kube):
    api.remove(QUEUES, "", "vision")
    with pytest.raises(
        SchedulerError, match="no clusterqueues/vision with flavor ironburst-shared: apply `ironburst sh"
    ):
        kube.limit(SHARES, {}, 9)
    assert said(api, QUEUES, "nlp")[kueue.SHARED]["nominalQuota"] == "3"


def test_a_queue_of_that_name_which_is_somebody_elses_is_left_alone(api, kube):
    other = {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": []}]}
    api.edit(QUEUES, "", "vision", lambda raw: raw.update(spec=other))
    with pytest.raises(SchedulerError, match="no clusterqueues/vision with flavor"):
        kube.limit(SHARES, {"vision": Quota(6, 2)}, 9)
    (raw,) = (raw for key, raw in api.objects.items() if key[0] == QUEUES and key[-1] == "vision")
    assert raw["spec"] == other
