"""What is declared of a node, and two comparisons that several parsers make: how many GPUs it has, and which driver."""

import re
from typing import NamedTuple, Optional, Tuple

from .findings import Finding, Unreadable, bad, good


class Model(NamedTuple):
    """A GPU model as the catalogue has it. Memory in GB as marketed; links: NVLinks a GPU;
    board: GPUs on a baseboard, if always that many.
    """

    name: str
    memory_gb: Optional[int] = None
    form_factor: str = ""
    links: Optional[int] = None
    board: Optional[int] = None
    pci_ids: Tuple[str, ...] = ()


class Threshold(NamedTuple):
    """One row of acceptance_thresholds.csv of kind gate.
    value in unit, at one message size (as the tool is given it, e.g. "16G").
    """

    id: str
    test: str
    platform: str
    gpu: str
    nodes: Optional[int]
    gpus: Optional[int]
    message_size: str
    metric: str
    op: str
    value: float
    unit: str


class Expectation(NamedTuple):
    """What is declared of the node that printed the output. None: not declared, so not judged."""

    gpu_model: Optional[str] = None
    gpus: Optional[int] = None
    driver: Optional[str] = None
    pcie_width: Optional[int] = None
    """lanes that the machine wires to each GPU; 0: all that it has; None: nobody says what machine it is"""
    accepted_uncorrectable: int = 0
    """historic uncorrectable errors (aggregate ECC, remapped rows, retired pages) a person has accepted, a GPU"""
    power_limit_w: Optional[float] = None
    """the most that each GPU may draw; a lower limit (of a BMC's, say) is as good"""
    links: Optional[int] = None
    """RDMA ports that must be active; others may be down"""
    rate_gb_s: Optional[float] = None
    """Gb/s of each of these ports"""
    mig: bool = False
    """GPUs may be cut up by MIG: such a one has no NVLink"""
    columns: Tuple[str, ...] = ()
    """names of the columns of a CSV without header"""
    threshold_id: Optional[str] = None
    platform: Optional[str] = None
    nodes: Optional[int] = None
    message_size: Optional[str] = None
    checked: bool = False
    """nccl-tests must have checked the data"""
    level: Optional[int] = None
    """DCGM diagnostic level that must have run"""
    models: Tuple[Model, ...] = ()
    thresholds: Tuple[Threshold, ...] = ()


def count_finding(count: int, expected: Expectation, board: Optional[int] = None) -> Finding:
    """Whether this many GPUs can be all of a node's. Without a declared number an odd one,
    or an incomplete board, is not believed.
    """
    if expected.gpus is not None:
        return Finding("gpu_count", count == expected.gpus, f"{count} of {expected.gpus} GPUs")
    # Instances hold 1, 2, 4 or all GPUs of a board: anything else means that GPUs are missing
    usual = (1, 2, 4, 8, 16) if board else (1, 2, 4, 6, 8, 10, 12, 16, 20)
    if count not in usual:
        return bad("gpu_count", unusual_number(count))
    return good("gpu_count", f"{count} GPUs, none missing in the sequence")


def unusual_number(count: int) -> str:
    """The sentence for a number of GPUs that no usual node has."""
    return f"{count} GPUs are no usual number: one is missing, or say how many there should be with --gpus"


def driver_finding(version: str, expected: Expectation) -> Finding:
    """Whether this is the declared driver. Raises Unreadable for what is no version of a driver."""
    if not re.match(r"^\d{3}\.\d{2,3}(\.\d{2})?$", version):
        raise Unreadable(f"the driver version is {version!r}, not a version")
    if expected.driver and version != expected.driver:
        return bad("driver", f"driver {version}, declared {expected.driver}")
    return good("driver", f"driver {version}")
