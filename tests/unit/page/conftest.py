"""A site of two days, and its page as `ironburst serve` makes it."""

import shutil
import threading
import time

import pytest
import uvicorn

from ironburst import document
from ironburst.page import source, web
from tests.fakes.operated import Operated


@pytest.fixture(scope="session")
def operated(tmp_path_factory):
    """Made once; a test that changes its files takes `site`."""
    return Operated(tmp_path_factory.mktemp("operated"))


class Site:
    """The files of a site, and a clock that goes on from the controller's last tick."""

    def __init__(self, world, folder):
        self.world, self.folder, self.ahead_s = world, folder, 0.0
        self.check = folder / "lab.check.json"
        self._began = time.monotonic()

    def now(self):
        return self.world.clock.now() + self.ahead_s + time.monotonic() - self._began

    def source(self):
        path = self.folder / "lab.json"
        files = source.Files(
            lambda: document.read(path), self.folder / "ledger.sqlite", self.folder / "ticks", self.check
        )
        return source.Source(files, document.read(path), self.now)


@pytest.fixture
def site(operated, tmp_path):
    """A copy of its own."""
    shutil.copytree(operated.path.parent, tmp_path, dirs_exist_ok=True)
    return Site(operated, tmp_path)


@pytest.fixture
def serving(site):
    """Starts the page on a port of loopback, for a token and a kind of address; returns (port, stop)."""
    stops = []

    def start(token=None, local=True):
        app = web.app(site.source(), token, local=local)
        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        end = time.monotonic() + 30
        while not server.started:
            assert thread.is_alive() and time.monotonic() < end, "the page didn't come up"
            time.sleep(0.01)

        def stop():
            server.should_exit = True
            thread.join(30)

        stops.append(stop)
        return server.servers[0].sockets[0].getsockname()[1], stop

    yield start
    for stop in stops:
        stop()
