"""Filters for OpenSM's partitions (rule NET-006): what is wrong with declared ones, and the lines of
partitions.conf.
"""

from __future__ import annotations

import re

from ansible.errors import AnsibleFilterError

DEFAULT_RULE = "Default=0x7fff, ipoib : ALL=full;"
MEMBER = re.compile(r"(0x[0-9a-fA-F]{16}|ALL|ALL_CAS|ALL_SWITCHES|ALL_ROUTERS|SELF)=(full|limited|both)")


def partition_problems(partitions: list[dict]) -> list[str]:
    """Why these partitions (name, pkey, members) can't be written beside the default one; an empty list if they can."""
    problems = []
    names, keys = [], []
    for partition in partitions:
        name, pkey = str(partition.get("name", "")), str(partition.get("pkey", ""))
        members = partition.get("members") or []
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,31}", name) or name.lower() == "default":
            which = "use letters, digits, _ and -, and not Default, which is always there"
            problems.append(f"{name!r} is no name of a partition: {which}")
        key = int(pkey, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,4}", pkey) else 0
        if not 1 <= key <= 0x7FFE:
            which = "use one from 0x0001 to 0x7ffe (0x7fff is the default partition's)"
            problems.append(f"partition {name} has the key {pkey or 'none'}: {which}")
        if not members:
            problems.append(f"partition {name} has no members: name port GUIDs")
        form = "write 0x and 16 hexadecimal digits, or ALL, then =full or =limited"
        problems += [
            f"{member!r} of partition {name} is no member: {form}"
            for member in members
            if not MEMBER.fullmatch(str(member))
        ]
        if members and all(str(member).endswith("=limited") for member in members):
            problems.append(
                f"partition {name} has only limited members, which can't talk to each other: make one of them full"
            )
        names.append(name.lower())
        keys.append(key)
    for label, values in (("name", names), ("key", keys)):
        for value in sorted({value for value in values if values.count(value) > 1}):
            problems.append(
                f"the {label} {value if label == 'name' else hex(value)} is used twice: give each partition its own"
            )
    return problems


def partition_rules(partitions: list[dict]) -> list[str]:
    """The lines of partitions.conf, the default rule always first. Raises AnsibleFilterError rather than write a bad
    file.
    """
    problems = partition_problems(partitions)
    if problems:
        raise AnsibleFilterError("partitions.conf is not written: " + "; ".join(problems))
    rules = (f"{rule['name']}={rule['pkey']}, ipoib : {', '.join(rule['members'])};" for rule in partitions)
    return [DEFAULT_RULE, *rules]


class FilterModule:
    """Filters of ironburst's roles."""

    def filters(self):
        """Name -> function, as Ansible asks for them."""
        return {"partition_problems": partition_problems, "partition_rules": partition_rules}
