"""Filter that writes settings into a JSON file of somebody else: what the file says beside them stays."""

from __future__ import annotations

import json

from ansible.errors import AnsibleFilterError


def merged_json(text: str, wanted: dict, path: str, without: list[str] | None = None) -> str:
    """The text of the file `path`, which has `text` now ("": it isn't there), with `wanted` in it and without the keys
    `without`; untouched where it is so already. Raises AnsibleFilterError for a file that is no JSON object.
    """
    try:
        present = json.loads(text) if text.strip() else {}
        if not isinstance(present, dict):
            raise ValueError("it is no object")
    except ValueError as error:
        raise AnsibleFilterError(f"{path} can't be read as JSON ({error}): mend it, then run this again") from None
    merged = _merged({key: value for key, value in present.items() if key not in (without or [])}, wanted)
    return text if text and merged == present else json.dumps(merged, indent=2, sort_keys=True) + "\n"


def _merged(present: dict, wanted: dict) -> dict:
    """Objects key by key; anything else is replaced."""
    both = {
        key: _merged(present[key], value) if isinstance(value, dict) and isinstance(present.get(key), dict) else value
        for key, value in wanted.items()
    }
    return present | both


class FilterModule:
    """Filters of ironburst's roles."""

    def filters(self):
        """Name -> function, as Ansible asks for them."""
        return {"merged_json": merged_json}
