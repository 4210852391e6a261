"""Compares a declared node with what its BMC reports. Pure: no I/O, no clock."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from ironburst.baremetal import bios, firmware, health, minimums
from ironburst.baremetal.firmware import Minimum
from ironburst.baremetal.gpu_names import possible_models
from ironburst.baremetal.hardware import Hardware
from ironburst.baremetal.mismatch import Mismatch, Verdict
from ironburst.catalog.hardware import Gpu, Platform
from ironburst.config.bios_models import Setting


@dataclass(frozen=True)
class Declaration:
    """What is declared of one node. None is not compared.

    `macs` must all be on the node (it may have more); `memory_gib` is the least that it must have; a `gpu_count` of 0
    says that it must have none. `platform` is the server model, whose figures of the catalogue it must have;
    `height_u`, `power_w` (the most that it draws, in W), `psus_needed` (how many supplies carry that): before the
    platform's. `driver` is the version that the stack's lock has for it.
    """

    name: str
    serial: str | None = None
    uuid: str | None = None
    manufacturer: str | None = None
    model: str | None = None
    macs: tuple[str, ...] | None = None
    gpu_model: str | None = None
    gpu_count: int | None = None
    cpu_count: int | None = None
    memory_gib: int | None = None
    height_u: int | None = None
    power_w: float | None = None
    psus_needed: int | None = None
    driver: str | None = None
    platform: Platform | None = None
    firmware: tuple[Minimum, ...] = ()
    bios: Mapping[str, Setting] | None = None


def examine(
    declared: Declaration,
    observed: Hardware,
    gpus: Iterable[Gpu],
    *,
    allowed: Mapping[str, date] | None = None,
    today: date = date.min,
) -> Verdict:
    """Every difference between the declaration and the inventory, and everything below the minimums; `gpus` are the
    catalogue's. `allowed`: mismatches that somebody answers for, with the last day of each. What the BMC doesn't say is
    no mismatch.
    """
    known = list(gpus)
    found = [
        *_serial(declared, observed),
        *_texts(declared, observed),
        *_macs(declared, observed),
        *_gpus(declared, observed, known),
        *_least("cpu_count", "CPU sockets", declared.cpu_count, observed.cpu_count or None, exact=True),
        *_least("memory_gib", "GiB of memory", declared.memory_gib, observed.memory_gib, exact=False),
        *minimums.check(
            observed,
            declared.platform,
            known,
            height_u=declared.height_u,
            power_w=declared.power_w,
            psus_needed=declared.psus_needed,
            driver=declared.driver,
        ),
        *health.check(observed, gpus_are_counted=declared.gpu_count is not None),
        *firmware.check(declared.firmware, observed),
        *bios.check(declared.bios, observed.bios),
    ]
    named = [Mismatch(m.field, m.observed, f"{declared.name}: {m.sentence}", m.unknown) for m in found]
    in_force = {field for field, last in (allowed or {}).items() if last >= today}
    different = [each for each in named if not each.unknown]
    return Verdict(
        mismatches=tuple(each for each in different if each.field not in in_force),
        allowed=tuple(each for each in different if each.field in in_force),
        not_said=tuple(each for each in named if each.unknown),
    )


def _serial(declared: Declaration, observed: Hardware) -> Iterable[Mismatch]:
    """Compared as written. Dell's may be the service tag."""
    want, have, tag = declared.serial, observed.serial, observed.service_tag
    if want is None or want in (have, tag):
        return
    if have is None and tag is None:
        sentence = f"serial number {want!r} is declared, the BMC says none of the system, its chassis or its board"
        yield Mismatch("serial", None, sentence, unknown=True)
        return
    reported = repr(have) if observed.serial_of == "system" else f"{have!r} of its {observed.serial_of} alone"
    reported += f" and the service tag {tag!r}" if tag else ""
    yield Mismatch("serial", tag or have, f"serial number {want!r} is declared, the BMC reports {reported}")


def _texts(declared: Declaration, observed: Hardware) -> Iterable[Mismatch]:
    for field, label in (
        ("uuid", "UUID"),
        ("manufacturer", "manufacturer"),
        ("model", "model"),
    ):
        want, have = getattr(declared, field), getattr(observed, field)
        if want is None:
            continue
        if have is None:
            yield Mismatch(field, None, f"{label} {want!r} is declared, the BMC says none", unknown=True)
        # Makers spell the same name in different cases ("Nvidia", "NVIDIA").
        elif want.lower() != have.lower():
            yield Mismatch(field, have, f"{label} {want!r} is declared, the BMC reports {have!r}")


def _macs(declared: Declaration, observed: Hardware) -> Iterable[Mismatch]:
    missing = [mac for mac in declared.macs or () if mac.lower() not in observed.macs]
    if missing:
        plural = "MAC address {} is" if len(missing) == 1 else "MAC addresses {} are"
        there = ", ".join(observed.macs) or "none"
        sentence = f"{plural.format(', '.join(missing))} declared, the BMC reports {there}"
        yield Mismatch("macs", observed.macs, sentence, unknown="macs" in observed.not_said)


def _gpus(declared: Declaration, observed: Hardware, gpus: list[Gpu]) -> Iterable[Mismatch]:
    if declared.gpu_count is None:
        return
    reported = ", ".join(f"{group.count} x {group.model or 'unnamed GPU'}" for group in observed.gpus) or "none"
    if declared.gpu_count != observed.gpu_count:
        want = f"{declared.gpu_count} x {declared.gpu_model}" if declared.gpu_model else f"{declared.gpu_count}"
        sentence = f"{want} GPUs are declared, the BMC reports {reported}"
        if "gpus" in observed.not_said:
            state = "" if observed.power_state == "On" else f" while the node is {observed.power_state or 'not on'}"
            sentence = f"{want} GPUs are declared, the BMC lists no GPUs{state}"
        yield Mismatch("gpu_count", observed.gpu_count, sentence, unknown="gpus" in observed.not_said)
    for group in observed.gpus if declared.gpu_model else ():
        if not group.model:
            sentence = f"GPU model {declared.gpu_model} is declared, the BMC doesn't name {group.count} of its GPUs"
            yield Mismatch("gpu_model", None, sentence, unknown=True)
            continue
        models = possible_models(group.model, gpus)
        if declared.gpu_model not in models:
            name = next(iter(models)) if len(models) == 1 else group.model
            known = (
                f" ({name} in the catalogue)" if name != group.model else "" if models else " (not in the catalogue)"
            )
            yield Mismatch(
                "gpu_model",
                name,
                f"GPU model {declared.gpu_model} is declared, the BMC reports {group.count} x {group.model}{known}",
            )


def _least(field: str, unit: str, want: int | None, have: int | None, *, exact: bool) -> Iterable[Mismatch]:
    if want is None or (have is not None and (have == want or (have > want and not exact))):
        return
    declared = f"{want} {unit} are declared" if exact else f"at least {want} {unit} are declared"
    yield Mismatch(
        field, have, f"{declared}, the BMC reports {'nothing' if have is None else have}", unknown=have is None
    )
