"""Versions of firmware, and the least that is declared of them. Pure.

A version is a maker's own text. Two are compared only where both have the same of the forms below, and the same family
where the form names one; of all others it is said that they can't be compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel

from ironburst.baremetal.hardware import Component, Hardware
from ironburst.baremetal.mismatch import Mismatch

Text = Annotated[str, StringConstraints(min_length=1, strict=True)]
Order = Literal["below", "reached", "not comparable"]


class Minimum(BaseModel):
    """The least version of the components whose name or Id fits `component`, a pattern such as GPU*; in Pulumi the
    names are in camel case. `source` and `as_of`: where the figure is from, and from when.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)

    component: Text
    at_least: Text
    source: Text
    as_of: Text


# ---- versions


class _Read(NamedTuple):
    """A version that was understood: only two of one form and one family are compared."""

    form: str
    family: str
    numbers: tuple[int, ...]


def _numbers(text: str, base: int = 10) -> tuple[int, ...]:
    return tuple(int(part, base) for part in text.split("."))


_HPE_DATE = r"(?: +\(?(?:\d{2}/\d{2}/\d{4}|[A-Z][a-z]{2} \d{2} \d{4})\)?)?"
_FORMS: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], tuple[str, tuple[int, ...]]]], ...] = (
    # AMI and Supermicro BIOSes that are named by a day: 2026-03-31, 20260331, 03/31/2026
    ("day", re.compile(r"(20\d\d)-?([01]\d)-?([0-3]\d)"), lambda m: ("", tuple(map(int, m.groups())))),
    ("day", re.compile(r"([01]\d)/([0-3]\d)/(20\d\d)"), lambda m: ("", (int(m[3]), int(m[1]), int(m[2])))),
    # NVIDIA's VBIOS, hexadecimal: 96.00.5E.00.01
    ("vbios", re.compile(r"[0-9A-Fa-f]{2}(?:\.[0-9A-Fa-f]{2}){4}"), lambda m: ("", _numbers(m[0], 16))),
    # NVIDIA's roots of trust: 00.04.0011.0000_n00
    ("root of trust", re.compile(r"(\d+(?:\.\d+){3})_n(\d+)"), lambda m: ("", (*_numbers(m[1]), int(m[2])))),
    # NVIDIA's BMCs on OpenBMC: GB200Nvl-25.08-9
    (
        "year and month",
        re.compile(r"([A-Za-z]\w*)-(\d\d\.\d\d)-(\d+)"),
        lambda m: (m[1], (*_numbers(m[2]), int(m[3]))),
    ),
    # HPE's ROMs, "U54 v2.10 (07/20/2023)", and iLO, "iLO 6 v1.55" or "1.55 Nov 04 2023"
    ("rom", re.compile(rf"([A-Z]\d\d|iLO \d) v(\d+(?:\.\d+)+){_HPE_DATE}"), lambda m: (m[1], _numbers(m[2]))),
    # Dell 2.10.2, Supermicro 01.03.14, V2.10; "1.55 Nov 04 2023"
    ("numbers", re.compile(rf"[vV]?(\d+(?:\.\d+)+){_HPE_DATE}"), lambda m: ("", _numbers(m[1]))),
)


def _read(version: str) -> _Read | None:
    for form, pattern, meaning in _FORMS:
        if match := pattern.fullmatch(version.strip()):
            family, numbers = meaning(match)
            while len(numbers) > 1 and numbers[-1] == 0:  # 2.1 is 2.1.0
                numbers = numbers[:-1]
            return _Read(form, family, numbers)
    return None


def compare(have: str, least: str) -> Order:
    """Where `have` stands to `least`."""
    if have.strip() == least.strip():
        return "reached"
    a, b = _read(have), _read(least)
    if a is None or b is None or (a.form, a.family) != (b.form, b.family):
        return "not comparable"
    return "reached" if a.numbers >= b.numbers else "below"


# ---- minimums


@dataclass(frozen=True)
class Row:
    """One component beside a minimum of it; `component` None: the BMC lists none that fits."""

    minimum: Minimum
    component: Component | None
    order: Order | Literal["not said"]

    @property
    def sentence(self) -> str:
        """For people, without the node's name."""
        least = f"at least {self.minimum.at_least} is declared ({self.minimum.source}, {self.minimum.as_of})"
        if self.component is None:
            return f"firmware {self.minimum.component}: {least}, the BMC lists no such component"
        name = self.component.id if self.component.id == self.component.name else _named(self.component)
        if self.order == "not said":
            return f"firmware of {name}: {least}, the BMC doesn't say its version"
        if self.order == "not comparable":
            return f"firmware of {name} is {self.component.version!r}: {least}, and the two can't be compared"
        return f"firmware of {name} is {self.component.version}: {least}"


def _named(component: Component) -> str:
    return f"{component.name} ({component.id})"


def rows(minimums: Iterable[Minimum], observed: Hardware) -> Iterator[Row]:
    """Each minimum beside every component that it is of."""
    for each in minimums:
        fitting = [component for component in observed.components if _fits(component, each.component)]
        if not fitting:
            yield Row(each, None, "not said")
        for component in fitting:
            said = component.version
            yield Row(each, component, compare(said, each.at_least) if said else "not said")


def _fits(component: Component, pattern: str) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for name in (component.name, component.id))


def check(minimums: Iterable[Minimum], observed: Hardware) -> Iterator[Mismatch]:
    """What is below its minimum; what can't be known of it counts as not said."""
    for row in rows(minimums, observed):
        if row.order != "reached":
            version = row.component.version if row.component else None
            yield Mismatch("firmware_minimum", version, row.sentence, unknown=row.order != "below")
