"""Filter `path | mount_unit`: the name that systemd gives the mount unit of a path."""

from __future__ import annotations

import string

from ansible.errors import AnsibleFilterError

PLAIN = set(string.ascii_letters + string.digits + ":_.")


def mount_unit(path: str) -> str:
    """`/srv/data-1` -> `srv-data\\x2d1.mount` (as `systemd-escape --path`). Raises AnsibleFilterError for a relative
    path.
    """
    if not path.startswith("/"):
        raise AnsibleFilterError(f"{path!r} can't be a mount point: give an absolute path")
    parts = [part for part in path.split("/") if part]

    def escaped(text: str, first: bool) -> str:
        return "".join(
            chr(byte) if chr(byte) in PLAIN and not (first and at == 0 and chr(byte) == ".") else f"\\x{byte:02x}"
            for at, byte in enumerate(text.encode())
        )

    return ("-".join(escaped(part, number == 0) for number, part in enumerate(parts)) or "-") + ".mount"


class FilterModule:
    """Filters of ironburst's roles."""

    def filters(self):
        """Name -> function, as Ansible asks for them."""
        return {"mount_unit": mount_unit}
