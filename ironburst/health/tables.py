"""The catalogue's CSV files that the gate needs, read from their text: the same on a node as on
the controller. An empty cell is unknown.
"""

import csv
from typing import Dict, Iterator, Mapping, NamedTuple, Optional, Tuple

from .expectation import Model, Threshold
from .xid import Action

FILES = ("gpus.csv", "acceptance_thresholds.csv", "xid_actions.csv")


class Tables(NamedTuple):
    """The files' content. xids: number of the Xid -> its row."""

    models: Tuple[Model, ...]
    thresholds: Tuple[Threshold, ...]
    xids: Dict[int, Action]


def load(texts: Mapping[str, str]) -> Tables:
    """The tables from the texts of FILES. Raises KeyError for a file or column that is missing,
    ValueError for a cell that is no number.
    """
    return Tables(
        models=models(texts["gpus.csv"]),
        thresholds=thresholds(texts["acceptance_thresholds.csv"]),
        xids=xid_actions(texts["xid_actions.csv"]),
    )


def _rows(text: str) -> Iterator[Dict[str, str]]:
    """Rows of a data file; its head lines begin with #."""
    return iter(csv.DictReader([line for line in text.splitlines() if not line.startswith("#")]))


def _whole(value: str) -> Optional[int]:
    return int(value) if value.strip() else None


def models(text: str) -> Tuple[Model, ...]:
    """gpus.csv."""
    return tuple(
        Model(
            name=row["model"],
            memory_gb=_whole(row["memory_gb"]),
            form_factor=row["form_factor"],
            links=_whole(row["nvlink_links"]),
            board=8 if row["nvswitch_needed"] == "8-gpu board" else None,
            pci_ids=tuple(row["pci_device_ids"].split(";")),
        )
        for row in _rows(text)
    )


def thresholds(text: str) -> Tuple[Threshold, ...]:
    """acceptance_thresholds.csv, only its rows of kind gate."""
    return tuple(
        Threshold(
            id=row["id"],
            test=row["test"],
            platform=row["platform"],
            gpu=row["gpu"],
            nodes=_whole(row["nodes"]),
            gpus=_whole(row["gpus"]),
            message_size=row["message_size"],
            metric=row["metric"],
            op=row["op"],
            value=float(row["value"]),
            unit=row["unit"],
        )
        for row in _rows(text)
        if row["kind"] == "gate"
    )


def xid_actions(text: str) -> Dict[int, Action]:
    """xid_actions.csv: number of the Xid -> its row."""
    actions = (
        Action(
            xid=int(row["xid"]),
            name=row["name"],
            nvidia=row["nvidia_r590_action"],
            severity=row["severity"],
            node_action=row["node_action"],
            exceptions=row["exceptions"],
            notes=row["notes"],
        )
        for row in _rows(text)
    )
    return {action.xid: action for action in actions}
