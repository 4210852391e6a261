"""Compute Engine's error codes, by what the caller does next: asked again soon (SLOWED, SAME), elsewhere or later
(ELSEWHERE, QUOTA), later (`Refused`: all that isn't named here), not again (MALFORMED).

A code comes in two spellings: as `reason` of an HTTP error (quotaExceeded) and as `code` of a finished operation
(QUOTA_EXCEEDED). An operation has a list of them, and more in the operations on its single instances; all are judged
together. Where they come from: docs/adr/0121.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from google.auth.exceptions import GoogleAuthError, TransportError
from googleapiclient.errors import Error as ApiError
from googleapiclient.errors import HttpError
from httplib2 import HttpLib2Error

from ironburst.adapters.answers import shortened
from ironburst.ports import (
    CloudError,
    InsufficientCapacity,
    LaunchFailed,
    Malformed,
    OutcomeUnknown,
    QuotaReached,
    Refused,
    Throttled,
)

# nothing was started; another zone or type may have some
ELSEWHERE = {
    "ZONE_RESOURCE_POOL_EXHAUSTED",
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
    "REGION_RESOURCE_POOL_EXHAUSTED",
    "RESOURCE_POOL_EXHAUSTED",
    "INSUFFICIENT_CAPACITY",
    "IP_SPACE_EXHAUSTED",
    "IP_SPACE_EXHAUSTED_WITH_DETAILS",
    # a spot instance that was taken back while it was made
    "PREEMPTED",
    "UNSUPPORTED_OPERATION",
}
# the project's; beside them whatever says QUOTA
QUOTA = {
    "CPUS_PER_VM_FAMILY",
    "DAILY_LIMIT_EXCEEDED",
    "DAILY_LIMIT_EXCEEDED402",
    "DAILY_LIMIT_EXCEEDED_UNREG",
    "GPUS_ALL_REGIONS",
    "RESOURCE_EXHAUSTED",
    "VARIABLE_TERM_EXPIRED_DAILY_EXCEEDED",
}
SLOWED = {
    "CONCURRENT_LIMIT_EXCEEDED",
    "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED",  # no quota that anybody raises: too many operations at once
    "LIMIT_EXCEEDED",
    "RATE_LIMIT_EXCEEDED",
    "RATE_LIMIT_EXCEEDED_UNREG",
    "RESOURCE_OPERATION_RATE_EXCEEDED",
    "SERVING_LIMIT_EXCEEDED",
    "USER_RATE_LIMIT_EXCEEDED",
    "USER_RATE_LIMIT_EXCEEDED_UNREG",
    "VARIABLE_TERM_LIMIT_EXCEEDED",
}
# the provider's own fault, or another operation is in the way
SAME = {
    "ABORTED",
    "BACKEND_ERROR",
    "BACKEND_NOT_CONNECTED",
    "CANCELLED",
    "DATA_LOSS",
    "DEADLINE_EXCEEDED",
    "INTERNAL",
    "INTERNAL_ERROR",
    "NOT_READY",
    "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
    "RESOURCE_NOT_READY",
    "SERVICE_UNAVAILABLE_FOR_LOCATION",
    "TIMEOUT",
    "UNAVAILABLE",
    "UNKNOWN",
}
# No time cures these. `invalid` is none of them: Compute Engine says so of a resource that isn't there (yet), too; and
# `required` of a 401 is a login.
MALFORMED = {"FIELD_SIZE_TOO_LARGE", "MISSING_REQUIRED_FIELD", "PARSE_ERROR", "REQUIRED"}
# says that not all could be made, never why
NEUTRAL = {"VM_MIN_COUNT_NOT_REACHED"}
# Texts that are judged, because what they say has no code of its own: a full reservation (as the Kubernetes autoscaler
# does), a spot instance that was taken back, and a disk or GPU that the machine type doesn't take
_ELSEWHERE_TEXT = re.compile(
    r"Specified reservation .* does not have available resources for the request|failed to start due to preemption"
)
_MALFORMED_TEXT = re.compile(r"not compatible for creating instance")

# of several causes the one that lasts longest: as long as it is there, the others don't matter
_GRAVEST = (Malformed, QuotaReached, InsufficientCapacity, Refused, Throttled, OutcomeUnknown)

raised = (ApiError, HttpLib2Error, GoogleAuthError, OSError)


class Cause(NamedTuple):
    """One error, as Compute Engine says it."""

    code: str
    text: str = ""


def canonical(code: str) -> str:
    """quotaExceeded as QUOTA_EXCEEDED."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", code).upper()


def of(error: Exception, what: str) -> CloudError:
    """The port's error for a call that raised. `what` names the call in the text."""
    if isinstance(error, HttpError):
        return _of_answer(error, what)
    if isinstance(error, GoogleAuthError) and not isinstance(error, TransportError):
        return Refused(f"{what}: {type(error).__name__}: {error}", type(error).__name__)
    return OutcomeUnknown(f"{what}: no answer ({type(error).__name__}: {error})")


def _of_answer(error: HttpError, what: str) -> CloudError:
    status = int(error.resp.status)
    causes, text = _causes(error.content)
    if causes is None:
        # not Compute Engine's own, but of something in between: nothing is concluded from what it doesn't find
        unknown = f"{what}: HTTP {status} without Compute Engine's words"
        return OutcomeUnknown(unknown) if status >= 500 or status in (404, 408, 410, 429) else Refused(unknown)
    if not causes:
        return _kind(Cause("", text), status)(f"{what}: HTTP {status}: {text}")
    return gravest(causes, what, status)


def _causes(content: bytes) -> tuple[list[Cause] | None, str]:
    """None: the answer isn't one of Compute Engine's errors."""
    try:
        said = json.loads(content)["error"]
        text = str(said.get("message", ""))
        # what stands before Compute Engine says it in `details` alone
        known = said.get("errors") or [each for each in said.get("details", []) if "reason" in each]
        return [Cause(str(each["reason"]), str(each.get("message", text))) for each in known], text
    except (ValueError, KeyError, TypeError, AttributeError):
        return None, ""


def is_missing(error: CloudError, kind: str) -> bool:
    """Whether an error says that a resource of this kind (instances) isn't there; and not its project, its zone or the
    way to it. The message names the resource by its path.
    """
    return error.code in ("notFound", "RESOURCE_NOT_FOUND") and f"/{kind}/" in str(error)


def gravest(causes: Iterable[Cause], what: str, status: int = 0) -> CloudError:
    """The port's error for several causes. `status`: of the HTTP answer that they came in; 0: of an operation."""
    known = [cause for cause in causes if canonical(cause.code) not in NEUTRAL] or list(causes)
    kinds = {cause: _kind(cause, status) for cause in known}
    kind = next(kind for kind in _GRAVEST if kind in kinds.values())
    first = next(cause for cause in known if kinds[cause] is kind)
    said = "; ".join(dict.fromkeys(f"{cause.code}: {shortened(cause.text)}".rstrip(": ") for cause in known))
    return kind(f"{what}: {said}", first.code)


def _kind(cause: Cause, status: int) -> type[CloudError]:
    code = canonical(cause.code)
    if _MALFORMED_TEXT.search(cause.text):
        return Malformed
    if code in ELSEWHERE or _ELSEWHERE_TEXT.search(cause.text):
        return InsufficientCapacity
    if code in SLOWED:
        return Throttled
    if "QUOTA" in code or code in QUOTA:
        return QuotaReached
    if code in SAME:
        return OutcomeUnknown
    if code in MALFORMED and status != 401:
        return Malformed
    if status == 429:
        return Throttled
    return OutcomeUnknown if status >= 500 else Refused


def of_operation(operations: Iterable[Mapping[str, Any]], what: str, *, spot: bool) -> CloudError:
    """Why a launch failed, of its operation and those on its instances. It is over, and what it had made was taken
    back: nothing of it is to be repeated, whatever the cause.
    """
    causes = [
        Cause(str(each.get("code", "")), "; ".join((str(each.get("message", "")), *_details(each))))
        for operation in operations
        for each in (operation.get("error") or {}).get("errors", [])
    ]
    error = gravest(causes or [Cause("", "no reason was given")], what)
    taken_back = spot and error.code == "RESOURCE_NOT_FOUND"  # while it was made, as UNSUPPORTED_OPERATION
    if taken_back:
        return InsufficientCapacity(str(error), error.code)
    if isinstance(error, OutcomeUnknown) or type(error) is Refused:
        return LaunchFailed(str(error), error.code)
    return error


def _details(error: Mapping[str, Any]) -> Iterator[str]:
    """What an operation's error says beside its message: which quota it is, and which zones have such machines."""
    for each in error.get("errorDetails") or []:
        if quota := each.get("quotaInfo"):
            of = ", ".join(f"{key} {value}" for key, value in sorted((quota.get("dimensions") or {}).items()))
            yield f"quota {quota.get('metricName', '')} ({quota.get('limitName', '')}; {of}): {quota.get('limit', '?')}"
        if zones := ((each.get("errorInfo") or {}).get("metadatas") or {}).get("zonesAvailable"):
            yield f"there is capacity in {zones}"
