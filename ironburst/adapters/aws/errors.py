"""AWS's error codes, by what the caller does next: asked again soon (SLOWED, SAME), elsewhere or later (ELSEWHERE,
DEARER, QUOTA), later (`Refused`: all that isn't named here), not again (MALFORMED).

Decided on the code, never on the message. Where they come from, and when each is asked again: docs/adr/0088.
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
    PartialCredentialsError,
)
from botocore.parsers import ResponseParserError

from ironburst.ports import (
    CloudError,
    InsufficientCapacity,
    Malformed,
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
    "InsufficientReservedInstancesCapacity",
    "InsufficientAddressCapacity",
    "IncompatibleHostRequirements",
    "UnavailableHostRequirements",
    "ReservationCapacityExceeded",
    "InvalidCapacityReservationState.PendingActivation",  # a capacity block that has not begun
    "InvalidCapacityReservationState.Unavailable",
    "Unsupported",
    "InvalidFleetConfiguration",
    "InsufficientFreeAddressesInSubnet",
    "InsufficientVolumeCapacity",
    "VolumeTypeNotAvailableInZone",
}
DEARER = {"SpotMaxPriceTooLow"}  # than what we pay
# the account's; beside them whatever ends in LimitExceeded
QUOTA = {
    "MaxSpotInstanceCountExceeded",
    "MaxFleetCountExceeded",
    "MaxSpotFleetRequestCountExceeded",
    "MaxScheduledInstanceCapacityExceeded",
    "ResourceCountExceeded",
    "RequestResourceCountExceeded",
}
SLOWED = {
    "RequestLimitExceeded",
    "BandwidthLimitExceeded",
    "LimitExceededException",
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "EC2ThrottledException",
    "RequestThrottled",
    "RequestThrottledException",
    "KmsThrottled",
    "TooManyRequestsException",
    "TooManyUpdates",
    "SlowDown",
    "OverLimit",  # SQS: too many messages were received and not deleted; half a minute later they are shown again
}
# the provider's own fault, or another call is in the way: the instances may exist
SAME = {
    "InternalError",
    "InternalFailure",
    "InternalServerError",
    "ServerInternal",
    "ServiceFailure",
    "ServiceUnavailable",
    "Unavailable",
    "RetryableError",
    "RequestTimeout",
    "RequestTimeoutException",
    "PriorRequestNotComplete",
    "ConcurrentTagAccess",
    "IDPCommunicationError",
}
MISMATCH = {"IdempotentParameterMismatch", "IdempotentInstanceTerminated"}
# No time cures these. An id that isn't found is none of them (what was made a moment ago may not be known everywhere),
# nor is InvalidParameterValue, EC2's answer to an instance profile that is new.
MALFORMED = {
    "ParamValidationError",  # botocore's own: nothing was sent
    "ClientInvalidParameterValue",
    "DryRunOperation",
    "InvalidAction",
    "InvalidBlockDeviceMapping",
    "InvalidCharacter",
    "InvalidClientToken",
    "InvalidParameter",
    "InvalidParameterCombination",
    "InvalidParameterDependency",
    "InvalidQueryParameter",
    "InvalidTagKey.Malformed",
    "MalformedQueryString",
    "MissingAction",
    "MissingInput",
    "MissingParameter",
    "NoSuchVersion",
    "UnknownParameter",
    "UnknownVolumeType",
    "UnsupportedProtocol",
    "ValidationError",
    "InvalidAMIID.Malformed",
    "InvalidCapacityReservationId.Malformed",
    "InvalidGroupId.Malformed",
    "InvalidIamInstanceProfileArn.Malformed",
    "InvalidInstanceID.Malformed",
    "InvalidLaunchTemplateId.Malformed",
    "InvalidLaunchTemplateName.MalformedException",
    "InvalidPlacementGroupId.Malformed",
    "InvalidSecurityGroupId.Malformed",
    "InvalidSubnetID.Malformed",
}


raised = (ClientError, BotoCoreError, ResponseParserError)  # the last one by an answer of something in between


def call(method: Callable[..., Any], **parameters: Any) -> Any:
    """Call a method of a boto3 client; its answer. Raises the port's CloudErrors."""
    try:
        return method(**parameters)
    except raised as error:
        raise of(error, "".join(part.capitalize() for part in method.__name__.split("_"))) from None


def of(error: Exception, what: str) -> CloudError:
    """The port's error for one of botocore's. `what` names the call in the text."""
    if isinstance(error, ClientError):
        code = error.response.get("Error", {}).get("Code", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        message = _of_organization(error.response.get("Error", {}).get("Message", ""))
        return by_code(code, status, f"{what}: {code or f'HTTP {status}'}: {message}".rstrip(": "))
    if isinstance(error, NoCredentialsError | PartialCredentialsError | ParamValidationError):
        return by_code(type(error).__name__, 0, f"{what}: {error}")
    if isinstance(error, EndpointConnectionError):
        # never reached, but a proxy in between may have been: unknown is the safe side
        return OutcomeUnknown(f"{what}: {error}")
    if isinstance(error, BotoCoreError | ResponseParserError):
        return OutcomeUnknown(f"{what}: no answer ({error})")
    raise error


def _of_organization(message: str) -> str:
    """What an organization's policy refuses no right of ours can allow: what to do instead, not what was encoded."""
    if "service control policy" not in message:
        return message
    said = message.partition(" Encoded authorization failure message: ")[0].rstrip(".")
    return f"{said}: if that policy asks for tags, declare them under cloud.tags, run `pulumi up` and publish"


def by_code(code: str, status: int, text: str) -> CloudError:
    """The port's error for AWS's code and the HTTP status of its answer."""
    code = code.removeprefix("Client.").removeprefix("Server.")  # as EC2 writes it elsewhere
    kinds = (
        (ELSEWHERE, InsufficientCapacity),
        (DEARER, TooExpensive),
        (QUOTA, QuotaReached),
        (SLOWED, Throttled),
        (SAME, OutcomeUnknown),
        (MISMATCH, TokenMismatch),
        (MALFORMED, Malformed),
    )
    for codes, kind in kinds:
        if code in codes:
            return kind(text, code)
    if code.endswith("LimitExceeded"):
        return QuotaReached(text, code)
    if status == 429:
        return Throttled(text, code)
    return OutcomeUnknown(text, code) if status >= 500 else Refused(text, code)


# codes of EC2 that say less than they know: code -> what to look at
MEANT = {
    "Client.InternalError": "look at the KMS key of its volumes, whom its policy and its grants let use it "
    "(`ironburst doctor` does)",
    "Client.VolumeLimitExceeded": "the account's quota of EBS storage is used up (`ironburst doctor` shows it)",
}


def meant(code: str) -> str:
    """Why an instance ended, with what EC2 doesn't say of it."""
    return f"{code}: {MEANT[code]}" if code in MEANT else code
