"""Bandwidth against the table: one figure at one message size against rows of kind gate
that agree in GPU, topology, size and unit.

Never the average over a sweep (ACC-001), and never DCGM's memory bandwidth
minimum of H200 (ACC-002: it passes anything).
"""

import re
from typing import List, Optional, Sequence

from .expectation import Expectation, Threshold
from .findings import Finding, Unreadable

SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size_bytes(text: str) -> Optional[int]:
    """ "16G" -> 17179869184, "65536 B" -> 65536; None for what is no single size ("largest", "test default")."""
    match = re.match(r"^(\d+) ?([KMG]?)i?B?$", text.strip())
    return int(match.group(1)) * SIZES[match.group(2)] if match else None


def rows_for(
    test: str, expected: Expectation, size: Optional[int], unit: str, gpus: Optional[int] = None
) -> List[Threshold]:
    """Rows of the table that judge this figure. Raises Unreadable if a row was named and does not fit."""
    if expected.threshold_id:
        named = [row for row in expected.thresholds if row.id == expected.threshold_id]
        if not named or not named[0].test.startswith(test):
            raise Unreadable(f"{expected.threshold_id} is no row of the acceptance table for {test}")
        if named[0].unit != unit:
            raise Unreadable(f"the figure is in {unit}, {named[0].id} in {named[0].unit}")
        wanted = size_bytes(named[0].message_size)
        if wanted is not None and size is not None and wanted != size:
            raise Unreadable(f"the figure is for {size} bytes, {named[0].id} judges {named[0].message_size}")
        return named
    return [row for row in expected.thresholds if _fits(row, test, expected, size, unit, gpus)]


def _fits(
    row: Threshold, test: str, expected: Expectation, size: Optional[int], unit: str, gpus: Optional[int]
) -> bool:
    if not row.test.startswith(test) or row.unit != unit or row.gpu != expected.gpu_model:
        return False
    if expected.platform is not None and row.platform != expected.platform:
        return False
    nodes_fit = row.nodes is None or row.nodes == (expected.nodes or 1)
    gpus_fit = row.gpus is None or gpus is None or row.gpus == gpus
    judged_at = size_bytes(row.message_size)
    size_fits = judged_at is None or judged_at == size
    return nodes_fit and gpus_fit and size_fits and "largest" not in row.message_size


def judge(figure: float, rows: Sequence[Threshold], what: str) -> Finding:
    """The figure against the rows; rows of several platforms with one GPU: the lowest,
    each of them is a floor of the same hardware.
    """
    row = min(rows, key=lambda candidate: candidate.value)
    if row.op != ">=":
        raise Unreadable(f"{row.id} of the acceptance table compares by {row.op}, not >=")
    text = f"{what} {figure:g} {row.unit}, {row.id} asks for {row.value:g}"
    return Finding("bandwidth", figure >= row.value, text)
