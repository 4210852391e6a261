"""IAM Roles Anywhere, which moto lacks: trust anchors, profiles, revocation lists, and CreateSession, which gives the
credentials of a role to who signs with a certificate.

As AWS: an anchor or profile is born disabled unless it is asked otherwise; a CA certificate without CA:true or without
the right to sign certificates is refused; the role's own trust policy has the last word.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import uuid
from typing import Any
from urllib.parse import parse_qsl

from moto.iam.models import iam_backends
from moto.sts.models import sts_backends

from lab.aws import iam, x509
from lab.aws.capacity import stash
from lab.aws.iam_calls import Account
from lab.aws.iam_policy import Caller, NotJudged, judge
from lab.aws.launch_spec import Params
from lab.aws.rest import Refused, RestService

SERVICE = "rolesanywhere"
PRINCIPAL = "rolesanywhere.amazonaws.com"
NAME = re.compile(r"[ a-zA-Z0-9-_]*")
DEFAULT_SESSION_S = 3600
KINDS = {"trustAnchor": "trust-anchor", "profile": "profile", "crl": "crl"}
CHANGED = {
    "trustAnchor": ("name", "source"),
    "profile": ("name", "roleArns", "managedPolicyArns", "sessionPolicy", "durationSeconds"),
    "crl": ("name", "crlData"),
}
"""kind -> what an update changes"""


def denied(message: str) -> Refused:
    return Refused("AccessDeniedException", message, 403)


class RolesAnywhere(RestService):
    """The service; CreateSession is signed by a certificate, so IAM knows nobody to judge."""

    service = SERVICE

    def unjudged(self, where: Account, environ: dict[str, Any], body: bytes) -> tuple[int, Params] | None:
        """CreateSession."""
        return (201, create_session(where, environ, body)) if environ["PATH_INFO"] == "/sessions" else None

    def answered(self, where: Account, call: str, p: Params) -> Params:
        """All other calls."""
        return answered(where, call, p)


def table(where: Account) -> dict[str, Params]:
    """ARN -> anchor, profile or list, with its tags beside it."""
    return stash(iam_backends[where.account]["aws"], SERVICE).setdefault(where.region, {})


def kept(where: Account, kind: str, name: str) -> Params:
    """By its id or ARN."""
    for arn, row in table(where).items():
        if name in (arn, arn.rsplit("/", 1)[-1]) and f":{KINDS[kind]}/" in arn:
            return row
    raise Refused("ResourceNotFoundException", f"{KINDS[kind]} {name} does not exist", 404)


def answered(where: Account, call: str, p: Params) -> Params:
    """The answer of one call; every kind has the same verbs."""
    if call in ("TagResource", "UntagResource", "ListTagsForResource"):
        return tagged(where, call, p)
    verb, kind = next(
        (call.removesuffix(each[0].upper() + each[1:]), each) for each in KINDS if each.lower() in call.lower()
    )
    if verb.startswith("List"):
        rows = [row for arn, row in table(where).items() if f":{KINDS[kind]}/" in arn]
        return {f"{kind}s": [shown(kind, row) for row in rows]}
    if verb in ("Create", "Import"):
        return {kind: shown(kind, born(where, kind, p))}
    row = kept(where, kind, p[f"{kind}Id"])
    if verb == "Delete":
        del table(where)[row["arn"]]
    elif verb in ("Enable", "Disable"):
        row["enabled"] = verb == "Enable"
    elif verb == "Update":
        checked(kind, p)
        row |= {key: p[key] for key in CHANGED[kind] if key in p}
    elif verb != "Get":
        raise Refused("UnknownOperationException", f"the lab's Roles Anywhere has no {call}", 404)
    return {kind: shown(kind, row)}


def tagged(where: Account, call: str, p: Params) -> Params:
    row = table(where).get(p["resourceArn"])
    if row is None:
        raise Refused("ResourceNotFoundException", f"{p['resourceArn']} does not exist", 404)
    if call == "TagResource":
        row["tags"] |= {tag["key"]: tag["value"] for tag in p["tags"]}
    for key in p["tagKeys"] if call == "UntagResource" else ():
        row["tags"].pop(key, None)
    return {"tags": [{"key": k, "value": v} for k, v in row["tags"].items()]} if call.startswith("List") else {}


def born(where: Account, kind: str, p: Params) -> Params:
    checked(kind, p)
    if kind == "crl":
        kept(where, "trustAnchor", p["trustAnchorArn"])
    name = str(uuid.uuid4())
    row = {key: value for key, value in p.items() if key != "tags"}
    row |= {"id": name, "arn": where.arn(SERVICE, f"{KINDS[kind]}/{name}"), "enabled": bool(p.get("enabled"))}
    row["tags"] = {tag["key"]: tag["value"] for tag in p.get("tags", [])}
    if kind == "profile":
        row.setdefault("durationSeconds", DEFAULT_SESSION_S)
    table(where)[row["arn"]] = row
    return row


def checked(kind: str, p: Params) -> None:
    """Raises what AWS answers to a name or a certificate that it doesn't take."""
    if not NAME.fullmatch(p.get("name", "")):
        raise Refused("ValidationException", f"name {p['name']!r}: letters, digits, spaces, - and _")
    if kind == "trustAnchor" and "source" in p:
        if p["source"].get("sourceType") != "CERTIFICATE_BUNDLE":
            raise Refused("ValidationException", "the lab's Roles Anywhere knows certificate bundles alone")
        try:
            for certificate in x509.bundle(p["source"]["sourceData"]["x509CertificateData"]):
                x509.check_authority(certificate)
        except x509.Unfit as error:
            raise Refused("ValidationException", str(error)) from None


def shown(kind: str, row: Params) -> Params:
    """As the service shows it: the id and the ARN under the kind's own names."""
    own = {f"{kind}Id": row["id"], f"{kind}Arn": row["arn"]}
    return own | {key: value for key, value in row.items() if key not in ("id", "arn", "tags")}


# ---- sessions
def create_session(where: Account, environ: dict[str, Any], body: bytes) -> Params:
    """Credentials of the role for who has signed with a certificate's key. Raises Refused."""
    p = {**json.loads(body or b"{}"), **dict(parse_qsl(environ.get("QUERY_STRING", "")))}
    try:
        certificate, chain = x509.signer(environ, body)
        anchor = kept(where, "trustAnchor", p["trustAnchorArn"])
        x509.check_chain(certificate, chain, x509.bundle(anchor["source"]["sourceData"]["x509CertificateData"]))
        lists = [row for row in table(where).values() if row.get("trustAnchorArn") == anchor["arn"] and row["enabled"]]
        x509.check_not_revoked(certificate, [row["crlData"] for row in lists])
    except x509.Unfit as error:
        raise denied(str(error)) from None
    profile = kept(where, "profile", p["profileArn"])
    for row in (anchor, profile):
        if not row["enabled"]:
            raise denied(f"{row['arn']} is disabled")
    if p["roleArn"] not in profile["roleArns"]:
        raise denied(f"{p['roleArn']} is not in the profile")
    may_be_taken(where, p["roleArn"], anchor["arn"], x509.attributes(certificate))
    longest = next(role.max_session_duration for role in where.iam.roles.values() if role.arn == p["roleArn"])
    seconds = min(p.get("durationSeconds", profile["durationSeconds"]), int(longest or DEFAULT_SESSION_S))
    serial = f"{certificate.serial_number:x}"
    session = sts_backends[where.account]["aws"].assume_role(where.region, serial, p["roleArn"], "", seconds, "")
    ends = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)
    credentials = {
        "accessKeyId": session.access_key_id,
        "secretAccessKey": session.secret_access_key,
        "sessionToken": session.session_token,
        "expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    user = {"arn": session.arn, "assumedRoleId": session.user_id}
    return {"credentialSet": [{"assumedRoleUser": user, "credentials": credentials, "roleArn": p["roleArn"]}]}


def may_be_taken(where: Account, role_arn: str, anchor_arn: str, attributes: dict[str, str]) -> None:
    """All three actions have to be allowed to the service, with what stands in the certificate."""
    trust = iam.trust_policy(where, role_arn)
    tags = {f"aws:PrincipalTag/{name}": [value] for name, value in attributes.items()}
    source = {"aws:SourceArn": [anchor_arn], "aws:SourceAccount": [where.account]}
    for action in ("sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"):
        check = where.check(action, role_arn, tags, source)
        try:
            verdict = judge([trust] if trust else [], check, Caller(frozenset({PRINCIPAL})))
        except NotJudged as error:
            raise denied(f"{role_arn}: {error}") from None
        if not verdict.allowed:
            raise denied(f"Unable to assume role for {role_arn}: {verdict.why}")
