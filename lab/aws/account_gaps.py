"""What people ask of an account before they use it, and moto lacks: quotas, zones that one opts in to, cost allocation
tags, a policy simulator, decoded refusals, Direct Connect.

What an account has of these is a table of its own (`given`), for tests to change. As new it is a new account of AWS's:
no vCPUs for GPUs, no tag that anybody has activated, no gateway.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from moto.ce.responses import CostExplorerResponse
from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends
from moto.iam.exceptions import InvalidInput, NotFoundException
from moto.iam.models import iam_backends
from moto.iam.responses import IamResponse
from moto.servicequotas.exceptions import NoSuchResource
from moto.servicequotas.models import ServiceQuotasBackend
from moto.servicequotas.responses import ServiceQuotasResponse
from moto.sts.responses import TokenResponse

from lab.aws import iam
from lab.aws.capacity import stash
from lab.aws.faults import Ec2Error
from lab.aws.iam_calls import Account
from lab.aws.iam_policy import Check, judge, keys_of
from lab.aws.launch_spec import Params

# EC2's quotas that count in a new account: code -> (name, AWS's default)
EC2_QUOTAS = {
    "L-417A185B": ("Running On-Demand P instances", 0.0),
    "L-DB2E81BA": ("Running On-Demand G and VT instances", 0.0),
    "L-1216C47A": ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 5.0),
    "L-7212CCBC": ("All P4, P3 and P2 Spot Instance Requests", 0.0),
    "L-C4BD4855": ("All P5 Spot Instance Requests", 0.0),
    "L-3819A6DF": ("All G and VT Spot Instance Requests", 0.0),
    "L-34B43A08": ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 5.0),
    "L-0263D0A3": ("EC2-VPC Elastic IPs", 5.0),
}
# of other services: (service, code) -> (name, AWS's default)
OTHER_QUOTAS = {
    ("vpc", "L-DF5E4CA3"): ("Network interfaces per Region", 5000.0),
    ("ebs", "L-7A658B76"): ("Storage for General Purpose SSD (gp3) volumes, in TiB", 50.0),
}
LOCAL_ZONE = {"ZoneType": "local-zone", "State": "available", "OptInStatus": "not-opted-in"}


def given(account: str, region: str, what: str) -> dict[str, Any]:
    """A table of an account in a region, that moto's reset empties: `quotas` (code -> applied value), `zones` (name ->
    fields of DescribeAvailabilityZones), `cost tags` (key -> status; `member`: the account is none that pays),
    link_gaps' `direct-connect-associations` (id -> association, in us-east-1).
    """
    return stash(ec2_backends[account][region], what)


# ---- quotas
def get_service_quota(backend: Any, service_code: str, quota_code: str) -> Params:
    """The applied value. What has never been applied to an account is not found, but for vCPUs, addresses and VPCs."""
    quota = default_quota(backend, service_code, quota_code)
    applied = given(backend.account_id, backend.region_name, "quotas").get(quota_code)
    return quota if applied is None else {**quota, "Value": float(applied)}


def default_quota(backend: Any, service_code: str, quota_code: str) -> Params:
    known = OTHER_QUOTAS | {("ec2", code): quota for code, quota in EC2_QUOTAS.items()}
    if (service_code, quota_code) in known:
        name, value = known[service_code, quota_code]
        said = {"ServiceCode": service_code, "QuotaCode": quota_code, "QuotaName": name}
        return said | {"Value": value, "Adjustable": True}
    rows = backend.list_aws_default_service_quotas(service_code)
    for row in rows:
        if row["QuotaCode"] == quota_code:
            return dict(row)
    raise NoSuchResource


def get_aws_default_service_quota(response: Any) -> str:
    asked = json.loads(response.body)
    return json.dumps({"Quota": default_quota(response.backend, asked["ServiceCode"], asked["QuotaCode"])})


# ---- zones
def describe_availability_zones(backend: Any, p: Params) -> Params:
    """Without AllAvailabilityZones those that nobody has opted in to are left out. An unknown name is an error."""
    filters = {each["Name"]: each["Values"] for each in p.get("Filters", [])}
    found = [
        {
            "ZoneName": zone.name,
            "ZoneId": zone.zone_id,
            "RegionName": zone.region_name,
            "GroupName": f"{zone.region_name}-zg-1",
            "ZoneType": zone.zone_type,
            "State": zone.state,
            "OptInStatus": "opt-in-not-required",
            "Messages": [],
        }
        for zone in backend.describe_availability_zones(filters, zone_names=[], zone_ids=[])
    ]
    rows = {row["ZoneName"]: row for row in found}
    if not filters:
        dallas = f"{backend.region_name}-dfw-2a"
        rows[dallas] = {"ZoneName": dallas, "RegionName": backend.region_name, "ZoneId": "dfw2-az1"} | LOCAL_ZONE
    for name, changes in stash(backend, "zones").items():
        rows[name] = {**rows.get(name, {"ZoneName": name, "RegionName": backend.region_name}), **changes}
    if unknown := set(p.get("ZoneNames", [])) - set(rows):
        raise Ec2Error("InvalidParameterValue", f"Invalid availability zone: [{', '.join(sorted(unknown))}]")
    everything = str(p.get("AllAvailabilityZones", "")).lower() == "true"
    shown = [row for row in rows.values() if everything or row["OptInStatus"] != "not-opted-in"]
    names, ids = p.get("ZoneNames") or [], p.get("ZoneIds") or []
    shown = [row for row in shown if not names or row["ZoneName"] in names]
    return {"AvailabilityZones": [row for row in shown if not ids or row["ZoneId"] in ids]}


# ---- bills
def list_cost_allocation_tags(response: Any) -> Any:
    """A member of an organization is refused whatever its rights are; a tag is there once a bill has it."""
    known = given(response.current_account, "us-east-1", "cost tags")
    if known.get("member"):
        message = "Failed to list Cost Allocation Tags: Linked account doesn't have access to cost allocation tags."
        raise iam.refusal("ce", "denied", message)
    asked = json.loads(response.body).get("TagKeys")
    tags = [{"TagKey": key, "Type": "UserDefined", "Status": status} for key, status in known.items()]
    return json.dumps({"CostAllocationTags": [tag for tag in tags if not asked or tag["TagKey"] in asked]})


# ---- rights
def simulate_principal_policy(response: Any) -> ActionResult:
    """Of identities' own policies. A key that the request doesn't give isn't there, and no tag is looked up."""
    where = Account(response.current_account, response.region)
    source = response._get_param("PolicySourceArn")
    if ":assumed-role/" in source or not source.startswith("arn:"):
        raise InvalidInput(f"Invalid Entity Arn: {source} does not clearly define entity type and name.")
    holder = next((each for each in _holders(where) if each.arn == source), None)
    if holder is None:
        raise NotFoundException(f"The entity {source} cannot be found.")
    documents = iam.policies_of(holder)
    context = {
        entry["ContextKeyName"].lower(): list(entry["ContextKeyValues"])
        for entry in response._get_param("ContextEntries", [])
    }
    results = []
    for action in response._get_param("ActionNames", []):
        for resource in response._get_param("ResourceArns", None) or ["*"]:
            verdict = judge(documents, Check(action, resource, context))
            no = "explicitDeny" if verdict.why.startswith("explicit deny") else "implicitDeny"
            result = {
                "EvalActionName": action,
                "EvalResourceName": resource,
                "EvalDecision": "allowed" if verdict.allowed else no,
                "MatchedStatements": [],
                # as AWS: of all the identity's statements, those on other actions too
                "MissingContextValues": sorted(keys_of(documents) - set(context)),
            }
            results.append(result)
    return ActionResult({"EvaluationResults": results, "IsTruncated": False})


def _holders(where: Account) -> list[Any]:
    backend = iam_backends[where.account][where.partition]
    return [*backend.roles.values(), *backend.users.values()]


def decode_authorization_message(response: Any) -> ActionResult:
    """Of the lab's own: base64 of JSON."""
    try:
        return ActionResult({"DecodedMessage": base64.b64decode(response._get_param("EncodedMessage")).decode()})
    except ValueError:
        raise iam.in_xml(400, "InvalidAuthorizationMessageException", "Message is not valid") from None


def patch(replace: Callable[[Any, str, Any], None]) -> None:
    """Install all of it but EC2's actions, which the caller installs from ACTIONS."""
    replace(ServiceQuotasBackend, "get_service_quota", get_service_quota)
    replace(ServiceQuotasResponse, "get_aws_default_service_quota", get_aws_default_service_quota)
    replace(CostExplorerResponse, "list_cost_allocation_tags", list_cost_allocation_tags)
    replace(IamResponse, "simulate_principal_policy", simulate_principal_policy)
    replace(TokenResponse, "decode_authorization_message", decode_authorization_message)


# ---- disks
def get_ebs_default_kms_key_id(backend: Any, _p: Params) -> Params:
    """AWS's own by its alias, until somebody gave another (`given`'s `ebs`: key)."""
    key = given(backend.account_id, backend.region_name, "ebs").get("key", "alias/aws/ebs")
    arn = f"arn:aws:kms:{backend.region_name}:{backend.account_id}:{key}"
    return {"KmsKeyId": key if key.startswith("arn:") else arn}


ACTIONS = {f.__name__: f for f in (describe_availability_zones, get_ebs_default_kms_key_id)}
