"""What a person writes of the BIOS of bare-metal nodes. Part of models.py's declaration."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, StrictBool, StrictInt, StrictStr

_NAME = re.compile(r"[A-Za-z][ -~]{0,199}")
_PASSWORD = re.compile(r"(password|passwd|pwd)(hash)?(salt)?$", re.IGNORECASE)
LONGEST = 1000
"""characters of a value"""


def checked(given: Any) -> Any:
    """The settings, as they are. Raises ValueError, which never repeats a value: one may be a password."""
    for name, value in given.items() if isinstance(given, dict) else ():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"has {name!r}, which can't be a setting: write its AttributeName, as in NumaNodes")
        if _PASSWORD.search(name):
            raise ValueError(f"has {name}: passwords of the BIOS are not set from a stack file; leave it out")
        if not isinstance(value, str | int):
            raise ValueError(f"has {name} with a value that no setting has: write a text, whole number, true or false")
        if isinstance(value, str) and (len(value) > LONGEST or not value.isprintable()):
            raise ValueError(f"has {name} with a text that no setting has: one line, at most {LONGEST} characters")
    return given


Setting = StrictBool | StrictInt | StrictStr
Settings = Annotated[dict[str, Setting], BeforeValidator(checked)]
"""{AttributeName of the maker: value}"""
