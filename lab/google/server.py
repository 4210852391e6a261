"""The stand-in over HTTP, and faults: calls that fail, wait, are lost, or are answered with something else."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from lab.google import declared, project, sign_in
from lab.google.calls import Calls
from lab.google.description import ROOT, Call, Wrong, call, check
from lab.google.vm import Json
from lab.google.world import Refusal, World
from lab.served import LOOPBACK, Api, Fault


class Cloud(Api, World):
    """A project of Compute Engine on the loopback."""

    reason = "backendError"

    def __init__(self, address: tuple[str, int] = LOOPBACK, **world: Any):
        super().__init__(**world)
        self._answers, self.declared = Calls(self), declared.Declared(self)
        self.serve(address)
        self.url_of_api = f"{self.at}{ROOT}"

    def handle(self, verb: str, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes] | None:
        """Status and body of an answer; None: the connection is lost."""
        bearer = headers.get("Authorization", "").removeprefix("Bearer ")
        with self._lock:
            if url.startswith(declared.ROOT):
                return self.declared.handle(verb, unquote(url), body)
            try:
                members = self.declared.held["gcp:serviceaccount/iAMMember:IAMMember"]
                other = sign_in.answer(self.iam, members, verb, url, body, bearer)
                if other is not None or (other := project.other_api(self, verb, url, body)) is not None:
                    return 200, json.dumps(other).encode()
                asked = call(verb, url, body)
                if asked is None:
                    raise Refusal(404, "notFound", f"there is no call {verb} {url}")
            except Wrong as error:
                return _said(Refusal(400, "invalid", str(error)))
            except Refusal as error:
                return _said(error)
            self.calls.append(asked)
            if refused := self.iam.refusal(bearer, asked.id, self.resource(asked.parameters)):
                return _said(Refusal(403, "forbidden", refused))
            fault = self.hit(asked)
            self.settle()
            if fault is None or fault.after or fault.rewrite:
                status, answer = self._true(asked)
            else:
                status, answer = 0, {}
        return self._faulty(fault, asked, status, answer) if fault else (status, json.dumps(answer).encode())

    def _true(self, asked: Call) -> tuple[int, Json]:
        try:
            answer = self._answers.answer(asked)
        except Refusal as error:
            status, said = _said(error)
            return status, json.loads(said)
        try:
            check(answer, {"$ref": asked.response}, "", output=True)
        except Wrong as error:
            self.wrong.append(f"{asked.id}: {error}")
        return 200, answer

    def _faulty(self, fault: Fault, asked: Call, status: int, answer: Json) -> tuple[int, bytes] | None:
        if fault.delay_s:
            time.sleep(fault.delay_s)
        if fault.drop:
            return None
        if fault.status:
            return _said(Refusal(fault.status, fault.reason, fault.message))
        if fault.rewrite:
            other = fault.rewrite(answer)
            return status, other if isinstance(other, bytes) else json.dumps(other).encode()
        if not answer:
            with self._lock:
                status, answer = self._true(asked)
        return status, json.dumps(answer).encode()


def _said(error: Refusal) -> tuple[int, bytes]:
    domain = "usageLimits" if error.reason.endswith("Exceeded") else "global"
    one = {"message": str(error), "domain": domain, "reason": error.reason}
    return error.status, json.dumps({"error": {"code": error.status, "message": str(error), "errors": [one]}}).encode()
