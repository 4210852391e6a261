"""What `ironburst hall metrics` writes is as Prometheus' own promtool wants it."""

import pytest

from ironburst.baremetal.telemetry import metrics
from tests import prometheus
from tests.unit.baremetal.test_telemetry import FINE, PLACE, Look


@pytest.fixture(scope="module")
def promtool():
    return prometheus.program("promtool")


def test_what_is_written_is_well_formed(promtool):
    prometheus.check_metrics(promtool, metrics({"n1": Look(FINE, 1.25)}, {"n1": PLACE}, {("dc1", "a03"): 17000.0}, 1.5))
