"""A service of AWS that speaks JSON over paths (rest-json), in front of moto: it takes what is signed for it, and lets
IAM judge each call. The shapes are checked against the SDK's own model.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

import botocore.session
from botocore.validate import ParamValidator
from werkzeug.datastructures import EnvironHeaders
from werkzeug.exceptions import HTTPException

from lab.aws import iam
from lab.aws.iam_calls import Account
from lab.aws.launch_spec import Params


class Refused(Exception):
    """An answer of the service that isn't a success."""

    def __init__(self, code: str, message: str, status: int = 400):
        super().__init__(message)
        self.code, self.status = code, status


class RestService:
    """WSGI: the requests of one service; all others go on to `app`."""

    service: str

    def __init__(self, app: Callable[..., Iterable[bytes]], account: str):
        self.app, self.account = app, account
        self.model = botocore.session.Session().get_service_model(self.service)

    def answered(self, where: Account, call: str, p: Params) -> Params:
        """The answer of one call. Raises Refused."""
        raise NotImplementedError

    def unjudged(self, where: Account, environ: dict[str, Any], body: bytes) -> tuple[int, Params] | None:
        """(status, answer) of what IAM isn't asked for; None: it is asked."""

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        scope = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition(",")[0].split("/")
        if len(scope) < 5 or scope[3] != self.service:
            return self.app(environ, start)
        body = environ["wsgi.input"].read()
        environ["wsgi.input"] = io.BytesIO(body)
        where = Account(self.account, scope[2])
        try:
            status, answer = self.unjudged(where, environ, body) or self._judged(where, environ, body)
        except Refused as error:
            status, answer = error.status, {"__type": error.code, "message": str(error)}
        except HTTPException as error:  # a refusal by IAM
            status, answer = error.code or 500, json.loads(error.description or "{}")
        start(f"{status} x", [("Content-Type", "application/json")])
        return [json.dumps(answer).encode()]

    def _judged(self, where: Account, environ: dict[str, Any], body: bytes) -> tuple[int, Params]:
        raw = str(environ.get("REQUEST_URI") or quote(environ["PATH_INFO"])).partition("?")[0]  # an ARN may have a /
        for name in self.model.operation_names:
            model = self.model.operation_model(name)
            path = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", model.http["requestUri"])
            found = re.fullmatch(path, raw)
            if not found or model.http["method"] != environ["REQUEST_METHOD"]:
                continue
            in_path = {name: unquote(value) for name, value in found.groupdict().items()}
            named = _members(model, in_path, dict(parse_qsl(environ.get("QUERY_STRING", ""))))
            given = {**json.loads(body or b"{}"), **named}
            asked = {"service_name": self.service, "_get_action": lambda name=name: name, "region": where.region}
            asked |= {"headers": EnvironHeaders(environ), "body": json.dumps(given)}
            iam.authorise(SimpleNamespace(**asked), where.account)
            wrong = ParamValidator().validate(given, model.input_shape) if model.input_shape else None
            if wrong and wrong.has_errors():
                raise Refused("ValidationException", wrong.generate_report())
            return int(model.http.get("responseCode", 200)), self.answered(where, name, given)
        raise Refused("UnknownOperationException", f"no such call: {environ['PATH_INFO']}", 404)


def _members(model: Any, in_path: Params, in_query: Params) -> Params:
    """By the names that the SDK gives them, which are others than those in the path; a list of the query as a list."""
    shape = model.input_shape
    if shape is None:
        return {**in_query, **in_path}
    by_name = {member.serialization.get("name", name): name for name, member in shape.members.items()}
    named = {by_name.get(name, name): value for name, value in {**in_query, **in_path}.items()}
    return {
        name: [value] if name in shape.members and shape.members[name].type_name == "list" else value
        for name, value in named.items()
    }
