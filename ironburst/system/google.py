"""Google Cloud's Secret Manager: `google-secretmanager:PROJECT/NAME[#JSON_KEY]`, always the newest version. The SDK is
loaded when it is asked.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from typing import Any

from ironburst.system.secret_store import Store, Unanswered

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_ENDPOINT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"
"""gcloud's own variable, for a stand-in"""


def renewed(credentials: Any) -> Any:
    """The same credentials, with a token that is good for minutes. Who signs in with a certificate gets one over TLS
    with it, and httplib2, which renews them else, has no way to show one. Raises GoogleAuthError.
    """
    from google.auth.transport.requests import Request

    if not credentials.valid:
        credentials.refresh(Request())
    return credentials


def _asked(name: str, ask: Callable[[Any, str], Any]) -> Any:
    """What `ask` gets of projects.secrets for a secret's full name. Raises Unanswered."""
    try:
        import google.auth
        import google.auth.exceptions
        import httplib2
        from google.api_core.client_options import ClientOptions
        from google_auth_httplib2 import AuthorizedHttp
        from googleapiclient.discovery import build_from_document
        from googleapiclient.discovery_cache import get_static_doc
        from googleapiclient.errors import HttpError
    except ImportError:
        raise Unanswered("nothing: its client isn't installed (pip install 'ironburst[google]')") from None
    try:
        credentials, _ = google.auth.default(scopes=[_SCOPE])
        project, _, its_name = name.partition("/")
        options = ClientOptions(api_endpoint=os.environ[_ENDPOINT]) if os.environ.get(_ENDPOINT) else None
        document = get_static_doc("secretmanager", "v1")
        service = build_from_document(document, http=httplib2.Http(), client_options=options)
        asked = ask(service.projects().secrets(), f"projects/{project}/secrets/{its_name}")
        return asked.execute(http=AuthorizedHttp(renewed(credentials), http=httplib2.Http(timeout=30)))
    except HttpError as error:
        reason = f"{error.status_code} {error.reason}"
    except google.auth.exceptions.GoogleAuthError as error:
        reason = type(error).__name__
    except (OSError, httplib2.HttpLib2Error) as error:
        reason = f"nothing ({type(error).__name__})"
    raise Unanswered(reason)


def _get(name: str, _: str | None) -> str:
    secret, _, key = name.partition("#")
    answer = _asked(secret, lambda secrets, full: secrets.versions().access(name=f"{full}/versions/latest"))
    try:
        text = base64.b64decode(answer["payload"]["data"]).decode()
        return str(json.loads(text)[key]) if key else text
    except (KeyError, TypeError, ValueError):
        raise Unanswered(f"no text under the key {key!r}" if key else "it holds no text") from None


def _put(name: str, value: str, _: str | None) -> None:
    body = {"payload": {"data": base64.b64encode(value.encode()).decode()}}
    _asked(name, lambda secrets, full: secrets.addVersion(parent=full, body=body))


SECRET_MANAGER = Store(
    provider="google",
    scheme="google-secretmanager",
    called="Google's Secret Manager",
    form=r"([a-z0-9.-]+:)?[a-z0-9-]+/[A-Za-z0-9_-]+(#\S+)?",
    hint="write the project and the secret's name, as in google-secretmanager:gpu-prod-4711/munge-key",
    get=_get,
    put=_put,
)
