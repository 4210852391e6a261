"""Which hosts are as their receipts say: inputs by digest, the host itself by one ssh round trip, all hosts at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironburst.convergence import host_facts, inputs, receipts, watch
from ironburst.convergence.model import Tools
from ironburst.convergence.ports import Connection, RemoteProgram
from ironburst.convergence.receipts import Receipt
from ironburst.system import sent_program

UNIT_WAIT_S = 10  # after a run: units may still be starting

Facts = Mapping[str, str]  # {fact: text}


@dataclass(frozen=True)
class Comparison:
    """One host beside its receipt, before a converge. The lists are of sentences."""

    receipt: Receipt
    inputs: inputs.Inputs
    facts: Facts | None  # None: it was not asked, or did not answer
    drift: list[str]  # what is otherwise on the host
    why: list[str]  # all that speaks against calling it unchanged; the drift is a part of it

    @property
    def same_inputs(self) -> bool:
        """Whether it would be made from the same inputs as in its last converge, which came to its end."""
        return self.receipt.state is not None and not inputs.changed(self.receipt.inputs, self.inputs)

    @property
    def drifted(self) -> bool:
        """Whether the host itself reported that it is otherwise, while its inputs are the same."""
        return self.same_inputs and self.facts is not None and bool(self.drift)


@dataclass(frozen=True)
class HostQuestion:
    """What one host is asked, and by which connection."""

    connection: Connection
    watch: watch.Watch


@dataclass(frozen=True)
class Reading:
    """The facts that a host gave. `error`: one sentence, and no facts, if it gave none."""

    facts: Facts
    error: str | None = None


@dataclass(frozen=True)
class Recorded:
    """A host right after a run: what is watched on it from now on, and its facts.

    `connection`: None if plain ssh does not reach it; `error`: why there are no facts, else None.
    """

    connection: Connection | None
    watch: watch.Watch
    facts: Facts
    error: str | None = None


def compare(tools: Tools, cluster: str, hosts: Sequence[str]) -> dict[str, Comparison]:
    """Compare each host with its receipt.
    Raises ValueError for inputs that can't be read (a secret that does not resolve).
    """
    known = {name: tools.store.read(name, cluster) for name in hosts}
    now = {name: tools.inputs(name) for name in hosts}
    questions = {
        name: HostQuestion(receipt.connection, receipt.watch)
        for name, receipt in known.items()
        if receipt.connection and receipt.state is not None
    }
    readings = read(tools, questions)
    return {name: _compared(receipt, now[name], readings.get(name)) for name, receipt in known.items()}


def _compared(receipt: Receipt, now: inputs.Inputs, reading: Reading | None) -> Comparison:
    drained = ["an earlier converge has drained it and not given it back"] if receipt.drained_by_us else []
    changed = inputs.changed(receipt.inputs, now)
    made_from = [what if what == "first converge" else f"{what} is another" for what in changed]
    drift: list[str] = []
    if reading and reading.error:
        drift = [f"the probe got no answer: {reading.error}"]
    elif reading and receipt.state is not None:
        drift = receipts.differences(receipt.state, reading.facts)
    return Comparison(
        receipt=receipt,
        inputs=now,
        facts=reading.facts if reading and not reading.error else None,
        drift=drift,
        why=[*drained, *made_from, *drift, *receipt.unwatched],
    )


def read(tools: Tools, questions: Mapping[str, HostQuestion], unit_wait_s: int = 0) -> dict[str, Reading]:
    """Ask each host for its facts. Units that are just starting get `unit_wait_s` to get there."""
    salt = tools.store.salt()
    programs = {}
    for name, question in questions.items():
        text = sent_program.text(host_facts, {**question.watch, "salt": salt, "unit_wait_s": unit_wait_s})
        programs[name] = RemoteProgram(question.connection, text)
    readings = {}
    for name, answer in tools.ask(programs).items():
        try:
            facts = {} if answer.error else sent_program.answer(host_facts, answer.output)
            readings[name] = Reading(facts, answer.error)
        except ValueError as error:
            readings[name] = Reading({}, str(error))
    return readings


def record(
    tools: Tools,
    connections: Mapping[str, Connection],
    named: Mapping[str, watch.Watch],
    before: Mapping[str, Receipt],
) -> dict[str, Recorded]:
    """State of hosts right after a run. `named`: what the run, the roles and the lock name on each of them.

    Besides that, what was watched before is watched on, for tasks that the run skipped since there was nothing to do
    for them; but what of it is gone and was not named is dropped.
    """
    questions = {
        name: HostQuestion(connections[name], watch.merge(before[name].watch, named[name]))
        for name in named
        if name in connections
    }
    readings = read(tools, questions, UNIT_WAIT_S)
    recorded = {}
    for name in named:
        connection = connections.get(name)
        reading = readings.get(name, Reading({}, "it is not reached by plain ssh"))
        if reading.error:
            recorded[name] = Recorded(connection, before[name].watch, {}, reading.error)
        else:
            gone = _gone(reading.facts, before[name].state or {}, watch.fact_names(named[name]))
            facts = {fact: text for fact, text in reading.facts.items() if fact not in gone}
            recorded[name] = Recorded(connection, watch.without(questions[name].watch, gone), facts)
    return recorded


def _gone(facts: Facts, before: Facts, named: Sequence[str]) -> list[str]:
    """Facts of what was there before, is absent now, and is named no more."""
    absent = [fact for fact, text in facts.items() if text == "absent"]
    return [fact for fact in absent if before.get(fact, "absent") != "absent" and fact not in named]
