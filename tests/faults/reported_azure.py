"""What users of other tools report that Azure answered to a launch (`reported`)."""

from tests.faults.reported import Reported

_MORE_AT = "Submit a request for Quota increase at https://aka.ms/ProdportalCRP/#blade/Microsoft_Azure_Capacity by "
_MORE_AT += "specifying parameters listed in the 'Details' section for deployment to succeed."
_OVER = "Operation could not be completed as it results in exceeding approved"
_NARROW = "Allocation failed. VM(s) with the following constraints cannot be allocated, because the condition is too "
_NARROW += (
    "restrictive. Please remove some constraints and try again. Constraints applied are:\n  - Availability Zone\n"
)
_FAILED = "The resource operation completed with terminal provisioning state 'Failed'."
AZURE = [
    Reported(
        "Azure-Samples/azuresandbox/issues/70",
        "SkuNotAvailable",
        "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: Standard_B2s' is "
        "currently not available in location 'eastus'. Please try another size or deploy to a different location or "
        "different zone. See https://aka.ms/azureskunotavailable for details.",
        "no capacity",
        status=409,
        says=("Capacity Restrictions: Standard_B2s",),
    ),
    Reported(
        "openshift/release/pull/5182",
        "ZonalAllocationFailed",
        "Allocation failed. We do not have sufficient capacity for the requested VM size in this zone. Read more about "
        "improving likelihood of allocation success at http://aka.ms/allocation-guidance",
        "no capacity",
    ),
    Reported(
        "Azure/AKS/issues/1272",
        "AllocationFailed",
        "Allocation failed. We do not have sufficient capacity for the requested VM size in this region. Read more "
        "about improving likelihood of allocation success at http://aka.ms/allocation-guidance",
        "no capacity",
    ),
    Reported(
        "Azure/azure-powershell/issues/11896",
        "AllocationFailed",
        "Allocation failed. If you are trying to add a new VM to a Virtual Machine Scale Set with a single placement "
        "group or update/resize an existing VM in a Virtual Machine Scale Set with a single placement group, please "
        "note that such allocation is scoped to a single cluster, and it is possible that the cluster is out of "
        "capacity.",
        "no capacity",
        says=("single cluster",),
    ),
    Reported(
        "jenkins-infra/azure/pull/1416",
        "OverconstrainedZonalAllocationRequest",
        f"{_NARROW}  - VM Size\n",
        "no capacity",
    ),
    Reported(
        "jenkins-infra/helpdesk/issues/3584",
        "ResourceOperationFailure",
        _FAILED,
        "no capacity",
        says=("Differencing (Ephemeral) Disks",),
        more={
            "details": [
                {
                    "code": "OverconstrainedZonalAllocationRequest",
                    "target": "11",
                    "message": f"{_NARROW}  - Differencing (Ephemeral) Disks\n  - VM Size\n",
                }
            ]
        },
    ),
    Reported(
        "Azure/karpenter-provider-azure/issues/761",
        "OverconstrainedZonalAllocationRequest",
        f"{_NARROW}  - Low Priority VMs\n  - VM Size\n",
        "no capacity",
        market="Spot",
    ),
    Reported(
        "Azure/karpenter-provider-azure/issues/734",
        "SubnetIsFull",
        "Subnet one with address prefix 10.0.0.0/20 does not have enough capacity for 1 IP addresses.",
        "no capacity",
        status=400,
        says=("10.0.0.0/20",),
    ),
    Reported(
        "nforgeio/neonKUBE/issues/1671",
        "OperationNotAllowed",
        f"{_OVER} Total Regional Cores quota. Additional details - Deployment Model: Resource Manager, Location: "
        "centralus, Current Limit: 10, Current Usage: 8, Additional Required: 4, (Minimum) New Limit Required: 12.",
        "quota",
        status=409,
        says=("Total Regional Cores", "centralus", "Current Limit: 10", "New Limit Required: 12"),
    ),
    Reported(
        "scylladb/scylla-cluster-tests/issues/4994",
        "OperationNotAllowed",
        f"{_OVER} LowPriorityCores quota. Additional details - Deployment Model: Resource Manager, Location: eastus, "
        "Current Limit: 100, Current Usage: 100, Additional Required: 8, (Minimum) New Limit Required: 108. "
        f"{_MORE_AT}",
        "quota",
        status=409,
        says=("LowPriorityCores", "Current Limit: 100", "spot cores"),
        market="Spot",
    ),
    Reported(
        "Azure/karpenter-provider-azure/issues/192",
        "OperationNotAllowed",
        f"{_OVER} standardDLSv5Family Cores quota. Additional details - Deployment Model: Resource Manager, Location: "
        f"eastus, Current Limit: 100, Current Usage: 56, Additional Required: 64, (Minimum) New Limit Required: 120. "
        f"{_MORE_AT}",
        "quota",
        says=("standardDLSv5Family Cores", "Current Limit: 100", "aka.ms/ProdportalCRP"),
    ),
    Reported(
        "microsoft/openshift-origin/issues/42",
        "OperationNotAllowed",
        "Operation results in exceeding quota limits of Core. Maximum allowed: 10, Current in use: 10, Additional "
        "requested: 2. Please read more about quota increase at http://aka.ms/corequotaincrease.",
        "quota",
        status=409,
        says=("Maximum allowed: 10",),
    ),
    Reported(
        "theonemule/fahclient-azure-vm/issues/3",
        "InvalidTemplateDeployment",
        "The template deployment 'Microsoft.Template' is not valid according to the validation procedure.",
        "quota",
        status=400,
        says=("Total Regional Cores", "Current Limit: 4"),
        more={
            "details": [
                {
                    "code": "QuotaExceeded",
                    "message": f"{_OVER} Total Regional Cores quota. Additional details - Deployment Model: Resource "
                    "Manager, Location: eastus, Current Limit: 4, Current Usage: 0, Additional Required: 6, (Minimum) "
                    "New Limit Required: 6.",
                }
            ]
        },
    ),
    Reported(
        "Azure/aks-engine/issues/3694",
        "ResourceDeploymentFailure",
        _FAILED,
        "never up",
        says=("OSProvisioningTimedOut", "did not finish in the allotted time"),
        more={
            "details": [
                {
                    "code": "OSProvisioningTimedOut",
                    "message": "OS Provisioning for VM 'k8s-master-30918674-2' did not finish in the allotted time. "
                    "The VM may still finish provisioning successfully. Please check provisioning state later.",
                }
            ]
        },
    ),
    Reported(
        "loft-sh/devpod/issues/731",
        "BadRequest",
        "The selected VM size 'Standard_NC24ads_A100_v4' cannot boot Hypervisor Generation '1'. If this was a Create "
        "operation please check that the Hypervisor Generation of the Image matches the Hypervisor Generation of the "
        "selected VM Size. If this was an Update operation please select a Hypervisor Generation '1' VM Size. For more "
        "information, see https://aka.ms/azuregen2vm",
        "shut",
        status=400,
        says=("cannot boot Hypervisor Generation '1'", "aka.ms/azuregen2vm"),
    ),
    Reported(
        "microsoft/onefuzz/issues/1126",
        "InvalidParameter",
        "The requested VM size Standard_B2s is not available in the current region. The sizes available in the current "
        f"region are: {','.join(f'Standard_D{n}s_v4' for n in range(300))}.\nFind out more on the available VM sizes "
        "in each region at https://aka.ms/azure-regions.",
        "refused",
        status=400,
        says=("Standard_B2s is not available in the current region",),
    ),
    Reported(
        "scylladb/scylla-cluster-tests/issues/7388",
        "OperationPreempted",
        "Operation execution has been preempted by a more recent operation.",
        "failed",
    ),
    Reported(
        "kubernetes/autoscaler/issues/1661",
        "ResourceDeploymentFailure",
        _FAILED,
        "failed",
        says=("Unknown network allocation error",),
        more={
            "details": [{"code": "NetworkingInternalOperationError", "message": "Unknown network allocation error."}]
        },
    ),
    Reported(
        "Azure-Samples/azuresandbox/issues/196",
        "RequestDisallowedByPolicy",
        "Resource 'sql-sand-dev-l8qtydir' was disallowed by policy. Reasons: 'To learn more about the MCAPS deny "
        "policies and ensure compliance, please refer to the following wiki: https://aka.ms/AzPolicyWiki.'. See "
        "error details for policy resource IDs.",
        "refused",
        status=403,
        says=("was disallowed by policy", "aka.ms/AzPolicyWiki"),
    ),
    Reported(
        "hashicorp/terraform-provider-azurerm/issues/19146",
        "OperationNotAllowed",
        "The server rejected the request because too many requests have been received for this subscription.",
        "again",
        status=429,
        more={
            "details": [
                {
                    "code": "TooManyRequests",
                    "target": "HighCostGetVMScaleSet3Min",
                    "message": '{"operationGroup":"HighCostGetVMScaleSet3Min","allowedRequestCount":162,'
                    '"measuredRequestCount":191}',
                }
            ],
            "innererror": {"internalErrorCode": "TooManyRequestsReceived"},
        },
    ),
    Reported(
        "MicrosoftDocs/azure-docs/issues/105248",
        "SubscriptionRequestsThrottled",
        "Number of requests for subscription 'subid' and operation 'POST/SUBSCRIPTIONS/RESOURCEGROUPS/PROVIDERS/"
        "MICROSOFT.COMPUTE/VIRTUALMACHINES/START' exceeded the backend storage limit. Please try again after '6' "
        "seconds.",
        "again",
        status=429,
    ),
    Reported(
        "sassoftware/viya4-iac-azure/issues/140",
        "OperationNotAllowed",
        "Operation 'startTenantUpdate' is not allowed on VM 'jump-vm' since the VM is marked for deletion. You can "
        "only retry the Delete operation (or wait for an ongoing one to complete).",
        "again",
        status=409,
    ),
    Reported(
        "ComputeCanada/magic_castle/issues/201",
        "VMMarketplaceInvalidInput",
        "Creating a virtual machine from Marketplace image or a custom image sourced from a Marketplace image requires "
        "Plan information in the request. VM: '/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/"
        "virtualMachines/eessi-azure-mgmt1'.",
        "shut",
        says=("requires Plan information",),
    ),
    Reported(
        "skyplane-project/skyplane/issues/755",
        "BadRequest",
        "The VM size 'Standard_DC2as_v5' is not supported for creation of VMs and Virtual Machine Scale Set with "
        "'<NULL>' security type.",
        "shut",
        status=400,
        says=("'<NULL>' security type",),
    ),
]
