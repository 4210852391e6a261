"""Roles with least privilege: one for nodes, one that the controller assumes."""

import json

import pulumi
import pulumi_aws as aws

from components import policies
from components.burst_pool import BurstPool
from components.interruptions import Interruptions
from ironburst import secrets
from ironburst.config.models import ClusterConfig
from ironburst.naming import image_parameter, logical, tags


def scope(region: str) -> pulumi.Output[policies.Scope]:
    """Where this stack's ARNs lie: asks for the account that the stack runs in."""
    return aws.get_caller_identity_output().apply(
        lambda caller: policies.Scope(partition=caller.arn.split(":")[1], region=region, account=caller.account_id)
    )


class NodeAccess(pulumi.ComponentResource):
    """What a cloud node may do. Outputs: `profile_name` (instance profile), `role_arn`."""

    profile_name: pulumi.Output[str]
    role_arn: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        munge_key: str,
        where: pulumi.Output[policies.Scope],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("ironburst:components:NodeAccess", name, None, opts)
        label, its_tags, child = logical(name, "node"), tags(name, "node"), pulumi.ResourceOptions(parent=self)
        trust = json.dumps(policies.assumed_by_ec2())
        role = aws.iam.Role(
            label, description="GPU nodes: reads the munge key", assume_role_policy=trust, tags=its_tags, opts=child
        )
        if secrets.in_secretsmanager(munge_key):
            rights = where.apply(lambda known: json.dumps(policies.node(known, munge_key)))
            aws.iam.RolePolicy(label, role=role.name, policy=rights, opts=child)
        profile = aws.iam.InstanceProfile(label, role=role.name, tags=its_tags, opts=child)
        self.profile_name, self.role_arn = profile.name, role.arn
        self.register_outputs({"profile_name": self.profile_name, "role_arn": self.role_arn})


class ControllerAccess(pulumi.ComponentResource):
    """What the burst controller may do, as a role that it assumes. Output: `role_arn`."""

    role_arn: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        config: ClusterConfig,
        pools: list[BurstPool],
        interruptions: Interruptions | None,
        security_group_id: pulumi.Output[str],
        node_role_arn: pulumi.Output[str],
        where: pulumi.Output[policies.Scope],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("ironburst:components:ControllerAccess", name, None, opts)
        label, child = logical(name, "controller"), pulumi.ResourceOptions(parent=self)
        role = aws.iam.Role(
            label,
            description="burst controller: launches and ends the pools' nodes",
            assume_role_policy=where.apply(lambda known: json.dumps(policies.assumed_within(known))),
            tags=tags(name, "controller"),
            opts=child,
        )
        known = pulumi.Output.all(
            where=where,
            templates=[arn for pool in pools for arn in pool.template_arns],
            subnets=[subnet for pool in pools for subnet in pool.subnet_ids],
            group=security_group_id,
            queues=[interruptions.queue_arn] if interruptions else [],
            node_role=node_role_arn,
        )
        rights = known.apply(lambda parts: json.dumps(_controller_policy(config, **parts)))
        aws.iam.RolePolicy(label, role=role.name, policy=rights, opts=child)
        self.role_arn = role.arn
        self.register_outputs({"role_arn": self.role_arn})


def _controller_policy(
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
    )
    return policies.controller(where, config.name, allowed, node_role)
