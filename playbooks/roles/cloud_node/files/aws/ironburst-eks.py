#!/usr/bin/python3
"""ironburst-eks: what this instance's role in IAM gives it on EKS. kubelet calls it, as does ironburst-kubelet.

token   an ExecCredential: a request to AWS's STS, signed and not sent, by which EKS learns the role and the instance
images  (named by kubelet's configuration, a CredentialProviderRequest on standard input): how an image in AWS's
        registry is fetched

Cluster and region are in /etc/ironburst/cluster.json ({eks, region}). The role's credentials come from the instance
metadata service, which answers root alone. Exit status 1: it could not be done; one sentence on standard error.
"""

import base64
import json
import os
import re
import sys
import time
from pathlib import Path

ROOT = Path(os.environ.get("IRONBURST_EKS_ROOT", "/"))  # another root in tests
GOOD_S = 14 * 60  # EKS takes a token for 15 minutes
ASK = "/?Action=GetCallerIdentity&Version=2011-06-15"
REGISTRY = re.compile(r"^([0-9]{12}\.dkr[.-]ecr(?:-fips)?\.([a-z0-9-]+)\.[a-z0-9.-]+)/")


class Failed(Exception):
    """Why it could not be done; one sentence."""


def cluster():
    """(name, region). Raises Failed."""
    path = ROOT / "etc/ironburst/cluster.json"
    try:
        settings = json.loads(path.read_text())
        return settings["eks"], settings["region"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Failed("{} names no cluster of EKS: {!r}".format(path, error)) from None


def signed(name, region):
    """The URL of STS that says who asks, signed for this cluster alone. Raises Failed."""
    import botocore.session
    from botocore.signers import RequestSigner

    os.environ.setdefault("AWS_STS_REGIONAL_ENDPOINTS", "regional")  # older ones ask the global one
    session = botocore.session.get_session()
    credentials = session.get_credentials()
    if credentials is None:
        raise Failed("the metadata service gives no credentials: has this instance a role?")
    meta = session.create_client("sts", region_name=region).meta
    emitter = session.get_component("event_emitter")
    signer = RequestSigner(meta.service_model.service_id, region, "sts", "v4", credentials, emitter)
    request = {"method": "GET", "url": meta.endpoint_url + ASK, "body": {}, "headers": {"x-k8s-aws-id": name}}
    return signer.generate_presigned_url(
        dict(request, context={}), region_name=region, expires_in=60, operation_name=""
    )


def token():
    """An ExecCredential."""
    text = base64.urlsafe_b64encode(signed(*cluster()).encode()).decode().rstrip("=")
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + GOOD_S))
    status = {"token": "k8s-aws-v1." + text, "expirationTimestamp": ends}
    return {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}


def images(asked):
    """A CredentialProviderResponse. Raises Failed."""
    found = REGISTRY.match(str(asked.get("image")))
    if not found:
        raise Failed("{!r} is no image in a registry of AWS".format(asked.get("image")))
    import botocore.session

    client = botocore.session.get_session().create_client("ecr", region_name=found.group(2))
    given = client.get_authorization_token()["authorizationData"][0]["authorizationToken"]
    user, _, password = base64.b64decode(given).decode().partition(":")
    return {
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "kind": "CredentialProviderResponse",
        "cacheKeyType": "Registry",
        "auth": {found.group(1): {"username": user, "password": password}},
    }


def main(argv=None):
    """The exit status."""
    verb = (sys.argv[1:] if argv is None else argv)[:1]
    try:
        if verb not in (["token"], ["images"]):
            raise Failed("give token or images")
        try:
            answer = token() if verb == ["token"] else images(json.load(sys.stdin))
        except Failed:
            raise
        except Exception as error:  # botocore's errors are made at run time; none holds a secret
            raise Failed("{}: {}".format(type(error).__name__, error)) from None
    except Failed as error:
        print("ironburst-eks: {}".format(error), file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
