"""Who may do what in the subscription: the nodes, the controller, CI, the reaper. Rights are roles of our own, given by
resource group or to the whole subscription; none by tag, which Azure can't.
"""

import uuid
from collections.abc import Sequence

import pulumi
import pulumi_azure_native as azure

from ironburst.config.azure import rights
from ironburst.config.azure.models import AzureCi, AzureCloud
from ironburst.nodes.naming import logical

AUDIENCE = "api://AzureADTokenExchange"
"""of tokens that are exchanged, as Azure wants it"""


class Rights:
    """Roles of the subscription, and who has them."""

    def __init__(self, cluster: str, subscription: str, opts: pulumi.ResourceOptions) -> None:
        self._cluster, self._scope, self._child = cluster, f"/subscriptions/{subscription}", opts

    def role(self, label: str, actions: Sequence[str] = (), data_actions: Sequence[str] = ()) -> pulumi.Output[str]:
        """A role of ours, by its id."""
        permission = azure.authorization.PermissionArgs(actions=sorted(actions), data_actions=sorted(data_actions))
        made = azure.authorization.RoleDefinition(
            logical(self._cluster, label),
            role_definition_id=self._number(label),
            role_name=f"ironburst {self._cluster}: {label}",
            scope=self._scope,
            assignable_scopes=[self._scope],
            permissions=[permission],
            opts=self._child,
        )
        its: pulumi.Output[str] = made.id
        return its

    def give(self, label: str, actions: Sequence[str], principal: pulumi.Input[str]) -> None:
        """These actions, in the subscription: a lease's group isn't there before."""
        self.assign(label, self.role(label, actions), principal)

    def assign(self, label: str, role: pulumi.Input[str], principal: pulumi.Input[str], scope: str = "") -> None:
        """A role, to somebody who may be new: Azure is told what he is, and needn't know him yet. `scope`: empty: the
        subscription.
        """
        azure.authorization.RoleAssignment(
            logical(self._cluster, label),
            role_assignment_name=self._number(f"{label}/given"),
            role_definition_id=role,
            principal_id=principal,
            principal_type=azure.authorization.PrincipalType.SERVICE_PRINCIPAL,
            scope=scope or self._scope,
            opts=self._child,
        )

    def _number(self, label: str) -> str:
        """Roles and what gives them are named by UUIDs: the same for the same."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._scope}/ironburst/{self._cluster}/{label}"))


class NodeAccess(pulumi.ComponentResource):
    """The identity of rented nodes: it reads the secrets that they join with, and may do nothing else. Output:
    `identity` (its id).
    """

    identity: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        cloud: AzureCloud,
        group: pulumi.Output[str],
        secrets: Sequence[tuple[str, str]],
        tags: dict[str, str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`secrets`: (vault, name) each."""
        super().__init__("ironburst:components:AzureNodeAccess", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        made = identity(name, "nodes", cloud, group, tags, child)
        self.identity = made.id
        given = Rights(name, cloud.subscription, child)
        if secrets and cloud.key_vault:
            role = given.role("read-secrets", data_actions=[rights.READING_SECRET])
            for _, label in secrets:
                given.assign(logical("secret", label), role, made.principal_id, f"{cloud.key_vault}/secrets/{label}")
        self.register_outputs({"identity": self.identity})


class ControllerAccess(pulumi.ComponentResource):
    """The controller's role: it sees the subscription, launches, and ends what it launched. It names nothing of the
    network, so it goes after it. Output: `client` (what an identity that is made here is signed in as).
    """

    client: pulumi.Output[str] | None = None

    def __init__(
        self,
        name: str,
        *,
        cloud: AzureCloud,
        group: pulumi.Output[str],
        tags: dict[str, str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("ironburst:components:AzureControllerAccess", name, None, opts)
        child, declared = pulumi.ResourceOptions(parent=self), cloud.controller
        given = Rights(name, cloud.subscription, child)
        role = given.role("controller", [*rights.LOOKING, *(rights.LAUNCHING if cloud.pools else ())])
        if declared and declared.principal:
            given.assign("controller", role, declared.principal)
        elif declared and declared.issuer and declared.subject:
            made = identity(name, "controller", cloud, group, tags, child)
            _trust(name, "controller", declared.issuer, declared.subject, AUDIENCE, made, group, child)
            given.assign("controller", role, made.principal_id)
            self.client = made.client_id
        self.register_outputs({"client": self.client})


class CiAccess(pulumi.ComponentResource):
    """CI's identity: it may preview. Output: `client` (what CI signs in as)."""

    client: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        cloud: AzureCloud,
        ci: AzureCi,
        group: pulumi.Output[str],
        tags: dict[str, str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("ironburst:components:AzureCiAccess", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        made = identity(name, "preview", cloud, group, tags, child)
        last: list[pulumi.Resource] = []
        for number, subject in enumerate(ci.preview, 1):
            # an identity takes them one after the other
            after = pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=last))
            label = logical("preview", str(number))
            last = [_trust(name, label, ci.issuer, subject, ci.audience, made, group, after)]
        Rights(name, cloud.subscription, child).give("preview", rights.PREVIEWING, made.principal_id)
        self.client = made.client_id
        self.register_outputs({"client": self.client})


def identity(
    cluster: str,
    label: str,
    cloud: AzureCloud,
    group: pulumi.Output[str],
    tags: dict[str, str],
    opts: pulumi.ResourceOptions,
) -> azure.managedidentity.UserAssignedIdentity:
    """One of the stack's, in its group."""
    return azure.managedidentity.UserAssignedIdentity(
        logical(cluster, label),
        resource_name_=logical("ironburst", cluster, label),
        resource_group_name=group,
        location=cloud.region,
        tags=tags,
        opts=opts,
    )


def _trust(
    cluster: str,
    label: str,
    issuer: str,
    subject: str,
    audience: str,
    identity: azure.managedidentity.UserAssignedIdentity,
    group: pulumi.Output[str],
    opts: pulumi.ResourceOptions,
) -> azure.managedidentity.FederatedIdentityCredential:
    """Somebody's tokens are taken for this identity's."""
    return azure.managedidentity.FederatedIdentityCredential(
        logical(cluster, label),
        federated_identity_credential_resource_name=label,
        resource_name_=identity.name,
        resource_group_name=group,
        issuer=f"https://{issuer}",
        subject=subject,
        audiences=[audience],
        opts=opts,
    )
