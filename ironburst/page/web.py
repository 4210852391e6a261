"""The page over HTTP: it answers GET, to whom it may, and changes nothing.

Works with Starlette 0.26 to 1.x.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Protocol
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ironburst.page import render

COOKIE = "ironburst"
LOCAL_NAMES = frozenset(("localhost", "127.0.0.1", "[::1]"))
_HEADERS = {
    "Content-Security-Policy": f"{render.policy()}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Source(Protocol):
    """Where the pages come from."""

    def page(self, asked: str) -> str:
        """All of it, with the jobs that are asked for."""

    def now(self, asked: str) -> str:
        """What changes from look to look."""

    def story(self, job: str) -> str | None:
        """What is known of one job; None: nothing."""


def app(source: Source, token: str | None, *, local: bool) -> ASGIApp:
    """`token`: that is asked for, None: of nobody; `local`: bound to loopback, so asked for only under its names."""

    def asked(request: Request) -> str:
        return request.query_params.get("q", "")[:200]

    def page(request: Request) -> Response:
        return HTMLResponse(source.page(asked(request)))

    def now(request: Request) -> Response:
        return HTMLResponse(source.now(asked(request)))

    def story(request: Request) -> Response:
        told = source.story(request.path_params["job"][:200])
        return PlainTextResponse("no job of that name was ever seen", 404) if told is None else HTMLResponse(told)

    routes = [Route("/", page), Route("/now", now), Route("/jobs/{job:path}", story)]
    return _Guard(Starlette(routes=routes), token, local=local)


class _Guard:
    """Who may ask: under a name of this host (a page of somebody else's that has its name lead here has another), and
    with the token.
    """

    def __init__(self, inner: ASGIApp, token: str | None, *, local: bool):
        self._inner, self._token, self._local = inner, token, local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no websockets; lifespan has nothing to do
        answer = self._refused(Request(scope)) or self._inner

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *headers]}
            await send(message)

        await answer(scope, receive, sent)

    def _refused(self, request: Request) -> Response | None:
        if self._local and _name(request.headers.get("host", "")) not in LOCAL_NAMES:
            return PlainTextResponse("ask for it as localhost, through `ssh -L` from another machine", 421)
        if self._token is None or self._knows(request):
            return None
        given = request.query_params.get("token")
        if given is not None and _same(given, self._token):
            return self._signed_in(request)
        told = "open it once with ?token=... behind the address, or send Authorization: Bearer ..."
        return PlainTextResponse(f"the token is needed: {told}", 401, {"WWW-Authenticate": "Bearer"})

    def _knows(self, request: Request) -> bool:
        token = self._token or ""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(given.strip(), token):
            return "token" not in request.query_params
        return _same(request.cookies.get(COOKIE, ""), sign(token)) and "token" not in request.query_params

    def _signed_in(self, request: Request) -> Response:
        """To the same place without the token, which would stay in the browser's history."""
        rest = [(key, value) for key, value in request.query_params.multi_items() if key != "token"]
        path = f"/{request.url.path.lstrip('/')}"  # `//host` would lead elsewhere
        answer = RedirectResponse(f"{path}?{urlencode(rest)}" if rest else path, 303)
        answer.set_cookie(COOKIE, sign(self._token or ""), httponly=True, samesite="strict", path="/")
        return answer


def sign(token: str) -> str:
    """What a browser keeps instead of the token."""
    return hmac.new(token.encode(), b"ironburst serve", hashlib.sha256).hexdigest()


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())


def _name(host: str) -> str:
    """Of a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()
