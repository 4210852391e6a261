"""What IAM is asked for one call of S3, by AWS's Service Authorization Reference: buckets and objects have no account
in their ARNs, a listing has its prefix as a condition key, and an object under a KMS key needs kms:Decrypt by S3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moto.s3.models import s3_backends

from lab.aws.iam_calls import Account, Keys
from lab.aws.iam_policy import Check

OF_OTHER_NAME = {
    "HeadBucket": "ListBucket",
    "SelectObject": "GetObject",
    "GetPublicAccessBlock": "GetBucketPublicAccessBlock",
    "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
    "DeletePublicAccessBlock": "PutBucketPublicAccessBlock",
}
"""calls that IAM knows by another's action"""
LISTED_BY = ("prefix", "delimiter", "max-keys")


def s3_checks(
    where: Account, action: str, bucket: str | None, key: str | None, query: Mapping[str, Sequence[str]]
) -> list[Check]:
    """`action`: moto's name of the call, `query`: the parameters in its URL. A parameter that isn't given has no
    condition key.
    """
    name = OF_OTHER_NAME.get(action, action)
    if not bucket:
        return [where.check(f"s3:{name}", "*")]
    arn = f"arn:{where.partition}:s3:::{bucket}"
    if not key:
        listed: Keys = {f"s3:{each}": [query[each][0]] for each in LISTED_BY if each in query}
        return [where.check(f"s3:{name}", arn, listed if name == "ListBucket" else {})]
    asked = [where.check(f"s3:{name}", f"{arn}/{key}")]
    if name == "GetObject":
        asked += _of_reading(where, arn, bucket, key)
    return asked


def _of_reading(where: Account, arn: str, bucket: str, key: str) -> list[Check]:
    """What is asked beside: of an object that isn't there, whether the caller may see that; of an encrypted one, its
    key.
    """
    held: Any = s3_backends[where.account][where.partition].buckets.get(bucket)
    if held is None:
        return []
    stored = held.keys.get(key)
    if stored is None:
        return [where.check("s3:ListBucket", arn)]
    if stored.encryption != "aws:kms" or not stored.kms_key_id:
        return []
    return [where.check("kms:Decrypt", stored.kms_key_id, {"kms:ViaService": [f"s3.{where.region}.amazonaws.com"]})]
