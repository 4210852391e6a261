"""What jobs and halls take of electricity, and what that emits (location-based): measured where it can be, and what is
estimated or left out is told beside the figure.

A job's GPUs are measured by DCGM's counter. The rest of a node at home is its BMC's figure less its GPUs', by the
job's part of these; of one in the cloud, where no BMC tells, GPUs are taken for 1 / RENTED of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ironburst.burst import explain
from ironburst.controller import job_figures
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import RunRow
from ironburst.document import ClusterDocument
from ironburst.document.monitoring import NODE_OVER_GPUS, PlaceEnergy
from ironburst.ports.measured import Measured

RENTED = NODE_OVER_GPUS
STEP_S = 300
"""halls' power is looked at so often"""
_J_PER_KWH = 3.6e6
_UNKNOWN = PlaceEnergy()


@dataclass(frozen=True)
class Energy:
    """kWh. Sums of several add up."""

    gpus: float = 0.0  # measured
    nodes: float = 0.0  # the rest of nodes, measured
    rented: float = 0.0  # the rest of nodes in the cloud, estimated
    cooling: float = 0.0  # by the declared PUE
    bare: float = 0.0  # of `gpus`: the rest of their nodes isn't known
    uncooled: float = 0.0  # of all: what cooling adds isn't known
    unpriced: float = 0.0  # of all: what it emits isn't known
    kg: float = 0.0  # CO2 equivalents, of the others
    origins: frozenset[str] = field(default=frozenset())

    def __add__(self, other: Energy) -> Energy:
        sums = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)[:-1]}
        return Energy(**sums, origins=self.origins | other.origins)

    @property
    def kwh(self) -> float:
        """All that is known."""
        return self.gpus + self.nodes + self.rented + self.cooling

    def as_json(self) -> dict[str, Any]:
        """`kg`: null where of nothing it is known what it emits."""
        known = self.kwh > self.unpriced
        return asdict(self) | {"kwh": self.kwh, "kg": self.kg if known else None, "origins": sorted(self.origins)}


@dataclass(frozen=True)
class Places:
    """Where nodes are, as far as it is known. `pue`: of all halls; `halls` and `cloud` as the document has them;
    `hall_of`: owned nodes; `rented`: nodes that are in a cloud, or were; `elsewhere`: those in another than the first.
    """

    pue: float | None = None
    halls: Mapping[str, PlaceEnergy] = field(default_factory=dict)
    cloud: PlaceEnergy | None = None
    hall_of: Mapping[str, str] = field(default_factory=dict)
    rented: frozenset[str] = frozenset()
    elsewhere: Mapping[str, PlaceEnergy | None] = field(default_factory=dict)

    @classmethod
    def of(cls, document: ClusterDocument | None, ledger: Ledger | None = None) -> Places:
        """`document`: None where there is none, then only leases are known."""
        leased = {lease.node for lease in ledger.leases(open_only=False)} if ledger else set[str]()
        if document is None:
            return cls(rented=frozenset(leased))
        declared, hosts = document.monitoring, document.hosts
        leased |= {node for pool in document.pools for node in pool.nodes}
        leased |= {host.name for host in hosts if host.kind == "cloud"}
        hall_of = {host.name: host.hall for host in hosts if host.hall and host.name not in leased}
        its = {each.provider: each.energy for each in document.other_clouds}
        elsewhere = {node: its[pool.provider] for pool in document.pools if pool.provider in its for node in pool.nodes}
        elsewhere |= {host.name: its[host.provider] for host in hosts if host.provider in its}
        return cls(declared.pue, declared.halls, declared.cloud, hall_of, frozenset(leased), elsewhere)

    def at(self, node: str) -> PlaceEnergy:
        """Of a node's place."""
        if node in self.rented:
            return self.elsewhere.get(node, self.cloud) or _UNKNOWN
        return self.halls.get(self.hall_of.get(node, ""), PlaceEnergy(pue=self.pue))


NOWHERE = Places()
"""nothing is known of where nodes are"""


def of_run(run: RunRow, places: Places) -> Energy | None:
    """A run's; over several places by their nodes. None: nothing was measured."""
    figures = job_figures.kept(run.figures)
    if figures is None or (figures.kwh is None and figures.node_kwh is None):
        return None
    nodes, total = run.nodes.split(","), Energy()
    gpus, whole = (None if kwh is None else kwh / len(nodes) for kwh in (figures.kwh, figures.node_kwh))
    for node in nodes:
        if node in places.rented:
            total += _priced(Energy(gpus=gpus or 0.0, rented=(gpus or 0.0) * (RENTED - 1)), places.at(node))
        elif whole is None:
            total += _priced(Energy(gpus=gpus or 0.0, bare=gpus or 0.0), places.at(node))
        else:
            total += _priced(Energy(gpus=gpus or 0.0, nodes=max(whole - (gpus or 0.0), 0.0)), places.at(node))
    return total


def of_runs(runs: Iterable[RunRow], places: Places) -> Energy:
    """Of those that were measured, together."""
    return sum((found for run in runs if (found := of_run(run, places))), Energy())


def _priced(of_machines: Energy, place: PlaceEnergy) -> Energy:
    """With cooling, and what all of it emits."""
    its = of_machines.kwh
    cooling, uncooled = (0.0, its) if place.pue is None else (its * (place.pue - 1), 0.0)
    kwh = its + cooling
    if place.gco2_per_kwh is None:
        return of_machines + Energy(cooling=cooling, uncooled=uncooled, unpriced=kwh)
    origins = frozenset({place.origin})
    return of_machines + Energy(cooling=cooling, uncooled=uncooled, kg=kwh * place.gco2_per_kwh / 1000, origins=origins)


# ---- halls


def of_halls(measured: Measured, places: Places, from_s: float, to_s: float) -> list[dict[str, Any]]:
    """What each hall's nodes took between two moments, with jobs or without, as JSON values: `energy`, `nodes` that
    were seen, and `share` of the time in which they were. By BMCs' power; of a node whose BMC doesn't tell, its GPUs'.
    Raises MeasuredError.
    """
    steps = max(int((to_s - from_s) // STEP_S), 1)
    by_bmc = _watts(measured, "max by (node) (ironburst_node_power_watts)", "node", steps, to_s)
    by_dcgm = _watts(
        measured, "sum by (Hostname) (max by (Hostname, gpu) (DCGM_FI_DEV_POWER_USAGE))", "Hostname", steps, to_s
    )
    rows: dict[str, dict[str, Any]] = {}
    for node, hall in sorted(places.hall_of.items()):
        bmc, gpus = by_bmc.get(node, (0.0, 0)), by_dcgm.get(node, (0.0, 0))
        seen = max(bmc[1], gpus[1])
        if not seen:
            continue
        row = rows.setdefault(hall, {"hall": hall, "nodes": 0, "seen": 0, "energy": Energy()})
        kwh, whole = (bmc[0], True) if bmc[1] >= gpus[1] else (gpus[0], False)
        row["energy"] += _priced(Energy(nodes=kwh) if whole else Energy(gpus=kwh, bare=kwh), places.at(node))
        row["nodes"] += 1
        row["seen"] += seen
    return [
        {"hall": name, "nodes": row["nodes"], "share": min(row["seen"] / row["nodes"] / steps, 1.0)}
        | {"energy": row["energy"].as_json()}
        for name, row in sorted(rows.items())
    ]


def _watts(measured: Measured, of: str, label: str, steps: int, to_s: float) -> dict[str, tuple[float, int]]:
    """node: (kWh, steps at which it was seen)."""
    to_s, span = float(int(to_s)), f"[{steps * STEP_S - 1}s:{STEP_S}s]"  # so many steps, wherever they fall
    counts = {each.labels.get(label, ""): each.value for each in measured.query(f"count_over_time(({of}){span})", to_s)}
    sums = {each.labels.get(label, ""): each.value for each in measured.query(f"sum_over_time(({of}){span})", to_s)}
    # a host may call itself by its whole name
    return {name.split(".")[0]: (watts * STEP_S / _J_PER_KWH, int(counts.get(name, 0))) for name, watts in sums.items()}


# ---- for people


def sentence(energy: dict[str, Any]) -> str:
    """What `Energy.as_json` has, with what is in it and what isn't."""
    parts = {
        "GPUs": energy["gpus"],
        "the rest of their nodes": energy["nodes"],
        f"the rest of rented nodes, estimated at {RENTED - 1:.0%} of their GPUs'": energy["rented"],
        "cooling": energy["cooling"],
    }
    said = f"{_figure(energy['kwh'])} kWh: " + ", ".join(f"{name} {_figure(kwh)}" for name, kwh in parts.items() if kwh)
    lacks = list(_lacks(energy))
    return said + (f"; without {explain.listed(lacks)}" if lacks else "") + carbon(energy)


def _lacks(energy: dict[str, Any]) -> Iterator[str]:
    if energy["bare"]:
        yield "the rest of the nodes" + _of(energy["bare"], energy["gpus"])
    if energy["uncooled"]:
        yield "cooling" + _of(energy["uncooled"], energy["kwh"])


def _of(part: float, whole: float) -> str:
    return f" (of {_figure(part)} kWh)" if part < 0.995 * whole else ""


def carbon(energy: dict[str, Any]) -> str:
    """`; 3.1 kg CO2e (location-based: Germany 2024, Ember)`; empty: nothing is known."""
    if energy["kg"] is None:
        return ""
    where = "; ".join(energy["origins"])
    unknown = f", {_figure(energy['unpriced'])} kWh left out" if energy["unpriced"] else ""
    return f"; {_figure(energy['kg'])} kg CO2e (location-based: {where}{unknown})"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def hall_lines(rows: Iterable[dict[str, Any]]) -> list[str]:
    """What `of_halls` gathered."""
    return [
        f"hall {row['hall']}, {explain.plural(row['nodes'], 'node')} with and without jobs, seen {row['share']:.0%} of "
        f"the time: {sentence(row['energy']).replace('the rest of their nodes', 'nodes')}"
        for row in rows
    ]
