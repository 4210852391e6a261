"""What every node must have, and what its platform has by the catalogue. Pure."""

from collections.abc import Iterable

from ironburst.baremetal.gpu_names import possible_models
from ironburst.baremetal.hardware import Hardware
from ironburst.baremetal.mismatch import Mismatch
from ironburst.baremetal.power import working
from ironburst.catalog.hardware import Gpu, Platform
from ironburst.catalog.software import driver_branches
from ironburst.software.versions import branch_of, older

MEMORY_GIB, PORTS, LANES = 24, 2, 16
SHORT = 0.97
"""of the platform's memory: some BMCs report what the firmware leaves"""
ONE_SUPPLY = frozenset({"workstation", "rack-scale tray"})
"""kinds of platforms that need no second power supply: a tray's are its rack's"""


def check(
    observed: Hardware,
    platform: Platform | None,
    gpus: list[Gpu],
    *,
    height_u: int | None = None,
    power_w: float | None = None,
    psus_needed: int | None = None,
    driver: str | None = None,
) -> Iterable[Mismatch]:
    """Everything that the node lacks; `gpus` are the catalogue's. What is declared of a machine goes before its
    platform's: rack units, the most that it draws (W), how many of its power supplies carry that. `driver`: the lock's.
    """
    yield from _memory(observed, platform)
    yield from _ports(observed)
    yield from _lanes(observed, platform, gpus)
    yield from _power(observed, platform, gpus, power_w, psus_needed)
    if not observed.drives:
        sentence = f"local storage is needed, the BMC {_lists('drives', observed)}"
        yield Mismatch("local_storage", 0, sentence, unknown="drives" in observed.not_said)
    yield from _form(observed, height_u or (platform.height_u if platform else None))
    yield from _drivers(observed, gpus, driver)


def _lists(what: str, observed: Hardware) -> str:
    return f"says nothing of {what}" if what in observed.not_said else f"lists no {what}"


def _memory(observed: Hardware, platform: Platform | None) -> Iterable[Mismatch]:
    catalogued = platform.system_memory_gb if platform else None
    least = max(MEMORY_GIB, round((catalogued or 0) * SHORT))
    have = observed.memory_gib
    if have is None or have < least:
        of = f"{platform.name} has {catalogued}" if platform and catalogued else "every node needs them"
        reported = "nothing" if have is None else have
        sentence = f"at least {least} GiB of memory are needed ({of}), the BMC reports {reported}"
        yield Mismatch("memory_minimum", have, sentence, unknown=have is None)


def _ports(observed: Hardware) -> Iterable[Mismatch]:
    have = max(len(observed.ports), len(observed.macs))
    if have < PORTS:
        unknown = have == 0 and "macs" in observed.not_said
        said = "says nothing of them" if unknown else f"reports {have}"
        yield Mismatch("network_ports", have, f"at least {PORTS} network ports are needed, the BMC {said}", unknown)


def _lanes(observed: Hardware, platform: Platform | None, gpus: list[Gpu]) -> Iterable[Mismatch]:
    """A superchip's GPU is not on PCIe: GH200's says x1."""
    chips = {gpu.model for gpu in gpus if "superchip" in (gpu.form_factor or "")}
    if platform and platform.gpu.model in chips:
        return
    on_pcie = [gpu for gpu in observed.gpu_devices if not (gpu.model and possible_models(gpu.model, gpus) & chips)]
    narrow = [(gpu.id, lanes) for gpu in on_pcie if (lanes := gpu.lanes or gpu.max_lanes) and lanes < LANES]
    if narrow:
        listed = ", ".join(f"{name} x{lanes}" for name, lanes in narrow)
        sentence = f"GPUs need {LANES} PCIe lanes, the BMC reports {listed}"
        yield Mismatch("gpu_lanes", min(lanes for _, lanes in narrow), sentence)
    elif any(gpu.lanes is None and gpu.max_lanes is None for gpu in on_pcie):
        sentence = f"GPUs need {LANES} PCIe lanes, the BMC doesn't say how many theirs have"
        yield Mismatch("gpu_lanes", None, sentence, unknown=True)


def _power(
    observed: Hardware, platform: Platform | None, gpus: list[Gpu], power_w: float | None, psus_needed: int | None
) -> Iterable[Mismatch]:
    supplies, wanted = observed.power_supplies, platform.psu_count if platform else None
    dead = [each.id for each in supplies if each.has_input is False]
    if dead:
        yield Mismatch("psu_input", len(supplies) - len(dead), f"without input power: {', '.join(dead)}")
    if platform and (platform.kind in ONE_SUPPLY or platform.psu_count == 0):
        return
    if not supplies:
        yield Mismatch("psu_redundancy", None, "redundant power supplies are needed, the BMC lists none", unknown=True)
        return
    if wanted and len(supplies) < wanted:
        sentence = f"{wanted} power supplies are in {platform.name if platform else ''}, the BMC lists {len(supplies)}"
        yield Mismatch("psu_count", len(supplies), sentence)
    spare, said = _spare(observed, platform, power_w or _least_power(observed, platform, gpus), psus_needed)
    if spare is not True:
        sentence = f"redundant power supplies are needed, the BMC {said}"
        yield Mismatch("psu_redundancy", spare, sentence, unknown=spare is None)


def _spare(
    observed: Hardware, platform: Platform | None, power_w: float | None, psus_needed: int | None
) -> tuple[bool | None, str]:
    """Whether a power supply may fail, and the end of the sentence if not. A BMC that says so is believed unless it
    can't be: of DGX H100's six supplies one carries all, by its BMC.
    """
    alive, carry = working(observed.power_supplies), observed.psus_needed
    needed = psus_needed or (platform.psus_needed if platform else None)
    rated = [each.watts for each in observed.power_supplies if each.watts]
    watts = min(rated) if rated else platform.psu_watts_each if platform else None
    if observed.redundant is False or (needed and alive <= needed):
        return False, f"reports {alive} of which none may fail"
    if needed or (observed.redundant and not (carry and watts and power_w)):
        return True, ""
    if observed.redundant is None or not (carry and watts and power_w):
        return None, "doesn't say whether one may"
    if carry * watts >= power_w:
        return True, ""
    given = f"{carry} of {len(observed.power_supplies)} carry the load, which is {carry * watts:g} W"
    return None, f"says that {given}: the node draws up to {power_w:g} W, so that isn't believed"


def _least_power(observed: Hardware, platform: Platform | None, gpus: list[Gpu]) -> float | None:
    """W that the node draws at most, by its maker; or at least what its GPUs may."""
    if platform and platform.max_power_w:
        return platform.max_power_w
    limits = {gpu.model: gpu.tdp_w for gpu in gpus if gpu.tdp_w}
    known = [(group.count, possible_models(group.model, gpus) & limits.keys()) for group in observed.gpus]
    return sum(count * min(limits[model] for model in models) for count, models in known if models) or None


def _form(observed: Hardware, height_u: int | None) -> Iterable[Mismatch]:
    if height_u is None:
        return
    have = observed.height_u
    if have != height_u:
        reported = "says nothing" if have is None else f"reports {have}"
        sentence = f"a height of {height_u} rack units is declared, the BMC {reported}"
        yield Mismatch("form_factor", have, sentence, unknown=have is None)


def _drivers(observed: Hardware, gpus: list[Gpu], driver: str | None) -> Iterable[Mismatch]:
    """The locked driver drives each GPU; without a lock: a branch that is still supported does."""
    by_name = {gpu.model: gpu for gpu in gpus}
    supported = [each.branch for each in driver_branches().values() if each.status != "eol"]
    for group in observed.gpus:
        models = possible_models(group.model, gpus) if group.model else frozenset[str]()
        if not models:
            name = group.model or f"{group.count} unnamed GPUs"
            sentence = f"whether a driver supports {name} isn't known: it is not in the catalogue"
            yield Mismatch("gpu_driver", None, sentence, unknown=True)
        elif driver:
            oldest_first = sorted(models, key=lambda model: (by_name[model].min_driver_branch or 0, model))
            lacks = [_lacks(by_name[model], driver) for model in oldest_first]
            if all(lacks):
                sentence = f"the lock has driver {driver} for it, {group.model} needs {lacks[0]}"
                yield Mismatch("gpu_driver", group.model, sentence)
        elif not any(_drives(by_name[model], branch) for model in models for branch in supported):
            listed = ", ".join(map(str, sorted(supported)))
            sentence = f"no supported driver branch ({listed}) drives {group.model}"
            yield Mismatch("gpu_driver", group.model, sentence)


def _drives(gpu: Gpu, branch: int) -> bool:
    return (gpu.min_driver_branch or 0) <= branch <= (gpu.last_driver_branch or branch)


def _lacks(gpu: Gpu, driver: str) -> str | None:
    """What the GPU needs and this driver isn't; None: nothing that is known."""
    if older(driver, gpu.min_driver):
        return f"{gpu.min_driver} at least"
    if _drives(gpu, branch_of(driver)):
        return None
    least = gpu.min_driver_branch or 0
    return f"branch {least} at least" if branch_of(driver) < least else f"branch {gpu.last_driver_branch} at most"
