"""What a stack file says beside the cluster: settings of Pulumi's AWS provider, and what is another stack's."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ironburst.config.checks.aws import places
from ironburst.config.checks.common import Findings
from ironburst.config.finding import KEY, Finding, below, path_of
from ironburst.config.models import ClusterConfig
from ironburst.config.yaml_file import written

ACCOUNTS = ("allowedAccountIds", "forbiddenAccountIds")
SECRET = ("accessKey", "secretKey", "token")
SETTINGS = (
    *ACCOUNTS,
    *SECRET,
    *("assumeRoleWithWebIdentity", "assumeRoles", "customCaBundle", "defaultTags", "ec2MetadataServiceEndpoint"),
    *("ec2MetadataServiceEndpointMode", "endpoints", "httpProxy", "httpsProxy", "ignoreTags", "insecure", "maxRetries"),
    *("noProxy", "profile", "region", "retryMode", "s3UsEast1RegionalEndpoint", "s3UsePathStyle", "sharedConfigFiles"),
    *("sharedCredentialsFiles", "skipCredentialsValidation", "skipMetadataApiCheck", "skipRegionValidation"),
    *("skipRequestingAccountId", "stsRegion", "tagPolicyCompliance", "tokenBucketRateLimiterCapacity"),
    *("useDualstackEndpoint", "useFipsEndpoint", "userAgents"),
)
"""of pulumi-aws 7"""


def allowed_accounts(given: Mapping[str, Any]) -> list[str]:
    """The accounts that `config` of a stack file lets Pulumi's provider work in; empty: any."""
    accounts = given.get("aws:allowedAccountIds") or []
    return [str(account) for account in (accounts if isinstance(accounts, list) else [accounts])]


def beside(config: ClusterConfig, given: Mapping[str, Any], stack_file: Path) -> Findings:
    """What is wrong beside the cluster. `given`: what lies under `config` of the stack file."""
    yield from places.pulumis_region(config, given.get("aws:region"))
    yield from settings(given)
    yield from twins(config, stack_file)


def settings(given: Mapping[str, Any]) -> Findings:
    """Keys under `config` of a stack file that aren't the cluster's."""
    for key, value in given.items():
        namespace, _, name = str(key).partition(":")
        path = below("config", str(key))
        if namespace != "aws":
            if name == KEY.partition(":")[2] and key != KEY:
                message = f"is of another project, so nothing here reads it; the cluster is declared under {KEY}"
                yield Finding(path, None, "other-project", message, "warning")
        elif name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, 1)
            hint = f"; did you mean aws:{near[0]}?" if near else ""
            yield Finding(path, None, "unknown-key", f"Pulumi's AWS provider has no such setting{hint}", "warning")
        elif name in SECRET and not isinstance(value, dict) and "aws:endpoints" not in given:  # `secure:`; a stand-in
            message = "is a key in clear text, for all who read the repository: leave it out, sign in by aws:profile "
            yield Finding(path, None, "clear-text", message + "or the environment, and replace that key")
        elif name in ACCOUNTS:
            yield from _accounts(path, value)


def _accounts(path: str, value: Any) -> Findings:
    for n, account in enumerate(value if isinstance(value, list) else [value]):
        if not re.fullmatch(r"\d{12}", written(account).strip("'")):
            message = f'{written(account)} is no AWS account; write its 12 digits in quotes, as in "123456789012"'
            yield Finding(below(path, n) if isinstance(value, list) else path, str(account), "account", message)


def twins(config: ClusterConfig, stack_file: Path) -> Findings:
    """Another stack file beside this one that declares a cluster of the same name: copied, and not renamed."""
    for other in sorted(stack_file.parent.glob("Pulumi.*.yaml")):
        if other.name != stack_file.name and _name(other) == config.name:
            message = (
                f"{config.name!r} is the name in {other.name}, too: in one account both would take the same tags, "
                "roles and secrets; give each stack a name of its own"
            )
            yield Finding(path_of("name"), config.name, "twin", message, "warning")


def _name(stack_file: Path) -> str | None:
    """Of the cluster, read from the text alone: the file may be of any kind. One that is in a file beside it isn't
    looked for.
    """
    try:
        _, found, text = stack_file.read_text(encoding="utf-8").partition(f"\n  {KEY}:\n")
    except (OSError, UnicodeDecodeError):
        return None
    name = re.search(r"^    name: *([^\s#]+)", text, re.MULTILINE) if found else None
    return name[1].strip("\"'") if name else None
