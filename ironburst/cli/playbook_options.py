"""What the verbs that run playbooks (converge, image) have in common: a document and an inventory are given."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def document_path(arguments: argparse.Namespace) -> Path:
    """Where the ClusterDocument is. Raises ValueError if none is named."""
    given = arguments.document or os.environ.get("IRONBURST_DOCUMENT")
    if not given:
        raise ValueError(
            "no ClusterDocument is named: "
            "give --document PATH or set IRONBURST_DOCUMENT (`ironburst publish` writes one)"
        )
    return Path(given)


def check_inventory(folder: Path) -> None:
    """Raises ValueError if the folder is no inventory of an environment."""
    if not (folder / "stack.yml").is_file():
        raise ValueError(f"{folder} is no inventory of this repository: it has no stack.yml; inventory/lab has one")
