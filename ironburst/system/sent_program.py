"""Programs that are sent to a host: one file of the standard library, which `python3 -` there reads with a question
behind it, and which answers with one line. Such a file has MARK, which its line begins with, and gather(question).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any


def text(program: ModuleType, question: Mapping[str, Any]) -> str:
    """What to send."""
    assert program.__file__
    call = f"sys.stdout.write(MARK + json.dumps(gather(json.loads({json.dumps(question)!r}))) + '\\n')\n"
    return f"{Path(program.__file__).read_text()}\n{call}"


def answer(program: ModuleType, output: str) -> Any:
    """What gather() returned, from all that was printed: a login shell may print before it. Raises ValueError."""
    lines = [line for line in output.splitlines() if line.startswith(program.MARK)]
    if len(lines) != 1:
        raise ValueError(f"the program that was sent gave {len(lines)} answers instead of one")
    return json.loads(lines[0][len(program.MARK) :])
