"""Faults of single Redfish calls, for tables in which each call of a clean run fails.

A run has hundreds of calls from a few dozen places of the code: the first call of each place meets each fault, and its
last meets one. What only reads leaves nothing done: dead after it is dead before the next call, and done without an
answer is hanging.
"""

import contextlib
import json
import re
from pathlib import Path
from traceback import walk_stack

import requests

from lab.bmc import Fault, write_fault

ANSWERS = {
    "fails": {"answer": "reset", "times": 2},
    "fails once": {"answer": "reset", "times": 1},
    "refuses": {"answer": "unavailable", "times": 2},
    "hangs": {"answer": "silent", "times": 2},
    "lies": {"answer": "lie", "times": 1},
    "is done and not answered": {"answer": "late", "times": 2},
    "is half answered": {"answer": "garbled", "times": 1},
}
DEATHS = ("the plugin dies before it", "the plugin dies after it")
FAULTS = (*ANSWERS, *DEATHS)
OF_CHANGES = ("is done and not answered", DEATHS[1])


class Died(BaseException):
    """kill -9 of the plugin."""


def dying_at(monkeypatch, number, *, after):
    """The process dies at its n-th request, once."""
    count, send = [0], requests.Session.send

    def counted(self, request, **more):
        count[0] += 1
        if count[0] != number:
            return send(self, request, **more)
        if after:
            send(self, request, **more)
        raise Died

    monkeypatch.setattr(requests.Session, "send", counted)


def planned(monkeypatch, folder, what, number):
    """The fault `what` meets call `number` (from 0) of dgx01's BMC. How many seconds an answer is to be waited for."""
    if what in DEATHS:
        dying_at(monkeypatch, number + 1, after=what == DEATHS[1])
    else:
        write_fault(folder / "faults.json", "dgx01", Fault(after=number, **ANSWERS[what]))
    return 0.2 if what == "hangs" else 5.0


def made(folder):
    """The calls that a BMC of the lab has had, in order."""
    return [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]


def changes(calls):
    """The numbers of those that change something."""
    return [
        number
        for number, call in enumerate(calls)
        if call["method"] in ("POST", "PATCH") and "SessionService" not in call["path"]
    ]


@contextlib.contextmanager
def places(monkeypatch):
    """Of each call that is answered meanwhile: its method, its path without what has numbers, the adapters' lines."""
    found, send = [], requests.Session.send

    def noted(self, request, **more):
        path = re.sub(r"[^/]*\d[^/]*", "n", request.path_url)
        lines = [(frame.f_code.co_filename, line) for frame, line in walk_stack(None)]
        place = (request.method, path, *(each for each in lines if Path(each[0]).parent.name == "adapters"))
        answer = send(self, request, **more)
        found.append(place)
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(requests.Session, "send", noted)
        yield found


def meeting(what, run, known=()):
    """The numbers of the calls of a run that meet the fault `what`. `run`: the place of each; `known`: places that have
    met every fault in another run.
    """
    first = {place: number for number, place in reversed([*enumerate(run)]) if place not in known}
    last = {place: number for number, place in enumerate(run)}
    found = {*first.values(), *(number for number in last.values() if number % len(FAULTS) == FAULTS.index(what))}
    return sorted(number for number in found if what not in OF_CHANGES or run[number][0] != "GET")
