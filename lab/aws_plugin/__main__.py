"""Serve the plugin: print the port, then answer until the engine ends the process."""

from __future__ import annotations

import os

from lab.aws_plugin.endpoints import KEYS
from lab.aws_plugin.provider import AwsStandIn
from lab.provider.serve import forget, serve

if __name__ == "__main__":
    wanted = KEYS if os.environ.get("LAB_AWS_ENVIRONMENT") else ()
    taken = {name: os.environ[name] for name in wanted if name in os.environ}
    forget(["AWS_"])  # credentials, profile, endpoints, files: nothing of them may reach boto3
    os.environ |= taken | {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    serve(AwsStandIn)
