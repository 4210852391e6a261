"""Filter that chooses the locked list of each framework by the CUDA of the node."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from ansible.errors import AnsibleFilterError


def version_of(text: str, package: str) -> str:
    """The exact version of `package` in a requirements file. Raises AnsibleFilterError if it has none, or is not locked
    with hashes.
    """
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    pinned = [line for line in lines if not line.startswith((" ", "\t", "-"))]
    loose = [line for line in pinned if not re.match(r"[A-Za-z0-9._-]+(\[[a-z0-9,_-]+\])?==[^ ;]+", line)]
    if loose or "--hash=sha256:" not in text:
        why = loose[0] if loose else "it has no hashes"
        raise AnsibleFilterError(f"the list of {package} is not locked ({why}): make it with files/lock.sh")
    for line in pinned:
        name, _, version = re.split(r"[ ;\\]", line, maxsplit=1)[0].partition("==")
        if name.split("[")[0].lower() == package:
            return version
    raise AnsibleFilterError(f"the list has no {package}: make it with files/lock.sh")


def data_science_lists_of(frameworks: list[str], lists: dict, cuda_major: str, own: dict, folder: str) -> list[dict]:
    """[{name, list (path on the control node), version, key, module}], key = name-version-cudaN-hash: the name of the
    environment's folder.

    Raises AnsibleFilterError with a sentence for an unknown framework, or one that is not built for the node's CUDA.
    """
    chosen = []
    for name in frameworks:
        if name not in lists:
            raise AnsibleFilterError(f"data_science names {name!r}: known are {', '.join(sorted(lists))}")
        listed = lists[name]
        file = own.get(name) or listed.get("any") or listed.get(cuda_major)
        if file is None:
            have = ", ".join(sorted(key for key in listed if key.isdigit()))
            ways = f"declare another CUDA for it, give its container image, or leave {name} out"
            raise AnsibleFilterError(
                f"data_science: {name} is built for CUDA {have}, the node has {cuda_major or 'none'}: {ways}"
            )
        path = Path(file) if Path(file).is_absolute() else Path(folder) / file
        try:
            text = path.read_text()
        except OSError as error:
            raise AnsibleFilterError(f"the list of {name} can't be read: {error}") from None
        version = version_of(text, listed["package"])
        suffix = "" if "any" in listed else f"-cuda{cuda_major}"
        key = f"{name}-{version}{suffix}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        chosen.append(
            {"name": name, "list": str(path), "version": f"{version}{suffix}", "key": key, "module": listed["module"]}
        )
    return chosen


class FilterModule:
    """Filters of ironburst's roles."""

    def filters(self):
        """Name -> function, as Ansible asks for them."""
        return {"data_science_lists_of": data_science_lists_of}
