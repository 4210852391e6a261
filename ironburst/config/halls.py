"""A declared hall as the rules of ironburst.hall see it: ranges written out, unknown figures taken from the catalogue.

Lists that don't give one value a machine are cut to the shorter one; the checks (metal.one_value_a_node, halls.cables)
say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, TypeVar

from ironburst import catalog
from ironburst.config.cloud_models import Group, Pool
from ironburst.config.hall_models import Chassis, Rack, Switches
from ironburst.config.models import ClusterConfig, Hall, Nodes
from ironburst.config.node_settings import NodeSettings
from ironburst.hall import model, switch_ports, topology
from ironburst.hall.fabric import TreeSwitch, name_once, tree
from ironburst.nodes import naming, ranges

Item = TypeVar("Item")


def declared(config: ClusterConfig) -> tuple[model.Hall, ...]:
    """All halls, in their order."""
    return tuple(_hall(hall) for hall in config.halls)


def _hall(hall: Hall) -> model.Hall:
    devices = [device for n, nodes in enumerate(hall.nodes) for device in _nodes(nodes, ("nodes", n))]
    devices += [device for n, each in enumerate(hall.switches) for device in _switches(each, ("switches", n))]
    return model.Hall(
        name=hall.name,
        racks=tuple(_rack(rack, ("racks", n)) for n, rack in enumerate(hall.racks)),
        circuits=tuple(
            model.Circuit(each.name, each.feed, each.phases, each.volts, each.breaker_a, ("circuits", n))
            for n, each in enumerate(hall.circuits)
        ),
        devices=tuple(devices),
        cables=tuple(_cables(hall)),
        cable_limits=cable_limits(),
        cooling_kw=hall.cooling_kw,
        inlet_c=hall.inlet_c,
        oversubscription=hall.oversubscription,
        subnet_managers=_masters(hall),
        power_on_gap_s=hall.power_on_gap,
    )


def other_w(hall: model.Hall) -> float | None:
    """The most that all but its GPU nodes draw; None: of some it isn't known."""
    watts = [device.power_w for device in hall.devices if device.kind != "gpu"]
    known = [each for each in watts if each is not None]
    return sum(known) if len(known) == len(watts) else None


def fabric_cables(hall: model.Hall) -> Iterator[dict[str, Any]]:
    """Its InfiniBand's, as the document has them."""
    for cable in hall.cables:
        speed = model.SPEEDS[cable.speed]
        if speed.network == "infiniband":
            what = f"{cable.speed} {cable.type} {cable.length_m:g} m"
            yield {"ends": [str(cable.a), str(cable.b)], "gbps": speed.gb_s, "what": what}


def cable_limits() -> Mapping[tuple[str, str], model.CableLimit]:
    """The catalogue's, by speed and type."""
    return {(each.speed, each.type): model.CableLimit(each.exists, each.max_m) for each in catalog.cable_reaches()}


def _rack(rack: Rack, where: model.Where) -> model.Rack:
    return model.Rack(
        name=rack.name,
        units=rack.units,
        depth_mm=rack.depth_mm,
        max_weight_kg=rack.max_weight_kg,
        power_kw=rack.power_kw,
        cooling_kw=rack.cooling_kw,
        cooling=rack.cooling,
        airflow_cfm=rack.airflow_cfm,
        at_m=(rack.at_m[0], rack.at_m[1]) if rack.at_m else None,
        pdus=tuple(
            model.Pdu(each.name, each.circuit, each.outlets, (*where, "pdus", n)) for n, each in enumerate(rack.pdus)
        ),
        where=where,
    )


def _nodes(nodes: Nodes, where: model.Where) -> Iterator[model.Device]:
    platform = catalog.platforms().get(nodes.platform or "")
    own = nodes.chassis
    gpu_w, power_w = _limited(nodes, platform)
    capped = own.power_w is not None or (platform is not None and power_w != platform.max_power_w)
    of_node = model.Device(
        name="",
        kind=nodes.role,
        rack=nodes.rack,
        height=nodes.height or (platform.height_u if platform else None),
        platform=nodes.platform,
        vendor=platform.vendor if platform else None,
        power_w=own.power_w or power_w,
        # capped: the maker's figure is of what it would draw uncapped
        heat_btu_h=own.heat_btu_h or (platform.heat_btu_h_plan if platform and not capped else None),
        weight_kg=own.weight_kg or (platform.weight_kg if platform else None),
        depth_mm=own.depth_mm or (platform.depth_mm if platform else None),
        airflow_cfm=own.airflow_cfm or (platform.airflow_cfm if platform else None),
        cooling=own.cooling or (platform.cooling if platform else None),
        inlet_min_c=platform.inlet_min_c if platform else None,
        inlet_max_c=own.inlet_max_c or (platform.inlet_max_c if platform else None),
        psus=own.psus or (platform.psu_count if platform else None),
        psu_w=own.psu_w or (platform.psu_watts_each if platform else None),
        psus_needed=own.psus_needed or (platform.psus_needed if platform and own.psus is None else None),
        cords=tuple(nodes.cords),
        gpus=platform.gpu_count if platform else 0,
        gpu_w=gpu_w,
        hcas=nodes.infiniband_links,
        where=where,
    )
    for n, name in enumerate(nodes.names):
        yield _placed(of_node, name, _nth(nodes.units, n))


def _limited(nodes: Nodes, platform: catalog.Platform | None) -> tuple[float | None, float | None]:
    """What a GPU and the whole node draw at most, W, with the declared power limit; without a chassis' own figures."""
    if platform is None:
        return None, None
    gpu_w, limit = platform.gpu.tdp_w, nodes.gpu_power_limit_w
    if limit is None or gpu_w is None or limit >= gpu_w:
        return gpu_w, platform.max_power_w
    spared = platform.gpu_count * (gpu_w - limit)
    return limit, platform.max_power_w - spared if platform.max_power_w is not None else None


def _switches(switches: Switches, where: model.Where) -> Iterator[model.Device]:
    own: Chassis = switches.chassis
    of_switch = model.Device(
        name="",
        kind=switches.kind,
        rack=switches.rack,
        height=switches.height,
        power_w=own.power_w,
        heat_btu_h=own.heat_btu_h,
        weight_kg=own.weight_kg,
        depth_mm=own.depth_mm,
        airflow_cfm=own.airflow_cfm,
        cooling=own.cooling,
        inlet_max_c=own.inlet_max_c,
        psus=own.psus,
        psu_w=own.psu_w,
        psus_needed=own.psus_needed,
        cords=tuple(switches.cords),
        ports=switches.ports,
        where=where,
    )
    for n, name in enumerate(switches.names):
        yield _placed(of_switch, name, _nth(switches.units, n), _nth(switches.rails, n))


def _placed(device: model.Device, name: str, unit: int | None, rail: int | None = None) -> model.Device:
    """Its own name and place. dataclasses.replace would take most of the time of a large hall."""
    return model.Device(**{**vars(device), "name": name, "unit": unit, "rail": rail})


def _nth(values: Sequence[Item], n: int) -> Item | None:
    return values[n] if n < len(values) else None


def _cables(hall: Hall) -> Iterator[model.Cable]:
    switches = {name for each in hall.switches for name in each.names}
    for n, each in enumerate(hall.cables):
        for a, b in zip(*each.ends, strict=False):
            yield model.Cable(_end(a, switches), _end(b, switches), each.type, each.speed, each.length_m, ("cables", n))


def _end(text: str, switches: Set[str]) -> model.End:
    device, _, port = text.partition("/")
    return model.End(device, switch_ports.declared(port) if device in switches else port)


def _masters(hall: Hall) -> tuple[str, ...]:
    opensm = [f"opensm on {', '.join(hall.subnet_managers)}"] if hall.subnet_managers else []
    switches = [f"switch {each.names[0]}" for each in hall.switches if each.subnet_manager]
    return (*opensm, *switches, *(["UFM"] if hall.ufm else []))


def slurm_topology(config: ClusterConfig) -> str:
    """topology.conf of the whole cluster; empty: Slurm's nodes are on no declared fabric, so there is nothing to place
    jobs by.
    """
    names = {name for hall in config.halls for nodes in hall.nodes for name in _of_slurm(config, nodes)}
    on_fabric = any(names & set(each.nodes) for hall in declared(config) for each in tree(hall))
    return topology.conf(slurm_trees(config), ranges.compact) if on_fabric else ""


def slurm_trees(config: ClusterConfig) -> list[TreeSwitch]:
    """The whole cluster as Slurm's tree: each hall's fabric, its GPU nodes without one, fixed and rented nodes by group
    and pool. They aren't joined, so that no job spans two of them. A node that is nowhere would never be given a job.
    """
    halls = declared(config)
    found: list[TreeSwitch] = []
    taken: set[str] = set()
    slurms = {name for hall in config.halls for nodes in hall.nodes for name in _of_slurm(config, nodes)}
    for hall in halls:
        its = list(_pruned(tree(hall), slurms))
        found += its
        taken |= {each.name for each in its}
    for hall in halls:
        inside = {name for each in found for name in each.nodes}
        rest = tuple(each.name for each in hall.devices if each.name in slurms - inside)
        found += [TreeSwitch(name_once(f"{hall.name}-rest", taken), nodes=rest)] if rest else []
    rented: list[tuple[Group | Pool, int]] = [(group, group.count) for group in config.groups]
    rented += [(pool, pool.max_nodes) for pool in config.pools]
    for each, count in rented:
        if _is_slurms(config, each):
            nodes = tuple(naming.numbered(each.name, count))
            found.append(TreeSwitch(name_once(each.name, taken), nodes=nodes))
    return found


def _pruned(switches: Iterable[TreeSwitch], slurms: Set[str]) -> Iterator[TreeSwitch]:
    """Without nodes of another scheduler, and without switches that have nothing then: slurmctld refuses both."""
    kept: set[str] = set()
    for each in switches:  # from below
        left = replace(
            each,
            nodes=tuple(name for name in each.nodes if name in slurms),
            switches=tuple(name for name in each.switches if name in kept),
        )
        if left.nodes or left.switches:
            kept.add(each.name)
            yield left


def _of_slurm(config: ClusterConfig, nodes: Nodes) -> Sequence[str]:
    return nodes.names if nodes.role == "gpu" and _is_slurms(config, nodes) else []


def _is_slurms(config: ClusterConfig, nodes: NodeSettings) -> bool:
    return config.slurm is not None and config.scheduler_of(nodes) is config.slurm
