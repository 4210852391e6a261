"""Error codes of Compute Engine and what a launch that gets them is to do next.

From: "Troubleshooting bulk VM creation", "Troubleshoot resource availability errors", "API rate limits" and the error
catalogue of Google's documentation; what slurm-gcp, SkyPilot, karpenter-provider-gcp, cloudbreak and the Kubernetes
autoscaler handle, as of 2026. (code, HTTP status of the answer that it comes in; 0: of an operation)
"""

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
    ],
    QuotaReached: [
        ("QUOTA_EXCEEDED", 0),
        ("quotaExceeded", 403),
        ("CPUS_PER_VM_FAMILY", 0),
        ("GPUS_ALL_REGIONS", 0),
        ("RESOURCE_QUOTA_EXCEEDED", 0),
        ("REGION_QUOTA_SOMETHING_NEW", 0),
    ],
    Throttled: [
        ("rateLimitExceeded", 403),
        ("userRateLimitExceeded", 403),
        ("RATE_LIMIT_EXCEEDED", 403),
        ("RESOURCE_OPERATION_RATE_EXCEEDED", 403),
        ("somethingNew", 429),
    ],
    OutcomeUnknown: [
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
