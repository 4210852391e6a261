"""Actions in Azure that the stack's roles have. A role is given at a scope: a subscription, a resource group or one
resource; tags and names are no part of a condition, so a launch is a resource group (docs/adr/0129). Pure.
"""

from __future__ import annotations

_GROUPS = "Microsoft.Resources/subscriptions/resourceGroups"
LOOKING = (
    "Microsoft.Authorization/permissions/read",
    "Microsoft.Authorization/roleAssignments/read",
    "Microsoft.Compute/capacityReservationGroups/capacityReservations/read",
    "Microsoft.Compute/capacityReservationGroups/read",
    "Microsoft.Compute/disks/read",
    "Microsoft.Compute/galleries/images/read",
    "Microsoft.Compute/galleries/images/versions/read",
    "Microsoft.Compute/galleries/read",
    "Microsoft.Compute/locations/operations/read",
    "Microsoft.Compute/locations/publishers/artifacttypes/offers/skus/versions/read",
    "Microsoft.Compute/locations/usages/read",
    "Microsoft.Compute/skus/read",
    "Microsoft.Compute/virtualMachineScaleSets/read",
    "Microsoft.Compute/virtualMachines/instanceView/read",
    "Microsoft.Compute/virtualMachines/read",
    "Microsoft.Compute/virtualMachines/retrieveBootDiagnosticsData/action",
    "Microsoft.Logic/workflows/read",
    "Microsoft.Logic/workflows/runs/read",
    "Microsoft.Network/networkInterfaces/read",
    "Microsoft.Network/virtualNetworks/subnets/read",
    f"{_GROUPS}/read",
    "Microsoft.Resources/subscriptions/providers/read",
    "Microsoft.Resources/subscriptions/read",
)
"""of the controller and its doctor, at the subscription: they change nothing"""
LAUNCHING = (
    "Microsoft.Compute/capacityReservationGroups/deploy/action",
    "Microsoft.Compute/disks/delete",
    "Microsoft.Compute/disks/write",
    "Microsoft.Compute/virtualMachineScaleSets/delete",
    "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/write",
    "Microsoft.Compute/virtualMachineScaleSets/write",
    "Microsoft.Compute/virtualMachines/delete",
    "Microsoft.Compute/virtualMachines/write",
    "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",
    "Microsoft.Network/networkInterfaces/delete",
    "Microsoft.Network/networkInterfaces/join/action",
    "Microsoft.Network/networkInterfaces/write",
    "Microsoft.Network/networkSecurityGroups/join/action",
    "Microsoft.Network/virtualNetworks/subnets/join/action",
    f"{_GROUPS}/delete",
    f"{_GROUPS}/write",
    "Microsoft.Resources/tags/write",
)
"""of the controller of a stack with pools, at the subscription: a launch's group isn't there before"""
BAKING = (
    "Microsoft.Compute/galleries/images/versions/delete",
    "Microsoft.Compute/galleries/images/versions/write",
    "Microsoft.Compute/virtualMachines/deallocate/action",
    "Microsoft.Compute/virtualMachines/generalize/action",
)
"""of whoever bakes images, beside the controller's"""
REAPING = (
    "Microsoft.Compute/disks/delete",
    "Microsoft.Compute/virtualMachines/delete",
    "Microsoft.Compute/virtualMachines/read",
    "Microsoft.Network/networkInterfaces/delete",
    f"{_GROUPS}/delete",
    f"{_GROUPS}/read",
)
"""of the workflow that ends leases which nobody prolongs, and their machines that are off, at the subscription. A disk
and an interface go with their machine; whether who deletes that needs a right to them isn't documented
"""
READING_SECRET = "Microsoft.KeyVault/vaults/secrets/getSecret/action"
"""of rented nodes, at each secret by itself (a data action)"""
PREVIEWING = (
    "Microsoft.Authorization/*/read",
    "Microsoft.Compute/*/read",
    "Microsoft.Consumption/budgets/read",
    "Microsoft.Logic/workflows/read",
    "Microsoft.ManagedIdentity/*/read",
    "Microsoft.Network/*/read",
    f"{_GROUPS}/read",
)
"""of CI: what a refresh of the stack's resources reads"""
