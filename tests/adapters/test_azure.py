"""Azure's adapter before the lab's stand-in of ARM: its API over HTTP on the loopback."""

import base64
from dataclasses import replace

import pytest

from ironburst import ports
from ironburst.adapters.azure import errors, launching, spot
from ironburst.adapters.azure.instances import POWER
from lab.azure.world import Reservation, Size
from tests.adapters import azure_errors
from tests.adapters.looked_at import alive, ask, ids, over
from tests.contract.cloud_benches import OfAzure

KIND = OfAzure.kind
PUT = "virtual_machines.create_or_update"
CASES = [(kind, *case) for kind, cases in azure_errors.CLASSES.items() for case in cases]


@pytest.fixture
def bench():
    made = OfAzure(None)
    yield made
    made.close()


def vm_of(bench, instance):
    return bench.cloud.vm(*instance.id.split("/")[:2])


# ---- launches


def test_a_launch_has_a_group_of_its_own_and_makes_each_machine_only_where_none_is(bench):
    over(bench, count=2)
    over(bench, token="ib-2", launch="l2")
    asked = bench.cloud.asked(PUT)
    assert sorted(call.path["vmName"] for call in asked) == ["ib-1-0", "ib-1-1", "ib-2-0"]
    assert {call.path["resourceGroupName"] for call in asked} == {"ib-1", "ib-2"} == set(bench.cloud.groups)
    assert {call.headers["if-none-match"] for call in asked} == {"*"}
    assert set(bench.cloud.groups["ib-1"]["tags"]) >= {"ironburst:cluster", "ironburst:lease", "ironburst:launched"}


def test_what_is_made_beside_a_machine_goes_with_it_and_user_data_is_where_its_metadata_service_shows_it(bench):
    over(bench, market="spot", max_usd_per_hour=51.5, place=bench.place | {"identity_id": "/subscriptions/x/id"})
    (call,) = bench.cloud.asked(PUT)
    said = call.body["properties"]
    assert said["storageProfile"]["osDisk"]["deleteOption"] == "Delete"
    (nic,) = said["networkProfile"]["networkInterfaceConfigurations"]
    assert nic["properties"]["deleteOption"] == "Delete" and nic["tags"]["ironburst:lease"] == "l1"
    assert base64.b64decode(said["userData"]) == b'{"nodes": ["p5-1"]}' and "customData" not in said["osProfile"]
    assert (said["priority"], said["evictionPolicy"], said["billingProfile"]) == ("Spot", "Delete", {"maxPrice": 51.5})
    assert call.body["zones"] == ["1"] and call.body["identity"]["type"] == "UserAssigned"
    over(bench, token="ib-2", zone="eastus", place=bench.place | {"infiniband": False})
    other = bench.cloud.asked(PUT)[-1].body
    assert "zones" not in other and "virtualMachineScaleSet" not in other["properties"]
    assert not {"evictionPolicy", "billingProfile"} & other["properties"].keys()


def test_machines_with_infiniband_are_in_one_scale_set_of_their_own(bench):
    over(bench, count=2)
    over(bench, token="ib-2", launch="l2")
    sets = [vm.properties["virtualMachineScaleSet"]["id"] for vm in bench.cloud.vms.values()]
    assert len(sets) == 3 and len(set(sets)) == 2 == len(bench.cloud.scale_sets)
    (call, _) = bench.cloud.asked("virtual_machine_scale_sets.create_or_update")
    wanted = {"orchestrationMode": "Flexible", "singlePlacementGroup": True, "platformFaultDomainCount": 1}
    assert call.body["properties"] == wanted and call.body["zones"] == ["1"]


def test_a_scale_set_that_is_refused_is_a_launch_that_failed(bench):
    text = "exceeding approved quota of scale sets"
    bench.cloud.fault("virtual_machine_scale_sets.create_or_update", 409, reason="OperationNotAllowed", message=text)
    assert type(over(bench, count=2)) is ports.QuotaReached
    assert bench.cloud.made == [] and bench.cloud.left_over() == {}


FAILS = {
    "capacity": (lambda cloud: cloud.capacity.update({(KIND, "1", "Regular"): 1}), ports.InsufficientCapacity),
    "cluster": (lambda cloud: cloud.clusters.update({KIND: 1}), ports.InsufficientCapacity),
    "quota": (lambda cloud: cloud.quota.update({"standardNDSH100v5Family": 100}), ports.QuotaReached),
    "regional quota": (lambda cloud: cloud.quota.update({"cores": 100}), ports.QuotaReached),
}


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("where", ["operation", "view", "stays not"])
@pytest.mark.parametrize("what", sorted(FAILS))
def test_on_any_failure_everything_is_deleted_again_and_the_cause_is_told(bench, what, where, at_once):
    cloud, (limit, kind) = bench.cloud, FAILS[what]
    cloud.delays.create_s = cloud.delays.delete_s = 60.0
    cloud.assumed.quota_at_once = cloud.assumed.capacity_at_once = at_once
    cloud.assumed.cause_in_view, cloud.assumed.cause_in_operation = where == "view", where != "view"
    cloud.assumed.failed_stays = where != "stays not"
    limit(cloud)
    for _ in "being made", "being deleted":
        assert isinstance(ask(bench, count=2), ports.UnderWay)
        there = bench.port.instances("lab")
        assert {each.state for each in there} <= {ports.LAUNCHING}, "one on its way out would be taken for launched"
        assert there or where == "stays not", "a part of it is there, and is paid"
        cloud.passes(30 if at_once else 61)
    answer = over(bench, count=2)
    assert type(answer) is kind, answer
    assert bench.port.instances("lab") == [], "one that has ended would be taken for launched, too"
    assert cloud.left_over() == {}
    assert type(bench.port.by_token("ib-1")) is kind
    assert type(ask(bench, count=2)) is kind, "it stays so"
    made = len(cloud.made)
    assert isinstance(ask(bench, bench.connected(), count=2), ports.UnderWay), "who knows nothing of it begins again"
    assert len(cloud.made) > made


def test_which_quota_it_is_stands_in_the_text(bench):
    bench.cloud.quota["lowPriorityCores"] = 10
    answer = over(bench, market="spot")
    assert type(answer) is ports.QuotaReached and "spot cores" in str(answer)


@pytest.mark.parametrize("died", ["before its machines", "between them", "when they failed", "when they were up"])
def test_a_controller_that_died_over_a_launch_goes_on_with_it(bench, died):
    cloud = bench.cloud
    cloud.delays.create_s = cloud.delays.delete_s = 60.0
    if "machines" in died:
        cloud.fault(PUT, drop=True, times=2)
    if "between" in died:
        cloud.fault(PUT, drop=True, when=lambda call: call.path["vmName"].endswith("1"))
    if "failed" in died:
        cloud.clusters[KIND] = 1
        cloud.fault("resource_groups.delete", 503, times=1)
    ask(bench, count=2)
    cloud.passes(70)
    if "failed" in died:
        ask(bench, count=2)  # writes down why
        cloud.clusters.clear()
    answer = over(bench, bench.connected(), count=2)
    if "failed" in died:
        assert type(answer) is ports.InsufficientCapacity and cloud.left_over() == {}
        return
    assert ids(answer) == ids(alive(bench)) and len(cloud.vms) == 2 == len(cloud.made)


@pytest.mark.parametrize("status", [412, 409])
def test_whatever_azure_answers_where_a_machine_is_nothing_is_made_twice(bench, status):
    cloud = bench.cloud
    cloud.assumed.there_already = status
    cloud.fault(PUT, drop=True, after=True, times=2)
    cloud.delays.list_s = 300.0
    assert isinstance(ask(bench, count=2), ports.OutcomeUnknown)
    found = over(bench, bench.connected(), count=2)
    assert len(found) == 2 == len(cloud.vms) == len(cloud.made)


def test_a_group_that_another_has_is_never_ours(bench):
    theirs = {"name": "ib-1", "location": "eastus", "tags": {"owner": "somebody"}}
    bench.cloud.groups["ib-1"] = theirs | {"properties": {"provisioningState": "Succeeded"}}
    assert type(ask(bench)) is ports.TokenMismatch
    bench.cloud.passes(7200)
    alive(bench)
    assert bench.cloud.asked("resource_groups.delete") == [] == bench.cloud.asked(PUT)


def test_a_launch_of_which_one_has_ended_is_not_launched_again(bench):
    one, two = over(bench, count=2)
    bench.cloud.remove(vm_of(bench, one))
    assert type(ask(bench, bench.connected(), count=2)) is ports.TokenMismatch
    assert ids(bench.port.by_token("ib-1")) == [two.id] and len(bench.cloud.made) == 2


def test_a_launch_is_looked_at_a_few_times_and_then_at_the_next_tick(bench):
    bench.cloud.delays.create_s = 600.0
    assert isinstance(ask(bench), ports.UnderWay)
    looks = len(bench.cloud.asked("virtual_machines.list"))
    assert 1 <= looks <= 4
    bench.cloud.passes(10)
    ask(bench)
    assert len(bench.cloud.asked("virtual_machines.list")) == looks + 1 and len(bench.cloud.asked(PUT)) == 1


@pytest.mark.parametrize("up", [True, False])
def test_a_launch_that_nobody_asks_for_any_more_is_brought_to_its_end_by_who_looks_for_its_token(bench, up):
    cloud = bench.cloud
    cloud.delays.create_s = 60.0
    if not up:
        cloud.fault(PUT, drop=True, when=lambda call: call.path["vmName"].endswith("1"))
    ask(bench, count=2)
    with pytest.raises(ports.UnderWay):
        bench.port.by_token("ib-1")
    cloud.passes(100)
    if up:
        assert len(bench.connected().by_token("ib-1")) == 2 == len(alive(bench))
        assert ports.LAUNCHING not in {each.state for each in alive(bench)}
        return
    with pytest.raises(ports.UnderWay):
        bench.port.by_token("ib-1")
    assert cloud.asked("resource_groups.delete") == [], "somebody may work at it"
    cloud.passes(300)
    with pytest.raises(ports.UnderWay):
        bench.port.by_token("ib-1")
    cloud.passes(60)
    assert type(bench.port.by_token("ib-1")) is ports.LaunchFailed and cloud.left_over() == {}


def test_what_was_launched_by_half_and_forgotten_is_an_orphan_after_an_hour(bench):
    bench.cloud.fault(PUT, drop=True, when=lambda call: call.path["vmName"].endswith("1"))
    ask(bench, count=2)
    assert {each.state for each in alive(bench)} == {ports.LAUNCHING}
    bench.cloud.passes(3700)
    (orphan,) = alive(bench)
    assert orphan.state == "running" and bench.ended([orphan.id]) == {orphan.id}
    bench.port.instances("lab")
    bench.cloud.passes(10)
    assert bench.cloud.left_over() == {}


# ---- reservations and prices


def reserve(bench, count=1, kind="Targeted"):
    bench.cloud.reservations["held"] = Reservation(KIND, "1", count, kind)
    group = f"/subscriptions/{bench.cloud.subscription}/resourceGroups/held/providers/Microsoft.Compute"
    return {"capacity_reservation_group": f"{group}/capacityReservationGroups/held", "infiniband": kind == "Block"}


def test_an_open_reservation_is_never_eaten(bench):
    place = bench.place | {"infiniband": reserve(bench, kind="Open")["infiniband"]}
    over(bench, place=place)
    over(bench, token="ib-2", launch="l2", market="spot", place=place)
    assert [vm.reserved for vm in bench.cloud.vms.values()] == ["", ""]


@pytest.mark.parametrize(("market", "kind"), [("on-demand", "Targeted"), ("capacity-block", "Block")])
def test_nothing_is_launched_beside_the_reservation_that_a_pool_names(bench, market, kind):
    place = bench.place | reserve(bench, 2, kind)
    assert isinstance(over(bench, market=market, place=place), list)
    assert [vm.reserved for vm in bench.cloud.vms.values()] == ["held"]
    answer = over(bench, token="ib-2", launch="l2", market=market, place=place, count=2)
    assert type(answer) is ports.InsufficientCapacity and len(bench.cloud.made) == 1, "it is counted before"
    assert set(bench.cloud.groups) == {"ib-1"}


def test_a_machine_that_overflows_while_it_is_made_is_taken_back(bench):
    """Azure says nothing, and the machine runs: somebody else took the place."""
    place = bench.place | reserve(bench)

    def last_place_is_taken(call):
        bench.cloud.reservations["held"].count = 0
        return False

    bench.cloud.fault(PUT, when=last_place_is_taken)
    answer = over(bench, place=place)
    assert type(answer) is ports.InsufficientCapacity and "beside" in str(answer)
    assert len(bench.cloud.made) == 1 and bench.cloud.left_over() == {}


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"kind": "Open"}, "ReservationType"),
        ({"kind": "Targeted"}, "ReservationType"),
        ({"size": "X"}, "NoReservation"),
    ],
)
def test_a_reservation_of_another_kind_is_refused_before_anything_is_made(bench, changed, code):
    place = bench.place | reserve(bench, kind="Block")
    held = bench.cloud.reservations["held"]
    vars(held).update(changed)
    answer = ask(bench, market="capacity-block", place=place)
    assert (type(answer), answer.code) == (ports.Refused, code) and bench.cloud.groups == {}


@pytest.mark.parametrize(("usd", "kind"), [(50.6, list), (52.0, ports.TooExpensive)])
def test_spot_is_asked_for_with_the_declared_ceiling(bench, usd, kind):
    bench.cloud.spot_usd[KIND] = usd
    answer = over(bench, market="spot", max_usd_per_hour=51.0)
    assert isinstance(answer, kind) and len(bench.cloud.vms) == (kind is list)
    assert bench.cloud.left_over() == {} or kind is list


def test_spot_prices_are_linux_ones_in_all_places_of_the_region(bench):
    bench.cloud.spot_usd[KIND] = 39.2
    found = bench.port.spot_prices([KIND, "Standard_Nothing"])
    assert found == {(KIND, zone): 39.2 for zone in ("eastus", "eastus-1", "eastus-2", "eastus-3")}
    assert bench.port.spot_prices([]) == {}
    for url in (f"{bench.cloud.url}/nothing", "http://127.0.0.1:1/"):
        with pytest.raises(ports.OutcomeUnknown):
            spot.prices("eastus", [KIND], url=url)


@pytest.mark.parametrize(
    ("size", "kind"),
    [
        (Size(zones=("2",)), ports.LaunchFailed),
        (Size(restricted="NotAvailableForSubscription"), ports.LaunchFailed),
        (Size(), ports.InsufficientCapacity),
    ],
)
def test_one_code_is_no_capacity_or_never_by_the_catalogue_of_sizes(bench, size, kind):
    bench.cloud.sizes[KIND] = size
    bench.cloud.capacity[KIND, "1", "Spot"] = 0
    answer = over(bench, market="spot")
    assert (type(answer), answer.code) == (kind, "SkuNotAvailable")


# ---- what is asked for


@pytest.mark.parametrize("lacks", ["vm_size", "subnet_id", "os_disk_type", "os_disk_gb", "ssh_public_key"])
def test_a_place_that_lacks_something_is_malformed_and_says_what(bench, lacks):
    place = {key: value for key, value in bench.place.items() if key != lacks}
    answer = ask(bench, place=place)
    assert type(answer) is ports.Malformed and lacks in str(answer) and bench.cloud.calls == []


MALFORMED = {
    "user data": {"user_data": "x" * 49_153},
    "a block without a name": {"market": "capacity-block"},
    "reserved spot": {"market": "spot", "capacity_reservation_group": "/x"},
    "reserved InfiniBand": {"capacity_reservation_group": "/x"},
    "above a fabric": {"count": 101},
}


@pytest.mark.parametrize("what", sorted(MALFORMED))
def test_what_azure_never_takes_is_asked_for_never(bench, what):
    said = dict(MALFORMED[what])
    place = bench.place | {key: said.pop(key) for key in list(said) if key.startswith("capacity")}
    assert type(ask(bench, place=place, **said)) is ports.Malformed and bench.cloud.calls == []


@pytest.mark.parametrize("token", ["ib-" + 40 * "a", "X" * 64, "with space", "-"])
def test_names_are_legal_and_a_token_finds_its_group(bench, token):
    launch = launching.of(replace(bench.request(count=11), token=token), "s")
    assert launch.group == launching.group_of(token) and launch.names == launching.names_of(launch.group, 11)
    assert all(len(name) <= 64 and launching.re.fullmatch(r"[a-z0-9-]+", name) for name in launch.names)
    assert [launching.index_of(name) for name in launch.names] == list(range(11))


def test_a_zone_of_another_region_is_refused(bench):
    assert type(ask(bench, zone="westus-1")) is ports.Refused and bench.cloud.calls == []


# ---- what is shown


@pytest.mark.parametrize(("power", "state"), sorted(POWER.items()))
def test_every_power_state_may_cost_money(bench, power, state):
    (known,) = over(bench)
    vm_of(bench, known).power = power
    assert alive(bench)[0].state == state == bench.port.described([known.id])[0].state
    assert state in ports.ALIVE


def test_one_that_was_shut_down_from_inside_is_still_paid_for(bench):
    (known,) = over(bench)
    bench.cloud.stops(vm_of(bench, known))
    assert alive(bench)[0].state == "stopped"
    assert bench.ended([known.id]) == {known.id} and bench.cloud.disks == {}


def test_a_machine_that_failed_later_is_there_and_a_trouble(bench):
    (known,) = over(bench)
    vm = vm_of(bench, known)
    vm.properties["provisioningState"], vm.error = "Failed", ("VMStoppedToWarnSubscription", "unpaid")
    assert ids(alive(bench)) == [known.id]
    (trouble,) = bench.port.troubles([known.id])
    assert "VMStoppedToWarnSubscription" in trouble.text


def test_one_whose_power_is_not_said_runs_for_all_that_is_known(bench):
    (known,) = over(bench)
    bench.cloud.stops(vm_of(bench, known))
    bench.cloud.assumed.power_missing = 1
    assert alive(bench)[0].state == "running" and alive(bench)[0].state == "stopped"


def test_a_name_that_is_used_again_is_another_instance(bench):
    (old,) = over(bench)
    bench.ended([old.id])
    (new,) = over(bench, bench.connected())
    assert old.id != new.id and old.id.rpartition("/")[0] == new.id.rpartition("/")[0]
    port = bench.connected()
    assert port.described([old.id]) == [] and port.terminate([old.id]) == set()
    assert ids(alive(bench)) == [new.id] and vm_of(bench, new).properties["provisioningState"] != "Deleting"


def test_spot_that_was_evicted_is_shown_as_ended_by_the_cloud_at_the_next_list_and_its_group_goes_with_the_last(bench):
    one, two = over(bench, count=2, market="spot")
    assert len(alive(bench)) == 2
    bench.cloud.evict(vm_of(bench, one))
    assert sorted(each.state for each in bench.port.instances("lab")) == ["running", "stopping"]
    bench.cloud.passes(31)
    (ended,) = [each for each in bench.port.instances("lab") if not each.alive]
    assert (ended.id, ended.reason, ended.taken, ended.launch) == (one.id, "gone", True, "l1")
    assert bench.ended([two.id]) == {two.id}
    assert [each.taken for each in bench.port.described([two.id])] == [False]
    assert bench.cloud.left_over() == {"groups": ["ib-1"]}
    bench.port.instances("lab")
    bench.cloud.passes(10)
    assert bench.cloud.left_over() == {}


def test_a_group_whose_machines_lists_do_not_show_is_never_taken_for_an_empty_one(bench):
    over(bench, count=2)
    bench.cloud.passes(3600)
    for port in (bench.port, bench.connected()):
        bench.cloud.fault("virtual_machines.list_all", rewrite=lambda answer: {"value": []}, times=2)
        port.instances("lab")
    assert len(bench.cloud.vms) == 2 and bench.cloud.asked("resource_groups.delete") == []


def test_what_a_machine_leaves_behind_though_it_was_to_go_is_gone_with_its_group(bench):
    (known,) = over(bench)
    vm = vm_of(bench, known)
    vm.properties["storageProfile"]["osDisk"]["deleteOption"] = "Detach"
    bench.cloud.remove(vm)
    assert bench.cloud.left_over().keys() == {"disks", "groups"}
    bench.connected().instances("lab")
    bench.cloud.passes(10)
    assert bench.cloud.left_over() == {}


def test_all_pages_are_read(bench):
    bench.cloud.page, bench.cloud.delays.create_s = 7, 0.0
    found = over(bench, count=20)
    assert len(found) == 20 == len(alive(bench)) and all(each.address for each in found)
    assert len(bench.cloud.asked("virtual_machines.list_all")) == 6


def test_a_quiet_tick_asks_as_often_for_forty_machines_as_for_one(bench):
    """And a new process twice more for each launch: whether it is over, and its addresses."""

    def calls(port):
        before = len(bench.cloud.calls)
        port.troubles(ids(alive(bench, port)))
        return len(bench.cloud.calls) - before

    over(bench)
    assert calls(bench.port) == 4
    over(bench, token="ib-2", launch="l2", count=39)
    assert calls(bench.port) == 4 and len(alive(bench)) == 40
    new = bench.connected()
    assert (calls(new), calls(new)) == (8, 4)


def test_a_list_that_goes_round_is_no_list(bench):
    over(bench)
    link = f"{bench.cloud.url}/subscriptions/{bench.cloud.subscription}/providers/Microsoft.Compute/virtualMachines"
    link += "?api-version=2026-04-01"
    bench.cloud.fault("virtual_machines.list_all", rewrite=lambda answer: answer | {"nextLink": link}, times=-1)
    with pytest.raises(ports.OutcomeUnknown, match="circle"):
        bench.port.instances("lab")


MISSING_BUT_NOT_IT = {
    "a proxy": b"<html>404 page not found</html>",
    "its subscription": b'{"error": {"code": "SubscriptionNotFound", "message": "The subscription \'s\'"}}',
    "another": b'{"error": {"code": "ResourceNotFound", "message": "The Resource \'other\' was not found."}}',
    "nothing": b"",
}


@pytest.mark.parametrize("what", sorted(MISSING_BUT_NOT_IT))
def test_a_404_that_is_not_about_the_machine_proves_nothing(bench, what):
    (known,) = over(bench)
    bench.cloud.fault("virtual_machines.get", times=-1, rewrite=lambda _: MISSING_BUT_NOT_IT[what], when=_answers_404)
    for look in (bench.port.described, bench.port.terminate):
        with pytest.raises(ports.CloudError):
            look([known.id])


def _answers_404(call):
    """The stand-in keeps the status of the true answer: of one that isn't there."""
    call.path["vmName"] = "nothing"
    return True


@pytest.mark.parametrize("ask_for", ["described", "terminate", "troubles"])
def test_nothing_is_said_of_ids_that_are_not_azures(bench, ask_for):
    """That nobody knows it would be taken for a proof that it is gone."""
    with pytest.raises(ports.Refused):
        getattr(bench.port, ask_for)(["i-0123456789abcdef0"])


# ---- its end


@pytest.mark.parametrize("twice", ["conflict", "accepted"])
def test_one_on_its_way_out_may_cost_money_until_it_is_gone(bench, twice):
    bench.cloud.assumed.deleted_twice = twice
    bench.cloud.delays.delete_s = 60.0
    one, two = over(bench, count=2)
    assert bench.port.terminate([one.id]) == set() == bench.port.terminate([one.id])
    assert sorted(each.state for each in alive(bench)) == ["running", "stopping"]
    assert bench.cloud.asked("resource_groups.delete") == [], "another lives there"
    bench.cloud.passes(200)
    assert bench.port.terminate([one.id]) == {one.id} and ids(alive(bench)) == [two.id]


def test_a_whole_launch_ends_by_one_call_with_all_that_it_made(bench):
    found = over(bench, count=4)
    assert bench.ended(ids(found)) == set(ids(found))
    assert len(bench.cloud.asked("resource_groups.delete")) == 1 and bench.cloud.asked("virtual_machines.delete") == []
    assert bench.cloud.left_over() == {} == bench.cloud.scale_sets


def test_one_that_may_not_be_ended_keeps_no_other_alive(bench):
    (one,), (two,) = over(bench), over(bench, token="ib-2", launch="l2")
    name = one.id.split("/")[0]
    bench.cloud.fault(
        "resource_groups.delete", 403, reason="AuthorizationFailed",
        when=lambda call: call.path["resourceGroupName"] == name, times=-1,
    )  # fmt: skip
    with pytest.raises(ports.Refused):
        bench.port.terminate([one.id, two.id])
    bench.cloud.passes(5)
    assert ids(alive(bench)) == [one.id]


def test_a_host_that_will_be_serviced_is_a_trouble(bench):
    one, two = over(bench, count=2)
    bench.cloud.service(vm_of(bench, one), "2026-12-01T08:00:00Z")
    vm_of(bench, two).view["vmHealth"] = {"status": {"code": "HealthState/unhealthy"}}
    ill, planned = sorted(bench.port.troubles(ids((one, two))), key=lambda each: each.from_s or 0.0)
    assert (ill.instance_id, ill.from_s) == (two.id, None) and "unhealthy" in ill.text
    assert (planned.instance_id, planned.from_s) == (one.id, 1796112000.0) and "2026-12-01T08" in planned.text


def test_the_console_is_what_boot_diagnostics_kept(bench):
    (known,) = over(bench)
    assert bench.port.console(known.id) == ""
    vm_of(bench, known).console = "Linux version 6.8"
    assert bench.port.console(known.id) == "Linux version 6.8"
    with pytest.raises(ports.Refused):
        bench.port.console(bench.unknown[0])


def test_a_pools_image_is_the_newest_version_that_is_ready(bench):
    newest = bench.bakes("1.10.0")
    bench.bakes("1.9.0")
    bench.bakes("2.0.0", provisioningState="Creating")
    bench.bakes("3.0.0", publishingProfile={"excludeFromLatest": True})
    assert bench.port.image_id(f"{bench.gallery}/p5") == newest
    for other in ("/ironburst/lab/p5/image", f"{bench.gallery}/p5".replace(bench.cloud.subscription, "another")):
        with pytest.raises(ports.Refused):
            bench.port.image_id(other)


def test_notices_do_not_come_by_a_queue(bench):
    with pytest.raises(ports.Refused):
        bench.port.interruptions(["a-queue"])


# ---- errors


@pytest.mark.parametrize(("kind", "code", "text", "status"), CASES)
def test_errors_by_what_to_do_next(kind, code, text, status):
    error = errors.gravest([errors.ErrorInfo(code, text)], PUT, status)
    assert type(error) is kind and error.code == code and PUT in str(error)


def test_every_code_of_azures_pages_has_a_class():
    known = {code for _, code, _, _ in CASES} | set(azure_errors.NEUTRAL.split())
    pages = azure_errors.of_pages()
    assert [(page, code) for page, code in pages if code not in known] == [] and len({*pages}) == len(pages) > 150
    assert set(azure_errors.NEUTRAL.split()) <= errors.NEUTRAL


@pytest.mark.parametrize(("kind", "code", "text", "status"), [case for case in CASES if case[3]])
def test_they_are_the_same_over_http_and_in_a_wrapper(bench, kind, code, text, status):
    """Of a call that begins nothing."""
    bench.cloud.fault("resource_groups.create_or_update", status, reason=code, message=text)
    assert type(ask(bench)) is kind
    inner = {"code": code, "message": text}
    said = {"code": "InvalidTemplateDeployment", "message": "see details", "details": [inner]}
    assert type(errors.gravest(errors.causes(said), PUT, status)) is kind


@pytest.mark.parametrize(("kind", "code", "text", "status"), [case for case in CASES if not case[3]])
def test_a_launch_that_failed_is_never_to_be_repeated(kind, code, text, status):
    error = errors.failed(errors.gravest([errors.ErrorInfo(code, text)], PUT))
    assert error.code == code and not isinstance(error, ports.OutcomeUnknown)
    undone = ports.NeverUp if code in errors.NEVER_UP else ports.LaunchFailed
    assert type(error) is (undone if kind in (ports.Refused, ports.OutcomeUnknown) else kind)


def test_of_several_causes_the_one_that_lasts_longest_counts():
    def found(*codes):
        return type(errors.gravest([errors.ErrorInfo(code) for code in codes], PUT))

    assert found("AllocationFailed", "QuotaExceeded", "DeploymentFailed") is ports.QuotaReached
    assert found("ResourceNotFound", "ZonalAllocationFailed") is ports.InsufficientCapacity
    assert found("DeploymentFailed") is ports.Refused


def test_every_code_has_one_meaning():
    groups = [value for name, value in vars(errors).items() if name.isupper() and isinstance(value, set)]
    assert len(groups) == 9 and sum(map(len, groups)) == len(set().union(*groups))


def test_who_was_slowed_down_asks_again_when_azure_said(bench):
    bench.cloud.fault(PUT, 429, reason="TooManyRequests", headers={"Retry-After": "30"})
    assert type(ask(bench)) is ports.Throttled
    asked = len(bench.cloud.asked(PUT))
    assert type(ask(bench)) is ports.Throttled and len(bench.cloud.asked(PUT)) == asked
    bench.cloud.passes(31)
    assert isinstance(over(bench), list)
