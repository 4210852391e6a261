"""What a controller that is killed for ever leaves in Azure: nothing, by the reaper's program (components/azure), run
by the lab's interpreter of workflows on the stand-in of ARM, in virtual time. A machine that is off, within a run; and
what it must never touch.
"""

import json
import urllib.error
import urllib.request

import pytest

from components.azure import reaper
from ironburst.adapters.azure.launching import UNTIL, moment
from ironburst.ports import UnderWay
from lab.azure.workflows import Run
from tests.contract.cloud_benches import OfAzure

EVERY_S = reaper.EVERY_MIN * 60
LIMIT_S, AHEAD_S = 7200, 300
DELETE_S = 240.0


@pytest.fixture
def bench(monkeypatch):
    bench = OfAzure(monkeypatch)
    bench.cloud.delays.delete_s = DELETE_S
    yield bench
    bench.cloud.close()
    assert bench.cloud.wrong == []


def send(method, uri, audience, token="reaper"):
    assert audience == "https://management.azure.com/"
    request = urllib.request.Request(uri, method=method, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def reap(cloud, cluster="lab", wait=lambda _: None):
    """One run; what failed in it."""
    return Run(reaper.definition(cluster, cloud.subscription, "/its/id", cloud.url), send, cloud.now, wait).failed


def alone(cloud, seconds, each=lambda _: None):
    """Nobody but the reaper lives; when nothing was left, in seconds from now (None: something is)."""
    for look in range(int(seconds / EVERY_S)):
        if cloud.left_over() == {}:
            return look * EVERY_S
        each(look)
        assert reap(cloud) == {}
        cloud.passes(EVERY_S)
    return None if cloud.left_over() else seconds


def launched(bench, **changed):
    """All of it, up."""
    while True:
        (answer,) = bench.ask(bench.request(**{"hard_limit_s": LIMIT_S} | changed))
        if not isinstance(answer, UnderWay):
            assert isinstance(answer, list), answer
            return answer
        bench.cloud.passes(30)


def test_without_a_controller_no_machine_disk_interface_or_group_is_left_after_the_declared_time(bench):
    """The hard limit from the launch on, a run of the reaper, and the deletion."""
    launched(bench, count=3)
    gone_s = alone(bench.cloud, LIMIT_S + 3600)
    assert gone_s is not None and LIMIT_S < gone_s <= LIMIT_S + EVERY_S + DELETE_S + EVERY_S


def test_it_is_counted_from_the_last_heartbeat(bench):
    nodes = launched(bench, count=2)
    for _ in range(40):  # 200 minutes with a controller: longer than the limit
        bench.port.prolong({node.id: bench.cloud.now() + LIMIT_S for node in nodes})
        bench.cloud.passes(300)
        assert reap(bench.cloud) == {}
    assert len(bench.cloud.vms) == 2
    gone_s = alone(bench.cloud, LIMIT_S + 3600)
    assert gone_s is not None and LIMIT_S - 300 < gone_s <= LIMIT_S + AHEAD_S + EVERY_S + DELETE_S + EVERY_S


def off(bench, **changed):
    """A launch's machines, which their guests have shut down."""
    ids = {each.id.split("/")[1] for each in launched(bench, **changed)}
    machines = [vm for vm in bench.cloud.vms.values() if vm.name in ids]
    for vm in machines:
        bench.cloud.stops(vm)
    return machines


def test_a_machine_that_is_off_is_gone_after_the_next_run_and_its_neighbour_stays(bench):
    """Of a gang, on the day before its time is over: with its disk and its interface."""
    launched(bench, count=2, hard_limit_s=86_400)
    one, other = bench.cloud.vms.values()
    bench.cloud.stops(one)
    assert reap(bench.cloud) == {}
    bench.cloud.passes(DELETE_S)
    assert list(bench.cloud.vms.values()) == [other] and other.power == "running"
    assert len(bench.cloud.disks) == len(bench.cloud.nics) == 1
    assert reap(bench.cloud) == {} and len(bench.cloud.asked("virtual_machines.delete")) == 1


def test_a_machine_that_is_off_is_deleted_once_however_long_that_takes(bench):
    bench.cloud.delays.delete_s = 3 * EVERY_S
    off(bench)
    for _ in range(3):
        assert reap(bench.cloud) == {}
        bench.cloud.passes(EVERY_S)
    assert len(bench.cloud.asked("virtual_machines.delete")) == 1 and bench.cloud.vms == {}


def test_of_many_that_are_off_one_that_cannot_be_deleted_keeps_no_other(bench):
    """Lists with pages; one that lacks the power of a machine, which its page says it may; and a lock."""
    bench.cloud.page, bench.cloud.assumed.power_missing = 2, 1
    for n in range(5):
        off(bench, token=f"ib-{n}")
    bench.cloud.fault("virtual_machines.delete", 409, reason="ScopeLocked", times=1)
    assert list(reap(bench.cloud)) == ["off_end", "off_still", "off_each"]  # of its first page
    bench.cloud.passes(EVERY_S)
    assert len(bench.cloud.vms) == 2
    assert reap(bench.cloud) == {}
    bench.cloud.passes(EVERY_S)
    assert bench.cloud.vms == {}


@pytest.mark.parametrize("call", ["virtual_machines.list_all", "virtual_machines.get"])
def test_what_cannot_be_looked_at_is_not_deleted_and_groups_end_all_the_same(bench, call):
    off(bench)
    bench.cloud.passes(LIMIT_S + 60)
    bench.cloud.fault(call, 500, times=1)
    assert reap(bench.cloud) and bench.cloud.asked("virtual_machines.delete") == []
    bench.cloud.passes(DELETE_S)
    assert bench.cloud.left_over() == {}


def spared(bench):
    assert reap(bench.cloud) == {} and not bench.cloud.asked("virtual_machines.delete") and bench.cloud.vms


@pytest.mark.parametrize(
    "tags",
    [
        {},
        {"ironburst:cluster": "lab"},  # a fixed node, or a build of an image: its disk is copied when it is off
        {"ironburst:cluster": "lab-x", "ironburst:lease": "l1"},
    ],
)
def test_a_machine_that_is_off_and_no_lease_of_ours_stays(bench, tags):
    (vm,) = off(bench)
    vm.raw["tags"] = tags
    spared(bench)


def test_a_machine_that_is_being_made_is_off_only_for_a_moment_and_stays(bench):
    """ "The Stopped state might also be observed briefly during VM creation" (States and billing status)."""
    bench.cloud.assumed.off_while_made, bench.cloud.delays.create_s = True, 400
    (answer,) = bench.ask(bench.request(hard_limit_s=LIMIT_S))
    assert isinstance(answer, UnderWay)
    spared(bench)
    bench.cloud.passes(400)
    spared(bench)
    assert launched(bench)


def test_a_machine_that_somebody_starts_again_meanwhile_stays(bench):
    """ "Start and restart fall under the updating state" (the same page)."""
    (vm,) = off(bench)
    vm.properties["provisioningState"] = "Updating"
    spared(bench)


def test_a_machine_that_runs_again_within_a_minute_stays(bench):
    """One that rebooted or was moved; or the list was late."""
    (vm,) = off(bench)
    waited = []

    def started(seconds):
        waited.append(seconds)
        vm.power = "running"

    assert reap(bench.cloud, wait=started) == {} and waited == [60.0]
    assert bench.cloud.vms and bench.cloud.asked("virtual_machines.delete") == []


def test_a_machine_that_is_deallocated_is_paid_for_no_more_and_waits_for_its_group(bench):
    launched(bench)
    for vm in bench.cloud.vms.values():
        bench.cloud.deallocates(vm)
    spared(bench)


def test_a_controller_that_comes_back_takes_what_was_ended_for_gone(bench):
    """It ends what is left of the launch; no machine of it is shown."""
    nodes = launched(bench, count=2)
    for vm in bench.cloud.vms.values():
        bench.cloud.stops(vm)
    reap(bench.cloud)
    bench.cloud.passes(DELETE_S)
    back = bench.connected()
    assert back.instances("lab") == [] and back.described([node.id for node in nodes]) == []
    bench.cloud.passes(DELETE_S)
    assert bench.cloud.left_over() == {}


def test_a_launch_that_its_controller_never_saw_whole_goes_too(bench):
    bench.cloud.delays.create_s = 1e9
    (answer,) = bench.ask(bench.request(count=2, hard_limit_s=LIMIT_S))
    assert isinstance(answer, UnderWay)
    assert alone(bench.cloud, LIMIT_S + 3600) is not None


def test_a_heartbeat_costs_a_call_a_group_only_when_its_end_is_near(bench):
    nodes = launched(bench, count=3)
    bench.cloud.calls.clear()
    for _ in range(20):  # minutes
        bench.port.prolong({node.id: bench.cloud.now() + LIMIT_S for node in nodes})
        bench.cloud.passes(60)
    assert [call.name for call in bench.cloud.calls] == ["tags.update_at_scope"] * len(bench.cloud.calls)
    assert 3 <= len(bench.cloud.calls) <= 5


def test_a_lease_that_is_gone_keeps_no_other_from_being_prolonged(bench):
    one, other = launched(bench, token="ib-1"), launched(bench, token="ib-2")
    bench.port.terminate([one[0].id])
    bench.cloud.passes(DELETE_S)
    bench.port.prolong({each.id: 4e9 for each in (*one, *other)})
    (group,) = bench.cloud.groups.values()
    assert group["tags"][UNTIL] == moment(4e9 + AHEAD_S)


@pytest.mark.parametrize(
    "tags",
    [
        {},
        {"ironburst:cluster": "lab"},
        {"ironburst:cluster": "lab", UNTIL: ""},
        {"ironburst:cluster": "lab", UNTIL: "0"},
        {"ironburst:cluster": "lab", UNTIL: "never"},
        {"ironburst:cluster": "lab", UNTIL: "2999-01-01T00:00:00Z"},
        {"ironburst:cluster": "lab-x", UNTIL: "2020-01-01T00:00:00Z"},
        {UNTIL: "2020-01-01T00:00:00Z"},
    ],
)
def test_what_is_not_ours_or_has_no_end_that_is_over_stays(bench, tags):
    launched(bench)
    group = next(iter(bench.cloud.groups.values()))
    other = group | {"name": "theirs", "tags": tags, "id": bench.cloud.id("resourceGroups", "theirs")}
    bench.cloud.groups["theirs"] = other
    bench.cloud.groups.pop(group["name"].lower())
    assert reap(bench.cloud) == {} and not bench.cloud.asked("resource_groups.delete")


def test_lists_with_pages_and_a_refusal_keep_no_other_group(bench):
    """A group with a lock, for one."""
    bench.cloud.page, bench.cloud.assumed.deleted_twice = 2, "conflict"
    for n in range(5):
        launched(bench, token=f"ib-{n}")
    bench.cloud.passes(LIMIT_S + 60)
    bench.cloud.fault("resource_groups.delete", 409, reason="ScopeLocked", times=1)
    assert list(reap(bench.cloud)) == ["end", "each"]  # a loop ends as its last round does
    bench.cloud.passes(EVERY_S)
    assert len(bench.cloud.groups) == 1
    reap(bench.cloud)
    bench.cloud.passes(EVERY_S)
    assert bench.cloud.left_over() == {}


def test_a_list_that_fails_ends_nothing_and_the_next_run_is_whole(bench):
    launched(bench)
    bench.cloud.passes(LIMIT_S + 60)
    bench.cloud.fault("resource_groups.list", 500, times=1)
    assert list(reap(bench.cloud)) == ["page", "pages"] and len(bench.cloud.groups) == 1
    assert reap(bench.cloud) == {}
    bench.cloud.passes(DELETE_S)
    assert bench.cloud.left_over() == {}


def test_what_a_controller_prolongs_in_this_moment_is_judged_by_its_tag_alone(bench):
    """The tag is one of several; whoever writes another one meanwhile takes nothing back."""
    nodes = launched(bench)
    bench.cloud.passes(LIMIT_S - 60)
    bench.port.prolong({nodes[0].id: bench.cloud.now() + LIMIT_S})
    bench.port._launches.tag(nodes[0].id.partition("/")[0], "ironburst:launched", "yes")
    bench.cloud.passes(120)
    assert reap(bench.cloud) == {} and len(bench.cloud.vms) == 1
