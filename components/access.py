"""Roles with least privilege: two for nodes, one that the controller assumes; a policy for those who bake images."""

import json

import pulumi
import pulumi_aws as aws

from components import policies
from components.burst_pool import BurstPool
from components.interruptions import Interruptions
from ironburst import secrets
from ironburst.config.cloud_models import Cloud, Controller
from ironburst.config.models import ClusterConfig
from ironburst.naming import image_parameter, logical, tags

SESSION_S = 3600
"""how long credentials that a certificate gave are good for: the longest that a role allows unless it is told more"""


def scope(region: str) -> pulumi.Output[policies.Scope]:
    """Where this stack's ARNs lie: asks for the account that the stack runs in."""
    return aws.get_caller_identity_output().apply(
        lambda caller: policies.Scope(partition=caller.arn.split(":")[1], region=region, account=caller.account_id)
    )


class NodeAccess(pulumi.ComponentResource):
    """What a cloud node may do. Outputs: `profile_name` (instance profile of rented nodes: it reads the munge key),
    `role_arn` (its role), `fixed_profile_name` (of fixed nodes: it may nothing, Ansible writes their key).
    """

    profile_name: pulumi.Output[str]
    role_arn: pulumi.Output[str]
    fixed_profile_name: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        munge_key: str,
        where: pulumi.Output[policies.Scope],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("ironburst:components:NodeAccess", name, None, opts)
        rented, self.profile_name = self._role(name, "node", "rented GPU nodes: reads the munge key")
        _, self.fixed_profile_name = self._role(name, "fixed", "fixed GPU nodes: no rights")
        self.role_arn = rented.arn
        if secrets.in_secretsmanager(munge_key):
            rights = where.apply(lambda known: json.dumps(policies.node(known, munge_key)))
            child = pulumi.ResourceOptions(parent=self)
            aws.iam.RolePolicy(logical(name, "node"), role=rented.name, policy=rights, opts=child)
        self.register_outputs(
            {
                "profile_name": self.profile_name,
                "role_arn": self.role_arn,
                "fixed_profile_name": self.fixed_profile_name,
            }
        )

    def _role(self, name: str, kind: str, description: str) -> tuple[aws.iam.Role, pulumi.Output[str]]:
        """A role that EC2 gives to instances, and the name of its instance profile."""
        label, its_tags, child = logical(name, kind), tags(name, kind), pulumi.ResourceOptions(parent=self)
        trust = json.dumps(policies.assumed_by_ec2())
        role = aws.iam.Role(label, description=description, assume_role_policy=trust, tags=its_tags, opts=child)
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


class LaunchAccess(pulumi.ComponentResource):
    """The controller's right to launch, as narrow as the pools that are declared."""

    def __init__(
        self,
        name: str,
        *,
        config: ClusterConfig,
        pools: list[BurstPool],
        interruptions: Interruptions | None,
        controller_role: pulumi.Output[str],
        security_group_id: pulumi.Output[str],
        node_role_arn: pulumi.Output[str],
        where: pulumi.Output[policies.Scope],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`controller_role`: the name of the controller's role."""
        super().__init__("ironburst:components:LaunchAccess", name, None, opts)
        known = pulumi.Output.all(
            where=where,
            templates=[arn for pool in pools for arn in pool.template_arns],
            subnets=[subnet for pool in pools for subnet in pool.subnet_ids],
            group=security_group_id,
            queues=[interruptions.queue_arn] if interruptions else [],
            node_role=node_role_arn,
        )
        rights = known.apply(lambda parts: json.dumps(_launching(config, **parts)))
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


def _launching(
    config: ClusterConfig,
    where: policies.Scope,
    templates: list[str],
    subnets: list[str],
    group: str,
    queues: list[str],
    node_role: str,
) -> policies.Document:
    assert config.cloud
    declared = config.cloud.pools
    named = [f"subnet/{subnet}" for subnet in sorted(set(subnets))] + [f"security-group/{group}"]
    named += [f"capacity-reservation/{pool.capacity_reservation}" for pool in declared if pool.capacity_reservation]
    named += [f"key-pair/{config.ssh.key_name}"] if config.ssh.key_name else []
    allowed = policies.Pools(
        names=[pool.name for pool in declared],
        instance_types=sorted({pool.instance_type for pool in declared}),
        template_arns=templates,
        used_arns=[where.arn("ec2", resource) for resource in named],
        spot=any("spot" in pool.markets for pool in declared),
        queue_arns=queues,
        image_parameter_arns=[
            where.arn("ssm", f"parameter{image_parameter(config.name, pool.name)}") for pool in declared
        ],
        image_owners=_image_owners(config.cloud, where),
    )
    return policies.launching(where, config.name, allowed, node_role)


def _image_owners(cloud: Cloud, where: policies.Scope) -> list[str]:
    return [where.account, *(owner for owner in cloud.images.owners if owner != where.account)]
