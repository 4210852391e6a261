"""Service accounts with least rights: the nodes', and the controller's; who may act as the controller, and as CI."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_gcp as gcp

from components.google import names
from ironburst.config.google import rights
from ironburst.config.google.models import GoogleCi, GoogleCloud, GoogleController, GoogleGroup, GooglePool
from ironburst.nodes.naming import SEPARATOR, logical


class Rights:
    """Roles of the project, and who has them."""

    def __init__(self, cluster: str, project: str, opts: pulumi.ResourceOptions) -> None:
        self._cluster, self._project, self._child = cluster, project, opts

    def account(self, label: str, what: str, *, of: str = "") -> gcp.serviceaccount.Account:
        """A service account. `what`: what it is, for people; `of`: whose nodes', so named that another cluster's can't
        be named the same.
        """
        its_id = names.account(f"{self._cluster}{SEPARATOR}{label}", of) if of else names.account(self._cluster, label)
        return gcp.serviceaccount.Account(
            logical(self._cluster, label, *([of] if of else [])),
            account_id=its_id,
            display_name=f"ironburst {self._cluster}: {what}",
            project=self._project,
            opts=self._child,
        )

    def give(
        self, label: str, permissions: Sequence[str], account: gcp.serviceaccount.Account, condition: str = ""
    ) -> gcp.projects.IAMCustomRole:
        """These permissions, in the project or only where a condition holds: the role, for others."""
        role = gcp.projects.IAMCustomRole(
            logical(self._cluster, label),
            role_id=names.role(self._cluster, label),
            title=f"ironburst {self._cluster}: {label}",
            permissions=sorted(permissions),
            project=self._project,
            opts=self._child,
        )
        self.give_too(label, role, account, condition)
        return role

    def give_too(
        self, label: str, role: gcp.projects.IAMCustomRole, account: gcp.serviceaccount.Account, condition: str = ""
    ) -> None:
        """A role that is there."""
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
    """What nodes may do: rented ones read the secrets that they join with, and end themselves; those of a pool or group
    with data have an account of their own, which reads that, too. Outputs: `account`, and `own`, by pool or group.
    """

    account: gcp.serviceaccount.Account
    own: dict[str, gcp.serviceaccount.Account]

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
        self.account, self.own = given.account("nodes", "its nodes"), {}
        ends = given.give("end-itself", rights.ENDING, self.account, rights.of_names(name))
        self._joins(name, self.account, secrets, child)
        every: list[GoogleGroup | GooglePool] = [*cloud.groups, *cloud.pools]
        for nodes in every:
            if not (data := rights.data_of(cloud, nodes)):
                continue
            rented = isinstance(nodes, GooglePool)
            kind = "nodes" if rented else "fixed"
            label = logical(kind, nodes.name)
            own = given.account(kind, f"nodes of {nodes.name}, with their data", of=nodes.name)
            self.own[nodes.name] = own
            if rented:
                given.give_too(logical(label, "end-itself"), ends, own, rights.of_names(name))
                self._joins(logical(name, label), own, secrets, child)
            for data_set, place in data.items():
                self._reads(logical(name, label, data_set), place, own, child)
        self.register_outputs({"account": self.account.email})

    @staticmethod
    def _joins(
        label: str,
        account: gcp.serviceaccount.Account,
        secrets: Sequence[tuple[str, str]],
        child: pulumi.ResourceOptions,
    ) -> None:
        for project, secret in secrets:
            gcp.secretmanager.SecretIamMember(
                logical(label, "secret", secret),
                project=project,
                secret_id=secret,
                role="roles/secretmanager.secretAccessor",
                member=account.member,
                opts=child,
            )

    @staticmethod
    def _reads(label: str, place: str, account: gcp.serviceaccount.Account, child: pulumi.ResourceOptions) -> None:
        """The bucket may be another project's: then whoever does `up` needs the right to bind roles there."""
        bucket, condition = rights.of_data(place)
        only = gcp.storage.BucketIAMMemberConditionArgs(
            title=f"below {place.partition('/')[2]}"[:100], expression=condition, description="a data set of ironburst"
        )
        gcp.storage.BucketIAMMember(
            label,
            bucket=bucket,
            role=rights.READS_DATA,
            member=account.member,
            condition=only if condition else None,
            opts=child,
        )


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

    def may_launch(self, accounts: Mapping[str, gcp.serviceaccount.Account]) -> None:
        """Machines that have these service accounts of nodes, by label."""
        self._rights.give("launch", rights.LAUNCHING, self.account)
        for label, nodes in accounts.items():
            self._rights.act_as(logical("launch", label), nodes, "roles/iam.serviceAccountUser", self.account.member)

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
        given.give("preview", rights.previewing(cloud), self.account)
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
