"""A playbook's result of a host as an outcome."""

import pytest

from ironburst.convergence.events import HostEvents
from ironburst.convergence.outcomes import host_run
from ironburst.convergence.ports import HostResult


@pytest.mark.parametrize(
    ("result", "outcome", "error"),
    [
        (None, "failed", "site.yml did not get to it"),
        (HostResult(ok=3, changed=1), "converged", None),
        (HostResult(failed=1, error="Gate: bad"), "failed", "Gate: bad"),
        (HostResult(failed=1, unreachable=1, error="no route"), "unreachable", "no route"),
        (HostResult(ok=1, error="an error that was ignored"), "converged", None),
    ],
)
def test_the_outcome_of_a_host(result, outcome, error):
    run = host_run(result, HostEvents(), 5.0)
    assert (run.outcome, run.error, run.began_s) == (outcome, error, 5.0)
    assert run.changed == (result.changed if result else 0)
