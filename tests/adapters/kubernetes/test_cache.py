"""One list, then a watch: what is dropped, late, silent or expired never becomes a wrong queue."""

import pytest

from ironburst.adapters.kubernetes import cache as caches
from ironburst.adapters.kubernetes import objects
from ironburst.adapters.kubernetes.cache import Cache, Kind
from ironburst.ports import SchedulerError
from lab.system import wait_for
from tests.fakes.kube_api import Refusal
from tests.fakes.kube_objects import node

GONE = Refusal(410, "Expired", "The provided continue parameter is too old")
BROKEN = Refusal(500, "InternalError", "etcdserver: request timed out")
NODES = Kind("nodes", ("/api/v1/nodes",), objects.read_node)


@pytest.fixture
def cached(client, monkeypatch):
    monkeypatch.setattr(caches, "_RETRY_S", (0.01, 0.05))
    made = []

    def make(*kinds, **more):
        made.append(Cache(client, list(kinds or (NODES,)), **{"silent_s": 5.0, **more}))
        return made[-1]

    yield make
    for each in made:
        each.close()


def until(true):
    return wait_for(true, 10.0, "what was waited for", pause=0.01)


def names(cache):
    return sorted(cache.copies()["nodes"])


def lists(api):
    return len(api.verbs("list"))


def test_it_lists_once_in_pages_and_then_follows(api, cached, monkeypatch):
    monkeypatch.setattr(caches, "_PAGE", "2")
    for n in range(5):
        api.put("v1 nodes", node(f"n{n}"))
    cache = cached()
    assert names(cache) == ["n0", "n1", "n2", "n3", "n4"]
    assert lists(api) == 3
    api.put("v1 nodes", node("n5"))
    api.remove("v1 nodes", "", "n0")
    api.edit("v1 nodes", "", "n1", lambda raw: raw["spec"].update(unschedulable=True))
    until(lambda: names(cache) == ["n1", "n2", "n3", "n4", "n5"] and cache.copies()["nodes"]["n1"].cordoned)
    assert lists(api) == 3


def test_a_dropped_stream_goes_on_where_it_was(api, cached):
    api.put("v1 nodes", node("n0"))
    cache = cached()
    names(cache)
    for n in range(1, 4):
        watches = len(api.verbs("watch"))
        api.drop_streams()
        api.put("v1 nodes", node(f"n{n}"))
        until(lambda n=n: f"n{n}" in names(cache))
        until(lambda watches=watches: len(api.verbs("watch")) > watches)
    assert lists(api) == 1


def test_a_version_that_expired_is_listed_anew_and_what_went_meanwhile_is_gone(api, cached):
    for name in ("n0", "n1"):
        api.put("v1 nodes", node(name))
    cache = cached()
    names(cache)
    with api.lock:
        api.drop_streams()
        api.remove("v1 nodes", "", "n0")
        api.compact()
    until(lambda: names(cache) == ["n1"])
    assert lists(api) == 2


def test_bookmarks_keep_a_quiet_kind_from_expiring(api, cached):
    api.put("v1 nodes", node("n0"))
    cache = cached()
    names(cache)
    api.put("v1 configmaps", {"metadata": {"name": "x", "namespace": "a"}})  # others write; nodes are quiet
    until(lambda: cache._of["nodes"]._version == str(api.version))
    with api.lock:
        api.compact()
        api.drop_streams()
    watches = len(api.verbs("watch"))
    until(lambda: len(api.verbs("watch")) > watches)
    api.put("v1 nodes", node("n1"))
    until(lambda: names(cache) == ["n0", "n1"])
    assert lists(api) == 1


def test_a_stream_without_a_word_is_opened_again(api, cached):
    cache = cached(silent_s=0.5)
    names(cache)
    until(lambda: len(api.verbs("watch")) == 1)
    api.muted = True
    until(lambda: len(api.verbs("watch")) >= 2)
    api.muted = False
    api.put("v1 nodes", node("n1"))
    until(lambda: names(cache) == ["n1"])
    assert lists(api) == 1


def test_a_page_that_expires_begins_the_list_anew(api, cached, monkeypatch):
    monkeypatch.setattr(caches, "_PAGE", "1")
    for n in range(3):
        api.put("v1 nodes", node(f"n{n}"))
    pages = []

    def second(call):
        pages.append(call)
        return len(pages) == 2

    api.fail(GONE, when=second)
    assert names(cached()) == ["n0", "n1", "n2"]
    assert lists(api) == 5  # two, then three


def test_before_the_first_whole_lists_nothing_is_said(api, cached):
    api.fail(BROKEN, 10_000)
    with pytest.raises(SchedulerError, match=r"the nodes of the cluster aren't known yet: .*etcdserver"):
        cached().copies(first_s=0.3)
    api.faults.clear()


def test_a_right_that_is_missing_is_what_it_says(api, cached):
    api.allowed = lambda verb, *_: verb != "watch"
    cache = cached(broken_s=0.05)
    until(lambda: _says(cache, "no right to watch nodes"))
    api.allowed = None
    until(lambda: not _says(cache, "no right to watch nodes"))
    assert names(cache) == [] and lists(api) == 1


def _says(cache, words):
    try:
        cache.copies()
    except SchedulerError as error:
        return words in str(error)
    return False


def test_a_watch_that_stays_broken_is_too_old_and_comes_back(api, cached):
    api.put("v1 nodes", node("n0"))
    cache = cached(broken_s=0.2)
    names(cache)
    until(lambda: api.verbs("watch"))
    api.fail(BROKEN, 10_000)
    api.drop_streams()
    until(lambda: _says(cache, "s old: "))
    api.faults.clear()
    until(lambda: not _says(cache, "s old: "))
    assert names(cache) == ["n0"]


def test_an_api_that_a_cluster_lacks_is_no_trouble_where_it_may_lack(api, cached):
    paths = ("/apis/scheduling.k8s.io/v1beta1/podgroups", "/apis/scheduling.k8s.io/v1alpha2/podgroups")
    group = {"metadata": {"name": "g", "namespace": "a"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    api.put("scheduling.k8s.io/v1alpha2 podgroups", group)
    older = cached(Kind("podgroups", paths, objects.read_group, may_lack=True)).copies()
    assert older["podgroups"]["a/g"].least == 2
    none = cached(Kind("podgroups", paths[:1], objects.read_group, may_lack=True)).copies()
    assert none == {"podgroups": {}}
    needed = cached(Kind("podgroups", paths[:1], objects.read_group))
    with pytest.raises(SchedulerError, match=r"has no podgroups of scheduling\.k8s\.io/v1beta1"):
        needed.copies(first_s=0.3)


def test_what_we_wrote_is_seen_at_once_and_an_older_word_does_not_undo_it(api, cached):
    first = api.put("v1 nodes", node("n0"))
    cache = cached()
    names(cache)
    api.muted = True
    newer = {**first, "spec": {"unschedulable": True}, "metadata": {**first["metadata"], "resourceVersion": "999"}}
    cache.note("nodes", newer)
    assert cache.copies()["nodes"]["n0"].cordoned
    api.muted = False
    api.edit("v1 nodes", "", "n0", lambda raw: raw["metadata"]["labels"].update(a="b"))  # version < 999
    api.put("v1 nodes", node("n1"))
    until(lambda: "n1" in names(cache))
    assert cache.copies()["nodes"]["n0"].cordoned
    cache.forget("nodes", "n0")
    assert names(cache) == ["n1"]


def test_pods_that_ended_are_deleted_to_who_selects_the_others(api, cached):
    from ironburst.adapters.kubernetes.queue import kinds
    from tests.fakes.kube_objects import SITE, pod

    api.put("v1 pods", pod("a", node="dgx01"))
    api.put("v1 pods", pod("b"))
    cache = cached(kinds(SITE)[0])
    assert sorted(cache.copies()["pods"]) == ["team-a/a", "team-a/b"]
    api.edit("v1 pods", "team-a", "a", lambda raw: raw["status"].update(phase="Succeeded"))
    until(lambda: sorted(cache.copies()["pods"]) == ["team-a/b"])
