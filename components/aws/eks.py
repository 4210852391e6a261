"""A Kubernetes cluster that AWS runs: its control plane, who may sign in, and as whom (docs/adr/0042)."""

import base64
import json
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from ironburst.config.aws import policies, roles
from ironburst.config.aws.eks_models import Eks
from ironburst.nodes.naming import logical, tags

CONTROLLER = "ironburst-controller"
"""the user in the cluster that the controller's role signs in as"""
ZONES = 2
"""that the control plane has interfaces in: the least that EKS takes"""
ADMIN = "AmazonEKSClusterAdminPolicy"
"""EKS's own access policy of a cluster-admin"""
VIEW = "AmazonEKSViewPolicy"
"""EKS's own of somebody who looks, and sees no Secret; AmazonEKSAdminViewPolicy shows them"""


class EksCluster(pulumi.ComponentResource):
    """Outputs: `api_server`, `ca` (PEM), `kubeconfig` (for whoever may sign in, by his own credentials of AWS; it holds
    no secret).
    """

    api_server: pulumi.Output[str]
    ca: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        called: str,
        declared: Eks,
        version: str,
        where: pulumi.Output[policies.Scope],
        subnet_ids: Sequence[pulumi.Output[str]],
        security_group_id: pulumi.Output[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`called`: its name in EKS. `subnet_ids`: of two zones; the control plane's interfaces lie there, and have the
        nodes' security group.
        """
        super().__init__("ironburst:components:EksCluster", name, None, opts)
        self._name, self._where, self._child = name, where, pulumi.ResourceOptions(parent=self)
        role = aws.iam.Role(
            logical(name, "eks"),
            description="EKS: runs the control plane",
            assume_role_policy=json.dumps(policies.assumed_by_eks()),
            tags=tags(name, "eks"),
            opts=self._child,
        )
        attached = aws.iam.RolePolicyAttachment(
            logical(name, "eks"),
            role=role.name,
            policy_arn=where.apply(lambda known: known.managed_policy(*roles.EKS_PLANE)),
            opts=self._child,
        )
        self._cluster = aws.eks.Cluster(
            logical(name, "eks"),
            name=called,
            role_arn=role.arn,
            version=version,
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                subnet_ids=list(subnet_ids),
                security_group_ids=[security_group_id],
                endpoint_private_access=True,
                endpoint_public_access=bool(declared.public_access),
                public_access_cidrs=list(declared.public_access) or None,
            ),
            # whoever makes it is its first admin, for it is he who declares the rights in it
            access_config={"authentication_mode": "API", "bootstrap_cluster_creator_admin_permissions": True},
            kubernetes_network_config={"service_ipv4_cidr": declared.service_cidr},
            tags=tags(name, "eks"),
            # it takes its interfaces away itself when it goes, with that policy
            opts=pulumi.ResourceOptions(parent=self, depends_on=[attached]),
        )
        self.api_server = self._cluster.endpoint
        self.ca = self._cluster.certificate_authority.apply(lambda known: base64.b64decode(known.data or "").decode())
        known = pulumi.Output.all(where=where, server=self.api_server, ca=self.ca)
        self.kubeconfig = known.apply(
            lambda parts: json.dumps(kubeconfig(called, parts["where"].region, parts["server"], parts["ca"]))
        )
        for arn in declared.admins:
            self.admit(arn.rpartition("/")[2], arn, policy=ADMIN)
        self.register_outputs({"api_server": self.api_server, "ca": self.ca, "kubeconfig": self.kubeconfig})

    def admit(self, label: str, role_arn: pulumi.Input[str], *, user: str | None = None, policy: str = "") -> None:
        """A role of people or programs may sign in, as `user`, or with one of EKS's own access policies."""
        entry = aws.eks.AccessEntry(
            logical(self._name, "eks", label),
            cluster_name=self._cluster.name,
            principal_arn=role_arn,
            type="STANDARD",
            user_name=user,
            tags=tags(self._name, logical("eks", label)),
            opts=self._child,
        )
        if policy:
            aws.eks.AccessPolicyAssociation(
                logical(self._name, "eks", label),
                cluster_name=self._cluster.name,
                principal_arn=entry.principal_arn,
                policy_arn=self._where.apply(lambda known: known.access_policy(policy)),
                access_scope={"type": "cluster"},
                opts=self._child,
            )

    def nodes(self, roles: Mapping[str, aws.iam.Role]) -> None:
        """Instances with these roles, by their logical names, are nodes, each under its instance's id: the one name
        that EKS knows of it before it joins. Of type EC2_LINUX it would be the private DNS name.
        """
        for label, role in roles.items():
            aws.eks.AccessEntry(
                logical(self._name, "eks", label),
                cluster_name=self._cluster.name,
                principal_arn=role.arn,
                type="EC2",
                tags=tags(self._name, logical("eks", label)),
                opts=self._child,
            )


def kubeconfig(called: str, region: str, server: str, ca: str) -> dict[str, object]:
    """How anybody gets in: by a token that AWS's command makes of his own credentials. Pure."""
    arguments = ["--region", region, "eks", "get-token", "--cluster-name", called, "--output", "json"]
    sign_in = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": arguments,
        "interactiveMode": "Never",
    }
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(ca.encode()).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": called, "cluster": cluster}],
        "users": [{"name": called, "user": {"exec": sign_in}}],
        "contexts": [{"name": called, "context": {"cluster": called, "user": called}}],
        "current-context": called,
    }
