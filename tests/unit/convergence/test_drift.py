"""Recording a host right after a run: what is watched on, what is dropped, what could not be asked."""

import json
from types import SimpleNamespace

from ironburst.convergence import drift, host_facts
from ironburst.convergence.ports import Answer, Connection
from ironburst.convergence.receipts import Receipt

OLD = Receipt(
    "n1",
    "lab",
    watch={"files": {"/old": "content", "/kept": "content"}},
    state={"file /old": "file 0644 root:root 1", "file /kept": "file 0644 root:root 1"},
)


def record(facts, connections=None, named=None):
    store = SimpleNamespace(salt=lambda: "00")
    tools = SimpleNamespace(store=store, ask=lambda programs: dict.fromkeys(programs, facts))
    connections = {"n1": Connection("n1")} if connections is None else connections
    return drift.record(tools, connections, {"n1": named or {}}, {"n1": OLD})["n1"]


def told(**files):
    return Answer(host_facts.MARK + json.dumps({f"file /{name}": text for name, text in files.items()}))


def test_what_is_gone_and_named_no_more_is_dropped():
    recorded = record(told(old="absent", kept="x"))
    assert recorded.watch == {"files": {"/kept": "content"}} and recorded.facts == {"file /kept": "x"}
    assert recorded.error is None and recorded.connection == Connection("n1")


def test_what_is_gone_but_named_is_watched_on():
    recorded = record(told(old="absent", kept="x"), named={"files": {"/old": "content"}})
    assert set(recorded.watch["files"]) == {"/old", "/kept"} and recorded.facts["file /old"] == "absent"


def test_a_host_without_facts_is_watched_as_before_and_says_why():
    silent = record(Answer(error="no route to host"))
    assert (silent.watch, silent.facts, silent.error) == (OLD.watch, {}, "no route to host")
    unreached = record(told(), connections={})
    assert (unreached.connection, unreached.error) == (None, "it is not reached by plain ssh")
