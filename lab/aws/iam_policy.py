"""What an IAM policy says of a call. Pure: policy documents and the call's context in, a verdict out.

What IAM would take and this can't judge (a NotAction, an unknown operator, a policy variable) is NotJudged, never a
silent yes: the lab refuses rather than pretends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Context = Mapping[str, list[str]]  # condition key (in lower case) -> its values; a key that isn't there doesn't match
ELEMENTS = {"Sid", "Effect", "Action", "Resource", "Condition", "Principal"}


class NotJudged(Exception):
    """A policy uses what this evaluator doesn't implement; one sentence."""


@dataclass(frozen=True)
class Check:
    """One question to IAM: an action on one resource, with the condition keys that AWS has for exactly these two."""

    action: str  # ec2:RunInstances
    resource: str  # an ARN; "*" where the action knows no resource
    context: Context = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """Whether it is allowed, and the statement (or the lack of one) that says so."""

    allowed: bool
    why: str


@dataclass(frozen=True)
class Caller:
    """Who a resource's own policy sees: an ARN of a user or role and its account, or an AWS service."""

    names: frozenset[str]


def judge(documents: Iterable[Mapping[str, Any]], check: Check, caller: Caller | None = None) -> Verdict:
    """An explicit deny wins, then any allow; else no. `caller` None: policies of an identity, without a Principal."""
    allowed = ""
    for document in documents:
        for statement in listed(document.get("Statement")):
            if not applies(statement, check, caller):
                continue
            name = statement.get("Sid") or f"{statement['Effect']} {', '.join(listed(statement['Action']))}"
            if statement["Effect"] == "Deny":
                return Verdict(False, f"explicit deny: {name}")
            allowed = allowed or name
    return Verdict(True, allowed) if allowed else Verdict(False, f"no policy allows {check.action}")


def applies(statement: Mapping[str, Any], check: Check, caller: Caller | None) -> bool:
    """Whether action, resource, principal and every condition of a statement fit."""
    if unknown := set(statement) - ELEMENTS:
        raise NotJudged(f"the lab's IAM knows no {', '.join(sorted(unknown))} in a statement")
    if (caller is None) == ("Principal" in statement):
        raise NotJudged("a policy of an identity has no Principal, one of a resource or role needs it")
    return (
        any(like(check.action.lower(), action.lower()) for action in listed(statement["Action"]))
        # a role's trust policy has no Resource: it is the role
        and ("Resource" not in statement or any(like(check.resource, arn) for arn in listed(statement["Resource"])))
        and (caller is None or _is_named(statement["Principal"], caller))
        and all(
            holds(operator, key, listed(wanted), check.context)
            for operator, keys in statement.get("Condition", {}).items()
            for key, wanted in keys.items()
        )
    )


def holds(operator: str, key: str, wanted: list[Any], context: Context) -> bool:
    """One line of a Condition. More keys and operators are all needed, of more values one."""
    if any("${" in str(value) for value in wanted):
        raise NotJudged(f"the lab's IAM knows no policy variables: {wanted}")
    quantifier, _, plain = operator.rpartition(":")
    if_exists = plain.endswith("IfExists")
    plain = plain.removesuffix("IfExists")
    found = context.get(key.lower())
    if plain == "Null":
        return any((found is None) == (str(value).lower() == "true") for value in wanted)
    if plain not in OPERATORS or quantifier not in ("", "ForAllValues", "ForAnyValue"):
        raise NotJudged(f"the lab's IAM knows no operator {operator}")
    test, negated = OPERATORS[plain]
    if found is None:
        return if_exists or negated or quantifier == "ForAllValues"
    if not quantifier and len(found) > 1:
        raise NotJudged(f"{key} has several values: it needs ForAllValues or ForAnyValue")

    def fits(value: str) -> bool:
        return any(test(value, str(one)) for one in wanted) != negated

    return all(map(fits, found)) if quantifier == "ForAllValues" else any(map(fits, found))


def keys_of(documents: Iterable[Mapping[str, Any]]) -> set[str]:
    """The condition keys (in lower case) that policies look at."""
    statements = [one for document in documents for one in listed(document.get("Statement"))]
    return {key.lower() for one in statements for keys in one.get("Condition", {}).values() for key in keys}


def like(text: str, pattern: str) -> bool:
    """IAM's wildcards: * and ?, nothing else; upper and lower case differ."""
    return re.fullmatch("".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in pattern), text) is not None


def arn_like(text: str, pattern: str) -> bool:
    """Colon by colon: a * never reaches over the first five."""
    parts, patterns = text.split(":", 5), pattern.split(":", 5)
    return len(parts) == len(patterns) and all(like(*both) for both in zip(parts, patterns, strict=True))


def _number(compare: Callable[[float, float], bool]) -> Callable[[str, str], bool]:
    return lambda value, wanted: compare(float(value), float(wanted))


Test = Callable[[str, str], bool]
_POSITIVE: dict[str, Test] = {
    "StringEquals": str.__eq__,
    "StringEqualsIgnoreCase": lambda value, wanted: value.lower() == wanted.lower(),
    "StringLike": like,
    "ArnEquals": arn_like,  # AWS: the same as ArnLike
    "ArnLike": arn_like,
    "Bool": lambda value, wanted: value.lower() == wanted.lower(),
    "NumericEquals": _number(float.__eq__),
    "NumericLessThan": _number(float.__lt__),
    "NumericLessThanEquals": _number(float.__le__),
    "NumericGreaterThan": _number(float.__gt__),
    "NumericGreaterThanEquals": _number(float.__ge__),
}
_NEGATED = ("StringEquals", "StringEqualsIgnoreCase", "StringLike", "ArnEquals", "ArnLike", "NumericEquals")
OPERATORS: dict[str, tuple[Test, bool]] = {name: (test, False) for name, test in _POSITIVE.items()} | {
    re.sub("(Equals|Like)", r"Not\1", name, count=1): (_POSITIVE[name], True) for name in _NEGATED
}


def _is_named(principal: Any, caller: Caller) -> bool:
    if principal == "*":
        return True
    if not isinstance(principal, Mapping):
        raise NotJudged(f"a Principal is * or a mapping, not {principal!r}")
    named = [str(name) for names in principal.values() for name in listed(names)]
    return any(name == "*" or name in caller.names for name in named)


def listed(value: Any) -> list[Any]:
    """IAM takes one of a thing without a list."""
    return value if isinstance(value, list) else [] if value is None else [value]
