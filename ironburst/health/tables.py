"""The catalogue's CSV files that the gate needs, read from their text: the same on a node as on the controller. An
empty cell is unknown.
"""

import csv
from typing import Dict, Iterator, Optional, Tuple

from .report import Model, Threshold

FILES = ("gpus.csv", "acceptance_thresholds.csv", "xid_actions.csv")


def rows(text: str) -> Iterator[Dict[str, str]]:
    """Rows of a data file; its head lines begin with #."""
    return csv.DictReader([line for line in text.splitlines() if not line.startswith("#")])


def _whole(value: str) -> Optional[int]:
    return int(value) if value.strip() else None


def models(text: str) -> Tuple[Model, ...]:
    """gpus.csv."""
    return tuple(
        Model(
            row["model"],
            _whole(row["memory_gb"]),
            row["form_factor"],
            _whole(row["nvlink_links"]),
            8 if row["nvswitch_needed"] == "8-gpu board" else None,
            tuple(row["pci_device_ids"].split(";")),
        )
        for row in rows(text)
    )


def thresholds(text: str) -> Tuple[Threshold, ...]:
    """acceptance_thresholds.csv, only its rows of kind gate."""
    return tuple(
        Threshold(
            row["id"],
            row["test"],
            row["platform"],
            row["gpu"],
            _whole(row["nodes"]),
            _whole(row["gpus"]),
            row["message_size"],
            row["metric"],
            row["op"],
            float(row["value"]),
            row["unit"],
        )
        for row in rows(text)
        if row["kind"] == "gate"
    )
