"""Ports of switches by their numbers, as cables name them: 7, or 7/1 for part 1 of a port that is split (breakout)."""

from __future__ import annotations

import re

_ALIAS = re.compile(r"(?:etp|eth|ethernet)(\d+)([a-h])", re.IGNORECASE)
"""of SONiC: etp7b is 7/2"""
_DECLARED = re.compile(r"(?:swp)?(\d+)[s/:](\d+)")
"""7/1, 7:1, 7s1; Cumulus' swp7s1"""
_NAME = re.compile(r"((?:\d+G)?[A-Za-z][A-Za-z-]*?)?[ -]?((?:\d+/){0,2})(\d+)(?::(\d+))?")
"""Ethernet1/7/1, et-0/0/7:1, swp7, 1/1/7"""
_SLOTTED = ("Ethernet", "Eth", "ethernet-")


def number(name: str, system: str = "") -> str:
    """7 or 7/1 of a switch's own name of a port; the name itself where it doesn't show that. `system`: what the switch
    says of itself in LLDP (its system description), for makers write alike what isn't.

    The part behind a colon is a part with all (Juniper, Dell, HPE, Aruba, Huawei), and so is the third number of
    Ethernet1/7/1 (Cisco, Arista, Onyx, SONiC, Nokia's ethernet-1/7/1), but of Dell's ethernet1/1/7. Arista's fixed
    switches write Ethernet7/1 for the first lane of port 7, split or not. SONiC's own names count lanes of the whole
    switch (Ethernet56), and how many a port has isn't shown.
    """
    if alias := _ALIAS.fullmatch(name):
        return f"{alias[1]}/{ord(alias[2].lower()) - ord('a') + 1}"
    if name.startswith("swp") and (cumulus := _DECLARED.fullmatch(name)):
        return f"{cumulus[1]}/{cumulus[2]}"
    known = _NAME.fullmatch(name)
    if not known or ("SONiC" in system and re.fullmatch(r"Ethernet\d+", name)):
        return name
    word, slots, last, part = known[1] or "", known[2].strip("/").split("/") if known[2] else [], known[3], known[4]
    if part is not None and (slots or word):
        return f"{last}/{part}"
    if part is not None:  # Extreme's SLOT:PORT
        return part
    parted = len(slots) == 2 or (len(slots) == 1 and "Arista" in system)
    if parted and name.startswith(_SLOTTED):
        return f"{slots[-1]}/{last}"
    return last


def declared(port: str) -> str:
    """The same of a port as a person writes it: 7, 7/1, 7:1, 7s1, or the switch's own name of it."""
    plain = _DECLARED.fullmatch(port)
    return f"{plain[1]}/{plain[2]}" if plain else number(port)


def whole(port: str) -> str:
    """7 of 7/1."""
    return port.partition("/")[0]
