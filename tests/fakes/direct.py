"""The lab's stand-ins without a connection between them and the clouds' own clients: what a client would send is handed
over, and what it would read is handed back. A third of the time of a call over the loopback, and none of it is waiting.
"""

from http import HTTPStatus
from http.client import RemoteDisconnected
from types import SimpleNamespace
from urllib.parse import urlsplit

import httplib2
import requests
from urllib3.exceptions import ProtocolError

LOST = "Remote end closed connection without response"


def _path(url):
    split = urlsplit(url)
    return f"{split.path}?{split.query}" if split.query else split.path


class Httplib2:
    """httplib2's Http, as Google's client uses it."""

    def __init__(self, lab):
        self._lab = lab

    def request(self, uri, method="GET", body=None, headers=None, **_):
        body = body.encode() if isinstance(body, str) else body or b""
        for _try in range(2):  # as httplib2: a connection that is lost may have been an old one
            if answer := self._lab.handle(method, _path(uri), body, {}):
                status, said = answer
                head = {"status": str(status), "content-type": "application/json; charset=UTF-8"}
                return httplib2.Response(head), said
        raise RemoteDisconnected(LOST)


class Session:
    """requests' Session, as Azure's clients use it."""

    def __init__(self, lab):
        self._lab = lab

    def request(self, method, url, headers, data=None, **_):
        body = data.encode() if isinstance(data, str) else data or b""
        answer = self._lab.handle(method, _path(url), body, dict(headers))
        if answer is None:
            raise requests.ConnectionError(ProtocolError("Connection aborted.", RemoteDisconnected(LOST)))
        response = requests.Response()
        response.status_code, response._content, response.url = answer.status, answer.body, url
        response.reason = HTTPStatus(answer.status).phrase
        response.headers.update({"Content-Type": "application/json; charset=utf-8", **answer.headers})
        response._content_consumed, response.raw = True, SimpleNamespace(close=lambda: None)
        return response

    def close(self):
        """Nothing is open."""


def google(api, lab):
    """An Api of adapters.google that is beside the stand-in, in all its threads."""
    api._local = SimpleNamespace(http=Httplib2(lab))


def azure(api, lab):
    """An Api of adapters.azure that is."""
    for client in {api._compute, *api._of.values()}:
        client._client._pipeline._transport.session = Session(lab)
