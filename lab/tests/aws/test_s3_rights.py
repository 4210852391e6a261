"""The lab's S3 under IAM: what a prefix lets through, and what it doesn't."""

import boto3
import pytest
from botocore.exceptions import ClientError

from lab.aws.testing import REGION, Clients
from tests.lab_cloud import user

KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-0000-4000-8000-000000000000"


def allow(action, resource, **condition):
    return {"Effect": "Allow", "Action": action, "Resource": resource} | ({"Condition": condition} if condition else {})


def document(*statements):
    return {"Version": "2012-10-17", "Statement": list(statements)}


@pytest.fixture
def bucket(cloud, clients):
    s3 = clients("s3")
    s3.create_bucket(Bucket="data")
    for key in ("imagenet/a", "imagenet-21k/a", "other/a"):
        s3.put_object(Bucket="data", Key=key, Body=b"x")
    return s3


def acting(cloud, clients, *statements, name="reader"):
    return Clients(cloud.url, user(clients, name, document(*statements)))("s3")


def answer(call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
    return "OK", 200


def test_the_administrator_may_all(bucket):
    assert answer(bucket.get_object, Bucket="data", Key="other/a") == ("OK", 200)
    assert answer(bucket.head_object, Bucket="data", Key="none") == ("404", 404)
    assert answer(bucket.list_buckets) == ("OK", 200)


def test_an_unknown_key_is_nobody(cloud, bucket):
    stranger = Clients(cloud.url, boto3.Session("AKIAXXXXXXXXXXXXXXXX", "x", region_name=REGION))("s3")
    assert answer(stranger.get_object, Bucket="data", Key="imagenet/a") == ("InvalidAccessKeyId", 403)


def test_objects_are_allowed_by_their_arn(cloud, clients, bucket):
    reader = acting(cloud, clients, allow("s3:GetObject", "arn:aws:s3:::data/imagenet/*"))
    assert answer(reader.get_object, Bucket="data", Key="imagenet/a") == ("OK", 200)
    assert answer(reader.head_object, Bucket="data", Key="imagenet/a") == ("OK", 200)
    for key in ("imagenet-21k/a", "other/a"):
        assert answer(reader.get_object, Bucket="data", Key=key) == ("AccessDenied", 403)
        assert answer(reader.head_object, Bucket="data", Key=key) == ("403", 403)
    assert answer(reader.put_object, Bucket="data", Key="imagenet/a", Body=b"y") == ("AccessDenied", 403)
    assert answer(reader.delete_object, Bucket="data", Key="imagenet/a") == ("AccessDenied", 403)
    assert answer(reader.list_buckets) == ("AccessDenied", 403)


def test_a_key_that_is_not_there_is_told_to_those_who_may_list_only(cloud, clients, bucket):
    get = allow("s3:GetObject", "arn:aws:s3:::data/*")
    reader = acting(cloud, clients, get)
    assert answer(reader.get_object, Bucket="data", Key="none") == ("AccessDenied", 403)
    lister = acting(cloud, clients, get, allow("s3:ListBucket", "arn:aws:s3:::data"), name="lister")
    assert answer(lister.get_object, Bucket="data", Key="none") == ("NoSuchKey", 404)


def test_a_listing_is_allowed_by_its_prefix_to_the_letter(cloud, clients, bucket):
    by_prefix = {"StringEquals": {"s3:prefix": "imagenet/"}}
    reader = acting(cloud, clients, allow("s3:ListBucket", "arn:aws:s3:::data", **by_prefix))
    assert answer(reader.list_objects_v2, Bucket="data", Prefix="imagenet/") == ("OK", 200)
    for prefix in ("imagenet", "imagenet-21k/", "imagenet/a", "", "other/"):
        assert answer(reader.list_objects_v2, Bucket="data", Prefix=prefix) == ("AccessDenied", 403), prefix
    assert answer(reader.list_objects_v2, Bucket="data") == ("AccessDenied", 403)
    assert answer(reader.head_bucket, Bucket="data") == ("403", 403)  # it is asked as a listing without a prefix


def test_an_encrypted_object_needs_its_key_by_way_of_s3(cloud, clients, bucket):
    bucket.put_object(Bucket="data", Key="secret/a", Body=b"x", ServerSideEncryption="aws:kms", SSEKMSKeyId=KEY)
    get = allow("s3:GetObject", "arn:aws:s3:::data/*")
    direct = allow("kms:Decrypt", KEY, StringEquals={"kms:ViaService": "ec2.us-east-1.amazonaws.com"})
    by_s3 = allow("kms:Decrypt", KEY, StringEquals={"kms:ViaService": "s3.us-east-1.amazonaws.com"})
    said = {
        name: answer(acting(cloud, clients, *more, name=name).get_object, Bucket="data", Key="secret/a")[0]
        for name, more in {"without": [get], "direct": [get, direct], "by-s3": [get, by_s3]}.items()
    }
    assert said == {"without": "AccessDenied", "direct": "AccessDenied", "by-s3": "OK"}
