"""Which hosts are as their receipts say: inputs by digest, the host itself by one ssh round trip, all hosts at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironburst.convergence import inputs, probe, receipts, watch
from ironburst.convergence.model import Tools
from ironburst.convergence.receipts import HostState

SETTLE_S = 10  # after a run: units may still be starting


@dataclass(frozen=True)
class Look:
    """One host before a converge. `why`: what speaks against calling it unchanged; `drift`: what of that the probe
    saw.
    """

    known: HostState
    inputs: inputs.Inputs
    facts: Mapping[str, str] | None
    why: list[str]
    drift: list[str]

    @property
    def same_inputs(self) -> bool:
        return self.known.state is not None and not inputs.changed(self.known.inputs, self.inputs)


def look(tools: Tools, cluster: str, hosts: Sequence[str]) -> dict[str, Look]:
    """Compare each host with its receipt. Raises ValueError for inputs that can't be read (a secret that does not
    resolve).
    """
    known = {name: tools.store.read(name, cluster) for name in hosts}
    now = {name: tools.inputs(name) for name in hosts}
    asked = {
        name: (state.connection, state.watch)
        for name, state in known.items()
        if state.connection and state.state is not None
    }
    facts = ask(tools, asked)
    found = {}
    for name, state in known.items():
        why = [
            f"{what} is another" if what != "first converge" else what
            for what in inputs.changed(state.inputs, now[name])
        ]
        drift = []
        if name in facts and isinstance(facts[name], str):
            drift = [f"the probe got no answer: {facts[name]}"]
        elif name in facts and state.state is not None:
            drift = receipts.differences(state.state, facts[name])
        seen = facts.get(name) if isinstance(facts.get(name), dict) else None
        held = ["an earlier converge has drained it and not given it back"] if state.held else []
        found[name] = Look(state, now[name], seen, [*held, *why, *drift, *state.unwatched], drift)
    return found


def ask(tools: Tools, asked: Mapping[str, tuple[dict[str, Any], watch.Watch]], settle: int = 0) -> dict[str, Any]:
    """The facts of each host, {fact: text}; a sentence instead for a host that gave none."""
    salt = tools.store.salt()
    programs = {
        name: (connection, probe.program({**watched, "salt": salt, "settle": settle}))
        for name, (connection, watched) in asked.items()
    }
    found: dict[str, Any] = {}
    for name, said in tools.ask(programs).items():
        try:
            found[name] = said.error or probe.answer(said.output)
        except ValueError as error:
            found[name] = str(error)
    return found


def question(
    tools: Tools, roles: Sequence[str], software: Mapping[str, Any] | None, told: watch.Watch, before: HostState
) -> watch.Watch:
    """What to watch on a host from now on: what its tasks, its roles and its lock name, and what was watched before.

    The last for tasks that this run skipped, since there was nothing to do for them.
    """
    named = [found for role in roles if (found := tools.role_watch(role))]
    return watch.merge(before.watch, told, watch.of_software(software), *named)


def record(
    tools: Tools,
    asked: Mapping[str, tuple[dict[str, Any], watch.Watch]],
    fresh: Mapping[str, watch.Watch],
    before: Mapping[str, HostState],
) -> dict[str, Any]:
    """{host: (watch, facts)} right after a run, or a sentence. What is gone and was not named by this run (`fresh`) is
    watched no more.
    """
    found: dict[str, Any] = {}
    for name, facts in ask(tools, asked, SETTLE_S).items():
        if isinstance(facts, str):
            found[name] = facts
            continue
        old, watched = before[name].state or {}, asked[name][1]
        named = set(probe_facts(fresh[name]))
        gone = [
            fact
            for fact, text in facts.items()
            if text == "absent" and old.get(fact, "absent") != "absent" and fact not in named
        ]
        found[name] = (watch.without(watched, gone), {fact: text for fact, text in facts.items() if fact not in gone})
    return found


def probe_facts(watched: watch.Watch) -> list[str]:
    """The facts that a watch asks for, as the probe names them."""
    return [
        f"{'file' if kind == 'files' else kind.removesuffix('s')} {' '.join(entry) if kind == 'commands' else entry}"
        for kind, entries in watched.items()
        for entry in entries
    ]
