"""What `ironburst fit` prints of what was found: what to do, and what was measured on parts kept aside."""

import pytest

from ironburst.burst.limits import WaitTarget
from ironburst.replay import fit_report, fitting
from ironburst.replay.fitting import Checked, Fit, Reached, Tried
from ironburst.replay.results import Waits

TARGET = WaitTarget(1.0, 1.0, 1.0, 1.0, 1.0)


def reached(wait_h, usd, not_rented=0):
    return Reached(Waits(*(wait_h,) * 7), usd, not_rented)


def tried(hours, wait_h, usd, not_rented=0):
    """Each part as the others."""
    part = reached(wait_h, usd / 3, not_rented)
    return Tried(hours, reached(wait_h, usd, 3 * not_rented), (part, part, part))


def said(recommended, why, usd=(300.0, 300.0, 330.0), unfitted=None, keeping=0.05):
    unfitted = unfitted or tried(None, 0.3, 1200.0)
    checked = tuple(
        Checked(n, 0.08, reached(0.9, paid), unfitted.parts[n], ("p99_h", 0.9)) for n, paid in enumerate(usd)
    )
    checked = () if why in ("quiet", "none") else checked
    fit = Fit(recommended, why, checked, keeping, (tried(0.05, 0.8, 1260.0), tried(0.08, 0.9, 930.0)), unfitted)
    assert fit_report.picture(fit, TARGET).startswith("<svg")
    told = {"trace": "t.csv", "jobs": 900, "played": 900, "days": 9.0}
    return "\n".join(fit_report.lines(told | fit_report.as_json(fit, TARGET)))


def test_a_number_that_won_is_named_with_what_it_saved_on_parts_kept_aside():
    text = said(0.08, None)
    assert "Fitted: burst.hours_per_gpu_hour: 0.08 (" in text and text.count("<- fitted") == 1
    paid = "with what the others gave they paid $930.00, with the defaults $1,200.00"
    assert (
        f"Measured on each part kept aside: {paid} (-22.5%; at worst part 3: -17.5%); the p99 of part 1 was 0.90"
        in text
    )
    assert "The defaults don't keep" not in text


@pytest.mark.parametrize("why", ["dearer", "longer", "no_gain", "busier"])
def test_else_the_defaults_are_kept_and_the_regret_is_told(why):
    text = said(None, why, usd=(300.0, 400.0, 600.0))
    assert fit_report.KEEP in text and "(+8.3%; at worst part 3: +50.0%)" in text and "<- fitted" not in text


@pytest.mark.parametrize(
    ("why", "what"), [("quiet", "A busier or a longer history could tell"), ("none", "Even 0.02 hours")]
)
def test_where_the_parts_give_no_number_there_is_no_regret(why, what):
    text = said(None, why)
    assert fit_report.KEEP in text and what in text and "Measured" not in text


def test_defaults_that_do_not_keep_what_is_wanted_have_a_price():
    text = said(None, "dearer", unfitted=tried(None, 1.3, 1200.0))
    assert "The defaults don't keep what is wanted: the p99 came to 1.30 of it. 0.05 keeps all five" in text
    assert "in every part, and paid +5.0%: yours to choose." in text
    text = said(None, "none", unfitted=tried(None, 1.3, 1200.0, not_rented=2), keeping=None)
    assert "No number keeps all five in every part: want longer waits, or declare more to rent, for 6 late jobs" in text


def test_every_reason_has_words():
    for why in fitting.Why.__args__:
        assert len(fit_report._why({"why": why, "parts": 3})) > 40
