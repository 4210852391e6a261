"""Roles with least privilege: those of nodes, one that the controller assumes; a policy for those who bake images."""

import functools
import json
from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from components.aws import policies
from components.aws.burst_pool import BurstPool
from components.aws.interruptions import Interruptions
from ironburst.config.aws import eks_cluster
from ironburst.config.aws.data_models import DataSet
from ironburst.config.aws.models import AwsCloud, AwsGroup, AwsPool, Ci, Controller
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import Scheduler, Slurm
from ironburst.nodes.naming import image_parameter, logical, node_role, tags
from ironburst.system import secrets

SESSION_S = 3600
"""how long credentials that a certificate gave are good for: the longest that a role allows unless it is told more"""


WORDS = {"munge_key": "the munge key", "join_token": "the join token"}
"""what rented nodes join with, by the key of the stack file that names it"""


def scope(region: str) -> pulumi.Output[policies.Scope]:
    """Where this stack's ARNs lie: asks for the account that the stack runs in."""
    return aws.get_caller_identity_output().apply(
        lambda caller: policies.Scope(partition=caller.arn.split(":")[1], region=region, account=caller.account_id)
    )


EKS_NODE = ("AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly")
"""what AWS's own pods of a node need of its role: addresses for pods, and the images of those pods"""


def _joins_with(scheduler: Scheduler) -> tuple[str, list[str]]:
    """What rented nodes join with, for people, and the references to it that they can read."""
    if not scheduler.joins_with:
        return "nothing", []
    keys = dict([scheduler.joins_with])
    if isinstance(scheduler, Slurm) and scheduler.bridge:
        keys["join_token"] = scheduler.bridge.join_token
    said = " and ".join(WORDS[key] for key in keys)
    return said, [reference for reference in keys.values() if secrets.in_a_store(reference)]


class NodeAccess(pulumi.ComponentResource):
    """What cloud nodes may do: rented ones read what they join with, fixed ones nothing (Ansible writes their key);
    those with data in S3 have a role of their pool's or group's own, which reads that, too. Those of EKS have what
    AWS's pods need there.
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
        self._name, self._where, self._cloud = name, where, cloud
        self.of_eks = {}
        rented = {each.kind: self._rented(config, each) for each in config.schedulers if self._needed(config, each)}
        on_eks = [group for group in cloud.groups if eks_cluster.cluster_of(config, group)]
        fixed = self._role("fixed", "fixed GPU nodes: no rights")
        joining = self._role("fixed-eks", "fixed GPU nodes of EKS: join", eks=True) if on_eks else fixed
        self._profiles: dict[str, pulumi.Output[str]] = {}
        used = []
        for pool in cloud.pools:
            scheduler, data = config.scheduler_of(pool), self._data(pool)
            said, joins_with = _joins_with(scheduler)
            what = f"rented GPU nodes of {pool.name}: reads {said} and their data"
            own, eks = node_role("", pool.name), bool(eks_cluster.cluster_of(config, pool))
            role, profile = self._role(own, what, joins_with, data, eks=eks) if data else rented[scheduler.kind]
            self._profiles[pool.name] = profile
            used.append(role)
        self.role_arns = [role.arn for role in dict.fromkeys(used)]
        for group in cloud.groups:
            data, what = self._data(group), f"fixed GPU nodes of {group.name}: reads their data"
            eks, shared = group in on_eks, joining if group in on_eks else fixed
            _, profile = self._role(logical("fixed", group.name), what, (), data, eks=eks) if data else shared
            self._profiles[group.name] = profile
        self.register_outputs({"role_arns": self.role_arns})

    def _rented(self, config: ClusterConfig, scheduler: Scheduler) -> tuple[aws.iam.Role, pulumi.Output[str]]:
        """The role of what joins this scheduler: it reads nothing of the other."""
        said, joins_with = _joins_with(scheduler)
        kind = node_role("" if scheduler is config.scheduler else scheduler.kind, "")
        return self._role(kind, f"rented GPU nodes: reads {said}", joins_with, eks=not scheduler.joins_with)

    def _needed(self, config: ClusterConfig, scheduler: Scheduler) -> bool:
        """A role that reads a secret is there before the pools are; one of EKS only with them."""
        return bool(scheduler.joins_with) or any(config.scheduler_of(pool) is scheduler for pool in self._cloud.pools)

    def profile(self, nodes: AwsGroup | AwsPool) -> pulumi.Output[str]:
        """The name of their instance profile."""
        return self._profiles[nodes.name]

    def _data(self, nodes: AwsGroup | AwsPool) -> list[DataSet]:
        """What they read in S3. FSx asks for no right, only for a way through its security group."""
        declared = [self._cloud.data[name] for name in nodes.data if name in self._cloud.data]
        return [each for each in declared if each.s3]

    def _role(
        self,
        kind: str,
        description: str,
        joins_with: Sequence[str] = (),
        data: Sequence[DataSet] = (),
        *,
        eks: bool = False,
    ) -> tuple[aws.iam.Role, pulumi.Output[str]]:
        """A role that EC2 gives to instances, and the name of its instance profile."""
        label, child = logical(self._name, kind), pulumi.ResourceOptions(parent=self)
        its_tags = tags(self._name, kind)
        trust = self._where.apply(lambda known: json.dumps(policies.assumed_by_ec2(known.partition)))
        role = aws.iam.Role(label, description=description, assume_role_policy=trust, tags=its_tags, opts=child)
        if joins_with or data:
            rights = self._where.apply(lambda known: json.dumps(policies.node(known, joins_with, data)))
            aws.iam.RolePolicy(label, role=role.name, policy=rights, opts=child)
        for policy in EKS_NODE if eks else ():
            arn = self._where.apply(functools.partial(policies.Scope.managed_policy, name=policy))
            aws.iam.RolePolicyAttachment(logical(label, policy), role=role.name, policy_arn=arn, opts=child)
        if eks:
            self.of_eks[kind] = role
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
        ci: Ci,
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
        pools: list[BurstPool],
        interruptions: Interruptions | None,
        controller_role: pulumi.Output[str],
        security_group_id: pulumi.Output[str],
        node_role_arns: list[pulumi.Output[str]],
        where: pulumi.Output[policies.Scope],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`controller_role`: the name of the controller's role."""
        super().__init__("ironburst:components:LaunchAccess", name, None, opts)
        known = pulumi.Output.all(
            where=where,
            templates=[arn for pool in pools for arn in pool.template_arns],
            subnets=[subnet for pool in pools for subnet in pool.subnet_ids],
            placements=[arn for pool in pools for arn in pool.placement_arns],
            group=security_group_id,
            queues=[interruptions.queue_arn] if interruptions else [],
            node_roles=node_role_arns,
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
    placements: list[str],
    group: str,
    queues: list[str],
    node_roles: list[str],
) -> policies.Document:
    assert config.cloud
    declared = config.cloud.pools
    named = [f"subnet/{subnet}" for subnet in dict.fromkeys(subnets)] + [f"security-group/{group}"]
    named += [f"capacity-reservation/{reserved}" for pool in declared if (reserved := _reserved(pool))]
    named += [f"key-pair/{config.ssh.key_name}"] if config.ssh.key_name else []
    groups = [pool.capacity_reservation_group for pool in declared if pool.capacity_reservation_group]
    cluster = config.kubernetes or config.bridge
    allowed = policies.Pools(
        names=[pool.name for pool in declared],
        instance_types=sorted({name for pool in declared for name in pool.types}),
        template_arns=templates,
        used_arns=[*(where.arn("ec2", resource) for resource in named), *placements, *groups],
        spot=any("spot" in pool.markets for pool in declared),
        queue_arns=queues,
        image_parameter_arns=[
            where.arn("ssm", f"parameter{image_parameter(config.name, pool.name)}") for pool in declared
        ],
        image_owners=_image_owners(config.cloud, where),
        join_token=cluster.join_token if cluster else None,
    )
    return policies.launching(where, config.name, allowed, node_roles)


def _reserved(pool: AwsPool) -> str | None:
    """The reservation of its launches by id. EC2 chooses one of a group's, so a group needs the right to any."""
    if pool.capacity_reservation_group:
        return "*"
    return pool.capacity_block.id if pool.capacity_block else pool.capacity_reservation


def _image_owners(cloud: AwsCloud, where: policies.Scope) -> list[str]:
    return [where.account, *(owner for owner in cloud.images.owners if owner != where.account)]
