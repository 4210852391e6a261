"""Two schedulers of one converge: one that doesn't answer is not one without nodes."""

import itertools

import pytest

from ironburst.convergence.services import Services
from ironburst.ports.service import Occupancy, SchedulerError, SchedulerMissing

OF = {"s1": "slurm", "k1": "kubernetes"}
NODES = {kind: {name: Occupancy(name, (), frozenset({"IDLE"}), "", True, (), 0.0)} for name, kind in OF.items()}


class Side:
    def __init__(self, kind, error):
        self.kind, self.error = kind, error

    def occupancy(self):
        if self.error:
            raise self.error
        return NODES[self.kind]


KINDS = ("slurm", "kubernetes")
LACKS = [(), ("slurm",), ("kubernetes",), KINDS]


@pytest.mark.parametrize(("missing", "there"), list(itertools.product(LACKS, LACKS)))
def test_a_command_that_is_missing_is_a_first_installation_only_where_none_of_its_nodes_was_converged(missing, there):
    """Exit code 127 off the PATH of a shell that is no login's: its nodes run jobs all the same."""
    errors = {kind: SchedulerMissing("no command squeue") for kind in missing}
    services = Services({kind: Side(kind, errors.get(kind)) for kind in KINDS}, OF, there)
    if set(missing) & set(there) or len(missing) == 2:
        with pytest.raises(SchedulerMissing):
            services.occupancy()
    else:
        assert set(services.occupancy()) == {name for name, kind in OF.items() if kind not in missing}


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_does_not_answer_is_never_left_out(kind):
    services = Services({each: Side(each, SchedulerError("away") if each == kind else None) for each in KINDS}, OF)
    with pytest.raises(SchedulerError, match="away"):
        services.occupancy()
