"""Durations."""

import pytest

from ironburst.config.types import duration_text, seconds


def test_durations_there_and_back():
    assert [seconds(text) for text in ("90s", "2h", "7d", "15m")] == [90, 7200, 604800, 900]
    assert all(seconds(duration_text(n)) == n for n in (1, 59, 60, 3600, 86400, 90061))
    for bad in ("0s", "5", "-3m", "1w", "", None, True):
        with pytest.raises(ValueError, match="not a duration"):
            seconds(bad)
