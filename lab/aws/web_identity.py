"""AssumeRoleWithWebIdentity: a token of an issuer that the account knows, and a role that trusts it.

AWS fetches the issuer's keys from it; here a test writes them into the table `issuers` (issuer without https:// -> RSA
public key). The token's signature, dates, issuer and audience are checked, then the role's trust policy.
"""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.hashes import SHA256

from lab.aws.capacity import stash
from lab.aws.iam_calls import Account
from lab.aws.iam_policy import Caller, Check, Verdict, judge


class BadToken(Exception):
    """A token that AWS doesn't take (InvalidIdentityToken, ExpiredTokenException); one sentence."""


def claims(where: Account, token: str) -> dict[str, Any]:
    """Of a token whose issuer the account knows. Raises BadToken."""
    try:
        head, body, signature = token.split(".")
        said = json.loads(_decoded(body))
        issuer = str(said["iss"]).removeprefix("https://")
    except (ValueError, KeyError):
        raise BadToken("The ID Token provided is not a valid JWT") from None
    key = stash(where.iam, "issuers").get(issuer)
    provider = next((each for each in where.iam.open_id_providers.values() if each.url == issuer), None)
    if provider is None or key is None:
        raise BadToken(f"No OpenIDConnect provider found in your account for https://{issuer}")
    try:
        key.verify(_decoded(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), SHA256())
    except InvalidSignature:
        raise BadToken("the token's signature is not its issuer's") from None
    if said.get("exp", 0) < time.time():
        raise BadToken("Token expired")
    if said.get("aud") not in provider.client_id_list:
        raise BadToken("Incorrect token audience")
    return said


def may_take(where: Account, trust: Any, role_arn: str, token: str) -> Verdict:
    """Whether the role's trust policy takes the token. Raises BadToken, NotJudged."""
    said = claims(where, token)
    issuer = str(said["iss"]).removeprefix("https://")
    context = {f"{issuer}:{name}".lower(): [str(said[name])] for name in ("aud", "sub") if name in said}
    provider = where.arn("iam", f"oidc-provider/{issuer}", region="")
    check = Check("sts:AssumeRoleWithWebIdentity", role_arn, context)
    return judge([trust] if trust else [], check, Caller(frozenset({provider})))


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
