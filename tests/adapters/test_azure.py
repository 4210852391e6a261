"""Azure's adapter before the lab's stand-in of ARM: what is shown, its end, errors; launches: test_azure_launches."""

import pytest

from ironburst import ports
from ironburst.adapters.azure import errors
from ironburst.adapters.azure.instances import POWER
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
