"""How much time a clock that was put back has lost. What that does to money is in test_budget.py."""

import pytest

from ironburst.controller.clock_repair import LastTick, lost_s
from ironburst.ports import Uptime
from tests.fakes.world import World


@pytest.mark.parametrize(
    ("last", "now_s", "uptime", "lost"),
    [
        (LastTick(1000.0, "boot", 50.0), 1010.0, Uptime("boot", 60.0), 0.0),  # all is well
        (LastTick(1000.0, "boot", 50.0), 900.0, Uptime("boot", 60.0), 110.0),  # put back
        (LastTick(1000.0, "boot", 50.0), 2000.0, Uptime("boot", 60.0), -990.0),  # put forward
        (LastTick(1000.0, "boot", 50.0), 1300.0, Uptime("boot", 550.0), 200.0),  # put back while we were away
        (LastTick(1000.0, "boot", 50.0), 900.0, Uptime("another", 20.0), 105.0),  # another boot: a tick of 5 s passed
        (LastTick(1000.0), 900.0, Uptime("boot", 60.0), 105.0),  # an older ironburst wrote the clock alone
        (LastTick(1000.0), 900.0, Uptime("", 60.0), 105.0),  # which boot isn't known
    ],
)
def test_what_a_clock_has_lost(last, now_s, uptime, lost):
    assert lost_s(last, now_s, 5.0, uptime) == lost


def test_what_happened_is_told_by_one_tick(tmp_path):
    """Events of before the clock was put back are later than those of the ticks after it."""
    world = World(tmp_path)
    world.fill_home(limit_s=86400.0)
    job = world.slurm.submit(limit_s=3600, runs_s=3000)
    told = []
    world.until(lambda: told.extend(world.tick().events) or any(each.kind == "rent" for each in told), 120)
    world.clock.ahead_s = -200.0
    told += [each for _ in range(3) for each in world.tick().events]
    assert [each.job for each in told if each.kind == "rent"] == [job]
