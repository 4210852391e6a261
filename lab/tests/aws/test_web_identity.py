"""CI's tokens on the lab's AWS: which give a role, and which don't."""

import json
import time

import pytest
from botocore import UNSIGNED
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives.asymmetric import rsa

from ironburst.config.aws import policies
from lab.aws.cloud import ACCOUNT
from lab.aws.testing import client
from tests import pki

ISSUER, AUDIENCE, SUBJECT = "token.actions.githubusercontent.com", "sts.amazonaws.com", "repo:org/site:pull_request"
KEY = rsa.generate_private_key(65537, 2048)
WHERE = policies.Scope("aws", "us-east-1", ACCOUNT)
GOOD = {"iss": f"https://{ISSUER}", "aud": AUDIENCE, "sub": SUBJECT}


@pytest.fixture
def role(cloud, clients):
    clients("iam").create_open_id_connect_provider(Url=f"https://{ISSUER}", ClientIDList=[AUDIENCE, "other"])
    pki.issues(ISSUER, KEY)
    trust = json.dumps(policies.assumed_by_ci(WHERE, ISSUER, AUDIENCE, [SUBJECT]))
    made = clients("iam").create_role(RoleName="preview", AssumeRolePolicyDocument=trust)["Role"]
    rights = json.dumps(policies.previewing(WHERE))
    clients("iam").put_role_policy(RoleName="preview", PolicyName="p", PolicyDocument=rights)
    return made["Arn"]


def signed_in(url, role, token):
    sts = client(url, "sts", signature_version=UNSIGNED)
    return sts.assume_role_with_web_identity(RoleArn=role, RoleSessionName="ci", WebIdentityToken=token)["Credentials"]


def test_the_declared_subject_gets_the_role(server, role):
    assert signed_in(server.url, role, pki.token(KEY, **GOOD))["AccessKeyId"]


@pytest.mark.parametrize(
    ("key", "changes", "code"),
    [
        (KEY, {"sub": "repo:org/site:ref:refs/heads/x"}, "AccessDenied"),
        (KEY, {"sub": "repo:org/site:pull_request:more"}, "AccessDenied"),
        (KEY, {"aud": "other"}, "AccessDenied"),
        (KEY, {"aud": "unknown"}, "InvalidIdentityToken"),
        (KEY, {"iss": "https://gitlab.com"}, "InvalidIdentityToken"),
        (KEY, {"exp": int(time.time()) - 1}, "InvalidIdentityToken"),
        (rsa.generate_private_key(65537, 2048), {}, "InvalidIdentityToken"),
    ],
)
def test_others_do_not(server, role, key, changes, code):
    with pytest.raises(ClientError) as error:
        signed_in(server.url, role, pki.token(key, **(GOOD | changes)))
    assert error.value.response["Error"]["Code"] == code
