"""EKS: cluster, access entry, and the access policies of one. A cluster is waited for, also when it goes."""

from __future__ import annotations

from typing import Any

from lab.aws_plugin.spec import Aws, Resource, changed, is_gone, tagger
from lab.provider.wire import Props

VPC = "subnetIds securityGroupIds endpointPrivateAccess endpointPublicAccess publicAccessCidrs"


def eks(aws: Aws) -> Any:
    return aws.client("eks")


def tags(new: Props) -> Props:
    return {"tags": new["tagsAll"]} if new.get("tagsAll") else {}


def lowered(props: Props, names: str) -> Props:
    """EKS names its parameters as the SDK does."""
    return {name: props[name] for name in names.split() if props.get(name) is not None}


tag = tagger(
    "eks",
    lambda _rid, state: {"resourceArn": state.get("accessEntryArn") or state["arn"]},
    tags="tags",
    keys="tagKeys",
    shape=dict,
)


# ---- Cluster
def create_cluster(aws: Aws, new: Props) -> str:
    made = eks(aws).create_cluster(
        **lowered(new, "name roleArn version accessConfig kubernetesNetworkConfig"),
        resourcesVpcConfig=lowered(new["vpcConfig"], VPC),
        **tags(new),
    )
    return str(made["cluster"]["name"])


def status(aws: Aws, rid: str) -> str:
    """Empty: it is gone."""
    try:
        return str(eks(aws).describe_cluster(name=rid)["cluster"]["status"])
    except Exception as error:
        if is_gone(error):
            return ""
        raise


def active(aws: Aws, rid: str) -> bool:
    return status(aws, rid) == "ACTIVE"


def apply_cluster(aws: Aws, rid: str, old: Props, new: Props) -> None:
    """One after the other: EKS takes no second change before the first is done."""
    if changed(old, new, "version"):
        eks(aws).update_cluster_version(name=rid, version=new["version"])
        aws.wait(f"{rid} updated", lambda: active(aws, rid))
    if changed(old, new, "vpcConfig"):
        eks(aws).update_cluster_config(name=rid, resourcesVpcConfig=lowered(new["vpcConfig"], VPC))


def read_cluster(aws: Aws, rid: str, state: Props) -> Props | None:
    seen = eks(aws).describe_cluster(name=rid)["cluster"]
    access = seen["accessConfig"] | {
        "bootstrapClusterCreatorAdminPermissions": (state.get("accessConfig") or {}).get(
            "bootstrapClusterCreatorAdminPermissions"
        )
    }
    return {
        **lowered(seen, "name arn roleArn version endpoint platformVersion status certificateAuthority"),
        "vpcConfig": lowered(seen["resourcesVpcConfig"], VPC + " vpcId clusterSecurityGroupId"),
        "accessConfig": access,
        "kubernetesNetworkConfig": lowered(seen["kubernetesNetworkConfig"], "serviceIpv4Cidr ipFamily"),
        "tags": dict(seen["tags"]),
    }


def delete_cluster(aws: Aws, rid: str, _state: Props) -> None:
    eks(aws).delete_cluster(name=rid)
    aws.wait(f"{rid} gone", lambda: not status(aws, rid))


# ---- AccessEntry, AccessPolicyAssociation
def named(rid: str) -> Props:
    cluster, _, arn = rid.partition(":")
    return {"clusterName": cluster, "principalArn": arn}


def create_entry(aws: Aws, new: Props) -> str:
    asked = lowered(new, "clusterName principalArn type kubernetesGroups")
    user = {"username": new["userName"]} if new.get("userName") else {}
    eks(aws).create_access_entry(**asked, **user, **tags(new))
    return f"{new['clusterName']}:{new['principalArn']}"


def read_entry(aws: Aws, rid: str, _state: Props) -> Props | None:
    seen = eks(aws).describe_access_entry(**named(rid))["accessEntry"]
    shown = lowered(seen, "clusterName principalArn type accessEntryArn kubernetesGroups")
    return shown | {"userName": seen["username"], "tags": dict(seen["tags"])}


def create_right(aws: Aws, new: Props) -> str:
    which = lowered(new, "clusterName principalArn policyArn")
    eks(aws).associate_access_policy(**which, accessScope=new["accessScope"])
    return "#".join((new["clusterName"], new["principalArn"], new["policyArn"]))


def right(rid: str) -> Props:
    cluster, principal, policy = rid.split("#")
    return {"clusterName": cluster, "principalArn": principal, "policyArn": policy}


def read_right(aws: Aws, rid: str, _state: Props) -> Props | None:
    which = right(rid)
    policy = which.pop("policyArn")
    found = eks(aws).list_associated_access_policies(**which)["associatedAccessPolicies"]
    seen = next((each for each in found if each["policyArn"] == policy), None)
    scope = lowered(seen["accessScope"], "type namespaces") if seen else {}
    return {**which, "policyArn": policy, "accessScope": scope} if seen else None


SPECS = [
    Resource(
        "aws:eks/cluster:Cluster",
        "name roleArn version vpcConfig{" + VPC + "} accessConfig{authenticationMode "
        "bootstrapClusterCreatorAdminPermissions} kubernetesNetworkConfig{serviceIpv4Cidr}",
        create=create_cluster,
        read=read_cluster,
        delete=delete_cluster,
        apply=apply_cluster,
        ready=active,
        tag=tag,
        name="name",
        replace="roleArn kubernetesNetworkConfig.serviceIpv4Cidr accessConfig.bootstrapClusterCreatorAdminPermissions",
        volatile="platformVersion status",
    ),
    Resource(
        "aws:eks/accessEntry:AccessEntry",
        "clusterName principalArn type userName",
        create=create_entry,
        read=read_entry,
        delete=lambda aws, rid, _state: eks(aws).delete_access_entry(**named(rid)),
        tag=tag,
        replace="clusterName principalArn type userName",
    ),
    Resource(
        "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
        "clusterName principalArn policyArn accessScope{type namespaces}",
        create=create_right,
        read=read_right,
        delete=lambda aws, rid, _state: eks(aws).disassociate_access_policy(**right(rid)),
        replace="clusterName principalArn policyArn accessScope.type accessScope.namespaces",
    ),
]
