"""S3, for ironburst-data: what lies in a bucket, read with the rights of the instance's role. Python 3.6 (EL 8)."""

import os

KIND, SCHEME = "s3", "s3://"
ELSE = ", or put it on FSx for Lustre"
"""what else to do where copying takes too long"""


def answered(error):
    """Whether S3 has answered: then it was asked often enough."""
    return hasattr(error, "response")


class Bucket:
    """Its client has the role's credentials; the metadata service may be asked for them by all nodes at once."""

    def __init__(self, region, name):
        import boto3
        from botocore.config import Config

        os.environ.setdefault("AWS_METADATA_SERVICE_NUM_ATTEMPTS", "5")
        os.environ.setdefault("AWS_METADATA_SERVICE_TIMEOUT", "5")
        settings = Config(retries={"mode": "standard", "total_max_attempts": 10}, connect_timeout=10, read_timeout=60)
        self.name, self._client = name, boto3.Session().client("s3", region_name=region, config=settings)

    def objects(self, prefix):
        """(key, ETag, bytes) of each below a prefix. Raises botocore's errors."""
        asked = {"Bucket": self.name, "Prefix": prefix} if prefix else {"Bucket": self.name}
        for page in self._client.get_paginator("list_objects_v2").paginate(**asked):
            for each in page.get("Contents", []):
                yield each["Key"], each["ETag"], each["Size"]

    def read(self, key, version, offset, length):
        """What lies there of an object under that ETag, to be read in blocks. Raises botocore's errors."""
        asked = {"Bucket": self.name, "Key": key, "IfMatch": version}
        if length:
            asked["Range"] = "bytes={}-{}".format(offset, offset + length - 1)
        return self._client.get_object(**asked)["Body"]
