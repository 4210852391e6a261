"""A way from a program of an instance to the metadata service, which knows instances by their addresses: connections to
a port of loopback go on from the instance's own address, as they are.
"""

import contextlib
import socket
import threading

TIMEOUT_S = 10
PART = 1 << 16


class Relay:
    """Runs until the process ends; `url` is what the program is told of."""

    def __init__(self, address: str, target: tuple[str, int]):
        self._address, self._target = address, target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        """A target that doesn't answer is a connection that ends."""
        source = (self._address, 0)
        with near, contextlib.suppress(OSError), socket.create_connection(self._target, TIMEOUT_S, source) as far:
            back = threading.Thread(target=_copy, args=(far, near), daemon=True)
            back.start()
            _copy(near, far)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(PART):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
