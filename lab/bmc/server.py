"""An HTTP server on threads that ends at once."""

from __future__ import annotations

import contextlib
import socket
import ssl
import sys
from http.server import ThreadingHTTPServer
from typing import Any


class Server(ThreadingHTTPServer):
    """Its threads end with the program."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients hang up: no error of ours."""
        if not isinstance(sys.exception(), ConnectionError | ssl.SSLError):
            super().handle_error(request, client_address)

    def shutdown(self) -> None:
        """It looks whether it is to end when its time to poll is over, or somebody connects."""
        self._BaseServer__shutdown_request = True
        with contextlib.suppress(OSError):
            socket.create_connection(self.server_address[:2], timeout=1).close()
        super().shutdown()
