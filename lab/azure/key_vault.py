"""Key Vault, as far as ironburst asks it: the newest version of a secret. All vaults of a subscription in one server:
https://VAULT.vault.azure.net/... is http://127.0.0.1:PORT/VAULT/... here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lab.served import LOOPBACK, Answering, Server

_GET = re.compile(r"/([a-z0-9-]+)/secrets/([A-Za-z0-9-]+)\?api-version=7\.\d")


class KeyVault(Server):
    """`held`: VAULT/NAME -> value, or (value, tags). `known`: whether a token is one for vaults. `refusals`: so many
    calls more are refused. `allowed`: whether whoever has a token may read VAULT/NAME. A vault is under `url` by its
    name.
    """

    def __init__(
        self,
        known: Callable[[str], bool],
        address: tuple[str, int] = LOOPBACK,
        allowed: Callable[[str, str, str], bool] = lambda _token, _vault, _name: True,
    ):
        self.known, self.allowed, self.refusals = known, allowed, 0
        self.held: dict[str, str | tuple[str, dict[str, str]]] = {}
        super().__init__(address, _Handler)

    def answer(self, path: str, token: str) -> tuple[int, dict[str, Any]]:
        asked = _GET.fullmatch(path)
        if not self.known(token):
            return _error(401, "Unauthorized", "AKV10000: Request is missing a Bearer or PoP token.")
        if not asked:
            return _error(400, "BadParameter", f"there is no call {path}")
        vault, name = asked.groups()
        if self.refusals or not self.allowed(token, vault, name):
            self.refusals = max(0, self.refusals - 1)
            return _error(403, "Forbidden", "Caller is not authorized to perform action on resource.")
        if f"{vault}/{name}" not in self.held:
            text = f"A secret with (name/id) {name} was not found in this key vault."
            return _error(404, "SecretNotFound", text)
        held = self.held[f"{vault}/{name}"]
        value, tags = (held, {}) if isinstance(held, str) else held
        id = f"https://{vault}.vault.azure.net/secrets/{name}/0123456789abcdef0123456789abcdef"
        return 200, {"id": id, "value": value, "attributes": {"enabled": True}} | ({"tags": tags} if tags else {})


def _error(status: int, code: str, text: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"code": code, "message": text}}


class _Handler(Answering):
    server: KeyVault

    def do_GET(self) -> None:
        self.send(*self.server.answer(self.path, self.bearer()))
