"""How settings of a BIOS come into force, against a BMC of a few lines that can do everything wrong."""

from dataclasses import replace

import pytest

from ironburst.baremetal import bios_cycle
from ironburst.baremetal.bios import Bios
from ironburst.baremetal.bios_cycle import SETTLED_LOOKS, STARTS, TRIES, BiosView, SaidNo, Setter
from ironburst.baremetal.cycle import ConsoleError


class Silent(ConsoleError):
    pass


class Console:
    """In memory. `takes`: at which start settings are taken; `offers`: a setup; the rest are errors by method."""

    def __init__(self, power="off", takes=1, offers=True, shows=True, shows_override=True, **errors):
        self.view = BiosView(power, False, Bios({"A": 1, "B": "x"}, {} if shows else None))
        self.takes, self.offers, self.shows, self.errors, self.done = takes, offers, shows, errors, []
        self.shows_override, self.pending, self.starts, self.silent = shows_override, {}, 0, 0

    def _do(self, what):
        self.done.append(what)
        if what in self.errors:
            raise self.errors[what]

    def look(self):
        if self.silent:
            self.silent -= 1
            raise Silent("dgx01: its BMC is silent")
        waiting = dict(self.pending) if self.shows else None
        return replace(self.view, bios=Bios(self.view.bios.in_force, waiting))

    def set(self, settings):
        self._do("set")
        self.pending |= settings

    def to_setup(self):
        self._do("setup")
        self.view = replace(self.view, setup=self.offers and self.shows_override)
        return self.offers

    def usual(self):
        self._do("usual")
        self.view = replace(self.view, setup=False)

    def power_on(self):
        self._do("on")
        self.starts += 1
        now = dict(self.view.bios.in_force)
        if self.takes and self.starts >= self.takes:
            now, self.pending = now | self.pending, {}
        self.view = replace(self.view, power="on", bios=Bios(now))
        self.silent = 3  # it starts

    def power_off(self, clean):
        self._do("off, cleanly" if clean else "off")
        self.view = replace(self.view, power="off")


def run(console, declared, looks=100):
    def take():
        console.done.append("take")

    paused = []
    options = {"take": take, "pause": paused.append, "start_looks": looks, "say": lambda _: None, "passing": (Silent,)}
    outcome, view = Setter(declared, console, **options).run()
    return outcome, view, paused


def test_off_it_is_set_started_into_its_setup_and_off_again():
    console = Console()
    outcome, view, _ = run(console, {"A": 2, "B": "x"})
    assert (outcome, view.power, view.setup) == ("in force", "off", False)
    assert console.done == ["set", "setup", "on", "off", "usual"] and console.pending == {}


def test_on_its_users_are_asked_first_and_it_is_on_again():
    console = Console("on")
    assert run(console, {"A": 2})[0] == "in force" and console.view.power == "on"
    assert console.done == ["take", "take", "off, cleanly", "set", "setup", "on", "off", "usual", "on"]


def test_nothing_differs_nothing_is_done():
    console = Console("on")
    assert run(console, {"A": 1})[0] == "in force" and console.done == []


def test_only_what_differs_is_sent():
    console = Console(takes=0)
    console.set = lambda settings: console.pending.update(settings) or console.done.append(dict(settings))
    run(console, {"A": 2, "B": "x"}, looks=5)
    assert console.done[0] == {"A": 2}


def test_what_was_dropped_is_said_and_not_tried_again():
    console = Console()
    console.power_on = lambda: Console.power_on(console) or console.pending.clear()
    console.takes = 0
    outcome, _, paused = run(console, {"A": 2})
    assert outcome == "dropped" and console.done.count("set") == 1
    assert paused.count(bios_cycle.LOOK_S) == SETTLED_LOOKS - 1


def test_what_no_start_takes_ends():
    console = Console(takes=0)
    outcome, view, _ = run(console, {"A": 2}, looks=10)
    assert outcome == "not taken" and console.starts == STARTS and (view.power, view.setup) == ("off", False)


def test_a_second_start():
    console = Console(takes=2)
    assert run(console, {"A": 2}, looks=10)[0] == "in force" and console.starts == 2


@pytest.mark.parametrize(("power", "outcome"), [("off", "waits"), ("on", "in force")])
@pytest.mark.parametrize("how", [{"offers": False}, {"shows_override": False}])
def test_without_a_setup_only_what_ran_is_started(power, outcome, how):
    console = Console(power, **how)
    assert run(console, {"A": 2})[0] == outcome
    assert console.done.count("on") == (power == "on") and console.view.power == power


def test_a_bmc_that_shows_nothing_of_what_waits_is_taken_at_its_word():
    console = Console(shows=False)
    assert run(console, {"A": 2})[0] == "in force" and console.done.count("set") == 1


def test_what_is_refused_for_good_is_asked_once_and_a_busy_bmc_again():
    console = Console(set=SaidNo("no"))
    with pytest.raises(SaidNo):
        run(console, {"A": 2})
    assert console.done == ["set"]
    console = Console("on", set=SaidNo("no"))
    with pytest.raises(SaidNo):
        run(console, {"A": 2})
    assert console.done == ["take", "take", "off, cleanly", "set", "on"]  # it was in use, and is again
    console = Console(set=Silent("busy"))
    with pytest.raises(Silent):
        run(console, {"A": 2})
    assert console.done == ["set"] * TRIES


def test_what_was_done_and_badly_answered_is_done():
    """A Dell refuses a second PATCH while a job waits; the first may have been cut off after it was taken."""
    console = Console(set=SaidNo("a job waits"))
    console.pending = {"A": 2}
    assert run(console, {"A": 2})[0] == "in force" and console.done.count("set") == 1


def test_a_bmc_that_never_answers_again():
    console = Console()
    console.power_on = lambda: setattr(console, "silent", 10**6)
    with pytest.raises(Silent):
        run(console, {"A": 2}, looks=10)


def test_a_login_that_is_refused_ends_it_at_once():
    console = Console()
    looks = []

    def look():
        looks.append(1)
        raise ConsoleError("refuses the login")

    console.look = look
    with pytest.raises(ConsoleError):
        run(console, {"A": 2})
    assert len(looks) == 1
