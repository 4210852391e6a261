"""Roles with least privilege: those of nodes, one that the controller assumes; a policy for those who bake images."""

import functools
import json
from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from components.aws.interruptions import Interruptions
from ironburst.config.aws import policies, roles
from ironburst.config.aws.models import AwsCi, AwsCloud, AwsGroup, AwsPool, Controller
from ironburst.config.models import ClusterConfig
from ironburst.nodes.naming import logical, tags

SESSION_S = 3600
"""how long credentials that a certificate gave are good for: the longest that a role allows unless it is told more"""


def scope(region: str) -> pulumi.Output[policies.Scope]:
    """Where this stack's ARNs lie: asks for the account that the stack runs in."""
    return aws.get_caller_identity_output().apply(
        lambda caller: policies.Scope(partition=caller.arn.split(":")[1], region=region, account=caller.account_id)
    )


class NodeAccess(pulumi.ComponentResource):
    """What cloud nodes may do (ironburst/config/aws/roles.py). Those of EKS have what AWS's pods need there, too.
    Outputs: `role_arns` (what the controller passes to rented nodes), `of_eks` (logical name -> role that joins).
    """

    role_arns: list[pulumi.Output[str]]
    of_eks: dict[str, aws.iam.Role]

    def __init__(
        self,
        name: str,
        *,
        cloud: AwsCloud,
        config: ClusterConfig,
        where: pulumi.Output[policies.Scope],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("ironburst:components:NodeAccess", name, None, opts)
        self._name, self._where = name, where
        declared = roles.of_nodes(config, cloud)
        made = {each.label: self._role(each) for each in declared.roles}
        self._profiles = {nodes: made[label][1] for nodes, label in declared.label_of.items()}
        self.role_arns = [made[label][0].arn for label in declared.passed]
        self.of_eks = {each.label: made[each.label][0] for each in declared.roles if each.eks}
        self.register_outputs({"role_arns": self.role_arns})

    def profile(self, nodes: AwsGroup | AwsPool) -> pulumi.Output[str]:
        """The name of their instance profile."""
        return self._profiles[nodes.name]

    def _role(self, declared: roles.NodeRole) -> tuple[aws.iam.Role, pulumi.Output[str]]:
        """A role that EC2 gives to instances, and the name of its instance profile."""
        label, child = logical(self._name, declared.label), pulumi.ResourceOptions(parent=self)
        its_tags = tags(self._name, declared.label)
        trust = self._where.apply(lambda known: json.dumps(policies.assumed_by_ec2(known.partition)))
        role = aws.iam.Role(
            label, description=declared.description, assume_role_policy=trust, tags=its_tags, opts=child
        )
        if declared.joins_with or declared.data:
            rights = self._where.apply(
                lambda known: json.dumps(policies.node(known, declared.joins_with, declared.data))
            )
            aws.iam.RolePolicy(label, role=role.name, policy=rights, opts=child)
        for policy in roles.EKS_NODE if declared.eks else ():
            arn = self._where.apply(functools.partial(policies.Scope.managed_policy, name=policy))
            aws.iam.RolePolicyAttachment(logical(label, policy), role=role.name, policy_arn=arn, opts=child)
        return role, aws.iam.InstanceProfile(label, role=role.name, tags=its_tags, opts=child).name


class ControllerAccess(pulumi.ComponentResource):
    """The role that the burst controller assumes, with the right to see and end what it rented. It names nothing of the
    network or the pools, so it can be there before them and go after them: a `destroy` that finds nodes stops at
    their subnets and security group, and the controller can still end them.
    Outputs: `role_arn`, `role_name`, `sign_in` (ARNs for `aws_signing_helper`; empty without a declared certificate).
    """

    role_arn: pulumi.Output[str]
    role_name: pulumi.Output[str]
    sign_in: pulumi.Output[dict[str, str]]

    def __init__(
        self,
        name: str,
        *,
        where: pulumi.Output[policies.Scope],
        signs_in: Controller | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`signs_in`: by which certificate; None: whoever the account lets assume the role."""
        super().__init__("ironburst:components:ControllerAccess", name, None, opts)
        label, child = logical(name, "controller"), pulumi.ResourceOptions(parent=self)
        anchor = self._trust_anchor(name, signs_in) if signs_in else None
        trust = where.apply(policies.assumed_within)
        if anchor and signs_in:
            common_name = signs_in.common_name
            trust = anchor.arn.apply(lambda arn: policies.assumed_with_certificate(arn, common_name))
        role = aws.iam.Role(
            label,
            description="burst controller: launches and ends the pools' nodes",
            assume_role_policy=trust.apply(json.dumps),
            tags=tags(name, "controller"),
            opts=child,
        )
        self.sign_in = self._sign_in(name, anchor, role) if anchor else pulumi.Output.from_input({})
        rights = where.apply(lambda known: json.dumps(policies.ending(known, name)))
        aws.iam.RolePolicy(label, role=role.name, policy=rights, opts=child)
        self.role_arn, self.role_name = role.arn, role.name
        self.register_outputs({"role_arn": self.role_arn, "role_name": self.role_name})

    def _trust_anchor(self, name: str, signs_in: Controller) -> aws.rolesanywhere.TrustAnchor:
        """The provider asks AWS for a disabled one unless it is told otherwise; of the profile, too."""
        return aws.rolesanywhere.TrustAnchor(
            logical(name, "controller"),
            enabled=True,
            source={"source_type": "CERTIFICATE_BUNDLE", "source_data": {"x509_certificate_data": signs_in.ca}},
            tags=tags(name, "controller"),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _sign_in(
        self, name: str, anchor: aws.rolesanywhere.TrustAnchor, role: aws.iam.Role
    ) -> pulumi.Output[dict[str, str]]:
        profile = aws.rolesanywhere.Profile(
            logical(name, "controller"),
            enabled=True,
            duration_seconds=SESSION_S,
            role_arns=[role.arn],
            tags=tags(name, "controller"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        return pulumi.Output.all(trust_anchor_arn=anchor.arn, profile_arn=profile.arn, role_arn=role.arn)


class CiAccess(pulumi.ComponentResource):
    """The role of CI: it may preview. The account's OIDC provider is there before: an account has one for an issuer,
    and others use it, too. Output: `role_arn`.
    """

    role_arn: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        ci: AwsCi,
        buckets: Sequence[str],
        where: pulumi.Output[policies.Scope],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`buckets`: those with declared data."""
        super().__init__("ironburst:components:CiAccess", name, None, opts)
        label, child = logical(name, "preview"), pulumi.ResourceOptions(parent=self)
        trust = where.apply(lambda known: policies.assumed_by_ci(known, ci.issuer, ci.audience, ci.preview))
        role = aws.iam.Role(
            label,
            description="CI: previews the stack",
            assume_role_policy=trust.apply(json.dumps),
            tags=tags(name, "preview"),
            opts=child,
        )
        rights = where.apply(lambda known: json.dumps(policies.previewing(known, buckets)))
        aws.iam.RolePolicy(label, role=role.name, policy=rights, opts=child)
        self.role_arn = role.arn
        self.register_outputs({"role_arn": self.role_arn})


class LaunchAccess(pulumi.ComponentResource):
    """The controller's right to launch, as narrow as the pools that are declared."""

    def __init__(
        self,
        name: str,
        *,
        config: ClusterConfig,
        cloud: AwsCloud,
        interruptions: Interruptions | None,
        controller_role: pulumi.Output[str],
        node_role_arns: list[pulumi.Output[str]],
        where: pulumi.Output[policies.Scope],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`controller_role`: the name of the controller's role."""
        super().__init__("ironburst:components:LaunchAccess", name, None, opts)
        known = pulumi.Output.all(
            where=where, queues=[interruptions.queue_arn] if interruptions else [], node_role_arns=node_role_arns
        )
        rights = known.apply(lambda parts: json.dumps(roles.launching(config, cloud, **parts)))
        child = pulumi.ResourceOptions(parent=self)
        aws.iam.RolePolicy(logical(name, "launch"), role=controller_role, policy=rights, opts=child)
        self.register_outputs({})


class BakingAccess(pulumi.ComponentResource):
    """A policy to attach to the people and the CI that bake images. Output: `policy_arn`."""

    policy_arn: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        where: pulumi.Output[policies.Scope],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("ironburst:components:BakingAccess", name, None, opts)
        policy = aws.iam.Policy(
            logical(name, "baking"),
            description="bakes the images of the burst pools",
            policy=where.apply(lambda known: json.dumps(policies.baking(known, name))),
            tags=tags(name, "baking"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.policy_arn = policy.arn
        self.register_outputs({"policy_arn": self.policy_arn})
