"""Who may take the roles that a stack makes."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ironburst.config.aws.models import AwsCloud
from ironburst.config.checks.common import Findings
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig

SOON = timedelta(days=60)


def authorities(config: ClusterConfig, now: datetime) -> Findings:
    """The certificates that IAM Roles Anywhere is to trust are authorities', and not over by `now`."""
    if not (cloud := config.cloud_by_class(AwsCloud)) or not cloud.controller:
        return
    path = path_of("cloud", "controller", "ca")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=cloud.controller.ca)
    except ssl.SSLError as error:
        yield Finding(path, None, "certificate", f"can't be read as certificates ({error.reason}); paste them whole")
        return
    # OpenSSL counts a version 1 certificate as an authority; AWS takes version 3 alone
    certificates: list[Mapping[str, Any]] = [*context.get_ca_certs()]
    known = [each for each in certificates if each["version"] == 3]
    if len(known) < context.cert_store_stats()["x509"]:
        message = (
            "has a certificate that is no authority (X.509 v3 with CA:true and keyCertSign), which AWS refuses: "
            "write the authority's, not the controller's own"
        )
        yield Finding(path, None, "certificate", message)
    for each in known:
        yield from _over(path, each, now)


def _over(path: str, certificate: Mapping[str, Any], now: datetime) -> Findings:
    ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)
    name = ", ".join(value for part in certificate["subject"] for _, value in part)
    if ends <= now:
        yield Finding(path, None, "certificate", f"{name} ended on {ends:%Y-%m-%d}: AWS takes nothing signed by it")
    elif ends - now < SOON:
        message = f"{name} ends on {ends:%Y-%m-%d}: write its successor beside it before, both are trusted"
        yield Finding(path, None, "certificate", message, "warning")
