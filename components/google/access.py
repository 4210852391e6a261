"""Service accounts with least rights: the nodes', and the controller's; who may act as the controller, and as CI."""

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from components.google import names
from ironburst.config.google import rights
from ironburst.config.google.models import GoogleCi, GoogleCloud, GoogleController
from ironburst.nodes.naming import logical


class Rights:
    """Roles of the project, and who has them."""

    def __init__(self, cluster: str, project: str, opts: pulumi.ResourceOptions) -> None:
        self._cluster, self._project, self._child = cluster, project, opts

    def account(self, label: str, what: str) -> gcp.serviceaccount.Account:
        """A service account. `what`: what it is, for people."""
        return gcp.serviceaccount.Account(
            logical(self._cluster, label),
            account_id=names.account(self._cluster, label),
            display_name=f"ironburst {self._cluster}: {what}",
            project=self._project,
            opts=self._child,
        )

    def give(
        self, label: str, permissions: Sequence[str], account: gcp.serviceaccount.Account, condition: str = ""
    ) -> None:
        """These permissions, in the project or only where a condition holds."""
        role = gcp.projects.IAMCustomRole(
            logical(self._cluster, label),
            role_id=names.role(self._cluster, label),
            title=f"ironburst {self._cluster}: {label}",
            permissions=sorted(permissions),
            project=self._project,
            opts=self._child,
        )
        gcp.projects.IAMMember(
            logical(self._cluster, label),
            project=self._project,
            role=role.name,
            member=account.member,
            condition=gcp.projects.IAMMemberConditionArgs(
                title="of-this-cluster", expression=condition, description="instances of the cluster, by their names"
            )
            if condition
            else None,
            opts=self._child,
        )

    def act_as(self, label: str, account: gcp.serviceaccount.Account, role: str, member: pulumi.Input[str]) -> None:
        """Let somebody be that service account, or give it to machines."""
        gcp.serviceaccount.IAMMember(
            logical(self._cluster, label),
            service_account_id=account.name,
            role=role,
            member=member,
            opts=self._child,
        )


class NodeAccess(pulumi.ComponentResource):
    """What nodes may do: read the secrets that they join with, and end themselves. Output: `account`."""

    account: gcp.serviceaccount.Account

    def __init__(
        self,
        name: str,
        *,
        cloud: GoogleCloud,
        secrets: Sequence[tuple[str, str]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`secrets`: (project, name) each."""
        super().__init__("ironburst:components:GoogleNodeAccess", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        given = Rights(name, cloud.project, child)
        self.account = given.account("nodes", "its nodes")
        given.give("end-itself", rights.ENDING, self.account, rights.of_names(name))
        for project, label in secrets:
            gcp.secretmanager.SecretIamMember(
                logical(name, "secret", label),
                project=project,
                secret_id=label,
                role="roles/secretmanager.secretAccessor",
                member=self.account.member,
                opts=child,
            )
        self.register_outputs({"account": self.account.email})


class ControllerAccess(pulumi.ComponentResource):
    """The controller's service account: it sees the project's instances, launches, and ends the cluster's. It names
    nothing of the network, so it goes after it. Output: `account`.
    """

    account: gcp.serviceaccount.Account

    def __init__(self, name: str, *, cloud: GoogleCloud, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ironburst:components:GoogleControllerAccess", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self._rights = Rights(name, cloud.project, child)
        self.account = self._rights.account("controller", "the burst controller")
        self._rights.give("look", rights.LOOKING, self.account)
        self._rights.give("end", rights.ENDING, self.account, rights.of_names(name))
        if cloud.controller:
            self._signs_in(name, cloud.project, cloud.controller, child)
        self.register_outputs({"account": self.account.email})

    def may_launch(self, nodes: gcp.serviceaccount.Account) -> None:
        """Machines that have the nodes' service account."""
        self._rights.give("launch", rights.LAUNCHING, self.account)
        self._rights.act_as("launch-nodes", nodes, "roles/iam.serviceAccountUser", self.account.member)

    def _signs_in(self, name: str, project: str, declared: GoogleController, child: pulumi.ResourceOptions) -> None:
        """By a certificate (workload identity federation with X.509)."""
        anchor = gcp.iam.WorkloadIdentityPoolProviderX509TrustStoreTrustAnchorArgs(pem_certificate=declared.ca)
        store = gcp.iam.WorkloadIdentityPoolProviderX509TrustStoreArgs(trust_anchors=[anchor])
        pool = _federated(
            logical(name, "controller"),
            names.account(name, "controller"),
            project,
            child,
            x509=gcp.iam.WorkloadIdentityPoolProviderX509Args(trust_store=store),
            attribute_mapping={"google.subject": "assertion.subject.dn.cn"},
            attribute_condition=f"assertion.subject.dn.cn == '{declared.common_name}'",
        )
        member = pool.name.apply(lambda its: f"principal://iam.googleapis.com/{its}/subject/{declared.common_name}")
        self._rights.act_as("controller-signs-in", self.account, "roles/iam.workloadIdentityUser", member)


class CiAccess(pulumi.ComponentResource):
    """CI's service account: it may preview. Outputs: `account`, `provider` (what CI's tokens are exchanged at)."""

    account: gcp.serviceaccount.Account
    provider: pulumi.Output[str]

    def __init__(
        self, name: str, *, cloud: GoogleCloud, ci: GoogleCi, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("ironburst:components:GoogleCiAccess", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        given = Rights(name, cloud.project, child)
        self.account = given.account("preview", "CI that previews")
        given.give("preview", rights.PREVIEWING, self.account)
        allowed = ", ".join(f"'{subject}'" for subject in ci.preview)
        pool = _federated(
            logical(name, "preview"),
            names.account(name, "preview"),
            cloud.project,
            child,
            oidc=gcp.iam.WorkloadIdentityPoolProviderOidcArgs(
                issuer_uri=f"https://{ci.issuer}", allowed_audiences=[ci.audience] if ci.audience else None
            ),
            attribute_mapping={"google.subject": "assertion.sub"},
            attribute_condition=f"assertion.sub in [{allowed}]",  # else whoever has a token of this issuer gets in
        )
        self.provider = pool.name.apply(lambda its: f"{its}/providers/{names.account(name, 'preview')}")
        for number, subject in enumerate(ci.preview, 1):
            member = pool.name.apply(
                lambda its, subject=subject: f"principal://iam.googleapis.com/{its}/subject/{subject}"
            )
            given.act_as(
                logical("preview-signs-in", str(number)), self.account, "roles/iam.workloadIdentityUser", member
            )
        self.register_outputs({"account": self.account.email})


def _federated(
    label: str, its_id: str, project: str, child: pulumi.ResourceOptions, **provider: object
) -> gcp.iam.WorkloadIdentityPool:
    """A pool of identities from outside, with its one provider."""
    pool = gcp.iam.WorkloadIdentityPool(label, workload_identity_pool_id=its_id, project=project, opts=child)
    gcp.iam.WorkloadIdentityPoolProvider(
        label,
        gcp.iam.WorkloadIdentityPoolProviderArgs(
            project=project,
            workload_identity_pool_id=pool.workload_identity_pool_id,
            workload_identity_pool_provider_id=its_id,
            **provider,
        ),
        opts=child,
    )
    return pool
