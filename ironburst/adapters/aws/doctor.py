"""What `ironburst doctor` asks of AWS. Nothing here changes anything: every call reads, or is a dry run.

The caller's rights, not the controller's; docs/how-to/doctor.md has the policy. A question that is refused, or that
nobody answers, is Unasked and names the right that lacks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, CredentialRetrievalError, NoCredentialsError

from ironburst.adapters.aws import doctor_values as aws_doctor_values
from ironburst.adapters.aws.cloud import parameters
from ironburst.doctor.aws.account import (
    Association,
    Caller,
    DryRun,
    IamDecision,
    IamQuestion,
    ImageFacts,
    InUse,
    Reservation,
    Route,
    Secret,
    ServiceQuota,
    TypeFacts,
    Vpn,
    Zone,
)
from ironburst.doctor.checks import Unasked
from ironburst.nodes import naming
from ironburst.ports import ALIVE, LaunchRequest

PATIENT = Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=5, read_timeout=20)
DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"}
NO_LOGIN = {
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "AuthFailure",
}
HOMES = {"cn-": "cn-north-1", "us-gov-": "us-gov-west-1"}  # of other partitions than aws
LOG_IN = "log in (aws sso login) or set AWS_PROFILE, and run again"
# actions that IAM calls otherwise than the API
RIGHTS = {"budgets:DescribeBudgets": "budgets:ViewBudget"}
ENCODED = re.compile(r"\s*Encoded authorization failure message: (\S+)")
TARGETS = ("GatewayId", "TransitGatewayId", "NatGatewayId", "VpcPeeringConnectionId", "NetworkInterfaceId")
NAT_COUNTED = ("pending", "available", "deleting")


class AwsAccount:
    """The Account (ironburst.doctor.aws.account) of one region."""

    def __init__(self, region: str, session: Any = None):
        """`session`: a boto3.Session, for tests."""
        self._region, self._session = region, session
        self._clients: dict[str, Any] = {}
        self._caller: Caller | None = None
        self._roles: dict[str, str | None] = {}
        self._controller: Any = None

    # ---- asking
    def _client(self, name: str) -> Any:
        """`name`: a service; with @REGION in that one."""
        if name not in self._clients:
            self._session = self._session or boto3.Session()
            service, _, region = name.partition("@")
            self._clients[name] = self._session.client(service, region_name=region or self._region, config=PATIENT)
        return self._clients[name]

    def _ask(self, service: str, method: str, absent: Sequence[str] = (), **asked: Any) -> Any:
        """One call's answer; None for an error code of `absent`. Raises Unasked."""
        try:
            return getattr(self._client(service), method)(**asked)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in absent:
                return None
            raise _unasked(error, self._client(service)) from None
        except (NoCredentialsError, CredentialRetrievalError) as error:
            raise Unasked(f"no credentials: {error}", LOG_IN) from None
        except BotoCoreError as error:
            todo = f"check the network and the region {self._region}, and run again"
            raise Unasked(f"no answer of {service}: {error}", todo) from None

    def _all(self, service: str, method: str, key: str, token: str, **asked: Any) -> list[Any]:
        """The items of every page. `token`: what the request calls the next page's."""
        found, page = [], self._ask(service, method, **asked)
        found += page.get(key, [])
        while following := page.get(token):
            page = self._ask(service, method, **asked, **{token: following})
            found += page.get(key, [])
        return found

    def _ec2(
        self, method: str, key: str, filters: Mapping[str, Sequence[str]] | None = None, **asked: Any
    ) -> list[Any]:
        wanted = [{"Name": name, "Values": list(values)} for name, values in (filters or {}).items()]
        return self._all("ec2", method, key, "NextToken", **asked, **({"Filters": wanted} if wanted else {}))

    # ---- who, and what the account has
    def caller(self) -> Caller:
        """STS, once, where every account is known: one that hasn't enabled a region is nobody there."""
        if self._caller is None:
            home = next((home for begin, home in HOMES.items() if self._region.startswith(begin)), "us-east-1")
            answer = self._ask(f"sts@{home}", "get_caller_identity")
            self._caller = Caller(answer["Arn"], answer["Account"])
        return self._caller

    def region_opt_in(self) -> str:
        """Asked of the region itself, which takes nobody's credentials where it isn't enabled."""
        answer = self._ask("ec2", "describe_regions", ("AuthFailure",), RegionNames=[self._region])
        return str(answer["Regions"][0]["OptInStatus"]) if answer else "not-opted-in"

    def quota(self, service: str, code: str) -> ServiceQuota:
        """Where no value was ever applied to the account, AWS's default is what counts."""
        wanted = {"ServiceCode": service, "QuotaCode": code}
        answer = self._ask("service-quotas", "get_service_quota", ("NoSuchResourceException",), **wanted)
        answer = answer or self._ask("service-quotas", "get_aws_default_service_quota", **wanted)
        return ServiceQuota(answer["Quota"]["QuotaName"], float(answer["Quota"]["Value"]))

    def in_use(self, cluster: str) -> InUse:
        """What has not the cluster's tag."""

        def others(found: list[Any]) -> list[Any]:
            return [each for each in found if aws_doctor_values.tags(each).get(naming.CLUSTER_TAG) != cluster]

        gateways = others(self._ec2("describe_nat_gateways", "NatGateways"))
        subnets = {each["SubnetId"] for each in gateways if each["State"] in NAT_COUNTED and each.get("SubnetId")}
        rows = self._ec2("describe_subnets", "Subnets", {"subnet-id": sorted(subnets)}) if subnets else []
        zones = {row["SubnetId"]: row["AvailabilityZone"] for row in rows}
        interfaces = others(self._ec2("describe_network_interfaces", "NetworkInterfaces"))
        volumes = others(self._ec2("describe_volumes", "Volumes", {"volume-type": ["gp3"]}))
        counted = [zones.get(each.get("SubnetId", "")) for each in gateways if each["State"] in NAT_COUNTED]
        return InUse(
            addresses=len(others(self._ec2("describe_addresses", "Addresses"))),
            vpcs=len(others(self._ec2("describe_vpcs", "Vpcs"))),
            nat_gateways={zone: counted.count(zone) for zone in zones.values()},
            interfaces=len(interfaces),
            gp3_gib=sum(int(each["Size"]) for each in volumes),
        )

    def fixed(self, cluster: str) -> dict[str, str]:
        """By the tags that the declaration sets."""
        wanted = {**_ours(cluster), "tag-key": [naming.GROUP_TAG], "instance-state-name": sorted(ALIVE)}
        rows = self._ec2("describe_instances", "Reservations", wanted)
        return {
            each["InstanceId"]: aws_doctor_values.tags(each)[naming.GROUP_TAG]
            for row in rows
            for each in row["Instances"]
        }

    def nat_gateways(self, cluster: str) -> set[str]:
        """DescribeNatGateways, which for an hour also shows those that are deleted."""
        rows = self._ec2("describe_nat_gateways", "NatGateways", _ours(cluster))
        return {row["NatGatewayId"] for row in rows if row["State"] in ("pending", "available")}

    def addresses(self, cluster: str) -> dict[str, bool]:
        """DescribeAddresses."""
        rows = self._ec2("describe_addresses", "Addresses", _ours(cluster))
        return {row["AllocationId"]: bool(row.get("AssociationId")) for row in rows}

    def zones(self) -> dict[str, Zone]:
        """DescribeAvailabilityZones shows those not opted in only when asked for all."""
        rows = self._ec2("describe_availability_zones", "AvailabilityZones", AllAvailabilityZones=True)
        return {row["ZoneName"]: Zone(row["State"], row.get("OptInStatus", "")) for row in rows}

    def offered(self, types: Sequence[str]) -> set[tuple[str, str]]:
        """DescribeInstanceTypeOfferings."""
        method, key = "describe_instance_type_offerings", "InstanceTypeOfferings"
        rows = self._ec2(method, key, {"instance-type": types}, LocationType="availability-zone")
        return {(row["InstanceType"], row["Location"]) for row in rows}

    def types(self, names: Sequence[str]) -> dict[str, TypeFacts]:
        """By a filter: a name that the region doesn't know would fail the whole call."""
        rows = self._ec2("describe_instance_types", "InstanceTypes", {"instance-type": names})
        return {
            row["InstanceType"]: TypeFacts(
                vcpus=int(row["VCpuInfo"]["DefaultVCpus"]),
                architectures=tuple(row["ProcessorInfo"]["SupportedArchitectures"]),
                boot_modes=tuple(row.get("SupportedBootModes", ())),
            )
            for row in rows
        }

    # ---- images
    def parameter(self, name: str) -> str | None:
        """GetParameter."""
        answer = self._ask("ssm", "get_parameter", ("ParameterNotFound",), Name=name)
        return str(answer["Parameter"]["Value"]) if answer else None

    def image(self, image_id: str) -> ImageFacts | None:
        """DescribeImages."""
        absent = ("InvalidAMIID.NotFound", "InvalidAMIID.Unavailable", "InvalidAMIID.Malformed")
        answer = self._ask("ec2", "describe_images", absent, ImageIds=[image_id])
        return aws_doctor_values.image(answer["Images"][0]) if answer and answer["Images"] else None

    # ---- rights
    def role(self, cluster: str, name: str) -> str | None:
        """Pulumi draws seven characters behind a name; of several the youngest."""
        label = naming.logical(cluster, name)
        if label not in self._roles:
            rows = self._all("iam", "list_roles", "Roles", "Marker")
            rows = [row for row in rows if re.fullmatch(re.escape(label) + "(-[0-9a-f]{7})?", row["RoleName"])]
            rows.sort(key=lambda row: row["CreateDate"], reverse=True)
            mine = (row["Arn"] for row in rows if self._has_tag(row["RoleName"], cluster))
            self._roles[label] = next(mine, None)
        return self._roles[label]

    def _has_tag(self, role: str, cluster: str) -> bool:
        tags = self._all("iam", "list_role_tags", "Tags", "Marker", RoleName=role)
        return aws_doctor_values.tags({"Tags": tags}).get(naming.CLUSTER_TAG) == cluster

    def role_named(self, name: str) -> bool:
        """GetRole."""
        return self._ask("iam", "get_role", ("NoSuchEntity",), RoleName=name) is not None

    def simulate(self, role_arn: str, question: IamQuestion) -> IamDecision:
        """SimulatePrincipalPolicy, of one action on one resource."""
        given = [
            {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
            for key, value in (question.context or {}).items()
        ]
        answer = self._ask(
            "iam",
            "simulate_principal_policy",
            PolicySourceArn=role_arn,
            ActionNames=[question.action],
            ResourceArns=[question.resource],
            ContextEntries=given,
        )
        (result,) = answer["EvaluationResults"]
        organization = result.get("OrganizationsDecisionDetail") or {}
        return IamDecision(
            decision=result["EvalDecision"],
            missing=tuple(result.get("MissingContextValues", ())),
            by_organization=organization.get("AllowedByOrganizations") is False,
        )

    def dry_run(self, request: LaunchRequest, role_arn: str | None) -> DryRun:
        """RunInstances as the controller asks for it, with DryRun."""
        ec2 = self._as_controller(role_arn) if role_arn else self._client("ec2")
        try:
            ec2.run_instances(**parameters(request), DryRun=True)
        except ClientError as error:
            code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
            return DryRun(code, f"{code}: {self._decoded(message)}")
        except BotoCoreError as error:
            raise Unasked(f"no answer of ec2: {error}", "run again") from None
        return DryRun("DryRunOperation", "")  # EC2 always answers with an error; this one would be new

    def _as_controller(self, role_arn: str) -> Any:
        if self._controller is None:
            wanted = {"RoleArn": role_arn, "RoleSessionName": "ironburst-doctor"}
            got = self._ask("sts", "assume_role", **wanted)["Credentials"]
            session = boto3.Session(got["AccessKeyId"], got["SecretAccessKey"], got["SessionToken"])
            self._controller = session.client("ec2", region_name=self._region, config=PATIENT)
        return self._controller

    def _decoded(self, message: str) -> str:
        """A refusal's message with what IAM was asked, where we may know it, in the place of the encoded part."""
        encoded = ENCODED.search(message)
        if not encoded:
            return message
        plain = ENCODED.sub("", message)
        try:
            answer = self._ask("sts", "decode_authorization_message", EncodedMessage=encoded[1])
            context = json.loads(answer["DecodedMessage"])["context"]
            return f"{plain} IAM was asked for {context['action']} on {context['resource']}."
        except (Unasked, KeyError, TypeError, ValueError):
            return plain

    # ---- the way to the hall
    def vpns(self, cluster: str) -> list[Vpn]:
        """The tunnels' keys are in the same answer, and go no further."""
        rows = self._ec2("describe_vpn_connections", "VpnConnections", _ours(cluster))
        return [aws_doctor_values.vpn(row) for row in rows if row["State"] not in ("deleted", "deleting")]

    def vpn_gateways(self, cluster: str) -> set[str]:
        """DescribeVpnGateways, which for a while also shows those that are deleted."""
        rows = self._ec2("describe_vpn_gateways", "VpnGateways", _ours(cluster))
        return {row["VpnGatewayId"] for row in rows if row["State"] in ("pending", "available")}

    def associations(self, cluster: str, gateway_id: str) -> list[Association]:
        """By the cluster's virtual private gateways: associations have no tags."""
        own = self.vpn_gateways(cluster)
        method, key = "describe_direct_connect_gateway_associations", "directConnectGatewayAssociations"
        rows = self._all("directconnect", method, key, "nextToken", directConnectGatewayId=gateway_id)
        known = [((row.get("associatedGateway") or {}).get("id", ""), row) for row in rows]
        return [
            Association(id, row.get("associationState", ""), row.get("stateChangeError") or "")
            for id, row in known
            if id in own
        ]

    def attachments(self, cluster: str, gateway_id: str) -> list[Association]:
        """Those that aren't deleted."""
        wanted = _ours(cluster) | {"transit-gateway-id": [gateway_id]}
        rows = self._ec2("describe_transit_gateway_vpc_attachments", "TransitGatewayVpcAttachments", wanted)
        known = [Association(row["TransitGatewayAttachmentId"], row["State"], "") for row in rows]
        return [each for each in known if each.state not in ("deleted", "deleting")]

    def routes(self, cluster: str) -> dict[str, list[Route]]:
        """Those of IPv4."""
        tables = self._ec2("describe_route_tables", "RouteTables", _ours(cluster))
        return {
            aws_doctor_values.tags(table).get("Name", ""): [
                Route(row["DestinationCidrBlock"], _target(row), row.get("State") == "active")
                for row in table["Routes"]
                if row.get("DestinationCidrBlock")
            ]
            for table in tables
        }

    # ---- secret, bills, capacity
    def secret(self, name: str) -> Secret | None:
        """DescribeSecret: GetSecretValue is never called."""
        answer = self._ask("secretsmanager", "describe_secret", ("ResourceNotFoundException",), SecretId=name)
        return Secret(answer["ARN"], answer.get("DeletedDate"), answer.get("KmsKeyId") or "") if answer else None

    def default_key(self) -> str | None:
        """GetEbsDefaultKmsKeyId names AWS's by its alias."""
        key = str(self._ask("ec2", "get_ebs_default_kms_key_id")["KmsKeyId"])
        return None if key.endswith("alias/aws/ebs") else key

    def grantees(self, key_arn: str) -> set[str]:
        """ListGrants."""
        rows = self._all("kms", "list_grants", "Grants", "Marker", KeyId=key_arn)
        return {str(row.get("GranteePrincipal", "")) for row in rows}

    def cost_tag(self, key: str) -> str | None:
        """Only a payer account is answered."""
        try:
            tags = self._ask("ce", "list_cost_allocation_tags", TagKeys=[key])["CostAllocationTags"]
        except Unasked as error:
            if "Linked account" not in error.seen:
                raise
            todo = f"ask in the payer account: aws ce list-cost-allocation-tags --tag-keys {key}"
            raise Unasked("a member of an organization isn't told: only its payer account is", todo) from None
        return next((str(tag["Status"]) for tag in tags if tag["TagKey"] == key), None)

    def budgets(self) -> list[str]:
        """DescribeBudgets."""
        rows = self._all("budgets", "describe_budgets", "Budgets", "NextToken", AccountId=self.caller().account)
        return [row["BudgetName"] for row in rows]

    def reservation(self, reservation_id: str) -> Reservation | None:
        """DescribeCapacityReservations."""
        absent = ("InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationId.Malformed")
        ids = [reservation_id]
        answer = self._ask("ec2", "describe_capacity_reservations", absent, CapacityReservationIds=ids)
        return (
            aws_doctor_values.reservation(answer["CapacityReservations"][0])
            if answer and answer["CapacityReservations"]
            else None
        )

    def queue(self, url: str) -> str | None:
        """GetQueueAttributes."""
        absent = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
        answer = self._ask("sqs", "get_queue_attributes", absent, QueueUrl=url, AttributeNames=["QueueArn"])
        return str(answer["Attributes"]["QueueArn"]) if answer else None

    def rules(self, queue_arn: str) -> dict[str, bool]:
        """ListRuleNamesByTarget and DescribeRule."""
        names = self._all("events", "list_rule_names_by_target", "RuleNames", "NextToken", TargetArn=queue_arn)
        return {name: str(self._ask("events", "describe_rule", Name=name)["State"]) != "DISABLED" for name in names}


def _unasked(error: ClientError, client: Any) -> Unasked:
    code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
    right = f"{client.meta.service_model.signing_name}:{error.operation_name}"
    right = RIGHTS.get(right, right)
    if code in DENIED:
        more = f" ({message})" if "Linked account" in message else ""
        return Unasked(f"the caller lacks {right}{more}", f"allow the caller {right} (docs/how-to/doctor.md)")
    if code in NO_LOGIN:
        return Unasked(f"AWS doesn't take the credentials for {right}: {code}", LOG_IN)
    return Unasked(f"{right} answers {code}: {message}", "see the message, and run again")


def _ours(cluster: str) -> dict[str, list[str]]:
    return {f"tag:{naming.CLUSTER_TAG}": [cluster]}


def _target(row: Mapping[str, Any]) -> str:
    return next((str(row[name]) for name in TARGETS if row.get(name)), "")
