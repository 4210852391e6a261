"""Resources as AWS names them."""

from __future__ import annotations


def id_of(resource: str) -> str:
    """An ARN's last part: arn:aws:ec2:us-east-1:123456789012:instance/i-1 is i-1. What is no ARN stays."""
    return resource.rpartition("/")[2] if resource.startswith("arn:") else resource
