"""Two schedulers of one converge: one that doesn't answer is not one without nodes."""

import itertools

import pytest

from ironburst.convergence.services import Heads, Services
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


class Head:
    """Of one Slurm; it doesn't answer where it has an error."""

    def __init__(self, error=None):
        self.error, self.calls = error, []

    def occupancy(self):
        return self._called("occupancy", NODES["slurm"])

    def drain(self, nodes, reason):
        self._called(("drain", *nodes, reason))

    def resume(self, nodes):
        self._called(("resume", *nodes))

    def _called(self, what, answer=None):
        self.calls.append(what)
        if self.error:
            raise self.error
        return answer


def test_where_the_first_head_is_dead_the_second_one_answers_and_is_asked_first_from_then_on():
    first, second = Head(SchedulerError("No route to host")), Head()
    slurm = Heads([first, second])
    assert slurm.occupancy() == NODES["slurm"]
    slurm.drain(["s1"], "why")
    slurm.resume(["s1"])
    assert second.calls == ["occupancy", ("drain", "s1", "why"), ("resume", "s1")] and first.calls == ["occupancy"]
    second.error, first.error = SchedulerError("away"), None
    assert slurm.occupancy() == NODES["slurm"], "it came back"


@pytest.mark.parametrize(
    ("errors", "raised"),
    [
        ((SchedulerMissing("no squeue"), SchedulerMissing("no squeue")), SchedulerMissing),
        ((SchedulerMissing("no squeue"), SchedulerError("away")), SchedulerError),
        ((SchedulerError("away"), SchedulerMissing("no squeue")), SchedulerError),
    ],
)
def test_slurm_is_missing_only_where_no_head_has_it(errors, raised):
    """A rebuilt head beside one that doesn't answer: nobody knows whether jobs run."""
    with pytest.raises(SchedulerError) as refused:
        Heads([Head(error) for error in errors]).occupancy()
    assert type(refused.value) is raised
