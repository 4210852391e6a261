"""What could be added to the declared nodes of today, and where more of them stand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ironburst import catalog
from ironburst.config import halls
from ironburst.config.models import ClusterConfig
from ironburst.hall import capacity
from ironburst.system.bad_input import BadInput

GPU_LANES = 16
"""of PCIe, that a GPU's slot has"""
BOARDS = ("dgx", "hgx server", "rack-scale tray")
"""kinds of platforms whose GPUs sit on one board of their maker's"""
SHOWN = "what `ironburst node show NODE STACK_FILE --json` prints"
GIVE = f"give {SHOWN}, with --inventory"


def placed(config: ClusterConfig, more: int, gpus: int) -> Iterator[dict[str, Any]]:
    """As JSON values. For each platform of today with as many GPUs: where that many more of it stand, hall by hall."""
    declared = halls.declared(config)
    kinds = {name: each for hall in declared for name, each in capacity.platforms(hall).items() if each.gpus == gpus}
    for like in kinds.values():
        left, places = more, []
        for hall in declared:
            place = capacity.place(hall, like, left)
            left = place.left
            places.append(asdict(place) | {"hall": hall.name})
        yield {"platform": like.platform, "halls": places, "no_room": left}


def upgrades(config: ClusterConfig, inventories: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """What could be added to the nodes of today: GPUs, memory, as far as it is known. As JSON values."""
    alike: dict[tuple[str, str], list[str]] = {}
    for nodes in (nodes for hall in config.halls for nodes in hall.nodes if nodes.role == "gpu" and nodes.platform):
        for name in nodes.names:
            inventory = inventories.get(name)
            said = f"{_gpus(catalog.platform(str(nodes.platform)), inventory)}; {_memory(inventory)}"
            alike.setdefault((str(nodes.platform), said), []).append(name)
    for (platform, says), names in alike.items():
        yield {"platform": platform, "nodes": names, "says": says}


def _gpus(platform: catalog.Platform, inventory: Mapping[str, Any] | None) -> str:
    if platform.kind in BOARDS:
        return f"its {platform.gpu_count} GPUs are on one board of its maker's: none can be added"
    if inventory is None:
        return "free slots aren't known"
    has = sum(group["count"] for group in inventory["gpus"])
    if not inventory["slots"]:
        return f"has {has} of {platform.gpu_count} GPUs of its platform; its BMC says nothing of slots"
    free = sum(each["filled"] is False and (each["lanes"] or 0) >= GPU_LANES for each in inventory["slots"])
    unsaid = sum(each["filled"] is None or each["lanes"] is None for each in inventory["slots"])
    fits = max(0, min(free, platform.gpu_count - has))
    slots = f"{free} free slots of {GPU_LANES} lanes{f', {unsaid} of which its BMC says too little' if unsaid else ''}"
    return (
        f"has {has} of {platform.gpu_count} GPUs of its platform, and {slots}: {fits} more as far as that goes; "
        "risers, cables and air are its maker's to say"
    )


def _memory(inventory: Mapping[str, Any] | None) -> str:
    if inventory is None:
        return f"free sockets for memory aren't known: {GIVE}"
    sizes, free = inventory["dimms"], inventory["free_sockets"]
    if not sizes:
        return "its BMC says nothing of memory modules"
    has = f"memory: {len(sizes)} modules" + (f", {sum(sizes)} GiB in all" if all(sizes) else "")
    if not free:
        return f"{has}; its BMC lists no free socket: there is none, or it lists modules alone"
    alike = f": {sum(sizes) + free * sizes[0]} GiB with {free} more of {sizes[0]} GiB"
    return f"{has}, and {free} free sockets{alike if all(sizes) and len(set(sizes)) == 1 else ''}"


def inventories(paths: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Node: its hardware, of files that `ironburst node show NODE STACK_FILE --json` printed. Raises BadInput."""
    found = {}
    for path in paths:
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            name, hardware = said["node"], said["hardware"]
            gpus = [{"count": int(each["count"])} for each in hardware["gpus"]]
            slots = [{key: each[key] for key in ("lanes", "filled")} for each in hardware["slots"]]
            dimms = [int(each["gib"] or 0) for each in hardware.get("dimms", [])]
            free = int(hardware.get("free_sockets", 0))
        except OSError as error:
            raise BadInput(f"--inventory {path} can't be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise BadInput(f"--inventory {path}: give {SHOWN}") from None
        found[str(name)] = {"gpus": gpus, "slots": slots, "dimms": dimms, "free_sockets": free}
    return found


def known(config: ClusterConfig, inventories: Mapping[str, object], path: Path) -> None:
    """Every inventory is one of a declared node. Raises BadInput."""
    names = {name for hall in config.halls for nodes in hall.nodes for name in nodes.names}
    for name in inventories:
        if name not in names:
            raise BadInput(f"--inventory: {name} is no node of {path}")
