"""Azure's Key Vault: `azure-keyvault:VAULT/NAME[#JSON_KEY]`, always the newest version. The SDK is loaded when it is
asked.
"""

from __future__ import annotations

import json
import logging
import os
from typing import Any

from ironburst.system.secret_store import Store, Unanswered

_SCOPE = "https://vault.azure.net/.default"
_VERSION = "7.4"
_ENDPOINT = "AZURE_KEYVAULT_URL"
"""for a stand-in, which has each vault under its name; none: the vault's own address"""
logging.getLogger("azure").addHandler(logging.NullHandler())  # else each way to sign in that fails is a line on stderr


def _asked(name: str, verb: str, body: dict[str, str] | None = None) -> Any:
    """What a vault answers for a secret. Raises Unanswered."""
    try:
        import requests
        from azure.core.exceptions import AzureError
        from azure.identity import DefaultAzureCredential
    except ImportError:
        raise Unanswered("nothing: its client isn't installed (pip install 'ironburst[azure]')") from None
    vault, _, its_name = name.partition("/")
    stand_in = os.environ.get(_ENDPOINT)
    url = f"{stand_in.rstrip('/')}/{vault}" if stand_in else f"https://{vault}.vault.azure.net"
    try:
        token = DefaultAzureCredential().get_token(_SCOPE).token
        answer = requests.request(
            verb,
            f"{url}/secrets/{its_name}",
            params={"api-version": _VERSION},
            headers={"Authorization": f"Bearer {token}"},
            json=body,
            timeout=30,
        )
        if answer.status_code == 200:
            return answer.json()
        try:
            reason = f"{answer.status_code} {answer.json()['error']['code']}"
        except (ValueError, KeyError, TypeError):
            reason = f"{answer.status_code} {answer.reason}"
    except AzureError as error:
        reason = type(error).__name__
    except (OSError, ValueError) as error:  # requests' own are OSErrors
        reason = f"nothing ({type(error).__name__})"
    raise Unanswered(reason)


def _get(name: str, _: str | None) -> str:
    secret, _, key = name.partition("#")
    answer = _asked(secret, "GET")
    try:
        text = str(answer["value"])
        return str(json.loads(text)[key]) if key else text
    except (KeyError, TypeError, ValueError):
        raise Unanswered(f"no text under the key {key!r}" if key else "it holds no text") from None


def _put(name: str, value: str, _: str | None) -> None:
    _asked(name, "PUT", {"value": value})


KEY_VAULT = Store(
    provider="azure",
    scheme="azure-keyvault",
    called="Azure's Key Vault",
    form=r"[A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9]/[A-Za-z0-9-]{1,127}(#\S+)?",
    hint="write the vault and the secret's name, as in azure-keyvault:gpu-prod/munge-key",
    get=_get,
    put=_put,
)
