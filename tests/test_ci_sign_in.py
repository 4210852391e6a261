"""What CI signs in with at each cloud, before clients of the clouds: the real ones, at stand-ins of the forge and of
Google's two services.

GitHub's token: "OpenID Connect reference" (ACTIONS_ID_TOKEN_REQUEST_URL, &audience=, `value` of the answer). Google's
external account: "Workload Identity Federation", RFC 8693 at sts.googleapis.com, generateAccessToken at
iamcredentials.googleapis.com. Azure: what pulumi-azure-native's auth.go reads, and azure-identity.
"""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import google.auth.transport.requests
import pytest
import yaml
from azure.identity import WorkloadIdentityCredential
from google.auth import identity_pool

ROOT = Path(__file__).parents[1]
PROVIDER = "projects/4711/locations/global/workloadIdentityPools/lab-preview/providers/lab-preview"
ACCOUNT = "lab-preview@lab.iam.gserviceaccount.com"
TENANT, SUBSCRIPTION = "0b1f6471-0000-4dda-aec3-cb9272f09590", "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
AWS = {"region": "us-east-1"}
GOOGLE = {"provider": "google", "project": "lab"}
AZURE = {"provider": "azure", "subscription": SUBSCRIPTION}
ASKED = {
    "aws": {"AWS_ROLE_ARN": "arn:aws:iam::1:role/ci"},
    "google": {"GOOGLE_PROVIDER": PROVIDER, "GOOGLE_ACCOUNT": ACCOUNT},
    "azure": {"AZURE_CLIENT_ID": "client", "AZURE_TENANT_ID": TENANT},
}
GITLAB = {"GOOGLE_TOKEN": "a.b.google", "AZURE_TOKEN": "a.b.azure"}


class Answers(BaseHTTPRequestHandler):
    """The forge's tokens, Google's exchange and its service accounts; refuses what they would."""

    def do_GET(self):
        query = parse_qs(urlsplit(self.path).query)
        self.seen.append(("token", query, self.headers["Authorization"]))
        self.answer({"value": f"a.b.{query['audience'][0]}"} if self.headers["Authorization"] == "Bearer job" else None)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path == "/v1/token":
            asked = {name: value for name, (value,) in parse_qs(body).items()}
            self.seen.append(("exchange", asked, ""))
            fits = (
                asked["grant_type"].endswith("token-exchange")
                and asked["audience"] == f"//iam.googleapis.com/{PROVIDER}"
            )
            said = {"access_token": "federated", "token_type": "Bearer", "expires_in": 3600,
                    "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}  # fmt: skip
            return self.answer(said if fits else None)
        self.seen.append(("account", self.path, self.headers["Authorization"]))
        fits = self.headers["Authorization"] == "Bearer federated"
        return self.answer({"accessToken": "as-the-account", "expireTime": "2100-01-01T00:00:00Z"} if fits else None)

    def answer(self, said):
        self.send_response(200 if said else 403)
        self.end_headers()
        self.wfile.write(json.dumps(said or {"error": "no"}).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def there():
    Answers.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.url = f"http://127.0.0.1:{server.server_port}"
    yield server
    server.shutdown()
    server.server_close()


def signed(folder, given, cluster):
    """What the script prints, as variables; or its sentence."""
    (folder / "stacks").mkdir(exist_ok=True)
    (folder / "stacks/Pulumi.lab.yaml").write_text(yaml.safe_dump({"config": {"ironburst:cluster": cluster}}))
    env = {"PATH": os.environ["PATH"], "STACK": "lab", **given}
    script = [sys.executable, str(ROOT / "ci/sign_in.py")]
    done = subprocess.run(script, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        assert done.stdout == "" and done.stderr.count("\n") == 1
        return done.stderr
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def github(there):
    url = f"{there.url}/token?api-version=2.0"
    return {"GITHUB_ACTIONS": "true", "ACTIONS_ID_TOKEN_REQUEST_URL": url, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "job"}


@pytest.mark.parametrize("forge", ["github", "gitlab"])
@pytest.mark.parametrize("audience", [None, "sts.googleapis.com"])
def test_googles_own_client_becomes_the_service_account(tmp_path, there, forge, audience):
    cloud = GOOGLE | ({"ci": {"audience": audience}} if audience else {})
    given = ASKED["google"] | (github(there) if forge == "github" else GITLAB)
    said = signed(tmp_path, given, {"cloud": cloud})
    assert said.keys() == {"GOOGLE_APPLICATION_CREDENTIALS"}
    path = Path(said["GOOGLE_APPLICATION_CREDENTIALS"])
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent == tmp_path / "build/ci"
    text = path.read_text()
    for real in ("https://sts.googleapis.com", "https://iamcredentials.googleapis.com"):
        assert real in text
        text = text.replace(real, there.url)
    path.write_text(text)
    scopes = ["https://www.googleapis.com/auth/cloud-platform"]
    found = identity_pool.Credentials.from_file(path, scopes=scopes)
    found.refresh(google.auth.transport.requests.Request())
    assert found.token == "as-the-account"
    *asked, (_, exchanged, _), (_, account, _) = there.RequestHandlerClass.seen
    assert account == f"/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken"
    wanted = audience or f"https://iam.googleapis.com/{PROVIDER}"
    assert exchanged["subject_token"] == (f"a.b.{wanted}" if forge == "github" else GITLAB["GOOGLE_TOKEN"])
    assert len(asked) == (forge == "github")


def test_azures_variables_are_those_that_its_clients_read(tmp_path, there, monkeypatch):
    said = signed(tmp_path, ASKED["azure"] | github(there), {"cloud": AZURE})
    own = {"ARM_USE_OIDC": "true", "ARM_CLIENT_ID": "client", "ARM_TENANT_ID": TENANT}
    assert said == own | {"ARM_SUBSCRIPTION_ID": SUBSCRIPTION}
    declared = AZURE | {"tenant": SUBSCRIPTION, "ci": {"audience": "api://ours"}}
    said = signed(tmp_path, ASKED["azure"] | github(there), {"cloud": declared})
    assert (said["ARM_TENANT_ID"], said["ARM_OIDC_AUDIENCE"]) == (SUBSCRIPTION, "api://ours")
    said = signed(tmp_path, ASKED["azure"] | GITLAB, {"cloud": AZURE})
    assert Path(said["ARM_OIDC_TOKEN_FILE_PATH"]).read_text() == GITLAB["AZURE_TOKEN"]
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert WorkloadIdentityCredential()._get_service_account_token() == GITLAB["AZURE_TOKEN"]


def test_each_cloud_of_a_stack_is_signed_in_at_and_no_other(tmp_path, there):
    everything = {**ASKED["aws"], **ASKED["google"], **ASKED["azure"], **github(there)}
    assert signed(tmp_path, everything, {}) == {}
    assert signed(tmp_path, everything, {"cloud": AWS}) == {}
    both = {"cloud": AWS, "other_clouds": [GOOGLE, AZURE]}
    assert {"GOOGLE_APPLICATION_CREDENTIALS", "ARM_CLIENT_ID"} < signed(tmp_path, everything, both).keys()


MISSING = [(cloud, name) for cloud, asked in ASKED.items() for name in asked]
MISSING += [("google", "GOOGLE_TOKEN"), ("azure", "AZURE_TOKEN")]


@pytest.mark.parametrize(("cloud", "name"), MISSING)
def test_what_is_missing_is_one_sentence(tmp_path, cloud, name):
    given = {key: value for key, value in (ASKED[cloud] | GITLAB).items() if key != name}
    said = signed(tmp_path, given, {"cloud": {"aws": AWS, "google": GOOGLE, "azure": AZURE}[cloud]})
    assert f"{name} isn't set" in said and "the stack lab is in" in said


@pytest.mark.parametrize("cloud", ["google", "azure"])
def test_a_job_of_github_without_the_right_to_a_token_is_told_so(tmp_path, cloud):
    given = ASKED[cloud] | {"GITHUB_ACTIONS": "true"}
    said = signed(tmp_path, given, {"cloud": {"google": GOOGLE, "azure": AZURE}[cloud]})
    assert "ACTIONS_ID_TOKEN_REQUEST_URL isn't set" in said
