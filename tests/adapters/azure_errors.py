"""Error codes of Azure and what a launch that gets them is to do next.

From Azure's documentation, `PAGES`: all of their codes. And what karpenter-provider-azure, SkyPilot and dstack handle,
as of 2026. (code, text, HTTP status of the answer that it comes in; 0: of what had begun)
"""

import re

from ironburst.ports import (
    InsufficientCapacity,
    Malformed,
    OutcomeUnknown,
    QuotaReached,
    Refused,
    Throttled,
    TooExpensive,
)

_QUOTA = "Operation could not be completed as it results in exceeding approved {} quota. Current Limit: 0"
_NOT_ON_VM = "Operation 'PUT' is not allowed on VM 'ib-0' since {}."

CLASSES = {
    InsufficientCapacity: [
        ("SkuNotAvailable", "The requested size is currently not available in location 'eastus'", 409),
        ("AllocationFailed", "Allocation failed. We do not have sufficient capacity", 0),
        ("ZonalAllocationFailed", "Allocation failed. We do not have sufficient capacity in this zone", 0),
        ("OverconstrainedAllocationRequest", "", 0),
        ("OverconstrainedZonalAllocationRequest", "", 0),
        ("OverconstrainedZonalAllocationRequest", "", 409),
        (
            "OverConstrainedAllocationRequest",
            "The required VM size is not currently available in the location.",
            0,
        ),
        ("OperationNotAllowed", "The requested VM size X may not be available in the existing allocation unit.", 409),
        ("InvalidParameter", "the requested size X is not available in the cluster where the set is allocated", 400),
        ("SubnetIsFull", "", 400),
    ],
    TooExpensive: [("SpotPriceGreaterThanProvidedMaxPrice", "", 409)],
    QuotaReached: [
        ("OperationNotAllowed", _QUOTA.format("standardNDSH100v5Family Cores"), 409),
        ("OperationNotAllowed", _QUOTA.format("Total Regional Cores"), 409),
        ("OperationNotAllowed", _QUOTA.format("LowPriorityCores"), 409),
        ("OperationNotAllowed", _QUOTA.format("LowPriorityCores"), 0),
        ("QuotaExceeded", "", 409),
        ("ResourceQuotaExceeded", "", 409),
        ("DeploymentQuotaExceeded", "", 409),
        ("PublicIPCountLimitReached", "", 409),
    ],
    Throttled: [
        ("TooManyRequests", "", 429),
        ("SubscriptionRequestsThrottled", "", 429),
        ("OperationThrottled", "", 409),
        ("TooManyVMRedeploymentRequests", "", 409),
        ("SomethingNew", "", 429),
    ],
    OutcomeUnknown: [
        ("AnotherOperationInProgress", "", 409),
        ("AttachDiskWhileBeingDetached", "", 409),
        ("DeploymentActiveAndUneditable", "", 409),
        ("DiagnosticsOperationInternalError", "", 0),
        ("OSProvisioningInternalError", "", 0),
        ("ResourceUpdateBlockedOnPlatformUpdate", "", 409),
        ("StorageAccountOperationInternalError", "", 0),
        ("StorageAccountTooBusy", "", 0),
        ("VMArtifactRepositoryInternalError", "", 0),
        ("VMExtensionManagementInternalError", "", 0),
        ("InternalExecutionError", "", 0),
        ("InternalOperationError", "", 500),
        ("InternalServerError", "", 500),
        ("NetworkingInternalOperationError", "", 0),
        ("OperationNotAllowed", _NOT_ON_VM.format("another operation is in progress"), 409),
        ("OperationNotAllowed", "An ongoing operation is changing power state of Virtual Machine ib-0", 409),
        ("OperationNotAllowed", _NOT_ON_VM.format("the VM is marked for deletion"), 409),
        ("OperationPreempted", "", 0),
        ("ResourceGroupBeingDeleted", "", 409),
        ("RetryableError", "", 429),
        ("ServerTimeout", "", 503),
        ("ServiceUnavailable", "", 503),
        ("SomethingNew", "", 500),
        ("SomethingNew", "", 408),
    ],
    Malformed: [
        ("AzureSpotIsNotSupportedForThisAPIVersion", "", 400),
        ("AzureSpotIsNotSupportedForThisVMSize", "", 400),
        ("AzureSpotVMNotSupportedInAvailabilitySet", "", 409),
        ("EvictionPolicyCanBeSetOnlyOnAzureSpotVirtualMachines", "", 409),
        ("InvalidRequestContent", "", 400),
        ("InvalidRequestFormat", "", 400),
        ("InvalidResourceNamespace", "", 400),
        ("InvalidResourceType", "", 400),
        ("LinkedInvalidPropertyId", "", 400),
        ("LocationRequired", "", 400),
        ("MaxPriceIsSupportedOnlyForAzureSpotVirtualMachines", "", 409),
        ("MaxPriceValueInvalid", "", 409),
        ("MismatchingResourceSegments", "", 400),
        ("ReservedResourceName", "", 400),
    ],
    Refused: [
        ("AuthorizationFailed", "", 403),
        ("AuthenticationFailed", "", 401),
        ("AzureSpotFeatureNotEnabledForSubscription", "", 409),
        ("AzureSpotVMNotSupportedInVmssWithVMOrchestrationMode", "", 409),  # one page says so of Flexible, another not
        ("BadRequest", "Managed Disks are not supported in this region.", 400),
        ("Conflict", "", 409),
        ("ConflictingUserInput", "", 409),
        ("DiskImageNotReady", "", 409),
        ("DiskPreparationError", "", 0),
        ("DiskProcessingError", "", 0),
        ("ExpiredAuthenticationToken", "", 401),
        ("GalleryImageNotFound", "", 404),
        ("ImageNotFound", "", 404),
        ("InvalidAuthenticationToken", "", 401),
        ("InvalidAuthenticationTokenTenant", "", 401),
        ("InvalidParameter", "The requested VM size X is not available in the current region.", 400),
        ("InvalidResourceLocation", "", 409),
        ("InvalidResourceReference", "", 400),
        ("InvalidSubscriptionRegistrationState", "", 409),
        ("LinkedAuthorizationFailed", "", 403),
        ("MaxPriceChangeNotAllowed", "", 409),
        ("MissingRegistrationForLocation", "", 400),
        ("MissingSubscriptionRegistration", "", 409),
        ("NoRegisteredProviderFound", "", 400),
        ("NotAvailableForSubscription", "", 409),
        ("NotFound", "", 404),
        ("NotSupported", "", 409),
        ("OSProvisioningTimedOut", "", 0),
        ("OperationNotAllowed", "The resource cannot be created from Image until Image has been created.", 409),
        ("OperationNotAllowed", _NOT_ON_VM.format("the VM is generalized"), 409),
        ("ParentResourceNotFound", "", 404),
        ("PrivateIPAddressNotInSubnet", "", 400),
        ("PropertyChangeNotAllowed", "", 409),
        ("ReadOnlyDisabledSubscription", "", 409),
        ("RegionDoesNotAllowProvisioning", "", 409),
        ("RequestDisallowedByPolicy", "", 403),
        ("ResourceGroupNotFound", "", 404),
        ("ResourceNotFound", "", 404),
        ("SubnetsNotInSameVnet", "", 400),
        ("SubscriptionNotFound", "", 404),
        ("SubscriptionNotRegistered", "", 409),
        ("VMPriorityCannotBeApplied", "", 409),
        ("VMStoppedToWarnSubscription", "", 0),
        ("SomethingNew", "", 400),
        ("SomethingNew", "", 0),
    ],
}
NEUTRAL = "DeploymentFailed InvalidTemplateDeployment"
"""say that something failed, never what"""

# nothing sends them: of templates, of storage accounts and blobs for disks, of moves, extensions and certificates
_NEVER = """
AccountNameInvalid AccountPropertyCannotBeSet AcquireDiskLeaseFailed ArtifactNotFound ArtifactVersionNotFound
CertificateImproperlyFormatted ContainerAlreadyOnLease CrossSubscriptionMoveWithKeyVaultResources
DataDisksForceDetached DeploymentFailedCleanUp DeploymentJobSizeExceeded DeploymentNameInvalidCharacters
DeploymentNameLengthLimitExceeded DiskBlobAlreadyInUseByAnotherDisk DiskBlobNotFound
DiskEncryptionKeySecretMissingTags DiskEncryptionKeySecretUnwrapFailed DnsRecordInUse ImageBlobNotFound
InUseSubnetCannotBeDeleted InaccessibleImage IncorrectDiskBlobType IncorrectImageBlobType InvalidAccountType
InvalidContentLink InvalidDeploymentLocation InvalidTemplate InvalidTemplateCircularDependency JobSizeExceeded
MaxPriceChangeNotAllowedForAllocatedVMs MissingMoveDependentResources MoveResourcesHaveInvalidState
MoveResourcesHavePendingOperations MoveResourcesNotFound MoveResourcesWithAzureSpotVMNotSupported
MoveResourcesWithAzureSpotVmssNotSupported OSProvisioningClientError OperationNotAllowedOnVMImageAsVMsBeingProvisioned
PasswordTooLong PrivateIPAddressInReservedRange SpotRestorationIsNotSupportedForThisAPIVersion
SpotRestorationIsSupportedOnlyForAzureSpotScaleSets StorageAccountAlreadyExists StorageAccountAlreadyTaken
StorageAccountInAnotherResourceGroup StorageAccountLimitation StorageAccountLocationMismatch StorageAccountNotFound
StorageAccountNotRecognized StorageAccountSubscriptionMismatch StorageAccountTypeNotSupported
SubscriptionNotAuthorizedForImage TargetDiskBlobAlreadyExists TemplateResourceCircularDependency
TooManyTargetResourceGroups VHDSizeInvalid VMAgentStatusCommunicationError VMExtensionHandlerNonTransientError
VMExtensionProvisioningError VMExtensionProvisioningTimeout VMMarketplaceInvalidInput VMNotFound VMRedeploymentFailed
VMRedeploymentTimedOut VMStartTimedOut
"""
CLASSES[Refused] += [(code, "", 400) for code in _NEVER.split()]

PAGES = {
    "Error messages for Azure Spot Virtual Machines and scale sets, 2023-02-28": """
        AzureSpotFeatureNotEnabledForSubscription AzureSpotIsNotSupportedForThisAPIVersion
        AzureSpotIsNotSupportedForThisVMSize AzureSpotVMNotSupportedInAvailabilitySet
        AzureSpotVMNotSupportedInVmssWithVMOrchestrationMode EvictionPolicyCanBeSetOnlyOnAzureSpotVirtualMachines
        MaxPriceChangeNotAllowed MaxPriceChangeNotAllowedForAllocatedVMs
        MaxPriceIsSupportedOnlyForAzureSpotVirtualMachines MaxPriceValueInvalid MoveResourcesWithAzureSpotVMNotSupported
        MoveResourcesWithAzureSpotVmssNotSupported SkuNotAvailable SpotPriceGreaterThanProvidedMaxPrice
        SpotRestorationIsNotSupportedForThisAPIVersion SpotRestorationIsSupportedOnlyForAzureSpotScaleSets
        VMPriorityCannotBeApplied
    """,
    "Troubleshoot common Azure deployment errors, 2024-06-20": """
        AccountNameInvalid AccountPropertyCannotBeSet AllocationFailed AnotherOperationInProgress AuthorizationFailed
        BadRequest Conflict DeploymentActiveAndUneditable DeploymentFailed DeploymentFailedCleanUp
        DeploymentJobSizeExceeded DeploymentNameInvalidCharacters DeploymentNameLengthLimitExceeded
        DeploymentQuotaExceeded DnsRecordInUse ImageNotFound InUseSubnetCannotBeDeleted InaccessibleImage
        InternalServerError InvalidAuthenticationTokenTenant InvalidContentLink InvalidDeploymentLocation
        InvalidParameter InvalidRequestContent InvalidRequestFormat InvalidResourceLocation InvalidResourceNamespace
        InvalidResourceReference InvalidResourceType InvalidSubscriptionRegistrationState InvalidTemplate
        InvalidTemplateCircularDependency InvalidTemplateDeployment JobSizeExceeded LinkedAuthorizationFailed
        LinkedInvalidPropertyId LocationRequired MismatchingResourceSegments MissingRegistrationForLocation
        MissingSubscriptionRegistration NoRegisteredProviderFound NotFound OperationNotAllowed
        OperationNotAllowedOnVMImageAsVMsBeingProvisioned ParentResourceNotFound PasswordTooLong
        PrivateIPAddressInReservedRange PrivateIPAddressNotInSubnet PropertyChangeNotAllowed PublicIPCountLimitReached
        RegionDoesNotAllowProvisioning RequestDisallowedByPolicy ReservedResourceName ResourceGroupBeingDeleted
        ResourceGroupNotFound ResourceNotFound ResourceQuotaExceeded SkuNotAvailable StorageAccountAlreadyExists
        StorageAccountAlreadyTaken StorageAccountInAnotherResourceGroup StorageAccountNotFound SubnetIsFull
        SubnetsNotInSameVnet SubscriptionNotFound SubscriptionNotRegistered SubscriptionRequestsThrottled
        TemplateResourceCircularDependency TooManyTargetResourceGroups
    """,
    "Understand common error messages when you manage virtual machines in Azure, 2025-05-20": """
        AcquireDiskLeaseFailed AllocationFailed ArtifactNotFound ArtifactVersionNotFound AttachDiskWhileBeingDetached
        BadRequest CertificateImproperlyFormatted Conflict ConflictingUserInput ContainerAlreadyOnLease
        CrossSubscriptionMoveWithKeyVaultResources DataDisksForceDetached DiagnosticsOperationInternalError
        DiskBlobAlreadyInUseByAnotherDisk DiskBlobNotFound DiskEncryptionKeySecretMissingTags
        DiskEncryptionKeySecretUnwrapFailed DiskImageNotReady DiskPreparationError DiskProcessingError
        ImageBlobNotFound IncorrectDiskBlobType IncorrectImageBlobType InternalOperationError InvalidAccountType
        InvalidParameter MissingMoveDependentResources MoveResourcesHaveInvalidState
        MoveResourcesHavePendingOperations MoveResourcesNotFound NetworkingInternalOperationError NotFound NotSupported
        OSProvisioningClientError OSProvisioningInternalError OSProvisioningTimedOut OperationNotAllowed
        OverConstrainedAllocationRequest ResourceUpdateBlockedOnPlatformUpdate StorageAccountLimitation
        StorageAccountLocationMismatch StorageAccountNotFound StorageAccountNotRecognized
        StorageAccountOperationInternalError StorageAccountSubscriptionMismatch StorageAccountTooBusy
        StorageAccountTypeNotSupported SubscriptionNotAuthorizedForImage TargetDiskBlobAlreadyExists
        TooManyVMRedeploymentRequests VHDSizeInvalid VMAgentStatusCommunicationError VMArtifactRepositoryInternalError
        VMExtensionHandlerNonTransientError VMExtensionManagementInternalError VMExtensionProvisioningError
        VMExtensionProvisioningTimeout VMMarketplaceInvalidInput VMNotFound VMRedeploymentFailed
        VMRedeploymentTimedOut VMStartTimedOut
    """,
    "Troubleshoot allocation failures when you create or resize VMs in Azure, 2023-12-15": """
        AllocationFailed ZonalAllocationFailed
    """,
    "Resolve errors for SKU not available": "SkuNotAvailable InvalidTemplateDeployment",
}


def of_pages():
    """(page, code)"""
    return [(page, code) for page, codes in PAGES.items() for code in re.findall(r"\S+", codes)]
