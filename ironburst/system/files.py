"""Files that are written whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path


def write(path: Path, text: str, mode: int = 0o600) -> None:
    """Readers find the old text or the new one, never a part; where it fails nothing is left. Raises OSError."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}", delete=False) as file:
        new = Path(file.name)
        try:
            file.write(text)
            file.close()
            new.chmod(mode)
            new.replace(path)
        except BaseException:
            new.unlink()
            raise
