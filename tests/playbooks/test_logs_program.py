"""The role's program between a real journal and real log centres: nothing is lost, nothing is there twice."""

import os
import signal
import time

import pytest
from programs import load

from lab.system import wait_for
from tests import logs

program = load("roles/logs/files/ironburst-logs.py")
CENTRES = [
    pytest.param(logs.Victoria, id="victorialogs"),
    pytest.param(logs.OpenSearch, id="opensearch", marks=pytest.mark.slow),
]


@pytest.fixture
def journal():
    with logs.journal() as made:
        yield made


@pytest.fixture(params=CENTRES)
def centre(request, tmp_path):
    with logs.centre(request.param, tmp_path / "centre") as made:
        yield made


def numbers(centre):
    """Of `line N`, as often as they are there."""
    return sorted(int(each["message"].split()[1]) for each in centre.documents() if each["message"].startswith("line "))


def test_lines_arrive_also_those_of_a_time_without_centre(centre, journal, tmp_path):
    template = centre.kind == "elasticsearch"
    with logs.sending(tmp_path / "sender", centre.url + centre.path, journal, template=template) as sender:
        journal.lines(0, 3000)
        wait_for(lambda: numbers(centre)[-1:] == [2999], 60, "the first lines")
        journal.lines(3000, 3000)  # and it goes amid them
        centre.stop(signal.SIGKILL if template else signal.SIGTERM)  # VictoriaLogs keeps the last second in memory
        journal.lines(6000, 3000)
        wait_for(lambda: "gives no answer" in (tmp_path / "sender/said").read_text(), 60, "it is missed")
        os.killpg(sender.pid, signal.SIGKILL)
        sender.wait(20)
    with logs.sending(tmp_path / "sender", centre.url + centre.path, journal, template=template):
        centre.start()
        journal.lines(9000, 1000)
        wait_for(lambda: numbers(centre)[-1:] == [9999], 90, "the last lines")
        found = numbers(centre)
    assert sorted(set(found)) == list(range(10_000))
    if template:
        assert len(found) == 10_000, "each once"
    else:  # it has no ids: a batch that wasn't answered is there twice, with the same id
        assert len({each["id"] for each in centre.documents()}) == len(set(found)) + len(
            {each["id"] for each in centre.documents() if not each["message"].startswith("line ")}
        )
