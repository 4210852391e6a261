"""The plan as tables: bill of cables, port map, power. Each is (columns, rows); the rows are in the hall's order."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence

from ironburst.hall import power
from ironburst.hall.model import End, Hall

Table = tuple[tuple[str, ...], list[tuple[object, ...]]]


def bill(hall: Hall) -> Table:
    """How many cables of each speed, type and length to buy, without spares."""
    counts = Counter((cable.speed, cable.type, cable.length_m) for cable in hall.cables)
    rows: list[tuple[object, ...]] = [(*kind, count) for kind, count in sorted(counts.items())]
    return ("speed", "type", "length_m", "count"), rows


def ports(hall: Hall) -> Table:
    """Where both ends of each cable are."""
    columns = ("device", "rack", "unit", "port", "to_device", "to_rack", "to_unit", "to_port")
    rows: list[tuple[object, ...]] = [
        (*_end(hall, cable.a), *_end(hall, cable.b), cable.speed, cable.type, cable.length_m) for cable in hall.cables
    ]
    return (*columns, "speed", "type", "length_m"), rows


def _end(hall: Hall, end: End) -> tuple[object, ...]:
    device = hall.device.get(end.device)
    return end.device, device and device.rack, device and device.unit, end.port


def supplies(hall: Hall) -> Table:
    """Where each power supply is plugged in, and its watts with both feeds."""
    columns = ("device", "rack", "unit", "supply", "pdu", "circuit", "feed", "phase", "watts")
    plugged = power.cords(hall)
    of_device = Counter(cord.device for cord in plugged)
    rows: list[tuple[object, ...]] = []
    for cord in plugged:
        device = hall.device[cord.device]
        place = (cord.pdu, cord.circuit, cord.feed, cord.phase)
        each_w = power.supplied_w(device, of_device[cord.device]) / of_device[cord.device]
        rows.append((cord.device, device.rack, device.unit, cord.supply, *place, round(each_w)))
    return columns, rows


def circuits(hall: Hall) -> Table:
    """What each circuit carries with both feeds, the most with one lost, and what it may carry."""
    columns = ("circuit", "feed", "volts", "phases", "breaker_a", "may_w", "normal_w", "one_feed_lost_w", "used")
    normal, *lost = power.states(hall)
    rows: list[tuple[object, ...]] = []
    for each in hall.circuits:
        most = max((state.of(each) for state in lost), default=normal.of(each))
        told = (each.name, each.feed, each.volts, each.phases, each.breaker_a, round(each.capacity_w))
        used = f"{max(most, normal.of(each)) / each.capacity_w:.0%}"
        rows.append((*told, round(normal.of(each)), round(most), used))
    return columns, rows


TABLES = {"cables": bill, "ports": ports, "power": supplies, "circuits": circuits}
"""name of the CSV file: its table"""


def as_csv(columns: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """With a head, and RFC 4180's line ends; what is unknown is empty."""
    out = io.StringIO()
    csv.writer(out).writerows([columns, *rows])
    return out.getvalue()
