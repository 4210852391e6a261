"""Stand-ins in memory, for tests and benchmarks: a clock, a Slurm, an EC2, the document of a site, snapshots."""

from tests.fakes.clock import T0, Breaking, Crash, FakeClock
from tests.fakes.cloud import FakeCloud, FakeInstance, connect_to
from tests.fakes.site import document, placed, with_places
from tests.fakes.slurm import ASK, NODE, FakeJob, FakeNode, FakeSlurm

__all__ = [
    "ASK",
    "NODE",
    "T0",
    "Breaking",
    "Crash",
    "FakeClock",
    "FakeCloud",
    "FakeInstance",
    "FakeJob",
    "FakeNode",
    "FakeSlurm",
    "connect_to",
    "document",
    "placed",
    "with_places",
]
