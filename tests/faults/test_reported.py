"""Answers of Google Cloud and Azure that users of other tools report (`reported`), played before the real adapters and
the real controller: for an hour in which the hall is full, and then no more.
"""

import pytest

from tests.fakes import direct
from tests.faults import test_azure, test_google
from tests.faults.reported import GOOGLE, Reported
from tests.faults.reported_azure import AZURE
from tests.faults.story import HOUR

HALL_S = 4800.0


def with_defaults(document):
    """As a stack file that doesn't say otherwise."""
    return document.model_copy(update={"burst": document.burst.model_copy(update={"cool_down_s": 600})})


class OnGoogle(test_google.OnGoogle):
    runs_s = (HALL_S, 600.0, 400.0)
    tick_s = 30.0

    def start(self):
        super().start()
        direct.google(self.cloud.port._api, self.cloud.lab)

    def declared(self, document):
        return with_defaults(document)

    def says(self, row):
        """The cloud says that from now on. What ends it."""
        lab = self.cloud.lab
        lab.assumed.failed_stays = row.stays
        if row.status:
            fault = lab.fault("instances.bulkInsert", row.status, reason=row.code, message=row.text, times=-1)
            return lambda: lab.faults.remove(fault)
        said, model = {"code": row.code, "message": row.text} | row.more, {"spot": "SPOT", "": None}[row.market]
        lab.fails = lambda _, properties: (
            said if model in (None, properties["scheduling"]["provisioningModel"]) else None
        )
        return lambda: setattr(lab, "fails", lambda *_: None)

    def asked(self):
        """How many launches were asked for."""
        return len({call.parameters["requestId"] for call in self.cloud.lab.asked("instances.bulkInsert")})


class OnAzure(test_azure.OnAzure):
    runs_s = (HALL_S, 600.0, 400.0)
    tick_s = 30.0

    def start(self):
        super().start()
        direct.azure(self.cloud.port._api, self.cloud.lab)

    def declared(self, document):
        return with_defaults(document)

    def says(self, row):
        lab = self.cloud.lab
        if row.kind == "never up":
            lab.delays.create_s = 1200.0
        if row.status:

            def hit(call):
                return row.market in ("", call.body["properties"].get("priority", "Regular"))

            said = {"reason": row.code, "message": row.text, "more": row.more, "times": -1, "when": hit}
            fault = lab.fault("virtual_machines.create_or_update", row.status, **said)
            return lambda: lab.faults.remove(fault)
        said = {"code": row.code, "message": row.text} | row.more
        lab.fails = lambda vm: said if row.market in ("", vm.priority) else None

        def over():
            lab.fails, lab.delays.create_s = lambda _: None, 90.0

        return over

    def asked(self):
        return len(self.launches())


@pytest.fixture(
    params=[*((OnGoogle, row) for row in GOOGLE), *((OnAzure, row) for row in AZURE)], ids=lambda p: p[1].id
)
def case(request, tmp_path):
    cls, row = request.param
    story = cls(tmp_path / "site")
    yield story, row
    story.cloud.lab.close()


# how often a launch is asked for in the first hour (two jobs, two markets, two zones), at most; for how many seconds a
# place is closed, at least (None: until a person opens it; 0: it isn't); whether a person is called
KINDS = {
    "no capacity": (18, 600, False),
    "quota": (4, 3600, False),  # of a market and its zones together: never each tick
    "refused": (24, 60, True),
    "failed": (14, 240, True),
    "never up": (2, 3600, False),
    "shut": (2, None, True),
    "again": (2, 0, False),  # the same launch is repeated
}


def test_for_an_hour(case):
    story, row = case
    over, began = story.says(row), story.clock.at
    while story.clock.at < began + HOUR:
        story.tick()
    most, closed_s, called = KINDS[row.kind]
    assert story.asked() <= most + (2 if row.market else 0)
    events = list(story.ledger.events())
    texts = [each.text for each in events]
    for part in row.says:
        assert any(part in text for text in texts), (part, texts[-4:])
    assert max(map(len, texts)) < 2000
    assert any(each.kind == "needs_a_person" for each in events) == called
    rows = [each for each in story.ledger.all_cool_downs() if each.until_s is None or each.until_s > story.clock.at]
    if row.market:  # the other market has machines: nobody waits
        done = [story.slurm.state(job) for job in (story.gang, story.single)]
        assert done == ["COMPLETED", "COMPLETED"]
        assert {each.market for each in story.ledger.all_cool_downs()} <= {"spot"}
        assert not any(each.kind == "launched" and "(spot" in each.text for each in events)
    elif closed_s == 0:
        assert rows == []
    else:
        assert {each.market for each in rows} == {"spot", "on-demand"}
        lasts = [each.until_s and each.until_s - each.at_s for each in rows]
        assert set(lasts) == {None} if closed_s is None else min(lasts) >= closed_s
    over()
    story.end()
    story.check(again=(story.gang, story.single))


class ForADay(OnAzure):
    runs_s, tick_s = (20 * HOUR, 600.0, 400.0), 60.0


def test_an_image_that_never_reports_is_given_up(tmp_path):
    """https://github.com/Azure/aks-engine/issues/3694: each launch is paid for until Azure gives it up."""
    story = ForADay(tmp_path / "site")
    story.says(next(row for row in AZURE if row.kind == "never up"))
    asked = []
    for _ in range(8):
        end = story.clock.at + HOUR
        while story.clock.at < end:
            story.tick()
        asked.append(story.asked())
    (said,) = {each.text for each in story.ledger.events() if each.kind == "needs_a_person"}
    assert "didn't join" in said and "OSProvisioningTimedOut" in said and "ironburst open p5" in said
    assert asked[-1] == asked[3] <= 4
    story.cloud.lab.close()


@pytest.mark.parametrize("text", ["standardNDSH100v5Family Cores", "LowPriorityCores"])
def test_an_interface_that_is_kept_is_deleted_later(tmp_path, text):
    """NicReservedForAnotherVm: https://github.com/cloudfoundry/bosh-azure-cpi-release/issues/366"""
    story = OnAzure(tmp_path / "site")
    story.cloud.lab.assumed.nic_reserved_s = 180.0
    market = "Spot" if text == "LowPriorityCores" else ""
    over = story.says(Reported("", "OperationNotAllowed", f"exceeding approved {text} quota", "quota", market=market))
    for _ in range(30):
        story.tick()
    over()
    story.end()
    story.check()
    story.cloud.lab.close()
