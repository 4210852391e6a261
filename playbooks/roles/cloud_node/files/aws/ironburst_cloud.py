"""What a rented node asks of EC2, for ironburst-join and ironburst-dead-man: IMDSv2, and AWS Secrets Manager with the
credentials of the instance's role. Every call is one try. Python 3.9.
"""

import os
import urllib.request

SERVICE = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254").rstrip("/")
SCHEME = "aws-secretsmanager"


def imds(path, token=None, ttl=None):
    """An answer of the metadata service; without a token a new one, for ttl seconds. Raises OSError."""
    headers = {"X-aws-ec2-metadata-token": token} if token else {"X-aws-ec2-metadata-token-ttl-seconds": str(ttl)}
    request = urllib.request.Request(f"{SERVICE}/latest/{path}", headers=headers, method="GET" if token else "PUT")
    with urllib.request.urlopen(request, timeout=5) as response:
        return response.read().decode()


def launch():
    """(user data, ami-launch-index). Raises OSError."""
    token = imds("api/token", ttl=300)
    return imds("user-data", token), imds("meta-data/ami-launch-index", token)


def instance():
    """(id, zone, address) of this instance. Raises OSError."""
    token = imds("api/token", ttl=300)
    return [imds("meta-data/" + path, token) for path in ("instance-id", "placement/availability-zone", "local-ipv4")]


def secret(name, region):
    """What a secret holds: text, or bytes. Raises the client's errors."""
    import boto3
    from botocore.config import Config

    # a session of its own each time: boto3 asks for the role's credentials once, and waits for them 1 s
    settings = Config(retries={"mode": "standard", "total_max_attempts": 5})
    client = boto3.Session().client("secretsmanager", region_name=region, config=settings)
    answer = client.get_secret_value(SecretId=name)
    return answer["SecretBinary"] if "SecretBinary" in answer else answer["SecretString"]


def end():
    """Nothing: an instance that powers off is terminated, with its disk, for its launch template says so."""
