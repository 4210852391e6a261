"""Azure's adapter before the lab's stand-in of ARM: what is asked for, and what becomes of a launch."""

import base64
from dataclasses import replace

import pytest

from ironburst import ports
from ironburst.adapters.azure import launching, spot
from lab.azure.world import Reservation, Size
from tests.adapters.looked_at import alive, ask, ids, over
from tests.contract.cloud_benches import OfAzure

KIND = OfAzure.kind
PUT = "virtual_machines.create_or_update"


@pytest.fixture
def bench():
    made = OfAzure(None)
    yield made
    made.close()


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
    bench.cloud.remove(bench.cloud.vm(*one.id.split("/")[:2]))
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
