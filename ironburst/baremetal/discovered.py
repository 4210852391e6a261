"""From the BMCs found in a network to nodes that could be declared. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ironburst.baremetal.gpu_names import possible_models
from ironburst.baremetal.hardware import Hardware
from ironburst.catalog.hardware import Gpu, Platform


@dataclass(frozen=True)
class Discovered:
    """A Redfish service. `trusted`: a CA signed its certificate, whose SHA-256 is `sha256`; `hardware` where it let us
    in, else `why` not.
    """

    address: str
    url: str
    maker: str | None
    product: str | None
    uuid: str | None
    sha256: str | None = None
    trusted: bool = False
    hardware: Hardware | None = None
    why: str = ""

    @property
    def no_node(self) -> str:
        """Why this is none: a DPU or an NVLink switch has a BMC, too. Empty: it may be one."""
        if self.hardware is None or self.hardware.cpu_count or self.hardware.gpu_count:
            return ""
        return "it lists no CPUs of a host; a server that never started may list them later"


def platforms_of(hardware: Hardware, platforms: Iterable[Platform], gpus: Iterable[Gpu]) -> list[str]:
    """The platforms of the catalogue that this may be: as many GPUs of the same model; the maker's own where there are
    some. Empty: none, or no GPUs.
    """
    if len(hardware.gpus) != 1:
        return []
    (group,) = hardware.gpus
    models = possible_models(group.model, gpus)
    fits = [each for each in platforms if each.gpu.model in models and each.gpu_count == group.count]
    own = [each for each in fits if _is_maker(each.vendor, hardware.manufacturer)]
    generic = [each for each in fits if each.vendor == "generic"]
    return [each.slug for each in own or generic or fits]


def _is_maker(vendor: str, manufacturer: str | None) -> bool:
    return vendor.lower().split()[0] in (manufacturer or "").lower()


def proposal(
    found: Iterable[Discovered], username: str, password: str, platforms: dict[str, list[str]]
) -> Iterator[str]:
    """Lines of YAML for `halls[].nodes` of a stack file; what has to be chosen or added is a comment. `platforms`: by
    address.
    """
    for each in found:
        hardware = each.hardware
        told = ", ".join(filter(None, (each.maker, each.product, hardware.model if hardware else None)))
        if each.no_node:
            yield f"# {each.address}: not a node: {each.no_node} ({_clean(told) or 'a Redfish service'})"
            continue
        yield f"# {each.address}: {_clean(told) or 'a Redfish service'}{f'; {each.why}' if each.why else ''}"
        yield f"- names: node-{each.address.replace('.', '-')}  # a name of yours"
        fitting = platforms.get(each.address, [])
        if len(fitting) == 1:
            yield f"  platform: {fitting[0]}"
        elif fitting:
            yield f"  platform:  # one of: {', '.join(fitting)}"
        elif hardware and not hardware.gpus:
            yield "  role:  # it lists no GPUs: head or login?"
        elif hardware:
            yield f"  platform:  # {_clean(hardware.gpus[0].model) or 'its GPUs'}: none of the catalogue fits"
        yield "  addresses:  # the node's own, in the hall's cidr"
        if hardware and (serial := hardware.service_tag or hardware.serial):
            borrowed = (
                "" if hardware.serial_of == "system" else f"  # of its {hardware.serial_of}: the system says none"
            )
            yield f"  serials: [{_quoted(serial)}]{borrowed}"
        if hardware and hardware.macs:
            yield f"  macs: [{_quoted(hardware.macs[0])}]"
        yield "  bmc:"
        yield f"    addresses: {each.url}"
        yield f"    username: {_quoted(username)}"
        yield f"    password: {_quoted(password)}"
        if each.sha256 and not each.trusted:
            yield f"    sha256: [{each.sha256}]  # as it was shown now: compare it with the BMC's own page"


def _clean(told: str) -> str:
    return re.sub(r"[^\w ().,:/+-]", "", told)[:120].strip()


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return value if re.fullmatch(r"[A-Za-z][\w./-]*", value) else f'"{escaped}"'
