"""Versions of firmware: a maker's own texts. Pure.

Two are compared only where both have the same of the forms below, and the same family where the form names one; of all
others it is reported that they can't be compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

Order = Literal["below", "reached", "not comparable"]


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
