"""Security groups and their rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lab.aws_plugin.spec import Aws, Resource, ec2_tag, first, pick, tag_map, tag_spec
from lab.provider.wire import Props

BLOCK = "cidrBlocks ipv6CidrBlocks prefixListIds securityGroups self protocol fromPort toPort description"
RULE = "securityGroupId ipProtocol fromPort toPort cidrIpv4 cidrIpv6 prefixListId referencedSecurityGroupId description"
Atom = tuple[str, Any, Any, str, str, str]  # protocol, from, to, kind of peer, peer, description
RANGES = {
    "cidrIpv4": ("IpRanges", "CidrIp"),
    "cidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
    "prefixListId": ("PrefixListIds", "PrefixListId"),
    "group": ("UserIdGroupPairs", "GroupId"),
}
LISTS = {
    "cidrBlocks": "cidrIpv4",
    "ipv6CidrBlocks": "cidrIpv6",
    "prefixListIds": "prefixListId",
    "securityGroups": "group",
}


# ---- a group's inline rules: compared one peer at a time, because AWS groups them its own way
def atoms(blocks: Iterable[Props], own: str) -> set[Atom]:
    out = set()
    for b in blocks:
        protocol = "-1" if str(b["protocol"]) in ("all", "-1") else str(b["protocol"])
        ports = (None, None) if protocol == "-1" else (b.get("fromPort"), b.get("toPort"))
        peers = [(kind, peer) for key, kind in LISTS.items() for peer in b.get(key) or []] + (
            [("group", own)] if b.get("self") else []
        )
        out |= {(protocol, *ports, kind, peer, b.get("description") or "") for kind, peer in peers}
    return out


def atoms_of(permissions: Iterable[Props]) -> set[Atom]:
    return {
        (
            p["IpProtocol"],
            *((None, None) if p["IpProtocol"] == "-1" else (p.get("FromPort"), p.get("ToPort"))),
            kind,
            peer[name],
            peer.get("Description") or "",
        )
        for p in permissions
        for kind, (key, name) in RANGES.items()
        for peer in p.get(key, [])
    }


def permission(atom: Atom) -> Props:
    protocol, start, end, kind, peer, description = atom
    key, name = RANGES[kind]
    ports = {} if start is None else {"FromPort": start, "ToPort": end}
    return {
        "IpProtocol": protocol,
        **ports,
        key: [{name: peer, **({"Description": description} if description else {})}],
    }


def block(atom: Atom, own: str) -> Props:
    protocol, start, end, kind, peer, description = atom
    where = (
        {"self": True} if (kind, peer) == ("group", own) else {next(k for k, v in LISTS.items() if v == kind): [peer]}
    )
    return {
        "protocol": protocol,
        "fromPort": start or 0,
        "toPort": end or 0,
        **where,
        **({"description": description} if description else {}),
    }


# ---- SecurityGroup
def group(aws: Aws, rid: str) -> Props:
    return first(aws.ec2.describe_security_groups(GroupIds=[rid])["SecurityGroups"])


def create_group(aws: Aws, new: Props) -> str:
    where = {"VpcId": new["vpcId"]} if new.get("vpcId") else {}
    return aws.ec2.create_security_group(
        GroupName=new["name"],
        Description=new.get("description") or "Managed by Pulumi",
        **where,
        **tag_spec("security-group", new),
    )["GroupId"]


def apply_group(aws: Aws, rid: str, old: Props, new: Props) -> None:
    """As the real provider: a new group loses the allow-all egress rule that AWS gives it; inline rules are the whole
    list.
    """
    for side, key in (("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress")):
        if old and old.get(side) == new.get(side):
            continue
        there, wanted = atoms_of(group(aws, rid).get(key, [])), atoms(new.get(side) or [], rid)
        if gone := sorted(there - wanted, key=str):
            getattr(aws.ec2, f"revoke_security_group_{side}")(GroupId=rid, IpPermissions=list(map(permission, gone)))
        if fresh := sorted(wanted - there, key=str):
            getattr(aws.ec2, f"authorize_security_group_{side}")(
                GroupId=rid, IpPermissions=list(map(permission, fresh))
            )


def read_group(aws: Aws, rid: str, state: Props) -> Props | None:
    described = group(aws, rid)
    out = {
        **pick(described, "vpcId description ownerId"),
        "name": described["GroupName"],
        "arn": aws.arn("ec2", f"security-group/{rid}"),
        "tags": tag_map(described.get("Tags")),
    }
    for side, key in (("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress")):
        there, known = atoms_of(described.get(key, [])), state.get(side)
        out[side] = (
            known
            if known is not None and atoms(known, rid) == there
            else [block(a, rid) for a in sorted(there, key=str)]
        )
    return out


def delete_group(aws: Aws, rid: str, state: Props) -> None:
    if state.get("revokeRulesOnDelete"):
        described = group(aws, rid)
        for side, key in (("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress")):
            if there := sorted(atoms_of(described.get(key, [])), key=str):
                getattr(aws.ec2, f"revoke_security_group_{side}")(
                    GroupId=rid, IpPermissions=list(map(permission, there))
                )
    aws.ec2.delete_security_group(GroupId=rid)


# ---- rules as resources of their own
def atom_of(props: Props) -> Atom:
    kind, peer = next(
        (k, props[p])
        for p, k in (
            ("cidrIpv4", "cidrIpv4"),
            ("cidrIpv6", "cidrIpv6"),
            ("prefixListId", "prefixListId"),
            ("referencedSecurityGroupId", "group"),
        )
        if props.get(p)
    )
    protocol = str(props["ipProtocol"])
    ports = (None, None) if protocol == "-1" else (props.get("fromPort"), props.get("toPort"))
    return protocol, *ports, kind, peer, props.get("description") or ""


PEERS = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")


def check_rule(_olds: Props, news: Props) -> list[tuple[str, str]]:
    problems = []
    count = sum(k in news for k in PEERS)
    if count != 1:
        problems.append(("cidrIpv4", f"exactly one of {', '.join(PEERS)} is needed, {count} are given"))
    ports = news.get("fromPort", -1) != -1 or news.get("toPort", -1) != -1
    if ports and str(news.get("ipProtocol")) == "-1":
        problems.append(("fromPort", "a rule of protocol -1 takes no ports"))
    return problems


def apply_rule(aws: Aws, rid: str, _old: Props, new: Props) -> None:
    ports = {"FromPort": -1, "ToPort": -1} if str(new["ipProtocol"]) == "-1" else {}
    flat = {"IpProtocol": str(new["ipProtocol"]), **ports, **pick_rule(new)}
    aws.ec2.modify_security_group_rules(
        GroupId=new["securityGroupId"], SecurityGroupRules=[{"SecurityGroupRuleId": rid, "SecurityGroupRule": flat}]
    )


def pick_rule(new: Props) -> Props:
    names = {
        "fromPort": "FromPort",
        "toPort": "ToPort",
        "cidrIpv4": "CidrIpv4",
        "cidrIpv6": "CidrIpv6",
        "prefixListId": "PrefixListId",
        "referencedSecurityGroupId": "ReferencedGroupId",
        "description": "Description",
    }
    return {boto: new[wire] for wire, boto in names.items() if new.get(wire) is not None}


def read_rule(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = aws.ec2.describe_security_group_rules(SecurityGroupRuleIds=[rid])["SecurityGroupRules"]
    if not described:
        return None
    seen = pick(described[0], "ipProtocol fromPort toPort cidrIpv4 cidrIpv6 prefixListId description")
    if seen["ipProtocol"] == "-1":
        seen = {k: v for k, v in seen.items() if k not in ("fromPort", "toPort")}
    referenced = described[0].get("ReferencedGroupInfo", {}).get("GroupId")
    return {
        **seen,
        "securityGroupId": described[0]["GroupId"],
        "securityGroupRuleId": rid,
        **({"referencedSecurityGroupId": referenced} if referenced else {}),
        "arn": aws.arn("ec2", f"security-group-rule/{rid}"),
        "tags": tag_map(described[0].get("Tags")),
    }


def rule(side: str) -> Resource:
    def create(aws: Aws, new: Props) -> str:
        made = getattr(aws.ec2, f"authorize_security_group_{side}")(
            GroupId=new["securityGroupId"],
            IpPermissions=[permission(atom_of(new))],
            **tag_spec("security-group-rule", new),
        )
        return made["SecurityGroupRules"][0]["SecurityGroupRuleId"]

    def delete(aws: Aws, rid: str, state: Props) -> None:
        getattr(aws.ec2, f"revoke_security_group_{side}")(GroupId=state["securityGroupId"], SecurityGroupRuleIds=[rid])

    name = f"SecurityGroup{side.title()}Rule"
    return Resource(
        f"aws:vpc/securityGroup{side.title()}Rule:{name}",
        RULE,
        create=create,
        read=read_rule,
        delete=delete,
        apply=apply_rule,
        tag=ec2_tag,
        check=check_rule,
        replace="securityGroupId",
    )


SPECS = [
    Resource(
        "aws:ec2/securityGroup:SecurityGroup",
        f"name vpcId description ingress{{{BLOCK}}} egress{{{BLOCK}}} revokeRulesOnDelete",
        create=create_group,
        read=read_group,
        delete=delete_group,
        apply=apply_group,
        finish=True,
        tag=ec2_tag,
        name="name",
        replace="vpcId description",
    ),
    rule("ingress"),
    rule("egress"),
]
