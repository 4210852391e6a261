"""Frozen dataclasses that are made for each job. Of 40 fields, what keeps them from being written to at run time takes
six times as long as the rest of making one: so it is the type checker alone that keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

__all__ = ["frozen"]

if TYPE_CHECKING:
    from dataclasses import dataclass as frozen
else:

    def frozen(**of: Any) -> Any:
        """As dataclass."""
        return dataclass(**of | {"frozen": False, "unsafe_hash": True})
