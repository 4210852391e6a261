"""What sushy's connection lets a BMC do, narrowed: one host, a limited number of bytes, one try of the password.

By itself sushy follows a document's link to any host, with the session's token, and tries a refused password again by
other means; some BMCs lock the user after three.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from sushy import auth, exceptions

MOST_BYTES = 16 * 1024 * 1024
"""of one answer: an expanded list of sensors has a few hundred kB"""


class TooMuch(Exception):
    """An answer that is not taken; the text follows "BMC ADDRESS "."""


class OneHost(HTTPAdapter):
    """Speaks to the BMC's own address only, to a server that `context` takes, and to the one whose certificate has the
    fingerprint `sha256`, if given. `check` is called with every part of an answer: a BMC that drips is not waited for.
    """

    def __init__(
        self, address: str, check: Callable[[], None], context: ssl.SSLContext | None, sha256: str | None
    ) -> None:
        self._origin, self._check, self._context, self._sha256 = origin(address), check, context, sha256
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Asks for the fingerprint."""
        if self._sha256:
            kwargs["assert_fingerprint"] = self._sha256
        super().init_poolmanager(*args, ssl_context=self._context, **kwargs)

    def build_connection_pool_key_attributes(self, *args: Any, **kwargs: Any) -> Any:
        """Without CAs: requests has them read again for each connection, and a BMC gets one for each request."""
        host, tls = super().build_connection_pool_key_attributes(*args, **kwargs)
        return host, {"cert_reqs": tls["cert_reqs"]}

    def cert_verify(self, *_: Any) -> None:
        """The context knows the CAs."""

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """Raises TooMuch for another host and for an endless answer."""
        if origin(request.url or "") != self._origin:
            raise TooMuch("sends us to another host, where we don't go: its answers are not to be trusted")
        response = super().send(request, *args, **kwargs)
        body = bytearray()
        # as it comes: iter_content waits for a full part, and a BMC that drips is never done with one
        while part := response.raw.read1(64 * 1024, decode_content=True):
            body += part
            if len(body) > MOST_BYTES:
                response.close()
                raise TooMuch(f"gave an answer of more than {MOST_BYTES // 2**20} MiB, which no inventory needs")
            self._check()
        response._content = bytes(body)
        self._check()
        return response


def origin(url: str) -> tuple[str, str | None, int | None]:
    """What two addresses of one server have in common: scheme, host and port."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)


class OneLogin(auth.SessionOrBasicAuth):  # type: ignore[misc]
    """A session; basic authentication only where the BMC has no sessions, not where it refuses the password."""

    _tried = False

    def _do_authenticate(self) -> None:
        if self._tried:
            raise _refused()
        self._tried = True
        try:
            auth.SessionAuth._do_authenticate(self)
        except (exceptions.AccessError, exceptions.ConnectionError):
            raise
        except exceptions.SushyError:
            self._fallback_to_basic_authentication()

    def refresh_session(self) -> None:
        """sushy asks for it after each 401 and 403: what was refused stays refused, and the session is kept."""
        raise _refused()


def _refused() -> BaseException:
    return sys.exception() or RuntimeError("no second login")
