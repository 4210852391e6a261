"""EC2's error codes, by what the caller does next.
Decided on the code, never on the message; an unknown refusal is `Refused`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
)

from ironburst.ports import (
    CloudError,
    InsufficientCapacity,
    OutcomeUnknown,
    QuotaReached,
    Refused,
    Throttled,
    TokenMismatch,
    TooExpensive,
)

# nothing was started; another zone, market or pool may have some
ELSEWHERE = {
    "InsufficientInstanceCapacity",
    "UnfulfillableCapacity",
    "InsufficientCapacity",
    "InsufficientHostCapacity",
    "InsufficientCapacityOnHost",
    "InsufficientReservedInstanceCapacity",
    "ReservationCapacityExceeded",
    "InvalidCapacityReservationState.PendingActivation",  # a capacity block that has not begun
    "InvalidCapacityReservationState.Unavailable",
    "Unsupported",
    "InvalidFleetConfiguration",
    "InsufficientFreeAddressesInSubnet",
    "InsufficientVolumeCapacity",
}
DEARER = {"SpotMaxPriceTooLow"}  # than what we pay
QUOTA = {
    "MaxSpotInstanceCountExceeded",
    "VcpuLimitExceeded",
    "InstanceLimitExceeded",
    "VolumeLimitExceeded",
    "MaxIOPSLimitExceeded",
    "MaxFleetCountExceeded",
}
SLOWED = {"RequestLimitExceeded", "Throttling", "ThrottlingException", "EC2ThrottledException"}
# the provider's own fault: the instances may exist
SAME = {"InternalError", "InternalFailure", "Unavailable", "ServiceUnavailable"}
MISMATCH = {"IdempotentParameterMismatch"}


def call(method: Callable[..., Any], **parameters: Any) -> Any:
    """Call a method of a boto3 client; its answer. Raises the port's CloudErrors."""
    try:
        return method(**parameters)
    except (ClientError, BotoCoreError) as error:
        raise of(error, "".join(part.capitalize() for part in method.__name__.split("_"))) from None


def of(error: Exception, what: str) -> CloudError:
    """The port's error for one of botocore's. `what` names the call in the text."""
    if isinstance(error, ClientError):
        code = error.response.get("Error", {}).get("Code", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        message = error.response.get("Error", {}).get("Message", "")
        return by_code(code, status, f"{what}: {code or f'HTTP {status}'}: {message}".rstrip(": "))
    if isinstance(error, NoCredentialsError | ParamValidationError):
        return Refused(f"{what}: {error}", type(error).__name__)
    if isinstance(error, EndpointConnectionError):
        # never reached, but a proxy in between may have been: unknown is the safe side
        return OutcomeUnknown(f"{what}: {error}")
    if isinstance(error, BotoCoreError):
        return OutcomeUnknown(f"{what}: no answer ({error})")
    raise error


def by_code(code: str, status: int, text: str) -> CloudError:
    """The port's error for EC2's code and the HTTP status of its answer."""
    kinds = (
        (ELSEWHERE, InsufficientCapacity),
        (DEARER, TooExpensive),
        (QUOTA, QuotaReached),
        (SLOWED, Throttled),
        (SAME, OutcomeUnknown),
        (MISMATCH, TokenMismatch),
    )
    for codes, kind in kinds:
        if code in codes:
            return kind(text, code)
    return OutcomeUnknown(text, code) if status >= 500 else Refused(text, code)
