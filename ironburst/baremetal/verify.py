"""Compares a declared node with what its BMC reports. Pure: no I/O, no clock."""

from collections.abc import Iterable
from dataclasses import dataclass

from ironburst.baremetal.gpu_names import possible_models
from ironburst.baremetal.hardware import Hardware
from ironburst.catalog.hardware import Gpu


@dataclass(frozen=True)
class Declaration:
    """What is declared of one node. None is not compared.

    `macs` must all be on the node (it may have more); `memory_gib` is the least that it must have; a `gpu_count` of 0
    says that it must have none.
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


@dataclass(frozen=True)
class Mismatch:
    """One difference. `field` is the Declaration's, `observed` the value that would have been right there."""

    field: str
    observed: object
    sentence: str


def verify(declared: Declaration, observed: Hardware, gpus: Iterable[Gpu]) -> list[Mismatch]:
    """Every difference between the declaration and the inventory;
    `gpus` are the catalogue's. Empty: the node is as declared.
    """
    mismatches = [
        *_texts(declared, observed),
        *_macs(declared, observed),
        *_gpus(declared, observed, list(gpus)),
        *_least("cpu_count", "CPU sockets", declared.cpu_count, observed.cpu_count, exact=True),
        *_least("memory_gib", "GiB of memory", declared.memory_gib, observed.memory_gib, exact=False),
    ]
    return [Mismatch(m.field, m.observed, f"{declared.name}: {m.sentence}") for m in mismatches]


def _texts(declared: Declaration, observed: Hardware) -> Iterable[Mismatch]:
    for field, label in (
        ("serial", "serial number"),
        ("uuid", "UUID"),
        ("manufacturer", "manufacturer"),
        ("model", "model"),
    ):
        want, have = getattr(declared, field), getattr(observed, field)
        # Makers spell the same name in different cases ("Nvidia", "NVIDIA"); serial numbers are compared as written.
        same = want == have if field == "serial" or have is None else want is not None and want.lower() == have.lower()
        if want is not None and not same:
            yield Mismatch(field, have, f"{label} {want!r} is declared, the BMC reports {_shown(have)}")


def _macs(declared: Declaration, observed: Hardware) -> Iterable[Mismatch]:
    missing = [mac for mac in declared.macs or () if mac.lower() not in observed.macs]
    if missing:
        plural = "MAC address {} is" if len(missing) == 1 else "MAC addresses {} are"
        there = ", ".join(observed.macs) or "none"
        yield Mismatch("macs", observed.macs, f"{plural.format(', '.join(missing))} declared, the BMC reports {there}")


def _gpus(declared: Declaration, observed: Hardware, gpus: list[Gpu]) -> Iterable[Mismatch]:
    if declared.gpu_count is None:
        return
    reported = ", ".join(f"{group.count} x {group.model}" for group in observed.gpus) or "none"
    if declared.gpu_count != observed.gpu_count:
        want = f"{declared.gpu_count} x {declared.gpu_model}" if declared.gpu_model else f"{declared.gpu_count}"
        yield Mismatch("gpu_count", observed.gpu_count, f"{want} GPUs are declared, the BMC reports {reported}")
    for group in observed.gpus if declared.gpu_model else ():
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
    yield Mismatch(field, have, f"{declared}, the BMC reports {'nothing' if have is None else have}")


def _shown(value: str | None) -> str:
    return "none" if value is None else repr(value)
