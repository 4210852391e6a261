"""Each call of Google's adapter fails, hangs, lies, dies or is answered in part, while a controller rents two machines
and ends them: never two launches, never a part of a gang, none taken for gone that lives, nothing left over.
"""

import contextlib
import json

import pytest

from ironburst import ports
from ironburst.ports import CloudError, InsufficientCapacity, LaunchFailed, Malformed, OutcomeUnknown, QuotaReached
from tests.contract.cloud_benches import OfGoogle

CALLS = (
    "globalOperations.aggregatedList",
    "instances.aggregatedList",
    "instances.bulkInsert",
    "instances.delete",
    "instances.get",
    "instances.list",
    "zoneOperations.get",
    "zoneOperations.list",
)
TIMEOUT_S = 0.4


def empty(answer):
    """All lists of it are."""
    return {key: {} if key == "items" and isinstance(value, dict) else value for key, value in answer.items()} | (
        {"items": []} if isinstance(answer.get("items"), list) else {}
    )


def in_part(answer):
    """The first half of its list, without a word."""
    items = answer.get("items")
    if isinstance(items, list):
        return answer | {"items": items[: len(items) // 2]}
    return answer | {"items": {scope: _half(part) for scope, part in (items or {}).items()}} if items else answer


def _half(part):
    return {key: each[: len(each) // 2] if isinstance(each, list) else each for key, each in part.items()}


FAULTS = {
    "fails": {"status": 503},
    "is refused": {"status": 403, "reason": "forbidden"},
    "is slowed down": {"status": 403, "reason": "rateLimitExceeded"},
    "finds nothing": {
        "status": 404,
        "reason": "notFound",
        "message": "The resource 'projects/lab-project' was not found",
    },
    "hangs": {"delay_s": TIMEOUT_S * 1.5, "drop": True},
    "hangs when it is done": {"delay_s": TIMEOUT_S * 1.5, "drop": True, "after": True},
    "dies": {"drop": True},
    "dies when it is done": {"drop": True, "after": True},
    "is answered by something else": {"rewrite": lambda _: b"<html>Sign in to the network</html>"},
    "says nothing": {"rewrite": lambda _: b""},
    "is answered with an empty object": {"rewrite": lambda _: {}},
    "is answered with a list": {"rewrite": lambda _: []},
    "is answered in another shape": {
        "rewrite": lambda answer: json.loads(json.dumps(answer).replace('"name"', '"nom"'))
    },
    "is answered with an empty list": {"rewrite": empty},
    "is answered in part": {"rewrite": in_part},
}
DEFINITE = (InsufficientCapacity, LaunchFailed, Malformed, QuotaReached)


class Controller:
    """What ironburst.controller does with the port, without the rest: each attempt has a token, an answer that isn't
    known is asked for again unchanged, what no launch of ours knows is ended.
    """

    def __init__(self, bench):
        self.bench, self.port = bench, bench.connected(TIMEOUT_S)
        self.attempt, self.unknown, self.mine, self.gone = 1, False, [], set()

    def living(self):
        """The ids of machines that are there, by what the provider alone knows them by."""
        return set(self.bench.cloud.vms)

    def restarts(self):
        self.port = self.bench.connected(TIMEOUT_S)

    def launch(self):
        request = self.bench.request(token=f"ib-{self.attempt}", launch="l1", count=2)
        (answer,) = self.port.launch_all([request])
        if isinstance(answer, list):
            assert len(answer) == 2 and sorted(each.index for each in answer) == [0, 1]
            self.mine = answer
        elif isinstance(answer, DEFINITE) or (type(answer) is ports.Refused and not self.unknown):
            self.attempt, self.unknown = self.attempt + 1, False
        else:
            self.unknown = True

    def look(self):
        """Orphans are ended; who isn't shown is asked for by id, and who isn't known then is gone."""
        try:
            shown = {each.id: each for each in self.port.instances("lab")}
            known = {each.id for each in self.mine}
            asked = [] if self.mine else [f"ib-{self.attempt}"]
            self.port.terminate(
                [i for i, each in shown.items() if each.alive and i not in known and each.token not in asked]
            )
            for id in sorted(known - set(shown)):
                found = self.port.described([id])
                if not any(each.alive for each in found):
                    self.gone.add(id)
                    assert id.split("/")[2] not in self.living(), "it lives"
        except CloudError:
            pass

    def end(self):
        with contextlib.suppress(CloudError):
            self.gone |= self.port.terminate([each.id for each in self.mine if each.id not in self.gone])
        assert not {id.split("/")[2] for id in self.gone} & self.living(), "it lives"


def rented(bench, controller, *, restarts=False):
    for n in range(30):
        controller.launch()
        if controller.mine:
            return
        if restarts and n < 3:
            controller.restarts()
        controller.look()
        bench.cloud.passes(10)
    raise AssertionError("never launched")


def returned(bench, controller):
    for _ in range(30):
        controller.look()
        controller.end()
        bench.cloud.passes(10)
        if len(controller.gone) == 2 and not bench.cloud.vms:
            return
    raise AssertionError(f"never ended: {controller.gone}, {list(bench.cloud.vms)}")


@pytest.fixture
def bench():
    made = OfGoogle(None)
    made.cloud.delays.insert_s = made.cloud.delays.delete_s = 15.0
    yield made
    made.close()


@pytest.mark.parametrize("fault", sorted(FAULTS))
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("when", ["launching", "ending"])
def test_nothing_is_left_over(bench, call, fault, when):
    controller = Controller(bench)
    said = FAULTS[fault]
    times = 4 if said.get("drop") and not said.get("delay_s") else 2  # httplib2 asks once more by itself
    if when == "launching":
        bench.cloud.fault(call, **{"status": 0, **said, "times": times})
    rented(bench, controller)
    if when == "ending":
        bench.cloud.fault(call, **{"status": 0, **said, "times": times})
    returned(bench, controller)
    assert bench.cloud.vms == {} == bench.cloud.disks
    made = [each for each in bench.cloud.operations if each["operationType"] == "insert" and "error" not in each]
    assert len(made) <= 2 * controller.attempt


@pytest.mark.parametrize("fault", ["dies when it is done", "hangs when it is done", "fails"])
@pytest.mark.parametrize("capacity", [2, 1])
def test_a_controller_that_dies_over_each_look_leaves_nothing(bench, fault, capacity):
    bench.cloud.capacity[bench.kind, bench.zone, "STANDARD"] = capacity
    bench.cloud.after(100, bench.cloud.capacity.clear)
    bench.cloud.fault("instances.bulkInsert", **{"status": 0, **FAULTS[fault], "times": 2})
    controller = Controller(bench)
    rented(bench, controller, restarts=True)
    returned(bench, controller)
    assert bench.cloud.vms == {} == bench.cloud.disks


def test_an_unknown_outcome_is_no_refusal():
    assert not any(issubclass(kind, OutcomeUnknown) for kind in DEFINITE)
