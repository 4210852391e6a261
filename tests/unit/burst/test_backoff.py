"""How long a place that refused is left alone."""

from ironburst.burst import backoff


def test_each_refusal_in_a_row_doubles_it_up_to_an_hour_for_ever():
    assert [backoff.lasts_s(600.0, refusals) for refusals in (1, 2, 3, 4, 5)] == [600, 1200, 2400, 3600, 3600]
    assert backoff.lasts_s(600.0, 100_000) == 3600  # over years
    assert backoff.lasts_s(7200.0, 1) == backoff.lasts_s(7200.0, 9) == 7200
