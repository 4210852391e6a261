"""Settings of a BIOS: what was declared of them beside what is in force, what waits for the next start, and what the
maker's registry allows. Pure.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ironburst.baremetal.mismatch import Mismatch
from ironburst.baremetal.said import LONGEST, dicts, dig, text
from ironburst.config.bios_models import LONGEST as LONGEST_TEXT
from ironburst.config.bios_models import Setting

MOST = 5000
"""settings of one BIOS"""
LISTED = 20
"""values that are told, of those that are allowed"""
Order = Literal["in force", "waits", "differs", "unknown", "not said"]


@dataclass(frozen=True)
class Bios:
    """What a BMC says of a BIOS. `in_force` is empty where it says no setting (some: until the machine has started
    once); `waiting` may hold all settings and not only those that wait (HPE, Lenovo), and is None where the BMC shows
    none of it.
    """

    in_force: Mapping[str, Any]
    waiting: Mapping[str, Any] | None = None

    def waits(self, name: str, value: Setting) -> bool:
        """Is it in force from the next start on?"""
        return same((self.waiting or {}).get(name), value) and not same(self.in_force.get(name), value)


def read(document: Any, settings: Any = None) -> Bios:
    """From the document of what is in force, and that of what is set; {} and None: there is none."""
    return Bios(_values(document) or {}, _values(settings))


def _values(document: Any) -> dict[str, Any] | None:
    said = dig(document, "Attributes")
    if not isinstance(said, dict):
        return None
    return {
        name: _clean(value) if isinstance(value, str) else value
        for name, value in list(said.items())[:MOST]
        if isinstance(value, str | int | float) and len(name) <= LONGEST and name.isprintable()
    }


def _clean(value: str) -> str:
    """N/A is a value, as any other text is."""
    return "".join(character for character in value[:LONGEST_TEXT] if character.isprintable())


def same(a: Any, b: Any) -> bool:
    """Python's True is 1, a BIOS' is not; the text 4 is no number."""
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


# ---- beside the declaration


@dataclass(frozen=True)
class BiosComparison:
    """One declared setting beside the BIOS. `near`: the name that may have been meant."""

    name: str
    declared: Setting
    now: Any
    order: Order
    near: str | None = None

    @property
    def sentence(self) -> str:
        """For people, without the node's name."""
        wanted = json.dumps(self.declared)
        if self.order == "not said":
            return f"BIOS {self.name}: {wanted} is declared, the BMC says no setting of its BIOS"
        if self.order == "unknown":
            hint = f": did you mean {self.near}?" if self.near else ""
            return f"BIOS {self.name}: {wanted} is declared, the BMC says no setting of that name{hint}"
        if self.order == "in force":
            return f"BIOS {self.name} is {wanted}"
        waits = " and waits for the next start" if self.order == "waits" else ""
        return f"BIOS {self.name} is {json.dumps(self.now)}, {wanted} is declared{waits}"


def rows(declared: Mapping[str, Setting], bios: Bios | None) -> list[BiosComparison]:
    """Each declared setting, in their order."""
    return [_row(name, value, bios) for name, value in declared.items()]


def _row(name: str, value: Setting, bios: Bios | None) -> BiosComparison:
    now = bios.in_force.get(name) if bios else None
    if bios and bios.waits(name, value):
        return BiosComparison(name, value, now, "waits" if name in bios.in_force else "not said")
    if not bios or not bios.in_force:
        return BiosComparison(name, value, None, "not said")
    if name not in bios.in_force:
        return BiosComparison(name, value, None, "unknown", _near(name, bios.in_force))
    return BiosComparison(name, value, now, "in force" if same(now, value) else "differs")


def _near(name: str, names: Mapping[str, Any]) -> str | None:
    plain = {each.lower(): each for each in names}
    found = difflib.get_close_matches(name.lower(), plain, 1)
    return plain[found[0]] if found else None


def check(declared: Mapping[str, Setting] | None, bios: Bios | None) -> Iterator[Mismatch]:
    """What is not in force; what the BMC doesn't report counts as not reported."""
    given = declared or {}
    now = bios.in_force if bios else {}
    observed = {name: now[name] for name in given if name in now}
    for row in rows(given, bios):
        if row.order != "in force":
            yield Mismatch("bios", observed, row.sentence, unknown=row.order == "not said")


# ---- what the registry allows


@dataclass(frozen=True)
class Attribute:
    """One entry of a maker's attribute registry; None: it says no limit."""

    kind: str | None
    values: tuple[str, ...]
    read_only: bool
    least: float | None
    most: float | None
    shortest: float | None
    longest: float | None


def registry(document: Any) -> dict[str, Attribute] | None:
    """The attributes of a registry; None: it has none that can be read."""
    entries = dicts(document, "RegistryEntries/Attributes", MOST)
    known = {
        name: Attribute(
            kind=text(each, "Type"),
            values=tuple(_clean(name) for one in dicts(each, "Value") if isinstance(name := one.get("ValueName"), str)),
            read_only=dig(each, "ReadOnly") is True,
            least=_limit(each, "LowerBound"),
            most=_limit(each, "UpperBound"),
            shortest=_limit(each, "MinLength"),
            longest=_limit(each, "MaxLength"),
        )
        for each in entries
        if (name := text(each, "AttributeName"))
    }
    return known or None


def registry_places(name: str, files: Iterable[Any]) -> list[str]:
    """Paths of the registry with this name, of the documents of all registries; English first."""
    key = name.lower()
    places = []
    for each in files:
        names = [(text(each, at) or "").lower() for at in ("Registry", "Id")]
        if key.partition(".")[0] in [known.partition(".")[0] for known in names]:
            for place in dicts(each, "Location"):
                uri, language = text(place, "Uri") or "", text(place, "Language") or ""
                if uri.startswith("/redfish/"):
                    places.append((key not in names, not language.lower().startswith("en"), uri))
    return [uri for *_, uri in sorted(places)]


def _limit(entry: Any, at: str) -> float | None:
    """Below zero is a limit, too."""
    value = dig(entry, at)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def faults(declared: Mapping[str, Setting], bios: Bios, known: Mapping[str, Attribute] | None) -> list[tuple[str, str]]:
    """What can't be set, as (setting, sentence with what is allowed). Without a registry (None) only names are
    compared, with what is there. What is in force already is no fault.
    """
    found = []
    for row in rows(declared, bios):
        if row.order == "in force":
            continue
        if known is None:
            why = "the BMC says no setting of that name" if row.order == "unknown" else None
            near = row.near
        elif row.name not in known:
            why, near = "this BIOS has no such setting", _near(row.name, dict.fromkeys(known))
        else:
            why, near = _not_allowed(row.declared, known[row.name]), None
        if why:
            hint = f": did you mean {near}?" if near else ""
            found.append((row.name, f"BIOS {row.name}: {why}{hint}"))
    return found


def _not_allowed(value: Setting, of: Attribute) -> str | None:
    if of.kind == "Password":
        return "it is a password, and none is set from a stack file"
    if of.read_only:
        return "it is read only, and can't be set"
    given = f"{json.dumps(value)} is declared, allowed is "
    wrong = {
        "Enumeration": not isinstance(value, str),
        "String": not isinstance(value, str),
        "Integer": not isinstance(value, int) or isinstance(value, bool),
        "Boolean": not isinstance(value, bool),
    }.get(of.kind or "")
    if of.kind == "Enumeration" and (wrong or (of.values and value not in of.values)):
        return given + _one_of(of.values)
    if wrong:
        return given + {"String": "a text, in quotes", "Integer": "a whole number"}.get(of.kind or "", "true or false")
    if of.kind == "String":
        return _outside(len(str(value)), of.shortest, of.longest, given, " characters")
    return _outside(value, of.least, of.most, given) if isinstance(value, int) else None


def _one_of(values: tuple[str, ...]) -> str:
    more = f" and {len(values) - LISTED} more" if len(values) > LISTED else ""
    return ("one of " + ", ".join(map(json.dumps, values[:LISTED])) + more) if values else "a text, in quotes"


def _outside(number: float, least: float | None, most: float | None, given: str, unit: str = "") -> str | None:
    if (least is None or number >= least) and (most is None or number <= most):
        return None
    limits = [f"at least {least:g}" if least is not None else "", f"at most {most:g}" if most is not None else ""]
    return given + " and ".join(filter(None, limits)) + unit
