"""What the policy is shown of what the ledger knows."""

import pytest

from ironburst.controller.policy_view import usual_boot_s


@pytest.mark.parametrize(
    ("boots_s", "usual"), [([], None), ([90.0], 90.0), ([300.0, 100.0, 120.0], 120.0), ([4.0, 1.0, 3.0, 2.0], 3.0)]
)
def test_a_usual_boot_is_the_median(boots_s, usual):
    assert usual_boot_s(boots_s) == usual
