"""How a node of EKS signs in, and fetches images of AWS's registry."""

import base64
import io
import json
import subprocess
import sys
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from programs import PLAYBOOKS, load

PROGRAM = PLAYBOOKS / "roles/cloud_node/files/aws/ironburst-eks.py"
# what aws-iam-authenticator lets a token have (pkg/token/token.go), in small letters
ALLOWED = {
    *("action", "version", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires"),
    *("x-amz-security-token", "x-amz-signature", "x-amz-signedheaders", "x-amz-user-agent"),
}


@pytest.fixture
def root(tmp_path, monkeypatch):
    (tmp_path / "etc/ironburst").mkdir(parents=True)
    settings = {"node": "i-0abc", "api_server": "https://x", "eks": "ironburst-lab", "region": "eu-central-1"}
    (tmp_path / "etc/ironburst/cluster.json").write_text(json.dumps(settings))
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS", "AWS_STS_REGIONAL_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ASIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session/token+=")
    monkeypatch.setenv("IRONBURST_EKS_ROOT", str(tmp_path))
    return tmp_path


def test_a_token_is_a_signed_request_that_nobody_sent(root):
    ran = subprocess.run([sys.executable, PROGRAM, "token"], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    credential = json.loads(ran.stdout)
    assert (credential["apiVersion"], credential["kind"]) == ("client.authentication.k8s.io/v1", "ExecCredential")
    head, _, text = credential["status"]["token"].partition(".")
    assert head == "k8s-aws-v1" and "=" not in text
    url = urlsplit(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
    assert (url.scheme, url.netloc, url.path) == ("https", "sts.eu-central-1.amazonaws.com", "/")
    query = parse_qs(url.query)
    assert {name.lower() for name in query} <= ALLOWED and query["Action"] == ["GetCallerIdentity"]
    # bound to this cluster, for a minute by STS's word, which EKS takes for 15 minutes
    assert set(query["X-Amz-SignedHeaders"][0].split(";")) == {"host", "x-k8s-aws-id"}
    assert query["X-Amz-Expires"] == ["60"] and query["X-Amz-Security-Token"] == ["session/token+="]
    ends = datetime.fromisoformat(credential["status"]["expirationTimestamp"])
    assert 13 * 60 < (ends - datetime.now(UTC)).total_seconds() <= 14 * 60


@pytest.mark.parametrize(
    ("verb", "given", "words"),
    [
        ([], "", "give token or images"),
        (
            ["images"],
            '{"image": "nvcr.io/nvidia/cuda:13"}',
            "'nvcr.io/nvidia/cuda:13' is no image",
        ),
        (["images"], "{}", "None is no image"),
        (["images"], "not JSON", "JSONDecodeError"),
    ],
)
def test_what_can_not_be_is_one_sentence(root, monkeypatch, capsys, verb, given, words):
    monkeypatch.setattr(sys, "stdin", io.StringIO(given))
    assert load("roles/cloud_node/files/aws/ironburst-eks.py").main(verb) == 1
    said = capsys.readouterr()
    assert said.out == "" and words in said.err and len(said.err.splitlines()) == 1


def test_a_node_of_no_cluster_there_says_so(root, capsys):
    (root / "etc/ironburst/cluster.json").write_text('{"node": "p5-1", "api_server": "https://x"}')
    assert load("roles/cloud_node/files/aws/ironburst-eks.py").main(["token"]) == 1
    assert "names no cluster of EKS" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("image", "registry", "region"),
    [
        (
            "602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon-k8s-cni:v1.20.0",
            "602401143452.dkr.ecr.us-west-2.amazonaws.com",
            "us-west-2",
        ),
        (
            "918309763551.dkr.ecr.cn-north-1.amazonaws.com.cn/a",
            "918309763551.dkr.ecr.cn-north-1.amazonaws.com.cn",
            "cn-north-1",
        ),
    ],
)
def test_images_of_aws_are_fetched_with_the_roles_word(root, monkeypatch, image, registry, region):
    import botocore.session

    asked = []

    class Client:
        def get_authorization_token(self):
            return {"authorizationData": [{"authorizationToken": base64.b64encode(b"AWS:a:password").decode()}]}

    class Session:
        def create_client(self, service, region_name):
            asked.append((service, region_name))
            return Client()

    monkeypatch.setattr(botocore.session, "get_session", Session)
    answer = load("roles/cloud_node/files/aws/ironburst-eks.py").images({"image": image})
    assert asked == [("ecr", region)]
    assert answer["auth"] == {registry: {"username": "AWS", "password": "a:password"}}
    assert answer["kind"] == "CredentialProviderResponse" and answer["cacheKeyType"] == "Registry"
