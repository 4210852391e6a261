"""A bigger hall: the head and any number of nodes like dgx01, four a rack, and the ClusterDocument that declares
them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ironburst.document import ClusterDocument
from lab import names
from lab.system import LabError

RACK = 4  # nodes of 8 units
LIMIT = 99


def addresses(nodes: int) -> dict[str, str]:
    """{name: address} of the head and `nodes` nodes; the first two are the lab's own dgx01 and dgx02."""
    if not 0 <= nodes <= LIMIT:
        raise LabError(f"the lab's hall has room for 0 to {LIMIT} nodes, not {nodes}")
    return {"head": names.ADDRESSES["head"]} | {
        f"dgx{number:02}": f"10.78.0.{10 + number}" for number in range(1, nodes + 1)
    }


def grown(document: ClusterDocument, nodes: int, racks: Sequence[str] = ()) -> ClusterDocument:
    """The lab's document with `nodes` nodes beside its head, all as dgx01 is declared; no cloud node."""
    head, model = document.host("head"), document.host("dgx01")
    hosts = [head]
    for number, (name, address) in enumerate(list(addresses(nodes).items())[1:]):
        rack = racks[number] if racks else f"r{number // RACK + 1:02}"
        changes = {"name": name, "address": address, "serial": names.serial_of(name), "rack": rack}
        hosts.append(model.model_copy(update=changes))
    return document.model_copy(update={"hosts": hosts})
