"""Signing in without a key: Security Token Service and IAM Credentials, as google-auth asks them for an external
account (RFC 8693: a token from outside for a federated one; that for a service account's).
"""

from __future__ import annotations

import json
import re
import secrets
import time
from typing import Any
from urllib.parse import parse_qs

from lab.google.iam import Iam
from lab.google.vm import Json
from lab.google.world import Refusal

STS = "/sts/v1/token"
_IMPERSONATE = re.compile(r"/v1/projects/-/serviceAccounts/([^/:]+):generateAccessToken")
_MAY = ("roles/iam.workloadIdentityUser", "roles/iam.serviceAccountTokenCreator")
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_LIFE_S = 3600


def answer(iam: Iam, members: dict[str, Json], verb: str, url: str, body: bytes, bearer: str) -> Any:
    """None: it is none of these calls. `members`: of service accounts, as declared. Raises Refusal."""
    if verb == "POST" and url == STS:
        asked = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        who = iam.subjects.get(asked.get("subject_token", ""))
        if asked.get("grant_type") != _EXCHANGE or who is None:
            raise Refusal(400, "invalid_grant", "The subject token is not known.")
        token = _token(iam, who)
        kind = "urn:ietf:params:oauth:token-type:access_token"
        return {"access_token": token, "issued_token_type": kind, "token_type": "Bearer", "expires_in": _LIFE_S}
    if verb == "POST" and (asked_for := _IMPERSONATE.fullmatch(url)):
        who, account = iam.tokens.get(bearer, ""), asked_for[1]
        declared = any(_lets(said, who, account) for said in members.values())
        if not declared and (who, account) not in iam.impersonators:
            raise Refusal(403, "forbidden", f"Permission 'iam.serviceAccounts.getAccessToken' denied on {account}")
        ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + _LIFE_S))
        return {"accessToken": _token(iam, account), "expireTime": ends}
    return None


def _lets(said: Json, who: str, account: str) -> bool:
    """Whether a declared member of a service account may be it."""
    its = str(said["serviceAccountId"]).rpartition("/")[2]
    return said["role"] in _MAY and said["member"] == f"serviceAccount:{who}" and its == account


def _token(iam: Iam, email: str) -> str:
    token = secrets.token_urlsafe(20)
    iam.tokens[token] = email
    return token


def credentials(url: str, token_file: str, account: str = "") -> str:
    """The file that GOOGLE_APPLICATION_CREDENTIALS names. `url`: of the stand-in; `account`: to be impersonated."""
    said: Json = {
        "type": "external_account",
        "audience": "//iam.googleapis.com/lab",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": url + STS,
        "credential_source": {"file": token_file},
    }
    if account:
        its = f"/v1/projects/-/serviceAccounts/{account}:generateAccessToken"
        said["service_account_impersonation_url"] = url + its
    return json.dumps(said)
