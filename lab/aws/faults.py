"""Errors with EC2's real HTTP status, and a WSGI layer that makes calls fail, wait, or succeed without a reply."""

from __future__ import annotations

import collections
import dataclasses
import io
import json
import socket
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from werkzeug.exceptions import HTTPException


class Ec2Error(HTTPException):
    """moto's own exceptions are always HTTP 400; EC2 sends InsufficientInstanceCapacity as 500."""

    def __init__(self, code: str, message: str, status: int = 400):
        super().__init__()
        self.code, self.error_code, self.message = status, code, message
        self.description = (
            f"<?xml version='1.0'?><Response><Errors><Error><Code>{code}</Code><Message>{escape(message)}"
            f"</Message></Error></Errors><RequestID>{uuid.uuid4()}</RequestID></Response>"
        )

    def get_headers(self, *_: Any, **__: Any) -> list[tuple[str, str]]:
        return [("Content-Type", "text/xml;charset=UTF-8")]


@dataclasses.dataclass
class Fault:
    """What happens to matching calls: a wait, then an error, a dropped connection or (neither given) the true reply."""

    action: str  # "RunInstances"; "*" is every call
    code: str = ""
    status: int = 400
    message: str = "injected"
    times: int = 1  # -1: until taken out of the list
    when: Callable[[dict[str, str]], bool] = lambda _params: True  # sees the flat query parameters
    delay: float = 0.0
    drop: bool = False
    after: bool = False  # the call takes effect first: "time-out after success"
    hits: int = 0


class FaultLayer:
    """WSGI middleware before moto: records every call and applies the first fault that fits."""

    def __init__(self, app: Callable):
        self.app, self.lock = app, threading.Lock()
        self.faults: list[Fault] = []
        self.calls: collections.deque[tuple[str, dict[str, str]]] = collections.deque(
            maxlen=20_000
        )  # the latest requests, in order

    def add(self, action: str, code: str = "", **kwargs: Any) -> Fault:
        """A new Fault (its fields as arguments), behind those that are there."""
        self.faults.append(Fault(action, code, **kwargs))
        return self.faults[-1]

    def __call__(self, environ: dict, start: Callable) -> Any:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        params = {} if target else dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        action = target.split(".")[-1] or params.get("Action") or f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        self.calls.append((action, params))
        with self.lock:
            hit = next((f for f in self.faults if f.times and f.action in (action, "*") and f.when(params)), None)
            if hit:
                hit.times, hit.hits = hit.times - 1, hit.hits + 1
        if not hit:
            return self.app(environ, start)
        head: list[Any] = []
        done = b"".join(self.app(environ, lambda *said: head.append(said))) if hit.after else b""
        time.sleep(hit.delay)
        if hit.drop:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionError("dropped by a fault")  # or werkzeug would answer 500, into the void
        if hit.code:
            return self.error(hit, environ, start)
        if not hit.after:
            return self.app(environ, start)
        start(*head[0][:2])
        return [done]

    @staticmethod
    def error(fault: Fault, environ: dict, start: Callable) -> list[bytes]:
        """The error in the shape of the called service's protocol."""
        scope = environ.get("HTTP_AUTHORIZATION", "").split("/")  # key/date/region/service/aws4_request
        service = scope[3] if len(scope) > 4 else ""
        xml = f"<Error><Code>{fault.code}</Code><Message>{escape(fault.message)}</Message></Error>"
        if service == "ec2":
            text = Ec2Error(fault.code, fault.message).description
        elif service == "s3":
            text = xml
        elif environ.get("HTTP_X_AMZ_TARGET") or "json" in environ.get("CONTENT_TYPE", ""):
            text = json.dumps({"__type": fault.code, "message": fault.message})
        else:
            text = f"<ErrorResponse>{xml}</ErrorResponse>"
        start(
            f"{fault.status} injected",
            [
                ("Content-Type", "text/xml" if text[0] == "<" else "application/x-amz-json-1.1"),
                ("x-amzn-ErrorType", fault.code),
            ],
        )
        return [text.encode()]
