"""Azure's error codes, by what the caller does next: asked again soon (SLOWED, SAME), elsewhere or later (ELSEWHERE,
QUOTA), later (`Refused`: all that isn't named here), not again (MALFORMED).

One code means several things, so its text is judged, too: OperationNotAllowed is three quotas, "not now" or "never";
and SkuNotAvailable is no capacity or a size that isn't offered, which only the catalogue of sizes tells (`sizes`).
Causes are nested: in `details`, and in the status of a machine. Where they come from: docs/adr/0129.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError

from ironburst.adapters.answers import shortened
from ironburst.ports import (
    CloudError,
    InsufficientCapacity,
    LaunchFailed,
    Malformed,
    NeverUp,
    OutcomeUnknown,
    QuotaReached,
    Refused,
    Throttled,
    TooExpensive,
)

# nothing was started; another zone or size may have some
ELSEWHERE = {
    "AllocationFailed",
    "ZonalAllocationFailed",
    "OverconstrainedAllocationRequest",
    "OverconstrainedZonalAllocationRequest",
    "SkuNotAvailable",
    "SubnetIsFull",
}
EXPENSIVE = {"SpotPriceGreaterThanProvidedMaxPrice"}
# the subscription's; beside them whatever says Quota, and texts as below
QUOTA = {"PublicIPCountLimitReached"}
SLOWED = {
    "OperationThrottled",
    "SubscriptionRequestsThrottled",
    "TooManyRequests",
    "TooManyVMRedeploymentRequests",
}
# Azure's own fault, or something else is in the way; beside them whatever ends with InternalError
SAME = {
    "AnotherOperationInProgress",
    "AttachDiskWhileBeingDetached",
    "DeploymentActiveAndUneditable",
    "GatewayTimeout",
    "InternalExecutionError",
    "InternalOperationError",
    "InternalServerError",
    "NetworkingInternalOperationError",
    "OperationPreempted",
    "RequestTimeout",
    "ResourceGroupBeingDeleted",
    "ResourceUpdateBlockedOnPlatformUpdate",
    "RetryableError",
    "ServerTimeout",
    "ServiceUnavailable",
    "StorageAccountTooBusy",
}
# No time cures these. InvalidParameter is none of them: Azure says so of a size that a region hasn't (yet), too.
MALFORMED = {
    "AzureSpotIsNotSupportedForThisAPIVersion",
    "AzureSpotIsNotSupportedForThisVMSize",
    "AzureSpotVMNotSupportedInAvailabilitySet",
    "EvictionPolicyCanBeSetOnlyOnAzureSpotVirtualMachines",
    "InvalidRequestContent",
    "InvalidRequestFormat",
    "InvalidResourceNamespace",
    "InvalidResourceType",
    "LinkedInvalidPropertyId",
    "LocationRequired",
    "MaxPriceIsSupportedOnlyForAzureSpotVirtualMachines",
    "MaxPriceValueInvalid",
    "MismatchingResourceSegments",
    "ReservedResourceName",
}
# say that something failed, never what
NEUTRAL = {
    "DeploymentFailed",
    "InvalidTemplateDeployment",
    "MultipleErrorsOccurred",
    "ResourceDeploymentFailure",
    "ResourceOperationFailure",
}
MISSING = {"ResourceNotFound", "ResourceGroupNotFound", "NotFound"}
THERE = {"PreconditionFailed", "ConditionNotMet", "PropertyChangeNotAllowed"}
"""of a machine that was to be made and is there already"""

# as karpenter-provider-azure does: "... exceeding approved Total Regional Cores quota", "... Family Cores quota"
_QUOTA_TEXT = re.compile(r"exceeding (?:approved|quota)|\bquota\b|Regional Cores|LowPriorityCores", re.IGNORECASE)
_NOT_NOW = re.compile(
    r"another operation is in progress|ongoing operation|marked for deletion|retry later", re.IGNORECASE
)
# of a placement that is bound to one cluster, such as a scale set's: OperationNotAllowed and InvalidParameter
_FULL_TEXT = re.compile(r"existing allocation unit|not available in the cluster where", re.IGNORECASE)
# of an image or a size that doesn't go with the request, mostly as BadRequest
_MALFORMED_TEXT = re.compile(
    r"cannot boot Hypervisor Generation|not supported for creation of VMs|requires Plan information in the request"
)
NEVER_UP = ("OSProvisioningClientError", "OSProvisioningTimedOut")
"""of a machine that ran, and didn't report that it was up"""
_WHICH = {
    "LowPriorityCores": "spot cores",
    "Total Regional": "all cores of the region",
    "Family": "cores of the family",
}

# its pages write some of them in two ways: OverconstrainedAllocationRequest, OverConstrainedAllocationRequest
_BY_CODE: dict[str, type[CloudError]] = {
    code.lower(): kind
    for kind, codes in (
        (TooExpensive, EXPENSIVE),
        (InsufficientCapacity, ELSEWHERE),
        (Throttled, SLOWED),
        (OutcomeUnknown, SAME),
        (Malformed, MALFORMED),
    )
    for code in codes
}
# of several causes the one that lasts longest: as long as it is there, the others don't matter
_GRAVEST = (Malformed, QuotaReached, TooExpensive, InsufficientCapacity, Refused, Throttled, OutcomeUnknown)

# a client that reads an answer of another shape fails in its own ways
raised = (AzureError, ValueError, TypeError, KeyError, AttributeError, IndexError)


class ErrorInfo(NamedTuple):
    """One error, as Azure says it."""

    code: str
    text: str = ""


def of(error: Exception, what: str) -> CloudError:
    """The port's error for a call that raised. `what` names the call in the text."""
    status, causes = _answer(error)
    if isinstance(error, ClientAuthenticationError) and status is None:
        why = str(error).partition("\n")[0].rstrip(".")  # then a line for each way that was tried
        hint = "sign in (`az login`), or set what azure-identity reads (AZURE_CLIENT_ID, ...)"
        return Refused(f"{what}: {why}: {hint}", type(error).__name__)
    if status is None or status < 400:
        return OutcomeUnknown(f"{what}: no answer ({type(error).__name__}: {error})")
    if causes:
        return gravest(causes, what, status)
    # not Azure's own, but of something in between: nothing is concluded from what it doesn't find
    text = f"{what}: HTTP {status} without Azure's words"
    if status == 412:
        return Refused(text, "PreconditionFailed")
    if status == 429:
        return Throttled(text)
    return OutcomeUnknown(text) if status >= 500 or status in (404, 408, 410) else Refused(text)


def retry_after_s(error: Exception) -> float:
    """For how long Azure asks not to be asked."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return max(0.0, float(headers.get("Retry-After", 0.0)))
    except ValueError:
        return 0.0


def _answer(error: Exception) -> tuple[int | None, list[ErrorInfo]]:
    response: Any = error.response if isinstance(error, HttpResponseError) else None
    if response is None:
        return None, []
    try:
        return int(response.status_code), list(causes(json.loads(response.text())["error"]))
    except (ValueError, KeyError, TypeError, AttributeError, AzureError):
        return int(response.status_code), []


def causes(said: Mapping[str, Any]) -> Iterator[ErrorInfo]:
    """Of an error object {code, message, details?}: itself and what it is nested around. Raises KeyError for another
    shape.
    """
    yield ErrorInfo(str(said["code"]), str(said.get("message") or ""))
    for inner in said.get("details") or []:
        if isinstance(inner, Mapping) and inner.get("code"):
            yield from causes(inner)


def is_missing(error: CloudError, name: str) -> bool:
    """Whether an error says that the resource of this name isn't there, or its group; and not its subscription, its
    provider or the way to it.
    """
    return error.code in MISSING and name.lower() in str(error).lower()


def gravest(said: Iterable[ErrorInfo], what: str, status: int = 0) -> CloudError:
    """The port's error for several causes. `status`: of the HTTP answer that they came in; 0: of what had begun."""
    every = list(said)
    known = [cause for cause in every if cause.code not in NEUTRAL] or every
    kinds = {cause: _kind(cause, status) for cause in known}
    kind = next(kind for kind in _GRAVEST if kind in kinds.values())
    first = next(cause for cause in known if kinds[cause] is kind)
    text = "; ".join(dict.fromkeys(f"{cause.code}: {shortened(cause.text)}".rstrip(": ") for cause in known))
    which = next((f" ({text})" for key, text in _WHICH.items() if key in first.text), "")
    return kind(f"{what}: {text}{which if kind is QuotaReached else ''}", first.code)


def gravest_of(found: Iterable[CloudError]) -> CloudError:
    """Of several errors the one that lasts longest."""
    every = list(found)
    return next(error for kind in (*_GRAVEST, CloudError) for error in every if isinstance(error, kind))


def _kind(cause: ErrorInfo, status: int) -> type[CloudError]:
    code, text = cause
    if _MALFORMED_TEXT.search(text):
        return Malformed
    if kind := _BY_CODE.get(code.lower()):
        return kind
    if code in ("OperationNotAllowed", "InvalidParameter") and _FULL_TEXT.search(text):
        return InsufficientCapacity
    if "Quota" in code or code in QUOTA or (code == "OperationNotAllowed" and _QUOTA_TEXT.search(text)):
        return QuotaReached
    if code == "OperationNotAllowed" and _NOT_NOW.search(text):
        return OutcomeUnknown
    if status == 429:
        return Throttled
    return OutcomeUnknown if status >= 500 or status == 408 or code.endswith("InternalError") else Refused


def failed(error: CloudError) -> CloudError:
    """The same of a launch that had begun and of which nothing is left: it isn't repeated, whatever the cause."""
    if error.code in NEVER_UP:
        return NeverUp(str(error), error.code)
    if isinstance(error, OutcomeUnknown) or type(error) is Refused:
        return LaunchFailed(str(error), error.code)
    return error
