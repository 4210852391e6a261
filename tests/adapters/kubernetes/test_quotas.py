"""The teams' ResourceQuotas: what changes with the time is written, by the rights that the controller has."""

import pytest

from ironburst.adapters.kubernetes import Kubernetes
from ironburst.ports import SchedulerError
from ironburst.shares import Quota, TeamShare, kubernetes
from ironburst.shares.model import OVER
from lab.system import wait_for
from tests.fakes.kube_api import Refusal
from tests.fakes.kube_objects import SITE, may, pod

QUOTAS = "v1 resourcequotas"
SHARES = [TeamShare("vision", 8, most=16), TeamShare("nlp", 4)]
NOW = {"vision": Quota(6, 2, short=2), "nlp": Quota(4, 2)}


@pytest.fixture
def kube(api, client):
    api.allowed = may
    for each in kubernetes.quotas_of(SHARES, {}, {"vision": Quota(8, 12), "nlp": Quota(4, 2)}):
        api.put(QUOTAS, each)
    it = Kubernetes(client, SITE, first_s=10.0)
    yield it
    it.close()


def hard(api):
    """{(namespace, quota): GPUs}"""
    return {key[1:]: next(iter(raw["spec"]["hard"].values())) for key, raw in api.objects.items() if key[0] == QUOTAS}


def test_what_changed_is_written_and_nothing_else(api, kube):
    before = hard(api)
    kube.limit(SHARES, NOW, 12)
    assert dict(hard(api).items() - before.items()) == {
        ("vision", "ironburst-guaranteed"): "6",
        ("vision", "ironburst-over-quota"): "2",
    }
    assert len(api.verbs("patch")) == 2
    kube.limit(SHARES, NOW, 12)
    assert len(api.verbs("patch")) == 2 and api.verbs("list") == []


def test_what_others_wrote_is_written_anew(api, kube):
    kube.limit(SHARES, NOW, 12)
    api.edit(QUOTAS, "nlp", "ironburst-guaranteed", lambda raw: raw["spec"].update(hard={}))
    kube.limit(SHARES, NOW, 12)
    assert hard(api)["nlp", "ironburst-guaranteed"] == "4"


def test_a_quota_that_is_not_there_is_told_and_the_others_are_written(api, kube):
    api.remove(QUOTAS, "vision", "ironburst-guaranteed")
    with pytest.raises(SchedulerError, match="vision has no ResourceQuota ironburst-guaranteed: apply `ironburst sh"):
        kube.limit(SHARES, NOW, 12)
    assert hard(api)["vision", "ironburst-over-quota"] == "2"


def test_a_right_that_is_missing_is_named(api, kube):
    api.allowed = lambda verb, *rest: verb != "patch"
    with pytest.raises(SchedulerError, match="patch resourcequotas ironburst-guaranteed in namespace vision"):
        kube.limit(SHARES, NOW, 12)


def test_another_writer_in_between_is_no_failure(api, kube):
    api.conflicts = 1
    kube.limit(SHARES, NOW, 12)
    assert hard(api)["vision", "ironburst-guaranteed"] == "6"


def test_an_api_server_that_fails_is_asked_again_the_next_time(api, kube):
    api.fail(Refusal(500, "InternalError", "etcd is away"), when=lambda call: call[0] == "patch")
    with pytest.raises(SchedulerError, match="etcd is away"):
        kube.limit(SHARES, NOW, 12)
    kube.limit(SHARES, NOW, 12)
    assert hard(api)["vision", "ironburst-guaranteed"] == "6"


def test_what_a_pod_counts_in_is_its_class(api, kube):
    api.put("v1 pods", pod("plain", ns="vision"))
    api.put("v1 pods", pod("over", ns="vision", priorityClassName=kubernetes.OVER_QUOTA))
    seen = wait_for(lambda: len((seen := kube.observe()).jobs) == 2 and seen, 10.0, "two jobs", pause=0.01)
    assert [seen.shares.get(job.id) for job in sorted(seen.jobs, key=lambda job: job.name)] == [OVER, None]
