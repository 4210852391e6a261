"""What the policy is shown of what the ledger knows."""

from types import SimpleNamespace

import pytest

from ironburst.controller import policy_view
from ironburst.controller.policy_view import usual_boot_s
from ironburst.ports import Node, Observation, Resources
from tests.fakes.snapshots import pool


@pytest.mark.parametrize(
    ("boots_s", "usual"), [([], None), ([90.0], 90.0), ([300.0, 100.0, 120.0], 120.0), ([4.0, 1.0, 3.0, 2.0], 3.0)]
)
def test_a_usual_boot_is_the_median(boots_s, usual):
    assert usual_boot_s(boots_s) == usual


@pytest.mark.parametrize(
    ("shown", "each"),
    [
        ([], Resources(8, 2, 1000)),
        ([(8, 1, 900), (8, 1, 1000)], Resources(8, 1, 1000)),  # the most that one of them has
        ([(8, 1, 900), (0, 0, 0)], Resources(8, 1, 900)),  # one that can't be read says nothing of others
        ([(7, 1, 900)], Resources(8, 2, 1000)),
        ([(8, 4, 4000)], Resources(8, 2, 1000)),  # never more than is declared
    ],
)
def test_a_new_node_has_what_its_scheduler_says_of_such_nodes(monkeypatch, shown, each):
    nodes = tuple(Node(f"p5-{n}", ("burst-p5",), Resources(*total), ("IDLE",)) for n, total in enumerate(shown, 1))
    declared = SimpleNamespace(pools=[SimpleNamespace(name="p5")], scheduler_of=lambda pool: SimpleNamespace(kind=""))
    site, image = SimpleNamespace(document=declared), SimpleNamespace(obstacle="")
    monkeypatch.setattr(policy_view, "pool", lambda *_: pool())
    (found,) = policy_view.pools(site, {"p5": image}, Observation((), nodes))
    assert found.each == each
