"""Google's adapter before the lab's stand-in of Compute Engine: its API over HTTP on the loopback."""

import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironburst import ports
from ironburst.adapters.google import errors, launching
from ironburst.adapters.google.instances import STATES
from lab.google import description
from tests.adapters import google_errors
from tests.adapters.looked_at import alive, ask, ids, over
from tests.contract.cloud_benches import OfGoogle

ZONE, KIND = OfGoogle.zone, OfGoogle.kind
CASES = [(kind, *case) for kind, cases in google_errors.CLASSES.items() for case in cases]


@pytest.fixture
def bench():
    made = OfGoogle(None)
    yield made
    made.close()


# ---- launches


@pytest.mark.parametrize(("taken", "lead"), [((0, 120), {"seconds": "120"}), ((), None)])
def test_spot_is_told_two_minutes_before_its_shutdown_where_google_takes_the_wish(bench, taken, lead):
    """Description of v1: without it "there will be no wait before the G2 Soft Off signal is triggered"."""
    bench.cloud.assumed.notices_s = taken
    launched = ask(bench, market="spot", count=2)
    assert len(launched) == 2
    assert {str(vm.raw["scheduling"].get("preemptionNoticeDuration")) for vm in bench.cloud.vms.values()} == {str(lead)}
    assert sorted(each.id for each in ask(bench, market="spot", count=2)) == sorted(each.id for each in launched)
    on_demand = ask(bench, token="ib-2", launch="l2")
    assert len(on_demand) == 1 and len(bench.cloud.asked("instances.bulkInsert")) == (2 if taken else 3)


def test_a_launch_is_a_uuid_of_its_token_names_of_its_own_and_all_or_nothing(bench):
    over(bench, count=2)
    (call,) = bench.cloud.asked("instances.bulkInsert")
    assert uuid.UUID(call.parameters["requestId"]).version == 5 and "minCount" not in call.body
    assert call.body["count"] == "2" and len(call.body["perInstanceProperties"]) == 2
    over(bench, token="ib-2")
    first, second = bench.cloud.asked("instances.bulkInsert")
    assert first.parameters["requestId"] != second.parameters["requestId"]
    assert not set(first.body["perInstanceProperties"]) & set(second.body["perInstanceProperties"])


@pytest.mark.parametrize("in_bulk", [True, False])
@pytest.mark.parametrize("code", ["capacity", "quota"])
def test_a_launch_that_is_rolled_back_is_no_capacity_or_a_quota_by_its_single_operations(bench, in_bulk, code):
    """Its own operation says VM_MIN_COUNT_NOT_REACHED, of whatever cause."""
    cloud = bench.cloud
    cloud.delays.insert_s, cloud.delays.roll_back_s = 60.0, 60.0
    cloud.assumed.cause_in_bulk, cloud.assumed.quota_at_once = in_bulk, False
    if code == "quota":
        cloud.quota[KIND] = 1
    else:
        cloud.capacity[KIND, ZONE, "STANDARD"] = 1
    assert isinstance(ask(bench, count=2), ports.UnderWay)
    cloud.passes(30)
    (shown,) = bench.port.instances("lab")
    assert shown.state == ports.LAUNCHING, "one was made, and will be taken back"
    cloud.passes(60)
    (shown,) = bench.port.instances("lab")
    assert shown.state == ports.LAUNCHING, "it is on its way out, and would be taken for launched"
    answer = over(bench, count=2)
    assert type(answer) is (ports.QuotaReached if code == "quota" else ports.InsufficientCapacity)
    assert "VM_MIN_COUNT" not in str(answer)
    assert bench.port.instances("lab") == [], "one that has ended would be taken for launched, too"
    assert cloud.vms == {} == cloud.disks and type(bench.connected().by_token("ib-1")) is type(answer)


def test_what_is_refused_at_once_begins_nothing(bench):
    bench.cloud.assumed.capacity_at_once = True
    bench.cloud.capacity[KIND, ZONE, "STANDARD"], bench.cloud.quota[KIND] = 1, 3
    assert type(ask(bench, count=2)) is ports.InsufficientCapacity
    assert type(ask(bench, token="ib-2", count=4)) is ports.QuotaReached
    assert bench.cloud.operations == []


def test_a_launch_that_fails_for_another_reason_is_over_and_not_repeated(bench):
    def refused(answer):
        bench.cloud.vms.clear()
        said = [{"code": "CONDITION_NOT_MET", "message": "constraints/compute.vmExternalIpAccess"}]
        return answer | {"status": "DONE", "error": {"errors": said}}

    bench.cloud.fault("zoneOperations.get", rewrite=refused)
    answer = ask(bench)
    assert (type(answer), answer.code) == (ports.LaunchFailed, "CONDITION_NOT_MET")


def test_what_a_failed_launch_leaves_behind_is_deleted_before_it_is_given_up(bench):
    """SkyPilot's issue 1797: an error, and the instance is there."""

    def failed(answer):
        said = [{"code": "RESOURCE_NOT_FOUND", "message": "The resource was not found"}]
        return answer | {"error": {"errors": said}} if answer["status"] == "DONE" else answer

    bench.cloud.fault("zoneOperations.get", rewrite=failed, times=-1)
    bench.cloud.delays.delete_s = 90.0
    assert isinstance(ask(bench, count=2), ports.UnderWay)
    assert {vm.raw["status"] for vm in bench.cloud.vms.values()} == {"STOPPING"}
    assert type(over(bench, count=2)) is ports.LaunchFailed and bench.cloud.vms == {} == bench.cloud.disks
    assert type(over(bench, token="ib-2", market="spot")) is ports.InsufficientCapacity, "it was taken back meanwhile"


def test_a_launch_is_looked_at_a_few_times_and_then_at_the_next_tick(bench):
    bench.cloud.delays.insert_s = 600.0
    assert isinstance(ask(bench), ports.UnderWay)
    looks = len(bench.cloud.asked("zoneOperations.get"))
    assert 1 <= looks <= 4
    ask(bench)
    assert len(bench.cloud.asked("zoneOperations.get")) == looks + 1
    assert len(bench.cloud.asked("instances.bulkInsert")) == 1


NETS = {
    "its operation is found": lambda cloud: None,
    "lists of operations are late": lambda cloud: setattr(cloud.delays, "operations_s", 3600.0),
    "its operation is forgotten": lambda cloud: cloud.operations.clear(),
    "its operation and its request are": lambda cloud: (cloud.operations.clear(), cloud.request_ids.clear()),
}


@pytest.mark.parametrize("net", sorted(NETS))
def test_a_controller_that_died_over_a_launch_gets_the_same_instances(bench, net):
    bench.cloud.delays.operations_s = 3600.0 if "late" in net else 0.0
    first = over(bench, count=2)
    NETS[net](bench.cloud)
    again = over(bench, bench.connected(), count=2)
    assert ids(again) == ids(first) == ids(alive(bench)) and len(bench.cloud.vms) == 2


def test_a_launch_under_way_that_lists_of_operations_show_late_happens_once(bench):
    bench.cloud.delays.insert_s = bench.cloud.delays.operations_s = 100.0
    assert isinstance(ask(bench, count=2), ports.UnderWay)
    assert isinstance(ask(bench, bench.connected(), count=2), ports.UnderWay)
    first, again = bench.cloud.asked("instances.bulkInsert")
    assert first.parameters["requestId"] == again.parameters["requestId"] and first.body == again.body
    assert len(over(bench, bench.connected(), count=2)) == 2 == len(bench.cloud.vms)


@pytest.mark.parametrize("answer", ["first operation", "invalid"])
def test_whatever_a_request_id_that_is_used_again_is_answered_nothing_is_made_twice(bench, answer):
    bench.cloud.assumed.reused_request_id = answer
    bench.cloud.delays.operations_s = bench.cloud.delays.list_s = 300.0
    first = over(bench, count=2)
    again = ask(bench, bench.connected(), count=2)
    assert isinstance(again, list | ports.CloudError) and len(bench.cloud.vms) == 2
    bench.cloud.passes(400)
    assert ids(over(bench, bench.connected(), count=2)) == ids(first)


def test_names_that_others_have_are_never_ours(bench):
    (mine,) = over(bench)
    name = mine.id.split("/")[1]
    (vm,) = bench.cloud.vms.values()
    vm.raw["labels"] = {"owner": "somebody"}
    bench.cloud.operations.clear()
    bench.cloud.request_ids.clear()
    answer = over(bench, bench.connected())
    assert type(answer) is ports.LaunchFailed and answer.code == "RESOURCE_ALREADY_EXISTS"
    assert [vm.name for vm in bench.cloud.vms.values()] == [name] and vm.raw["status"] == "RUNNING"


def test_a_token_of_another_launch_ends_nothing_of_it(bench):
    """Also where its operation is forgotten, and the names of the two overlap."""
    over(bench)
    bench.cloud.operations.clear()
    bench.cloud.request_ids.clear()
    for port in (bench.port, bench.connected()):
        assert type(over(bench, port, count=2)) is ports.TokenMismatch
    assert [vm.raw["status"] for vm in bench.cloud.vms.values()] == ["RUNNING"]


def test_one_that_is_gone_when_its_launch_is_over_is_there_as_an_ended_one(bench):
    bench.cloud.delays.insert_s = 100.0
    ask(bench, count=2, market="spot")
    bench.cloud.passes(100)
    bench.cloud.remove(bench.cloud.named("-1$")[0])
    one, gone = over(bench, count=2, market="spot")
    assert (one.state, gone.state, gone.index) == ("running", "terminated", 1) and gone.token == "ib-1"


def test_at_most_ten_bulk_operations_side_by_side_are_a_delay_and_no_refusal(bench):
    bench.cloud.delays.insert_s, bench.cloud.assumed.bulk_at_once = 100.0, 2
    answers = [ask(bench, token=f"ib-{n}", launch=f"l{n}") for n in range(3)]
    assert [type(each) for each in answers] == [ports.UnderWay, ports.UnderWay, ports.Throttled]


# ---- reservations and prices


def reserve(bench, count=1):
    bench.cloud.reservations["held"] = ZONE, KIND, count


def test_an_open_reservation_is_never_eaten(bench):
    reserve(bench)
    over(bench)
    over(bench, token="ib-2", launch="l2", market="spot")
    assert {vm.reservation for vm in bench.cloud.vms.values()} == {""}


@pytest.mark.parametrize(("market", "model"), [("on-demand", "STANDARD"), ("capacity-block", "RESERVATION_BOUND")])
def test_nothing_is_launched_beside_the_reservation_that_a_pool_names(bench, market, model):
    reserve(bench)
    place = bench.place | {"reservation": "held"}
    assert isinstance(over(bench, market=market, place=place), list)
    (vm,) = bench.cloud.vms.values()
    assert (vm.reservation, vm.model) == ("held", model)
    answer = over(bench, token="ib-2", launch="l2", market=market, place=place)
    assert type(answer) is ports.InsufficientCapacity and len(bench.cloud.vms) == 1


def test_a_bought_block_without_a_name_is_asked_for_never(bench):
    assert type(ask(bench, market="capacity-block")) is ports.Malformed and bench.cloud.calls == []


@pytest.mark.parametrize(
    ("usd", "kind"),
    [(50.6095, list), (52.0, ports.TooExpensive), (None, ports.Refused)],
)
def test_spot_is_never_asked_for_above_the_declared_ceiling(bench, usd, kind):
    """Google has no such field: the price is looked at before."""
    if usd:
        bench.cloud.spot_usd[KIND] = usd
    answer = over(bench, market="spot", max_usd_per_hour=51.0)
    assert isinstance(answer, kind) and len(bench.cloud.vms) == (kind is list)


def test_a_launch_that_has_begun_is_not_called_too_expensive(bench):
    """It exists: a definite no would be a lie."""
    bench.cloud.delays.insert_s = 100.0
    bench.cloud.spot_usd[KIND] = 50.0
    assert isinstance(ask(bench, market="spot", max_usd_per_hour=51.0), ports.UnderWay)
    bench.cloud.spot_usd[KIND] = 99.0
    bench.cloud.passes(1000)
    assert isinstance(ask(bench, bench.connected(), market="spot", max_usd_per_hour=51.0), list)


def test_spot_prices_are_those_in_force_in_all_zones_of_the_region(bench):
    bench.cloud.spot_usd[KIND] = 50.6095
    found = bench.port.spot_prices([KIND, "a4-highgpu-8g"])
    assert found == {(KIND, zone): pytest.approx(50.6095) for zone in bench.cloud.zones}
    assert bench.port.spot_prices([]) == {}
    with pytest.raises(ports.Refused):
        bench.port.spot_prices(["a4-highgpu-8g"])
    bench.cloud.fault("advice.capacityHistory", 503)
    with pytest.raises(ports.OutcomeUnknown):
        bench.port.spot_prices([KIND])


# ---- what is asked for


def test_spot_leaves_no_disk_and_what_runs_too_long_ends_by_itself(bench):
    place = bench.place | {"max_run_s": 3600.0, "local_ssds": 2, "labels": {"team": "ml"}, "network_tags": ["node"]}
    over(bench, place=place)
    over(bench, token="ib-2", launch="l2", market="spot", place=place | {"max_run_s": None})
    long, spot = bench.cloud.vms.values()
    assert long.raw["scheduling"]["maxRunDuration"] == {"seconds": "3600"} and long.raw["labels"]["team"] == "ml"
    assert spot.raw["scheduling"]["instanceTerminationAction"] == "DELETE" and len(bench.cloud.disks) == 6
    bench.cloud.preempt(spot)
    bench.cloud.passes(3700)
    bench.cloud.passes(31)
    assert bench.cloud.vms == {} == bench.cloud.disks


@pytest.mark.parametrize("lacks", ["machine_type", "network_interfaces", "boot_disk_type", "boot_disk_gb"])
def test_a_place_that_lacks_something_is_malformed_and_says_what(bench, lacks):
    place = {key: value for key, value in bench.place.items() if key != lacks}
    answer = ask(bench, place=place)
    assert type(answer) is ports.Malformed and lacks in str(answer) and bench.cloud.calls == []


def test_user_data_that_no_instance_takes_is_malformed(bench):
    assert type(ask(bench, user_data="x" * 262_145)) is ports.Malformed


@given(st.text(max_size=20))
def test_any_text_is_a_legal_label_and_comes_back(text):
    value = launching.label_value(text)
    assert len(value) <= 63 and set(value) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    if value or not text:
        assert launching.of_label(value) == text


def test_what_does_not_fit_into_a_label_is_left_out_or_refused(bench):
    over(bench, account="Ä" * 40)
    assert alive(bench)[0].account == ""
    assert type(ask(bench, token="X" * 60)) is ports.Malformed


@pytest.mark.parametrize("count", [1, 11])
def test_names_are_legal_however_long_the_declared_ones_are(bench, count):
    request = replace(bench.request(count=count), cluster="c" * 63, pool="P_" + "p" * 60, launch="l" * 12)
    names = launching.of(request).names
    assert len(set(names)) == count and [launching.index_of(name) for name in names] == list(range(count))
    pattern = description.document()["schemas"]["Instance"]["properties"]["name"]["pattern"]
    assert all(len(name) <= 63 and launching.re.fullmatch(pattern, name) for name in names)


# ---- what is shown


def test_every_state_of_the_api_has_one_of_ours_and_terminated_is_a_stopped_one_that_costs():
    known = description.document()["schemas"]["Instance"]["properties"]["status"]["enum"]
    assert STATES.keys() == set(known) and STATES["TERMINATED"] == "stopped" in ports.ALIVE
    assert set(STATES.values()) <= set(ports.ALIVE), "one that is gone has no state"


def test_one_that_was_shut_down_from_inside_is_still_paid_for(bench):
    (known,) = over(bench)
    (vm,) = bench.cloud.vms.values()
    bench.cloud.stops(vm)
    assert alive(bench)[0].state == "stopped" == bench.port.described([known.id])[0].state
    assert bench.ended([known.id]) == {known.id} and bench.cloud.disks == {}


def test_a_name_that_is_used_again_is_another_instance(bench):
    (old,) = over(bench)
    bench.ended([old.id])
    bench.cloud.operations.clear()
    bench.cloud.request_ids.clear()
    (new,) = over(bench, bench.connected())
    assert old.id != new.id and old.id.split("/")[1] == new.id.split("/")[1]
    assert bench.port.described([old.id]) == [] and bench.port.terminate([old.id]) == set()
    assert ids(alive(bench)) == [new.id]


def test_spot_that_was_taken_back_is_shown_as_ended_by_the_cloud_at_the_next_list(bench):
    one, two = over(bench, count=2, market="spot")
    assert len(alive(bench)) == 2
    bench.cloud.preempt(bench.cloud.vms[one.id.split("/")[2]])
    bench.cloud.passes(119)
    assert {each.state for each in bench.port.instances("lab")} == {"running"}  # it has its notice
    bench.cloud.passes(2)
    assert {each.state for each in bench.port.instances("lab")} == {"running", "stopping"}
    bench.cloud.passes(31)
    (ended,) = [each for each in bench.port.instances("lab") if not each.alive]
    assert (ended.id, ended.reason, ended.taken, ended.launch) == (one.id, "compute.instances.preempted", True, "l1")
    assert ids(alive(bench)) == [two.id]
    (same,) = bench.connected().described([one.id])
    assert (same.alive, same.taken) == (False, True)
    bench.ended([two.id])
    (by_us,) = bench.port.described([two.id])
    assert (by_us.alive, by_us.taken) == (False, False)


def test_a_list_that_shows_one_no_more_is_asked_about_it_by_its_id(bench):
    (known,) = over(bench)
    assert ids(alive(bench)) == [known.id]
    bench.lists_late([known.id])
    assert ids(alive(bench)) == [known.id]


@pytest.mark.parametrize("how", ["fails", "warned"])
def test_a_zone_that_gives_no_answer_is_not_empty(bench, how):
    (known,) = over(bench)
    bench.cloud.silent.add(ZONE)
    bench.cloud.assumed.silent_zone = how
    asks = [lambda: bench.port.instances("lab"), lambda: bench.port.by_token("ib-1")]
    for look in [*asks, lambda: bench.port.described([known.id]), lambda: bench.port.terminate([known.id])]:
        with pytest.raises(ports.OutcomeUnknown):
            look()
    assert len(bench.cloud.vms) == 1


@pytest.mark.parametrize("code", ["UNREACHABLE", "PARTIAL_SUCCESS", "LIST_OVERHEAD_QUOTA_EXCEED", "SOMETHING_NEW"])
def test_a_list_with_a_warning_is_none_unless_it_only_says_that_a_page_is_empty(bench, code):
    over(bench)
    warned = {"warning": {"code": code, "message": "some results may be missing"}}
    bench.cloud.fault(
        "instances.aggregatedList", rewrite=lambda answer: answer | {"items": {f"zones/{ZONE}": warned}}, times=-1
    )
    with pytest.raises(ports.OutcomeUnknown):
        bench.port.instances("lab")
    bench.cloud.fault("instances.list", rewrite=lambda answer: warned, times=-1)
    assert isinstance(ask(bench, bench.connected()), ports.OutcomeUnknown)


def test_zones_of_other_regions_do_not_matter(bench):
    (known,) = over(bench)
    said = {"unreachables": ["zones/asia-east1-a"], "warning": {"code": "UNREACHABLE"}}
    bench.cloud.fault("instances.aggregatedList", rewrite=lambda answer: answer | said, times=-1)
    assert ids(alive(bench)) == [known.id]


def test_all_pages_are_read(bench):
    bench.cloud.delays.insert_s = 0.0
    over(bench, count=1200)
    assert len(alive(bench)) == 1200 and len(bench.cloud.asked("instances.aggregatedList")) == 3
    assert {call.parameters["maxResults"] for call in bench.cloud.asked("instances.aggregatedList")} == {"500"}


def test_a_quiet_tick_asks_as_often_for_forty_machines_as_for_one(bench):
    """And a new process once more for each launch that is younger than an hour."""

    def calls(port):
        before = len(bench.cloud.calls)
        known = alive(bench, port)
        port.troubles(ids(known))
        return len(bench.cloud.calls) - before

    over(bench)
    assert calls(bench.port) == 2
    over(bench, token="ib-2", launch="l2", count=39)
    assert calls(bench.port) == 2 and len(alive(bench)) == 40
    new = bench.connected()
    assert (calls(new), calls(new)) == (4, 2)


def test_a_list_that_goes_round_is_no_list(bench):
    bench.cloud.fault("instances.aggregatedList", rewrite=lambda answer: answer | {"nextPageToken": "0"}, times=-1)
    with pytest.raises(ports.OutcomeUnknown, match="circle"):
        bench.port.instances("lab")


def test_what_stands_before_compute_engine_speaks_in_details(bench):
    said = b'{"error": {"code": 403, "message": "no", "details": [{"reason": "RATE_LIMIT_EXCEEDED"}]}}'
    bench.cloud.fault("instances.bulkInsert", rewrite=lambda _: said)
    bench.cloud.quota[KIND] = 0  # so that the true answer is 403, too
    assert type(ask(bench)) is ports.Throttled


MISSING_BUT_NOT_IT = {
    "a proxy": b"<html>404 page not found</html>",
    "its project": b'{"error": {"code": 404, "message": "The resource \'projects/lab-project\' was not found", '
    b'"errors": [{"reason": "notFound", "message": "The resource \'projects/lab-project\' was not found"}]}}',
    "nothing": b"",
}


@pytest.mark.parametrize("what", sorted(MISSING_BUT_NOT_IT))
def test_a_404_that_is_not_about_the_instance_proves_nothing(bench, what):
    (known,) = over(bench)
    bench.cloud.fault("instances.get", rewrite=lambda _: MISSING_BUT_NOT_IT[what], when=_answers_404, times=-1)
    with pytest.raises(ports.CloudError):
        bench.port.described([known.id])


def _answers_404(call):
    """The stand-in keeps the status of the true answer: of one that isn't there."""
    call.parameters["instance"] = "1"
    return True


@pytest.mark.parametrize("ask_for", ["described", "terminate", "troubles"])
def test_nothing_is_said_of_ids_that_are_not_googles(bench, ask_for):
    """That nobody knows it would be taken for a proof that it is gone."""
    with pytest.raises(ports.Refused):
        getattr(bench.port, ask_for)(["i-0123456789abcdef0"])


# ---- its end


@pytest.mark.parametrize("twice", ["resourceNotReady", "accepted"])
def test_one_on_its_way_out_may_cost_money_until_it_is_gone(bench, twice):
    bench.cloud.assumed.deleted_twice = twice
    bench.cloud.delays.delete_s = 60.0
    (known,) = over(bench)
    assert bench.port.terminate([known.id]) == set() == bench.port.terminate([known.id])
    assert alive(bench)[0].state == "stopping"
    bench.cloud.passes(200)
    assert bench.port.terminate([known.id]) == {known.id} and alive(bench) == []


def test_one_that_may_not_be_ended_keeps_no_other_alive(bench):
    one, two = over(bench, count=2)
    mine = one.id.split("/")[1:]  # by its name as by its number
    bench.cloud.fault(
        "instances.delete", 403, reason="forbidden", when=lambda call: call.parameters["instance"] in mine, times=-1
    )
    with pytest.raises(ports.Refused):
        bench.port.terminate([one.id, two.id])
    bench.cloud.passes(5)
    assert ids(alive(bench)) == [one.id]


def test_a_host_that_is_repaired_or_will_be_serviced_is_a_trouble(bench):
    one, two = over(bench, count=2)
    first, second = (bench.cloud.vms[each.id.split("/")[2]] for each in (one, two))
    first.raw["status"] = "REPAIRING"
    bench.cloud.service(second, "2026-12-01T08:00:00Z")
    ill, planned = sorted(bench.port.troubles(ids((one, two))), key=lambda each: each.from_s or 0.0)
    assert (ill.instance_id, ill.from_s) == (one.id, None) and "repairs" in ill.text
    assert (planned.instance_id, planned.from_s) == (two.id, 1796112000.0) and "2026-12-01T08" in planned.text
    assert alive(bench)[0].state == "running", "it is asked about"


def test_the_console_is_that_of_its_first_serial_port(bench):
    (known,) = over(bench)
    assert bench.port.console(known.id) == ""
    next(iter(bench.cloud.vms.values())).console = "Linux version 6.8"
    assert bench.port.console(known.id) == "Linux version 6.8"
    with pytest.raises(ports.Refused):
        bench.port.console(bench.unknown[0])


def test_a_pools_image_is_the_newest_of_its_family(bench):
    bench.cloud.images["ib-2"] = "ironburst-lab-p5"
    found = bench.port.image_id("projects/lab-project/global/images/family/ironburst-lab-p5")
    assert found == "projects/lab-project/global/images/ib-2"
    with pytest.raises(ports.Refused):
        bench.port.image_id("/ironburst/lab/p5/image")


def test_notices_do_not_come_by_a_queue(bench):
    with pytest.raises(ports.Refused):
        bench.port.interruptions(["projects/p/subscriptions/s"])


# ---- errors


@pytest.mark.parametrize(("kind", "code", "status"), CASES)
def test_errors_by_what_to_do_next(kind, code, status):
    error = errors.gravest([errors.Cause(code, "no")], "instances.bulkInsert", status)
    assert type(error) is kind and error.code == code and "instances.bulkInsert" in str(error)


def test_every_code_of_googles_pages_has_a_class():
    known = {code for _, code, _ in CASES} | {google_errors.NEUTRAL}
    pages = google_errors.of_pages()
    assert [(page, code) for page, code in pages if code not in known] == [] and len({*pages}) == len(pages) > 150
    assert google_errors.NEUTRAL in errors.NEUTRAL


@pytest.mark.parametrize(("kind", "code", "status"), [case for case in CASES if case[2]])
def test_they_are_the_same_over_http(bench, kind, code, status):
    bench.cloud.fault("instances.bulkInsert", status, reason=code)
    assert type(ask(bench)) is kind


@pytest.mark.parametrize(("kind", "code", "status"), [case for case in CASES if not case[2]])
def test_an_operation_that_failed_is_never_to_be_repeated(kind, code, status):
    said = [{"code": "VM_MIN_COUNT_NOT_REACHED", "message": "2 VMs could not be created"}, {"code": code}]
    error = errors.of_operation([{"error": {"errors": said}}], "instances.bulkInsert", spot=False)
    assert error.code == code and not isinstance(error, ports.OutcomeUnknown)
    assert type(error) is (ports.LaunchFailed if kind in (ports.Refused, ports.OutcomeUnknown) else kind)


@pytest.mark.parametrize("code", ["RESOURCE_OPERATION_RATE_EXCEEDED", "RESOURCE_NOT_READY", "INTERNAL_ERROR"])
def test_so_is_one_that_would_be_repeated_had_it_not_begun(code):
    error = errors.of_operation([{"error": {"errors": [{"code": code}]}}], "instances.bulkInsert", spot=False)
    assert type(error) is ports.LaunchFailed


def test_of_several_causes_the_one_that_lasts_longest_counts():
    def found(*codes):
        said = [{"code": code} for code in codes]
        return type(errors.of_operation([{"error": {"errors": said}}], "launch", spot=False))

    assert found("ZONE_RESOURCE_POOL_EXHAUSTED", "QUOTA_EXCEEDED", "VM_MIN_COUNT_NOT_REACHED") is ports.QuotaReached
    assert found("RESOURCE_NOT_FOUND", "ZONE_RESOURCE_POOL_EXHAUSTED") is ports.InsufficientCapacity
    assert found("VM_MIN_COUNT_NOT_REACHED") is ports.LaunchFailed


def test_every_code_has_one_meaning():
    groups = [value for name, value in vars(errors).items() if name.isupper() and isinstance(value, set)]
    assert len(groups) == 6 and sum(map(len, groups)) == len(set().union(*groups))
