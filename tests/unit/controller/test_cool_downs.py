"""How long a place that refused is closed, and when that is forgiven."""

from ironburst.controller import cool_downs
from ironburst.controller.ledger import Ledger
from ironburst.controller.records import Place

PLACE = Place("p5", "a", "spot", 2)


def test_cool_downs_double_and_are_forgiven(tmp_path):
    ledger, place = Ledger(tmp_path / "l"), PLACE
    assert [cool_downs.close(ledger, place, 60, "ICE", t, 1) - t for t in (0, 60, 180)] == [60, 120, 240]
    cool_downs.forgive(ledger, 1, 180 + 240 + 400)
    assert cool_downs.close(ledger, place, 60, "ICE", 5000, 1) == 5480  # not forgiven before 2 * 240 s after its end
    cool_downs.forgive(ledger, 1, 50000)
    assert cool_downs.close(ledger, place, 60, "ICE", 50000, 1) == 50060


def test_a_place_that_is_closed_until_further_notice_opens_with_a_new_document():
    closed = cool_downs.again(PLACE, None, None, "UnauthorizedOperation", now_s=100.0, serial=7)
    assert closed.until_s is None and closed.strikes == 1 and closed.place == PLACE
    assert not cool_downs.is_forgiven(closed, 7, 1e9) and cool_downs.is_forgiven(closed, 8, 100.0)


def test_only_the_place_that_is_forgiven_opens(tmp_path):
    ledger = Ledger(tmp_path / "l")
    larger = PLACE._replace(nodes=4)
    for place, seconds in ((PLACE, 60.0), (larger, 600.0)):
        cool_downs.close(ledger, place, seconds, "ICE", 0.0, 1)
    cool_downs.forgive(ledger, 1, 181.0)
    assert ledger.cool_down_of(PLACE) is None and ledger.cool_down_of(larger).strikes == 1
    assert [place.nodes for place in ledger.cool_downs(181.0)] == [4]
