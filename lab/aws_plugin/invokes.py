"""Functions (data sources) of the aws plugin, by token: (allowed arguments, call)."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Callable

from botocore import xform_name

from lab.aws_plugin.spec import Aws, pick
from lab.provider.service import PluginError
from lab.provider.wire import Props, secret

Call = Callable[[Aws, Props], Props]


def filters(args: Props) -> list[Props]:
    return [{"Name": f["name"], "Values": f["values"]} for f in args.get("filters") or []]


IMAGE = (
    "imageId name description architecture rootDeviceName rootDeviceType ownerId creationDate state virtualizationType"
)


def disk(shown: Props) -> Props:
    """A block device of an image; the real provider gives a map of texts, with Terraform's own names."""
    ebs = {xform_name(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in shown.get("Ebs", {}).items()}
    return {"deviceName": shown["DeviceName"], "ebs": ebs, "noDevice": "", "virtualName": ""}


def get_ami(aws: Aws, args: Props) -> Props:
    asked: Props = {"Owners": args["owners"]} if args.get("owners") else {}
    if args.get("includeDeprecated"):
        asked["IncludeDeprecated"] = True
    described = aws.ec2.describe_images(Filters=filters(args), **asked)["Images"]
    if not described:
        raise PluginError(f"no image matches owners {args.get('owners')} and filters {args.get('filters')}")
    if len(described) > 1 and not args.get("mostRecent"):
        raise PluginError(f"{len(described)} images match: narrow the filters or set mostRecent")
    image = max(described, key=lambda i: dt.datetime.fromisoformat(i["CreationDate"]))
    return {
        **pick(image, IMAGE),
        "blockDeviceMappings": [disk(shown) for shown in image.get("BlockDeviceMappings", [])],
        "id": image["ImageId"],
        "arn": f"arn:aws:ec2:{aws.region}::image/{image['ImageId']}",
        **args,
    }


def get_zones(aws: Aws, args: Props) -> Props:
    asked = filters(args) + ([{"Name": "state", "Values": [args["state"]]}] if args.get("state") else [])
    described = aws.ec2.describe_availability_zones(Filters=asked)["AvailabilityZones"]
    return {
        "names": [z["ZoneName"] for z in described],
        "zoneIds": [z["ZoneId"] for z in described],
        "groupNames": sorted({z.get("GroupName") or aws.region for z in described}),
        "id": aws.region,
        **args,
    }


def get_offerings(aws: Aws, args: Props) -> Props:
    pages = aws.ec2.get_paginator("describe_instance_type_offerings")
    where = args.get("locationType", "region")
    rows = [o for p in pages.paginate(LocationType=where, Filters=filters(args)) for o in p["InstanceTypeOfferings"]]
    return {
        "instanceTypes": [row["InstanceType"] for row in rows],
        "locations": [row["Location"] for row in rows],
        "locationTypes": [row["LocationType"] for row in rows],
        "id": aws.region,
        **args,
    }


def get_transit_gateway(aws: Aws, args: Props) -> Props:
    described = aws.ec2.describe_transit_gateways(TransitGatewayIds=[args["id"]])["TransitGateways"]
    if not described:
        raise PluginError(f"no matching EC2 Transit Gateway found: {args['id']}")
    options = described[0]["Options"]
    return {
        "id": args["id"],
        "ownerId": described[0]["OwnerId"],
        "arn": described[0]["TransitGatewayArn"],
        "autoAcceptSharedAttachments": options["AutoAcceptSharedAttachments"],
        "amazonSideAsn": options.get("AmazonSideAsn"),
    }


def get_oidc_provider(aws: Aws, args: Props) -> Props:
    iam, name = aws.client("iam"), args["url"].removeprefix("https://")
    for row in iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]:
        if row["Arn"].partition("/")[2] == name:
            seen = iam.get_open_id_connect_provider(OpenIDConnectProviderArn=row["Arn"])
            return {"id": row["Arn"], "arn": row["Arn"], "url": name, "clientIdLists": seen["ClientIDList"]}
    raise PluginError(f"finding IAM OIDC Provider by url ({args['url']}): not found")


def get_roles(aws: Aws, args: Props) -> Props:
    prefix = {"PathPrefix": args["pathPrefix"]} if args.get("pathPrefix") else {}
    pages = aws.client("iam").get_paginator("list_roles").paginate(**prefix)
    fits = re.compile(args.get("nameRegex", "")).search
    rows = [role for page in pages for role in page["Roles"] if fits(role["RoleName"])]
    return {"names": [r["RoleName"] for r in rows], "arns": [r["Arn"] for r in rows], "id": aws.region, **args}


def get_identity(aws: Aws, _args: Props) -> Props:
    described = aws.client("sts").get_caller_identity()
    return {
        "accountId": described["Account"],
        "arn": described["Arn"],
        "userId": described["UserId"],
        "id": described["Account"],
    }


def get_region(aws: Aws, _args: Props) -> Props:
    return {
        "region": aws.region,
        "name": aws.region,
        "id": aws.region,
        "description": f"the lab's {aws.region}",
        "endpoint": f"ec2.{aws.region}.amazonaws.com",
    }


def get_partition(_aws: Aws, _args: Props) -> Props:
    return {"partition": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws", "id": "aws"}


def scalar(values: list[str]) -> list[str] | str:
    """Terraform writes a list of one as a plain string."""
    return values[0] if len(values) == 1 else values


def principals(rows: list[Props]) -> Props | str:
    if any(r["type"] == "*" for r in rows):
        return "*"
    out: dict[str, list[str]] = {}
    for row in rows:
        out.setdefault(row["type"], []).extend(row["identifiers"])
    return {k: scalar(v) for k, v in out.items()}


LISTS = {"actions": "Action", "notActions": "NotAction", "resources": "Resource", "notResources": "NotResource"}
PRINCIPALS = {"principals": "Principal", "notPrincipals": "NotPrincipal"}
STATEMENT = {"sid", "effect", "conditions", *LISTS, *PRINCIPALS}


def statement(row: Props) -> Props:
    if unknown := set(row) - STATEMENT:
        raise PluginError(f"statements: unknown keys {sorted(unknown)}; allowed: {sorted(STATEMENT)}")
    out: Props = {"Sid": row["sid"]} if row.get("sid") else {}
    out["Effect"] = row.get("effect", "Allow")
    for wire, key in LISTS.items():
        if row.get(wire):
            out[key] = scalar(row[wire])
    for wire, key in PRINCIPALS.items():
        if row.get(wire):
            out[key] = principals(row[wire])
    for condition in row.get("conditions") or []:
        of_test = out.setdefault("Condition", {}).setdefault(condition["test"], {})
        of_test[condition["variable"]] = scalar(condition["values"])
    return out


def get_policy(_aws: Aws, args: Props) -> Props:
    document = {
        "Version": args.get("version", "2012-10-17"),
        **({"Id": args["policyId"]} if args.get("policyId") else {}),
        "Statement": [statement(s) for s in args.get("statements") or []],
    }
    small = json.dumps(document, separators=(",", ":"))
    return {
        "json": json.dumps(document, indent=2),
        "minifiedJson": small,
        "id": hashlib.sha256(small.encode()).hexdigest()[:10],
        **args,
    }


def get_parameter(aws: Aws, args: Props) -> Props:
    described = aws.client("ssm").get_parameter(Name=args["name"], WithDecryption=args.get("withDecryption", True))[
        "Parameter"
    ]
    value = described["Value"]
    return {
        "name": described["Name"],
        "type": described["Type"],
        "version": described["Version"],
        "arn": described.get("ARN"),
        "value": secret(value),
        "insecureValue": value if described["Type"] != "SecureString" else "",
        "id": described["Name"],
        "withDecryption": args.get("withDecryption", True),
    }


def get_bucket(aws: Aws, args: Props) -> Props:
    """By HeadBucket, as the real provider does: its header names the bucket's region."""
    head = aws.client("s3").head_bucket(Bucket=args["bucket"])
    return {
        "bucketRegion": head.get("BucketRegion") or aws.region,
        "arn": f"arn:aws:s3:::{args['bucket']}",
        "id": args["bucket"],
        **args,
    }


def get_objects(aws: Aws, args: Props) -> Props:
    asked = {"Prefix": args["prefix"]} if args.get("prefix") else {}
    pages = aws.client("s3").get_paginator("list_objects_v2").paginate(Bucket=args["bucket"], **asked)
    keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
    return {"keys": keys[: int(args.get("maxKeys", 1000))], "commonPrefixes": [], "id": args["bucket"], **args}


INVOKES: dict[str, tuple[str, Call]] = {
    "aws:ec2/getAmi:getAmi": ("mostRecent owners filters includeDeprecated region", get_ami),
    "aws:index/getAvailabilityZones:getAvailabilityZones": ("state filters region", get_zones),
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": ("locationType filters region", get_offerings),
    "aws:ec2transitgateway/getTransitGateway:getTransitGateway": ("id region", get_transit_gateway),
    "aws:iam/getOpenIdConnectProvider:getOpenIdConnectProvider": ("url", get_oidc_provider),
    "aws:iam/getRoles:getRoles": ("nameRegex pathPrefix", get_roles),
    "aws:index/getCallerIdentity:getCallerIdentity": ("", get_identity),
    "aws:index/getRegion:getRegion": ("region", get_region),
    "aws:index/getPartition:getPartition": ("", get_partition),
    "aws:iam/getPolicyDocument:getPolicyDocument": ("statements version policyId", get_policy),
    "aws:s3/getBucket:getBucket": ("bucket region", get_bucket),
    "aws:s3/getObjects:getObjects": ("bucket prefix maxKeys region", get_objects),
    "aws:ssm/getParameter:getParameter": ("name withDecryption region", get_parameter),
}
