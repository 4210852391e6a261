"""Secret Manager, as far as a node asks it: the newest version of a secret."""

from __future__ import annotations

import base64
import re
from typing import Any

from lab.google.iam import Iam
from lab.served import LOOPBACK, Answering, Server

_ACCESS = re.compile(r"/v1/(projects/[^/]+/secrets/[^/]+)/versions/latest:access")


class SecretManager(Server):
    """`held`: projects/P/secrets/NAME -> bytes; None: of its own. `refusals`: so many calls more are refused."""

    def __init__(self, iam: Iam, address: tuple[str, int] = LOOPBACK, held: dict[str, bytes] | None = None):
        self.iam, self.refusals = iam, 0
        self.held: dict[str, bytes] = {} if held is None else held
        super().__init__(address, _Handler)

    @property
    def url(self) -> str:
        return f"{super().url}/"

    def answer(self, path: str, token: str) -> tuple[int, dict[str, Any]]:
        asked = _ACCESS.fullmatch(path.partition("?")[0])
        name = asked[1] if asked else path
        if token not in self.iam.tokens:
            return _error(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
        if self.refusals or self.iam.refusal(token, "secretmanager.versions.access", name):
            self.refusals = max(0, self.refusals - 1)
            return _error(403, "PERMISSION_DENIED", f"Permission 'secretmanager.versions.access' denied for '{name}'")
        if name not in self.held:
            return _error(404, "NOT_FOUND", f"Secret [{name}] not found or has no versions.")
        return 200, {"name": f"{name}/versions/1", "payload": {"data": base64.b64encode(self.held[name]).decode()}}


def _error(status: int, code: str, text: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"code": status, "status": code, "message": text}}


class _Handler(Answering):
    server: SecretManager

    def do_GET(self) -> None:
        self.send(*self.server.answer(self.path, self.bearer()))
