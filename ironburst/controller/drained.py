"""Rented nodes that a program drained: a health check, slurmd, Slurm itself. They are counted by cause and image.

One such machine is thrown away with its lease. A pool that keeps producing them has a bad image, or a check that is
wrong, and each costs a boot: that is reported to a person.
"""

from __future__ import annotations

import json
import re

from ironburst.burst import explain
from ironburst.controller.records import LeaseRow
from ironburst.controller.site import Site
from ironburst.ports import Observation

MOST = 3  # alike in _WITHIN_S: told then, and at each further MOST
_WITHIN_S = 7 * 86400.0
_KEPT = 200  # drains
_CAUSE = 80  # characters
_KEY = "drains"


def note(site: Site, lease: LeaseRow, words: str) -> None:
    """A node is given back, because a program drained it."""
    image = site.ledger.launch(lease.launch).image_id or "an unknown image"
    alike = [lease.pool, re.sub(r"\d+", "#", words)[:_CAUSE], image]
    rows = [row for row in json.loads(site.ledger.noted(_KEY) or "[]") if site.now - row[0] < _WITHIN_S]
    rows = [*rows, [site.now, *alike]][-_KEPT:]
    count = sum(row[1:] == alike for row in rows)
    with site.ledger.transaction():
        site.ledger.note(_KEY, json.dumps(rows))
        site.event(
            "drained",
            f"{lease.node} was drained: {words}; the next one of its name is another machine",
            launch=lease.launch,
            lease=lease.id,
        )
        if count % MOST == 0:
            often = f"{count} nodes of pool {lease.pool} with {image} were drained in {explain.duration(_WITHIN_S)}"
            text = f"{often} for {alike[1]!r}: look at the image, or at the check; each of them cost a boot"
            site.event("needs_a_person", text, launch=lease.launch, lease=lease.id)


def look(site: Site, observation: Observation) -> None:
    """Report a pool that is about to be empty by what people drained."""
    nodes = {node.name: node for node in observation.nodes}
    for pool in site.document.pools:
        held = [nodes[name] for name in pool.nodes if name in nodes and nodes[name].held_by_person]
        if held and 2 * len(held) >= len(pool.nodes):
            said = explain.listed(f"{node.name} ({node.reason})" for node in held)
            many = f"{len(held)} of the {len(pool.nodes)} nodes of pool {pool.name}"
            lift = "`scontrol update nodename=NODE state=resume` lifts it"
            site.tell("needs_a_person", f"{many} are drained by a person, so nothing is rented there: {said}; {lift}")
