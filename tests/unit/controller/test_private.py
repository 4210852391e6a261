"""Who may read what the controller writes: its user and group, whatever the umask is, also what an older one left."""

import os
import stat

import pytest

from ironburst.controller import lock
from ironburst.controller.ledger import Ledger
from ironburst.controller.recorder import Recorder
from tests.unit.controller.test_recorder import POLICY, said, shot


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_the_ledger_and_its_folder(tmp_path):
    path = tmp_path / "ironburst" / "ledger.sqlite"
    with lock.held(path):
        ledger = Ledger(path)
        ledger.event("x", "y", 1.0)
        names = {file.name for file in path.parent.iterdir()}
        assert {"ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "ledger.sqlite.lock"} <= names
        assert {mode(file) for file in path.parent.iterdir()} == {0o640}
        assert mode(path.parent) == 0o750
        assert Ledger(path, read_only=True).events()


@pytest.mark.usefixtures("umask")
def test_the_ticks_and_their_folder(tmp_path):
    recorder = Recorder(tmp_path / "ticks")
    recorder.record(POLICY, shot(), said())
    assert mode(tmp_path / "ticks") == 0o750
    assert [mode(file) for file in (tmp_path / "ticks").iterdir()] == [0o640]


def test_what_an_older_controller_left_is_tightened_and_never_opened(tmp_path):
    path, ticks = tmp_path / "ledger.sqlite", tmp_path / "ticks"
    left = Ledger(path)  # its -wal stays as long as it is open
    left.event("x", "y", 1.0)
    Recorder(ticks).record(POLICY, shot(), said())
    (old,) = ticks.iterdir()
    for file in (path, tmp_path / "ledger.sqlite-wal", tmp_path / "ledger.sqlite-shm", old):
        file.chmod(0o644)
    ticks.chmod(0o755)
    tmp_path.chmod(0o755)
    Ledger(path)
    Recorder(ticks).record(POLICY, shot(), said())
    assert {mode(file) for file in tmp_path.iterdir() if file != ticks} == {0o640}
    assert {mode(file) for file in ticks.iterdir()} == {0o640} and mode(ticks) == 0o750
    assert mode(tmp_path) == 0o755, "somebody's folder in which a ledger was put"
    path.chmod(0o600)
    Ledger(path)
    assert mode(path) == 0o600


def test_a_reader_changes_no_mode(tmp_path):
    path = tmp_path / "ledger.sqlite"
    Ledger(path).close()
    path.chmod(0o644)
    Ledger(path, read_only=True)
    assert mode(path) == 0o644
