"""IAM is enforced: who calls is known by the access key, and every policy of theirs is asked (iam_calls, iam_policy).

The access key `lab` is the account's administrator, who made everything else: only the organization's policies limit
it. Users and assumed roles may what their policies say, within their role's boundary, at once (AWS takes some seconds
to know a new one). Signatures are not checked.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from moto.core.exceptions import ServiceException
from moto.core.responses import BaseResponse
from moto.iam.models import iam_backends
from moto.s3.exceptions import S3ClientError
from moto.sqs.models import sqs_backends
from moto.sts import models as sts_models
from moto.sts.models import sts_backends
from werkzeug.exceptions import HTTPException

from lab.aws import clock, iam_late, limits, web_identity
from lab.aws.faults import Ec2Error
from lab.aws.iam_calls import Account, checks
from lab.aws.iam_policy import Caller, Check, NotJudged, Verdict, judge
from lab.aws.launch_spec import Params, plain
from lab.aws.s3_calls import s3_checks

ADMINISTRATOR = "lab"
LONGEST_CHAINED_S = 3600
"""a session of a role that another role took; without a word of the caller's, and of the role's, any other, too"""
KEY = re.compile(r"Credential=([^/,\s]+)/")
JSON_SERVICES = {
    "ssm",
    "sqs",
    "secretsmanager",
    "events",
    "budgets",
    "kms",
    "logs",
    "ce",
    "service-quotas",
    "directconnect",
    "rolesanywhere",
    "eks",
}
# kind of refusal -> (EC2's code and status, that of services with JSON, that of the others)
CODES = {
    "unknown": (("AuthFailure", 401), ("UnrecognizedClientException", 400), ("InvalidClientTokenId", 403)),
    "expired": (("RequestExpired", 400), ("ExpiredTokenException", 400), ("ExpiredToken", 403)),
    "token": (("", 0), ("", 0), ("InvalidIdentityToken", 400)),  # STS alone is given tokens
    "denied": (("UnauthorizedOperation", 403), ("AccessDeniedException", 400), ("AccessDenied", 403)),
}


@dataclass(frozen=True)
class Principal:
    """Who calls, and the policies that say what they may. `documents` None: the administrator."""

    arn: str
    role_arn: str | None
    documents: tuple[Mapping[str, Any], ...] | None
    boundary: tuple[Mapping[str, Any], ...] | None = None
    """of its role; None: it has none"""


class Refusal(HTTPException):
    """A refusal in the shape of a service's protocol."""

    def __init__(self, status: int, text: str):
        super().__init__()
        self.code, self.description = status, text


def refusal(service: str, kind: str, message: str) -> Exception:
    """`kind`: unknown, expired, token or denied."""
    ec2, spoken, other = CODES[kind]
    if service == "ec2":
        return Ec2Error(ec2[0], message, ec2[1])
    if service == "s3":
        return S3ClientError("InvalidAccessKeyId" if kind == "unknown" else other[0], message)
    if service in JSON_SERVICES:
        return Refusal(spoken[1], json.dumps({"__type": spoken[0], "message": message}))
    return in_xml(other[1], other[0], message)


def in_xml(status: int, code: str, message: str) -> Refusal:
    """As IAM and STS spell it."""
    error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
    return Refusal(status, f"<ErrorResponse>{error}<RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>")


def patch(replace: Callable[[Any, str, Any], None], account: str, organization: Sequence[Mapping[str, Any]]) -> None:
    """Put the question before every call. `organization`: its service control policies; what they don't deny is left to
    the account.
    """

    def asked(response: Any, _resource: str = "*") -> None:
        authorise(response, account, organization)

    def asked_by_s3(response: Any, bucket_name: str | None = None, key_name: str | None = None) -> None:
        authorise(
            response,
            account,
            organization,
            lambda where: s3_checks(where, response._get_action(), bucket_name, key_name, response.querystring),
        )

    replace(sts_models, "utcnow", clock.now)
    iam_late.patch(replace, policies_of)
    replace(BaseResponse, "_authenticate_and_authorize_normal_action", asked)
    replace(BaseResponse, "_authenticate_and_authorize_s3_action", asked_by_s3)


def authorise(
    response: Any,
    account: str,
    organization: Sequence[Mapping[str, Any]] = (),
    ask: Callable[[Account], list[Check]] | None = None,
) -> None:
    """Return, or raise what AWS would answer. `ask`: what IAM is asked of the call; None: what iam_calls knows."""
    service, action, headers = str(response.service_name), str(response._get_action()), response.headers
    if (service, action) == ("sts", "AssumeRoleWithWebIdentity"):  # not signed: the token says who calls
        said, where = _parameters(response), Account(account, response.region)
        with_web_identity(where, said)
        fitting(where, said, None)
        return
    if not (key := KEY.search(headers.get("Authorization", ""))):
        raise refusal(service, "unknown", "Request is missing Authentication Token")
    if service == "ec2":
        limits.checked(_parameters(response))
    principal = identify(account, service, key.group(1), headers.get("X-Amz-Security-Token"))
    if principal.documents is None and not organization and (service, action) != ("sts", "AssumeRole"):
        return
    where = Account(account, response.region)
    try:
        asked = ask(where) if ask else checks(where, service, action, _parameters(response))
    except ServiceException as error:  # a launch template that isn't there: nothing to ask about
        raise Ec2Error(str(error.code), str(error.message)) from None
    for check in asked:
        try:
            verdict = _bounded(organization, principal, check) or _judged(where, service, principal, check)
        except NotJudged as error:
            raise refusal(service, "denied", f"{principal.arn}: {error}") from None
        if not verdict.allowed:
            raise denied(service, principal, check, verdict)
    if (service, action) == ("sts", "AssumeRole"):
        fitting(where, _parameters(response), principal)


def fitting(where: Account, p: Params, principal: Principal | None) -> None:
    """STS's refusal of a session that is longer than its role allows, or than one role may take another (an hour)."""
    asked = int(p.get("DurationSeconds") or LONGEST_CHAINED_S)
    role = next((role for role in where.iam.roles.values() if role.arn == p["RoleArn"]), None)
    if principal and principal.role_arn and asked > LONGEST_CHAINED_S:
        limit = "1 hour session limit for roles assumed by role chaining"
    elif role and asked > int(role.max_session_duration or LONGEST_CHAINED_S):
        limit = "MaxSessionDuration set for this role."
    else:
        return
    raise in_xml(400, "ValidationError", f"The requested DurationSeconds exceeds the {limit}")


def with_web_identity(where: Account, p: Params) -> None:
    """Return, or raise what STS would answer."""
    role_arn = p["RoleArn"]
    try:
        verdict = web_identity.may_take(where, trust_policy(where, role_arn), role_arn, p["WebIdentityToken"])
    except web_identity.BadToken as error:
        raise refusal("sts", "token", str(error)) from None
    except NotJudged as error:
        raise refusal("sts", "denied", str(error)) from None
    if not verdict.allowed:
        raise refusal("sts", "denied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")


def denied(service: str, principal: Principal, check: Check, verdict: Verdict) -> Exception:
    """As AWS words it; EC2 adds what it asked, encoded (in the lab: base64 of JSON)."""
    text = f"User: {principal.arn} is not authorized to perform: {check.action} on resource: {check.resource}"
    text += f" {verdict.why}" if verdict.why.startswith("with ") else f" because {verdict.why}"
    if service == "ec2":
        asked = {
            "allowed": False,
            "context": {"action": check.action, "resource": check.resource, "conditions": check.context},
        }
        encoded = base64.b64encode(json.dumps(asked).encode()).decode()
        text = f"You are not authorized to perform this operation. {text}. "
        text += f"Encoded authorization failure message: {encoded}"
    return refusal(service, "denied", text)


def _parameters(response: Any) -> Params:
    params = getattr(response, "params", None)
    if params is not None:
        return plain(params)
    try:
        return json.loads(response.body or "{}")
    except ValueError:
        return {}


def _bounded(organization: Sequence[Mapping[str, Any]], principal: Principal, check: Check) -> Verdict | None:
    """What may not be, whoever allows it; None: nothing says so."""
    if judge(organization, check).why.startswith("explicit deny"):
        return Verdict(False, "with an explicit deny in a service control policy")
    if principal.boundary is None or (verdict := judge(principal.boundary, check)).allowed:
        return None
    if verdict.why.startswith("explicit deny"):
        return Verdict(False, "with an explicit deny in a permissions boundary")
    return Verdict(False, f"no permissions boundary allows the {check.action} action")


def _judged(where: Account, service: str, principal: Principal, check: Check) -> Verdict:
    """What the identity's policies say, and the resource's own."""
    mine = Verdict(True, "administrator") if principal.documents is None else judge(principal.documents, check)
    if check.action == "sts:AssumeRole":
        return trusted(where, check, principal, mine)
    if service == "sqs" and not mine.allowed and (policy := queue_policy(where, check.resource)):
        return judge([policy], check, Caller(frozenset({principal.arn, where.account, _root(where)})))
    return mine


def trusted(where: Account, check: Check, principal: Principal, mine: Verdict) -> Verdict:
    """A role that trusts the account leaves it to the caller's policies; one that trusts the caller asks nobody."""
    trust = trust_policy(where, check.resource)
    if trust is None:
        return Verdict(False, "there is no such role")
    names = frozenset({principal.arn, principal.role_arn} - {None})
    direct = judge([trust], check, Caller(names))
    if direct.allowed:
        return direct
    through = judge([trust], check, Caller(frozenset({_root(where), where.account})))
    return through if not through.allowed else mine


def trust_policy(where: Account, role_arn: str) -> Mapping[str, Any] | None:
    role = next((role for role in where.iam.roles.values() if role.arn == role_arn), None)
    role = None if role and iam_late.unknown_yet(role.create_date) else role
    return _document(role.assume_role_policy_document) if role else None


def may_be_taken_by(account: str, region: str, role_arn: str, service: str) -> bool:
    """Whether a role's trust policy lets an AWS service (ec2.amazonaws.com) take it."""
    where = Account(account, region)
    trust = trust_policy(where, role_arn)
    check = where.check("sts:AssumeRole", role_arn)
    return trust is not None and judge([trust], check, Caller(frozenset({service}))).allowed


def queue_policy(where: Account, queue_arn: str) -> Mapping[str, Any] | None:
    queue = sqs_backends[where.account][where.region].queues.get(queue_arn.rsplit(":", 1)[-1])
    return _document(queue.policy) if queue and queue.policy else None


def _root(where: Account) -> str:
    return where.arn("iam", "root", region="")


def _document(text: Any) -> Mapping[str, Any]:
    return json.loads(text) if isinstance(text, str) else text


def identify(account: str, service: str, key: str, token: str | None) -> Principal:
    """Who has this access key. Raises the service's refusal of an unknown or expired one."""
    if key == ADMINISTRATOR:
        return Principal(f"arn:aws:iam::{account}:user/administrator", None, None)
    iam = iam_backends[account]["aws"]
    for session in list(sts_backends[account]["aws"].assumed_roles):
        if session.access_key_id == key and session.session_token == token:
            if session.expiration.replace(tzinfo=None) <= clock.now():
                raise refusal(service, "expired", "The security token included in the request is expired")
            role = next((role for role in iam.roles.values() if role.arn == session.role_arn), None)
            boundary = boundary_of(iam, role) if role else None
            return Principal(session.arn, session.role_arn, iam_late.known(role, policies_of) if role else (), boundary)
    for user in list(iam.users.values()):
        if token is None and any(each.access_key_id == key for each in user.access_keys):
            return Principal(user.arn, None, iam_late.known(user, policies_of))
    raise refusal(service, "unknown", "The security token included in the request is invalid.")


def policies_of(holder: Any) -> tuple[Mapping[str, Any], ...]:
    """Inline ones and those attached; policies of groups aren't known here."""
    inline = [_document(text) for text in list(holder.policies.values())]
    return (*inline, *(each for policy in list(holder.managed_policies.values()) for each in _in_force(policy)))


def boundary_of(iam: Any, role: Any) -> tuple[Mapping[str, Any], ...] | None:
    """None: it has no boundary. One that is gone allows nothing."""
    if not role.permissions_boundary_arn:
        return None
    policy = iam.managed_policies.get(role.permissions_boundary_arn)
    return tuple(_in_force(policy)) if policy else ()


def _in_force(policy: Any) -> list[Mapping[str, Any]]:
    return [_document(version.document) for version in policy.versions if version.is_default]
