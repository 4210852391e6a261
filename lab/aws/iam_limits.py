"""IAM's quotas of sizes and lengths, which moto lets pass (each as in a new account: none of them raised)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.iam.exceptions import LimitExceededException, ValidationError
from moto.iam.models import IAMBackend

INLINE, MANAGED, TRUST = 10_240, 6_144, 2_048
"""characters of a role's inline policies together, of a managed policy, of a trust policy"""
ROLE_NAME, ATTACHED = 64, 10


def counted(document: str) -> int:
    """IAM counts no white space."""
    return sum(not character.isspace() for character in document)


def _within(size: int, quota: str, most: int) -> None:
    if size > most:
        raise LimitExceededException(f"Cannot exceed quota for {quota}: {most}")


def patch(replace: Callable[[Any, str, Any], None]) -> None:
    """Ask before moto does it."""

    def before(method: str, ask: Callable[..., None]) -> None:
        original = getattr(IAMBackend, method)

        def call(backend: Any, *args: Any, **kwargs: Any) -> Any:
            named = original.__code__.co_varnames[1 : original.__code__.co_argcount]
            ask(backend, dict(zip(named, args, strict=False)) | kwargs)
            return original(backend, *args, **kwargs)

        replace(IAMBackend, method, call)

    before("create_role", _create_role)
    before("update_assume_role_policy", lambda _backend, p: _trust(p["policy_document"]))
    before("put_role_policy", _put_role_policy)
    before("attach_role_policy", _attach_role_policy)
    for method in ("create_policy", "create_policy_version"):
        before(method, lambda _backend, p: _within(counted(p["policy_document"]), "PolicySize", MANAGED))


def _create_role(_backend: Any, p: dict[str, Any]) -> None:
    if len(p["role_name"]) > ROLE_NAME:
        raise ValidationError(
            f"1 validation error detected: Value '{p['role_name']}' at 'roleName' failed to satisfy constraint: "
            f"Member must have length less than or equal to {ROLE_NAME}"
        )
    _trust(p["assume_role_policy_document"])


def _trust(document: str) -> None:
    _within(counted(document), "ACLSizePerRole", TRUST)


def _put_role_policy(backend: Any, p: dict[str, Any]) -> None:
    inline = {**backend.get_role(p["role_name"]).policies, p["policy_name"]: p["policy_json"]}
    if sum(map(counted, inline.values())) > INLINE:
        raise LimitExceededException(f"Maximum policy size of {INLINE} bytes exceeded for role {p['role_name']}")


def _attach_role_policy(backend: Any, p: dict[str, Any]) -> None:
    attached = {*backend.get_role(p["role_name"]).managed_policies, p["policy_arn"]}
    _within(len(attached), "PoliciesPerRole", ATTACHED)
