"""Python's collector of cycles, kept out of a tick."""

import gc

import pytest

from ironburst.system import collector


@pytest.mark.parametrize("on", [True, False])
def test_it_is_as_before_afterwards_whatever_happens(on):
    was = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        with pytest.raises(ValueError), collector.paused():
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() is on
    finally:
        (gc.enable if was else gc.disable)()
