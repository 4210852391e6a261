"""Each call of Azure's adapter fails, hangs, lies, dies or is answered in part, while a controller rents two machines
and ends them: never two launches, never a part of a gang, none taken for gone that lives, nothing left over.
"""

import contextlib

import pytest

from ironburst.ports import CloudError
from tests.adapters import test_google_faults as google
from tests.contract.cloud_benches import OfAzure
from tests.parts import a_third

CALLS = {
    "launching": (
        "network_interfaces.list",
        "resource_groups.create_or_update",
        "resource_groups.get",
        "resource_groups.list",
        "tags.update_at_scope",
        "virtual_machine_scale_sets.create_or_update",
        "virtual_machine_scale_sets.get",
        "virtual_machines.create_or_update",
        "virtual_machines.get",
        "virtual_machines.list",
        "virtual_machines.list_all",
    ),
    "failing": (
        "operations.get",
        "resource_groups.delete",
        "resource_groups.get",
        "tags.update_at_scope",
        "virtual_machines.create_or_update",
        "virtual_machines.instance_view",
        "virtual_machines.list",
    ),
    "ending": (
        "resource_groups.delete",
        "resource_groups.get",
        "resource_groups.list",
        "virtual_machines.delete",
        "virtual_machines.get",
        "virtual_machines.list_all",
    ),
}
"""those that are made then"""


def empty(answer):
    return answer | {"value": []} if "value" in answer else answer


def in_part(answer):
    """The first half of its list, without a word."""
    return answer | {"value": answer["value"][: len(answer["value"]) // 2]} if "value" in answer else answer


FAULTS = google.FAULTS | {
    "is refused": {"status": 403, "reason": "AuthorizationFailed"},
    "is slowed down": {"status": 429, "reason": "TooManyRequests", "headers": {"Retry-After": "20"}},
    "finds nothing": {
        "status": 404,
        "reason": "SubscriptionNotFound",
        "message": "The subscription could not be found.",
    },
    "says another operation is in the way": {"status": 409, "reason": "AnotherOperationInProgress"},
    "is answered with an empty list": {"rewrite": empty},
    "is answered in part": {"rewrite": in_part},
}


class Controller(google.Controller):
    def living(self):
        return {vm.properties["vmId"] for vm in self.bench.cloud.vms.values()}


@pytest.fixture
def bench():
    made = OfAzure(None)
    made.cloud.delays.create_s = made.cloud.delays.delete_s = 15.0
    yield made
    made.close()


def returned(bench, controller):
    """All machines, and what was made beside them, which is looked after later."""
    google.returned(bench, controller)
    for _ in range(10):
        controller.look()
        bench.cloud.passes(400)
    assert bench.cloud.left_over() == {} == bench.cloud.scale_sets


@pytest.mark.parametrize(
    ("when", "call", "fault"),
    a_third({(when, call): sorted(FAULTS) for when, calls in CALLS.items() for call in calls}),
)
def test_nothing_is_left_over(bench, call, fault, when):
    """`failing`: the cluster has one place until two minutes have gone, and nobody says why a machine failed but its
    own status.
    """
    controller = Controller(bench)
    said = {"status": 0, **FAULTS[fault], "times": 2}
    if when == "failing":
        bench.cloud.clusters[bench.kind] = 1
        bench.cloud.assumed.cause_in_operation = False
        bench.cloud.after(120, bench.cloud.clusters.clear)
    if when != "ending":
        hit = bench.cloud.fault(call, **said)
    google.rented(bench, controller)
    if when == "ending":
        hit = bench.cloud.fault(call, **said)
        for _ in range(5 if call == "virtual_machines.delete" else 0):  # one of two: by itself, not with its group
            with contextlib.suppress(CloudError):
                controller.port.terminate([controller.mine[0].id])
            bench.cloud.passes(10)
    returned(bench, controller)
    assert len(bench.cloud.made) <= 2 * controller.attempt and hit.hits


@pytest.mark.parametrize("fault", ["dies when it is done", "hangs when it is done", "fails"])
@pytest.mark.parametrize("capacity", [2, 1])
def test_a_controller_that_dies_over_each_look_leaves_nothing(bench, fault, capacity):
    bench.cloud.capacity[bench.kind, "1", "Regular"] = capacity
    bench.cloud.after(100, bench.cloud.capacity.clear)
    bench.cloud.fault("virtual_machines.create_or_update", **{"status": 0, **FAULTS[fault], "times": 2})
    controller = Controller(bench)
    google.rented(bench, controller, restarts=True)
    returned(bench, controller)
