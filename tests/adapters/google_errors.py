"""Error codes of Compute Engine and what a launch that gets them is to do next.

From Google's documentation, `PAGES`, and the lists that its Python package has (google.rpc.Code,
google.api.ErrorReason): all of their codes. And what slurm-gcp, SkyPilot, karpenter-provider-gcp, cloudbreak and the
Kubernetes autoscaler handle, as of 2026. (code, HTTP status of the answer that it comes in; 0: of an operation)
"""

import re

from google.api import error_reason_pb2
from google.rpc import code_pb2

from ironburst.ports import (
    InsufficientCapacity,
    Malformed,
    OutcomeUnknown,
    QuotaReached,
    Refused,
    Throttled,
)

CLASSES = {
    InsufficientCapacity: [
        ("ZONE_RESOURCE_POOL_EXHAUSTED", 0),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", 0),
        ("REGION_RESOURCE_POOL_EXHAUSTED", 0),
        ("RESOURCE_POOL_EXHAUSTED", 0),
        ("ZONE_RESOURCE_POOL_EXHAUSTED", 503),
        ("RESOURCE_POOL_EXHAUSTED", 429),
        ("resourcePoolExhausted", 503),
        ("INSUFFICIENT_CAPACITY", 0),
        ("insufficientCapacity", 503),
        ("IP_SPACE_EXHAUSTED", 0),
        ("IP_SPACE_EXHAUSTED_WITH_DETAILS", 0),
        ("UNSUPPORTED_OPERATION", 0),
        ("PREEMPTED", 0),
    ],
    QuotaReached: [
        ("QUOTA_EXCEEDED", 0),
        ("quotaExceeded", 403),
        ("CPUS_PER_VM_FAMILY", 0),
        ("GPUS_ALL_REGIONS", 0),
        ("RESOURCE_QUOTA_EXCEEDED", 0),
        ("REGION_QUOTA_SOMETHING_NEW", 0),
        ("EMULATOR_QUOTA_EXCEEDED", 403),
        ("RESOURCE_EXHAUSTED", 0),
        ("QUOTA_EXCEEDED", 429),
        ("dailyLimitExceeded", 403),
        ("dailyLimitExceeded402", 402),
        ("dailyLimitExceededUnreg", 403),
        ("quotaExceeded402", 402),
        ("variableTermExpiredDailyExceeded", 403),
    ],
    Throttled: [
        ("rateLimitExceeded", 403),
        ("userRateLimitExceeded", 403),
        ("RATE_LIMIT_EXCEEDED", 403),
        ("RESOURCE_OPERATION_RATE_EXCEEDED", 403),
        ("somethingNew", 429),
        ("CONCURRENT_OPERATIONS_QUOTA_EXCEEDED", 403),
        ("concurrentLimitExceeded", 403),
        ("limitExceeded", 403),
        ("rateLimitExceeded", 429),
        ("rateLimitExceededUnreg", 403),
        ("servingLimitExceeded", 403),
        ("userRateLimitExceededUnreg", 403),
        ("variableTermLimitExceeded", 403),
    ],
    OutcomeUnknown: [
        ("ABORTED", 409),
        ("CANCELLED", 499),
        ("DATA_LOSS", 500),
        ("DEADLINE_EXCEEDED", 504),
        ("INTERNAL", 500),
        ("UNAVAILABLE", 503),
        ("UNKNOWN", 500),
        ("backendNotConnected", 503),
        ("notImplemented", 501),
        ("notReady", 503),
        ("unsupportedMethod", 501),
        ("backendError", 503),
        ("internalError", 500),
        ("SERVICE_UNAVAILABLE_FOR_LOCATION", 500),
        ("RESOURCE_NOT_READY", 400),
        ("resourceNotReady", 400),
        ("resourceInUseByAnotherResource", 400),
        ("TIMEOUT", 400),
        ("somethingNew", 500),
        ("somethingNew", 502),
    ],
    Malformed: [
        ("required", 400),
        ("parseError", 400),
        ("FIELD_SIZE_TOO_LARGE", 400),
        ("MISSING_REQUIRED_FIELD", 400),
    ],
    Refused: [
        ("IAM_PERMISSION_DENIED", 403),
        ("forbidden", 403),
        ("PERMISSIONS_ERROR", 403),
        ("CONDITION_NOT_MET", 0),
        ("conditionNotMet", 412),
        ("invalid", 400),
        ("INVALID_FIELD_VALUE", 400),
        ("PROJECT_NOT_FOUND", 404),
        ("NETWORK_NOT_FOUND", 404),
        ("VPC_NOT_FOUND", 0),
        ("SUBNET_NOT_FOUND_FOR_VPC", 0),
        ("notFound", 404),
        ("RESOURCE_NOT_FOUND", 0),
        ("alreadyExists", 409),
        ("RESOURCE_ALREADY_EXISTS", 0),
        ("authError", 401),
        ("accessNotConfigured", 403),
        ("somethingNew", 400),
    ],
}
_REFUSED = {
    400: """
        FAILED_PRECONDITION INVALID_ARGUMENT OUT_OF_RANGE badBinaryDomainRequest badContent badLockedDomainRequest
        badRequest corsRequestWithXOrigin endpointConstraintMismatch invalidAltValue invalidHeader invalidParameter
        invalidQuery keyExpired keyInvalid lockedDomainCreationFailure notDownload notUpload tooManyParts unknownApi
        unsupportedMediaProtocol unsupportedOutputFormat wrongUrlForUpload
    """,
    401: "UNAUTHENTICATED expired lockedDomainExpired required unauthorized",
    402: "user402",
    403: """
        PERMISSION_DENIED accountDeleted accountDisabled accountUnverified downloadServiceForbidden insufficientAudience
        insufficientAuthorizedParty insufficientPermissions lockedDomainForbidden responseTooLarge sslRequired
        unknownAuth
    """,
    404: "NOT_FOUND unsupportedProtocol",
    405: "httpMethodNotAllowed",
    409: "ALREADY_EXISTS conflict duplicate",
    410: "deleted",
    413: "backendRequestTooLarge batchSizeTooLarge uploadTooLarge",
    416: "requestedRangeNotSatisfiable",
    417: "expectationFailed",
    428: "preconditionRequired",
}
CLASSES[Refused] += [(code, status) for status, codes in _REFUSED.items() for code in codes.split()]
CLASSES[Refused].append(("UNIMPLEMENTED", 0))
# about who asks, and with what: google.api.ErrorReason, each with its meaning in that file
_WHO_ASKS = """
ACCESS_TOKEN_EXPIRED ACCESS_TOKEN_SCOPE_INSUFFICIENT ACCESS_TOKEN_TYPE_UNSUPPORTED ACCOUNT_STATE_INVALID
ACCOUNT_TYPE_UNSUPPORTED API_KEY_ANDROID_APP_BLOCKED API_KEY_HTTP_REFERRER_BLOCKED API_KEY_INVALID
API_KEY_IOS_APP_BLOCKED API_KEY_IP_ADDRESS_BLOCKED API_KEY_SERVICE_BLOCKED BILLING_DISABLED CONSUMER_INVALID
CONSUMER_SUSPENDED CREDENTIALS_MISSING CREDENTIAL_ANDROID_APP_INVALID CREDENTIAL_TYPE_UNSUPPORTED
ENDPOINT_USAGE_RESTRICTION_VIOLATED GCP_SUSPENDED JWT_TOKEN_INVALID LOCATION_ORG_POLICY_VIOLATED
LOCATION_POLICY_VIOLATED LOCATION_TAX_POLICY_VIOLATED MCP_SERVER_DISABLED MISSING_ORIGIN
ORG_RESTRICTION_HEADER_INVALID ORG_RESTRICTION_VIOLATION OVERLOADED_CREDENTIALS RESOURCE_PROJECT_INVALID
RESOURCE_USAGE_RESTRICTION_VIOLATED SECURITY_POLICY_VIOLATED SERVICE_DISABLED SERVICE_NOT_VISIBLE
SESSION_COOKIE_INVALID SYSTEM_PARAMETER_UNSUPPORTED TLS_CIPHER_RESTRICTION_VIOLATED TLS_ORG_POLICY_VIOLATED
USER_BLOCKED_BY_ADMIN USER_PROJECT_DENIED
"""
CLASSES[Refused] += [(code, 403) for code in _WHO_ASKS.split()]
NEUTRAL = "VM_MIN_COUNT_NOT_REACHED"
"""says that not all could be made, never why"""

PAGES = {
    "Troubleshooting bulk VM creation, 2025-09-03": """
        invalid quotaExceeded rateLimitExceeded insufficientCapacity QUOTA_EXCEEDED VM_MIN_COUNT_NOT_REACHED
    """,
    "Troubleshoot resource availability errors": """
        ZONE_RESOURCE_POOL_EXHAUSTED ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS
    """,
    "Troubleshoot reservations creation": "QUOTA_EXCEEDED",
    "Compute Engine concurrent operation limits, and what gcloud makes of it": """
        rateLimitExceeded CONCURRENT_OPERATIONS_QUOTA_EXCEEDED
    """,
    "Compute Engine API, Error codes (v1/errors): its first rows, as far as it could be read": """
        PERMISSIONS_ERROR INVALID_FIELD_VALUE FIELD_SIZE_TOO_LARGE MISSING_REQUIRED_FIELD PROJECT_NOT_FOUND
        NETWORK_NOT_FOUND SERVICE_UNAVAILABLE_FOR_LOCATION
    """,
    "Global domain errors (core_errors), from 400 on": """
        badRequest badBinaryDomainRequest badContent badLockedDomainRequest corsRequestWithXOrigin
        endpointConstraintMismatch invalid invalidAltValue invalidHeader invalidParameter invalidQuery keyExpired
        keyInvalid lockedDomainCreationFailure notDownload notUpload parseError required tooManyParts unknownApi
        unsupportedMediaProtocol unsupportedOutputFormat wrongUrlForUpload unauthorized authError expired
        lockedDomainExpired dailyLimitExceeded402 quotaExceeded402 user402 forbidden accessNotConfigured accountDeleted
        accountDisabled accountUnverified concurrentLimitExceeded dailyLimitExceeded dailyLimitExceededUnreg
        downloadServiceForbidden insufficientAudience insufficientAuthorizedParty insufficientPermissions limitExceeded
        lockedDomainForbidden quotaExceeded rateLimitExceeded rateLimitExceededUnreg responseTooLarge
        servingLimitExceeded sslRequired unknownAuth userRateLimitExceeded userRateLimitExceededUnreg
        variableTermExpiredDailyExceeded variableTermLimitExceeded notFound unsupportedProtocol httpMethodNotAllowed
        conflict duplicate deleted conditionNotMet backendRequestTooLarge batchSizeTooLarge uploadTooLarge
        requestedRangeNotSatisfiable expectationFailed preconditionRequired internalError notImplemented
        unsupportedMethod backendError backendNotConnected notReady
    """,
    "google.rpc.Code": " ".join(code_pb2.Code.keys()[1:]),
    "google.api.ErrorReason": " ".join(error_reason_pb2.ErrorReason.keys()[1:]),
}


def of_pages():
    """(page, code)"""
    return [(page, code) for page, codes in PAGES.items() for code in re.findall(r"\S+", codes)]
