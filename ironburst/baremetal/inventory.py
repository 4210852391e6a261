"""A node's inventory from its BMC's documents. Pure; which property means what is in makers.py."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ironburst.baremetal import bios, health, makers, sensors
from ironburst.baremetal.documents import Documents, Found, Incomplete
from ironburst.baremetal.gpu_names import possible_models
from ironburst.baremetal.hardware import Component, Dimm, Drive, GpuDevice, GpuGroup, Hardware, Port, Slot
from ironburst.baremetal.power import power
from ironburst.baremetal.said import dicts, dig, number, text, whole
from ironburst.catalog.hardware import gpus as catalogue

RACK_UNIT_MM = 44.45


def hardware(documents: Documents) -> Hardware:
    """The inventory. Raises Incomplete where the documents are not of one node."""
    host = find_host(documents)
    power_state = text(host.body, "PowerState")
    gpu_devices = tuple(_gpu_devices(documents))
    ports = tuple(_ports(documents, host))
    supplies, needed, redundant = power(documents)
    dimms = tuple(_dimms(documents, host))
    drives = tuple(_drives(documents))
    chassis = _chassis(documents, host)
    bearers = _bearers(documents, host, chassis)
    serials = [(serial, of) for of, body in bearers.items() if (serial := text(body, *makers.SERIALS))]
    groups = Counter(gpu.model or "" for gpu in gpu_devices)
    components = tuple(installed(documents))
    memory = whole(host.body, "MemorySummary/TotalSystemMemoryGiB") or sum(each.gib or 0 for each in dimms) or None
    height = number(chassis, "HeightMm")
    said = {
        "gpus": _gpus_said(documents, len(gpu_devices), power_state),
        "memory": memory is not None,
        "dimms": bool(documents.of("dimm")),
        "macs": bool(ports) or ("system", "EthernetInterfaces") not in documents.unsaid,
        "drives": _drives_said(documents, host, power_state),
        "power_supplies": bool(supplies),
        "slots": bool(documents.of("slots")),
        "firmware": bool(documents.of("firmware")),
        "height": height is not None,
    }
    return Hardware(
        serial=serials[0][0] if serials else None,
        serial_of=serials[0][1] if serials else "system",
        service_tag=text(host.body, makers.SERVICE_TAG),
        manufacturer=_first(bearers, "Manufacturer"),
        model=_first(bearers, "Model"),
        uuid=text(host.body, "UUID"),
        macs=tuple(sorted({port.mac for port in ports if port.mac})),
        gpus=tuple(GpuGroup(model, count) for model, count in sorted(groups.items())),
        cpu_count=_cpu_count(documents, host),
        memory_gib=memory,
        power_state=power_state,
        bios_version=text(host.body, "BiosVersion"),
        bmc_version=_bmc_version(documents, host),
        gpu_devices=gpu_devices,
        dimms=dimms,
        free_sockets=sum(not _there(each.body) for each in _sockets(documents, host)),
        ports=ports,
        drives=drives,
        power_supplies=supplies,
        psus_needed=needed,
        redundant=redundant,
        slots=tuple(_slots(documents)),
        sensors=tuple(sensors.readings(documents)),
        firmware=_firmware(components),
        components=components,
        bios=_bios(documents, host),
        height_u=round(height / RACK_UNIT_MM) if height else None,
        chassis_type=text(chassis, "ChassisType"),
        not_said=tuple(name for name, is_said in said.items() if not is_said),
        unread=tuple(documents.notes),
        ill=tuple(health.ill(documents, {each.id for each in supplies if each.has_input is False})),
    )


# ---- the node


def find_host(documents: Documents) -> Found:
    """The computer system with CPUs, of all that the BMC lists (HGX boards are listed as systems, too)."""
    systems = documents.of("system")
    hosts = [each for each in systems if not makers.BOARD.search(_name(each)) and not _no_host(each)]
    if len(hosts) != 1:
        hosts = [each for each in hosts if _has_cpus(documents, each)]
    if len(hosts) != 1:
        names = ", ".join(_name(each) for each in systems[:8]) or "none"
        raise Incomplete(f"lists {len(hosts)} computer systems with CPUs (of: {names}), one is expected")
    return hosts[0]


def _no_host(system: Found) -> bool:
    return text(system.body, "SystemType") in makers.NOT_A_HOST


def _has_cpus(documents: Documents, system: Found) -> bool:
    listed = any(_is_cpu(each.body) for each in documents.of("processor", system.path))
    return listed or bool(whole(system.body, "ProcessorSummary/Count"))


def _chassis(documents: Documents, host: Found) -> dict[str, Any]:
    """The host's own chassis; empty: not said. GB200 links a board of it, and its tray links the host."""
    linked = [documents.at(text(each, "@odata.id") or "") for each in dicts(host.body, "Links/Chassis")]
    every = [each.body for each in documents.of("chassis")]
    mine = [*linked, *(each for each in every if _is_of(each, host))]
    return next(filter(_is_whole, mine), None) or next(filter(None, linked + every), {})


def _is_of(chassis: dict[str, Any], host: Found) -> bool:
    return [text(each, "@odata.id") for each in dicts(chassis, "Links/ComputerSystems")] == [host.path]


def _is_whole(chassis: dict[str, Any]) -> bool:
    return text(chassis, "ChassisType") in makers.WHOLE_CHASSIS and not dig(chassis, "Links/ContainedBy")


def _bearers(documents: Documents, host: Found, chassis: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What may bear the node's name, the surest first: GB200's and GH200's systems have neither serial number nor
    model. A chassis of several nodes is none's.
    """
    boards = [each.body for each in documents.of("system") if makers.BOARD.search(_name(each))]
    bearers = {"system": host.body, "chassis": chassis if _is_whole(chassis) and _is_of(chassis, host) else {}}
    return bearers | ({"board": boards[0]} if len(boards) == 1 else {})


def _first(bearers: dict[str, dict[str, Any]], name: str) -> str | None:
    return next((said for body in bearers.values() if (said := text(body, name))), None)


def _bmc_version(documents: Documents, host: Found) -> str | None:
    listed = dicts(host.body, "Links/ManagedBy")
    mine = documents.at(text(listed[0], "@odata.id") or "") if listed else {}
    every = [mine] if mine else [each.body for each in documents.of("manager")]
    return next((version for each in every if (version := text(each, "FirmwareVersion"))), None)


def _bios(documents: Documents, host: Found) -> bios.Bios | None:
    for each in documents.of("bios", host.path):
        settings = documents.of("bios_settings", each.path)
        return bios.read(each.body, settings[0].body if settings else None)
    return None


def _name(found: Found) -> str:
    return text(found.body, *makers.NAMES) or found.path.rsplit("/", 1)[1]


def _state(body: dict[str, Any]) -> str | None:
    return text(body, "Status/State")


def _there(body: dict[str, Any]) -> bool:
    """Empty sockets are listed as Absent."""
    return _state(body) != makers.ABSENT


def _health(body: dict[str, Any]) -> str | None:
    return text(body, "Status/Health", "Status/HealthRollup")


def _cpu_count(documents: Documents, host: Found) -> int:
    """The host's; Supermicro's GB300 lists its CPUs only with the HGX board."""

    def listed(parent: str | None) -> int:
        return sum(_is_cpu(each.body) and _there(each.body) for each in documents.of("processor", parent))

    return listed(host.path) or whole(host.body, "ProcessorSummary/Count") or listed(None)


def _is_cpu(body: dict[str, Any]) -> bool:
    return text(body, "ProcessorType") == "CPU"


# ---- GPUs


def _gpu_devices(documents: Documents) -> Iterable[GpuDevice]:
    """From the first of the places where makers list them: processors, HPE's devices, PCIe devices."""
    places = (
        [each for each in documents.of("processor") if text(each.body, "ProcessorType") == "GPU"],
        [each for each in documents.of("device") if text(each.body, "DeviceType") in makers.GPU_DEVICES],
        [each for each in documents.of("pcie_device") if _is_gpu_card(each)],
    )
    every = ([each for each in place if not makers.NOT_A_GPU.search(_words(each))] for place in places)
    listed = next(filter(None, every), [])
    seen: set[str] = set()
    for each in listed:
        serial, uuid = text(each.body, *makers.SERIALS), text(each.body, "UUID")
        # One GPU may be listed under two systems; two of GB300 have the serial number of the board that they are on.
        same = uuid or (f"{serial} {_name(each)}" if serial else "")
        if not _there(each.body) or _state(each.body) in makers.LOST or same in seen:
            continue
        seen |= {same} - {""}
        card = documents.at(text(each.body, "Links/PCIeDevice/@odata.id") or "")
        used, most = _lanes(each.body, card)
        yield GpuDevice(
            _name(each),
            _gpu_model(documents, each, card),
            serial or uuid,
            used,
            most,
            _health(each.body) or _health(card),
        )


def _gpu_model(documents: Documents, gpu: Found, card: dict[str, Any]) -> str | None:
    """The first name that the catalogue knows: HPE gives a part number as the model, Lenovo none; else what is said."""
    by_id = (_by_pci_id(function.body) for function in documents.of("pcie_function", gpu.path))
    models = [text(gpu.body, "Model"), text(card, "Model"), *by_id]
    names = [text(gpu.body, "Name"), text(card, "Name")]
    known = (each for each in (*models, *names) if each and possible_models(each, catalogue().values()))
    return next(known, None) or next(filter(None, models + (names[:1] if gpu.kind == "device" else [])), None)


def _by_pci_id(function: dict[str, Any]) -> str | None:
    """The catalogue's name by PCI id; None where several models share one."""
    if _hex(function, "VendorId") != 0x10DE:
        return None
    wanted = _hex(function, "DeviceId")
    models = [gpu.model for gpu in catalogue().values() if any(int(each, 16) == wanted for each in gpu.pci_device_ids)]
    return models[0] if len(models) == 1 else None


def _hex(body: dict[str, Any], name: str) -> int | None:
    match = re.fullmatch(r"(?:0x)?([0-9a-f]{1,8})h?", (text(body, name) or "").lower())
    return int(match[1], 16) if match else None


def _words(found: Found) -> str:
    """All that says what it is. Processors have a description of how they are built in (NVLink)."""
    names = ("Id", "Name", "Model") if found.kind == "processor" else ("Id", "Name", "Model", "Description")
    return " ".join(text(found.body, each) or "" for each in names)


def _is_gpu_card(card: Found) -> bool:
    """A PCIe device that may be a GPU, by its maker and its name."""
    words, has_model = _words(card), bool(text(card.body, "Model"))
    if makers.GPU_MAKERS.search(f"{text(card.body, 'Manufacturer') or ''} {words}"):
        return has_model or bool(re.search(r"\bgpu", words, re.IGNORECASE))
    return has_model and bool(makers.GPU_CARD.fullmatch(text(card.body, "Name") or ""))


def _lanes(*bodies: dict[str, Any]) -> tuple[int | None, int | None]:
    for body in bodies:
        for used, most in makers.LANES:
            lanes = whole(body, used), whole(body, most)
            if any(lanes):
                return lanes[0] or None, lanes[1] or None
    return None, None


def _gpus_said(documents: Documents, count: int, power_state: str | None) -> bool:
    """Whether a number of GPUs, or none, can be read out of this. A BMC sees none while the node is off."""
    if count:
        return True
    lists_cards = documents.of("pcie_device") or documents.of("device")
    return bool(lists_cards) and power_state == "On" and ("chassis", "PCIeDevices") not in documents.unsaid


# ---- other parts


def _sockets(documents: Documents, host: Found) -> list[Found]:
    """The host's; GB300's are its board's."""
    return documents.of("dimm", host.path) or documents.of("dimm")


def _dimms(documents: Documents, host: Found) -> Iterable[Dimm]:
    for each in _sockets(documents, host):
        kind = text(each.body, "MemoryDeviceType", "MemoryType")
        size = next(
            (value * factor for name, factor in makers.MEMORY_SIZES if (value := number(each.body, name))), None
        )
        if _there(each.body) and kind not in makers.NOT_A_DIMM and size != 0:
            name = text(each.body, *makers.DIMM_NAMES) or _name(each)
            yield Dimm(name, round(size) if size else None, text(each.body, *makers.SERIALS), _health(each.body))


def _ports(documents: Documents, host: Found) -> Iterable[Port]:
    """The host's interfaces, and the ports of its adapters that are none of them. An adapter that lists no ports has
    one: of six GB200's, one lists its port.
    """
    known: set[str] = set()
    ports = documents.of("port")
    adapters = {each.path: _name(each) for each in documents.of("adapter") if _there(each.body)}
    listed = [(each, _name(each)) for each in documents.of("ethernet", host.path)]
    listed += [(each, f"{adapters.get(each.parent, '')} {_name(each)}".strip()) for each in ports]
    listed += [
        (each, _name(each)) for each in documents.of("adapter") if each.path not in {port.parent for port in ports}
    ]
    for each, name in listed:
        mac = _mac(each.body)
        if makers.NOT_A_PORT.search(f"{name} {text(each.body, 'Description') or ''}") or (mac and mac in known):
            continue
        if mac:
            known.add(mac)
        speed = next(
            (value * factor for key, factor in makers.SPEEDS if (value := number(each.body, key)) is not None), None
        )
        if _there(each.body):
            yield Port(name, mac, speed, text(each.body, "LinkStatus"))


def _mac(body: dict[str, Any]) -> str | None:
    for place in makers.MACS:
        mac = (text(body, place) or "").lower().replace("-", ":")
        if re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", mac) and mac != "00:00:00:00:00:00":
            return mac
    return None


def _drives(documents: Documents) -> Iterable[Drive]:
    inline = [body for each in documents.of("simple_storage") for body in dicts(each.body, "Devices")]
    listed = [each.body for each in documents.of("drive")] or inline
    seen: set[str] = set()
    for n, body in enumerate(listed):
        size, serial = number(body, "CapacityBytes"), text(body, *makers.SERIALS)
        if serial and serial in seen:  # GB200 lists one under its system and under its backplane
            continue
        seen |= {serial} if serial else set()
        if _there(body) and not makers.VIRTUAL_DRIVE.search(text(body, "Model") or ""):
            yield Drive(
                text(body, *makers.NAMES) or str(n),
                round(size / 1e9) if size else None,
                text(body, "Model"),
                serial,
                _health(body),
            )


def _drives_said(documents: Documents, host: Found, power_state: str | None) -> bool:
    """Whether drives, or that there are none, can be read out of this. A BMC may see none while the node is off; that
    of a GH200 with a disk has a storage subsystem of neither drives nor controllers.
    """
    inline = any(dicts(each.body, "Devices") for each in documents.of("simple_storage"))
    if documents.of("drive") or inline:
        return True
    if power_state != "On" or any(dig(host.body, at) for at in makers.OWN_DRIVES):
        return False
    if subsystems := documents.of("storage", host.path):
        known = documents.of("storage_controller") or any(dicts(each.body, "StorageControllers") for each in subsystems)
        return bool(known)
    return any(dig(host.body, at) and (host.path, at) not in documents.unsaid for at in ("Storage", "SimpleStorage"))


def _slots(documents: Documents) -> Iterable[Slot]:
    for each in documents.of("slots"):
        for n, slot in enumerate(dicts(each.body, "Slots")):
            name = text(slot, "Location/PartLocation/ServiceLabel", "Location/Info") or str(n)
            inside = dig(slot, "Links/PCIeDevice")
            yield Slot(name, whole(slot, "Lanes"), bool(inside) if isinstance(inside, list) else None)


def installed(documents: Documents) -> Iterable[Component]:
    """What is installed, in the BMC's order."""
    for each in documents.of("firmware"):
        own = text(each.body, "Id") or each.path.rsplit("/", 1)[1]
        if not makers.NOT_INSTALLED.search(own) and _there(each.body):
            name = text(each.body, "Name")
            yield Component(own, own if name in (None, makers.NO_NAME) else name, text(each.body, "Version"), each.path)


def _firmware(components: Iterable[Component]) -> tuple[tuple[str, str], ...]:
    """What is installed, (name, version) by name; a name that several have is told apart by its number."""
    versions: dict[str, str] = {}
    for component in components:
        version, name = component.version, component.name
        if version is None:
            continue
        label, count = name, 1
        while name in versions:
            count += 1
            name = f"{label} ({count})"
        versions[name] = version
    return tuple(sorted(versions.items()))
