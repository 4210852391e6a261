"""The aws stand-in for its tests: how it is configured, and its process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.provider import harness
from lab.provider.wire import Props

BIN = Path(__file__).parent / "bin"
SERVICES = (
    *("ec2", "iam", "sts", "sqs", "events", "cloudwatch", "ssm", "budgets", "secretsmanager", "sns", "s3"),
    *("directconnect", "rolesanywhere", "eks"),
)


def config(url: str, **more: Any) -> Props:
    """Provider configuration as it arrives: strings, structures as JSON text."""
    values = {"region": "us-east-1", "endpoints": [dict.fromkeys(SERVICES, url)], **more}
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in values.items()}


class Engine(harness.Engine):
    """Its process, and the calls an engine makes."""

    package, folder = "aws", BIN
