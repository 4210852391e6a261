"""Pools whose nodes are launched and never join: a broken image, link or join program.

Each such node is paid for a whole boot, and the next one would fail alike. After MOST in a row the pool is closed until
a person or a new document reopens it, which is reported, with the last lines of the node's console.
A node that joins ends the row. The count is in the ledger.
"""

from __future__ import annotations

import re
from itertools import product

from ironburst.controller import cool_downs
from ironburst.controller.records import LAUNCHED, LaunchRow, LeaseRow, Place
from ironburst.controller.site import Site
from ironburst.ports import CloudError

MOST = 3  # nodes in a row: one may be a bad host, two may be bad luck
_LINES, _CHARACTERS = 20, 1500  # of the console, told to a person
_LOOKED_AT = 16_384  # of its last characters
_ESCAPE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")


def joined(site: Site, launch: LaunchRow, zone: str) -> None:
    """A node joined: the image boots there, so what refused that place for as few nodes counts no more."""
    place = Place(launch.pool, zone, launch.market, len(launch.nodes), launch.instance_type)
    cool_downs.joined(site.ledger, place)
    if site.ledger.noted(_key(launch.pool)) not in (None, "0"):
        site.ledger.note(_key(launch.pool), "0")


def did_not_join(site: Site, lease: LeaseRow, why: str) -> None:
    """A launched node that didn't join, and whose end was not the cloud's doing; before it is given up."""
    count = int(site.ledger.noted(_key(lease.pool)) or 0) + _alike(site, lease)
    if count < MOST:
        site.ledger.note(_key(lease.pool), str(count))
        return
    places = _places(site, lease)
    rows = [site.ledger.cool_down_of(place) for place in places]
    if all(row is not None and row.until_s is None for row in rows):
        return  # others of the same row, that were on their way when it was closed
    words = _console(site, lease)
    reason = f"{count} nodes in a row were launched and didn't join, the last one {lease.node}: {why}"
    with site.ledger.transaction():
        for place in places:
            cool_downs.close(site.ledger, place, None, reason, site.now, site.document.serial)
        site.ledger.note(_key(lease.pool), "0")
        cure = f"once the cause is cured: ironburst open {lease.pool}"
        text = f"pool {lease.pool} is closed: {reason}; {cure}; {words}"
        site.event("needs_a_person", text, launch=lease.launch, lease=lease.id)


def last_words(console: str) -> str:
    """The end of what a console shows, as one printable line. Pure."""
    plain = _ESCAPE.sub("", console[-_LOOKED_AT:])
    lines = ("".join(_printable(character) for character in line).strip() for line in re.split(r"[\r\n]+", plain))
    return " | ".join([line for line in lines if line][-_LINES:])[-_CHARACTERS:].strip()


def _printable(character: str) -> str:
    return character if character.isprintable() else " " if character == "\t" else ""


def _alike(site: Site, lease: LeaseRow) -> int:
    """How many nodes of its launch haven't joined in the time that a boot may take; at least this one."""
    launch = site.ledger.launch(lease.launch)
    coming = [other for other in site.ledger.leases_of(lease.launch) if other.state == LAUNCHED]
    return max(1, sum(site.now - other.changed_s >= launch.boot_s for other in coming))


def _places(site: Site, lease: LeaseRow) -> list[Place]:
    """All of the pool, as it is declared now, with any of its types: they share one image."""
    pool = site.document.pool(lease.pool)
    zones = pool.zone_names if pool else [lease.zone]
    return [Place(lease.pool, *place, 1) for place in product(zones, pool.markets if pool else [lease.market])]


def _console(site: Site, lease: LeaseRow) -> str:
    if not lease.instance_id:
        return "it was taken back with its console"
    try:
        words = last_words(site.cloud.console(lease.instance_id or ""))
    except CloudError as error:
        return f"its console can't be read ({error})"
    return f"the last words of its console: {words}" if words else "its console shows nothing"


def _key(pool: str) -> str:
    return f"never_joined/{pool}"
