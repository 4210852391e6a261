"""Answers of Google Cloud and Azure that users of other tools report (`reported`), played before the real adapters and
the real controller: for an hour in which the hall is full, and then no more.
"""

import pytest

from ironburst.adapters.azure import errors as azure_errors
from tests.fakes import direct
from tests.faults import test_azure, test_google
from tests.faults.reported import AZURE, GOOGLE, Reported
from tests.faults.story import HOUR

HALL_S = 4800.0


def with_defaults(document):
    """As a stack file that doesn't say otherwise."""
    return document.model_copy(update={"burst": document.burst.model_copy(update={"cool_down_s": 600})})


class OnGoogle(test_google.OnGoogle):
    runs_s = (HALL_S, 600.0, 400.0)
    tick_s = 20.0

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
        lab.fails = lambda _, properties: said if model in (None, properties["scheduling"]["provisioningModel"]) else None
        return lambda: setattr(lab, "fails", lambda *_: None)

    def asked(self):
        """How many launches were asked for."""
        return len({call.parameters["requestId"] for call in self.cloud.lab.asked("instances.bulkInsert")})


class OnAzure(test_azure.OnAzure):
    runs_s = (HALL_S, 600.0, 400.0)
    tick_s = 20.0

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


@pytest.fixture(params=[*((OnGoogle, row) for row in GOOGLE), *((OnAzure, row) for row in AZURE)], ids=lambda p: p[1].id)
def case(request, tmp_path):
    cls, row = request.param
    story = cls(tmp_path / "site")
    yield story, row
    story.cloud.lab.close()


def test_for_an_hour(case):
    story, row = case
    over = story.says(row)
    began = story.clock.at
    while story.clock.at < began + HOUR:
        story.tick()
    rows = story.ledger.all_cool_downs()
    events = [(e.kind, e.text[:400]) for e in story.ledger.events()]
    import collections, functools
    print = functools.partial(__builtins__["print"], file=open("/tmp/threads/out/" + row.id.replace("/", "_"), "w"), flush=True)
    print("\nASKED", story.asked(), row.kind, collections.Counter(k for k, _ in events))
    for r in rows:
        print("  COOL", r.market, r.zone, r.nodes, None if r.until_s is None else round(r.until_s - r.at_s), r.strikes, r.reason[:50])
    print("  JOBS", story.jobs(), {j: [e for e in events if e[0] == "launched"][:2] for j in (1,)})
    for e in [e for e in events if e[0] in ("needs_a_person", "unknown", "trouble", "orphan")][:4]:
        print("  ", e)
    missing = [w for w in row.says if not any(w in e.text for e in story.ledger.events())]
    print("  MISSING", missing, "LONGEST", max(len(e.text) for e in story.ledger.events()))
    over()
    try:
        story.end(); story.check(again=(story.gang, story.single))
        print("  END ok", [f.started for f in story.slurm.jobs.values()])
    except AssertionError as e:
        print("  END BAD", str(e)[:1500])
