#!/usr/bin/env python3
"""Signs the job in at the clouds of the stack STACK by the forge's own token (OpenID Connect), without a key: prints
the variables that their clients read (NAME=value), and writes what these name into OUT (build/ci). The clients take a
new session as often as they need to. AWS isn't signed in at here, only its variable is looked for: on GitHub its action
follows, on GitLab its clients read the job's token.

AWS_ROLE_ARN     for a stack in AWS
GOOGLE_PROVIDER  in Google Cloud: the stack's output `preview_provider`, or that of whoever applies
GOOGLE_ACCOUNT   the service account that the job is then
AZURE_CLIENT_ID  in Azure: the identity that has the federated credential
AZURE_TENANT_ID  where the stack names no tenant

GitHub's own variables are those of a job with `id-token: write`; on GitLab a job has GOOGLE_TOKEN and AZURE_TOKEN.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

ENV = os.environ
OUT = Path(ENV.get("OUT") or "build/ci")
Cloud = dict[str, Any]


def need(name: str, what: str) -> str:
    """A variable that a cloud asks for."""
    if not ENV.get(name):
        sys.exit(f"ci/sign_in.py: the stack {ENV['STACK']} is in {what}, and {name} isn't set (docs/how-to/ci.md)")
    return ENV[name]


def kept(name: str, text: str) -> str:
    """The path of a file that nobody else reads."""
    path = OUT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return str(path.absolute())


def on_github() -> bool:
    """Else it is GitLab."""
    return "GITHUB_ACTIONS" in ENV


def aws(_: Cloud) -> dict[str, str]:
    """Nothing more: the next step does it."""
    need("AWS_ROLE_ARN", "AWS")
    return {}


def google(cloud: Cloud) -> dict[str, str]:
    """What a client calls an external account: it asks for the token, exchanges it, and becomes the service account."""
    what = "Google Cloud"
    provider, account = need("GOOGLE_PROVIDER", what), need("GOOGLE_ACCOUNT", what)
    audience = (cloud.get("ci") or {}).get("audience") or f"https://iam.googleapis.com/{provider}"
    source: dict[str, Any]
    if on_github():
        url = need("ACTIONS_ID_TOKEN_REQUEST_URL", what)
        source = {
            "url": f"{url}&audience={quote(audience, safe='')}",
            "headers": {"Authorization": f"Bearer {need('ACTIONS_ID_TOKEN_REQUEST_TOKEN', what)}"},
            "format": {"type": "json", "subject_token_field_name": "value"},
        }
    else:
        source = {"file": kept("google-token", need("GOOGLE_TOKEN", what))}
    credentials = {
        "type": "external_account",
        "audience": f"//iam.googleapis.com/{provider}",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": "https://sts.googleapis.com/v1/token",
        "service_account_impersonation_url": "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/"
        f"{account}:generateAccessToken",
        "credential_source": source,
    }
    return {"GOOGLE_APPLICATION_CREDENTIALS": kept("google.json", json.dumps(credentials))}


def azure(cloud: Cloud) -> dict[str, str]:
    """Pulumi's provider asks GitHub itself; GitLab's token is in a file, which Azure's own clients read, too."""
    client = need("AZURE_CLIENT_ID", "Azure")
    tenant = cloud.get("tenant") or need("AZURE_TENANT_ID", "Azure")
    said = {
        "ARM_USE_OIDC": "true",
        "ARM_CLIENT_ID": client,
        "ARM_TENANT_ID": tenant,
        "ARM_SUBSCRIPTION_ID": cloud["subscription"],
    }
    if on_github():
        need("ACTIONS_ID_TOKEN_REQUEST_URL", "Azure")
        audience = (cloud.get("ci") or {}).get("audience")
        return said | ({"ARM_OIDC_AUDIENCE": audience} if audience else {})
    token = kept("azure-token", need("AZURE_TOKEN", "Azure"))
    own = {"AZURE_CLIENT_ID": client, "AZURE_TENANT_ID": tenant, "AZURE_FEDERATED_TOKEN_FILE": token}
    return said | own | {"ARM_OIDC_TOKEN_FILE_PATH": token}


CLOUDS: dict[str, Callable[[Cloud], dict[str, str]]] = {"aws": aws, "google": google, "azure": azure}


def main() -> None:
    """Print the variables of all clouds of the stack."""
    cluster = yaml.safe_load(Path(f"stacks/Pulumi.{ENV['STACK']}.yaml").read_text())["config"]["ironburst:cluster"]
    for cloud in filter(None, [cluster.get("cloud"), *(cluster.get("other_clouds") or [])]):
        for name, value in CLOUDS[cloud.get("provider", "aws")](cloud).items():
            print(f"{name}={value}")


if __name__ == "__main__":
    main()
